//! The crash harness: one seed, several lives of one database. Each life
//! opens it, judges what came back, works on it, and ends by power loss or by
//! the death of the process, at a chosen operation, in recovery as well.
//!
//! Owns: what happens in a life, by seed. Never does: judge (`oracle.rs`).

use crate::compose::{Composer, Raw};
use crate::op::{Answer, Op, Subject, Write};
use crate::oracle::{Oracle, compare};
use crate::script;
use crate::settle::SettleFs;
use crate::subject::Database;
use crate::text;
use crate::variant::Variant;
use crate::world::{DIR, World};
use std::path::Path;
use std::sync::Arc;
use windrow::Options;
use windrow_env::Env;
use windrow_env::testing::{CrashFs, Fault, Handles, Rng, env};

/// Operations in a life, at most.
const OPS_MAX: u64 = 160;
/// Lives of a seed, at most.
const LIVES_MAX: u64 = 14;
/// Operations on files within which a planned crash lies.
const CRASH_WITHIN: u64 = 500;
/// The same, for crashes in recovery.
const CRASH_WITHIN_OPEN: u64 = 40;
/// Syncs and renames within which a crash after one lies.
const SETTLES_MAX: u64 = 90;
/// The same, for crashes in recovery.
const SETTLES_MAX_OPEN: u64 = 8;

/// What a seed's lives went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Power losses.
    pub power_losses: u64,
    /// Deaths of the process alone.
    pub kills: u64,
    /// Crashes that struck while opening.
    pub in_recovery: u64,
    /// Batches issued.
    pub batches: u64,
    /// Hash of every operation on files: the same seed gives the same.
    pub trace_hash: u64,
}

impl Summary {
    /// Sums two.
    #[must_use]
    pub fn plus(self, other: Summary) -> Summary {
        Summary {
            power_losses: self.power_losses + other.power_losses,
            kills: self.kills + other.kills,
            in_recovery: self.in_recovery + other.in_recovery,
            batches: self.batches + other.batches,
            trace_hash: self.trace_hash ^ other.trace_hash,
        }
    }
}

struct Run {
    rng: Rng,
    options: Options,
    handles: Handles,
    settle: SettleFs,
    oracle: Oracle,
    composer: Composer,
    /// The page cache has survived since the last successful open.
    kept: bool,
    trace: bool,
    summary: Summary,
}

/// Runs one seed. `sabotage` is a fault of the file system that the harness
/// must catch (none: a sound file system).
///
/// # Errors
/// What was found, in words.
pub fn run(seed: u64, sabotage: Option<&Fault>) -> Result<Summary, String> {
    let mut rng = Rng::new(seed);
    let variants: Vec<_> = Variant::simulated().collect();
    let variant = variants[rng.below(variants.len() as u64) as usize];
    let (_, handles) = env(rng.next_u64());
    if let Some(fault) = sabotage {
        handles.fs.inject(fault.clone());
    }
    let mut run = Run {
        options: variant.options().map_err(|e| e.to_string())?,
        settle: SettleFs::new(handles.fs.clone()),
        handles,
        oracle: Oracle::new(script::model()),
        composer: Composer::for_crashes(rng.next_u64() as u32),
        kept: true,
        trace: std::env::var_os("WINDROW_SEED").is_some(),
        summary: Summary::default(),
        rng,
    };
    let lives = 2 + run.rng.below(LIVES_MAX - 1);
    for life in 0..lives {
        run.live().map_err(|e| format!("{}, life {life}: {e}", variant.name))?;
    }
    run.end().map_err(|e| format!("{}, at the end: {e}", variant.name))?;
    run.summary.trace_hash = run.fs().trace_hash();
    Ok(run.summary)
}

impl Run {
    fn fs(&self) -> &CrashFs {
        &self.handles.fs
    }

