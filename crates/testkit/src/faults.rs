//! A failing device: a workload of some hundred operations on files, each of
//! which fails in turn (once, or from there on), and a disk that fills up.
//!
//! What must hold (R13, P7-P10): no panic, no wrong answer, nothing
//! acknowledged lost; after a failed write, writes err until the next open,
//! which works once the fault is gone. Owns: the workload and these rules.
//! Never does: choose which operation fails (the tests sweep them all).

use crate::op::{Answer, Op, Subject, Write};
use crate::oracle::{Oracle, compare};
use crate::script;
use crate::subject::Database;
use crate::text;
use crate::variant::Variant;
use crate::world::World;
use windrow::Options;
use windrow_base::ErrorKind;
use windrow_env::Jobs;
use windrow_env::testing::{Fault, Handles, env};

/// The workload: every path that writes to files, in little room.
const WORKLOAD: &str = "
keyspace sum operator:add
put a 1
put b 2 sync
merge @sum n i:5
batch sync
  put c 3
  merge @sum n i:7
  delete a
end
get a
flush
put d x*3000
delete_range b..c
put e y*3000
flush @sum
merge @sum n i:-2
sync
scan ..
put f z*40000
put g z*40000
wait
get f
compact
keyspace passing
put @passing a 1
put a again sync
drop passing
flush
put_ttl b late 3600000
scan ..
rscan @sum ..
compact
put h last
";

/// How many operations of each sort a run of the workload without faults takes.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Operations that change files.
    pub mutating: u64,
    /// Operations that read.
    pub reading: u64,
}

struct Trial {
    handles: Handles,
    options: Options,
    oracle: Oracle,
    /// A write has failed: none may succeed until the next open.
    latched: bool,
}

/// Runs the workload without a fault.
///
/// # Errors
/// If it does not succeed.
pub fn measure(variant: &Variant) -> Result<Extent, String> {
    let mut trial = Trial::new(variant)?;
    trial.run()?;
    let fs = &trial.handles.fs;
    Ok(Extent { mutating: fs.operations(), reading: fs.reads() })
}

/// Runs the workload with a fault, then without it from what is left, after
/// the death of the process as well as after a power loss.
///
/// # Errors
/// What is wrong, in words.
pub fn check(variant: &Variant, fault: &Fault) -> Result<(), String> {
    let mut trial = Trial::new(variant)?;
    trial.handles.fs.inject(fault.clone());
    trial.run()?;
    trial.handles.fs.clear_faults();
    trial.handles.jobs.discard();
    trial.aftermath(0, true).map_err(|e| format!("after a restart: {e}"))?;
    trial.aftermath(1, false).map_err(|e| format!("after a power loss: {e}"))
}

/// Fills a device of `capacity_bytes`, then gives it room.
///
/// # Errors
/// What is wrong, in words.
pub fn check_full(variant: &Variant, capacity_bytes: u64) -> Result<(), String> {
    let mut trial = Trial::new(variant)?;
    trial.handles.fs.set_capacity(Some(capacity_bytes));
    trial.run()?;
    // While it is still full, opening may fail, but only for that reason.
    let fork = trial.forked(2, true);
    match Database::open(fork.world(), fork.options.clone()) {
        Ok(database) => fork.oracle.clone().recovered(database.db(), true)?,
        Err(error) if error.kind() == ErrorKind::NoSpace => {}
        Err(error) => return Err(format!("open of a full device: {error}")),
    }
    trial.handles.fs.set_capacity(None);
    trial.handles.jobs.discard();
    trial.aftermath(0, true).map_err(|e| format!("once there is room: {e}"))?;
    trial.aftermath(1, false).map_err(|e| format!("once there is room, after a power loss: {e}"))
}

impl Trial {
    fn new(variant: &Variant) -> Result<Trial, String> {
        let options = variant.options().map_err(|e| e.to_string())?;
        let (_, handles) = env(1);
        Ok(Trial { handles, options, oracle: Oracle::new(script::model()), latched: false })
    }

    fn world(&self) -> World {
        World::of(self.handles.env(), self.handles.clone())
    }

    /// Opens and runs the workload, whatever fails.
    fn run(&mut self) -> Result<(), String> {
        let mut database = match Database::open(self.world(), self.options.clone()) {
            Ok(database) => database,
            Err(error) if is_of_device(error.kind()) => return Ok(()),
            Err(error) => return Err(format!("open: {error}")),
        };
        for line in text::parse(WORKLOAD)? {
            self.step(&mut database, &line.op)
                .map_err(|e| format!("{}: {e}", text::op_text(&line.op)))?;
            self.handles.jobs.step();
        }
        // Errors of close are reported, and may be.
        match database.db().close() {
            Ok(()) if !self.latched => self.oracle.sync(),
            Ok(()) => {}
            Err(error) if is_of_device(error.kind()) => {}
            Err(error) => return Err(format!("close: {error}")),
        }
        Ok(())
    }

