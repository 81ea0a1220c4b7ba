//! `torture backups`: the program `windrow` killed while it makes backups, restores and prunes, next to a
//! writer, again and again in one directory.
//!
//! The writer is on threads of this process, so the killed program follows it. After each kill every
//! listed backup is restored and judged (`listed.rs`); a database whose restore was killed is not opened
//! unless it is whole, and the restore is run again.
//!
//! The page cache outlives a process: kills need no device, and a directory in memory is quicker.
//! `moments.rs` is the run without kills, under full writes.
//!
//! Owns: the commands, and the moments at which they die. Never does: know how backups are kept.

mod command;
mod listed;
pub mod moments;

use super::history::open_patiently;
use super::judge::{Survives, Told, judge};
use super::ledger::Ledger;
use super::plan::{self, Failure, Outcome};
use super::program::{Death, End, Program};
use super::setup::{Setup, small_options};
use super::stop;
use super::worker::{Task, write_during};
use super::workload::{Expected, Shape};
use clap::Args;
use command::{Command, NAMES};
use listed::{Acknowledged, Listed, files, judge_copy, patiently};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::backup::BackupDirectory;
use windrow::{Db, ErrorKind};
use windrow_env::testing::Rng;

/// Sessions of a writer in one directory, the commands next to each, and those behind it, when nobody has
/// the database open.
const SESSIONS: u64 = 4;
const COMMANDS: u64 = 40;
const COMMANDS_AT_REST: u64 = 5;

/// One kill in this number is at a system call, if strace is installed.
const STRACE_ONE_IN: u64 = 8;
/// System calls at which the program dies, and the most calls of each that it makes before it does.
const CALLS: [(&str, u64); 8] = [
    ("pwrite64", 30),
    ("write", 30),
    ("fdatasync", 10),
    ("fsync", 15),
    ("rename", 8),
    ("unlink", 10),
    ("mkdir", 4),
    ("openat", 150),
];

/// A kill is up to this time after the start at first, later rather than sooner, since the program begins with
/// work that leaves nothing. The time follows the command's own: it grows with each kill and shrinks where
/// the program was over before, so that one command in four comes to its end.
const REACH: Duration = Duration::from_millis(10);
const REACH_GROWS: f64 = 1.02;
const REACH_SHRINKS: f64 = 0.94;

/// The most backups that are listed before a prune is due.
const LISTED_MOST: usize = 6;

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// Kills of each of the three commands.
    #[arg(long, default_value_t = 100)]
    pub kills: u64,
    /// The program `windrow`; without this the one next to this program.
    #[arg(long)]
    pub program: Option<PathBuf>,
    /// Where all choices come from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A preset, or `all` for another one in each session.
    #[arg(long, default_value = "all")]
    pub preset: String,
    /// Where databases and backups are kept while it runs; a failure stays there.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Removes a table of the backups after a kill: the run must then fail.
    #[arg(long, hide = true)]
    pub sabotage: bool,
}

/// The counts of one command.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    kills: u64,
    /// Of these, at a system call.
    by_call: u64,
    /// Of these, with something left of its work that was not whole.
    unfinished: u64,
    /// Runs that were over before the kill.
    done: u64,
}

/// The counts of a run.
#[derive(Debug)]
struct Figures {
    begin: Instant,
    counts: [Count; 3],
    /// The longest time to a kill, by command.
    reach: [Duration; 3],
    restored: u64,
    acknowledged: u64,
}

impl Figures {
    fn line(&self) -> String {
        let of = |(name, count): (&str, &Count)| {
            let Count { kills, by_call, unfinished, done } = count;
            format!(
                "{kills} of {name} ({by_call} at a system call, {unfinished} left work unfinished, {done} \
                 more were over before)"
            )
        };
        let counts: Vec<String> = NAMES.into_iter().zip(&self.counts).map(of).collect();
        format!(
            "kills in {:.0} s: {}; backups were restored {} times, each to a prefix of the commits; \
             {} batches were acknowledged",
            self.begin.elapsed().as_secs_f64(),
            counts.join(", "),
            self.restored,
            self.acknowledged,
        )
    }

