//! Where a writer waits: for its pace, for memory, for the next log segment.
//!
//! Memory: the active memtables of all keyspaces together hold at most one
//! memtable's share of the budget. When a write would pass it, the largest is
//! frozen and handed to a flush, and the log goes on, where that is of use, in
//! a new segment that was made ahead. A writer waits only if the frozen ones
//! have not been flushed yet. A batch larger than a memtable has one to itself,
//! and waits until it fits next to the frozen ones. Every wait is recorded with
//! its reason.
//!
//! Owns no state. Never does: write to the log or to a memtable.

use crate::memtable::LIST_BYTES;
use crate::stats::PauseReason;
use crate::tree::Tree;
use crate::workers::Kick;
use crate::write::batch::Touched;
use crate::write::pipeline::Pipeline;
use crate::write::queue::{Memtables, QueueState, Slot};
use crate::write::read_set::ReadSet;
use crate::write::recent::Verdict;
use crate::write::wal::Wal;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result, debug_invariant};
use windrow_format::batch::BatchBuf;
use windrow_format::{batch, log};

/// Range deletes that fill a memtable, however short: every read asks all of
/// them, by the chunk.
const RANGE_DELETES_MAX: usize = 8192;

/// Room for a write.
pub(crate) struct Reserved {
    pub(crate) slot: Slot,
    /// Memtables were switched for it, or the next log is due: there is work to
    /// schedule, but not before the slot is published, which all behind it wait for.
    pub(crate) due: bool,
    /// It takes more than one memtable's size, which reads were lent: they give it
    /// up before it is filled.
    pub(crate) is_large: bool,
    /// The keyspaces that have gaps (`gaps.rs`), which what is put must be cut out of.
    pub(crate) watched: Vec<Arc<Tree>>,
}

/// What came of an attempt to switch memtables.
enum Switch {
    Done,
    /// No spare log segment is ready, and none was tried to make.
    NeedLog,
    /// The frozen memtables fill their share.
    NeedFlush,
}

/// A write that wants room.
pub(crate) struct Room<'a> {
    pipeline: &'a Pipeline,
    touched: &'a [Touched],
    /// What is in memory was flushed for it, once.
    flushed: bool,
    /// What became of the reads that the write depends on.
    pub(crate) verdict: Verdict,
}

