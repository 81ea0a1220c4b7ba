//! `torture partial`: damage in one keyspace, while two others are written and
//! read at full speed.
//!
//! In one keyspace's tables bytes are flipped, and a table loses its end under the
//! open database, so that reads and merges of it err. What the others get done is
//! compared with runs without damage, in turns; then the process has no
//! descriptors for a second. Owns: the load, the damage, and what must hold
//! whatever the time: no write is refused, none is lost, level 0 has a bound.
//! Never does: call a figure of speed right or wrong.

use super::{Failure, Outcome, Plan, stop};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windrow::{Db, ErrorKind, Keyspace, Options};
use windrow_env::testing::Rng;
use windrow_format::names;

/// Most rounds; each is a run with damage and one without.
const ROUNDS_MAX: u64 = 5;
/// Keys of each keyspace.
const KEYS: u64 = 20_000;
const VALUE_BYTES: usize = 200;
/// How often a byte is flipped in the damaged table's first half.
const FLIP_EVERY_BYTES: usize = 2048;
/// The keyspace that is damaged is used this often, in both kinds of run.
const SICK_EVERY: Duration = Duration::from_millis(1);

/// Runs the rounds.
///
/// # Errors
/// What did not hold.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let scratch = plan.scratch(std::env::temp_dir())?;
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds.min(ROUNDS_MAX) {
        // Which comes first changes, since a disk may slow down or warm up.
        for damage in [round % 2 == 0, round % 2 == 1] {
            let dir = scratch.path().join(format!("{round}-{damage}"));
            match one_run(&dir, plan, damage) {
                Ok(rate) => if damage { &mut damaged } else { &mut sound }.push(rate),
                Err(why) => {
                    let _ = scratch.keep();
                    let why = format!("round {round}, damage {damage}: {why}");
                    return Err(Failure { why, seed: plan.seed, kept: Some(dir) });
                }
            }
            let _ = std::fs::remove_dir_all(&dir);
        }
        eprintln!("round {round}: {:.0} a second, {:.0} with damage", last(&sound), last(&damaged));
        if stop::requested() {
            break;
        }
    }
    let rounds = damaged.len();
    let (sound, damaged) = (median(sound), median(damaged));
    Ok(Outcome::Held(format!(
        "{rounds} rounds: median {sound:.0} operations a second, {damaged:.0} with damage in \
         another keyspace, ratio {:.3}",
        damaged / sound
    )))
}

