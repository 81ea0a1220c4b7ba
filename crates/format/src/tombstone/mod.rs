//! Range tombstones, and the fragments that a set of them is cut into.
//!
//! Overlapping tombstones are cut at each other's ends into disjoint fragments, each with the
//! sequence numbers that cover it, newest first: the newest tombstone over a key, as of a snapshot,
//! is then found by one binary search. N nested tombstones, with a snapshot between each and the
//! next, make N fragments with N (N + 1) / 2 sequence numbers. So a set that overlaps much is
//! divided into *layers*: each holds tombstones of neighbouring sequence numbers and is fragmented
//! alone, and a lookup goes from the newest layer to the oldest. Memory, and bytes on disk, are
//! then in proportion to the tombstones.
//!
//! Rejected: fragmenting lazily, as ranges are looked up. It saves nothing where the whole set is
//! written to a table, as by each flush and merge.
//!
//! | file | holds |
//! |---|---|
//! | `layer.rs` | one layer being built |
//! | `fragments.rs` | [`Fragments`]: one layer, searched, and its form on disk |
//! | `sweep.rs` | the cutting of tombstones into a layer |
//! | `layered_set.rs` | [`Tombstones`]: a set of any size |
//!
//! Owns: the form of range tombstones in memory and on disk. Never does: decide whether a tombstone
//! may be dropped (the engine's I6).

mod fragments;
mod layer;
mod layered_set;
mod sweep;
#[cfg(test)]
mod tests;

pub use fragments::Fragments;
pub use layer::FragmentRef;
pub(crate) use layered_set::Collector;
pub use layered_set::Tombstones;

use windrow_base::SeqNo;

/// A delete of all keys in `[start, end)` older than its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key covered.
    pub start: Vec<u8>,
    /// First user key after it that is not covered.
    pub end: Vec<u8>,
    /// Its sequence number: it hides entries with a lower one.
    pub seq: SeqNo,
}

impl RangeTombstone {
    /// The tombstone, borrowed.
    pub fn parts(&self) -> TombstoneParts<'_> {
        (&self.start, &self.end, self.seq)
    }
}

/// A range tombstone, borrowed: start, end, sequence number.
pub type TombstoneParts<'a> = (&'a [u8], &'a [u8], SeqNo);
