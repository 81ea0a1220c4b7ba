//! Key ranges and the one definition of "overlap" (I1, I5 and I6 rely on it).
//!
//! A span is closed at its start; its end is a key that is in it, or, where a
//! range tombstone reaches further than any entry, a key that is just not.
//!
//! Owns: ranges and their comparison. Never does: compare keys but by the keyspace's order.

use core::cmp::Ordering;
use windrow_base::{KeyOrder, debug_invariant};

/// A borrowed key range `[lo, hi]`, or `[lo, hi)` if `hi_exclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// First key.
    pub lo: &'a [u8],
    /// Last key, or the first one after it.
    pub hi: &'a [u8],
    /// Whether `hi` itself is outside.
    pub hi_exclusive: bool,
}

impl<'a> Span<'a> {
    /// The range `[lo, hi]`.
    pub fn closed(lo: &'a [u8], hi: &'a [u8]) -> Span<'a> {
        Span { lo, hi, hi_exclusive: false }
    }

    /// The span of bounds as a [`crate::Merge`] holds them.
    pub fn of(
        (lo, hi, hi_exclusive): &'a (alloc::vec::Vec<u8>, alloc::vec::Vec<u8>, bool),
    ) -> Self {
        Span { lo, hi, hi_exclusive: *hi_exclusive }
    }

    /// Whether the whole span lies before `key`.
    #[inline]
    pub fn ends_before(&self, order: &KeyOrder, key: &[u8]) -> bool {
        match order.compare(self.hi, key) {
            Ordering::Less => true,
            Ordering::Equal => self.hi_exclusive,
            Ordering::Greater => false,
        }
    }

    /// Whether some key may lie in both.
    #[inline]
    pub fn overlaps(&self, order: &KeyOrder, other: &Span<'_>) -> bool {
        !self.ends_before(order, other.lo) && !other.ends_before(order, self.lo)
    }

    /// Whether `key` lies in the span.
    #[inline]
    pub fn contains(&self, order: &KeyOrder, key: &[u8]) -> bool {
        order.compare(self.lo, key).is_le() && !self.ends_before(order, key)
    }

    /// Compares where two spans end.
    #[inline]
    pub fn compare_ends(&self, order: &KeyOrder, other: &Span<'_>) -> Ordering {
        order.compare(self.hi, other.hi).then_with(|| other.hi_exclusive.cmp(&self.hi_exclusive))
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn hull(&self, order: &KeyOrder, other: &Span<'a>) -> Span<'a> {
        let has_keys = !self.is_empty(order) && !other.is_empty(order);
        debug_invariant!(I9, has_keys, "the hull of a span without keys would reach too far");
        let lo = if order.compare(other.lo, self.lo).is_lt() { other.lo } else { self.lo };
        let end = if other.compare_ends(order, self).is_gt() { other } else { self };
        Span { lo, hi: end.hi, hi_exclusive: end.hi_exclusive }
    }

    /// Whether the span holds no key: its ends are crossed, or equal and open.
    pub fn is_empty(&self, order: &KeyOrder) -> bool {
        self.ends_before(order, self.lo)
    }

    /// The span with keys of its own.
    pub fn to_bounds(&self) -> (alloc::vec::Vec<u8>, alloc::vec::Vec<u8>, bool) {
        (self.lo.to_vec(), self.hi.to_vec(), self.hi_exclusive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_end_touches_nothing() {
        let order = KeyOrder::Bytewise;
        let open = Span { lo: b"a", hi: b"c", hi_exclusive: true };
        let closed = Span::closed(b"a", b"c");
        let next = Span::closed(b"c", b"e");
        assert!(!open.overlaps(&order, &next) && !next.overlaps(&order, &open));
        assert!(closed.overlaps(&order, &next) && next.overlaps(&order, &closed));
        assert!(!open.contains(&order, b"c") && closed.contains(&order, b"c"));
        assert_eq!(open.compare_ends(&order, &closed), Ordering::Less);
        assert_eq!(open.hull(&order, &closed), closed);
        assert!(Span { lo: b"a", hi: b"a", hi_exclusive: true }.is_empty(&order));
    }
}
