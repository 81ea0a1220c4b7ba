//! The writes of a transaction to one keyspace, as its own reads see them.
//!
//! Owns: the newest write of each key, and the ranges that were removed before it. Never does: read
//! the database; write.

use std::collections::BTreeMap;
use std::ops::Bound;
use windrow_base::{KeyOrder, Kind};
use windrow_read::read::is_expired;
use windrow_store::write::ordered_key::{AsOrderedKey, OrderedKey};

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

impl Own {
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
    /// The ranges that were removed: from (inclusive) and to (exclusive).
    removed: Vec<(Vec<u8>, Vec<u8>)>,
}

impl OwnWrites {
    /// The keyspace's order.
    pub(crate) fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// No writes yet, to a keyspace of this order.
    pub(crate) fn new(order: &KeyOrder) -> OwnWrites {
        OwnWrites { order: order.clone(), keys: BTreeMap::new(), removed: Vec::new() }
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
        let holds = |(from, to): &(Vec<u8>, Vec<u8>)| {
            self.order.compare(from, key).is_le() && self.order.compare(key, to).is_lt()
        };
        self.removed.iter().any(holds)
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

    fn set(&mut self, key: &[u8], own: Own) {
        self.keys.insert(OrderedKey::new(key, &self.order), own);
    }

    fn remove_range(&mut self, from: &[u8], to: &[u8]) {
        if self.order.compare(from, to).is_ge() {
            return;
        }
        let gone = self.in_range(Bound::Included(from), Bound::Excluded(to));
        for (key, _) in gone {
            self.keys.remove(&key as &dyn AsOrderedKey);
        }
        self.removed.push((from.to_vec(), to.to_vec()));
    }
}
