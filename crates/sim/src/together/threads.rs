//! All acts at once, on threads over the simulated file system: the history of a database in many
//! sessions, each with other acts and options, and ended by a close, a kill or a power loss.
//!
//! In a session the device may fail or be full. Images of the machine are taken meanwhile, and
//! judged as after a kill or a power loss: every state that the manifest has by then must open. The
//! order of threads is not controlled, so a seed repeats the draws and not the order of events.
//!
//! Owns: sessions, and their ends. Never does: decide whether a state is right (`mod.rs`).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "threads of the real system, and for how long they run"
)]

use super::acts::{ACTS, Act, Kind};
use super::stage::{Excuses, Ground, Stage, judge, resume_for_good, shown, verify_backups};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windrow::{Db, Follower, Options};
use windrow_base::Result;
use windrow_env::Env;
use windrow_env::testing::{CrashFs, Fault, FaultKind, Ops, Rng, SeededRandom, When};
use windrow_testkit::ledger::{Counts, Ledger};
use windrow_testkit::variant::VARIANTS;

const DIR: &str = "/together/db";
const BACKUPS: &str = "/together/backups";
/// Bytes of a value: a few writes fill a memtable.
const VALUE_BYTES: usize = 1 << 10;
/// Threads of a database's background work.
const JOB_THREADS: usize = 2;
/// Sessions of a database.
const SESSIONS: u64 = 12;
/// The most room that a full device has left when a session begins.
const ROOM_BYTES_MAX: u64 = 4 << 20;
/// After this time the authors of a session stop, even if they have runs left.
const PATIENCE: Duration = Duration::from_secs(20);

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Sessions.
    pub sessions: u64,
    /// Acts that were done.
    pub acts: u64,
    /// Images that were judged.
    pub images: u64,
}

/// The machine of a database.
struct Machine {
    fs: Mutex<CrashFs>,
    rng: Mutex<Rng>,
    options: Mutex<Options>,
    copies: AtomicU64,
}

impl Machine {
    fn fs(&self) -> CrashFs {
        self.fs.lock().expect("no thread panicked").clone()
    }

    fn options_on(&self, fs: CrashFs) -> Options {
        let mut options = self.options.lock().expect("no thread panicked").clone();
        options.components.env = Some(self.env_on(fs));
        options
    }

    /// With the real clock and pool: work that found no room is tried again by the time.
    fn env_on(&self, fs: CrashFs) -> Env {
        let random = Arc::new(SeededRandom::new(self.draw(u64::MAX)));
        Env { fs: Arc::new(fs), random, ..Env::os(JOB_THREADS) }
    }

    fn open_on(&self, fs: &CrashFs, dir: &str) -> Result<Db> {
        Db::open_with(Path::new(dir), self.options_on(fs.clone()))
    }

    /// Draws other options for the next open.
    fn redraw_options(&self) {
        let simulated: Vec<_> = VARIANTS
            .iter()
            .filter(|v| v.ground == windrow_testkit::variant::Ground::Simulated)
            .collect();
        let variant = simulated[self.draw(simulated.len() as u64) as usize];
        let mut options = variant.options().expect("options of a variant");
        options.settings.set("manifest_bytes", "4KiB").expect("a setting");
        // A follower that is too far behind reports that it is closed.
        let keep = ["64KiB", "1GiB"][self.draw(2) as usize];
        options.settings.set("followers_keep_bytes", keep).expect("a setting");
        *self.options.lock().expect("no thread panicked") = options;
    }
}

impl Ground for Machine {
    fn draw(&self, bound: u64) -> u64 {
        self.rng.lock().expect("no thread panicked").below(bound)
    }

    fn pause(&self) {
        std::thread::yield_now();
    }

    fn follow(&self) -> Result<Follower> {
        Follower::open_with(Path::new(DIR), self.options_on(self.fs()))
    }

    fn copy_path(&self, author: usize) -> String {
        format!("/together/copy{author}-{}", self.copies.fetch_add(1, Ordering::Relaxed))
    }

