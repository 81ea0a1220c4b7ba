//! The records of a workload: keys from their numbers, values from number and generation, the same
//! on every machine.
//!
//! A value begins with its generation, so that any version of it can be recognised and checked.
//!
//! Owns: the bytes of a record. Never does: remember a write.

use crate::data::{ValueMaker, mix};
use crate::lengths::Lengths;
use crate::workload::Order;

/// Bytes of the part of a key that is different for each record.
const HEAD_BYTES: usize = 8;

/// Bytes before a value's text: its generation.
const GENERATION_BYTES: usize = 4;

/// Hexadecimal digits of a key of [`Order::Ranked`].
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes before a key's end that are digits of its head, in [`Order::Ranked`].
const RANK_BYTES: usize = 16;

/// The number of series of [`Order::Series`].
const SERIES: u64 = 1000;

/// Makes records.
pub(crate) struct Dataset {
    seed: u64,
    order: Order,
    key_bytes: usize,
    lengths: Lengths,
    data: ValueMaker,
    /// The distance of two neighbouring records of [`Order::Sorted`] and [`Order::Ranked`].
    step: u64,
}

impl Dataset {
    /// Makes the records with numbers below `capacity`.
    pub(crate) fn new(
        seed: u64,
        order: Order,
        key_bytes: usize,
        lengths: Lengths,
        capacity: u64,
    ) -> Dataset {
        let data = ValueMaker::new(seed, lengths.max() as usize);
        let step = u64::MAX / capacity.max(1);
        Dataset { seed, order, key_bytes, lengths, data, step }
    }

    /// Returns the bytes of a key.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Writes the key of record `number` into `key`. Distinct numbers have distinct keys.
    pub(crate) fn key(&self, number: u64, key: &mut Vec<u8>) {
        self.finish(self.head(number), key);
    }

    /// Writes a key near the one of `number` that no record has.
    pub(crate) fn absent_key(&self, number: u64, key: &mut Vec<u8>) {
        if self.order == Order::Ranked {
            return self.finish(self.head(number) + self.step / 2, key);
        }
        self.finish(self.head(number), key);
        // A neighbour of the head would do as well, but not in the hashed order, whose heads are
        // all taken. So the tail is different.
        let last = key.len() - 1;
        key[last] ^= 0x80;
    }

    fn head(&self, number: u64) -> u64 {
        match self.order {
            Order::Hashed => mix(number.wrapping_add(mix(self.seed))),
            Order::Sorted | Order::Ranked => number.wrapping_mul(self.step),
            // The series, then the time.
            Order::Series => ((number % SERIES) << 44) | (number / SERIES),
        }
    }

    fn finish(&self, head: u64, key: &mut Vec<u8>) {
        key.clear();
        if self.order == Order::Ranked {
            key.extend((0..RANK_BYTES).map(|i| DIGITS[(head >> (60 - 4 * i)) as usize & 15]));
            let mut word = head;
            while key.len() < self.key_bytes {
                word = mix(word.wrapping_add(1));
                key.push(DIGITS[(word & 15) as usize]);
            }
            return;
        }
        key.extend_from_slice(&head.to_be_bytes());
        let mut word = head ^ 0xa076_1d64_78bd_642f;
        while key.len() < self.key_bytes {
            word = mix(word);
            let left = (self.key_bytes - key.len()).min(HEAD_BYTES);
            key.extend_from_slice(&word.to_be_bytes()[..left]);
        }
    }

    /// Returns the number of the record with this key, in [`Order::Sorted`].
    pub(crate) fn sorted_number(&self, key: &[u8]) -> Option<u64> {
        let head = u64::from_be_bytes(key.get(..HEAD_BYTES)?.try_into().ok()?);
        head.is_multiple_of(self.step).then(|| head / self.step)
    }

    /// Returns the number of the record with this key, in [`Order::Ranked`]; `None` of absent keys.
    pub(crate) fn ranked_number(&self, key: &[u8]) -> Option<u64> {
        let digits = std::str::from_utf8(key.get(..RANK_BYTES)?).ok()?;
        let head = u64::from_str_radix(digits, 16).ok()?;
        head.is_multiple_of(self.step).then(|| head / self.step)
    }

