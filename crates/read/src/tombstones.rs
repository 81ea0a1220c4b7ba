//! The range tombstones of one memtable.
//!
//! They come in any order and nest in any way, and every read asks all of them. Chunk by chunk, as
//! they come, they are cut at each other's ends: between two neighbouring cuts, one word of bits
//! says which of a chunk's tombstones cover. So a chunk takes memory in proportion to its
//! tombstones however they nest, and a read one binary search for each chunk.
//!
//! Rejected: fragments as in a table, with the sequence numbers over each. Tombstones nested in
//! each other take ten times the memory in them.
//!
//! Owns: the tombstones, and the count of their bytes. Never does: choose which of them a flush
//! keeps.

use crate::lock_ranks;
use std::sync::Arc;
use windrow_base::{KeyOrder, SeqNo};
use windrow_env::sync::atomic::{AtomicUsize, Ordering};
use windrow_env::sync::{ArcSwap, Mutex};
use windrow_format::tombstone::{RangeTombstone, TombstoneParts};

/// Most tombstones of a chunk: the bits of a word.
const CHUNK: usize = u64::BITS as usize;

/// Memory of a tombstone that is not in a chunk yet, besides its keys.
const LOOSE_BYTES: usize = size_of::<RangeTombstone>() + 2 * 16;

/// Some tombstones, immutable.
pub struct TombstoneChunk {
    /// Their sequence numbers, ascending.
    seqs: Box<[SeqNo]>,
    /// The keys at which they begin and end: distinct, ascending, one after the other.
    keys: Box<[u8]>,
    /// The end of each of those keys in `keys`.
    key_ends: Box<[u32]>,
    /// The tombstones that cover the stretch from each key to the next: bit n is that of the n-th
    /// sequence number.
    covers: Box<[u64]>,
}

/// A range of keys around one over which the answer is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneSpan<'a> {
    /// Its first key; `None`: from the beginning.
    pub from: Option<&'a [u8]>,
    /// The first key after it; `None`: to the end.
    pub to: Option<&'a [u8]>,
    /// The newest tombstone over it.
    pub newest: Option<SeqNo>,
}

impl TombstoneChunk {
    /// Makes a chunk of at most [`CHUNK`] tombstones.
    fn build(list: &[RangeTombstone], order: &KeyOrder) -> TombstoneChunk {
        debug_assert!(list.len() <= CHUNK);
        let covering = list.iter().filter(|t| order.compare(&t.start, &t.end).is_lt());
        let mut sorted = Vec::from_iter(covering);
        sorted.sort_by_key(|t| t.seq);
        let ends = sorted.iter().flat_map(|t| [&t.start[..], &t.end[..]]);
        let mut cuts = Vec::from_iter(ends);
        cuts.sort_by(|a, b| order.compare(a, b));
        cuts.dedup_by(|a, b| order.equal(a, b));
        let mut covers = vec![0; cuts.len()];
        for (bit, t) in sorted.iter().enumerate() {
            let at = |key: &[u8]| cuts.partition_point(|cut| order.compare(cut, key).is_lt());
            covers[at(&t.start)..at(&t.end)].iter_mut().for_each(|cover| *cover |= 1 << bit);
        }
        let mut key_ends = Vec::with_capacity(cuts.len());
        let mut end = 0;
        key_ends.extend(cuts.iter().map(|cut| {
            end += cut.len() as u32;
            end
        }));
        TombstoneChunk {
            seqs: sorted.iter().map(|t| t.seq).collect(),
            keys: cuts.concat().into(),
            key_ends: key_ends.into(),
            covers: covers.into(),
        }
    }

    fn key(&self, i: usize) -> &[u8] {
        let from = if i == 0 { 0 } else { self.key_ends[i - 1] };
        &self.keys[from as usize..self.key_ends[i] as usize]
    }

