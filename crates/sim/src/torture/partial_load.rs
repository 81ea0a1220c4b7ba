//! The load of `torture partial`: one keyspace that may be damaged, used now and then, and two
//! sound ones, each written by one thread and read by another at full speed.
//!
//! Owns: the threads, their counts, and the rules that do not depend on time: no write is refused,
//! none is lost, and level 0 of a sound keyspace has a bound. Never does: damage anything.

use super::stop;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use windrow::{Db, ErrorKind, Keyspace, Options, inspect};
use windrow_env::testing::Rng;

/// The keyspace that may be damaged.
pub const SICK: &str = "sick";
/// All keyspaces; the sound ones come last.
pub const SPACES: [&str; 3] = [SICK, "a", "b"];

/// Keys of each keyspace.
const KEYS: u64 = 20_000;
/// Coprime to `KEYS`: keys are written in steps of it, so that a few of them are from all over the
/// keyspace.
const KEY_STEP: u64 = 7919;
const VALUE_BYTES: usize = 200;
/// The interval between uses of the keyspace that may be damaged, in every run.
const SICK_EVERY: Duration = Duration::from_millis(1);
/// Writes to it after which it is flushed: in ten seconds its level 0 gets deeper than the depth
/// that stops writers, if nothing can be merged out of it.
const SICK_FLUSH_EVERY: u64 = 150;

/// The rates of the sound keyspaces.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Reads a second.
    pub reads: f64,
    /// Writes a second.
    pub writes: f64,
    /// The greatest depth of level 0 of the other keyspace: from some depth on writers wait, if
    /// merging it would help.
    pub sick_depth: u32,
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rates { reads, writes, sick_depth } = self;
        write!(f, "{reads:.0} reads, {writes:.0} writes a second, level 0 {sick_depth} deep")
    }
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Returns the key of the n-th write.
fn key(n: u64) -> String {
    format!("key{:08}", n % KEYS * KEY_STEP % KEYS)
}

/// Returns the n-th value of a writer.
fn value(n: u64) -> Vec<u8> {
    let mut value = n.to_le_bytes().to_vec();
    value.resize(VALUE_BYTES, b'.');
    value
}

/// Makes a keyspace and writes each key once.
pub fn fill(db: &Db, name: &str) -> Result<(), String> {
    let space = db.keyspace(name).map_err(text)?;
    (0..KEYS).try_for_each(|n| space.put(key(n), value(n))).map_err(text)
}

/// The load on a database's keyspaces.
pub struct Load {
    spaces: Vec<Keyspace>,
    db: Db,
    seed: u64,
    /// Whether there is damage, and so whether reads of the first keyspace may fail.
    damaged: bool,
    /// Reads, by keyspace.
    read: [AtomicU64; 3],
    /// Writes acknowledged, by keyspace.
    written: [AtomicU64; 3],
    /// Whether a read of the damaged keyspace failed while descriptors were available.
    met_damage: AtomicBool,
    starving: AtomicBool,
    stop: AtomicBool,
}

