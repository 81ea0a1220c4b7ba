//! Background work that found no room on the device.
//!
//! Such a failure changed nothing and turns nothing off: what was to be flushed
//! is in memory and in a log still, what was to be merged is as it was. So the
//! job is tried again, later and later, and at once when somebody asks for what
//! it does; meanwhile writes go on while they fit into memory and the log. One
//! that does not fit is refused with the job's error, before anything of it is
//! written. Rejected: to turn writing off (a merge that needs more room than
//! there is would keep out the deletes that make room); to have writers wait
//! (nobody says when there will be room).
//! Owns: when flushes, and a tree's merges, are tried again. Never does: try again
//! what touched the log, the manifest or a directory's names: that is the latch's.

use crate::core::Core;
use crate::stats::PauseReason;
use crate::tree::Tree;
use crate::write::wal::Wal;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result, mutant};
use windrow_env::sync::atomic::Ordering;

/// Room beside the log and the tables: for the manifest, and what tables have beside entries.
const MARGIN_BYTES: u64 = 16 << 10;
/// Room that the next log takes at most when it is made.
const NEXT_LOG_BYTES: u64 = 64 << 10;
/// Room that a log reserves at once where there is enough.
const STEP_BYTES_MIN: u64 = 64 << 10;
/// With less than this free, beside room to flush, no log is made ahead.
const SPARE_BYTES_MIN: u64 = 1 << 20;
/// How often it is looked whether an attempt is due, in ms.
const LOOK_MS: u64 = 500;

/// What the next log takes of so much free space: a flush lets a log go only where
/// there is another.
fn next_log_bytes(free: u64) -> u64 {
    (free / 16).min(NEXT_LOG_BYTES)
}

impl Core {
    /// Notes how a flush ended. `Ok`: there is no shortage any more.
    pub(crate) fn note_flush(&self, result: &Result<()>) {
        if self.flush_retry.lock().note(self, result) {
            self.look_again();
        }
    }

    /// Notes how a merge of a tree ended.
    pub(crate) fn note_merge(&self, tree: &Tree, result: &Result<()>) {
        let waits = tree.work.lock().merge_retry.note(self, result);
        if waits {
            self.note_due(tree);
            self.look_again();
        }
    }

    /// Whether flushes may begin now.
    pub(crate) fn flush_is_due(&self) -> bool {
        self.flush_retry.lock().is_due(self.env.clock.monotonic_ns())
    }

    /// Has the jobs that are due again begun, for as long as there are any.
    fn look_again(&self) {
        if !self.retry_timer.begin() {
            return;
        }
        let core = self.me.clone();
        let look = move || {
            let Some(core) = core.upgrade() else { return false };
            core.workers.contain(|| core.schedule_if_open());
            core.retry_timer.goes_on(|| core.any_job_waits() && !core.workers.gate.is_closing())
        };
        self.env.jobs.every(LOOK_MS, Arc::new(look));
    }

    /// Whether a flush or a merge is to be tried again.
    fn any_job_waits(&self) -> bool {
        let merge_waits = |tree: &Arc<Tree>| tree.work.lock().merge_retry.error().is_some();
        let flush_waits = self.flush_retry.lock().error().is_some();
        flush_waits || self.trees().iter().any(merge_waits)
    }

    /// Somebody asks for what waits: it is due at once.
    pub(crate) fn retry_now(&self) {
        self.flush_retry.lock().ask();
        self.trees().iter().for_each(|tree| tree.work.lock().merge_retry.ask());
        self.note_all_due();
    }

    /// Why frozen memtables stay in memory, where the last flush has failed for a
    /// shortage and none is under way.
    pub(crate) fn stuck_flush(&self) -> Option<Error> {
        let error = self.flush_retry.lock().error().cloned()?;
        self.queue.lock().unflushed.is_stuck().then_some(error)
    }

    /// Why a flush or merge waits.
    pub(crate) fn stuck_work(&self) -> Option<Error> {
        let of = |tree: &Arc<Tree>| tree.work.lock().merge_retry.error().cloned();
        self.stuck_flush().or_else(|| self.trees().iter().find_map(of))
    }

