//! The pipeline: the path of a write into a table, from the commit queue to the flush.
//!
//! Owns: the keyspaces that are written to, the commit queue and the segments of the log, the pace
//! of writers, the account of memtable bytes (`unflushed_writes.rs`), and the reason for which
//! waiting memtables get no flush. Never does: flush, or call the scheduler: it signals
//! ([`Workers::kick`]) that work may be due.

use crate::host::Host;
use crate::host::shortage::Retry;
use crate::host::workers::{Kick, Workers};
use crate::tree::Tree;
use crate::tree::keyspace_list::{Keyspaces, Trees};
use crate::write::key_locks::KeyLocks;
use crate::write::observers::Observers;
use crate::write::pace::Pace;
use crate::write::queue::{Queue, QueueState};
use crate::write::recent_writes::Verdict;
use crate::write::segments::Segments;
use crate::write::unflushed_writes::Frozen;
use crate::write::write_steps::WriteSteps;
use std::sync::{Arc, Weak};
use windrow_base::{Error, ErrorKind, KeyspaceId, Result, SeqNo, check_invariant, debug_invariant};
use windrow_env::sync::atomic::Ordering;
use windrow_env::sync::{Guard, Mutex};
use windrow_read::cache::Caches;
use windrow_read::lock_ranks;
use windrow_read::memtable::Memtable;
use windrow_read::read::view::ReadView;
use windrow_read::stats::PauseReason;

/// The part of the memory budget that the record of recent writes takes at most: one in this.
const RECENT_PART: u64 = 32;

/// The path of a write into a table.
pub struct Pipeline {
    pub host: Arc<Host>,
    pub workers: Arc<Workers>,
    caches: Caches,
    pub segments: Segments,
    pub pace: Pace,
    pub keyspaces: Keyspaces,
    /// The observers, which are told of each write.
    pub observers: Observers,
    /// Those who are told whenever an eighth of a memtable was written.
    pub steps: WriteSteps,
    /// Locks by which transactions wait for each other, if they ask for that.
    pub key_locks: KeyLocks,
    /// When flushes that found something run out are tried again.
    pub(crate) flush_retry: Mutex<Retry>,
}

impl Pipeline {
    /// Makes the pipeline of a database with these keyspaces, by id ascending. From here on its
    /// writers are woken when writing goes off.
    pub fn new(
        (host, workers): (Arc<Host>, Arc<Workers>),
        caches: Caches,
        segments: Segments,
        trees: &[Arc<Tree>],
    ) -> Arc<Pipeline> {
        let ascend = trees.windows(2).all(|pair| pair[0].id < pair[1].id);
        debug_assert!(ascend, "keyspaces are not in the order of their ids");
        let pipeline = Arc::new(Pipeline {
            workers,
            caches,
            segments,
            pace: Pace::new(host.settings.pace_delay_us_max),
            keyspaces: Keyspaces::new(trees),
            key_locks: KeyLocks::new(),
            observers: Observers::new((host.settings.memory_bytes / RECENT_PART) as usize),
            steps: WriteSteps::default(),
            flush_retry: Mutex::new(lock_ranks::FLUSH_RETRY, Retry::default()),
            host,
        });
        // Weak: memtables that wait for their flush lead back to the host, by the table cache.
        let writers = Arc::downgrade(&pipeline);
        pipeline.host.wake_writers_by(move || {
            if let Some(writers) = writers.upgrade() {
                writers.segments.wake_all();
            }
        });
        let gaps = Arc::downgrade(&pipeline);
        pipeline.host.last_given.ask_by(move || Some(gaps.upgrade()?.last_before_gap()));
        pipeline
    }

    /// The commit queue.
    #[inline]
    pub fn queue(&self) -> &Queue {
        &self.segments.queue
    }

    /// The sequence number up to which reads may look: see [`Queue::visible`].
    #[inline]
    pub fn visible(&self) -> SeqNo {
        self.segments.queue.visible()
    }

