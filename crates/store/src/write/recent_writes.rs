//! The writes since the oldest transaction began: the record by which a commit is admitted.
//!
//! A transaction commits only if none of the keys that it read was written since it read them.
//! Commits are ordered by the commit queue's lock. Under that lock a write is recorded when it gets
//! its slot, and a transaction's reads are checked when it gets its own: no write comes between
//! check and slot (H. T. Kung and J. T. Robinson, "On Optimistic Methods for Concurrency Control",
//! backward validation).
//!
//! Recording costs writers a map's insertion under that lock, so it is off while there are no
//! transactions, except for a while after the last one. Memory is bounded: the oldest writes are
//! forgotten, and a transaction from before that is told so, which then compares its reads by
//! itself.
//!
//! Invariant: every write that was given out after `known_from`, and not forgotten as older than
//! every transaction, is recorded.
//!
//! Owns: the record. Never does: read the tree; wait.

use super::ordered_key::{AsOrderedKey, OrderedKey};
use super::read_set::{ReadRange, ReadSet, SpaceReads};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use windrow_base::{KeyOrder, KeyspaceId, Kind, SeqNo, unless_mutant};
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_format::batch::BatchBuf;
use windrow_read::lock_ranks;

/// Writes that are recorded after the last transaction ended before recording ends.
const LINGER: usize = 4096;

/// Bytes that a write takes besides its key, about.
const ENTRY_BYTES: usize = 128;

/// The answer to a commit about its reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None of them was written since.
    Unchanged,
    /// The first key found that was written since.
    Changed { keyspace: KeyspaceId, key: Vec<u8> },
    /// Not all writes since then are known any more.
    Unknown,
}

/// The recorded writes to one keyspace.
struct Writes {
    order: KeyOrder,
    /// The last sequence number of each key.
    keys: BTreeMap<OrderedKey, SeqNo>,
    ranges: Vec<(Vec<u8>, Vec<u8>, SeqNo)>,
}

#[derive(Default)]
struct RecentWritesState {
    /// The number of transactions that read at each sequence number.
    readers: BTreeMap<SeqNo, usize>,
    known_from: SeqNo,
    spaces: HashMap<KeyspaceId, Writes>,
    /// In the order in which they were written.
    log: VecDeque<(SeqNo, KeyspaceId, OrderedKey)>,
    bytes: usize,
}

/// The record of recent writes. All but `is_on` and the end of a transaction happens
/// under the commit queue's lock.
pub struct RecentWrites {
    is_on: AtomicBool,
    state: Mutex<RecentWritesState>,
    bytes_max: usize,
}

impl RecentWrites {
    /// Makes a record of at most `bytes_max` bytes, off.
    pub fn new(bytes_max: usize) -> RecentWrites {
        let state = Mutex::new(lock_ranks::RECENT_WRITES, RecentWritesState::default());
        RecentWrites { is_on: AtomicBool::new(false), state, bytes_max }
    }