    fn note(&self, line: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>6} {}", self.fs().operations(), line());
        }
    }

    /// A world for the next life: same files, no jobs left from the last.
    fn reborn(&mut self) -> World {
        self.handles = self.handles.reborn(self.rng.next_u64());
        let env = Env { fs: Arc::new(self.settle.clone()), ..self.handles.env() };
        World::of(env, self.handles.clone())
    }

    /// Half of all crashes lie within five operations after a sync or rename.
    fn plan_crash(&mut self) {
        let in_open = self.rng.below(5) == 0;
        if self.rng.below(2) == 0 {
            let settles = self.rng.below(if in_open { SETTLES_MAX_OPEN } else { SETTLES_MAX });
            self.settle.crash_after(settles, self.rng.below(5));
        } else {
            let within = if in_open { CRASH_WITHIN_OPEN } else { CRASH_WITHIN };
            let after = self.rng.below(within);
            self.fs().crash_at(self.fs().operations() + after);
        }
    }

    fn live(&mut self) -> Result<(), String> {
        let world = self.reborn();
        self.plan_crash();
        match Database::open(world, self.options.clone()) {
            Ok(mut database) => {
                let done = self.work(&mut database);
                if done.is_ok() && !self.fs().is_dead() && self.rng.below(3) == 0 {
                    let closed = database.db().close();
                    self.note(|| format!("close: {closed:?}"));
                    match closed {
                        Ok(()) => self.oracle.sync(),
                        Err(_) if self.fs().is_dead() => {}
                        Err(error) => return Err(format!("close: {error}")),
                    }
                }
                drop(database);
                done?;
            }
            Err(error) if self.fs().is_dead() => {
                self.note(|| format!("open: {error}"));
                self.summary.in_recovery += 1;
            }
            Err(error) => return Err(format!("open: {error}")),
        }
        self.die();
        Ok(())
    }

    /// Ends a life: by the death of the process, or (twice as often) of the machine.
    fn die(&mut self) {
        self.handles.jobs.discard();
        self.settle.forget();
        let seed = self.rng.next_u64();
        let killed = self.rng.below(3) == 0;
        // One power loss since the last successful open is enough.
        self.kept &= killed;
        if killed {
            self.fs().kill(seed);
            self.summary.kills += 1;
        } else {
            self.fs().crash(seed);
            self.summary.power_losses += 1;
        }
        self.note(|| {
            let how = if killed { "killed" } else { "power loss" };
            format!("--- {how} --- {}", self.fs().files(Path::new(DIR)).join(" "))
        });
    }

    fn work(&mut self, database: &mut Database) -> Result<(), String> {
        if self.fs().is_dead() {
            return Ok(());
        }
        self.oracle.recovered(database.db(), self.kept)?;
        self.kept = true;
        // A life may have ended before they were made.
        for op in &Composer::setup() {
            self.step(database, op)?;
        }
        for _ in 0..self.rng.below(OPS_MAX) {
            let raw = Raw::draw(&mut self.rng);
            if let Some(op) = self.composer.compose(raw, self.oracle.current()) {
                self.step(database, &op)?;
            }
            if self.fs().is_dead() {
                break;
            }
            for _ in 0..self.rng.below(3) {
                use windrow_env::Jobs;
                self.handles.jobs.step();
            }
        }
        Ok(())
    }

    fn step(&mut self, database: &mut Database, op: &Op) -> Result<(), String> {
        if self.fs().is_dead() {
            return Ok(());
        }
        self.note(|| text::op_text(op));
        let writes: Option<(&[Write], bool)> = match op {
            Op::Write { write, sync } => Some((std::slice::from_ref(write), *sync)),
            Op::Batch { writes, sync } => Some((writes, *sync)),
            _ => None,
        };
        let keyspace = matches!(op, Op::CreateKeyspace { .. } | Op::DropKeyspace { .. });
        if let Some((writes, _)) = writes {
            self.oracle.issue(writes);
            self.summary.batches += 1;
        } else if keyspace {
            self.oracle.begin_keyspace(op);
        }
        let answer = database.apply(op);
        if let Answer::Error(_) = answer {
            let error = database.last_error().map(ToString::to_string).unwrap_or_default();
            self.note(|| error.clone());
            if self.fs().is_dead() {
                return Ok(());
            }
            return Err(format!("{}: {error}", text::op_text(op)));
        }
        let want = match writes {
            Some((_, sync)) => {
                self.oracle.acknowledge(database.db().snapshot().seq(), sync);
                Answer::Done
            }
            None if keyspace => self.oracle.end_keyspace(),
            None => self.oracle.answer(op),
        };
        if matches!(op, Op::Sync | Op::Flush { keyspace: None }) {
            self.oracle.sync();
        }
        // A scan that met the crash ends in an error.
        if self.fs().is_dead() || text::answer_text(&answer) == text::answer_text(&want) {
            return Ok(());
        }
        Err(format!(
            "{}\n{}instead of\n{}",
            text::op_text(op),
            text::answer_text(&answer),
            text::answer_text(&want)
        ))
    }

    /// Opens without a crash, checks everything, closes, and opens once more.
    fn end(&mut self) -> Result<(), String> {
        for _ in 0..2 {
            let database = Database::open(self.reborn(), self.options.clone())
                .map_err(|e| format!("open: {e}"))?;
            self.oracle.recovered(database.db(), self.kept)?;
            database
                .db()
                .verify()
                .and_then(|r| r.into_result())
                .map_err(|e| format!("verify: {e}"))?;
            database.db().wait_idle().map_err(|e| format!("wait_idle: {e}"))?;
            compare(database.db(), self.oracle.current())?;
            database.db().close().map_err(|e| format!("close: {e}"))?;
            drop(database);
            self.handles.jobs.discard();
            self.kept = true;
        }
        Ok(())
    }
}
