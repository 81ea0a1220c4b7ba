//! A place between user keys: where a scan's range, or a gap, begins or ends.
//!
//! Owns: the key. Never does: read anything.

use std::cmp::Ordering;
use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_base::key;

/// The trailer before all versions of a user key.
const BEFORE_VERSIONS: u64 = u64::MAX;
/// The trailer after all versions of a user key.
const AFTER_VERSIONS: u64 = 0;

/// Before or after all versions of a user key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub key: Arc<[u8]>,
    /// After the key's versions (and not before them). A flag, since only
    /// bytewise does every key have a next one.
    pub after: bool,
}

/// An [`Edge`] with a borrowed key.
#[derive(Clone, Copy, Debug)]
pub struct EdgeAt<'a> {
    pub key: &'a [u8],
    pub after: bool,
}

impl<'a> EdgeAt<'a> {
    /// Returns the place of an internal key that is before or after all versions of its user key
    /// that a reader may see.
    #[inline]
    pub fn of(internal: &'a [u8]) -> EdgeAt<'a> {
        let (key, trailer) = key::split(internal);
        EdgeAt { key, after: trailer == AFTER_VERSIONS }
    }

    /// Returns the place before all versions of a user key.
    #[inline]
    pub fn before(key: &'a [u8]) -> EdgeAt<'a> {
        EdgeAt { key, after: false }
    }

    /// Returns it with a key of its own.
    pub(crate) fn to_edge(self) -> Edge {
        Edge { key: Arc::from(self.key), after: self.after }
    }
}

impl Edge {
    /// Returns it with a borrowed key.
    #[inline]
    pub fn at(&self) -> EdgeAt<'_> {
        EdgeAt { key: &self.key, after: self.after }
    }

    /// Memory of its key, with the counts that go with it.
    #[inline]
    pub fn bytes(&self) -> usize {
        2 * size_of::<usize>() + self.key.len()
    }

    /// Compares its place with another one's.
    #[inline]
    pub fn compare(&self, order: &KeyOrder, other: EdgeAt<'_>) -> Ordering {
        order.compare(&self.key, other.key).then(self.after.cmp(&other.after))
    }

    /// Writes the internal key that is at this place.
    pub(crate) fn write_internal(&self, out: &mut Vec<u8>) {
        out.clear();
        let trailer = if self.after { AFTER_VERSIONS } else { BEFORE_VERSIONS };
        key::push_internal(out, &self.key, trailer);
    }
}
