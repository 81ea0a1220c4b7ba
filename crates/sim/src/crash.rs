//! The crash harness: one seed, several sessions of one database. Each session opens it, judges its
//! contents, lets the seed's clients work on it in turns, and ends by power loss or by the death of
//! the process, at a chosen operation, in recovery as well.
//!
//! Owns: the events of a session, by seed. Never does: draw a run's shape (`scenario.rs`), or judge
//! (`judge.rs`, `targets.rs`, `scans.rs`).

use crate::feed;
use crate::judge::{Allowed, Judge, tells_of_lies};
use crate::scans::Scans;
use crate::scenario::{Client, ClientKind, Hazard, LIES, Scenario, Settings, Stream, stream};
use crate::settle::Settle;
use crate::targets::Targets;
use crate::traces::Traces;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use windrow::Options;
use windrow_env::testing::{CrashFs, Fault, FaultKind, Handles, Ops, Rng, When, env};
use windrow_env::{Clock, Env, Jobs};
use windrow_testkit::compose::{CLOCK_STEP_MS, Composer, Raw};
use windrow_testkit::op::Op;
use windrow_testkit::oracle::compare;
use windrow_testkit::subject::Database;
use windrow_testkit::world::{DIR, World};
use windrow_testkit::{sweep, text};

/// The number of operations on files within which a planned crash comes.
const CRASH_WITHIN: u64 = 500;
/// That number for crashes in recovery.
const CRASH_WITHIN_OPEN: u64 = 40;
/// The number of syncs and renames within which a crash after one comes.
const SETTLES_MAX: u64 = 90;
/// That number for crashes in recovery.
const SETTLES_MAX_OPEN: u64 = 8;
/// The most room that a nearly full device has left.
const ROOM_BYTES_MAX: u64 = 400_000;

/// The events of a seed's sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Power losses.
    pub power_losses: u64,
    /// Deaths of the process alone.
    pub kills: u64,
    /// Crashes while opening.
    pub in_recovery: u64,
    /// Turns of clients.
    pub turns: u64,
    /// Sessions in which a device failed.
    pub failing: u64,
    /// Times that writing was turned on again without reopening.
    pub resumed: u64,
    /// Times that a mirror was made of all changes, and was equal.
    pub fed: u64,
    /// Runs that ended because damage by a lying device was found.
    pub detected: u64,
    /// Hash of every operation on files: the same seed gives the same.
    pub trace_hash: u64,
    /// Hash of every event that the database reported.
    pub events_hash: u64,
    /// Hash of the bytes in its directory at the end of each session.
    pub files_hash: u64,
}

impl Summary {
    /// Sums two summaries.
    #[must_use]
    pub fn plus(self, other: Summary) -> Summary {
        Summary {
            power_losses: self.power_losses + other.power_losses,
            kills: self.kills + other.kills,
            in_recovery: self.in_recovery + other.in_recovery,
            turns: self.turns + other.turns,
            failing: self.failing + other.failing,
            resumed: self.resumed + other.resumed,
            fed: self.fed + other.fed,
            detected: self.detected + other.detected,
            trace_hash: self.trace_hash ^ other.trace_hash,
            events_hash: self.events_hash ^ other.events_hash,
            files_hash: self.files_hash ^ other.files_hash,
        }
    }

    /// Returns the number of all crashes.
    pub fn crashes(&self) -> u64 {
        self.power_losses + self.kills
    }
}

/// A run that found a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The options that its first session opened with.
    pub options: String,
    /// The session, from 0.
    pub session: u64,
    /// The fault, in words.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}: {}\n[{}]", self.session, self.why, self.options)
    }
}

/// Returns the command that runs a seed under these settings and prints every operation.
pub fn repeat_line(seed: u64, settings: &Settings) -> String {
    let preset = settings.preset.as_ref().map(|p| format!(" --preset {p}")).unwrap_or_default();
    format!(
        "cargo run --release -p windrow-sim --bin fault -- --start {seed} --seeds 1 \
         --trace{preset}{}",
        settings.keep.arguments()
    )
}

