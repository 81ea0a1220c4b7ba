//! Where a writer waits: for its pace, for memory, for the next log segment.
//!
//! Memory: the active memtables of all keyspaces together hold at most one
//! memtable's share of the budget. When a write would pass it, the largest is
//! frozen and handed to a flush, and the log goes on, where that is of use, in
//! a new segment that was made ahead. A writer waits only if the frozen ones
//! have not been flushed yet. A batch larger than a memtable has one to itself,
//! and waits until it fits beside the frozen ones. Every wait is recorded with
//! its reason.

use crate::core::Core;
use crate::memtable::{LIST_BYTES, Memtable};
use crate::stats::PauseReason;
use crate::tree::Tree;
use crate::write::batch::Touched;
use crate::write::queue::{Memtables, QueueState, Slot};
use std::sync::Arc;
use windrow_base::{Result, mutant};
use windrow_env::sync::atomic::Ordering;

/// Range deletes that fill a memtable, however short: every read asks all of
/// them, by the chunk.
const RANGE_DELETES_MAX: usize = 8192;

/// Logs beside the active one that idle keyspaces may keep.
const OLD_LOGS_MAX: usize = 4;

/// Memtables are frozen until they hold this part of all that is active: where
/// there are many small ones, some at a time, which are flushed together.
const FROZEN_PART: usize = 16;

/// Room for a write.
pub(crate) struct Reserved {
    pub(crate) slot: Slot,
    /// Memtables were switched for it, or the next log is due: there is work to
    /// schedule, but not before the slot is published, which all behind it wait for.
    pub(crate) due: bool,
    /// It takes more than one memtable's size, which reads were lent: they give it
    /// up before it is filled.
    pub(crate) is_large: bool,
}

/// What came of an attempt to switch memtables.
enum Switch {
    Done,
    /// No spare log segment is ready, and none was tried to make.
    NeedLog,
    /// The frozen memtables fill their share.
    NeedFlush,
}

impl Core {
    /// Slows the writer in proportion to the debt of the tree.
    #[inline]
    pub(crate) fn make_way(&self, bytes: usize) {
        let owed_ns = self.pace.owe(bytes);
        if owed_ns > 0 {
            self.sleep_for_debt(owed_ns);
        }
        if self.pace.is_stopped() {
            self.pause(PauseReason::Level0Deep, || !self.pace.is_stopped());
        }
    }

    #[cold]
    fn sleep_for_debt(&self, ns: u64) {
        let pause = self.pause_begin(PauseReason::Debt);
        if !self.env.jobs.step() {
            self.env.clock.sleep_ns(ns);
        }
        self.pause_end(pause);
    }

    /// What a write counts for in the memtable of a keyspace. Range deletes fill
    /// it by their number as well, but no more than once.
    fn charge(&self, touch: &Touched) -> usize {
        let limit = self.shares.memtable_bytes as usize;
        let by_number = touch.bytes + touch.range_deletes * (limit / RANGE_DELETES_MAX);
        touch.bytes.max(by_number.min(limit))
    }

    /// What lists the batch would make take, one of them aside. A write to one
    /// keyspace does not ask: [`Core::memtables_for`] counts it all the same.
    fn lists_bytes(&self, touched: &[Touched]) -> usize {
        if touched.len() < 2 {
            return 0;
        }
        let is_empty = |touch: &&Touched| {
            let tree = self.tree(touch.id);
            tree.is_ok_and(|tree| tree.view().memtable.first_wal().is_none())
        };
        touched.iter().filter(is_empty).count().saturating_sub(1) * LIST_BYTES
    }

    /// Whether memtables would hold more than they may with `bytes` in the active
    /// ones, and a flush can help.
    fn is_beyond_all(&self, bytes: usize) -> bool {
        let frozen = self.frozen_bytes.load(Ordering::Acquire);
        let most = self.shares.memtables_bytes_max(self.settings.memory_bytes);
        frozen > 0 && (frozen + bytes) as u64 > most && !mutant!(MemoryUnbounded)
    }

