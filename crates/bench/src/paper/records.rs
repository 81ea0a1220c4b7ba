//! The records of a paper's experiment: keys in key-space order, values of
//! varying size, and for every record an absent key right after it.
//!
//! Unlike `Data`'s keys, a record's number is its rank in the key space, so
//! that a draw can cluster. Keys begin with 16 hexadecimal digits: they read
//! as text in dumps.

use crate::data::{Data, mix};

/// Bytes of the part of a key that tells records apart.
const HEAD_BYTES: usize = 16;

/// Sizes of an experiment's data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// Records, numbered from 0.
    pub(crate) count: u64,
    /// Bytes of a key, 16 or more.
    pub(crate) key_bytes: usize,
    /// Bytes of the smallest and of the largest value; uniform between.
    pub(crate) value_bytes: (usize, usize),
}

/// Makes records.
pub(crate) struct Records {
    pub(crate) sizes: Sizes,
    data: Data,
    /// Distance of two neighbouring records in the key space, in head units.
    step: u64,
}

impl Records {
    pub(crate) fn new(sizes: Sizes, seed: u64) -> Records {
        let data = Data::new(seed, sizes.value_bytes.1);
        let step = u64::MAX / sizes.count.max(1);
        Records { sizes, data, step }
    }

    /// Writes the key of record `number` into `key`, or the absent key after it.
    pub(crate) fn key(&self, number: u64, absent: bool, key: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        // Half-way to the next record: absent keys lie all over the key space.
        let head = number * self.step + if absent { self.step / 2 } else { 0 };
        key.clear();
        key.extend((0..HEAD_BYTES).map(|i| DIGITS[(head >> (60 - 4 * i)) as usize & 15]));
        let mut word = head;
        while key.len() < self.sizes.key_bytes {
            word = mix(word.wrapping_add(1));
            key.push(DIGITS[(word & 15) as usize]);
        }
    }

    /// Number of the record whose key this is; `None` for absent keys.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u64> {
        let digits = std::str::from_utf8(key.get(..HEAD_BYTES)?).ok()?;
        let head = u64::from_str_radix(digits, 16).ok()?;
        let number = head / self.step;
        (head.is_multiple_of(self.step) && number < self.sizes.count).then_some(number)
    }

    /// The value of record `number`, in every version of it.
    pub(crate) fn value(&self, number: u64) -> &[u8] {
        let (min, max) = self.sizes.value_bytes;
        let bytes = min + (mix(number ^ 0x76) % (max - min + 1) as u64) as usize;
        self.data.value_of(number, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_absent_ones_lie_between() {
        for (count, key_bytes) in [(1000, 16), (7, 128), (1, 40)] {
            let sizes = Sizes { count, key_bytes, value_bytes: (256, 1024) };
            let records = Records::new(sizes, 1);
            let (mut last, mut key) = (Vec::new(), Vec::new());
            for number in 0..count {
                for absent in [false, true] {
                    records.key(number, absent, &mut key);
                    assert_eq!(key.len(), key_bytes);
                    assert!(last < key, "{number} of {count}");
                    assert_eq!(records.number(&key), (!absent).then_some(number));
                    last.clone_from(&key);
                }
            }
        }
    }

    #[test]
    fn values_have_every_size_of_the_range() {
        let sizes = Sizes { count: 10_000, key_bytes: 16, value_bytes: (256, 1024) };
        let records = Records::new(sizes, 1);
        let lengths: Vec<usize> = (0..10_000).map(|n| records.value(n).len()).collect();
        assert_eq!(lengths.iter().min(), Some(&256));
        assert_eq!(lengths.iter().max(), Some(&1024));
        let mean = lengths.iter().sum::<usize>() / lengths.len();
        assert!((630..650).contains(&mean), "{mean}");
        assert_eq!(records.value(5), records.value(5));
        let fixed = Sizes { count: 10, key_bytes: 16, value_bytes: (50, 50) };
        assert_eq!(Records::new(fixed, 1).value(3).len(), 50);
    }
}