struct Run<'a> {
    scenario: Scenario,
    settings: &'a Settings,
    handles: Handles,
    settle: Settle,
    judge: Judge,
    composer: Composer,
    targets: Targets,
    traces: Traces,
    summary: Summary,
}

/// Runs one seed.
///
/// # Errors
/// The fault that was found.
pub fn run(seed: u64, settings: &Settings) -> Result<Summary, Failure> {
    let scenario = Scenario::draw(seed, settings);
    let (_, handles) = env(stream(seed, Stream::World).next_u64());
    let mut run = Run {
        settings,
        settle: Settle::new(handles.fs.clone()),
        judge: Judge::new(&handles),
        handles,
        composer: Composer::new(0),
        targets: Targets::default(),
        traces: Traces::default(),
        summary: Summary::default(),
        scenario,
    };
    if run.scenario.hazards.has(Hazard::Lies) {
        run.judge.oracle.keep_past();
    }
    let mut session = 0;
    let lived = catch_unwind(AssertUnwindSafe(|| run.sessions(&mut session)));
    let why = match lived.unwrap_or_else(|panic| Err(sweep::panic_text(&*panic))) {
        Ok(()) => {
            run.summary.trace_hash = run.fs().trace_hash();
            (run.summary.events_hash, run.summary.files_hash) = run.traces.hashes();
            return Ok(run.summary);
        }
        Err(why) => why,
    };
    let options = run.scenario.options(session).map(|(_, text)| text);
    Err(Failure { options: options.unwrap_or_default(), session, why })
}