    /// Gives out a slot, after making room for it in the memtables.
    pub(crate) fn reserve(
        &self,
        touched: &[Touched],
        count: u64,
        log_bytes: u64,
    ) -> Result<Reserved> {
        let need: usize = touched.iter().map(|touch| self.charge(touch)).sum();
        let mut queue = self.queue.lock();
        let (mut due, mut stay, mut flushed) = (false, false, false);
        let limit = self.shares.memtable_bytes as usize;
        let slot = loop {
            self.latch.check()?;
            self.workers.check_open()?;
            let active = queue.active_bytes;
            let need = need + self.lists_bytes(touched);
            let fits = active == 0 || active + need <= limit;
            if fits && self.is_beyond_all(active + need) {
                drop(queue);
                self.wait_for_flush(|| self.is_beyond_all(active + need))?;
                queue = self.queue.lock();
                continue;
            }
            if fits {
                if let Some(lack) = self.lacks_room(&queue, log_bytes) {
                    drop(queue);
                    self.find_room(lack, &mut flushed)?;
                    queue = self.queue.lock();
                    continue;
                }
                let memtables = self.memtables_for(touched, &mut queue)?;
                break queue.take(count, log_bytes, memtables);
            }
            match self.switch_largest(&mut queue, stay) {
                Switch::Done => due = true,
                Switch::NeedLog => {
                    drop(queue);
                    let pause = self.pause_begin(PauseReason::WalPrepare);
                    // A close waits for it, or it is refused: else it would tell the
                    // manifest of a log behind the record of the clean close.
                    let made = self.workers.begin().and_then(|_underway| self.prepare_wal());
                    self.pause_end(pause);
                    // Where there is none, the log goes on in its segment.
                    stay = !made?;
                    queue = self.queue.lock();
                }
                Switch::NeedFlush => {
                    drop(queue);
                    self.wait_for_flush(|| self.frozen_share_is_full())?;
                    queue = self.queue.lock();
                }
            }
        };
        due |= self.asks_for_spare(&mut queue);
        let is_large = limit < queue.active_bytes;
        Ok(Reserved { slot, due, is_large })
    }

    /// Makes a writer wait while `is_full`, for a flush to change that; or until
    /// the flush finds no room on the device, which nobody knows the end of.
    ///
    /// # Errors
    /// `NoSpace`: the last flush has failed so, and none is under way.
    fn wait_for_flush(&self, is_full: impl Fn() -> bool) -> Result<()> {
        self.schedule();
        if let Some(refusal) = self.refused_for_shortage() {
            return Err(refusal);
        }
        let is_over = || !is_full() || self.stuck_flush().is_some();
        self.pause(PauseReason::MemtablesFull, is_over);
        Ok(())
    }

    /// The active memtables of the touched keyspaces, with their bytes counted.
    fn memtables_for(&self, touched: &[Touched], queue: &mut QueueState) -> Result<Memtables> {
        let wal = queue.wal.number + u64::from(mutant!(FirstLogTooNew));
        let mut take = |touch: &Touched| -> Result<Arc<Memtable>> {
            let tree = self.tree(touch.id)?;
            let memtable = tree.view().memtable.clone();
            let is_first = memtable.first_wal().is_none();
            let bytes = self.charge(touch) + if is_first { LIST_BYTES } else { 0 };
            memtable.reserve(bytes, wal);
            if is_first {
                queue.unflushed.wrote(&tree, &memtable);
            }
            queue.active_bytes += bytes;
            Ok(memtable)
        };
        if let [one] = touched {
            return Ok(Memtables::One(one.id, take(one)?));
        }
        // All must exist before any byte is counted.
        for touch in touched {
            self.tree(touch.id)?;
        }
        let many = touched.iter().map(|t| Ok((t.id, take(t)?))).collect::<Result<Vec<_>>>();
        let mut many = many?;
        many.sort_unstable_by_key(|(id, _)| *id);
        Ok(Memtables::Many(many))
    }

