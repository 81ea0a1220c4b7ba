//! `torture follow`: processes that read a database next to its writer. The writer is killed now
//! and then, one of the followers again and again.
//!
//! The writer's n-th batch puts n into two keyspaces and into a slot that follows from n, so n
//! alone determines the contents. It writes n to the shared board once the batch is acknowledged: a
//! follower that refreshes after that must show at least n. Runs with and without followers
//! alternate, and the writer's counts in each are reported.
//!
//! Owns: the processes, and the figures. Never does: fail for a figure of speed; the rules are with
//! the processes (`follow_actors.rs`).

use super::follow_actors::{Board, Kind, OVER_AT, Task};
use super::plan::{Failure, Outcome, scratch};
use super::stop;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use windrow::{Db, Options, inspect};
use windrow_env::testing::Rng;

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

/// A process of the run. Dropping it kills it.
struct Process {
    child: Child,
    name: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(task: &Task, name: String) -> Result<Process, String> {
        let failed = |error: std::io::Error| format!("start {name}: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("follow-actor").args(task.arguments());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(failed)?;
        Ok(Process { child, name })
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// If it has ended with a failure.
    fn runs(&mut self) -> Result<bool, String> {
        match self.child.try_wait().map_err(|error| format!("{}: {error}", self.name))? {
            None => Ok(true),
            Some(status) if status.success() => Ok(false),
            Some(status) => Err(format!("{} ended with {status}", self.name)),
        }
    }

    fn wait(&mut self) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", self.name)) }
    }
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

fn one_run(plan: &Plan, dir: &Path, followers: u64, rng: &mut Rng) -> Result<Figures, String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let task = |kind, number| Task {
        kind,
        number,
        dir: dir.join("db"),
        board: dir.join("board"),
        every_ms: plan.every_ms,
    };
    let board = Board::create(&dir.join("board"))?;
    let start_writer = || Process::start(&task(Kind::Writer, 0), "the writer".into());
    let mut writer = start_writer()?;
    board.wait_for_batches(Duration::from_secs(60))?;
    let mut readers = Vec::new();
    for number in 1..=followers {
        readers.push(Process::start(&task(Kind::Reader, number), format!("follower {number}"))?);
    }
    let victim = || Process::start(&task(Kind::Reader, followers + 1), "the victim".into());
    let mut killed = if followers > 0 { Some(victim()?) } else { None };
    let mut figures = Figures::default();
    let (begin, from) = (Instant::now(), board.acknowledged()?);
    let length = Duration::from_secs(plan.seconds);
    let mut kill_writer_at = next_kill(plan, rng, begin);
    while begin.elapsed() < length && !stop::requested() {
        std::thread::sleep(Duration::from_millis(50 + rng.below(400)));
        for reader in &mut readers {
            if !reader.runs()? {
                return Err(format!("{} ended by itself", reader.name));
            }
        }
        if let Some(process) = &mut killed {
            process.runs()?;
            *process = victim()?;
            figures.kills += 1;
        }
        if kill_writer_at.is_some_and(|at| at <= Instant::now()) {
            drop(writer);
            writer = start_writer()?;
            figures.writer_kills += 1;
            kill_writer_at = next_kill(plan, rng, Instant::now());
        } else if !writer.runs()? {
            return Err("the writer ended by itself".into());
        }
    }
    figures.batches = board.acknowledged()? - from;
    drop(killed);
    board.set(OVER_AT, 1)?;
    writer.wait()?;
    readers.iter_mut().try_for_each(Process::wait)?;
    figures.refreshes = board.refreshes()?;
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
    let db = Db::open_with(dir, Options::default()).map_err(failed)?;
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
