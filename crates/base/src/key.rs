//! The internal key: a user key and a trailer of sequence number and kind.
//!
//! Order: user key ascending by the keyspace's comparator, then trailer
//! descending, so that the newest entry of a key comes first. The trailer is
//! `sequence << 8 | kind`, eight bytes little endian at the key's end.
//!
//! Owns: the trailer, the kinds, and the limits of keys and values. Never does: order user keys
//! (`comparator.rs`).

use crate::KeyOrder;
use crate::error::{Error, Result};
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sequence number of one operation: 56 bits, from 1; 0 in a table means
/// "older than every snapshot".
pub type SeqNo = u64;

/// The largest sequence number (2^56 - 1).
pub const SEQ_MAX: SeqNo = (1 << 56) - 1;

/// Bytes of the trailer at an internal key's end.
pub const TRAILER_BYTES: usize = 8;

/// Longest user key, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Longest value, in bytes (1 GiB).
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Most entries (or range tombstones) in a table for each byte of its file: no codec may decompress
/// to more than 255 times its input, and an entry takes more than one byte. A file that claims more
/// is damaged, and would overflow sums over tables.
pub const ENTRIES_PER_BYTE_MAX: u64 = 256;

/// The meaning of an entry. The numbers are on disk and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The key is absent from here on.
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// An operand for the keyspace's merge operator.
    Merge = 2,
    /// A delete that takes exactly one put with it.
    SingleDelete = 3,
    /// All keys of a range are absent; key = start, value = exclusive end.
    RangeDelete = 4,
    /// A put whose value begins with its expiry: u64 little endian, ms since 1970.
    PutExpiry = 5,
    /// A merge operand whose value begins with its expiry.
    MergeExpiry = 6,
    /// A value that lies in a blob file (reserved).
    Blob = 7,
    /// A blob reference with expiry (reserved).
    BlobExpiry = 8,
}

/// The largest kind number: seek targets use it to come before every entry of a sequence number.
pub const KIND_MAX: u8 = 0xff;

impl Kind {
    /// Returns the kind for a byte from disk.
    ///
    /// # Errors
    /// `NotSupported` for a kind this version does not know: it is never skipped.
    #[inline]
    pub fn from_u8(byte: u8) -> Result<Kind> {
        Ok(match byte {
            0 => Kind::Delete,
            1 => Kind::Put,
            2 => Kind::Merge,
            3 => Kind::SingleDelete,
            4 => Kind::RangeDelete,
            5 => Kind::PutExpiry,
            6 => Kind::MergeExpiry,
            7 | 8 => return Err(Error::not_supported("blob references need a newer Windrow")),
            _ => return Err(unknown_kind(byte)),
        })
    }

    /// Whether a point entry of this kind hides older ones and has no value.
    #[inline]
    pub fn is_point_tombstone(self) -> bool {
        matches!(self, Kind::Delete | Kind::SingleDelete)
    }

    /// Whether the entry is an operand, which does not end a search.
    #[inline]
    pub fn is_merge(self) -> bool {
        matches!(self, Kind::Merge | Kind::MergeExpiry)
    }

    /// Whether the stored value begins with eight bytes of expiry.
    #[inline]
    pub fn has_expiry(self) -> bool {
        matches!(self, Kind::PutExpiry | Kind::MergeExpiry | Kind::BlobExpiry)
    }
}

#[cold]
fn unknown_kind(byte: u8) -> Error {
    Error::not_supported(alloc::format!("entry kind {byte} needs a newer Windrow"))
}

/// Packs a sequence number and kind.
#[inline]
pub const fn trailer(seq: SeqNo, kind: Kind) -> u64 {
    (seq << 8) | kind as u64
}

/// Returns the trailer that sorts before every entry with a sequence number <= `seq`.
#[inline]
pub const fn seek_trailer(seq: SeqNo) -> u64 {
    (seq << 8) | KIND_MAX as u64
}

/// Returns the sequence number in a trailer.
#[inline]
pub const fn trailer_seq(trailer: u64) -> SeqNo {
    trailer >> 8
}

/// Returns the kind byte in a trailer.
#[inline]
pub const fn trailer_kind(trailer: u64) -> u8 {
    trailer as u8
}

/// Appends an internal key to `out`.
#[inline]
pub fn push_internal(out: &mut Vec<u8>, user_key: &[u8], trailer: u64) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&trailer.to_le_bytes());
}

/// Splits an internal key into user key and trailer.
///
/// # Panics
/// If it is shorter than a trailer: callers check bytes from disk with [`split_checked`].
#[inline]
pub fn split(internal: &[u8]) -> (&[u8], u64) {
    let (user, tail) = internal.split_last_chunk::<TRAILER_BYTES>().expect("internal key");
    (user, u64::from_le_bytes(*tail))
}

/// Splits an internal key read from disk.
///
/// # Errors
/// `Corruption` if it is too short, `NotSupported` if its kind is unknown.
pub fn split_checked(internal: &[u8]) -> Result<(&[u8], SeqNo, Kind)> {
    let Some((user, tail)) = internal.split_last_chunk::<TRAILER_BYTES>() else {
        return Err(Error::corruption("internal key shorter than its trailer"));
    };
    let trailer = u64::from_le_bytes(*tail);
    Ok((user, trailer_seq(trailer), Kind::from_u8(trailer_kind(trailer))?))
}

/// Compares two internal keys: user key ascending, then trailer descending.
#[inline]
pub fn compare_internal(order: &KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    let (a_user, a_trailer) = split(a);
    let (b_user, b_trailer) = split(b);
    order.compare(a_user, b_user).then(b_trailer.cmp(&a_trailer))
}

/// Returns the first eight bytes of a key as a big-endian integer, zeros after its end.
///
/// Under the bytewise order `prefix(a) < prefix(b)` implies `a < b`; equal
/// prefixes say nothing.
#[inline]
pub fn prefix_u64(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0u8; 8];
    head[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(head)
}

/// Returns the smallest key above every key that starts with `prefix` in bytewise order, or `None`
/// if there is none (the prefix is empty or all 0xff).
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internal(user: &[u8], seq: SeqNo, kind: Kind) -> Vec<u8> {
        let mut out = Vec::new();
        push_internal(&mut out, user, trailer(seq, kind));
        out
    }

    #[test]
    fn newest_entry_of_a_key_comes_first() {
        let order = KeyOrder::Bytewise;
        let a9 = internal(b"a", 9, Kind::Put);
        let a3 = internal(b"a", 3, Kind::Put);
        let b1 = internal(b"b", 1, Kind::Put);
        assert!(compare_internal(&order, &a9, &a3).is_lt());
        assert!(compare_internal(&order, &a3, &b1).is_lt());
    }

    #[test]
    fn bytes_from_disk_are_checked() {
        assert!(split_checked(b"short").is_err());
        let mut bad = internal(b"a", 1, Kind::Put);
        bad[1] = 77;
        assert_eq!(split_checked(&bad).unwrap_err().kind(), crate::ErrorKind::NotSupported);
        let (user, seq, kind) = (b"a".as_slice(), 5, Kind::Merge);
        assert_eq!(split_checked(&internal(user, seq, kind)).unwrap(), (user, seq, kind));
    }

    #[test]
    fn prefix_order_and_end() {
        assert!(prefix_u64(b"a") < prefix_u64(b"ab"));
        assert_eq!(prefix_u64(b"a"), prefix_u64(b"a\0"));
        assert_eq!(prefix_end(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
