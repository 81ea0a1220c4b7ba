//! Which operations a watch of a prefix sees: those that touch a key with it.
//!
//! Owns: that choice. Never does: read a log.

use windrow_base::key::prefix_end;
use windrow_base::{KeyspaceId, Kind};
use windrow_format::batch::Op;

/// The keys of a keyspace in bytewise order that have a prefix.
pub(super) struct KeyFilter {
    keyspace: KeyspaceId,
    prefix: Vec<u8>,
    /// Behind the last of them; `None`: they go on to the last key.
    end: Option<Vec<u8>>,
}

impl KeyFilter {
    pub(super) fn new(keyspace: KeyspaceId, prefix: &[u8]) -> KeyFilter {
        KeyFilter { keyspace, prefix: prefix.to_vec(), end: prefix_end(prefix) }
    }

    /// Whether an operation may change one of the keys. An ingestion may: nothing is known of its
    /// keys.
    pub(super) fn sees(&self, op: &Op<'_>) -> bool {
        if op.keyspace != self.keyspace {
            return false;
        }
        match op.kind {
            Kind::RangeDelete if op.key == op.value => true,
            Kind::RangeDelete => {
                let begins_before = self.end.as_ref().is_none_or(|end| op.key < end.as_slice());
                begins_before && self.prefix.as_slice() < op.value && op.key < op.value
            }
            _ => op.key.starts_with(&self.prefix),
        }
    }

    /// Whether it sees the drop of a keyspace.
    pub(super) fn sees_drop(&self, keyspace: KeyspaceId) -> bool {
        keyspace == self.keyspace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_a_key_with_the_prefix_is_seen() {
        let id = KeyspaceId::DEFAULT;
        let sees = |prefix: &[u8], kind, key: &[u8], value: &[u8]| {
            KeyFilter::new(id, prefix).sees(&Op { kind, keyspace: id, key, value })
        };
        assert!(sees(b"b", Kind::Put, b"b", b"") && sees(b"b", Kind::Delete, b"bz", b""));
        assert!(!sees(b"b", Kind::Put, b"a", b"b") && !sees(b"b", Kind::Merge, b"c", b"b"));
        let range = |from: &[u8], to: &[u8]| sees(b"b", Kind::RangeDelete, from, to);
        assert!(range(b"a", b"b\0") && range(b"bz", b"c") && range(b"b", b"z"));
        assert!(!range(b"a", b"b") && !range(b"c", b"z") && !range(b"bz", b"ba"));
        assert!(range(b"x", b"x"), "an ingestion");
        let range = |from: &[u8], to: &[u8]| sees(b"\xff", Kind::RangeDelete, from, to);
        assert!(range(b"\xff\xff", b"\xff\xff\xff") && !range(b"a", b"\xff"));
        assert!(sees(b"", Kind::Put, b"any", b""));
        let other = Op { kind: Kind::Put, keyspace: KeyspaceId(7), key: b"b", value: b"" };
        assert!(!KeyFilter::new(id, b"b").sees(&other));
    }
}
