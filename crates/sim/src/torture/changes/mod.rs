//! `torture changes`: the pipe `windrow changes --follow | windrow apply` killed at either end, and the writer
//! that it follows, again and again over the same two databases.
//!
//! The pipe goes on while the writer is killed and another one takes its place. After each death in it the
//! mirror is judged (`mirrored.rs`); at the end a pipe that nobody kills makes it the same as its source.
//!
//! Owns: who dies, and when. Never does: judge.

mod mirrored;
mod pipe;

use super::child::{End, Worker};
use super::history::{History, close};
use super::judge::Survives;
use super::kill::shape;
use super::ledger::Ledger;
use super::plan::{self, Failure, Outcome};
use super::program::{Death, End as ProgramEnd, Program};
use super::setup::Setup;
use super::stop;
use super::worker::Task;
use clap::Args;
use mirrored::{Mirrored, Session};
use pipe::{Pipe, Side};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow_env::testing::Rng;

/// Pipes of one pair of databases.
const PIPES: u64 = 40;

/// The log is kept as long as a mirror that is often killed needs it.
const CHANGES: &str = "changes_bytes=1GiB";

/// A kill is so long after the start, drawn evenly on a logarithmic scale: an end of the pipe begins to work
/// after some 10 ms.
const DELAY_US: (f64, f64) = (2_000.0, 200_000.0);

/// The longest time that a writer may take to open the database.
const PATIENCE: Duration = Duration::from_secs(60);

/// One kill in this number is at a system call, if strace is installed.
const STRACE_ONE_IN: u64 = 8;
/// System calls at which an end dies, and the most calls of each that it makes before it does.
const CALLS: [(Side, &str, u64); 8] = [
    (Side::Changes, "write", 60),
    (Side::Changes, "openat", 120),
    (Side::Changes, "pread64", 100),
    (Side::Apply, "read", 60),
    (Side::Apply, "fdatasync", 30),
    (Side::Apply, "rename", 1),
    (Side::Apply, "openat", 120),
    (Side::Apply, "unlink", 3),
];

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub(super) struct Plan {
    /// Kills of each end of the pipe.
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// The program `windrow`; without this the one next to this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where all choices come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A preset, or `all` for another one in each session.
    #[arg(long, default_value = "all")]
    preset: String,
    /// Where databases are kept while it runs; a failure stays there.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Removes a key of the mirror after a kill: the run must then fail.
    #[arg(long, hide = true)]
    sabotage: bool,
}

/// The counts of a run.
#[derive(Debug)]
struct Figures {
    begin: Instant,
    /// Kills of `windrow changes` and of `windrow apply`, and those of them at a system call.
    kills: [u64; 2],
    by_call: u64,
    writers: u64,
    judged: u64,
    /// Pipes that brought the mirror further.
    useful: u64,
    acknowledged: u64,
}

impl Figures {
    fn line(&self) -> String {
        let Figures { begin, kills: [changes, apply], by_call, writers, judged, useful, .. } = self;
        format!(
            "kills in {:.0} s: {changes} of changes, {apply} of apply ({by_call} of them at a system call), \
             {writers} of the writer next to the pipe; {useful} pipes brought the mirror further, and {judged} \
             times it had the batches up to its number; {} batches were acknowledged",
            begin.elapsed().as_secs_f64(),
            self.acknowledged
        )
    }

    fn is_over(&self, plan: &Plan) -> bool {
        self.kills.iter().all(|kills| plan.kills <= *kills)
    }
}

/// Runs the plan.
///
/// # Errors
/// The batch that was lost, doubled or torn.
pub(super) fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let failure = |why| Failure { why, seed: plan.seed, kept: None };
    let program = Program::find(plan.program.as_deref()).map_err(failure)?;
    let begin = Instant::now();
    let (kills, by_call, writers) = ([0; 2], 0, 0);
    let (judged, useful, acknowledged) = (0, 0, 0);
    let mut figures = Figures { begin, kills, by_call, writers, judged, useful, acknowledged };
    let parent = plan.dir.clone().unwrap_or_else(Ledger::directory);
    let over_and_line = (|figures: &Figures| figures.is_over(plan), Figures::line);
    plan::one_by_one((parent, plan.seed), &mut figures, over_and_line, |dir, seed, figures| {
        Fed::new(plan, &program, dir, seed, figures)?.live()
    })?;
    let without = if program.is_traceable() { "" } else { "; strace is not there" };
    Ok(Outcome::Passed(format!("{}{without}", figures.line())))
}

/// A database, its writers one after the other, and its mirror.
struct Fed<'a> {
    plan: &'a Plan,
    program: &'a Program,
    figures: &'a mut Figures,
    history: History,
    setup: Setup,
    writer: Option<(Worker, Ledger)>,
    sessions: Vec<Session>,
    mirror: Mirrored,
}

