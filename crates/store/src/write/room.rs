//! Where a writer waits: for its pace, for memory, for the next log segment.
//!
//! Memory: the active memtables of all keyspaces together hold at most one memtable's share of the
//! budget. When a write would pass it, the largest is frozen and handed to a flush, and the log
//! goes on, if that is of use, in a new segment that was made ahead. A writer waits only if the
//! frozen ones have not been flushed yet. A batch larger than a memtable has one to itself, and
//! waits until it fits next to the frozen ones. Every wait is recorded with its reason.
//!
//! Owns no state. Never does: write to the log or to a memtable.

use crate::host::workers::{Kick, closed};
use crate::write::batch::Touched;
use crate::write::observers::Watching;
use crate::write::pipeline::Pipeline;
use crate::write::queue::{Memtables, QueueState, Slot};
use crate::write::read_set::ReadSet;
use crate::write::recent_writes::Verdict;
use crate::write::wal::Wal;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result, debug_invariant};
use windrow_env::sync::MutexGuard;
use windrow_format::batch::BatchBuf;
use windrow_format::{batch, log};
use windrow_read::memtable::LIST_BYTES;
use windrow_read::stats::PauseReason;

/// Range deletes that fill a memtable, however short: every read asks all of them, chunk by chunk.
const RANGE_DELETES_MAX: usize = 8192;

/// Room for a write.
pub(crate) struct Reserved {
    pub slot: Slot,
    /// Whether memtables were switched for it, or the next log is due. Then there is work to
    /// schedule, but not before the slot is published: all slots behind it wait for that.
    pub due: bool,
    /// Whether memtables come to hold more than they were counted for, memory that reads were lent:
    /// reads give it up before it is filled.
    pub(crate) takes_lent: bool,
    /// The keyspaces with gaps, from which the keys of the write must be cut.
    pub(crate) watching: Watching,
}

/// The outcome of an attempt to switch memtables.
enum Switch {
    Done,
    /// No spare log segment is ready, and no attempt was made yet to make one.
    NeedLog,
    /// The frozen memtables fill their share.
    NeedFlush,
}

/// The room that a write lacks.
enum Lack {
    /// Room in the active memtables.
    Memtable,
    /// Memory: with this many bytes in the active memtables, all would hold more than they may.
    Memory(usize),
    /// Room in the log.
    Log((Arc<Wal>, u64)),
}

/// A write that wants room.
pub(crate) struct RoomRequest<'a> {
    pipeline: &'a Pipeline,
    touched: &'a [Touched],
    /// Whether the memtables were flushed for it, once.
    flushed: bool,
    /// Whether no log could be made to go on in: the memtables are switched without one.
    stay: bool,
    /// Whether memtables were switched for it.
    switched: bool,
}