    /// Whether writers are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Has every write after `last_given` recorded. Under the queue's lock.
    pub(crate) fn switch_on(&self, last_given: SeqNo) {
        let mut state = self.state.lock();
        if !self.is_on() {
            state.known_from = last_given;
            self.is_on.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that a transaction reads at `seq` from here on.
    ///
    /// # Errors
    /// The sequence number from which on writes are known, if that is later; `None` if the record
    /// is off.
    pub fn begin(&self, seq: SeqNo) -> Result<(), Option<SeqNo>> {
        let mut state = self.state.lock();
        if !self.is_on() {
            return Err(None);
        }
        if state.known_from > seq {
            return Err(Some(state.known_from));
        }
        *state.readers.entry(seq).or_default() += 1;
        Ok(())
    }

    /// Notes that a transaction that read at `seq` is over.
    pub fn end(&self, seq: SeqNo) {
        let mut state = self.state.lock();
        if let Some(count) = state.readers.get_mut(&seq) {
            *count -= 1;
            if *count == 0 {
                state.readers.remove(&seq);
                state.forget_unread();
            }
        }
    }

    /// Records a batch that was given sequence numbers from `seq` on. Under the queue's lock.
    pub fn record(
        &self,
        buf: &BatchBuf,
        mut seq: SeqNo,
        order_of: impl Fn(KeyspaceId) -> KeyOrder,
    ) {
        let mut state = self.state.lock();
        if state.readers.is_empty() && state.log.len() >= LINGER {
            *state = RecentWritesState::default();
            self.is_on.store(false, Ordering::Relaxed);
            return;
        }
        for op in buf.ops() {
            state.note(op.keyspace, op.kind, (op.key, op.value), seq, &order_of);
            seq += 1;
        }
        while state.bytes > self.bytes_max && state.forget_oldest() {}
    }

    /// Records an ingestion at `seq` as a write of all keys from its first to its last. Under the
    /// queue's lock.
    pub(crate) fn record_ingestion(
        &self,
        id: KeyspaceId,
        order: &KeyOrder,
        (first, last): (&[u8], &[u8]),
        seq: SeqNo,
    ) {
        let mut state = self.state.lock();
        // The end of a range is exclusive.
        unless_mutant!(IngestionForgotten, {
            state.note(id, Kind::RangeDelete, (first, last), seq, |_| order.clone());
            state.note(id, Kind::Put, (last, &[]), seq, |_| order.clone());
        });
        while state.bytes > self.bytes_max && state.forget_oldest() {}
    }

    /// Forgets all writes, for a queue that gives sequence numbers after `visible` out again, while
    /// no thread writes.
    pub fn forget_after(&self, visible: SeqNo) {
        let mut state = self.state.lock();
        let readers = std::mem::take(&mut state.readers);
        *state = RecentWritesState { readers, known_from: visible, ..RecentWritesState::default() };
    }

    /// Whether the reads are unchanged, up to the last recorded write. Under the queue's lock that
    /// is the last of all writes.
    pub fn check(&self, reads: &ReadSet) -> Verdict {
        let state = self.state.lock();
        // The transaction did not begin with the record on.
        if !self.is_on() {
            return Verdict::Unknown;
        }
        for (&id, reads) in &reads.spaces {
            let verdict = state.check(id, reads);
            if verdict != Verdict::Unchanged {
                return verdict;
            }
        }
        Verdict::Unchanged
    }

    /// Whether all writes since the first of the reads are known.
    pub fn knows(&self, reads: &ReadSet) -> bool {
        let state = self.state.lock();
        self.is_on() && reads.is_as_of(state.known_from)
    }

    /// Bytes that the record takes, about.
    pub fn memory_bytes(&self) -> usize {
        self.state.lock().bytes
    }
}

impl RecentWritesState {
    fn note(
        &mut self,
        id: KeyspaceId,
        kind: Kind,
        (key, value): (&[u8], &[u8]),
        seq: SeqNo,
        order_of: impl Fn(KeyspaceId) -> KeyOrder,
    ) {
        let new = || Writes { order: order_of(id), keys: BTreeMap::new(), ranges: Vec::new() };
        let writes = self.spaces.entry(id).or_insert_with(new);
        let ordered = OrderedKey::new(key, &writes.order);
        self.bytes += key.len() + ENTRY_BYTES;
        if kind == Kind::RangeDelete {
            self.bytes += key.len() + value.len();
            writes.ranges.push((key.to_vec(), value.to_vec(), seq));
        } else {
            writes.keys.insert(ordered.clone(), seq);
        }
        self.log.push_back((seq, id, ordered));
    }

    /// Forgets writes that no transaction asks for: all that are as old as the oldest one.
    fn forget_unread(&mut self) {
        // Without a reader all stay for a while: the next one finds the record on.
        let Some(&oldest) = self.readers.keys().next() else { return };
        while self.log.front().is_some_and(|(seq, ..)| *seq <= oldest) && self.forget_oldest() {}
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((seq, id, key)) = self.log.pop_front() else { return false };
        self.known_from = self.known_from.max(seq);
        self.bytes -= key.key.len() + ENTRY_BYTES;
        let Some(writes) = self.spaces.get_mut(&id) else { return true };
        if writes.keys.get(&key as &dyn AsOrderedKey) == Some(&seq) {
            writes.keys.remove(&key as &dyn AsOrderedKey);
        }
        if let Some(at) = writes.ranges.iter().position(|range| range.2 == seq) {
            let (from, to, _) = writes.ranges.swap_remove(at);
            self.bytes -= from.len() + to.len();
        }
        if writes.keys.is_empty() && writes.ranges.is_empty() {
            self.spaces.remove(&id);
        }
        true
    }

    fn check(&self, id: KeyspaceId, reads: &SpaceReads) -> Verdict {
        let oldest = |at: SeqNo| at < self.known_from;
        if reads.keys.values().any(|&at| oldest(at)) || reads.ranges.iter().any(|r| oldest(r.seq)) {
            return Verdict::Unknown;
        }
        let Some(writes) = self.spaces.get(&id) else { return Verdict::Unchanged };
        let changed = |key: &[u8]| Verdict::Changed { keyspace: id, key: key.to_vec() };
        for (key, &at) in &reads.keys {
            if writes.last(key) > at {
                return changed(&key.key);
            }
        }
        for range in &reads.ranges {
            if let Some(key) = writes.first_in(range) {
                return changed(key);
            }
        }
        Verdict::Unchanged
    }
}

impl Writes {
    /// Returns when a key was last written, 0 if no write of it is known.
    fn last(&self, key: &OrderedKey) -> SeqNo {
        let put = self.keys.get(key as &dyn AsOrderedKey).copied().unwrap_or(0);
        let holds = |(from, to, _): &&(Vec<u8>, Vec<u8>, SeqNo)| {
            self.order.compare(from, &key.key).is_le() && self.order.compare(&key.key, to).is_lt()
        };
        self.ranges.iter().filter(holds).map(|range| range.2).max().unwrap_or(0).max(put)
    }

    /// Returns a key that was written in a range after it was read.
    fn first_in(&self, range: &ReadRange) -> Option<&[u8]> {
        let order = &self.order;
        let is_empty = match (&range.lower, &range.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => order.compare(lower, upper).is_gt(),
            (Bound::Included(lower) | Bound::Excluded(lower), upper) => {
                let (Bound::Included(upper) | Bound::Excluded(upper)) = upper else { return None };
                order.compare(lower, upper).is_ge()
            }
        };
        if is_empty {
            return None;
        }
        let ordered =
            |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| OrderedKey::new(key, order));
        let mut keys = self.keys.range((ordered(&range.lower), ordered(&range.upper)));
        let found = keys.find(|(_, seq)| **seq > range.seq).map(|(key, _)| &*key.key);
        let overlaps = |(from, to, seq): &&(Vec<u8>, Vec<u8>, SeqNo)| {
            let ends_before = match &range.lower {
                Bound::Unbounded => false,
                Bound::Included(lower) | Bound::Excluded(lower) => order.compare(to, lower).is_le(),
            };
            let begins_after = match &range.upper {
                Bound::Unbounded => false,
                Bound::Included(upper) => order.compare(from, upper).is_gt(),
                Bound::Excluded(upper) => order.compare(from, upper).is_ge(),
            };
            *seq > range.seq && !ends_before && !begins_after
        };
        found.or_else(|| self.ranges.iter().find(overlaps).map(|range| &*range.0))
    }
}