    /// Makes room in the log for a record, unless too little would be left for the
    /// tables of what the log then holds: what was written could not be flushed,
    /// and not replayed by an open either. Before a write is refused for that, what
    /// is in memory is flushed, once, which lets the log go.
    ///
    /// # Errors
    /// `NoSpace` for this write alone: nothing of it was written.
    #[cold]
    pub(crate) fn find_room(&self, lack: (Arc<Wal>, u64), flushed: &mut bool) -> Result<()> {
        let refusal = match self.too_little_is_left(&lack) {
            Some(refusal) => refusal,
            None => match self.make_room(lack) {
                Err(error) if error.kind() == ErrorKind::NoSpace => error,
                made => return made,
            },
        };
        if std::mem::replace(flushed, true) || self.bytes_in_memory() == 0 {
            return Err(refusal);
        }
        let pause = self.pause_begin(PauseReason::MemtablesFull);
        // Without another log this one would stay.
        let _ = self.workers.begin().and_then(|_underway| self.prepare_wal());
        let done = self.flush_all();
        self.pause_end(pause);
        done.map_err(|error| if error.kind() == ErrorKind::NoSpace { refusal } else { error })?;
        self.cleanup.run(self.latch.cause().is_some());
        Ok(())
    }

    /// Has a merge give up where it would take the room that what is in memory
    /// needs in tables: nothing is lost if it waits, and much is if that finds none.
    /// `step`: what it may write before it asks again, in bytes; so may each of the others.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn leave_room_to_flush(&self, step: u64) -> Result<()> {
        let Ok(free) = self.env.fs.free_bytes(&self.dir) else { return Ok(()) };
        let to_come = self.bytes_in_memory().saturating_add(self.reserved_ahead());
        let steps =
            step.saturating_mul(self.workers.merges_running.load(Ordering::Acquire).max(1) as u64);
        let beside = steps.saturating_add(next_log_bytes(free) + MARGIN_BYTES);
        let needed = to_come.saturating_add(beside);
        if needed <= free || mutant!(LogTakesAll) {
            return Ok(());
        }
        let text = format!(
            "a merge leaves {free} bytes free, of which a flush of what is in memory needs {needed}"
        );
        Err(Error::new(ErrorKind::NoSpace, text))
    }

    /// Whether so little is free that a log is made when it is needed and not ahead.
    pub(crate) fn is_short_of_room(&self) -> bool {
        let needed = self.bytes_in_memory().saturating_add(SPARE_BYTES_MIN);
        self.env.fs.free_bytes(&self.dir).is_ok_and(|free| free < needed)
    }

    /// What memtables hold, in bytes: about what it takes in tables, at most.
    pub(crate) fn bytes_in_memory(&self) -> u64 {
        let active = self.queue.lock().active_bytes;
        (active + self.frozen_bytes.load(Ordering::Acquire)) as u64
    }

    /// What logs have room for already, in bytes: it comes into memory without anybody
    /// asking whether a flush has room for it.
    fn reserved_ahead(&self) -> u64 {
        let queue = self.queue.lock();
        let rest = |wal: &Wal, written: u64| match wal.file.reserved_bytes() {
            // The file system reserves nothing.
            u64::MAX => 0,
            reserved => reserved.saturating_sub(written),
        };
        let spare = queue.spare.as_ref().map_or(0, |spare| rest(spare, 0));
        rest(&queue.wal, queue.wal_offset) + spare
    }

    fn too_little_is_left(&self, (wal, end): &(Arc<Wal>, u64)) -> Option<Error> {
        let free = self.env.fs.free_bytes(&self.dir).ok()?;
        let reserved = wal.file.reserved_bytes();
        // A step doubles what is reserved, is 64 KiB at least, takes a quarter of what is
        // free at most, or else what is asked for.
        let step = reserved.max(STEP_BYTES_MIN).min(free / 4).max(end.saturating_sub(reserved));
        let to_come = self.bytes_in_memory().saturating_add(self.reserved_ahead());
        let needed = to_come.saturating_add(2 * step + next_log_bytes(free) + MARGIN_BYTES);
        if needed <= free || mutant!(LogTakesAll) {
            return None;
        }
        let text = format!(
            "{free} bytes are free, and {needed} are needed to log and to flush what is in memory: \
             nothing of the write was done; make room and retry"
        );
        Some(Error::new(ErrorKind::NoSpace, text))
    }

    /// The error of a write that finds memory full of what cannot be flushed.
    pub(crate) fn refused_for_shortage(&self) -> Option<Error> {
        let cause = self.stuck_flush()?;
        let text = "nothing was written: memory is full of what cannot be flushed yet, since";
        Some(cause.context(text))
    }
}