    fn step(&mut self, database: &mut Database, op: &Op) -> Result<(), String> {
        let writes: Option<(&[Write], bool)> = match op {
            Op::Write { write, sync } => Some((std::slice::from_ref(write), *sync)),
            Op::Batch { writes, sync } => Some((writes, *sync)),
            _ => None,
        };
        let keyspace = matches!(op, Op::CreateKeyspace { .. } | Op::DropKeyspace { .. });
        if let Some((writes, _)) = writes
            && !self.latched
        {
            // A keyspace that could not be made takes no writes.
            if self.oracle.current().resolve(writes).is_none() {
                return Ok(());
            }
            self.oracle.issue(writes);
        }
        if keyspace && !self.latched {
            self.oracle.begin_keyspace(op);
        }
        let answer = database.apply(op);
        if let Answer::Error(kind) = answer {
            return self.failed(database, (writes.is_some(), keyspace), kind);
        }
        if (writes.is_some() || keyspace) && self.latched && answer != Answer::Missing {
            return Err("succeeded after a write had failed".to_owned());
        }
        let want = match writes {
            _ if self.latched => self.oracle.answer(op),
            Some((_, sync)) => {
                self.oracle.acknowledge(database.db().snapshot().seq(), sync);
                Answer::Done
            }
            None if keyspace => self.oracle.end_keyspace(),
            None => self.oracle.answer(op),
        };
        if matches!(op, Op::Sync | Op::Flush { keyspace: None }) && !self.latched {
            self.oracle.sync();
        }
        if is_right(&answer, &want) {
            return Ok(());
        }
        // A batch whose sync failed may be visible, as a whole.
        if self.latched && is_right(&answer, &self.oracle.with_doubt().apply(op)) {
            return Ok(());
        }
        let (got, want) = (text::answer_text(&answer), text::answer_text(&want));
        Err(format!("answered\n{got}instead of\n{want}"))
    }

    /// An operation has failed. That must be for the device's sake, and a
    /// write's failure must be the last one that is in doubt.
    fn failed(
        &mut self,
        database: &Database,
        (write, keyspace): (bool, bool),
        kind: ErrorKind,
    ) -> Result<(), String> {
        let error = database.last_error().map(ToString::to_string).unwrap_or_default();
        if !is_of_device(kind) {
            return Err(error);
        }
        if (write || keyspace) && !self.latched {
            if kind == ErrorKind::ReadOnly {
                // Refused: some background work had failed before.
                if write {
                    self.oracle.withdraw();
                } else {
                    self.oracle.withdraw_keyspace();
                }
            }
            self.latched = true;
        }
        Ok(())
    }

    /// The same files in a world of their own, after a restart.
    fn forked(&self, seed: u64, kept: bool) -> Trial {
        let fs = self.handles.fs.fork();
        if kept {
            fs.kill(seed);
        } else {
            fs.crash(seed);
        }
        let handles = Handles { fs, ..self.handles.reborn(seed) };
        Trial {
            handles,
            options: self.options.clone(),
            oracle: self.oracle.clone(),
            latched: false,
        }
    }

    /// The fault is gone: the database opens, holds what it must, and takes writes.
    fn aftermath(&self, seed: u64, kept: bool) -> Result<(), String> {
        let mut next = self.forked(seed, kept);
        next.reopen(kept)?;
        // Whatever was shown is durable by now: a power loss changes nothing.
        let mut last = next.forked(seed + 10, false);
        last.reopen(false)
    }

    fn reopen(&mut self, kept: bool) -> Result<(), String> {
        let mut database =
            Database::open(self.world(), self.options.clone()).map_err(|e| format!("open: {e}"))?;
        self.oracle.recovered(database.db(), kept)?;
        for op in text::parse("put z after sync\ncompact\nverify")? {
            self.step(&mut database, &op.op)?;
        }
        if self.latched {
            return Err("a write failed without a fault".to_owned());
        }
        compare(database.db(), self.oracle.current())
    }
}

/// Whether an answer is the wanted one, or a part of it that a read error ended.
fn is_right(answer: &Answer, want: &Answer) -> bool {
    let (got, want) = (text::answer_text(answer), text::answer_text(want));
    let cut = got.trim_end().strip_suffix("! I/O error");
    got == want || cut.is_some_and(|part| want.starts_with(part))
}

/// Whether an error may come of a failing device.
fn is_of_device(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::ReadOnly)
}
