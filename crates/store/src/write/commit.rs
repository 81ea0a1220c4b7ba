//! One write, top to bottom: wait for its pace, reserve, log, apply, publish, sync.
//!
//! A failure at or after the log append is a background error (rule R13): the bytes may or may not
//! have reached the kernel, so no later write may be acknowledged over the hole. Reads go on.
//!
//! A synced write is published before it is durable: readers may see it while its caller still
//! waits for the device. A write that was acknowledged as durable is durable; one that a reader saw
//! is as durable as any unsynced write.
//!
//! So a write whose sync fails is visible, and stays if writing is resumed. A write whose append
//! failed is not visible, but appears if a replay finds the whole record after all. The callers of
//! both get `OutcomeUnknown`, and so do those that wait behind them; any other error of a write
//! means that it never happens. Rejected: to cut off, at a resume, the records that are not synced.
//! Others have read them, and unsynced writes behind them were acknowledged.
//!
//! Owns no state. Never does: wait for room (`room.rs`), or give out a slot (`queue.rs`).

use crate::host::workers::Kick;
use crate::tree::Tree;
use crate::write::batch::{Batch, Touched};
use crate::write::pipeline::Pipeline;
use crate::write::queue::{Memtables, QueueState, Slot};
use crate::write::read_set::ReadSet;
use crate::write::room::{Reserved, RoomRequest};
use std::sync::Arc;
use windrow_base::key::trailer;
use windrow_base::{Error, ErrorKind, Kind, Result, SeqNo, invariant};
use windrow_format::batch::{self, BatchBuf, Op};
use windrow_format::log::{self, Class};
use windrow_read::budget::batch_memory_max;
use windrow_read::options::WriteSync;
use windrow_read::read::access::is_sampled;
use windrow_read::read::{split_expiry, unregistered_operator};

/// Most sequence numbers that may be given out (2^56 - 1, less a margin).
const SEQ_LIMIT: SeqNo = windrow_base::key::SEQ_MAX - (1 << 32);

impl Pipeline {
    /// Writes a batch. Returns the last sequence number it took.
    ///
    /// # Errors
    /// `InvalidArgument` for a broken limit, `NoSpace`, `ReadOnly`, `Closed`: nothing is written
    /// then; `OutcomeUnknown` if the log failed, a background error.
    #[inline]
    pub fn write_batch(&self, batch: &mut Batch, sync: WriteSync) -> Result<SeqNo> {
        self.write_batch_after(batch, sync, None)
    }

    /// Writes a batch if none of its `reads` was written since it was read.
    ///
    /// # Errors
    /// As [`Pipeline::write_batch`]; `Conflict`: nothing is written then.
    #[inline]
    pub fn write_batch_after(
        &self,
        batch: &mut Batch,
        sync: WriteSync,
        reads: Option<&ReadSet>,
    ) -> Result<SeqNo> {
        if self.check_batch(batch, sync)? {
            return Ok(self.visible());
        }
        self.commit(batch, sync, reads)
    }

    /// Refuses a batch that may not be written. Returns whether there is nothing to write.
    fn check_batch(&self, batch: &Batch, sync: WriteSync) -> Result<bool> {
        if let Some(error) = &batch.error {
            return Err(error.clone());
        }
        if batch.database_id.is_some_and(|id| id != self.host.instance_id) {
            return Err(Error::invalid("the batch was made for another database"));
        }
        self.check_size(batch)?;
        if batch.is_empty() {
            self.host.write_state.check()?;
            if sync.is_yes() {
                // Nothing to write, but the caller wants all earlier writes durable.
                self.segments.sync()?;
            }
            return Ok(true);
        }
        for touch in batch.touched.iter().filter(|touch| touch.merges || touch.prefixes) {
            self.check_touched(&batch.buf, touch)?;
        }
        Ok(false)
    }