impl<'a> Fed<'a> {
    fn new(
        plan: &'a Plan,
        program: &'a Program,
        dir: &Path,
        seed: u64,
        figures: &'a mut Figures,
    ) -> Result<Fed<'a>, String> {
        let mut rng = Rng::new(seed);
        let shape = shape(&mut rng);
        let history = History::new(rng, shape, dir.join("db"), dir);
        let mirror = Mirrored::make(dir.join("mirror"), shape)?;
        let (setup, sessions) = (Setup::default(), Vec::new());
        Ok(Fed { plan, program, figures, history, setup, writer: None, sessions, mirror })
    }

    fn live(mut self) -> Result<(), String> {
        self.start_writer()?;
        for count in 0..PIPES {
            if self.figures.is_over(self.plan) || stop::requested() {
                break;
            }
            self.one_pipe().map_err(|why| {
                format!("pipe {count}: {why}\nwritten under {:?}", self.setup.settings)
            })?;
        }
        self.kill_writer()?;
        let (db, mirror) = (&self.history.dir, &self.mirror.dir);
        Pipe::start(self.program, (db, mirror), self.mirror.next_seq, None)?.end()?;
        self.judge()?;
        match self.mirror.numbers() == self.history.expected.numbers {
            true => Ok(()),
            false => Err(format!(
                "the source has {:?} batches, and its mirror {:?}",
                self.history.expected.numbers,
                self.mirror.numbers()
            )),
        }
    }

    /// Starts the next writer, and waits until it has the database open.
    fn start_writer(&mut self) -> Result<(), String> {
        self.setup = Setup::draw(&mut self.history.rng, &self.plan.preset);
        self.setup.settings.push(CHANGES.to_owned());
        let pause_us = [200, 1_000, 5_000][self.history.rng.below(3) as usize];
        let task = Task { pause_us, ..self.history.task(&self.setup) };
        let (mut worker, ledger) = Worker::start(&task, None)?;
        let begin = Instant::now();
        while !ledger.is_opened() {
            if worker.run_for(Duration::from_micros(200))? || PATIENCE < begin.elapsed() {
                return Err(format!("the writer does not begin: {:?}", worker.kill()?));
            }
        }
        let (number, begin) = (self.history.session, self.history.expected.numbers.clone());
        self.sessions.push(Session { number, begin, acks: Vec::new(), end: None });
        self.writer = Some((worker, ledger));
        Ok(())
    }

    /// Kills the writer, and judges the database.
    fn kill_writer(&mut self) -> Result<(), String> {
        let Some((worker, ledger)) = self.writer.take() else { return Ok(()) };
        match worker.kill()? {
            End::Killed => {}
            end => return Err(format!("the writer ended by itself: {end:?}")),
        }
        let told = self.history.acks(&ledger)?;
        let judged = self.history.judged(&self.setup, true, Some(&told), Survives::Everything)?;
        let (db, tally) = judged;
        close(&db)?;
        self.figures.acknowledged += tally.acknowledged;
        if let Some(session) = self.sessions.last_mut() {
            (session.acks, session.end) = (told.after, Some(self.history.expected.numbers.clone()));
        }
        Ok(())
    }

    /// Runs a pipe until one end of it is dead, and judges the mirror.
    fn one_pipe(&mut self) -> Result<(), String> {
        let (victim, death) = self.draw_death();
        let dirs = (&*self.history.dir, &*self.mirror.dir);
        let pipe = Pipe::start(self.program, dirs, self.mirror.next_seq, Some((victim, death)))?;
        if self.history.rng.below(4) == 0 {
            std::thread::sleep(self.draw_delay());
            self.kill_writer()?;
            self.start_writer()?;
            self.figures.writers += 1;
        }
        let end = pipe.die(victim, death).map_err(|why| format!("{victim:?}: {why}"))?;
        self.figures.kills[victim as usize] += 1;
        let is_by_call = end == ProgramEnd::Killed && matches!(death, Death::AtCall(..));
        self.figures.by_call += u64::from(is_by_call);
        if self.plan.sabotage && 1 < self.mirror.next_seq {
            self.mirror.spoil()?;
        }
        self.judge().map_err(|why| format!("{victim:?}, {death:?}: {why}"))
    }

    fn judge(&mut self) -> Result<(), String> {
        if let (Some((_, ledger)), Some(now)) = (&self.writer, self.sessions.last_mut()) {
            now.acks = self.history.acks(ledger)?.after;
        }
        let before = self.mirror.next_seq;
        self.mirror.judge(&self.sessions)?;
        self.figures.judged += 1;
        self.figures.useful += u64::from(before < self.mirror.next_seq);
        let has = self.mirror.numbers();
        self.sessions.retain(|session| session.end.as_deref() != Some(has));
        Ok(())
    }

    /// Draws the end with fewer kills more often, and its death.
    fn draw_death(&mut self) -> (Side, Death) {
        let rng = &mut self.history.rng;
        let [changes, apply] = self.figures.kills;
        if self.program.is_traceable() && rng.below(STRACE_ONE_IN) == 0 {
            let (side, call, most) = CALLS[rng.below(CALLS.len() as u64) as usize];
            return (side, Death::AtCall(call, 1 + rng.below(most)));
        }
        let side = match changes.cmp(&apply) {
            std::cmp::Ordering::Less => Side::Changes,
            std::cmp::Ordering::Greater => Side::Apply,
            std::cmp::Ordering::Equal => [Side::Changes, Side::Apply][rng.below(2) as usize],
        };
        (side, Death::After(self.draw_delay()))
    }

    fn draw_delay(&mut self) -> Duration {
        let (least, most) = DELAY_US;
        let even = self.history.rng.next_u64() as f64 / u64::MAX as f64;
        Duration::from_micros((least * (most / least).powf(even)) as u64)
    }
}