    /// Returns a view of a keyspace, and the sequence number at which to read it. The view comes
    /// first (see `write/queue.rs`). Both are taken again if an ingestion was installed since: it
    /// may be published by now, and the view lack its tables.
    #[inline]
    pub fn at<V>(&self, view: impl Fn() -> V, seq_at: impl Fn(&V, SeqNo) -> SeqNo) -> (V, SeqNo) {
        loop {
            let before = self.observers.ingestions();
            let view = view();
            let seq = seq_at(&view, self.visible());
            if self.observers.ingestions() == before {
                return (view, seq);
            }
        }
    }

    /// The last sequence number that was given out before a gap is listed. A writer that gets a
    /// later one looks for gaps.
    fn last_before_gap(&self) -> SeqNo {
        let queue = self.queue().lock();
        self.observers.watch_gaps();
        queue.last_seq()
    }

    /// Slows a writer of this many bytes in proportion to the debt of the tree.
    #[inline]
    pub fn pay(&self, bytes: usize) {
        let owed_ns = self.pace.owe(bytes);
        if owed_ns > 0 {
            self.sleep_for_debt(owed_ns);
        }
    }

    #[cold]
    fn sleep_for_debt(&self, ns: u64) {
        let host = &self.host;
        let pause = host.pause_begin(PauseReason::Debt);
        if !host.env.jobs.step() {
            host.env.clock.sleep_ns(ns);
        }
        host.pause_end(pause);
    }

    /// The keyspaces that are open.
    #[inline]
    pub fn trees(&self) -> Guard<Arc<Trees>> {
        self.keyspaces.load()
    }

    /// The keyspace with this id.
    ///
    /// # Errors
    /// `Closed` if it was dropped.
    #[inline]
    pub fn tree(&self, id: KeyspaceId) -> Result<Arc<Tree>> {
        self.trees().get(id).cloned().ok_or_else(|| {
            let text = format!("keyspace {id}, which a batch writes to, was dropped");
            Error::new(ErrorKind::Closed, text)
        })
    }

    /// Has all writes recorded from here on, if they are not, and returns once all that had a
    /// number before are visible: a transaction that begins now sees them.
    ///
    /// # Errors
    /// `ReadOnly` if writing is off.
    pub fn record_writes(&self, known_from: Option<SeqNo>) -> Result<()> {
        let last_given = match known_from {
            Some(seq) => seq,
            None => {
                let queue = self.queue().lock();
                self.observers.recent.switch_on(queue.last_seq());
                queue.last_seq()
            }
        };
        self.queue().wait_visible(last_given, &self.host.write_state)
    }

    /// The error of a write whose reads were not admitted.
    #[cold]
    pub fn conflict(&self, verdict: Verdict) -> Error {
        let text = match verdict {
            Verdict::Changed { keyspace, key } => {
                let tree = self.trees().get(keyspace).cloned();
                let name = tree.map_or_else(|| keyspace.to_string(), |tree| tree.name.to_string());
                format!(
                    "key \"{}\" of keyspace `{name}` was written since the transaction read it: \
                     run the transaction again",
                    key.escape_ascii()
                )
            }
            _ => "much was written since the transaction read, and it is not known what: run the \
                  transaction again"
                .to_owned(),
        };
        Error::new(ErrorKind::Conflict, text)
    }

    /// Memory that is held for transactions, besides their own writes and reads.
    pub fn transactions_bytes(&self) -> u64 {
        (self.observers.recent.memory_bytes() + self.key_locks.memory_bytes()) as u64
    }

    /// Returns once all writes that had a slot are visible: a reader then sees the write that its
    /// conflict was with.
    ///
    /// # Errors
    /// `ReadOnly` if writing is off.
    pub fn wait_for_given(&self) -> Result<()> {
        let last_given = self.queue().lock().last_seq();
        self.queue().wait_visible(last_given, &self.host.write_state)
    }

