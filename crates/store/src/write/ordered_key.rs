//! A user key with the order of its keyspace, as a key of a `BTreeMap` that is looked up by
//! borrowed bytes.
//!
//! Owns: the key's bytes. Never does: compare keys of two orders.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;
use windrow_base::KeyOrder;

/// A key that a map holds. All keys of a map have one order.
#[derive(Clone, Debug)]
pub struct OrderedKey {
    pub key: Arc<[u8]>,
    order: KeyOrder,
}

/// A key that is looked up in a map.
pub trait AsOrderedKey {
    fn bytes(&self) -> &[u8];
    fn order(&self) -> &KeyOrder;
}

impl OrderedKey {
    pub fn new(key: &[u8], order: &KeyOrder) -> OrderedKey {
        OrderedKey { key: key.into(), order: order.clone() }
    }
}

impl AsOrderedKey for OrderedKey {
    fn bytes(&self) -> &[u8] {
        &self.key
    }

    fn order(&self) -> &KeyOrder {
        &self.order
    }
}

impl AsOrderedKey for (&[u8], &KeyOrder) {
    fn bytes(&self) -> &[u8] {
        self.0
    }

    fn order(&self) -> &KeyOrder {
        self.1
    }
}

impl<'a> Borrow<dyn AsOrderedKey + 'a> for OrderedKey {
    fn borrow(&self) -> &(dyn AsOrderedKey + 'a) {
        self
    }
}

impl Ord for dyn AsOrderedKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().compare(self.bytes(), other.bytes())
    }
}

impl PartialOrd for dyn AsOrderedKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn AsOrderedKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn AsOrderedKey + '_ {}

impl Ord for OrderedKey {
    fn cmp(&self, other: &OrderedKey) -> Ordering {
        self.order.compare(&self.key, &other.key)
    }
}

impl PartialOrd for OrderedKey {
    fn partial_cmp(&self, other: &OrderedKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedKey {
    fn eq(&self, other: &OrderedKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedKey {}