    /// Refuses a batch that would not fit into the budget: as it is held while it is written and
    /// replayed, and as the memtables then hold it.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_size(&self, batch: &Batch) -> Result<()> {
        let memory_bytes = self.host.settings.memory_bytes;
        let limit = memory_bytes / 4;
        if batch.byte_len() as u64 > limit {
            return Err(Error::invalid(format!(
                "a batch of {} bytes is larger than {limit} (a quarter of memory_bytes): \
                 split it or raise memory_bytes",
                batch.byte_len(),
            )));
        }
        let (needed, most) = (batch.memory_bytes() as u64, batch_memory_max(memory_bytes));
        if needed > most {
            return Err(Error::invalid(format!(
                "a batch of {} operations takes {needed} bytes of memory, more than {most} (half \
                 of memory_bytes): split it or raise memory_bytes",
                batch.len(),
            )));
        }
        Ok(())
    }

    /// Commits a batch, if none of its `reads` was written since.
    fn commit(&self, batch: &mut Batch, sync: WriteSync, reads: Option<&ReadSet>) -> Result<SeqNo> {
        self.host.write_state.check()?;
        let Batch { buf, touched, .. } = batch;
        let begin_ns = self.begin_timing(sync);
        let mut room = RoomRequest::new(self, touched);
        room.wait_for_pace(buf.byte_len());
        let Reserved { slot, due, takes_lent, watching } = room.reserve(buf, reads)?;
        let unwinding = Unwinding::of_writing(self, &slot);
        // Before any reader may see it.
        if !watching.is_empty() {
            watching.cut(buf);
        }
        if takes_lent {
            self.share_memory();
        }
        let appended = append(buf, &slot);
        if appended.is_ok() {
            apply(buf, &slot);
        }
        std::mem::forget(unwinding);
        let unseen = |error| outcome_unknown(error, UNSEEN);
        appended.inspect_err(|error| self.fail_slot(&slot, error)).map_err(unseen)?;
        self.publish(&slot).map_err(unseen)?;
        if room.has_switched() {
            // Not by the workers, which may have to wait for a processor while memtables fill the
            // memory that reads were lent.
            self.share_memory();
        }
        if takes_lent || room.has_switched() {
            self.steps.note();
        }
        if due {
            self.workers.kick(Kick::MayBeDue);
        }
        let counters = self.host.counters.here();
        counters.batches.add(1);
        counters.operations.add(u64::from(buf.count()));
        counters.wal_bytes.add(slot.end - slot.begin);
        counters.user_bytes.add(room.user_bytes());
        if sync.is_yes() {
            self.sync_slot(&slot).map_err(|error| outcome_unknown(error, SEEN))?;
        }
        if let Some(begin_ns) = begin_ns {
            self.end_timing(sync, begin_ns);
        }
        Ok(slot.last_seq)
    }

    /// The time at which a timed write begins. Timed are all that wait for the device, and a few
    /// others.
    #[inline]
    fn begin_timing(&self, sync: WriteSync) -> Option<u64> {
        let is_timed = sync.is_yes() || is_sampled(self.host.counters.here().batches.get());
        is_timed.then(|| self.host.env.clock.monotonic_ns())
    }

    #[cold]
    fn end_timing(&self, sync: WriteSync, begin_ns: u64) {
        let timings = &self.host.counters.timings;
        let of_kind = if sync.is_yes() { &timings.commit } else { &timings.put };
        of_kind.record(self.host.env.clock.monotonic_ns() - begin_ns);
    }

    /// Has the log remember, durably, how long the manifest is. If the manifest then loses a
    /// keyspace that was made or dropped, the loss is noticed, even if no write ever follows: two
    /// files must be damaged to hide it.
    ///
    /// # Errors
    /// An error of the log, which is a background error.
    pub fn cross_check_manifest(&self) -> Result<()> {
        let take = |queue: &mut QueueState| Some(queue.take(0, 0, Memtables::Many(Vec::new())));
        let slot = self.mark_alone(take)?;
        slot.map_or(Ok(()), |slot| self.sync_slot(&slot))
    }

    /// Has the log remember the time, if anything was written since it did so last. Not synced.
    ///
    /// # Errors
    /// `NoSpace` where there is no room for it, with nothing done; an error of the log, which is a
    /// background error.
    pub fn note_time(&self) -> Result<()> {
        self.host.write_state.check()?;
        let lack = {
            let queue = self.queue().lock();
            queue.is_time_due().then(|| self.segments.lacks_room(&queue, 0)).flatten()
        };
        lack.map_or(Ok(()), |lack| self.segments.make_room(lack))?;
        let take = |queue: &mut QueueState| match self.segments.lacks_room(queue, 0) {
            // A writer was here meanwhile.
            Some(_) => None,
            None => queue.take_time(&*self.host.env.clock),
        };
        self.mark_alone(take).map(drop)
    }

    /// Writes a slot that has a mark at most, if `take` gives one out.
    fn mark_alone(
        &self,
        take: impl FnOnce(&mut QueueState) -> Option<Slot>,
    ) -> Result<Option<Slot>> {
        self.host.write_state.check()?;
        let slot = {
            let mut queue = self.queue().lock();
            self.host.write_state.check()?;
            take(&mut queue)
        };
        let Some(slot) = slot else { return Ok(None) };
        let unwinding = Unwinding::of_writing(self, &slot);
        let appended = slot.mark.as_ref().map_or(Ok(()), |mark| append_mark(mark, &slot));
        std::mem::forget(unwinding);
        appended.inspect_err(|error| self.fail_slot(&slot, error))?;
        self.publish(&slot)?;
        self.host.counters.wal_bytes.add(slot.end - slot.begin);
        Ok(Some(slot))
    }

    /// Gives an ingestion into a keyspace a sequence number of its own, and has it install its
    /// tables. By then all earlier numbers are visible and durable, and no later one is visible
    /// yet. `None`, with nothing done, if a memtable of the keyspace has any entry: that is older,
    /// and would be read first.
    ///
    /// The log has an empty range delete at that number, which no batch has. So no number is
    /// missing there, and a reader of the log knows that it must read the manifest first. It is the
    /// only trace of the ingestion after a crash that comes before the manifest's record of it.
    ///
    /// Once the number is published, the manifest has the ingestion, or has no such keyspace. If
    /// its record failed, the slot fails: the slots behind it are refused as well.
    ///
    /// # Errors
    /// As [`Pipeline::write_batch`]; those of `install`.
    pub fn ingest<T>(
        &self,
        tree: &Arc<Tree>,
        bounds: (&[u8], &[u8]),
        install: impl FnOnce(SeqNo) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut buf = BatchBuf::new();
        buf.push(Kind::RangeDelete, tree.id, bounds.0, bounds.0);
        let Some(slot) = self.reserve_alone(tree, bounds, &buf)? else { return Ok(None) };
        let unwinding = Unwinding::of_writing(self, &slot);
        tree.reads.gaps.forget(&tree.reads.blocks);
        let appended = append(&mut buf, &slot);
        let done = match &appended {
            Ok(()) => self.settle_before(&slot).and_then(|()| install(slot.first_seq)),
            Err(error) => Err(error.clone()),
        };
        std::mem::forget(unwinding);
        match &done {
            Err(error) if appended.is_err() || error.kind() != ErrorKind::Closed => {
                self.fail_slot(&slot, error);
                return done.map(Some);
            }
            // The keyspace was dropped meanwhile: the slots behind it wait.
            _ => {}
        }
        self.host.counters.wal_bytes.add(slot.end - slot.begin);
        self.publish(&slot)?;
        done.map(Some)
    }

    /// Reserves a slot of one sequence number, and of no memtable.
    fn reserve_alone(
        &self,
        tree: &Arc<Tree>,
        bounds: (&[u8], &[u8]),
        buf: &BatchBuf,
    ) -> Result<Option<Slot>> {
        let log_bytes_max = log::framed_bytes_max(batch::BATCH_HEADER_BYTES_MAX + buf.op_bytes());
        loop {
            let mut queue = self.queue().lock();
            self.host.write_state.check()?;
            self.workers.check_open()?;
            if let Some(lack) = self.segments.lacks_room(&queue, log_bytes_max) {
                drop(queue);
                self.segments.make_room(lack)?;
                continue;
            }
            self.tree(tree.id)?;
            let view = tree.view();
            if view.memtable.first_wal().is_some() || !view.frozen.is_empty() {
                return Ok(None);
            }
            let slot = queue.take(1, buf.op_bytes(), Memtables::Many(Vec::new()));
            self.observers.given_ingestion(tree, bounds, slot.first_seq);
            return Ok(Some(slot));
        }
    }

    /// Returns once all writes before a slot are visible and durable.
    fn settle_before(&self, slot: &Slot) -> Result<()> {
        self.queue().wait_visible(slot.first_seq - 1, &self.host.write_state)?;
        self.segments.sync_to(&slot.wal, slot.wal.written())
    }

    /// Publishes a slot, once its turn comes. A panic in it turns writing off.
    pub fn publish(&self, slot: &Slot) -> Result<()> {
        let unwinding = Unwinding::of_publishing(self, slot);
        let published = self.queue().publish(slot, &self.host.write_state);
        std::mem::forget(unwinding);
        published
    }

    /// Fails a slot whose record is not in the log, or not whole.
    fn fail_slot(&self, slot: &Slot, error: &Error) {
        self.host.set_background_error(error);
        self.queue().fail(slot);
    }

    fn sync_slot(&self, slot: &Slot) -> Result<()> {
        let clock = &self.host.env.clock;
        let begin = clock.monotonic_ns();
        self.segments.sync_to(&slot.wal, slot.end)?;
        self.host.note_sync_wait(clock.monotonic_ns() - begin);
        Ok(())
    }

    /// Refuses merges and prefixes that a keyspace does not take. A prefix is a range of keys in
    /// bytewise order alone, and a merge operand needs an operator that takes it, or no read
    /// could ever answer.
    #[cold]
    fn check_touched(&self, buf: &BatchBuf, touch: &Touched) -> Result<()> {
        let tree = self.tree(touch.id)?;
        if touch.prefixes {
            tree.check_prefix()?;
        }
        if !touch.merges {
            return Ok(());
        }
        let named = |why: Error| why.context(format!("merge into keyspace `{}`", tree.name));
        let Some(operator) = &tree.reads.operator else {
            return Err(named(unregistered_operator(tree.record.merge_operator.as_deref())));
        };
        let merged = buf.ops().filter(|op| op.keyspace == touch.id && op.kind.is_merge());
        // An operand that expires comes after its expiry.
        let mut operands = merged.map(|op| match split_expiry(op.value) {
            Ok((_, value)) if op.kind.has_expiry() => Op { value, ..op },
            _ => op,
        });
        match operands.find(|op| !operator.accepts(op.key, op.value)) {
            None => Ok(()),
            Some(op) => Err(named(Error::invalid(format!(
                "merge operator `{}` does not take the {} bytes given for key \"{}\"",
                operator.name(),
                op.value.len(),
                op.key.escape_ascii()
            )))),
        }
    }
}

