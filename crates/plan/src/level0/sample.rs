//! A sample of the entries of a flush: where the tree does not show yet where keys are, the
//! boundaries of level 0's partitions come from the memtable itself.
//!
//! Keys at even steps of bytes, each with the bytes before it, are gathered in one pass over the
//! entries of the flush. The number of bytes need not be known: when there are too many keys, every
//! other one goes, and steps are twice as long from there on. Nothing is random: equal entries make
//! equal samples.
//!
//! A boundary is stored with the version, so that long keys are no part of a sample: boundaries
//! of 64 KiB each would be as large as a memtable. Older versions of a key are passed over, since
//! a flush drops them.
//!
//! Owns: the sample, and the boundaries that it makes. Never does: decide how many partitions there
//! are.

use alloc::vec::Vec;
use windrow_base::{KeyOrder, debug_invariant, invariant};

/// Most keys of a sample: eight for each of the most partitions that are usual.
const KEYS_MAX: usize = 512;
/// Keys of more bytes are passed over.
const KEY_BYTES_MAX: usize = 1 << 10;

/// Keys of a flush at even steps of bytes, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Each with the bytes of all keys before it.
    keys: Vec<(Vec<u8>, u64)>,
    /// Of all keys.
    bytes: u64,
}

impl Sample {
    /// Bytes of the flush; of several versions of a key the newest counts alone.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns at most `partitions - 1` boundaries that share the bytes out: each at the first key
    /// of the sample after its share ends. All are above the smallest key of the flush.
    pub(super) fn boundaries(&self, partitions: usize) -> Vec<Vec<u8>> {
        let mut boundaries: Vec<Vec<u8>> = Vec::new();
        let mut next = 1;
        for (key, before) in &self.keys {
            let is_due = |next: usize| {
                u128::from(self.bytes) * next as u128 <= u128::from(*before) * partitions as u128
            };
            if next >= partitions || !is_due(next) {
                continue;
            }
            while next < partitions && is_due(next) {
                next += 1;
            }
            boundaries.push(key.clone());
        }
        let count = boundaries.len();
        invariant!(I10, count < partitions.max(1), "{count} boundaries of {partitions} partitions");
        boundaries
    }

    /// The part of all bytes that is in the fullest partition of these boundaries.
    pub(super) fn largest_share(&self, order: &KeyOrder, boundaries: &[Vec<u8>]) -> f64 {
        let begin = |boundary: &Vec<u8>| {
            let at = self.keys.partition_point(|(key, _)| order.compare(key, boundary).is_lt());
            self.keys.get(at).map_or(self.bytes, |(_, before)| *before)
        };
        let ends = boundaries.iter().map(begin).chain([self.bytes]);
        let (mut start, mut most) = (0, 0);
        for end in ends {
            debug_invariant!(I1, start <= end, "boundaries do not ascend");
            most = most.max(end - start);
            start = end;
        }
        most as f64 / self.bytes.max(1) as f64
    }
}

/// Gathers a [`Sample`].
#[derive(Clone, Debug)]
pub struct Sampler {
    order: KeyOrder,
    sample: Sample,
    /// The key that was seen last.
    last: Option<Vec<u8>>,
    /// Bytes from one key of the sample to the next, at least.
    step: u64,
    /// The next key with at least this number of bytes before it is taken. The smallest of all has
    /// none, and would bound nothing.
    wanted_from: u64,
}

impl Sampler {
    /// Begins with no entry.
    pub fn new(order: KeyOrder) -> Sampler {
        Sampler { order, sample: Sample::default(), last: None, step: 1, wanted_from: 1 }
    }