    /// Writes the value of a record's generation into `value`.
    pub(crate) fn value(&self, number: u64, generation: u32, value: &mut Vec<u8>) {
        let word = mix(number ^ u64::from(generation) << 40);
        // A ranked record has one size in all versions.
        let length = if self.order == Order::Ranked { mix(number ^ 0x76) } else { word };
        let bytes = (self.lengths.of(length) as usize).max(GENERATION_BYTES);
        value.clear();
        value.extend_from_slice(&generation.to_le_bytes());
        value.extend_from_slice(self.data.value_of(word, bytes - GENERATION_BYTES));
    }

    /// Returns the mean bytes of a record.
    pub(crate) fn record_bytes(&self) -> f64 {
        self.key_bytes as f64 + self.lengths.mean()
    }

    /// Returns whether `value` is one that the record has had, its generation at most `newest`.
    pub(crate) fn is_value(
        &self,
        number: u64,
        newest: u32,
        value: &[u8],
        scratch: &mut Vec<u8>,
    ) -> bool {
        let Some(head) = value.first_chunk::<GENERATION_BYTES>() else { return false };
        let generation = u32::from_le_bytes(*head);
        self.value(number, generation, scratch);
        generation <= newest && value == scratch.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn dataset(order: Order) -> Dataset {
        Dataset::new(7, order, 20, Lengths::Fixed(100), 10_000)
    }

    #[test]
    fn keys_are_distinct_and_absent_ones_are_not_there() {
        for order in [Order::Hashed, Order::Sorted, Order::Series, Order::Ranked] {
            let data = dataset(order);
            let (mut keys, mut key) = (BTreeSet::new(), Vec::new());
            for number in 0..10_000 {
                data.key(number, &mut key);
                assert_eq!(key.len(), 20);
                assert!(keys.insert(key.clone()));
            }
            for number in 0..10_000 {
                data.absent_key(number, &mut key);
                assert!(!keys.contains(&key));
            }
        }
    }

    #[test]
    fn sorted_keys_rise_with_their_numbers() {
        let data = dataset(Order::Sorted);
        let (mut last, mut key) = (Vec::new(), Vec::new());
        for number in 0..10_000 {
            data.key(number, &mut key);
            assert!(last < key);
            assert_eq!(data.sorted_number(&key), Some(number));
            last.clone_from(&key);
        }
    }

    #[test]
    fn ranked_keys_are_digits_with_absent_ones_between_them() {
        for (count, key_bytes) in [(1000, 16), (7, 128), (1, 40)] {
            let data = Dataset::new(1, Order::Ranked, key_bytes, Lengths::Fixed(100), count);
            let (mut last, mut key) = (Vec::new(), Vec::new());
            for number in 0..count {
                data.key(number, &mut key);
                assert!(last < key && key.len() == key_bytes, "{number} of {count}");
                assert_eq!(data.ranked_number(&key), Some(number));
                last.clone_from(&key);
                data.absent_key(number, &mut key);
                assert!(last < key && key.len() == key_bytes, "{number} of {count}");
                assert_eq!(data.ranked_number(&key), None);
                last.clone_from(&key);
            }
        }
    }

    #[test]
    fn a_value_is_told_from_any_other() {
        let data = dataset(Order::Hashed);
        let (mut value, mut scratch) = (Vec::new(), Vec::new());
        data.value(3, 5, &mut value);
        assert_eq!(value.len(), 100);
        assert!(data.is_value(3, 5, &value, &mut scratch));
        assert!(!data.is_value(3, 4, &value, &mut scratch), "from the future");
        assert!(!data.is_value(4, 5, &value, &mut scratch), "of another record");
        value[50] ^= 1;
        assert!(!data.is_value(3, 5, &value, &mut scratch), "damaged");
        assert!(!data.is_value(3, 5, b"", &mut scratch));
    }
}