/// The outcome of a write whose record may be in the log, and that is not in memory.
const UNSEEN: &str = "the write is not visible and `resume` leaves it out, but if the database is \
                      reopened instead, the log may have it";
/// The outcome of a write that was published and not synced.
const SEEN: &str = "the write is visible, and not known to be durable; `resume` keeps it";

/// The error of a write that has failed and may still appear later.
#[cold]
pub fn outcome_unknown(error: Error, what: &str) -> Error {
    if matches!(error.kind(), ErrorKind::Internal | ErrorKind::InvalidArgument) {
        return error;
    }
    let text = format!(
        "{what}: look whether it is there before you write it again. Writing is off, since: {}",
        error.first_failure()
    );
    Error::new(ErrorKind::OutcomeUnknown, text).with_source(error)
}

/// Turns writing off if a writer panics under a slot for which all slots behind it wait.
struct Unwinding<'a> {
    pipeline: &'a Pipeline,
    slot: &'a Slot,
    kind: ErrorKind,
    text: &'static str,
}

impl<'a> Unwinding<'a> {
    /// For a write into the log and memtables: a comparator, or the file system, may panic.
    fn of_writing(pipeline: &'a Pipeline, slot: &'a Slot) -> Self {
        let text = "a writer panicked: what it was writing may be in the log, and is not in memory";
        Unwinding { pipeline, slot, kind: ErrorKind::Io, text }
    }

