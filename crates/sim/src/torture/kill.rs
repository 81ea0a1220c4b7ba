//! `torture kill`: SIGKILL at random moments, in recovery as well, again and
//! again over the same directory.
//!
//! The page cache outlives a process, so everything acknowledged must be present, synced or not,
//! and a file system in memory is as good as one on a device, and ten times as fast. Owns: the
//! moment at which the process dies. Never does: judge.

use super::child::{End, Spec, Worker};
use super::judge::{Survives, Tally, Told, judge};
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::stop;
use super::workload::{Expected, Shape};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::{Db, ErrorKind, Options};
use windrow_env::testing::Rng;

/// Kills of one directory before the next one is begun.
const SESSIONS: u64 = 25;
/// The delay of a kill after the start is drawn between these, evenly on a logarithmic scale.
const DELAY_US: (f64, f64) = (100.0, 60_000.0);
/// One kill in this number is at a system call instead, if strace is installed.
const STRACE_ONE_IN: u64 = 25;
/// System calls at which a process dies, and the most calls of each that it makes before it does.
const CALLS: [(&str, u64); 9] = [
    ("pwrite64", 40),
    ("write", 40),
    ("fdatasync", 40),
    ("fsync", 20),
    ("rename", 2),
    ("unlink", 20),
    ("ftruncate", 10),
    ("fallocate", 20),
    ("openat", 120),
];
/// The longest time that a process may take to reach its system call.
pub(super) const STRACE_MOST: Duration = Duration::from_secs(3);

/// The longest time that a killed process may take to die: minutes on a busy machine.
pub(super) const DYING_MOST: Duration = Duration::from_secs(600);

/// The bytes that the canary leaves of each log: its header, and little more.
const LOG_KEPT_BYTES: u64 = 256;

/// The counts of all kills together.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    kills: u64,
    by_call: u64,
    before_open: u64,
    verified: u64,
    tally: Tally,
}

/// One directory and its history.
struct History<'a> {
    plan: &'a Plan,
    rng: Rng,
    session: u64,
    dir: PathBuf,
    ledger: PathBuf,
    strace: Option<&'a Path>,
    expected: Expected,
    /// Whether a worker got as far as having it open.
    exists: bool,
}

/// Runs `plan.rounds` kills.
///
/// # Errors
/// The write that was lost, or the refusal.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let scratch = plan.scratch(Ledger::directory())?;
    let ledgers = tempfile::tempdir_in(Ledger::directory())
        .map_err(|e| plan.failure(plan.seed, e.to_string()))?;
    let strace = strace();
    let begin = Instant::now();
    let mut figures = Figures::default();
    let mut seed = plan.seed;
    let mut said = begin;
    while figures.kills < plan.rounds && !stop::requested() {
        let dir = scratch.path().join(format!("seed-{seed}"));
        let ledger = ledgers.path().join("ledger");
        let mut history = History::new(plan, seed, dir.clone(), ledger, strace.as_deref());
        for _ in 0..SESSIONS.min(plan.rounds - figures.kills) {
            if let Err(why) = history.live(&mut figures) {
                let why = format!("seed {seed}, session {}: {why}", history.session);
                let _ = scratch.keep();
                return Err(Failure { why, seed, kept: Some(dir) });
            }
            if stop::requested() {
                break;
            }
        }
        let _ = std::fs::remove_dir_all(&dir);
        seed += 1;
        if said.elapsed() > Duration::from_secs(20) {
            said = Instant::now();
            eprintln!("{}", line(&figures, begin));
        }
    }
    let without = if strace.is_some() { "" } else { "; strace is not there: none at system calls" };
    Ok(Outcome::Passed(format!("{}{without}", line(&figures, begin))))
}

fn line(figures: &Figures, begin: Instant) -> String {
    let seconds = begin.elapsed().as_secs_f64();
    format!(
        "{} kills in {seconds:.1} s ({:.1}/s), {} of them at a system call, {} before the \
         database was open; lost 0 of {} acknowledged batches; verified {} times",
        figures.kills,
        figures.kills as f64 / seconds,
        figures.by_call,
        figures.before_open,
        figures.tally.acknowledged,
        figures.verified,
    )
}

/// Returns the path of strace, if it is installed and may trace.
pub(super) fn strace() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join("strace")).find(|p| p.is_file())?;
    let works = std::process::Command::new(&found).args(["-o", "/dev/null", "true"]).output();
    works.is_ok_and(|output| output.status.success()).then_some(found)
}

