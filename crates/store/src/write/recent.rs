//! The writes since the oldest transaction began: what a commit is admitted by.
//!
//! A transaction commits only if nothing that it read was written since it was
//! read. Commits are ordered by the commit queue's lock, and so under that lock
//! a writer is recorded when it gets its slot, and a transaction's reads are
//! checked when it gets its own: no write comes between check and slot
//! (H. T. Kung and J. T. Robinson, "On Optimistic Methods for Concurrency
//! Control", backward validation).
//!
//! Recording costs writers a map's insertion under that lock, so it is off while
//! there are no transactions, but for a while after the last one. Memory is
//! bounded: what is oldest is forgotten, and a transaction from before that is
//! told so, which then compares what it read by itself.
//!
//! Invariant: whatever was given out after `known_from`, and not forgotten as older than
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

/// What a write takes besides its key, about.
const ENTRY_BYTES: usize = 128;

/// What a commit is told of its reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing of it was written since.
    Unchanged,
    /// The first key found that was.
    Changed { keyspace: KeyspaceId, key: Vec<u8> },
    /// Writes since then are not all known any more.
    Unknown,
}

/// What was written to one keyspace.
struct Writes {
    order: KeyOrder,
    /// The last sequence number of each key.
    keys: BTreeMap<OrderedKey, SeqNo>,
    ranges: Vec<(Vec<u8>, Vec<u8>, SeqNo)>,
}

#[derive(Default)]
struct State {
    /// How many transactions read at each sequence number.
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
    state: Mutex<State>,
    bytes_max: usize,
}

impl RecentWrites {
    /// A record of at most so many bytes, off.
    pub fn new(bytes_max: usize) -> RecentWrites {
        let state = Mutex::new(lock_ranks::RECENT_WRITES, State::default());
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

    /// A transaction reads at `seq` from here on.
    ///
    /// # Errors
    /// The sequence number from which on writes are known, if that is later; `None`
    /// where the record is off.
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

    /// A transaction that read at `seq` is over.
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
            *state = State::default();
            self.is_on.store(false, Ordering::Relaxed);
            return;
        }
        for op in buf.ops() {
            state.note(op.keyspace, op.kind, (op.key, op.value), seq, &order_of);
            seq += 1;
        }
        while state.bytes > self.bytes_max && state.forget_oldest() {}
    }

    /// Records an ingestion at `seq` as a write of all keys from the first to the last that it
    /// has. Under the queue's lock.
    pub(crate) fn record_ingestion(
        &self,
        id: KeyspaceId,
        order: &KeyOrder,
        (first, last): (&[u8], &[u8]),
        seq: SeqNo,
    ) {
        let mut state = self.state.lock();
        // The end of a range is not of it.
        unless_mutant!(IngestionForgotten, {
            state.note(id, Kind::RangeDelete, (first, last), seq, |_| order.clone());
            state.note(id, Kind::Put, (last, &[]), seq, |_| order.clone());
        });
        while state.bytes > self.bytes_max && state.forget_oldest() {}
    }

    /// Forgets all, for a queue that gives sequence numbers after `visible` out again, while
    /// nobody writes.
    pub fn forget_after(&self, visible: SeqNo) {
        let mut state = self.state.lock();
        let readers = std::mem::take(&mut state.readers);
        *state = State { readers, known_from: visible, ..State::default() };
    }

    /// Whether what was read is as it was, up to what was recorded last. Under the queue's
    /// lock that is all that was written.
    pub fn check(&self, reads: &ReadSet) -> Verdict {
        let state = self.state.lock();
        // It was asked for by nobody that began with it.
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

    /// Whether it is known of all that was read what was written since.
    pub fn knows(&self, reads: &ReadSet) -> bool {
        let state = self.state.lock();
        self.is_on() && reads.is_as_of(state.known_from)
    }

    /// Bytes that the record takes, about.
    pub fn memory_bytes(&self) -> usize {
        self.state.lock().bytes
    }
}

impl State {
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

    /// Forgets what no transaction asks for: all that is as old as the oldest.
    fn forget_unread(&mut self) {
        // Without a reader all stays for a while: the next one finds the record on.
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
    /// When a key was last written, 0 if it is not known to be.
    fn last(&self, key: &OrderedKey) -> SeqNo {
        let put = self.keys.get(key as &dyn AsOrderedKey).copied().unwrap_or(0);
        let holds = |(from, to, _): &&(Vec<u8>, Vec<u8>, SeqNo)| {
            self.order.compare(from, &key.key).is_le() && self.order.compare(&key.key, to).is_lt()
        };
        self.ranges.iter().filter(holds).map(|range| range.2).max().unwrap_or(0).max(put)
    }

    /// A key that was written in a range after it was read.
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
