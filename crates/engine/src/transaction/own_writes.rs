//! The writes of a transaction to one keyspace, as its own reads see them. The feed of changes lays
//! the changes that it has handed out over a snapshot in the same way.
//!
//! Owns: the newest write of each key, and the ranges that were removed before it. Never does: read
//! the database; write.

use std::collections::BTreeMap;
use std::ops::Bound;
use windrow_base::{KeyOrder, Kind, Result};
use windrow_read::read::{ReadOwner, is_expired, merge_operands};
use windrow_read::slice::Slice;
use windrow_store::write::ordered_key::{AsOrderedKey, OrderedKey};

/// The memory that an entry of a map takes besides its bytes, about: the map's part, and the headers
/// of its allocations.
const ENTRY_BYTES: usize = 176;

/// The effect of a key's newest writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// `None`: the value in the database.
    pub(crate) base: Option<OwnBase>,
    /// Operands for the merge operator, oldest first.
    pub(crate) operands: Vec<OwnOperand>,
}

/// An operand that is merged into a key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnOperand {
    pub(crate) value: Vec<u8>,
    pub(crate) expiry_ms: Option<u64>,
}

impl OwnOperand {
    fn memory_bytes(&self) -> usize {
        size_of::<OwnOperand>() + self.value.len()
    }
}

impl Own {
    fn memory_bytes(&self) -> usize {
        let base = match &self.base {
            Some(OwnBase::Value { value, .. }) => value.len(),
            Some(OwnBase::Deleted) | None => 0,
        };
        base + self.operands.iter().map(OwnOperand::memory_bytes).sum::<usize>()
    }

    /// The effect at a time: an expired write hides older ones, as a delete does.
    pub(crate) fn at(mut self, now_ms: u64) -> Own {
        let has_expired =
            |expiry_ms: &Option<u64>| expiry_ms.is_some_and(|at| is_expired(at, now_ms));
        if let Some(OwnBase::Value { expiry_ms, .. }) = &self.base
            && has_expired(expiry_ms)
        {
            self.base = Some(OwnBase::Deleted);
        }
        if let Some(last) = self.operands.iter().rposition(|o| has_expired(&o.expiry_ms)) {
            self.base = Some(OwnBase::Deleted);
            self.operands.drain(..=last);
        }
        self
    }

    /// The value of a key with these writes, as of [`Own::at`], over the value `below` them, which
    /// is asked for only if it counts.
    ///
    /// # Errors
    /// Those of `below` and of the merge operator.
    pub(crate) fn value(
        self,
        (reads, key): (&ReadOwner, &[u8]),
        below: impl FnOnce() -> Result<Option<Slice>>,
    ) -> Result<Option<Slice>> {
        let below = match self.base {
            Some(OwnBase::Deleted) => None,
            Some(OwnBase::Value { value, .. }) => Some(Slice::from(value)),
            None => below()?,
        };
        if self.operands.is_empty() {
            return Ok(below);
        }
        let newest_first: Vec<Slice> =
            self.operands.into_iter().rev().map(|operand| Slice::from(operand.value)).collect();
        merge_operands(reads, key, below.as_deref(), &newest_first).map(Some)
    }
}

/// The value below the operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnBase {
    Value { value: Vec<u8>, expiry_ms: Option<u64> },
    Deleted,
}

/// The writes to one keyspace.
#[derive(Clone, Debug)]
pub(crate) struct OwnWrites {
    order: KeyOrder,
    keys: BTreeMap<OrderedKey, Own>,
    /// The ranges that were removed, with what was written to them since: from (inclusive) and to
    /// (exclusive). No two of them meet, so that one look finds the range of a key.
    removed: BTreeMap<OrderedKey, Vec<u8>>,
    /// The memory that they take, about.
    bytes: usize,
}

impl OwnWrites {
    /// The keyspace's order.
    pub(crate) fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// No writes yet, to a keyspace of this order.
    pub(crate) fn new(order: &KeyOrder) -> OwnWrites {
        let (keys, removed) = (BTreeMap::new(), BTreeMap::new());
        OwnWrites { order: order.clone(), keys, removed, bytes: 0 }
    }