impl<'a> History<'a> {
    fn new(
        plan: &'a Plan,
        seed: u64,
        dir: PathBuf,
        ledger: PathBuf,
        strace: Option<&'a Path>,
    ) -> History<'a> {
        let mut rng = Rng::new(seed);
        let shape = Shape {
            seed: rng.next_u64(),
            writers: 1 + rng.below(5) as u32,
            slots: 20 + rng.below(150),
            synced_percent: [0, 5, 50][rng.below(3) as usize],
            deleted_percent: 5 + rng.below(40),
        };
        let expected = Expected::new(shape);
        History { plan, rng, session: 0, dir, ledger, strace, expected, exists: false }
    }

    /// Runs one process from its start to the judgement of its files.
    fn live(&mut self, figures: &mut Figures) -> Result<(), String> {
        self.session += 1;
        let setup = Setup::draw(&mut self.rng, &self.plan.preset);
        let strace = match self.strace {
            Some(strace) if self.rng.below(STRACE_ONE_IN) == 0 => {
                let (call, most) = CALLS[self.rng.below(CALLS.len() as u64) as usize];
                Some((strace.to_path_buf(), call, 1 + self.rng.below(most)))
            }
            _ => None,
        };
        let pause_us = [0, 200, 2_000][self.rng.below(3) as usize];
        let by_call = strace.is_some();
        let spec = Spec {
            dir: &self.dir,
            ledger: &self.ledger,
            session: self.session,
            expected: &self.expected,
            setup: &setup,
            more: vec!["--pause-us".into(), pause_us.to_string()],
            strace,
        };
        let (worker, ledger) = spec.start()?;
        let end =
            if by_call { worker.wait(STRACE_MOST)? } else { self.kill_somewhen(worker, &ledger)? };
        if end != End::Killed {
            return Err(format!("under {:?} the program ended by itself: {end:?}", setup.settings));
        }
        let opened = ledger.is_opened();
        figures.kills += 1;
        figures.by_call += u64::from(by_call);
        figures.before_open += u64::from(!opened);
        self.exists |= opened;
        let acks = ledger.all(self.expected.shape.writers).map_err(|e| e.to_string())?;
        let told = Told { session: self.session, before: acks.clone(), after: acks };
        if self.plan.sabotage {
            forget_a_log(&self.dir);
        }
        self.judge(&setup, &told, figures)
            .map_err(|why| format!("{why}\nwritten under {:?}", setup.settings))
    }

    /// Kills the worker after a delay, counted from the start of the process in half of all
    /// sessions (so that it dies in recovery too), else from the end of its recovery.
    fn kill_somewhen(&mut self, mut worker: Worker, ledger: &Ledger) -> Result<End, String> {
        if self.rng.below(2) == 0 {
            while !ledger.is_opened() && !worker.run_for(Duration::from_micros(200))? {}
        }
        let (least, most) = DELAY_US;
        let even = self.rng.next_u64() as f64 / u64::MAX as f64;
        let delay_us = least * (most / least).powf(even);
        std::thread::sleep(Duration::from_micros(delay_us as u64));
        if self.plan.sabotage {
            // There must be a write to forget, however slow the machine is.
            let acks = || ledger.all(self.expected.shape.writers).map_err(|e| e.to_string());
            let before = acks()?;
            while acks()? == before && !worker.run_for(Duration::from_micros(200))? {}
        }
        worker.kill()
    }

    /// Judges mostly by a read-only open, which leaves the recovery to the next process and its
    /// kill; now and then by an open for writing.
    fn judge(&mut self, setup: &Setup, told: &Told, figures: &mut Figures) -> Result<(), String> {
        if !self.exists && !self.dir.join("CURRENT").exists() {
            return Ok(());
        }
        let whole = self.rng.below(6) == 0;
        let mut options = setup.options()?;
        options.read_only = !whole;
        let db = open_patiently(&self.dir, &options)?;
        let tally = judge(&db, &mut self.expected, Some(told), Survives::Everything)?;
        figures.tally.add(tally);
        if whole || self.rng.below(10) == 0 {
            db.verify().and_then(|r| r.into_result()).map_err(|e| format!("verify: {e}"))?;
            figures.verified += 1;
        }
        db.close().map_err(|e| format!("close: {e}"))?;
        if whole && self.rng.below(2) == 0 {
            let db = open_patiently(&self.dir, &options)?;
            judge(&db, &mut self.expected, None, Survives::Everything)?;
        }
        Ok(())
    }
}

/// The canary: cuts every log to its first bytes, as if the database had not written them.
fn forget_a_log(dir: &Path) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let logs = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "wal"));
    for log in logs {
        if let Ok(file) = std::fs::File::options().write(true).open(log) {
            let _ = file.set_len(LOG_KEPT_BYTES);
        }
    }
}

/// Opens a database whose last owner may still be dying: a traced process outlives its tracer by a
/// moment.
pub fn open_patiently(dir: &Path, options: &Options) -> Result<Db, String> {
    let until = Instant::now() + DYING_MOST;
    loop {
        match Db::open_with(dir, options.clone()) {
            Err(e) if e.kind() == ErrorKind::Busy && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            opened => return opened.map_err(|e| format!("open: {e}")),
        }
    }
}
