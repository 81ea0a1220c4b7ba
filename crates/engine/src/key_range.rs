//! Ranges of keys as users write them: `..`, `"a".."n"`, `key..=key`.
//!
//! The standard library's `RangeBounds<K>` does not fix `K` for `..`, so that a call with it
//! compiles only with its type named. Here the range itself fixes the type.
//!
//! Owns: the trait. Never does: compare keys.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: any of Rust's ranges over byte strings, or a pair of bounds.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// db.put("apple", "1")?;
/// assert_eq!(db.range(..).count(), 1);
/// assert_eq!(db.range("b"..).count(), 0);
/// assert_eq!(db.range([0x61]..=[0x62]).count(), 1);
/// # Ok::<(), windrow::Error>(())
/// ```
pub trait KeyRange {
    /// Returns the bounds where it begins and ends.
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

/// Copies the bounds.
pub(crate) fn owned(range: &impl KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (begin, end) = range.key_bounds();
    (begin.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec))
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).key_bounds()
    }
}

impl KeyRange for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(K::as_ref), self.1.as_ref().map(K::as_ref))
    }
}
