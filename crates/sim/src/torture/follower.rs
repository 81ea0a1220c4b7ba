//! A follower of `torture follow`: a process that reads a database next to the workers that write
//! it one after the other, whose ledgers it reads.
//!
//! Each state that it shows has all that was acknowledged before it refreshed, and what it showed
//! before; a state that it keeps stays as it was. Owns: these rules. Never does: start or end a
//! process.

use super::judge::{Survives, Told, check_some, judge};
use super::ledger::{Ack, Ledger};
use super::setup::Setup;
use super::worker::EXIT_BROKEN;
use super::workload::{Expected, Shape};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use windrow::{Db, Follower};
use windrow_env::testing::Rng;

/// Slots that are read by gets, after each refresh.
const GETS: u64 = 50;
/// One state in this number is kept, and read again when the next one is.
const KEPT_ONE_IN: u64 = 20;

/// The batches of the writers.
pub(super) fn shape(seed: u64) -> Shape {
    Shape { seed, writers: 2, slots: 3_000, synced_percent: 1, deleted_percent: 14 }
}

/// The settings of writer and followers.
pub(super) fn setup() -> Setup {
    Setup { settings: vec!["memory_bytes=64MiB".into(), "memtable_bytes=2MiB".into()] }
}

/// The arguments of a follower.
#[derive(Args, Clone, Debug)]
pub struct Task {
    /// Its number.
    #[arg(long)]
    pub number: u64,
    /// The seed of the run.
    #[arg(long)]
    pub seed: u64,
    /// The directory of the database, the ledgers and the counts of refreshes.
    #[arg(long)]
    pub dir: PathBuf,
    /// How often it refreshes, in ms.
    #[arg(long)]
    pub every_ms: u64,
}

impl Task {
    pub(super) fn arguments(&self) -> Vec<String> {
        let Task { number, seed, dir, every_ms } = self;
        let dir = dir.display().to_string();
        let numbers = [("--number", number), ("--seed", seed), ("--every-ms", every_ms)];
        let numbers = numbers.into_iter().map(|(name, number)| (name, number.to_string()));
        let all = numbers.chain([("--dir", dir)]);
        all.flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

/// Returns the ledger of a session, in a run's directory.
pub(super) fn ledger(dir: &Path, session: u64) -> PathBuf {
    dir.join(format!("ledger-{session}"))
}

/// Returns the file that is there once the run is over.
pub(super) fn over(dir: &Path) -> PathBuf {
    dir.join("over")
}

/// Returns the file with the number of a follower's refreshes.
pub(super) fn refreshes(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("refreshes-{number}"))
}

/// Follows until the run is over.
pub fn run(task: &Task) -> ExitCode {
    match follow(task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("follower {}: {why}", task.number);
            ExitCode::from(EXIT_BROKEN)
        }
    }
}

fn text(error: windrow::Error) -> String {
    error.to_string()
}

fn follow(task: &Task) -> Result<(), String> {
    let mut rng = Rng::new(task.number);
    let mut seen = Seen { dir: &task.dir, expected: Expected::new(shape(task.seed)), now: None };
    let follower = Follower::open_with(task.dir.join("db"), setup().options()?).map_err(text)?;
    let mut kept: Option<(Expected, Db)> = None;
    for count in 1.. {
        let is_over = over(&task.dir).exists();
        let db = seen.refreshed(&follower)?;
        check_some(&db, &seen.expected, &mut rng, GETS)?;
        std::fs::write(refreshes(&task.dir, task.number), u64::to_string(&count))
            .map_err(|error| error.to_string())?;
        if (is_over || rng.below(KEPT_ONE_IN) == 0)
            && let Some((mut expected, db)) = kept.replace((seen.expected.clone(), db))
        {
            judge(&db, &mut expected, None, Survives::Everything)
                .map_err(|why| format!("a state that was kept: {why}"))?;
        }
        if is_over {
            break;
        }
        std::thread::sleep(Duration::from_millis(task.every_ms));
    }
    Ok(())
}

/// The contents that a follower has seen last.
struct Seen<'a> {
    dir: &'a Path,
    expected: Expected,
    /// The newest session, its ledger, and the numbers of the batches at its begin.
    now: Option<(u64, Ledger, Vec<u64>)>,
}

impl Seen<'_> {
    /// Refreshes, and judges what is shown.
    fn refreshed(&mut self, follower: &Follower) -> Result<Db, String> {
        loop {
            while self.go_on()? {}
            let before = self.acks()?;
            follower.refresh().map_err(text)?;
            let (db, after) = (follower.db(), self.acks()?);
            // Another writer has begun meanwhile: whose batches are shown is not known.
            if self.go_on()? {
                continue;
            }
            let session = self.now.as_ref().map_or(0, |(session, ..)| *session);
            let told = Told { session, before, after };
            judge(&db, &mut self.expected, Some(&told), Survives::Everything)?;
            return Ok(db);
        }
    }

    /// Goes on to the next session, if its writer has the database open.
    fn go_on(&mut self) -> Result<bool, String> {
        let last = self.now.as_ref().map_or(0, |(session, ..)| *session);
        let Ok(ledger) = Ledger::open(&ledger(self.dir, last + 1)) else { return Ok(false) };
        let writers = self.expected.shape.writers;
        let Some(begin) = ledger.begin(writers).map_err(|e| e.to_string())? else {
            return Ok(false);
        };
        for (writer, (&begin, &seen)) in
            begin.iter().zip(&self.expected.numbers.clone()).enumerate()
        {
            if begin < seen {
                return Err(format!("of writer {writer} {seen} was shown, and {begin} is left"));
            }
            self.expected.advance(last, writer as u32, begin);
        }
        self.now = Some((last + 1, ledger, begin));
        Ok(true)
    }

    /// Returns the acknowledgements of batches that it has not seen.
    fn acks(&self) -> Result<Vec<Vec<Ack>>, String> {
        let Some((_, ledger, begin)) = &self.now else { return Err("nobody writes".to_owned()) };
        let numbers = begin.iter().zip(&self.expected.numbers).zip(0..);
        let acks = numbers.map(|((begin, seen), writer)| ledger.acks_from(writer, seen - begin));
        acks.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }
}