impl<'a> Room<'a> {
    /// That of a write to these keyspaces.
    #[inline]
    pub(crate) fn new(pipeline: &'a Pipeline, touched: &'a [Touched]) -> Room<'a> {
        Room { pipeline, touched, flushed: false, verdict: Verdict::Unchanged }
    }

    /// Bytes of the write's keys and values.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.touched.iter().map(|touched| touched.user_bytes as u64).sum()
    }

    /// What a write counts for in the memtable of a keyspace. Range deletes fill
    /// it by their number as well, but no more than once.
    fn charge(&self, touch: &Touched) -> usize {
        let limit = self.pipeline.host.shares.memtable_bytes as usize;
        let by_number = touch.bytes + touch.range_deletes * (limit / RANGE_DELETES_MAX);
        touch.bytes.max(by_number.min(limit))
    }

    /// What lists the batch would make take, one of them aside. A write to one
    /// keyspace does not ask: `Unflushed::promise` counts it all the same.
    fn lists_bytes(&self) -> usize {
        if self.touched.len() < 2 {
            return 0;
        }
        let is_empty = |touch: &&Touched| {
            let tree = self.pipeline.tree(touch.id);
            tree.is_ok_and(|tree| tree.view().memtable.first_wal().is_none())
        };
        self.touched.iter().filter(is_empty).count().saturating_sub(1) * LIST_BYTES
    }

    /// Whether memtables would hold more than they may with `bytes` in the active
    /// ones, and a flush can help.
    fn is_beyond_all(&self, queue: &QueueState, bytes: usize) -> bool {
        let frozen = queue.unflushed.frozen_bytes();
        let host = &self.pipeline.host;
        let most = host.shares.memtables_bytes_max(host.settings.memory_bytes);
        frozen > 0 && (frozen + bytes) as u64 > most
    }

    /// Slows the writer in proportion to the debt of the tree.
    #[inline]
    pub(crate) fn wait_for_pace(&self, bytes: usize) {
        let Pipeline { host, pace, .. } = self.pipeline;
        self.pipeline.pay(bytes);
        if pace.is_stopped() {
            host.pause(PauseReason::Level0Deep, || !pace.is_stopped());
        }
        // Not those that write for a job: whoever holds writers waits for jobs.
        if pace.is_held() && !self.pipeline.workers.is_worked_for_here() {
            host.pause(PauseReason::MemtablesFull, || !pace.is_held());
        }
    }

    /// Gives out a slot, after making room for it in the memtables.
    ///
    /// # Errors
    /// `Conflict` where `reads` are given, and something of them was written since; what
    /// the wait for room ended with.
    pub(crate) fn reserve(&mut self, buf: &BatchBuf, reads: Option<&ReadSet>) -> Result<Reserved> {
        let Pipeline { host, workers, segments, recent, .. } = self.pipeline;
        let (count, op_bytes) = (buf.count(), buf.op_bytes());
        let need: usize = self.touched.iter().map(|touch| self.charge(touch)).sum();
        let mut queue = segments.queue.lock();
        let (mut due, mut stay) = (false, false);
        let limit = host.shares.memtable_bytes as usize;
        // How long headers are is known with the slot.
        let log_bytes_max = log::framed_bytes_max(batch::BATCH_HEADER_BYTES_MAX + op_bytes);
        let (slot, watched) = loop {
            host.write_state.check()?;
            workers.check_open()?;
            let active = queue.unflushed.active_bytes();
            let need = need + self.lists_bytes();
            let fits = active == 0 || active + need <= limit;
            if fits && self.is_beyond_all(&queue, active + need) {
                drop(queue);
                self.wait_for_flush(|queue| self.is_beyond_all(queue, active + need))?;
                queue = segments.queue.lock();
                continue;
            }
            if fits {
                if let Some(lack) = segments.lacks_room(&queue, log_bytes_max) {
                    drop(queue);
                    self.find(lack)?;
                    queue = segments.queue.lock();
                    continue;
                }
                self.check_reads(&queue, reads)?;
                // First: a keyspace that is dropped meanwhile has no memtables.
                let watched = if queue.had_gaps { self.watched() } else { Vec::new() };
                let memtables = self.memtables(&mut queue)?;
                let slot = queue.take(count, op_bytes, memtables);
                if recent.is_on() {
                    recent.record(buf, slot.first_seq, |id| self.pipeline.order_of(id));
                }
                break (slot, watched);
            }
            match self.switch_largest(&mut queue, stay) {
                Switch::Done => due = true,
                Switch::NeedLog => {
                    drop(queue);
                    let pause = host.pause_begin(PauseReason::WalPrepare);
                    // A close waits for it, or it is refused: else it would tell the
                    // manifest of a log behind the record of the clean close.
                    let made = workers.begin().and_then(|_underway| segments.prepare());
                    host.pause_end(pause);
                    // Where there is none, the log goes on in its segment.
                    stay = !made?;
                    queue = segments.queue.lock();
                }
                Switch::NeedFlush => {
                    drop(queue);
                    self.wait_for_flush(|queue| self.frozen_share_is_full(queue))?;
                    queue = segments.queue.lock();
                }
            }
        };
        due |= segments.asks_for_spare(&mut queue);
        let (given, room) = (slot.last_seq + 1 - slot.first_seq, slot.end - slot.offset);
        let asked = u64::from(count);
        debug_invariant!(Q1, given == asked, "{given} sequence numbers for {count} operations");
        let fits = room <= log_bytes_max;
        debug_invariant!(Q1, fits, "{room} bytes of the log, of {log_bytes_max} at the most");
        let is_large = limit < queue.unflushed.active_bytes();
        Ok(Reserved { slot, due, is_large, watched })
    }

    /// Whether nothing of what was read was written since.
    fn check_reads(&mut self, queue: &QueueState, reads: Option<&ReadSet>) -> Result<()> {
        let Some(reads) = reads else { return Ok(()) };
        // Where nobody has written anything, nobody need have recorded it.
        if reads.is_as_of(queue.last_seq()) {
            return Ok(());
        }
        self.verdict = self.pipeline.recent.check(reads);
        match self.verdict {
            Verdict::Unchanged => Ok(()),
            _ => Err(Error::new(ErrorKind::Conflict, "what was read was written since")),
        }
    }

    /// Makes a writer wait while `is_full`, for a flush to change that; or until
    /// the flush finds no room on the device, which nobody knows the end of.
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

    /// The touched keyspaces that have gaps.
    #[cold]
    fn watched(&self) -> Vec<Arc<Tree>> {
        let trees = self.touched.iter().filter_map(|touch| self.pipeline.tree(touch.id).ok());
        trees.filter(|tree| tree.reads.gaps.is_armed()).collect()
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
        let shares = &self.pipeline.host.shares;
        let share = shares.memtables_bytes();
        frozen > 0 && frozen + 2 * shares.memtable_bytes > share
    }

    /// Freezes the largest active memtables, and those that pin old log segments.
    /// `stay`: the log may go on in its segment.
    fn switch_largest(&self, queue: &mut QueueState, stay: bool) -> Switch {
        if self.frozen_share_is_full(queue) {
            return Switch::NeedFlush;
        }
        let largest = queue.largest();
        if largest.is_empty() {
            queue.unflushed.forget_active();
            return Switch::Done;
        }
        let segments = &self.pipeline.segments;
        if segments.wants_new_log(largest.len(), queue) && !segments.rotate(queue) && !stay {
            return Switch::NeedLog;
        }
        let before = queue.unflushed.active_bytes();
        largest.iter().for_each(|tree| queue.freeze(tree));
        queue.freeze_pinning();
        let after = queue.unflushed.active_bytes();
        debug_assert!(after < before, "memtables were frozen, and {after} bytes are active");
        Switch::Done
    }

    /// Makes room in the log for a record, unless too little would be left for the
    /// tables of what the log then holds: what was written could not be flushed,
    /// and not replayed by an open either. Before a write is refused for that, what
    /// is in memory is flushed, once, which lets the log go.
    ///
    /// # Errors
    /// `NoSpace` for this write alone: nothing of it was written.
    #[cold]
    fn find(&mut self, lack: (Arc<Wal>, u64)) -> Result<()> {
        let Pipeline { host, workers, segments, .. } = self.pipeline;
        let refusal = match segments.too_little_is_left(&lack) {
            Some(refusal) => refusal,
            None => match segments.make_room(lack) {
                Err(error) if error.kind() == ErrorKind::NoSpace => error,
                made => return made,
            },
        };
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

    /// The error of a write that finds memory full of what cannot be flushed.
    fn refused_for_shortage(&self) -> Option<Error> {
        let cause = self.pipeline.stuck_flush()?;
        let text = "nothing was written: memory is full of what cannot be flushed yet, since";
        Some(cause.context(text))
    }
}
