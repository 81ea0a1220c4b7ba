//! `torture follow`: processes that read a database next to its writer. The writer is killed now
//! and then, one of the followers again and again.
//!
//! The writer is a worker, whose ledger the followers read. Runs with and without followers
//! alternate, and the writer's counts in each are reported.
//!
//! Owns: the processes, and the figures. Never does: fail for a figure of speed; the rules are with
//! the followers (`follower.rs`).

use super::child::{End, Worker};
use super::follower::{self, ledger, over, refreshes, setup, shape};
use super::history::{History, close};
use super::judge::Survives;
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, scratch};
use super::stop;
use super::worker::Task;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::{Db, inspect};
use windrow_env::testing::Rng;

/// The longest time that a process may take to begin, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// How long each run takes.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// How often a run with followers, and one without, are made.
    #[arg(long, default_value_t = 1)]
    pub rounds: u64,
    /// Followers that run all the time, in addition to the one that is killed.
    #[arg(long, default_value_t = 3)]
    pub followers: u64,
    /// How often each refreshes, in ms.
    #[arg(long, default_value_t = 100)]
    pub every_ms: u64,
    /// The writer is killed after about this number of seconds, again and again; never, with 0.
    #[arg(long, default_value_t = 10)]
    pub kill_writer: u64,
    /// The seed of all choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where databases are kept while it runs; a failure stays there.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// The counts of one run.
#[derive(Default)]
struct Figures {
    batches: u64,
    refreshes: u64,
    kills: u64,
    writer_kills: u64,
}

/// Runs the plan.
///
/// # Errors
/// The rule that a process found broken.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let parent = plan.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = scratch(parent, plan.seed)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut rng = Rng::new(plan.seed);
    for round in 0..plan.rounds {
        for followers in [plan.followers, 0] {
            if stop::requested() {
                break;
            }
            let dir = scratch.path().join(format!("{round}-{followers}"));
            match one_run(plan, &dir, followers, &mut rng) {
                Ok(figures) if followers > 0 => with.push(figures),
                Ok(figures) => without.push(figures),
                Err(why) => {
                    let kept = Some(scratch.keep());
                    return Err(Failure { why, seed: plan.seed, kept });
                }
            }
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
    let rate = |figures: &[Figures]| {
        let mut rates: Vec<u64> = figures.iter().map(|f| f.batches / plan.seconds.max(1)).collect();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied().unwrap_or(0)
    };
    let sum = |of: fn(&Figures) -> u64| with.iter().map(of).sum::<u64>();
    Ok(Outcome::Passed(format!(
        "{} runs with {} followers and one that was killed {} times, {} refreshes, the writer \
         killed {} times; {} batches a second by the writer, {} without followers (medians)",
        with.len(),
        plan.followers,
        sum(|f| f.kills),
        sum(|f| f.refreshes),
        sum(|f| f.writer_kills),
        rate(&with),
        rate(&without),
    )))
}

/// The writers of a run, one after the other.
struct Writers<'a> {
    dir: &'a Path,
    history: History,
    /// The present one.
    now: Option<(Worker, Ledger)>,
    /// Batches that were acknowledged to those before.
    batches: u64,
}

impl Writers<'_> {
    /// Starts the next one, and waits for its first batches.
    fn start(&mut self) -> Result<(), String> {
        let task = self.history.task(&setup());
        let task = Task { ledger: ledger(self.dir, task.session), ..task };
        let (mut writer, ledger) = Worker::start(&task, None)?;
        let begin = Instant::now();
        while self.history.acks(&ledger)?.after.iter().all(Vec::is_empty) {
            if writer.run_for(Duration::from_millis(10))? || begin.elapsed() > PATIENCE {
                return Err(format!("the writer does not begin: {:?}", writer.kill()?));
            }
        }
        self.now = Some((writer, ledger));
        Ok(())
    }

    /// Kills the present one, and judges the database.
    fn kill(&mut self) -> Result<(), String> {
        let Some((writer, ledger)) = self.now.take() else { return Ok(()) };
        killed("the writer", writer)?;
        let told = self.history.acks(&ledger)?;
        let (db, tally) = self.history.judged(&setup(), true, Some(&told), Survives::Everything)?;
        self.batches += tally.acknowledged;
        close(&db)
    }

    /// Returns the number of acknowledged batches.
    fn acknowledged(&self) -> Result<u64, String> {
        let acks = self.now.iter().map(|(_, ledger)| self.history.acks(ledger));
        let acks = acks.collect::<Result<Vec<_>, _>>()?;
        let count = acks.iter().flat_map(|told| &told.after).map(Vec::len).sum::<usize>();
        Ok(self.batches + count as u64)
    }
}