impl<'a> RoomRequest<'a> {
    /// The room of a write to these keyspaces.
    #[inline]
    pub(crate) fn new(pipeline: &'a Pipeline, touched: &'a [Touched]) -> RoomRequest<'a> {
        RoomRequest { pipeline, touched, flushed: false, stay: false, switched: false }
    }

    /// Bytes of the write's keys and values.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.touched.iter().map(|touched| touched.user_bytes as u64).sum()
    }

    /// Slows the writer in proportion to the debt of the tree.
    #[inline]
    pub(crate) fn wait_for_pace(&self, bytes: usize) {
        let Pipeline { host, pace, .. } = self.pipeline;
        if !pace.is_calm() {
            self.pipeline.pay(bytes);
        }
        if pace.is_stopped() {
            host.pause(PauseReason::Level0Deep, || !pace.is_stopped());
        }
        // Not writers that work for a job: a thread that holds writers waits for jobs.
        if pace.is_held() && !self.pipeline.workers.is_worked_for_here() {
            host.pause(PauseReason::MemtablesFull, || !pace.is_held());
        }
    }

    /// Whether memtables were switched for it.
    pub(crate) fn has_switched(&self) -> bool {
        self.switched
    }

    /// Gives out a slot, in three steps: waits for memory and log, admits the write, takes.
    ///
    /// # Errors
    /// `Conflict` if one of the `reads` was written since, or it is not known whether it was; the
    /// error with which the wait for room ended.
    pub(crate) fn reserve(&mut self, buf: &BatchBuf, reads: Option<&ReadSet>) -> Result<Reserved> {
        // The lengths of headers are known with the slot.
        let log_bytes_max = log::framed_bytes_max(batch::BATCH_HEADER_BYTES_MAX + buf.op_bytes());
        let queue = self.wait(log_bytes_max)?;
        if let Some(reads) = reads {
            let verdict = self.pipeline.observers.admit(reads, queue.last_seq());
            if verdict != Verdict::Unchanged {
                drop(queue);
                return Err(self.pipeline.conflict(verdict));
            }
        }
        self.take(queue, buf, log_bytes_max)
    }

    /// Waits until memtables and log have room for the write, under the queue's lock.
    fn wait(&mut self, log_bytes_max: u64) -> Result<MutexGuard<'a, QueueState>> {
        let Pipeline { host, workers, segments, .. } = self.pipeline;
        let limit = self.pipeline.memtable_bytes() as usize;
        let charged: usize = self.touched.iter().map(|touch| self.charge(touch)).sum();
        let mut queue = segments.queue.lock();
        loop {
            host.write_state.check()?;
            if workers.gate.is_closing() {
                return Err(closed());
            }
            let active = queue.unflushed.active_bytes();
            let lists = if self.touched.len() > 1 { self.lists_bytes() } else { 0 };
            let filled = active + charged + lists;
            let lack = if active > 0 && filled > limit {
                Lack::Memtable
            } else if queue.unflushed.frozen_bytes() > 0 && self.is_beyond_all(&queue, filled) {
                Lack::Memory(filled)
            } else if let Some(lack) = segments.lacks_room(&queue, log_bytes_max) {
                Lack::Log(lack)
            } else {
                return Ok(queue);
            };
            queue = self.make_room(queue, lack)?;
        }
    }

    /// Makes room, or waits for others to make it: without the queue's lock, which is taken again.
    ///
    /// # Errors
    /// The error with which that ended.
    #[cold]
    fn make_room(
        &mut self,
        mut queue: MutexGuard<'a, QueueState>,
        lack: Lack,
    ) -> Result<MutexGuard<'a, QueueState>> {
        match lack {
            Lack::Memtable => match self.switch_largest(&mut queue) {
                Switch::Done => {
                    self.switched = true;
                    return Ok(queue);
                }
                Switch::NeedLog => {
                    drop(queue);
                    self.prepare_log()?;
                }
                Switch::NeedFlush => {
                    drop(queue);
                    self.wait_for_flush(|queue| self.frozen_share_is_full(queue))?;
                }
            },
            Lack::Memory(bytes) => {
                drop(queue);
                self.wait_for_flush(|queue| self.is_beyond_all(queue, bytes))?;
            }
            Lack::Log(lack) => {
                drop(queue);
                self.extend_log(lack)?;
            }
        }
        Ok(self.pipeline.segments.queue.lock())
    }

    /// Takes a slot for the write, under the queue's lock, and tells the observers.
    fn take(
        &self,
        mut queue: MutexGuard<'a, QueueState>,
        buf: &BatchBuf,
        log_bytes_max: u64,
    ) -> Result<Reserved> {
        let Pipeline { host, segments, observers, .. } = self.pipeline;
        let step = host.shares.step_bytes();
        let before = queue.unflushed.active_bytes() as u64 / step;
        let memtables = self.memtables(&mut queue)?;
        let slot = queue.take(buf.count(), buf.op_bytes(), memtables);
        let watching = match observers.is_empty() {
            true => Watching::default(),
            false => observers.given(&self.pipeline.keyspaces, self.touched, buf, slot.first_seq),
        };
        let due = segments.asks_for_spare(&mut queue) || self.switched;
        let (given, room) = (slot.last_seq + 1 - slot.first_seq, slot.end - slot.offset);
        let asked = u64::from(buf.count());
        debug_invariant!(Q1, given == asked, "{given} sequence numbers for {asked} operations");
        let fits = room <= log_bytes_max;
        debug_invariant!(Q1, fits, "{room} bytes of the log, of {log_bytes_max} at the most");
        let takes_lent = queue.unflushed.active_bytes() as u64 / step > before;
        Ok(Reserved { slot, due, takes_lent, watching })
    }

    /// Returns the bytes that a write counts for in the memtable of a keyspace. Range deletes fill
    /// it by their number as well, but only once.
    fn charge(&self, touch: &Touched) -> usize {
        let limit = self.pipeline.host.shares.memtable_bytes as usize;
        let by_number = touch.bytes + touch.range_deletes * (limit / RANGE_DELETES_MAX);
        touch.bytes.max(by_number.min(limit))
    }

    /// Bytes of the lists that the batch would make, except one. A write to one keyspace does not
    /// ask: `Unflushed::promise` counts its list.
    fn lists_bytes(&self) -> usize {
        let is_empty = |touch: &&Touched| {
            let tree = self.pipeline.tree(touch.id);
            tree.is_ok_and(|tree| tree.view().memtable.first_wal().is_none())
        };
        self.touched.iter().filter(is_empty).count().saturating_sub(1) * LIST_BYTES
    }

    /// Whether memtables would hold more than they may with `bytes` in the active ones, and a flush
    /// can help.
    fn is_beyond_all(&self, queue: &QueueState, bytes: usize) -> bool {
        let frozen = queue.unflushed.frozen_bytes();
        let host = &self.pipeline.host;
        let most = host.shares.memtables_bytes_max(host.settings.memory_bytes);
        frozen > 0 && (frozen + bytes) as u64 > most
    }

    /// Makes a writer wait while `is_full`, for a flush to change that; or until the flush finds no
    /// room on the device: nobody knows when that ends.
    ///
    /// # Errors
    /// `NoSpace`: the last flush has failed so, and none is under way.
    fn wait_for_flush(&self, is_full: impl Fn(&QueueState) -> bool) -> Result<()> {
        let pipeline = self.pipeline;
        pipeline.workers.kick(Kick::MayBeDue);
        if let Some(refusal) = self.refused_for_shortage() {
            return Err(refusal);
        }
        let is_over = || {
            let is_full = is_full(&pipeline.queue().lock());
            !is_full || pipeline.stuck_flush().is_some()
        };
        pipeline.host.pause(PauseReason::MemtablesFull, is_over);
        Ok(())
    }

    /// The active memtables of the touched keyspaces, with their bytes counted.
    fn memtables(&self, queue: &mut QueueState) -> Result<Memtables> {
        let wal = queue.wal.number;
        let mut take = |touch: &Touched| {
            let tree = self.pipeline.tree(touch.id)?;
            let memtable = tree.view().memtable.clone();
            queue.unflushed.promise(&tree, &memtable, self.charge(touch), wal);
            Ok(memtable)
        };
        if let [one] = self.touched {
            return Ok(Memtables::One(one.id, take(one)?));
        }
        // All must exist before any byte is counted.
        for touch in self.touched {
            self.pipeline.tree(touch.id)?;
        }
        let many = self.touched.iter().map(|t| Ok((t.id, take(t)?))).collect::<Result<Vec<_>>>();
        let mut many = many?;
        many.sort_unstable_by_key(|(id, _)| *id);
        let is_once = many.windows(2).all(|pair| pair[0].0 < pair[1].0);
        debug_assert!(is_once, "a batch touches a keyspace twice");
        Ok(Memtables::Many(many))
    }

    /// Whether one more frozen memtable and a new active one would not fit. A
    /// single frozen one, however large, is always let through.
    fn frozen_share_is_full(&self, queue: &QueueState) -> bool {
        let frozen = queue.unflushed.frozen_bytes() as u64;
        let one = self.pipeline.memtable_bytes();
        let share = one * u64::from(self.pipeline.host.shares.memtables_max);
        frozen > 0 && frozen + 2 * one > share
    }

    /// Freezes the largest active memtables, and those that pin old log segments.
    fn switch_largest(&self, queue: &mut QueueState) -> Switch {
        if self.frozen_share_is_full(queue) {
            return Switch::NeedFlush;
        }
        let largest = queue.largest();
        if largest.is_empty() {
            queue.unflushed.forget_active();
            return Switch::Done;
        }
        let segments = &self.pipeline.segments;
        if segments.wants_new_log(largest.len(), queue) && !segments.rotate(queue) && !self.stay {
            return Switch::NeedLog;
        }
        let before = queue.unflushed.active_bytes();
        largest.iter().for_each(|tree| queue.freeze(tree));
        queue.freeze_pinning();
        let after = queue.unflushed.active_bytes();
        debug_assert!(after < before, "memtables were frozen, and {after} bytes are active");
        Switch::Done
    }

    /// Makes the next log, for a switch of memtables. If it cannot be made, the log goes on in its
    /// segment.
    fn prepare_log(&mut self) -> Result<()> {
        let Pipeline { host, workers, segments, .. } = self.pipeline;
        let pause = host.pause_begin(PauseReason::WalPrepare);
        // A close waits for it, or it is refused: otherwise it would add a log to the manifest
        // behind the record of the clean close.
        let made = workers.begin().and_then(|_underway| segments.prepare());
        host.pause_end(pause);
        self.stay = !made?;
        Ok(())
    }

    /// Makes room in the log for a record, unless too little would be left for the tables of the
    /// records that the log then holds: they could not be flushed, and not replayed by an open
    /// either. Before a write is refused for that, the memtables are flushed, once, which lets the
    /// log go.
    ///
    /// # Errors
    /// `NoSpace` for this write alone: nothing of it was written.
    #[cold]
    fn extend_log(&mut self, lack: (Arc<Wal>, u64)) -> Result<()> {
        let Pipeline { host, workers, segments, .. } = self.pipeline;
        let end = lack.1;
        let refusal = match segments.too_little_is_left(&lack) {
            Some(refusal) => refusal,
            None => match segments.make_room(lack) {
                Err(error) if error.kind() == ErrorKind::NoSpace => error,
                made => return made,
            },
        };
        if segments.give_up_kept(end) {
            // There may be room now.
            return Ok(());
        }
        if std::mem::replace(&mut self.flushed, true) || segments.bytes_in_memory() == 0 {
            return Err(refusal);
        }
        let pause = host.pause_begin(PauseReason::MemtablesFull);
        // Without another log this one would stay.
        let _ = workers.begin().and_then(|_underway| segments.prepare());
        let done = self.pipeline.flush_all();
        host.pause_end(pause);
        done.map_err(|error| if error.kind() == ErrorKind::NoSpace { refusal } else { error })?;
        segments.cleanup.run(host.write_state.cause().is_some());
        Ok(())
    }

    /// The error of a write that finds memory full of memtables that cannot be flushed.
    fn refused_for_shortage(&self) -> Option<Error> {
        let cause = self.pipeline.stuck_flush()?;
        let text = "nothing was written: memory is full of what cannot be flushed yet, since";
        Some(cause.context(text))
    }
}