fn last(rates: &[f64]) -> f64 {
    rates.last().copied().unwrap_or(0.0)
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

fn options() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 32 << 20;
    options.settings.memtable_bytes = 1 << 20;
    options.settings.file_bytes = 256 << 10;
    options
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn key(n: u64) -> String {
    format!("key{n:08}")
}

/// The n-th value of a writer.
fn value(n: u64) -> Vec<u8> {
    let mut value = n.to_le_bytes().to_vec();
    value.resize(VALUE_BYTES, b'.');
    value
}

/// Fills a database, damages it if asked to, and loads it. Returns operations a second.
fn one_run(dir: &Path, plan: &Plan, damage: bool) -> Result<f64, String> {
    let spaces = ["sick", "a", "b"];
    let db = Db::open_with(dir, options()).map_err(text)?;
    for name in spaces {
        let space = db.keyspace(name).map_err(text)?;
        (0..KEYS).try_for_each(|n| space.put(key(n), value(n))).map_err(text)?;
    }
    db.flush().and_then(|()| db.wait_idle()).map_err(text)?;
    let tables = tables_of(&db, dir, "sick");
    db.close().map_err(text)?;
    let kept = match (tables.first(), tables.last()) {
        (Some(first), Some(last)) if first != last => [keep(first)?, keep(last)?],
        _ => return Err(format!("{} tables are too few to be damaged", tables.len())),
    };
    if damage {
        flip(&kept[0])?;
    }
    let db = Db::open_with(dir, options()).map_err(text)?;
    if damage {
        cut(&kept[1])?;
    }
    let load = Load::new(&db, spaces)?;
    let rate = load.run(plan, damage)?;
    if damage {
        // Only now: what is damaged is damaged for as long as the load runs.
        kept.iter().try_for_each(|(path, bytes)| std::fs::write(path, bytes)).map_err(text)?;
    }
    db.close().map_err(text)?;
    let db = Db::open_with(dir, options()).map_err(text)?;
    load.check(&db, spaces)?;
    db.close().map_err(text)?;
    Ok(rate)
}

/// The table files of a keyspace, by number.
fn tables_of(db: &Db, dir: &Path, name: &str) -> Vec<PathBuf> {
    let tree = db.tree().into_iter().find(|(space, _)| space == name);
    let files = tree.iter().flat_map(|(_, version)| version.files());
    let mut numbers = Vec::from_iter(files.map(|(_, _, file)| file.number));
    numbers.sort_unstable();
    numbers.into_iter().map(|number| dir.join(names::table(number))).collect()
}

type Kept = (PathBuf, Vec<u8>);

fn keep(path: &Path) -> Result<Kept, String> {
    Ok((path.to_path_buf(), std::fs::read(path).map_err(text)?))
}

/// Flips bytes in the first half of a table, which holds its first blocks.
fn flip((path, bytes): &Kept) -> Result<(), String> {
    let mut bytes = bytes.clone();
    let half = bytes.len() / 2;
    bytes[64..half].iter_mut().step_by(FLIP_EVERY_BYTES).for_each(|byte| *byte ^= 0x40);
    std::fs::write(path, bytes).map_err(text)
}

/// Takes a table's second half away, so that reads of it meet the file's end.
fn cut((path, bytes): &Kept) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().write(true).open(path).map_err(text)?;
    file.set_len(bytes.len() as u64 / 2).map_err(text)
}

/// What is done to a database's keyspaces; the first is the one that is damaged.
struct Load {
    spaces: Vec<Keyspace>,
    db: Db,
    /// Writes acknowledged, by keyspace.
    written: [AtomicU64; 3],
    /// Reads and writes of the sound keyspaces.
    done: AtomicU64,
    /// Reads of the damaged keyspace that erred.
    erred: AtomicU64,
    starving: AtomicBool,
    stop: AtomicBool,
}