    /// Returns the stretch around a user key as a read at `max_seq` sees it.
    pub(crate) fn stretch(
        &self,
        order: &KeyOrder,
        key: &[u8],
        max_seq: SeqNo,
    ) -> TombstoneSpan<'_> {
        let (mut lo, mut hi) = (0, self.covers.len());
        while lo < hi {
            let middle = lo.midpoint(hi);
            match order.compare(self.key(middle), key).is_le() {
                true => lo = middle + 1,
                false => hi = middle,
            }
        }
        let to = (lo < self.covers.len()).then(|| self.key(lo));
        let Some(at) = lo.checked_sub(1) else {
            return TombstoneSpan { from: None, to, newest: None };
        };
        let seen = self.seqs.partition_point(|&seq| seq <= max_seq);
        let mask = if seen == CHUNK { u64::MAX } else { (1 << seen) - 1 };
        let newest = (self.covers[at] & mask).checked_ilog2().map(|bit| self.seqs[bit as usize]);
        TombstoneSpan { from: Some(self.key(at)), to, newest }
    }

    /// The newest sequence number in it; 0 if it has no tombstone.
    pub(crate) fn newest_seq(&self) -> SeqNo {
        self.seqs.last().copied().unwrap_or(0)
    }

    /// The number of its tombstones.
    pub fn count(&self) -> usize {
        self.seqs.len()
    }

    /// Its tombstones, as they came.
    pub fn tombstones(&self) -> impl Iterator<Item = TombstoneParts<'_>> {
        (0..self.seqs.len()).filter_map(|bit| {
            let over = |cover: &u64| cover >> bit & 1 == 1;
            let first = self.covers.iter().position(over)?;
            let last = self.covers.iter().rposition(over)?;
            Some((self.key(first), self.key(last + 1), self.seqs[bit]))
        })
    }

    fn memory_bytes(&self) -> usize {
        // Each has an allocation, and so has the shared pointer.
        let headers = 5 * 16 + size_of::<TombstoneChunk>() + 16;
        headers + self.keys.len() + self.covers.len() * (8 + 4) + self.seqs.len() * 8
    }
}

/// The first `count` tombstones, in the form in which reads ask them.
#[derive(Default)]
struct Published {
    count: usize,
    /// Oldest first, about: writers that come at once may be in either order.
    chunks: Arc<[Arc<TombstoneChunk>]>,
}

#[derive(Default)]
struct TombstoneState {
    full: Vec<Arc<TombstoneChunk>>,
    full_bytes: usize,
    /// The tombstones after the full chunks, as they came.
    loose: Vec<RangeTombstone>,
    loose_bytes: usize,
    published_bytes: usize,
}

/// See the module.
pub struct MemTombstones {
    state: Mutex<TombstoneState>,
    count: AtomicUsize,
    bytes: AtomicUsize,
    published: ArcSwap<Published>,
}

impl Default for MemTombstones {
    fn default() -> MemTombstones {
        MemTombstones {
            state: Mutex::new(lock_ranks::MEM_TOMBSTONES, TombstoneState::default()),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            published: ArcSwap::default(),
        }
    }
}