impl Run<'_> {
    fn fs(&self) -> &CrashFs {
        &self.handles.fs
    }

    fn note(&self, line: impl FnOnce() -> String) {
        if self.settings.trace {
            eprintln!("{:>6} {}", self.fs().operations(), line());
        }
    }

    fn sessions(&mut self, session: &mut u64) -> Result<(), String> {
        for number in self.scenario.sessions.clone() {
            *session = number;
            self.live(number)?;
            if self.judge.detected {
                self.summary.detected += 1;
                return Ok(());
            }
        }
        *session += 1;
        self.end(*session)
    }

    /// Makes a world for the next session: same files, no jobs left from the last.
    fn reborn(&mut self, fate: &mut Rng) -> World {
        self.handles = self.handles.reborn(fate.next_u64());
        let env = Env { fs: self.settle.files(), ..self.handles.env() };
        World::of(env, self.handles.clone())
    }

    /// Plans a crash. Half of all crashes come within five operations after a sync or rename.
    fn plan_crash(&mut self, fate: &mut Rng) {
        let in_open = fate.below(5) == 0;
        if fate.below(2) == 0 {
            let settles = fate.below(if in_open { SETTLES_MAX_OPEN } else { SETTLES_MAX });
            self.settle.crash_after(settles, fate.below(5));
        } else {
            let within = if in_open { CRASH_WITHIN_OPEN } else { CRASH_WITHIN };
            let after = fate.below(within);
            self.fs().crash_at(self.fs().operations() + after);
        }
    }

    /// Injects the faults of a session: each hazard of the seed is active in half of them.
    fn let_loose(&mut self, fate: &mut Rng) {
        // One draw of fate, however many hazards are kept.
        let fate = &mut Rng::new(fate.next_u64());
        let fs = self.fs().clone();
        fs.clear_faults();
        fs.set_capacity(None);
        fs.set_descriptors_max(None);
        if let Some(fault) = &self.settings.sabotage {
            fs.inject(fault.clone());
        }
        let active = self.scenario.hazards.some(fate, 32);
        let mut inject = |kinds: &[FaultKind], on, path: &str, of_mille: &[u64]| {
            let kind = kinds[fate.below(kinds.len() as u64) as usize];
            let mille = of_mille[fate.below(of_mille.len() as u64) as usize];
            let fault = Fault::new(kind, on, When::Probability(mille as f64 / 1000.0));
            fs.inject(fault.on_path(path));
        };
        use FaultKind::*;
        let mut allowed = Allowed { lies: self.judge.allowed.lies, ..Allowed::default() };
        if active.has(Hazard::ReadErrors) {
            inject(&[Io, Interrupted, TooManyFiles], Ops::READING, "", &[1, 10, 100]);
        }
        if active.has(Hazard::BadReads) {
            inject(&[FlipBit, ShortRead], Ops::READ, ".sst", &[2, 20, 100]);
            allowed.damaged_reads = true;
        }
        if active.has(Hazard::WriteErrors) {
            inject(&[Io, NoSpace, Interrupted, TooManyFiles], Ops::MUTATING, "", &[1, 5, 20]);
        }
        if active.has(Hazard::SyncErrors) {
            inject(&[Io, NoSpace], Ops::SYNC | Ops::SYNC_DIR, "", &[5, 50]);
        }
        if active.has(Hazard::Lies) {
            let about = self.scenario.stream(Stream::Lies).below(LIES.len() as u64);
            let (kinds, on, path) = LIES[about as usize];
            inject(kinds, on, path, &[10, 100, 500]);
            allowed.lies = true;
        }
        if active.has(Hazard::Full) {
            fs.set_capacity(Some(fs.used_bytes() + fate.below(ROOM_BYTES_MAX)));
        }
        if active.has(Hazard::Descriptors) {
            fs.set_descriptors_max(Some(fate.below(30) as usize));
        }
        let errors = [
            Hazard::ReadErrors,
            Hazard::WriteErrors,
            Hazard::SyncErrors,
            Hazard::Full,
            Hazard::Descriptors,
        ];
        allowed.device = errors.iter().any(|hazard| active.has(*hazard));
        self.summary.failing += u64::from(allowed != Allowed::default());
        self.judge.allowed = allowed;
        self.note(|| format!("--- hazards: {:?}", active.names()));
    }

    fn live(&mut self, session: u64) -> Result<(), String> {
        let mut fate = self.scenario.stream(Stream::Fate(session));
        let world = self.reborn(&mut fate);
        self.plan_crash(&mut fate);
        self.let_loose(&mut fate);
        let (mut options, words) = self.options(session)?;
        options.components.listener = Some(self.traces.listener());
        self.note(|| format!("--- session {session}: {words}"));
        // Iterators outlive the database (P14).
        let mut scans = Scans::default();
        match Database::open(world.clone(), options.clone()) {
            Ok(mut database) => {
                self.work(session, &mut database, (&world, &options), &mut scans)?;
                self.leave(database, &mut fate, &mut scans)?;
            }
            Err(error) => {
                self.note(|| format!("open: {error}"));
                if !self.judge.excuses_error(&error) {
                    return Err(format!("open: {error}"));
                }
                let is_lie = self.judge.tells_of_lies(error.kind(), &error.to_string());
                self.judge.detected |= is_lie && !self.fs().is_dead();
                self.summary.in_recovery += u64::from(self.fs().is_dead());
            }
        }
        if self.handles.jobs.panics() > 0 {
            return Err("a background job has panicked".to_owned());
        }
        self.die(&mut fate);
        Ok(())
    }

    /// Closes the database, drops it, or stops the process at once.
    fn leave(
        &mut self,
        database: Database,
        fate: &mut Rng,
        scans: &mut Scans,
    ) -> Result<(), String> {
        let way = fate.below(3);
        if self.fs().is_dead() {
            return Ok(());
        }
        match way {
            0 => {
                let closed = database.db().close();
                self.note(|| format!("close: {closed:?}"));
                self.judge.closed(closed)?;
                scans.drain(&self.judge).map_err(|e| format!("after close: {e}"))?;
            }
            1 => self.fs().halt(),
            _ => {}
        }
        Ok(())
    }

    /// Ends a session: by the death of the process, or (twice as often) of the machine.
    fn die(&mut self, fate: &mut Rng) {
        self.handles.jobs.discard();
        self.settle.forget();
        let seed = fate.next_u64();
        let killed = fate.below(3) == 0;
        // The page cache is gone after one power loss since the last successful open.
        self.judge.kept &= killed;
        if killed {
            self.fs().kill(seed);
            self.summary.kills += 1;
        } else {
            self.fs().crash(seed);
            self.summary.power_losses += 1;
        }
        self.traces.note_files(self.fs());
        self.note(|| {
            let how = if killed { "killed" } else { "power loss" };
            format!("--- {how} --- {}", self.fs().files(Path::new(DIR)).join(" "))
        });
    }

    fn work(
        &mut self,
        session: u64,
        database: &mut Database,
        (world, options): (&World, &Options),
        scans: &mut Scans,
    ) -> Result<(), String> {
        if self.fs().is_dead() {
            return Ok(());
        }
        self.judge.recovered(database.db())?;
        self.feed(database, options)?;
        self.targets.check(&mut self.judge, world, options)?;
        // An earlier session may have ended before they were made.
        for op in &Composer::setup() {
            self.step(database, op)?;
        }
        let clients = self.scenario.clients.clone();
        for number in 0..self.scenario.turns_max {
            if self.fs().is_dead() || self.judge.detected || clients.is_empty() {
                break;
            }
            let mut rng = self.scenario.stream(Stream::Turn(session, number));
            self.summary.turns += 1;
            self.pass_time(&mut rng);
            let jobs = rng.below(3);
            let client = clients[rng.below(clients.len() as u64) as usize];
            match client.kind {
                ClientKind::Scanner if rng.below(2) == 0 => {
                    scans.turn(database.db(), &mut self.judge, &mut rng)?;
                }
                ClientKind::Checkpointer if rng.below(4) == 0 => {
                    self.note(|| "checkpoint".to_owned());
                    self.targets.make(database.db(), &mut self.judge, world, options)?;
                }
                ClientKind::Crasher if rng.below(30) == 0 => self.fs().halt(),
                ClientKind::Checkpointer | ClientKind::Crasher => {}
                ClientKind::Background => self.run_jobs(&mut rng),
                _ => self.act(database, &client, &mut rng)?,
            }
            (0..jobs).for_each(|_| _ = self.handles.jobs.step());
            self.resume(session, number, database)?;
        }
        Ok(())
    }

    /// If writing is off, turns it on again now and then, at times after some room was made.
    /// Everything acknowledged must then be present and durable. A write that failed is present if
    /// readers saw it, else never.
    fn resume(&mut self, session: u64, turn: u64, database: &Database) -> Result<(), String> {
        let mut rng = self.scenario.stream(Stream::Resume(session, turn));
        let is_off = database.db().write_error().is_some();
        if self.fs().is_dead() || !is_off || rng.below(3) != 0 {
            return Ok(());
        }
        if rng.below(2) == 0 && self.fs().capacity_bytes().is_some() {
            let room = rng.below(ROOM_BYTES_MAX);
            self.fs().set_capacity(Some(self.fs().used_bytes() + room));
        }
        let resumed = database.db().resume();
        self.note(|| format!("resume: {resumed:?}"));
        self.summary.resumed += u64::from(self.judge.resumed(database.db(), resumed)?);
        Ok(())
    }

    /// Compares the feed of changes with the contents, where old logs are kept and nothing fails.
    fn feed(&mut self, database: &Database, options: &Options) -> Result<(), String> {
        let is_sound = !self.judge.allowed.lies && !self.judge.detected && !self.fs().is_dead();
        if options.settings.changes_bytes == 0 || !is_sound {
            return Ok(());
        }
        let fs = self.fs().clone();
        fs.set_quiet(true);
        let checked = feed::check(database.db(), self.judge.model(), options);
        fs.set_quiet(false);
        if fs.is_dead() {
            return Ok(());
        }
        self.summary.fed += u64::from(checked?);
        Ok(())
    }

    /// The options of a session. Half of the seeds keep old logs for the feed of changes.
    fn options(&self, session: u64) -> Result<(Options, String), String> {
        let (mut options, words) = self.scenario.options(session)?;
        if self.scenario.stream(Stream::World).below(2) == 0 {
            options.settings.changes_bytes = 1 << 30;
        }
        Ok((options, words))
    }

    fn pass_time(&mut self, rng: &mut Rng) {
        if rng.below(24) != 0 {
            return;
        }
        self.judge.note_clock();
        let (back, steps) = (rng.below(2) == 0, rng.below(4));
        let clock = &self.handles.clock;
        let wall_ms = clock.wall_ms();
        if !self.scenario.hazards.has(Hazard::Clock) {
            clock.set_wall_ms(wall_ms + steps * CLOCK_STEP_MS);
        } else {
            let jump = steps * steps * 4 * CLOCK_STEP_MS;
            clock.set_wall_ms(if back { wall_ms - jump } else { wall_ms + jump });
        }
        self.note(|| format!("clock: {wall_ms} -> {}", clock.wall_ms()));
    }

    fn run_jobs(&mut self, rng: &mut Rng) {
        if rng.below(4) == 0 {
            self.handles.jobs.fire_timers();
        }
        (0..rng.below(12)).for_each(|_| _ = self.handles.jobs.step());
    }

    fn act(
        &mut self,
        database: &mut Database,
        client: &Client,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mut raw = Raw::draw(rng);
        if client.kind == ClientKind::Writer {
            raw.operands[1] %= client.keys;
        }
        let synced = rng.below(16) < client.synced_of_16;
        let Some(mut op) = self.composer.compose_of(client.kinds, raw, self.judge.model()) else {
            return Ok(());
        };
        if let Op::Write { sync, .. } | Op::Batch { sync, .. } = &mut op {
            *sync = synced;
        }
        self.step(database, &op)
    }

    fn step(&mut self, database: &mut Database, op: &Op) -> Result<(), String> {
        self.note(|| text::op_text(op));
        self.judge.step(database, op)
    }

    /// Opens without a crash or fault, checks everything, closes, and opens once more.
    fn end(&mut self, session: u64) -> Result<(), String> {
        let mut fate = self.scenario.stream(Stream::Fate(session));
        self.fs().clear_faults();
        self.fs().set_capacity(None);
        self.fs().set_descriptors_max(None);
        if let Some(fault) = &self.settings.sabotage {
            self.fs().inject(fault.clone());
        }
        self.judge.allowed = Allowed { lies: self.judge.allowed.lies, ..Allowed::default() };
        let (mut options, _) = self.options(session)?;
        options.components.listener = Some(self.traces.listener());
        for _ in 0..2 {
            let world = self.reborn(&mut fate);
            let ended = self.look_over(&world, &options);
            self.handles.jobs.discard();
            self.traces.note_files(self.fs());
            match ended {
                Err(error) if self.judge.allowed.lies && error.is_damage => {
                    self.summary.detected += 1;
                    return Ok(());
                }
                Err(error) => return Err(format!("at the end: {}", error.why)),
                Ok(()) if self.judge.detected => return Ok(()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn look_over(&mut self, world: &World, options: &Options) -> Result<(), EndError> {
        let failed = |what: &'static str| move |error| EndError::of(what, &error);
        let database = Database::open(world.clone(), options.clone()).map_err(failed("open"))?;
        self.judge.recovered(database.db()).map_err(EndError::wrong)?;
        if self.judge.detected {
            return Ok(());
        }
        self.feed(&database, options).map_err(EndError::wrong)?;
        self.targets.check(&mut self.judge, world, options).map_err(EndError::wrong)?;
        let db = database.db();
        db.verify().and_then(|r| r.into_result()).map_err(failed("verify"))?;
        db.wait_idle().map_err(failed("wait_idle"))?;
        self.judge.tell_time(db).map_err(EndError::wrong)?;
        compare(db, self.judge.model()).map_err(EndError::wrong)?;
        db.close().map_err(failed("close"))
    }
}

/// The fault at the end, and whether it is detected damage.
struct EndError {
    why: String,
    is_damage: bool,
}

impl EndError {
    fn of(what: &str, error: &windrow_base::Error) -> EndError {
        let is_damage = tells_of_lies(error.kind(), &error.to_string());
        EndError { why: format!("{what}: {error}"), is_damage }
    }

    fn wrong(why: String) -> EndError {
        EndError { why, is_damage: false }
    }
}
