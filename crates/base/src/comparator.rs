//! The order of user keys: bytewise by default, anything total by a trait.
//!
//! The engine carries a [`KeyOrder`]: an enum, so that the bytewise case is a `memcmp` inlined in
//! the hot paths and not a virtual call.
//!
//! Owns: the order, and the short keys of index blocks. Never does: order entries of one key
//! (`key.rs`).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

/// A total order over user keys, named by an id that is stored in the manifest.
///
/// Opening a keyspace with a comparator of another id is `InvalidArgument`.
pub trait Comparator: Send + Sync + 'static {
    /// Identity, stored with the keyspace. Change it when the order changes.
    fn id(&self) -> &str;

    /// Compares two user keys. Must be total, never change for an id, and not panic on any bytes: a
    /// panic turns writing off, and as the key is in the log, the database cannot be opened until
    /// the comparator takes it.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Whether `Equal` means equal bytes. Where it does not, filters and hash
    /// indexes are off, since they hash bytes; a scan gives a key with the bytes
    /// of its newest visible version, and holds a prefix against those; a merge
    /// operator is given those of any write to the key, or of the read.
    fn equality_is_bytewise(&self) -> bool {
        true
    }

    /// Writes to `out` (cleared before) some key `s` with `a <= s < b`, short if possible.
    /// The default copies `a`.
    fn separator(&self, a: &[u8], _b: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(a);
    }
}

/// Id of the bytewise order.
pub const BYTEWISE_ID: &str = "windrow.bytewise";

/// The order of a keyspace's user keys.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// Lexicographic by unsigned bytes; a prefix comes before its extensions.
    #[default]
    Bytewise,
    /// A comparator given by the user.
    Custom(Arc<dyn Comparator>),
}

impl KeyOrder {
    /// The comparator's id ([`BYTEWISE_ID`] for the default order).
    pub fn id(&self) -> &str {
        match self {
            KeyOrder::Bytewise => BYTEWISE_ID,
            KeyOrder::Custom(c) => c.id(),
        }
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            KeyOrder::Custom(c) => c.compare(a, b),
        }
    }

    /// Whether two user keys are the same key under this order.
    #[inline]
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        match self {
            KeyOrder::Bytewise => a == b,
            KeyOrder::Custom(c) => c.compare(a, b) == Ordering::Equal,
        }
    }

    /// Whether this is the bytewise order, for which fixed-width prefixes
    /// ([`crate::key::prefix_u64`]) compare as the keys do.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, KeyOrder::Bytewise)
    }

    /// Whether filters and hash indexes may be used.
    pub fn equality_is_bytewise(&self) -> bool {
        match self {
            KeyOrder::Bytewise => true,
            KeyOrder::Custom(c) => c.equality_is_bytewise(),
        }
    }

    /// Writes to `out` (cleared before) a key `s` with `a <= s < b`, for index blocks.
    pub fn separator(&self, a: &[u8], b: &[u8], out: &mut Vec<u8>) {
        match self {
            KeyOrder::Bytewise => bytewise_separator(a, b, out),
            KeyOrder::Custom(c) => {
                c.separator(a, b, out);
                debug_assert!(c.compare(a, out).is_le() && c.compare(out, b).is_lt());
            }
        }
    }
}

impl KeyOrder {
    /// Writes to `out` (cleared before) a key at or after `a`, for the end of an index.
    pub fn successor(&self, a: &[u8], out: &mut Vec<u8>) {
        match self {
            KeyOrder::Bytewise => bytewise_successor(a, 0, out),
            KeyOrder::Custom(_) => {
                out.clear();
                out.extend_from_slice(a);
            }
        }
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyOrder({})", self.id())
    }
}

/// Writes a short key at or after `a`: as little of it as can be raised.
fn bytewise_successor(a: &[u8], from: usize, out: &mut Vec<u8>) {
    out.clear();
    match a.iter().skip(from).position(|&byte| byte < 0xff) {
        Some(raised) => {
            out.extend_from_slice(&a[..=from + raised]);
            out[from + raised] += 1;
        }
        None => out.extend_from_slice(a),
    }
}

/// Writes a short key in `[a, b)`: the common prefix and one byte more, raised by one.
fn bytewise_separator(a: &[u8], b: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    if common < a.len() && common < b.len() && a[common] < 0xff && a[common] + 1 < b[common] {
        out.extend_from_slice(&a[..=common]);
        out[common] += 1;
    } else if common < a.len() && common + 1 < b.len() && a[common] < b[common] {
        // b is longer than the first differing byte: b's prefix separates.
        out.extend_from_slice(&b[..=common]);
    } else if common < a.len() {
        // b ends at that byte, one above: the byte raised in a is after it.
        bytewise_successor(a, common + 1, out);
    } else {
        out.extend_from_slice(a);
    }
    debug_assert!(a <= out.as_slice() && out.as_slice() < b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_lies_between() {
        let keys: &[&[u8]] =
            &[b"", b"a", b"ab", b"abc", b"abd", b"ac", b"b", b"ba", b"bb", b"\xff", b"\xff\xff"];
        let mut out = Vec::new();
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                KeyOrder::Bytewise.separator(a, b, &mut out);
                assert!(*a <= out.as_slice() && out.as_slice() < *b, "{a:?} {b:?} {out:?}");
                assert!(out.len() <= a.len().max(1));
            }
            KeyOrder::Bytewise.successor(a, &mut out);
            assert!(*a <= out.as_slice() && out.len() <= a.len());
        }
    }

    #[test]
    fn long_keys_are_shortened_wherever_they_differ() {
        let key = |head: &[u8]| [head, &[b'x'; 1000]].concat();
        let mut out = Vec::new();
        for (a, b) in [(&b"ab"[..], &b"ac"[..]), (b"a", b"c"), (b"a\xff", b"b"), (b"a", b"ab")] {
            for b in [b.to_vec(), key(b)] {
                let a = if b.starts_with(a) { a.to_vec() } else { key(a) };
                KeyOrder::Bytewise.separator(&a, &b, &mut out);
                assert!(a <= out && out < b && out.len() <= 4, "{out:?}");
            }
        }
        KeyOrder::Bytewise.successor(&key(b"\xff"), &mut out);
        assert_eq!(out, b"\xffy");
        KeyOrder::Bytewise.successor(b"\xff\xff", &mut out);
        assert_eq!(out, b"\xff\xff");
    }
}