    /// The memory that they take, about, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The writes to a key; `None`: it was not written, and the database's value is seen.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Own> {
        let own = self.keys.get(&(key, &self.order) as &dyn AsOrderedKey).cloned();
        own.or_else(|| {
            self.is_removed(key).then(|| Own { base: Some(OwnBase::Deleted), operands: Vec::new() })
        })
    }

    /// Whether a range that was removed holds the key. Callers do not ask for keys that were
    /// written since.
    pub(crate) fn is_removed(&self, key: &[u8]) -> bool {
        self.range_before(key).is_some_and(|(_, to)| self.order.compare(key, to).is_lt())
    }

    /// The last removed range that begins with `key` or before it.
    fn range_before(&self, key: &[u8]) -> Option<(&OrderedKey, &Vec<u8>)> {
        let at = Bound::Included(&(key, &self.order) as &dyn AsOrderedKey);
        self.removed.range::<dyn AsOrderedKey, _>((Bound::Unbounded, at)).next_back()
    }

    /// The keys in a range that were written one by one, in order, with their writes.
    pub(crate) fn in_range(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Vec<(OrderedKey, Own)> {
        let is_beyond = |key: &[u8]| match upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => self.order.compare(key, upper).is_gt(),
            Bound::Excluded(upper) => self.order.compare(key, upper).is_ge(),
        };
        let from = lower.map(|key| OrderedKey::new(key, &self.order));
        let written = self.keys.range((from, Bound::Unbounded));
        let written = written.take_while(|(key, _)| !is_beyond(&key.key));
        written.map(|(key, own)| (key.clone(), own.clone())).collect()
    }

    /// Adds an operation. `expiry_ms` of the expiring kinds.
    pub(crate) fn note(&mut self, kind: Kind, key: &[u8], value: &[u8], expiry_ms: Option<u64>) {
        match kind {
            Kind::RangeDelete => self.remove_range(key, value),
            Kind::Merge | Kind::MergeExpiry => {
                let operand = OwnOperand { value: value.to_vec(), expiry_ms };
                if let Some(own) = self.keys.get_mut(&(key, &self.order) as &dyn AsOrderedKey) {
                    self.bytes += operand.memory_bytes();
                    own.operands.push(operand);
                    return;
                }
                let base = self.is_removed(key).then_some(OwnBase::Deleted);
                self.set(key, Own { base, operands: vec![operand] });
            }
            Kind::Delete | Kind::SingleDelete => {
                self.set(key, Own { base: Some(OwnBase::Deleted), operands: Vec::new() });
            }
            _ => {
                let base = Some(OwnBase::Value { value: value.to_vec(), expiry_ms });
                self.set(key, Own { base, operands: Vec::new() });
            }
        }
    }

    /// Takes `value` for all writes to a key so far, and what the database has of it: `None` if it
    /// is not there. Further operands are merged into it alone.
    pub(crate) fn settle(&mut self, key: &[u8], value: Option<&[u8]>) {
        let base = match value {
            Some(value) => OwnBase::Value { value: value.to_vec(), expiry_ms: None },
            None => OwnBase::Deleted,
        };
        self.set(key, Own { base: Some(base), operands: Vec::new() });
    }

    fn set(&mut self, key: &[u8], own: Own) {
        self.bytes += ENTRY_BYTES + key.len() + own.memory_bytes();
        if let Some(before) = self.keys.insert(OrderedKey::new(key, &self.order), own) {
            self.bytes -= ENTRY_BYTES + key.len() + before.memory_bytes();
        }
    }

    fn remove_range(&mut self, from: &[u8], to: &[u8]) {
        if self.order.compare(from, to).is_ge() {
            return;
        }
        let gone = self.in_range(Bound::Included(from), Bound::Excluded(to));
        for (key, own) in gone {
            self.bytes -= ENTRY_BYTES + key.key.len() + own.memory_bytes();
            self.keys.remove(&key as &dyn AsOrderedKey);
        }
        self.add_removed(from.to_vec(), to.to_vec());
    }

    /// Adds a removed range, as one with those that it meets.
    fn add_removed(&mut self, mut from: Vec<u8>, mut to: Vec<u8>) {
        if let Some((begin, end)) = self.range_before(&from)
            && self.order.compare(&from, end).is_le()
        {
            from = begin.key.to_vec();
        }
        while let Some((begin, end)) = self.range_before(&to)
            && self.order.compare(&from, &begin.key).is_le()
        {
            if self.order.compare(&to, end).is_lt() {
                to.clone_from(end);
            }
            let begin = begin.clone();
            self.bytes -= ENTRY_BYTES + begin.key.len() + end.len();
            self.removed.remove(&begin as &dyn AsOrderedKey);
        }
        self.bytes += ENTRY_BYTES + from.len() + to.len();
        self.removed.insert(OrderedKey::new(&from, &self.order), to);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use windrow_env::testing::Rng;

    /// Compared with a list of them, and no two meet.
    #[test]
    fn removed_ranges_are_joined_and_hold_the_same_keys() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut own, mut all) = (OwnWrites::new(&KeyOrder::default()), Vec::new());
            for _ in 0..rng.below(12) {
                let (from, to) = (rng.below(40) as u8, rng.below(40) as u8);
                own.note(Kind::RangeDelete, &[from], &[to], None);
                all.push(from..to);
                for key in 0..40u8 {
                    let is_removed = all.iter().any(|range| range.contains(&key));
                    assert_eq!(own.is_removed(&[key]), is_removed, "seed {seed}: {key} of {all:?}");
                }
            }
            let ranges: Vec<_> = own.removed.iter().collect();
            assert!(ranges.windows(2).all(|pair| pair[0].1[..] < *pair[1].0.key), "seed {seed}");
            own.note(Kind::Put, &[9], b"value", None);
            own.note(Kind::Merge, &[9], b"operand", None);
            own.note(Kind::RangeDelete, &[0], &[41], None);
            assert_eq!(own.memory_bytes(), ENTRY_BYTES + 2, "one range is left");
        }
    }
}