impl Load {
    /// Makes a load on the keyspaces that [`fill`] has filled.
    ///
    /// # Errors
    /// The keyspace that could not be opened, and why.
    pub fn new(db: &Db, seed: u64, damaged: bool) -> Result<Load, String> {
        let open = |name| db.keyspace(name).map_err(text);
        Ok(Load {
            spaces: SPACES.into_iter().map(open).collect::<Result<_, _>>()?,
            db: db.clone(),
            seed,
            damaged,
            read: Default::default(),
            written: Default::default(),
            met_damage: AtomicBool::new(false),
            starving: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    /// Uses all keyspaces for `seconds`, and then, if there is damage, for one more second in which
    /// the process gets no descriptor.
    ///
    /// # Errors
    /// The rule that was broken; that no read met the damage.
    pub fn run(&self, seconds: u64) -> Result<Rates, String> {
        std::thread::scope(|scope| {
            let mut all = vec![scope.spawn(|| self.use_sick())];
            for space in [1, 2] {
                all.push(scope.spawn(move || self.write(space)));
                all.push(scope.spawn(move || self.read(space)));
            }
            let rates = self.measure(seconds);
            let starved = if self.damaged { self.starve() } else { Ok(()) };
            self.stop.store(true, Ordering::Relaxed);
            for thread in all {
                thread.join().map_err(|_| "a thread panicked".to_owned())??;
            }
            starved?;
            self.meet_damage()?;
            rates
        })
    }

    fn is_going_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Returns the reads and writes of the sound keyspaces.
    fn done(&self) -> [u64; 2] {
        [&self.read, &self.written]
            .map(|counts| counts[1..].iter().map(|count| count.load(Ordering::Relaxed)).sum())
    }

    /// Counts the operations of `seconds` seconds.
    fn measure(&self, seconds: u64) -> Result<Rates, String> {
        let depth_max = 2 * Options::default().settings.level0_stop_files;
        let (begin, before) = (Instant::now(), self.done());
        let mut sick_depth = 0;
        while begin.elapsed() < Duration::from_secs(seconds) && !stop::requested() {
            std::thread::sleep(Duration::from_millis(50));
            for (name, version) in inspect::trees(&self.db) {
                let depth = version.levels[0].sst_log_depth();
                if name == SICK {
                    sick_depth = sick_depth.max(depth);
                } else if depth > depth_max {
                    return Err(format!("level 0 of `{name}` is {depth} deep"));
                }
            }
        }
        let (done, seconds) = (self.done(), begin.elapsed().as_secs_f64());
        let [reads, writes] = [0, 1].map(|of| (done[of] - before[of]) as f64 / seconds);
        Ok(Rates { reads, writes, sick_depth })
    }

    /// Keeps the process from getting another descriptor for a second.
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

    fn put_next(&self, space: usize) -> Result<u64, String> {
        let n = self.written[space].load(Ordering::Relaxed);
        let put = self.spaces[space].put(key(n), value(n));
        put.map_err(|e| format!("a write was refused: {e}"))?;
        self.written[space].store(n + 1, Ordering::Relaxed);
        Ok(n + 1)
    }

    fn write(&self, space: usize) -> Result<(), String> {
        while self.is_going_on() {
            self.put_next(space)?;
        }
        Ok(())
    }

    /// Reads keys, all of them present. Reads may fail while there is no descriptor.
    fn read(&self, space: usize) -> Result<(), String> {
        let mut rng = Rng::new(self.seed + space as u64);
        while self.is_going_on() {
            let starving = self.starving.load(Ordering::SeqCst);
            match self.spaces[space].get(key(rng.below(KEYS))) {
                Ok(Some(_)) => _ = self.read[space].fetch_add(1, Ordering::Relaxed),
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

    /// Uses the keyspace that may be damaged now and then: its reads may then fail, but not its
    /// writes and flushes.
    fn use_sick(&self) -> Result<(), String> {
        let mut rng = Rng::new(self.seed);
        while self.is_going_on() {
            std::thread::sleep(SICK_EVERY);
            if self.put_next(0)? % SICK_FLUSH_EVERY == 0 {
                self.spaces[0].flush().map_err(|e| format!("a flush failed: {e}"))?;
            }
            let starving = self.starving.load(Ordering::SeqCst);
            match self.spaces[0].get(key(rng.below(KEYS))) {
                Ok(Some(_)) => {}
                Ok(None) => return Err("a key of the damaged keyspace is said to be gone".into()),
                Err(_) if self.is_starving(starving) => {}
                Err(_) if self.damaged => self.met_damage.store(true, Ordering::Relaxed),
                Err(e) => return Err(format!("nothing is damaged, and yet: {e}")),
            }
        }
        Ok(())
    }

    /// Reads the damaged keyspace until a read fails, so that a short load on a slow machine has
    /// met the damage too.
    fn meet_damage(&self) -> Result<(), String> {
        let fails = |n| self.spaces[0].get(key(n)).is_err();
        if !self.damaged || (0..KEYS).any(fails) || self.met_damage.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err("no read met the damage: this tests nothing".into())
    }

    /// Checks that every keyspace has the last acknowledged value of each key.
    ///
    /// # Errors
    /// The key that has another value.
    pub fn check(&self, db: &Db) -> Result<(), String> {
        for (name, written) in SPACES.into_iter().zip(&self.written) {
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
