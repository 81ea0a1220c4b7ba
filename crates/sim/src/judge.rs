//! Operations on a database, each judged by three measures: the model's answer, the failures that
//! the active faults excuse, and the rules after a failure (R13, P7: once a write has failed none
//! succeeds until the next open; reads go on).
//!
//! Owns: the history oracle of a run, and these rules. Never does: choose an operation, or make
//! anything fail.

use std::sync::Arc;
use windrow::Db;
use windrow_base::{Error, ErrorKind};
use windrow_env::Clock;
use windrow_env::testing::{CrashFs, Handles, ManualClock};
use windrow_testkit::model::Model;
use windrow_testkit::op::{Answer, Op, Pair, Subject};
use windrow_testkit::oracle::Oracle;
use windrow_testkit::script;
use windrow_testkit::subject::{self, Database};
use windrow_testkit::text;

/// The failures that are excused in addition to those of a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Any operation may fail in the ways of a failing or full device.
    pub device: bool,
    /// A read may fail because its bytes were damaged on the way.
    pub damaged_reads: bool,
    /// The device has lost data that it reported as written: damage may be met anywhere, and any
    /// prefix may come back.
    pub lies: bool,
}

/// The history of one database, and how operations on it are judged.
#[derive(Clone)]
pub struct Judge {
    /// The history of issued and acknowledged batches.
    pub oracle: Oracle,
    /// The failures that are excused now.
    pub allowed: Allowed,
    /// A write has failed: none may succeed until the next open.
    pub writing_off: bool,
    /// Damage done by a lying device was found: there is no more to judge.
    pub detected: bool,
    /// The page cache has survived since the last open that was judged.
    pub kept: bool,
    fs: CrashFs,
    clock: Arc<ManualClock>,
    /// The latest time that the wall clock has ever shown.
    wall_max_ms: u64,
}

impl Judge {
    /// Begins the history of an empty database in this world.
    pub fn new(handles: &Handles) -> Judge {
        let mut judge = Judge {
            oracle: Oracle::new(script::model()),
            allowed: Allowed::default(),
            writing_off: false,
            detected: false,
            kept: true,
            fs: handles.fs.clone(),
            clock: handles.clock.clone(),
            wall_max_ms: 0,
        };
        judge.note_clock();
        judge
    }

    /// Returns a judge of the same history over a copy of the files.
    #[must_use]
    pub fn forked(&self, handles: &Handles) -> Judge {
        let allowed = Allowed::default();
        Judge { fs: handles.fs.clone(), allowed, writing_off: false, ..self.clone() }
    }

    /// Notes the wall clock's time. Must be called before the clock is set back.
    pub fn note_clock(&mut self) {
        self.wall_max_ms = self.wall_max_ms.max(self.clock.wall_ms());
    }

    /// Returns the state that reads must show now.
    pub fn model(&self) -> &Model {
        self.oracle.current()
    }

    /// Whether the world's faults explain an error of this kind.
    pub fn excuses(&self, kind: ErrorKind) -> bool {
        let device = self.allowed.device || self.fs.is_dead();
        match kind {
            ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::OutcomeUnknown => device,
            ErrorKind::ReadOnly => self.writing_off || device || self.allowed.lies,
            ErrorKind::Corruption => self.allowed.damaged_reads || self.allowed.lies,
            _ => false,
        }
    }

    /// Whether the world's faults explain this error: on a lying device its text may tell as well.
    pub fn excuses_error(&self, error: &Error) -> bool {
        self.excuses(error.kind()) || self.tells_of_lies(error.kind(), &error.to_string())
    }

    /// Whether the device lies, and an error reports lost or damaged data.
    pub fn tells_of_lies(&self, kind: ErrorKind, error: &str) -> bool {
        self.allowed.lies && tells_of_lies(kind, error)
    }

    /// Brings the model's time to the database's, which must be between the wall clock's time and
    /// the latest that it ever showed (P16).
    ///
    /// # Errors
    /// If it is not.
    pub fn tell_time(&mut self, db: &Db) -> Result<(), String> {
        use windrow::InKeyspace;
        self.note_clock();
        let (wall, now) = (self.clock.wall_ms(), db.now_ms());
        if now < wall || now > self.wall_max_ms {
            return Err(format!(
                "expiry is judged by {now}, the clock says {wall} and at most {}",
                self.wall_max_ms
            ));
        }
        self.oracle.set_now_ms(now);
        Ok(())
    }