    /// For a publication: only a broken invariant of the queue panics there.
    fn of_publishing(pipeline: &'a Pipeline, slot: &'a Slot) -> Self {
        let text = "a writer panicked as its write was made visible: it may be in the log, and \
                    is not visible; this is a defect of Windrow: please report it, with the \
                    message of the panic";
        Unwinding { pipeline, slot, kind: ErrorKind::Internal, text }
    }
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        let error = Error::new(self.kind, self.text);
        self.pipeline.fail_slot(self.slot, &error);
    }
}

/// Writes the record into its slot of the log, behind the mark if there is one.
fn append(buf: &mut BatchBuf, slot: &Slot) -> Result<()> {
    if slot.last_seq > SEQ_LIMIT {
        return Err(Error::invalid("the database has used up its sequence numbers"));
    }
    if let Some(mark) = &slot.mark {
        append_mark(mark, slot)?;
    }
    buf.set_first_seq(slot.first_seq);
    let place = slot.place();
    let (record_bytes, room) = (place.framed_bytes(buf.payload().len()), slot.end - slot.offset);
    // Another slot begins where this one ends.
    invariant!(Q1, record_bytes == room, "{record_bytes} bytes of a record in {room} of the log");
    if buf.payload().len() <= log::FRAGMENT_BYTES_MAX {
        return slot.wal.file.write_at(slot.offset, buf.seal(place));
    }
    // A large record goes out piece by piece: a copy of it is in no budget.
    log::frame_pieces(buf.payload(), Class::Batch, place, |at, piece| {
        slot.wal.file.write_at(at, piece)
    })
}