    fn is_over(&self, plan: &Plan) -> bool {
        self.counts.iter().all(|count| plan.kills <= count.kills)
    }
}

/// Runs the plan.
///
/// # Errors
/// The backup that was lost or wrong.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let failure = |why| Failure { why, seed: plan.seed, kept: None };
    let program = Program::find(plan.program.as_deref()).map_err(failure)?;
    let mut figures = Figures {
        begin: Instant::now(),
        counts: [Count::default(); 3],
        reach: [REACH; 3],
        restored: 0,
        acknowledged: 0,
    };
    let parent = plan.dir.clone().unwrap_or_else(Ledger::directory);
    let over_and_line = (|figures: &Figures| figures.is_over(plan), Figures::line);
    plan::one_by_one((parent, plan.seed), &mut figures, over_and_line, |dir, seed, figures| {
        History::new(plan, &program, dir, seed, figures).live()
    })?;
    let without = if program.is_traceable() { "" } else { "; strace is not there" };
    Ok(Outcome::Passed(format!("{}{without}", figures.line())))
}

/// One database, its backups, and their history.
struct History<'a> {
    plan: &'a Plan,
    program: &'a Program,
    figures: &'a mut Figures,
    rng: Rng,
    dir: &'a Path,
    session: u64,
    /// The contents of the database when nobody writes.
    expected: Expected,
    listed: Listed,
}