    /// Whether one more frozen memtable and a new active one would not fit. A
    /// single frozen one, however large, is always let through.
    fn frozen_share_is_full(&self) -> bool {
        let frozen = self.frozen_bytes.load(Ordering::Acquire) as u64;
        let share = self.shares.memtables_bytes();
        frozen > 0 && frozen + 2 * self.shares.memtable_bytes > share && !mutant!(MemoryUnbounded)
    }

    /// Freezes the largest active memtables, and those that pin old log segments.
    /// `stay`: the log may go on in its segment.
    fn switch_largest(&self, queue: &mut QueueState, stay: bool) -> Switch {
        if self.frozen_share_is_full() {
            return Switch::NeedFlush;
        }
        let largest = largest_of(queue);
        if largest.is_empty() {
            // Only dropped keyspaces held the bytes.
            queue.active_bytes = 0;
            return Switch::Done;
        }
        if self.wants_new_log(largest.len(), queue) && !self.rotate_wal(queue) && !stay {
            return Switch::NeedLog;
        }
        largest.iter().for_each(|tree| self.freeze(tree, queue));
        self.freeze_pinning(queue);
        Switch::Done
    }

    /// Whether the log is to go on in a new segment when so many active memtables
    /// are frozen: where that lets the old one go, or where it has grown. Each
    /// segment takes a memtable's room on the device, whatever it holds.
    pub(crate) fn wants_new_log(&self, leaving: usize, queue: &QueueState) -> bool {
        let pinned = queue.unflushed.active().len() > leaving;
        queue.wal_offset >= self.shares.memtable_bytes / 2 || !pinned
    }

    /// Freezes the memtables for whose sake more than so many old logs are
    /// kept: a keyspace that idles must not pin the log for ever.
    pub(crate) fn freeze_pinning(&self, queue: &mut QueueState) {
        if queue.older_wals.len() <= OLD_LOGS_MAX {
            return;
        }
        let Some((oldest, _)) = queue.older_wals.first() else {
            return;
        };
        let oldest = oldest.number;
        let pins =
            |tree: &&Arc<Tree>| tree.view().memtable.first_wal().is_some_and(|wal| wal <= oldest);
        let pinning: Vec<_> = queue.unflushed.active().filter(pins).cloned().collect();
        pinning.iter().for_each(|tree| self.freeze(tree, queue));
    }

    /// Freezes every active memtable that holds anything.
    pub(crate) fn freeze_all(&self, queue: &mut QueueState) {
        let active: Vec<_> = queue.unflushed.active().cloned().collect();
        active.iter().for_each(|tree| self.freeze(tree, queue));
    }

    /// Freezes a keyspace's active memtable. The caller holds the queue's lock,
    /// so every slot given out before is for the frozen one, and none after.
    pub(crate) fn freeze(&self, tree: &Arc<Tree>, queue: &mut QueueState) {
        let frozen = tree.switch_memtable(queue.last_seq());
        queue.unflushed.froze(tree, &frozen);
        let bytes = frozen.reserved_bytes();
        queue.active_bytes = queue.active_bytes.saturating_sub(bytes);
        self.frozen_bytes.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// The keyspaces with the largest active memtables: as few as hold a part of all.
fn largest_of(queue: &QueueState) -> Vec<Arc<Tree>> {
    let bytes = |tree: &Arc<Tree>| tree.view().memtable.reserved_bytes();
    let mut trees: Vec<(usize, &Arc<Tree>)> =
        queue.unflushed.active().map(|tree| (bytes(tree), tree)).collect();
    // Stable: by id where they are as large.
    trees.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    let enough = queue.active_bytes / FROZEN_PART;
    let mut sum = 0;
    let is_due = |&(bytes, _): &(usize, &Arc<Tree>)| {
        let due = sum == 0 || sum < enough;
        sum += bytes;
        due
    };
    trees.into_iter().take_while(is_due).map(|(_, tree)| tree.clone()).collect()
}