    /// Takes the next entry of a flush, in order of keys, the newest version of a key first.
    /// `bytes` is its size in a table.
    pub fn see(&mut self, user_key: &[u8], bytes: u64) {
        // Keys that differ may be equal in a custom order.
        let is_older = |last: &Vec<u8>| self.order.compare(last, user_key).is_eq();
        if self.last.as_ref().is_some_and(is_older) {
            return;
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(user_key);
        let before = self.sample.bytes;
        if before >= self.wanted_from && user_key.len() <= KEY_BYTES_MAX {
            self.sample.keys.push((user_key.to_vec(), before));
            self.wanted_from = before.saturating_add(self.step);
        }
        while self.sample.keys.len() > KEYS_MAX {
            self.thin_out();
        }
        self.sample.bytes = before.saturating_add(bytes.max(1));
    }

    /// Doubles the step, for the keys that are there too.
    fn thin_out(&mut self) {
        self.step = self.step.saturating_mul(2);
        self.wanted_from = self.step;
        self.sample.keys.retain(|(_, before)| {
            let stays = *before >= self.wanted_from;
            if stays {
                self.wanted_from = before.saturating_add(self.step);
            }
            stays
        });
    }

    /// Returns the sample.
    pub fn finish(self) -> Sample {
        let keys = &self.sample.keys;
        let ascend = |pair: &[(Vec<u8>, u64)]| self.order.compare(&pair[0].0, &pair[1].0).is_lt();
        debug_invariant!(I1, keys.windows(2).all(ascend), "keys of a sample do not ascend");
        self.sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use alloc::vec;
    use core::cmp::Ordering;
    use windrow_base::Comparator;

    fn sample(keys: impl Iterator<Item = (Vec<u8>, u64)>) -> Sample {
        let mut sampler = Sampler::new(KeyOrder::Bytewise);
        keys.for_each(|(key, bytes)| sampler.see(&key, bytes));
        sampler.finish()
    }

    fn numbers(keys: core::ops::Range<u32>, bytes: u64) -> Sample {
        sample(keys.map(|n| (n.to_be_bytes().to_vec(), bytes)))
    }

    #[test]
    fn partitions_get_the_same_bytes_whatever_there_is() {
        for count in [64, 512, 513, 10_000, 300_000] {
            for bytes in [1, 100, 5000] {
                let sample = numbers(0..count, bytes);
                assert!(sample.keys.len() <= KEYS_MAX, "{count}: {}", sample.keys.len());
                assert_eq!(sample.bytes(), u64::from(count) * bytes);
                let boundaries = sample.boundaries(32);
                assert_eq!(boundaries.len(), 31, "{count} of {bytes}");
                let at = |key: &Vec<u8>| u32::from_be_bytes(key.as_slice().try_into().unwrap());
                let mut starts = vec![0];
                starts.extend(boundaries.iter().map(at));
                starts.push(count);
                let most = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
                assert!(most <= count.div_ceil(32) * 5 / 4, "{most} of {count}");
            }
        }
    }

    /// Values of the upper half are nine times as large.
    #[test]
    fn bytes_count_and_not_keys() {
        let keys =
            (0..10_000u32).map(|n| (n.to_be_bytes().to_vec(), 10 + u64::from(n / 5000) * 80));
        let boundaries = sample(keys).boundaries(10);
        let lower = boundaries.iter().filter(|key| **key < 5000u32.to_be_bytes().to_vec()).count();
        assert_eq!((boundaries.len(), lower), (9, 0));
        assert!(boundaries[0] < 5200u32.to_be_bytes().to_vec(), "{:?}", boundaries[0]);
    }

    /// Boundaries are in each edit that names them, and in memory for ever.
    #[test]
    fn long_keys_bound_nothing() {
        let long = |n: u32| [n.to_be_bytes().to_vec(), vec![7; 60_000]].concat();
        assert_eq!(sample((0..100).map(|n| (long(n), 60_100))).boundaries(16), [[]; 0]);
        // Those in between do.
        let short = |n: u32| n.to_be_bytes().to_vec();
        let mixed = (0..100).flat_map(|n| [(short(n), 100), (long(n), 60_100)]);
        let boundaries = sample(mixed).boundaries(16);
        assert_eq!(boundaries.len(), 15);
        assert!(boundaries.iter().all(|key| key.len() == 4));
    }

    /// `A` and `a` are versions of one key there, and the larger comes first.
    #[test]
    fn keys_are_told_apart_by_their_order() {
        struct Backwards;
        impl Comparator for Backwards {
            fn id(&self) -> &str {
                "backwards"
            }
            fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
                b.to_ascii_lowercase().cmp(&a.to_ascii_lowercase())
            }
        }
        let order = KeyOrder::Custom(Arc::new(Backwards));
        let mut sampler = Sampler::new(order);
        for key in ["D", "d", "C", "c", "B", "b", "A", "a"] {
            sampler.see(key.as_bytes(), 10);
        }
        let sample = sampler.finish();
        assert_eq!(sample.bytes(), 40);
        assert_eq!(sample.boundaries(8), ["C", "B", "A"].map(|key| key.as_bytes().to_vec()));
    }

    #[test]
    fn the_same_entries_make_the_same_sample() {
        assert_eq!(numbers(0..5000, 7), numbers(0..5000, 7));
        assert_eq!(numbers(0..1, 7).boundaries(4), [[]; 0]);
        assert_eq!(numbers(0..0, 7).boundaries(4), [[]; 0]);
    }
}