    /// Judges the contents after an open. A process that dies meanwhile gives no answer.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn recovered(&mut self, db: &Db) -> Result<(), String> {
        if self.fs.is_dead() {
            return Ok(());
        }
        // The contents of the device are compared; reads must not fail meanwhile.
        self.fs.set_quiet(true);
        let judged = self.recovered_quietly(db);
        self.fs.set_quiet(false);
        if self.fs.is_dead() {
            return Ok(());
        }
        self.kept = true;
        judged
    }

    fn recovered_quietly(&mut self, db: &Db) -> Result<(), String> {
        self.writing_off = false;
        self.tell_time(db)?;
        if !self.allowed.lies {
            return self.oracle.recovered(db, self.kept);
        }
        let found = subject::dump(db).map(drop).and_then(|()| db.verify()?.into_result());
        match found {
            Ok(_) => self.oracle.recovered_any(db),
            Err(error) if self.excuses_error(&error) => {
                self.detected = true;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Judges a close: what was written before is durable, unless writing was off.
    ///
    /// # Errors
    /// An error that the world's faults do not explain.
    pub fn closed(&mut self, closed: windrow_base::Result<()>) -> Result<(), String> {
        match closed {
            Ok(()) if !self.writing_off => self.oracle.sync(),
            Ok(()) => {}
            Err(error) if self.excuses_error(&error) => {}
            Err(error) => return Err(format!("close: {error}")),
        }
        Ok(())
    }

    /// Judges the contents when writing was turned on again. Returns whether it was.
    ///
    /// # Errors
    /// The first fault, in words; an error that the world's faults do not explain.
    pub fn resumed(&mut self, db: &Db, resumed: windrow_base::Result<()>) -> Result<bool, String> {
        match resumed {
            _ if self.fs.is_dead() => return Ok(false),
            Ok(()) => {}
            Err(error) if self.excuses_error(&error) => return Ok(false),
            Err(error) => return Err(format!("resume: {error}")),
        }
        self.writing_off = false;
        self.tell_time(db)?;
        // The contents of the device are compared; reads must not fail meanwhile.
        self.fs.set_quiet(true);
        let judged = self.oracle.resumed(db);
        self.fs.set_quiet(false);
        judged.map(|()| true).map_err(|why| format!("after a resume: {why}"))
    }

    /// Runs one operation, and judges its answer.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn step(&mut self, database: &mut Database, op: &Op) -> Result<(), String> {
        if self.fs.is_dead() || self.detected {
            return Ok(());
        }
        self.tell_time(database.db())?;
        self.judged(database, op).map_err(|why| format!("{}: {why}", text::op_text(op)))
    }

    fn judged(&mut self, database: &mut Database, op: &Op) -> Result<(), String> {
        let keyspace = match op {
            // Opening an existing keyspace writes nothing.
            Op::CreateKeyspace { name, .. } => !self.model().keyspaces().contains(name),
            Op::DropKeyspace { .. } => true,
            _ => false,
        };
        match op {
            // A state seen while a batch is in doubt is not kept for later.
            Op::Snapshot { .. } | Op::OpenCursor { .. } | Op::Refresh { .. }
                if self.oracle.has_doubt() =>
            {
                return Ok(());
            }
            _ => {}
        }
        let writes = op.writes();
        if let Some((writes, _)) = &writes {
            // A keyspace that could not be made accepts no writes.
            if self.model().resolve(writes).is_none() {
                return Ok(());
            }
            if !self.writing_off {
                self.oracle.issue(writes, matches!(op, Op::Ingest { .. }));
            }
        } else if keyspace && !self.writing_off {
            self.oracle.begin_keyspace(op);
        }
        let answer = database.apply(op);
        if let Answer::Error(kind) = answer {
            // The handle's keyspace may be gone: if making it again has failed, the handle is still
            // the old one.
            let is_gone = kind == ErrorKind::Closed && self.model().clone().apply(op) == answer;
            if is_gone && !keyspace && writes.is_none() {
                return Ok(());
            }
            let is_ingestion = writes.is_some().then_some(matches!(op, Op::Ingest { .. }));
            if self.has_dropped(database, op) {
                // Its record is durable, whatever failed behind that.
                self.oracle.end_keyspace();
            }
            return self.failed(database, (is_ingestion, keyspace), kind);
        }
        if (writes.is_some() || keyspace) && self.writing_off && answer != Answer::Missing {
            return Err("succeeded after a write had failed".to_owned());
        }
        let want = match writes {
            _ if self.writing_off => self.oracle.answer(op),
            Some((_, sync)) => {
                self.oracle.acknowledge(database.db().snapshot().seq(), sync);
                Answer::Done
            }
            None if keyspace => self.oracle.end_keyspace(),
            None => self.oracle.answer(op),
        };
        if matches!(op, Op::Sync | Op::Flush { keyspace: None }) && !self.writing_off {
            self.oracle.sync();
        }
        self.compare(database, op, &answer, &want)
    }

    /// Whether a drop that failed took place.
    fn has_dropped(&self, database: &Database, op: &Op) -> bool {
        let Op::DropKeyspace { name } = op else { return false };
        self.model().keyspaces().contains(name) && !database.db().keyspaces().contains(name)
    }

    fn compare(
        &mut self,
        database: &mut Database,
        op: &Op,
        answer: &Answer,
        want: &Answer,
    ) -> Result<(), String> {
        // A batch whose sync failed may be visible, as a whole.
        let is_right = self.agrees(answer, want)
            || self.writing_off && self.agrees(answer, &self.oracle.with_doubt().apply(op));
        if !is_right {
            let (got, want) = (text::answer_text(answer), text::answer_text(want));
            return Err(format!("answered\n{got}instead of\n{want}"));
        }
        let has_failed = matches!(answer, Answer::Steps(steps) if steps.iter().any(Result::is_err));
        if let (Op::Walk { cursor, .. } | Op::Refresh { cursor }, true) = (op, has_failed) {
            // The cursor stays failed; the model's cursor does not know that.
            let close = Op::CloseCursor { cursor: cursor.clone() };
            database.apply(&close);
            self.oracle.answer(&close);
        }
        if let Answer::Pairs(_, Some(kind)) = answer {
            self.detected |= self.allowed.lies && *kind == ErrorKind::Corruption;
        }
        Ok(())
    }

    /// Judges a failed operation. The world's faults must explain the failure, and the failure of a
    /// write must be the last one in doubt. `write`: whether it was an ingestion, if it wrote.
    fn failed(
        &mut self,
        database: &Database,
        (write, keyspace): (Option<bool>, bool),
        kind: ErrorKind,
    ) -> Result<(), String> {
        if self.fs.is_dead() {
            return Ok(());
        }
        // The model refuses it as well: a keyspace exists with other options than the asked ones.
        if self.writing_off && kind == ErrorKind::InvalidArgument {
            return Ok(());
        }
        let error = database.last_error().map(ToString::to_string).unwrap_or_default();
        let is_lie = self.tells_of_lies(kind, &error);
        if !self.excuses(kind) && !is_lie {
            return Err(error);
        }
        self.detected |= is_lie;
        if (write.is_some() || keyspace) && !self.writing_off {
            // The write was refused before anything was written: some background work had failed
            // before, or there was no room in memory, and then writing is still on. For a batch,
            // every kind but `OutcomeUnknown` says so. The log may have the number of an ingestion.
            let is_on = database.db().write_error().is_none();
            let is_known = write == Some(false) && kind != ErrorKind::OutcomeUnknown;
            let write = write.is_some();
            if kind == ErrorKind::ReadOnly || is_on || is_known {
                if write {
                    self.oracle.withdraw();
                } else {
                    self.oracle.withdraw_keyspace();
                }
            }
            self.writing_off = !is_on;
        }
        Ok(())
    }

    /// Whether an answer is the wanted one, or a part of it that ends in an excused error.
    fn agrees(&self, answer: &Answer, want: &Answer) -> bool {
        match (answer, want) {
            _ if answer == want => true,
            (Answer::Pairs(got, Some(kind)), Answer::Pairs(want, _)) => {
                want.starts_with(got) && self.excuses(*kind)
            }
            (Answer::Steps(got), Answer::Steps(want)) => {
                let whole = got.iter().take_while(|step| step.is_ok()).count();
                // A failed cursor stays failed, and is on no entry.
                let failed = |step: &Result<Option<Pair>, ErrorKind>| match step {
                    Ok(entry) => entry.is_none(),
                    Err(kind) => self.excuses(*kind),
                };
                got.len() == want.len()
                    && got[..whole] == want[..whole]
                    && got[whole..].iter().all(failed)
            }
            (Answer::Values(got), Answer::Values(want)) => {
                let right = |(got, want): (&Result<_, ErrorKind>, &_)| match got {
                    Err(kind) if self.excuses(*kind) => true,
                    got => got == want,
                };
                got.len() == want.len() && got.iter().zip(want).all(right)
            }
            _ => false,
        }
    }
}

/// Whether an error says that the device lost data that it had accepted: damage was found, or a
/// file is shorter than the bytes appended to it, or does not begin as it should.
pub(crate) fn tells_of_lies(kind: ErrorKind, error: &str) -> bool {
    let is_cut = error.contains("is not the file that was written");
    match kind {
        ErrorKind::Corruption => true,
        ErrorKind::Io | ErrorKind::OutcomeUnknown => is_cut,
        ErrorKind::InvalidArgument => error.contains("holds another program's files"),
        _ => false,
    }
}
