//! `torture kill`: SIGKILL at random moments, in recovery as well, again and
//! again over the same directory.
//!
//! The page cache outlives a process, so everything acknowledged must be present, synced or not,
//! and a file system in memory is as good as one on a device, and ten times as fast. Owns: the
//! moment at which the process dies. Never does: judge.

use super::child::{End, Worker};
use super::history::{History, close, verify};
use super::judge::{Survives, Tally, Told};
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::stop;
use super::worker::Task;
use super::workload::Shape;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
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

/// One directory, whose workers are killed.
struct Killed<'a> {
    plan: &'a Plan,
    strace: Option<&'a Path>,
    history: History,
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
        let mut killed = Killed {
            plan,
            strace: strace.as_deref(),
            history: begin_history(seed, dir.clone(), ledgers.path()),
            exists: false,
        };
        for _ in 0..SESSIONS.min(plan.rounds - figures.kills) {
            if let Err(why) = killed.live(&mut figures) {
                let why = format!("seed {seed}, session {}: {why}", killed.history.session);
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

/// Begins the history of a seed's directory.
fn begin_history(seed: u64, dir: PathBuf, ledgers: &Path) -> History {
    let mut rng = Rng::new(seed);
    let shape = shape(&mut rng);
    History::new(rng, shape, dir, ledgers)
}

/// Draws the sizes of the batches.
pub(super) fn shape(rng: &mut Rng) -> Shape {
    Shape {
        seed: rng.next_u64(),
        writers: 1 + rng.below(5) as u32,
        slots: 20 + rng.below(150),
        synced_percent: [0, 5, 50][rng.below(3) as usize],
        deleted_percent: 5 + rng.below(40),
    }
}

impl Killed<'_> {
    /// Runs one process from its start to the judgement of its files.
    fn live(&mut self, figures: &mut Figures) -> Result<(), String> {
        let rng = &mut self.history.rng;
        let setup = Setup::draw(rng, &self.plan.preset);
        let death = match self.strace {
            Some(strace) if rng.below(STRACE_ONE_IN) == 0 => {
                let (call, most) = CALLS[rng.below(CALLS.len() as u64) as usize];
                Some((strace, call, 1 + rng.below(most)))
            }
            _ => None,
        };
        let pause_us = [0, 200, 2_000][rng.below(3) as usize];
        let by_call = death.is_some();
        let task = Task { pause_us, ..self.history.task(&setup) };
        let (worker, ledger) = Worker::start(&task, death)?;
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
        let told = self.history.acks(&ledger)?;
        if self.plan.sabotage {
            forget_a_log(&self.history.dir);
        }
        self.judge(&setup, &told, figures)
            .map_err(|why| format!("{why}\nwritten under {:?}", setup.settings))
    }

    /// Kills the worker after a delay, counted from the start of the process in half of all
    /// sessions (so that it dies in recovery too), else from the end of its recovery.
    fn kill_somewhen(&mut self, mut worker: Worker, ledger: &Ledger) -> Result<End, String> {
        let rng = &mut self.history.rng;
        if rng.below(2) == 0 {
            while !ledger.is_opened() && !worker.run_for(Duration::from_micros(200))? {}
        }
        let (least, most) = DELAY_US;
        let even = rng.next_u64() as f64 / u64::MAX as f64;
        let delay_us = least * (most / least).powf(even);
        std::thread::sleep(Duration::from_micros(delay_us as u64));
        if self.plan.sabotage {
            // There must be a write to forget, however slow the machine is.
            let acks = || self.history.acks(ledger).map(|told| told.before);
            let before = acks()?;
            while acks()? == before && !worker.run_for(Duration::from_micros(200))? {}
        }
        worker.kill()
    }

    /// Judges mostly by a read-only open, which leaves the recovery to the next process and its
    /// kill; now and then by an open for writing.
    fn judge(&mut self, setup: &Setup, told: &Told, figures: &mut Figures) -> Result<(), String> {
        let history = &mut self.history;
        if !self.exists && !history.dir.join("CURRENT").exists() {
            return Ok(());
        }
        let whole = history.rng.below(6) == 0;
        let (db, tally) = history.judged(setup, !whole, Some(told), Survives::Everything)?;
        figures.tally.add(tally);
        if whole || history.rng.below(10) == 0 {
            verify(&db)?;
            figures.verified += 1;
        }
        close(&db)?;
        if whole && history.rng.below(2) == 0 {
            history.judged(setup, false, None, Survives::Everything)?;
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