impl Load {
    fn new(db: &Db, spaces: [&str; 3]) -> Result<Load, String> {
        let open = |name| db.keyspace(name).map_err(text);
        Ok(Load {
            spaces: spaces.into_iter().map(open).collect::<Result<_, _>>()?,
            db: db.clone(),
            written: Default::default(),
            done: AtomicU64::new(0),
            erred: AtomicU64::new(0),
            starving: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    /// Operations of the sound keyspaces a second.
    fn run(&self, plan: &Plan, damage: bool) -> Result<f64, String> {
        std::thread::scope(|scope| {
            let mut all = vec![scope.spawn(|| self.use_sick(plan.seed, damage))];
            for space in [1, 2] {
                all.push(scope.spawn(move || self.write(space)));
                all.push(scope.spawn(move || self.read(space, plan.seed)));
            }
            let rate = self.measure(plan);
            let starved = if damage { self.starve() } else { Ok(()) };
            self.stop.store(true, Ordering::Relaxed);
            for thread in all {
                thread.join().map_err(|_| "a thread panicked".to_owned())??;
            }
            starved?;
            if damage && self.erred.load(Ordering::Relaxed) == 0 {
                return Err("no read met the damage: this tests nothing".into());
            }
            rate
        })
    }

    fn is_going_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Counts what is done for as long as the plan says.
    fn measure(&self, plan: &Plan) -> Result<f64, String> {
        let depth_max = 2 * Options::default().settings.level0_stop_files;
        let (begin, before) = (Instant::now(), self.done.load(Ordering::Relaxed));
        while begin.elapsed() < Duration::from_secs(plan.seconds) && !stop::requested() {
            std::thread::sleep(Duration::from_millis(50));
            for (name, version) in self.db.tree().iter().filter(|(name, _)| name != "sick") {
                let depth = version.levels[0].log_depth();
                if depth > depth_max {
                    return Err(format!("level 0 of `{name}` is {depth} deep"));
                }
            }
        }
        let done = self.done.load(Ordering::Relaxed) - before;
        Ok(done as f64 / begin.elapsed().as_secs_f64())
    }

    /// A second in which the process gets no descriptor more.
    fn starve(&self) -> Result<(), String> {
        self.starving.store(true, Ordering::SeqCst);
        let before = getrlimit(Resource::Nofile);
        let none = Rlimit { current: Some(1), maximum: before.maximum };
        setrlimit(Resource::Nofile, none).map_err(text)?;
        std::thread::sleep(Duration::from_secs(1));
        setrlimit(Resource::Nofile, before).map_err(text)?;
        self.starving.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn put_next(&self, space: usize) -> Result<(), String> {
        let n = self.written[space].load(Ordering::Relaxed);
        let put = self.spaces[space].put(key(n % KEYS), value(n));
        put.map_err(|e| format!("a write was refused: {e}"))?;
        self.written[space].store(n + 1, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, space: usize) -> Result<(), String> {
        while self.is_going_on() {
            self.put_next(space)?;
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads keys, which are all there. Reads may err while there is no descriptor.
    fn read(&self, space: usize, seed: u64) -> Result<(), String> {
        let mut rng = Rng::new(seed + space as u64);
        while self.is_going_on() {
            let starving = self.starving.load(Ordering::SeqCst);
            match self.spaces[space].get(key(rng.below(KEYS))) {
                Ok(Some(_)) => _ = self.done.fetch_add(1, Ordering::Relaxed),
                Ok(None) => return Err("a key of a sound keyspace is gone".into()),
                Err(e) if e.kind() == ErrorKind::Io && self.is_starving(starving) => {}
                Err(e) => return Err(format!("a sound keyspace could not be read: {e}")),
            }
        }
        Ok(())
    }

    fn is_starving(&self, before: bool) -> bool {
        before || self.starving.load(Ordering::SeqCst)
    }

    /// Uses the damaged keyspace now and then: reads may err, writes not.
    fn use_sick(&self, seed: u64, damage: bool) -> Result<(), String> {
        let mut rng = Rng::new(seed);
        while self.is_going_on() {
            std::thread::sleep(SICK_EVERY);
            self.put_next(0)?;
            match self.spaces[0].get(key(rng.below(KEYS))) {
                Ok(Some(_)) => {}
                Ok(None) => return Err("a key of the damaged keyspace is said to be gone".into()),
                Err(_) if damage => _ = self.erred.fetch_add(1, Ordering::Relaxed),
                Err(e) => return Err(format!("nothing is damaged, and yet: {e}")),
            }
        }
        Ok(())
    }

    /// Whether every keyspace holds the last acknowledged value of each key.
    fn check(&self, db: &Db, names: [&str; 3]) -> Result<(), String> {
        for (name, written) in names.into_iter().zip(&self.written) {
            let space = db.keyspace(name).map_err(text)?;
            let written = written.load(Ordering::Relaxed);
            for n in 0..KEYS {
                // The last of the values n, n + KEYS, n + 2 KEYS, ... that was written.
                let rounds = written.saturating_sub(n).div_ceil(KEYS);
                let expected = value(n + rounds.saturating_sub(1) * KEYS);
                let found = space.get(key(n)).map_err(|e| format!("`{name}`: {e}"))?;
                if found.as_deref() != Some(&expected[..]) {
                    return Err(format!("`{name}`: {} is not what was acknowledged", key(n)));
                }
            }
        }
        Ok(())
    }
}
