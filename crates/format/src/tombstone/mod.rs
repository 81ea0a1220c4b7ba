//! Range tombstones, and the fragments a set of them is cut into.
//!
//! Overlapping tombstones are cut at each other's ends into disjoint
//! fragments, each with the sequence numbers that cover it, newest first: the
//! question "what is the newest tombstone over this key, as of that snapshot"
//! is then one binary search. N tombstones nested in each other, each of which
//! a snapshot tells from the next, make N fragments with N (N + 1) / 2 sequence
//! numbers, so a set that overlaps much is cut into *layers*: each holds
//! tombstones of neighbouring sequence numbers and is fragmented alone, and a
//! question goes from the newest layer to the oldest. Memory, and bytes on
//! disk, are then in proportion to the tombstones.
//!
//! Fragmenting lazily, as each range is asked about, was considered: it saves
//! nothing where the whole set is written to a table, as each flush and merge does.
//!
//! | file | holds |
//! |---|---|
//! | `layer.rs` | one layer in the making |
//! | `fragments.rs` | [`Fragments`]: one layer, searched, and its form on disk |
//! | `sweep.rs` | how tombstones are cut into one |
//! | `layers.rs` | [`Tombstones`]: a set of any size |
//!
//! Never does: decide whether a tombstone may be dropped (the engine's I6).

mod fragments;
mod layer;
mod layers;
mod sweep;
#[cfg(test)]
mod tests;

pub use fragments::Fragments;
pub use layer::FragmentRef;
pub(crate) use layers::Collector;
pub use layers::Tombstones;

use windrow_base::SeqNo;

/// A delete of all keys in `[start, end)` older than its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key covered.
    pub start: Vec<u8>,
    /// First user key not covered any more.
    pub end: Vec<u8>,
    /// Hides entries with a lower sequence number.
    pub seq: SeqNo,
}

impl RangeTombstone {
    /// The same, borrowed.
    pub fn parts(&self) -> Parts<'_> {
        (&self.start, &self.end, self.seq)
    }
}

/// A range tombstone, borrowed: start, end, sequence number.
pub type Parts<'a> = (&'a [u8], &'a [u8], SeqNo);