    /// Size at which a memtable is frozen now.
    #[inline]
    pub(super) fn memtable_bytes(&self) -> u64 {
        self.caches.read_memory.memtable_bytes()
    }

    /// Gives reads the memory that memtables and merges do not use.
    pub(crate) fn share_memory(&self) {
        let queue = self.queue().lock();
        self.count_memory(&queue, 0);
        drop(queue);
        self.give_to_reads();
    }

    /// Counts the memory of memtables and of merges. Leaves out `less_bytes` of the frozen ones.
    fn count_memory(&self, queue: &QueueState, less_bytes: u64) {
        let shares = &self.host.shares;
        let active = queue.unflushed.active_bytes() as u64;
        let frozen = (queue.unflushed.frozen_bytes() as u64).saturating_sub(less_bytes);
        // The active ones fill without a check, if they do not lend their unused memory.
        let full = active.max(shares.memtable_bytes);
        let used = shares.memtables_used(full, frozen, self.host.settings.memory_bytes);
        let beyond = used.saturating_sub(shares.memtables_bytes());
        let counted = (shares.active_counted(active), used.saturating_sub(full));
        let merges = self.workers.merges_running.load(Ordering::Acquire);
        let merge_bytes = shares.merges_used(merges, self.workers.merges_max());
        self.caches.read_memory.count(counted, merge_bytes, beyond);
    }

    fn give_to_reads(&self) {
        let Caches { tables, read_memory, .. } = &self.caches;
        read_memory.share(tables.used_bytes());
    }

    /// The error for which frozen memtables stay in memory, if the last flush has failed for a
    /// shortage and none is under way.
    pub fn stuck_flush(&self) -> Option<Error> {
        let error = self.flush_retry.lock().error().cloned()?;
        self.queue().lock().unflushed.is_stuck().then_some(error)
    }

    /// Writes a keyspace's memtables to tables, and waits for it.
    pub fn flush_tree(&self, tree: &Arc<Tree>) -> Result<()> {
        self.flush_tree_while(tree, || Ok(()))
    }

    /// Writes a keyspace's memtables to tables, for work that a close waits for: no flush begins
    /// once the database is closing, and the close flushes only when that work is over.
    ///
    /// # Errors
    /// As [`Pipeline::flush_tree`]; `Closed`.
    pub fn flush_tree_unless_closing(&self, tree: &Arc<Tree>) -> Result<()> {
        self.flush_tree_while(tree, || self.workers.check_open())
    }

    fn flush_tree_while(&self, tree: &Arc<Tree>, check: impl Fn() -> Result<()>) -> Result<()> {
        self.host.write_state.check()?;
        let mut queue = self.queue().lock();
        self.host.write_state.check()?;
        self.workers.check_open()?;
        if tree.is_dropped() {
            // The drop took its bytes from the account, under this lock.
            return Ok(());
        }
        if tree.view().memtable.reserved_bytes() > 0 {
            // The log goes on: records of other keyspaces stay in it.
            if self.segments.wants_new_log(1, &queue) {
                self.segments.rotate(&mut queue);
            }
            queue.freeze(tree);
            queue.freeze_pinning();
        }
        let left = tree.view().memtable.reserved_bytes();
        let newest = tree.view().frozen.first().cloned();
        let is_listed = |newest: &Arc<Memtable>| queue.unflushed.has_frozen(newest);
        debug_invariant!(
            I4,
            newest.as_ref().is_none_or(is_listed),
            "no flush will look for a memtable of `{}`",
            tree.name
        );
        drop(queue);
        self.check_frozen(left)?;
        let waiting = newest.map(|memtable| Frozen { tree: tree.clone(), memtable });
        self.await_flush(waiting.into_iter().collect(), check)
    }