    fn with_copy(&self, dir: &str, look: &mut dyn FnMut(&Db) -> Result<Counts>) -> Result<Counts> {
        // Opened on a machine without faults, with enough room.
        let (fs, own) = (self.fs(), self.fs().fork());
        own.clear_faults();
        own.set_capacity(None);
        let copy = self.open_on(&own, dir).unwrap_or_else(|error| panic!("{dir}: {error}"));
        let sound = copy.verify().and_then(|report| report.into_result());
        sound.unwrap_or_else(|error| panic!("{dir}: {error}"));
        let seen = look(&copy)?;
        copy.close().unwrap_or_else(|error| panic!("{dir}: {error}"));
        for name in fs.files(Path::new(dir)) {
            fs.remove_file(&Path::new(dir).join(name));
        }
        Ok(seen)
    }

    fn env(&self) -> Env {
        self.env_on(self.fs())
    }

    fn backups_path(&self) -> PathBuf {
        PathBuf::from(BACKUPS)
    }

    fn break_device(&self) -> Box<dyn Send> {
        struct Broken(CrashFs, windrow_env::testing::FaultId);
        impl Drop for Broken {
            fn drop(&mut self) {
                self.0.remove_fault(self.1);
            }
        }
        let kind = if self.draw(2) == 0 { FaultKind::NoSpace } else { FaultKind::Io };
        let on = [
            (Ops::WRITE, "db/0"),
            (Ops::SYNC, ".wal"),
            (Ops::WRITE | Ops::SYNC, "db/MANIFEST"),
            (Ops::CREATE | Ops::RESERVE | Ops::RENAME | Ops::SYNC_DIR, "/db"),
        ];
        let (on, path) = on[self.draw(on.len() as u64) as usize];
        let fs = self.fs();
        let id = fs.inject(Fault::new(kind, on, When::Matching(self.draw(6))).on_path(path));
        Box::new(Broken(fs, id))
    }
}

/// An image of the machine, and the writes that it must have.
struct Image {
    fs: CrashFs,
    durable: Counts,
    acknowledged: Counts,
    attempted: Counts,
}

impl Image {
    fn take(machine: &Machine, ledger: &Ledger) -> Image {
        let (durable, acknowledged) = (ledger.durable(), ledger.acknowledged());
        let fs = machine.fs().fork();
        fs.clear_faults();
        fs.set_capacity(None);
        Image { fs, durable, acknowledged, attempted: ledger.attempted() }
    }

    /// Judges it as after a kill or a power loss; returns its state.
    fn judge(&self, machine: &Machine, ledger: &Ledger, loses_power: bool) -> Counts {
        let seed = machine.draw(u64::MAX);
        let (what, least) = match loses_power {
            true => ("after a power loss", &self.durable),
            false => ("after a kill", &self.acknowledged),
        };
        if loses_power {
            self.fs.crash(seed)
        } else {
            self.fs.kill(seed)
        }
        verify_backups(&machine.env_on(self.fs.clone()), Path::new(BACKUPS));
        let open = || machine.open_on(&self.fs, DIR);
        judge(what, &open, ledger, (least, &self.attempted))
    }
}

/// Runs databases, one after the other, for at most this time. `first`: the seed of the first.
///
/// # Errors
/// The seed of a database in which a write was lost or a rule was broken; the failure is printed.
pub fn run(first: u64, databases: u64, most: Duration) -> Result<Figures, u64> {
    let (begin, mut figures) = (Instant::now(), Figures::default());
    for seed in first..first.saturating_add(databases) {
        if begin.elapsed() >= most {
            break;
        }
        let run = || run_one(seed, most.saturating_sub(begin.elapsed()), &mut figures);
        catch_unwind(AssertUnwindSafe(run)).map_err(|_| seed)?;
    }
    Ok(figures)
}