impl MemTombstones {
    pub fn insert(&self, tombstone: RangeTombstone, order: &KeyOrder) {
        let mut state = self.state.lock();
        state.loose_bytes += LOOSE_BYTES + tombstone.start.len() + tombstone.end.len();
        state.loose.push(tombstone);
        if state.loose.len() == CHUNK {
            let chunk = Arc::new(TombstoneChunk::build(&std::mem::take(&mut state.loose), order));
            state.full_bytes += chunk.memory_bytes();
            state.loose_bytes = 0;
            state.full.push(chunk);
        }
        self.note(&state);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn note(&self, state: &TombstoneState) {
        let bytes = state.full_bytes + state.loose_bytes + state.published_bytes;
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether there is any.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The chunks, oldest first. The last one is built when a read first asks after an insert: a
    /// burst of range deletes costs one build, not one each.
    pub fn chunks(&self, order: &KeyOrder) -> Arc<[Arc<TombstoneChunk>]> {
        let published = self.published.load();
        if published.count == self.count.load(Ordering::Acquire) {
            return published.chunks.clone();
        }
        let mut state = self.state.lock();
        let mut chunks = state.full.clone();
        let mut loose_bytes = 0;
        if !state.loose.is_empty() {
            let chunk = TombstoneChunk::build(&state.loose, order);
            loose_bytes = chunk.memory_bytes();
            chunks.push(Arc::new(chunk));
        }
        state.published_bytes = loose_bytes + size_of_val(&chunks[..]);
        self.note(&state);
        let count = state.full.len() * CHUNK + state.loose.len();
        let chunks: Arc<[Arc<TombstoneChunk>]> = chunks.into();
        self.published.store(Arc::new(Published { count, chunks: chunks.clone() }));
        chunks
    }

    /// Returns the newest that covers a user key and has a sequence number of at most `max_seq`.
    pub fn newest_covering(&self, order: &KeyOrder, key: &[u8], max_seq: SeqNo) -> Option<SeqNo> {
        let mut newest = None;
        for chunk in self.chunks(order).iter().rev() {
            if newest < Some(chunk.newest_seq()) {
                newest = newest.max(chunk.stretch(order, key, max_seq).newest);
            }
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ORDER: KeyOrder = KeyOrder::Bytewise;

    fn of(list: &[(u8, u8, SeqNo)]) -> MemTombstones {
        let set = MemTombstones::default();
        for &(start, end, seq) in list {
            set.insert(RangeTombstone { start: vec![start], end: vec![end], seq }, &ORDER);
        }
        set
    }

    proptest! {
        #[test]
        fn chunks_answer_as_the_list_does(
            ranges in prop::collection::vec((0u8..40, 0u8..40), 0..300),
            asked in prop::collection::vec((0u8..41, 0u64..310), 1..60),
        ) {
            let list = Vec::from_iter(ranges.iter().zip(1..).map(|(&(a, b), seq)| (a, b, seq)));
            let set = of(&list);
            let chunks = set.chunks(&ORDER);
            for (key, max_seq) in asked {
                let newest = |key: u8, max_seq: SeqNo| {
                    let covers = |t: &&(u8, u8, SeqNo)| t.0 <= key && key < t.1 && t.2 <= max_seq;
                    list.iter().filter(covers).map(|t| t.2).max()
                };
                let found = set.newest_covering(&ORDER, &[key], max_seq);
                prop_assert_eq!(found, newest(key, max_seq), "{} at {}", key, max_seq);
                for chunk in chunks.iter() {
                    let TombstoneSpan { from, to, newest } = chunk.stretch(&ORDER, &[key], max_seq);
                    let within = from.map_or(0, |f| f[0])..to.map_or(41, |t| t[0]);
                    prop_assert!(within.contains(&key));
                    for other in within {
                        let same = chunk.stretch(&ORDER, &[other], max_seq);
                        prop_assert_eq!(same, TombstoneSpan { from, to, newest });
                    }
                }
            }
            let mut back = Vec::from_iter(chunks.iter().flat_map(|chunk| {
                chunk.tombstones().map(|(start, end, seq)| (start[0], end[0], seq))
            }));
            back.sort_by_key(|t| t.2);
            let covering = list.iter().copied().filter(|t| t.0 < t.1);
            prop_assert!(back.into_iter().eq(covering));
        }
    }

    #[test]
    fn nested_tombstones_take_memory_in_proportion() {
        let set = MemTombstones::default();
        let at = |key: u64| key.to_be_bytes().to_vec();
        const N: u64 = 20_000;
        for seq in 1..=N {
            set.insert(RangeTombstone { start: at(N - seq), end: at(N + seq), seq }, &ORDER);
        }
        assert_eq!(set.newest_covering(&ORDER, &at(N), N), Some(N));
        assert_eq!(set.newest_covering(&ORDER, &at(N), 77), Some(77));
        assert_eq!(set.newest_covering(&ORDER, &at(N + 77), 77), None);
        let bytes = set.memory_bytes();
        assert!(N as usize * 32 < bytes && bytes < N as usize * 80, "{bytes} bytes for {N}");
        let count: usize = set.chunks(&ORDER).iter().map(|c| c.tombstones().count()).sum();
        assert_eq!(count as u64, N);
    }
}
