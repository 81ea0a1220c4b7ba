//! What a transaction has read, by which its commit is admitted.
//!
//! Owns: keys and ranges, each with the sequence number at which it was read.
//! Never does: read, or decide.

use super::ordered_key::OrderedKey;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use windrow_base::{KeyOrder, KeyspaceId, SeqNo};

/// What a key or range takes besides its bytes, about.
const ENTRY_BYTES: usize = 64;

/// A range of keys that was scanned.
#[derive(Clone, Debug)]
pub(crate) struct ReadRange {
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
    pub(crate) seq: SeqNo,
}

/// What was read of one keyspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpaceReads {
    pub(crate) keys: BTreeMap<OrderedKey, SeqNo>,
    pub(crate) ranges: Vec<ReadRange>,
}

/// All that was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) spaces: BTreeMap<KeyspaceId, SpaceReads>,
    bytes: usize,
    /// The first sequence number at which anything was read.
    oldest: Option<SeqNo>,
}

impl ReadSet {
    fn read_at(&mut self, seq: SeqNo) {
        self.oldest = Some(self.oldest.map_or(seq, |oldest| oldest.min(seq)));
    }

    /// Whether all of it was read at `seq` or later.
    pub(crate) fn is_as_of(&self, seq: SeqNo) -> bool {
        self.oldest.is_none_or(|oldest| oldest >= seq)
    }

    /// A key was read at `seq`. What was read before of it stays: it must be true of both.
    pub(crate) fn key(&mut self, id: KeyspaceId, order: &KeyOrder, key: &[u8], seq: SeqNo) {
        self.read_at(seq);
        let space = self.spaces.entry(id).or_default();
        match space.keys.entry(OrderedKey::new(key, order)) {
            Entry::Vacant(entry) => {
                entry.insert(seq);
                self.bytes += key.len() + ENTRY_BYTES;
            }
            Entry::Occupied(mut entry) => *entry.get_mut() = seq.min(*entry.get()),
        }
    }

    /// A range was read at `seq`. Returns its place, by which it can be extended.
    pub(crate) fn range(&mut self, id: KeyspaceId, range: ReadRange) -> usize {
        self.bytes += ENTRY_BYTES + bytes_of(&range.lower) + bytes_of(&range.upper);
        self.read_at(range.seq);
        let space = self.spaces.entry(id).or_default();
        space.ranges.push(range);
        space.ranges.len() - 1
    }

    /// The range at a place, to be extended.
    pub(crate) fn range_mut(&mut self, id: KeyspaceId, at: usize) -> Option<&mut ReadRange> {
        self.spaces.get_mut(&id)?.ranges.get_mut(at)
    }

    /// Memory that it takes, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Says of everything that it was read at `seq`: it was compared with that state.
    pub(crate) fn raise_to(&mut self, seq: SeqNo) {
        self.oldest = self.oldest.map(|_| seq);
        for space in self.spaces.values_mut() {
            space.keys.values_mut().for_each(|at| *at = seq);
            space.ranges.iter_mut().for_each(|range| range.seq = seq);
        }
    }
}

fn bytes_of(bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.len(),
        Bound::Unbounded => 0,
    }
}