fn run_one(seed: u64, most: Duration, figures: &mut Figures) {
    let begin = Instant::now();
    let machine = Arc::new(Machine {
        fs: Mutex::new(CrashFs::new(seed)),
        rng: Mutex::new(Rng::new(seed)),
        options: Mutex::default(),
        copies: AtomicU64::new(0),
    });
    let ledger = Arc::new(Ledger::new(ACTS.len(), VALUE_BYTES));
    for _ in 0..SESSIONS {
        if begin.elapsed() >= most {
            return;
        }
        machine.redraw_options();
        session(&machine, &ledger, figures);
        figures.sessions += 1;
    }
}

fn session(machine: &Arc<Machine>, ledger: &Arc<Ledger>, figures: &mut Figures) {
    let excuses = Excuses { closes: machine.draw(4) == 0, fails: machine.draw(3) == 0 };
    let fs = machine.fs();
    let db = machine.open_on(&fs, DIR).unwrap_or_else(|error| panic!("open: {error}"));
    let stage = Stage::new(db, ledger.clone(), machine.clone(), excuses);
    let stage = stage.unwrap_or_else(|error| panic!("keyspaces: {error}"));
    if excuses.fails && machine.draw(2) == 0 {
        fs.set_capacity(Some(fs.used_bytes() + machine.draw(ROOM_BYTES_MAX)));
    }
    let images = run_acts(machine, &stage, figures);
    for image in images {
        image.judge(machine, ledger, machine.draw(2) == 0);
        figures.images += 1;
    }
    end_session(machine, stage);
}

/// Draws the acts of a session: each with some chance. Acts that affect the others run only if that
/// is excused.
fn drawn(machine: &Machine, excuses: Excuses) -> Vec<(usize, &'static Act)> {
    let asked = |act: &Act| match act.kind {
        Kind::Harmless => machine.draw(3) > 0,
        Kind::Breaks => excuses.fails,
        Kind::Closes => excuses.closes,
    };
    ACTS.iter().enumerate().filter(|(_, act)| asked(act)).collect()
}

fn run_acts(machine: &Machine, stage: &Stage, figures: &mut Figures) -> Vec<Image> {
    let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut images, begin) = (Vec::new(), Instant::now());
    std::thread::scope(|scope| {
        let threads: Vec<_> = drawn(machine, stage.excuses)
            .into_iter()
            .map(|(author, act)| {
                let (stage, over, done) = (stage.clone(), &over, &done);
                scope.spawn(move || {
                    for _ in 0..act.times {
                        let result = (act.run)(&stage, author);
                        done.fetch_add(1, Ordering::Relaxed);
                        if !stage.excuses.take(act.name, result) || over.load(Ordering::Acquire) {
                            return;
                        }
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            std::thread::sleep(Duration::from_micros(machine.draw(30_000)));
            images.push(Image::take(machine, &stage.ledger));
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
            over.fetch_or(begin.elapsed() > PATIENCE, Ordering::AcqRel);
        }
    });
    figures.acts += done.load(Ordering::Relaxed);
    images
}

fn end_session(machine: &Arc<Machine>, stage: Stage) {
    let (fs, ledger, excuses) = (machine.fs(), stage.ledger.clone(), stage.excuses);
    fs.clear_faults();
    fs.set_capacity(None);
    if excuses.fails && !excuses.closes {
        resume_for_good(&stage.db);
    }
    let end = if excuses.closes { 0 } else { machine.draw(3) };
    if !excuses.closes {
        let looked = stage.look("at the end", || shown(&stage.db, &ledger));
        looked.unwrap_or_else(|error| panic!("at the end: {error}"));
    }
    if end == 0 {
        let closed = stage.db.close();
        assert!(closed.is_ok() || excuses.closes, "close: {closed:?}");
        drop(stage);
        let (least, most) = (ledger.acknowledged(), ledger.attempted());
        judge("after a close", &|| machine.open_on(&fs, DIR), &ledger, (&least, &most));
        return;
    }
    let image = Image::take(machine, &ledger);
    let seen = image.judge(machine, &ledger, end == 1);
    // The image continues: the old machine is given up with all that runs on it.
    fs.halt();
    drop(stage);
    *machine.fs.lock().expect("no thread panicked") = image.fs;
    ledger.go_on_from(&seen);
}
