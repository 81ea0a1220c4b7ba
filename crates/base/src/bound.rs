//! Bounds of a table: keys of up to 64 KiB, that are held once however often
//! they bound something.
//!
//! Owns: telling whether two bounds are one key in memory. Never does: compare
//! keys by a keyspace's order.

use alloc::sync::Arc;

/// A key that bounds tables. Clones share its memory.
pub type Bound = Arc<[u8]>;

/// Has `key` share the memory of `bound` where they are the same bytes.
pub fn share_equal(bound: &Bound, key: &mut Bound) {
    if bound == key {
        *key = Arc::clone(bound);
    }
}

/// Bytes of two bounds: of one where they share their memory.
pub fn memory_bytes(bound: &Bound, key: &Bound) -> usize {
    bound.len() + if Arc::ptr_eq(bound, key) { 0 } else { key.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bounds_are_one_key_in_memory() {
        let (bound, mut same): (Bound, Bound) = ([7; 100].into(), [7; 100].into());
        let mut other: Bound = [8; 100].into();
        assert_eq!(memory_bytes(&bound, &same), 200);
        share_equal(&bound, &mut same);
        share_equal(&bound, &mut other);
        assert_eq!((memory_bytes(&bound, &same), memory_bytes(&bound, &other)), (100, 200));
        assert_eq!((&same[..], &other[..]), (&[7; 100][..], &[8; 100][..]));
    }
}