/// Writes the mark with which the slot begins.
fn append_mark(mark: &[u8], slot: &Slot) -> Result<()> {
    let mut framed = Vec::new();
    log::frame(&mut framed, mark, Class::Mark, slot.mark_place());
    slot.wal.file.write_at(slot.begin, &framed)
}

/// Inserts the operations into their memtables, with their sequence numbers.
fn apply(buf: &BatchBuf, slot: &Slot) {
    /// The most entries of one keyspace that are inserted at once.
    const POINTS_MAX: usize = 64;
    let mut seq = slot.first_seq;
    let mut ops = buf.ops().peekable();
    let count = buf.count() as usize;
    let mut points = Vec::with_capacity(if count > 1 { count.min(POINTS_MAX) } else { 0 });
    while let Some(op) = ops.next() {
        let memtable = slot.memtables.get(op.keyspace).expect("reserved for every keyspace");
        let is_last = ops.peek().is_none_or(|next| next.keyspace != op.keyspace);
        if op.kind == Kind::RangeDelete || (is_last && points.is_empty()) {
            memtable.insert(op.kind, seq, op.key, op.value);
        } else {
            points.push((op.key, trailer(seq, op.kind), op.value));
        }
        if points.len() == POINTS_MAX || (is_last && !points.is_empty()) {
            memtable.insert_many(&points);
            points.clear();
        }
        seq += 1;
    }
    debug_assert_eq!(seq, slot.last_seq + 1);
}
