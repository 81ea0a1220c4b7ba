//! Sparseness: how wide a range of keys each entry of a file covers.
//!
//! L2SM (Huang et al., "Less is More", section III-C2): take the first and the
//! last key as 128-bit numbers; if the highest bit in which they differ is the
//! i-th, the file spans about 2^i keys, and with k entries
//!
//! ```text
//! S = i - lg k
//! ```
//!
//! The larger S, the more files of the level below a merge of it would meet.
//!
//! Keys of real stores begin alike (a table's number, `user:`), and longer prefixes than 16 bytes
//! would make every difference vanish. So the prefix that all compared files share is stripped
//! first. In another order than bytewise the rest of a key is still a fair guess: only a choice
//! among files that are all right depends on it.
//!
//! Owns: the formula and the prefix. Never does: choose a file.

use crate::tree::File;
use alloc::sync::Arc;
use windrow_base::debug_invariant;

/// Bytes that the bounds of all files begin with. O(files).
pub fn shared_prefix(files: &[Arc<File>]) -> usize {
    let Some(first) = files.first() else { return 0 };
    let base = &*first.smallest;
    let shared = |key: &[u8], most: usize| {
        base.iter().zip(key).take(most).take_while(|(a, b)| a == b).count()
    };
    let most = files
        .iter()
        .fold(base.len(), |most, file| shared(&file.largest, shared(&file.smallest, most)));
    let prefix = &base[..most];
    let begins =
        |file: &Arc<File>| file.smallest.starts_with(prefix) && file.largest.starts_with(prefix);
    debug_invariant!(H1, files.iter().all(begins), "a table's bounds do not begin as others do");
    most
}

/// S of a file: the base-2 logarithm of keys spanned per entry, up to a constant.
/// `prefix_bytes` are left out of its bounds ([`shared_prefix`]).
pub fn sparseness(file: &File, prefix_bytes: usize) -> f64 {
    let number = |key: &[u8]| {
        let rest = key.get(prefix_bytes..).unwrap_or(&[]);
        let mut bytes = [0u8; 16];
        let len = rest.len().min(16);
        bytes[..len].copy_from_slice(&rest[..len]);
        u128::from_be_bytes(bytes)
    };
    // 1 for the lowest bit, 0 where nothing differs: 2^i bounds the range from above.
    let highest = 128 - (number(&file.smallest) ^ number(&file.largest)).leading_zeros();
    let entries = file.entries.saturating_add(file.range_tombstones).max(1);
    let sparseness = highest as f64 - libm::log2(entries as f64);
    debug_invariant!(H1, (-64.0..=128.0).contains(&sparseness), "a sparseness of {sparseness}");
    sparseness
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn file(smallest: &[u8], largest: &[u8], entries: u64) -> Arc<File> {
        let (smallest, largest) = (smallest.into(), largest.into());
        Arc::new(File { smallest, largest, entries, ..File::default() })
    }

    #[test]
    fn twice_the_entries_over_the_same_range_are_half_as_sparse() {
        let key = |n: u32| n.to_be_bytes();
        let s = |lo, hi, entries| sparseness(&file(&key(lo), &key(hi), entries), 0);
        assert_eq!(s(0, 1023, 64) - s(0, 1023, 128), 1.0);
        // Twice the range, one more.
        assert_eq!(s(0, 2047, 64) - s(0, 1023, 64), 1.0);
        // 2^10 keys in the last bytes of a number of 128 bits, which has 96 bits below it.
        assert_eq!(s(0, 1023, 1), 106.0);
        assert_eq!(s(7, 7, 1), 0.0);
        // No entries at all: range tombstones alone.
        assert_eq!(s(0, 1023, 0), s(0, 1023, 1));
    }

    #[test]
    fn a_long_common_prefix_does_not_hide_the_keys() {
        let key = |n: u32| [b"a-table-with-a-long-name/".as_slice(), &n.to_be_bytes()].concat();
        let narrow = file(&key(1000), &key(1003), 4);
        let wide = file(&key(2000), &key(90_000), 4);
        let files = [narrow.clone(), wide.clone()];
        // Unstripped, the first 16 bytes are all alike.
        assert_eq!(sparseness(&narrow, 0), sparseness(&wide, 0));
        let prefix = shared_prefix(&files);
        // Up to the first byte in which 1000 and 90,000 differ.
        assert_eq!(prefix, b"a-table-with-a-long-name/".len() + 1);
        assert!(sparseness(&narrow, prefix) + 10.0 < sparseness(&wide, prefix));
    }

    #[test]
    fn keys_may_be_shorter_than_what_they_share() {
        let files: Vec<_> = [file(b"a", b"a", 1), file(b"abc", b"abd", 2)].into();
        assert_eq!(shared_prefix(&files), 1);
        assert_eq!(shared_prefix(&[]), 0);
        assert_eq!(sparseness(&files[0], 5), 0.0);
    }
}