impl<'a> History<'a> {
    fn new(
        plan: &'a Plan,
        program: &'a Program,
        dir: &'a Path,
        seed: u64,
        figures: &'a mut Figures,
    ) -> History<'a> {
        let mut rng = Rng::new(seed);
        let shape = Shape {
            seed: rng.next_u64(),
            writers: 1 + rng.below(4) as u32,
            slots: 20 + rng.below(150),
            synced_percent: [0, 5][rng.below(2) as usize],
            deleted_percent: 5 + rng.below(40),
        };
        let expected = Expected::new(shape);
        let listed = Listed::new(dir.join("backups"), dir.join("judged"), expected.clone());
        History { plan, program, figures, rng, dir, session: 0, expected, listed }
    }

    fn is_over(&self) -> bool {
        self.figures.is_over(self.plan) || stop::requested()
    }

    /// Runs all sessions, then removes all backups but one.
    fn live(mut self) -> Result<(), String> {
        while self.session < SESSIONS && !self.is_over() {
            self.session += 1;
            self.write_and_back_up().map_err(|why| format!("session {}: {why}", self.session))?;
        }
        self.figures.restored += self.listed.restored;
        Ok(())
    }

    fn write_and_back_up(&mut self) -> Result<(), String> {
        let setup = Setup::draw(&mut self.rng, &self.plan.preset);
        let Shape { seed, slots, synced_percent, deleted_percent, .. } = self.expected.shape;
        let task = Task {
            dir: self.dir.join("db"),
            ledger: self.dir.join("ledger"),
            seed,
            session: self.session,
            numbers: self.expected.numbers.clone(),
            slots,
            synced_percent,
            deleted_percent,
            // Mostly so few that the program and its judge are not starved.
            pause_us: [0, 1_000, 1_000, 5_000][self.rng.below(4) as usize],
            batches: 0,
            iterators: 0,
            descriptors: 0,
            reads_go_on: false,
            settings: setup.settings.clone(),
        };
        let ledger = Ledger::create(&task.ledger).map_err(|error| error.to_string())?;
        let under = |why| format!("{why}\nwritten under {:?}", setup.settings);
        write_during(&task, |_| self.commands(COMMANDS, Some(&ledger))).map_err(under)?;
        let acks = ledger.all(self.expected.shape.writers).map_err(|error| error.to_string())?;
        let told = Told { session: self.session, before: acks.clone(), after: acks };
        let options = small_options()?;
        let db = open_patiently(&task.dir, &options)?;
        let tally = judge(&db, &mut self.expected, Some(&told), Survives::Everything)?;
        self.figures.acknowledged += tally.acknowledged;
        db.close().map_err(|error| format!("close: {error}"))?;
        self.listed.set_begin(&self.expected);
        // Now the program opens the database itself.
        self.commands(COMMANDS_AT_REST, None)?;
        let db = open_patiently(&task.dir, &options)?;
        judge(&db, &mut self.expected, None, Survives::Everything)?;
        db.verify().and_then(|report| report.into_result()).map_err(|e| format!("verify: {e}"))?;
        db.close().map_err(|error| format!("close: {error}"))?;
        self.run_whole(Command::Backup { keep: None }, None)?;
        self.run_whole(Command::Prune { keep: 1 }, None)?;
        self.listed.check_nothing_is_left()
    }

    /// Runs this number of commands. Each is killed, unless it is over before.
    fn commands(&mut self, count: u64, ledger: Option<&Ledger>) -> Result<(), String> {
        for _ in 0..count {
            if self.is_over() {
                break;
            }
            let command = self.draw_command(ledger)?;
            let death = self.draw_death(command);
            self.run(command, death, ledger)
                .map_err(|why| format!("{command:?}, {death:?}: {why}"))?;
        }
        Ok(())
    }

    /// Draws a command of those with the fewest kills, and makes backups that it needs.
    fn draw_command(&mut self, ledger: Option<&Ledger>) -> Result<Command, String> {
        let counts = &self.figures.counts;
        let least = counts.iter().map(|count| count.kills).min().unwrap_or(0);
        let due: Vec<usize> =
            (0..NAMES.len()).filter(|at| counts[*at].kills < least + 10).collect();
        let mut index = due[self.rng.below(due.len() as u64) as usize];
        let listed = self.listed.numbers();
        if LISTED_MOST < listed.len() {
            index = Command::Prune { keep: 1 }.index();
        }
        if index == 0 {
            let keep = (self.rng.below(3) == 0).then(|| 1 + self.rng.below(4) as usize);
            return Ok(Command::Backup { keep });
        }
        // A prune has something to remove, and something to leave.
        let needed = if index == 1 { 1 } else { 2 + self.rng.below(2) as usize };
        while self.listed.numbers().len() < needed {
            self.run_whole(Command::Backup { keep: None }, ledger)?;
        }
        let listed = self.listed.numbers();
        let drawn = self.rng.below(listed.len() as u64) as usize;
        Ok(match index {
            1 => Command::Restore { number: listed[drawn] },
            _ => Command::Prune { keep: drawn.clamp(1, listed.len() - 1) },
        })
    }

    fn draw_death(&mut self, command: Command) -> Death {
        if self.program.is_traceable() && self.rng.below(STRACE_ONE_IN) == 0 {
            let (call, most) = CALLS[self.rng.below(CALLS.len() as u64) as usize];
            return Death::AtCall(call, 1 + self.rng.below(most));
        }
        let even = self.rng.next_u64() as f64 / u64::MAX as f64;
        Death::After(self.figures.reach[command.index()].mul_f64(even.sqrt()))
    }

    /// Runs a command that must come to its end.
    fn run_whole(&mut self, command: Command, ledger: Option<&Ledger>) -> Result<(), String> {
        let whole = |why| format!("{command:?} that nobody kills: {why}");
        self.run(command, Death::Never, ledger).map_err(whole)
    }

    /// Runs a command, and judges what it leaves.
    fn run(
        &mut self,
        command: Command,
        death: Death,
        ledger: Option<&Ledger>,
    ) -> Result<(), String> {
        let writers = self.expected.shape.writers;
        let acknowledged = |ledger| {
            let before = Ledger::all(ledger, writers).map_err(|error| error.to_string())?;
            Ok::<_, String>(Acknowledged { session: self.session, ledger, before })
        };
        let acknowledged = ledger.map(acknowledged).transpose()?;
        let (before, newest) = (self.trace(), self.listed.numbers().last().copied());
        let is_done = match self.start(command, death)? {
            End::Done => true,
            End::Killed | End::Overdue => false,
            End::Failed(said) => return Err(said),
        };
        if matches!(death, Death::AtCall(..)) && self.backups().exists() {
            // A traced process outlives its tracer by a moment; this waits for its lock, whichever it has.
            drop(patiently(|| BackupDirectory::open(self.backups()))?);
        }
        if self.plan.sabotage && !is_done {
            self.remove_a_table();
        }
        let is_changed = before != self.trace();
        self.listed.judge(command, is_done, acknowledged.as_ref())?;
        let unfinished = match command {
            Command::Restore { number } => self.judge_restore(number, is_done)?,
            Command::Backup { .. } => {
                is_changed && !is_done && newest == self.listed.numbers().last().copied()
            }
            Command::Prune { .. } => is_changed && !is_done,
        };
        self.count(command, death, is_done, unfinished);
        Ok(())
    }

    fn count(&mut self, command: Command, death: Death, is_done: bool, unfinished: bool) {
        let (count, reach) =
            (&mut self.figures.counts[command.index()], &mut self.figures.reach[command.index()]);
        if !matches!(death, Death::Never) {
            count.done += u64::from(is_done);
            count.kills += u64::from(!is_done);
            count.by_call += u64::from(!is_done && matches!(death, Death::AtCall(..)));
            count.unfinished += u64::from(unfinished);
        }
        if let Death::After(_) = death {
            *reach = reach.mul_f64(if is_done { REACH_SHRINKS } else { REACH_GROWS });
        }
    }

    fn start(&self, command: Command, death: Death) -> Result<End, String> {
        let args = command.arguments(&self.dir.join("db"), &self.backups(), &self.copy());
        self.program.run(&args, death)
    }

    fn backups(&self) -> PathBuf {
        self.dir.join("backups")
    }

    fn copy(&self) -> PathBuf {
        self.dir.join("copy")
    }

    /// Returns the number of files in each folder of the backups, which shows whether a command changed them.
    fn trace(&self) -> [usize; 4] {
        ["", "tables", "backups", "logs"].map(|folder| files(&self.backups().join(folder)))
    }

    /// Judges the directory of a restore: it is whole, or it is not opened and the restore is run again.
    /// Returns whether it was unfinished.
    fn judge_restore(&mut self, number: u64, is_done: bool) -> Result<bool, String> {
        let copy = self.copy();
        let options = small_options()?;
        let expected = self.listed.contents(number).ok_or("the backup is gone")?.clone();
        let left = files(&copy);
        let mut is_whole = match Db::open_with(&copy, options) {
            Ok(db) => {
                judge(&db, &mut expected.clone(), None, Survives::Everything)
                    .map_err(|why| format!("half of a restore was opened: {why}"))?;
                db.close().map_err(|error| format!("close: {error}"))?;
                true
            }
            Err(error) if is_done => return Err(format!("what was restored: {error}")),
            // Nothing was made yet, or it has no CURRENT.
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Corruption) =>
            {
                false
            }
            Err(error) => return Err(format!("a half of a restore is opened with {error}")),
        };
        let was_whole = is_whole;
        while !is_whole {
            let empty = files(&copy) == 0;
            match self.start(Command::Restore { number }, Death::Never)? {
                End::Done if empty => is_whole = true,
                // It says so, and leaves the files alone.
                End::Failed(said) if !empty && said.contains("is not empty") => {
                    std::fs::remove_dir_all(&copy).map_err(|error| error.to_string())?;
                }
                end => return Err(format!("run again over {} files: {end:?}", files(&copy))),
            }
        }
        judge_copy(&copy, &mut expected.clone(), None)?;
        std::fs::remove_dir_all(&copy).map_err(|error| error.to_string())?;
        Ok(!was_whole && left > 0)
    }

    /// The canary: takes a table from the backups.
    fn remove_a_table(&self) {
        let tables = std::fs::read_dir(self.backups().join("tables")).into_iter().flatten();
        if let Some(table) = tables.flatten().next() {
            let _ = std::fs::remove_file(table.path());
        }
    }
}