    /// Writes the memtables of all keyspaces to tables, and waits for it.
    pub fn flush_all(&self) -> Result<()> {
        self.host.write_state.check()?;
        let mut queue = self.queue().lock();
        self.host.write_state.check()?;
        self.workers.check_open()?;
        if queue.unflushed.active().len() > 0 {
            self.segments.rotate(&mut queue);
            queue.freeze_all();
        }
        let left = queue.unflushed.active_bytes();
        let waiting = queue.unflushed.frozen().cloned().collect();
        drop(queue);
        self.check_frozen(left)?;
        self.await_flush(waiting, || Ok(()))
    }

    /// Checks that a freeze has left nothing in the active memtables.
    fn check_frozen(&self, left: usize) -> Result<()> {
        let checked = || {
            check_invariant!(I4, left == 0, "{left} bytes are left in active memtables");
            Ok(())
        };
        checked().inspect_err(|error| self.host.set_background_error(error))
    }

    /// Has memtables flushed, and waits until they are in tables, or `check` fails.
    fn await_flush(&self, mut waiting: Vec<Frozen>, check: impl Fn() -> Result<()>) -> Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        self.workers.kick(Kick::RetryNow);
        self.host.wait_until(|| {
            if let Err(error) = self.host.write_state.check().and_then(|()| check()) {
                return Some(Err(error));
            }
            while waiting.last().is_some_and(|last| !last.is_waiting()) {
                waiting.pop();
            }
            if waiting.is_empty() {
                return Some(Ok(()));
            }
            self.stuck_flush().map(Err)
        })
    }

    /// Drops a keyspace whose drop is durable: its memtables no longer count as waiting. Returns
    /// its last view, and the last sequence number that a write to it may have.
    pub fn drop_tree(&self, tree: &Tree) -> (Arc<ReadView>, SeqNo) {
        let mut queue = self.queue().lock();
        tree.mark_dropped(self.host.snapshots.next_id());
        self.keyspaces.remove(tree);
        let view = tree.pin();
        queue.unflushed.dropped(tree, &view);
        let is_gone = self.keyspaces.load().get(tree.id).is_none();
        debug_assert!(is_gone, "keyspace `{}` was dropped, and is there", tree.name);
        (view, queue.last_seq())
    }

    /// Counts a memtable that only old views hold as its readers' memory from here on.
    pub fn retire(&self, memtable: &Memtable) {
        if memtable.retire() {
            memtable.count_as(self.caches.blocks.take_over(memtable.allocated_bytes() as u64));
        }
    }

    /// Lets go of memtables that were claimed for a flush. Those that are in tables and that old
    /// views hold are retired; the others are freed. Each counts somewhere at any time, and never
    /// as the readers' while reads are not offered its memory: the cache would give way to it. Nor
    /// does another thread share memory out meanwhile, by the counts of that moment.
    pub fn let_go(&self, claimed: Vec<Frozen>) {
        let is_flushed = |frozen: &&Frozen| !frozen.is_waiting();
        let weak = |frozen: &Frozen| Arc::downgrade(&frozen.memtable);
        let flushed: Vec<Weak<Memtable>> = claimed.iter().filter(is_flushed).map(weak).collect();
        drop(claimed);
        // A thread that drops the keyspace meanwhile may retire some of them first.
        let is_ours = |memtable: &Arc<Memtable>| memtable.retire();
        let held: Vec<Arc<Memtable>> =
            flushed.iter().filter_map(Weak::upgrade).filter(is_ours).collect();
        if held.is_empty() {
            return;
        }
        let queue = self.queue().lock();
        let counted: usize = held.iter().map(|memtable| memtable.reserved_bytes()).sum();
        self.count_memory(&queue, counted as u64);
        self.give_to_reads();
        for memtable in &held {
            let bytes = memtable.allocated_bytes() as u64;
            memtable.count_as(self.caches.blocks.take_over(bytes));
        }
        drop(queue);
        // A memtable of a keyspace that was dropped a moment ago was not among the frozen ones.
        self.share_memory();
    }
}