/// Kills a process that must not have ended by itself.
fn killed(name: &str, process: Worker) -> Result<(), String> {
    match process.kill()? {
        End::Killed => Ok(()),
        end => Err(format!("{name} ended by itself: {end:?}")),
    }
}

fn one_run(plan: &Plan, dir: &Path, followers: u64, rng: &mut Rng) -> Result<Figures, String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let history = History::new(Rng::new(plan.seed), shape(plan.seed), dir.join("db"), dir);
    let mut writers = Writers { dir, history, now: None, batches: 0 };
    writers.start()?;
    let follower = |number| {
        let (dir, every_ms) = (dir.to_owned(), plan.every_ms);
        let task = follower::Task { number, seed: plan.seed, dir, every_ms };
        Worker::spawn("follower", task.arguments())
    };
    let mut readers = (1..=followers).map(&follower).collect::<Result<Vec<_>, _>>()?;
    let victim = || follower(followers + 1);
    let mut dying = if followers > 0 { Some(victim()?) } else { None };
    let mut figures = Figures::default();
    let (begin, from) = (Instant::now(), writers.acknowledged()?);
    let mut kill_writer_at = next_kill(plan, rng, begin);
    while begin.elapsed() < Duration::from_secs(plan.seconds) && !stop::requested() {
        std::thread::sleep(Duration::from_millis(50 + rng.below(400)));
        for at in 0..readers.len() {
            if readers[at].run_for(Duration::ZERO)? {
                killed("a follower", readers.remove(at))?;
            }
        }
        if let Some(process) = dying.take() {
            killed("the victim", process)?;
            dying = Some(victim()?);
            figures.kills += 1;
        }
        if kill_writer_at.is_some_and(|at| at <= Instant::now()) {
            writers.kill()?;
            writers.start()?;
            figures.writer_kills += 1;
            kill_writer_at = next_kill(plan, rng, Instant::now());
        }
    }
    figures.batches = writers.acknowledged()? - from;
    drop(dying);
    writers.kill()?;
    // The followers' last look is behind a clean close.
    let (db, _) = writers.history.judged(&setup(), false, None, Survives::Everything)?;
    close(&db)?;
    std::fs::write(over(dir), "").map_err(|error| error.to_string())?;
    for reader in readers {
        match reader.wait(PATIENCE)? {
            End::Done => {}
            end => return Err(format!("a follower ended otherwise: {end:?}")),
        }
    }
    let counts = (1..=followers + 1).filter_map(|number| {
        std::fs::read_to_string(refreshes(dir, number)).ok()?.parse::<u64>().ok()
    });
    figures.refreshes = counts.sum();
    check_size(&dir.join("db"))?;
    Ok(figures)
}

/// Draws the time of the writer's next kill.
fn next_kill(plan: &Plan, rng: &mut Rng, now: Instant) -> Option<Instant> {
    let ms = plan.kill_writer * 1000;
    (ms > 0).then(|| now + Duration::from_millis(ms / 2 + rng.below(ms)))
}

/// Checks that once all readers are gone the directory has only the tables that the database needs.
fn check_size(dir: &Path) -> Result<(), String> {
    let failed = |error: windrow::Error| error.to_string();
    let db = Db::open_with(dir, setup().options()?).map_err(failed)?;
    db.compact().and_then(|()| db.close()).map_err(failed)?;
    let live: usize = inspect::trees(&db).iter().map(|(_, version)| version.file_count()).sum();
    let names = std::fs::read_dir(dir).map_err(|error| error.to_string())?;
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let tables = names.filter(|name| name.ends_with(".sst")).count();
    if tables == live {
        Ok(())
    } else {
        Err(format!("{tables} tables are in the directory, and {live} in the tree"))
    }
}
