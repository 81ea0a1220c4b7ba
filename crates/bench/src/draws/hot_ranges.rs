//! A few hot key ranges among many, and hot keys in each range.
//!
//! Cao, Dong, Vemuri, Du: "Characterizing, Modeling, and Benchmarking RocksDB
//! Key-Value Workloads at Facebook" (FAST 2020): accesses of a range of keys
//! fall off as a sum of two exponentials, those of keys within a range by a
//! power law. Parameters are those of db_bench's `mixgraph` with all of the
//! paper's distributions. db_bench derives range and key from one random
//! number, which ties them; here these are two numbers. Ranges keep their exact
//! shares, which db_bench rounds to whole multiples of the coldest's.
//!
//! Owns: the choice of a range, and of a record in it. Records' numbers must be
//! in key order, or a range is not a key range. Never does: make a key.

use super::order::Permutation;
use crate::data::{Draw, mix};

/// The number of ranges, of equally many records.
const RANGES: u64 = 30;

/// Accesses of the range that is `n`th by popularity, from 1 on: `A exp(B n) +
/// C exp(D n)`.
const RANGE_SHARES: [f64; 4] = [14.18, -2.917, 0.0164, -0.08082];

/// The share of accesses that the first `x` keys of a range get: `A x^B`.
const KEY_SHARES: [f64; 2] = [0.002_312, 0.3467];

/// Draws a range, then a record in it.
#[derive(Clone, Debug)]
pub(crate) struct HotRanges {
    /// Upper ends of the ranges' shares in the order of popularity, up to 1.
    ends: [f64; RANGES as usize],
    /// The ranges in the order of popularity.
    ranges: [u64; RANGES as usize],
    /// The number of records in a range, and in all.
    records: u64,
    count: u64,
}

impl HotRanges {
    /// Makes the draws over `count` records; those beyond a multiple of the
    /// ranges' number are not drawn.
    pub(crate) fn new(count: u64, seed: u64) -> HotRanges {
        let [a, b, c, d] = RANGE_SHARES;
        let weight = |n: f64| a * (b * n).exp() + c * (d * n).exp();
        let mut ends: [f64; RANGES as usize] = std::array::from_fn(|i| weight(i as f64 + 1.0));
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let total = ends[ends.len() - 1];
        ends.iter_mut().for_each(|end| *end /= total);
        let order = Permutation::new(RANGES, seed);
        let ranges = std::array::from_fn(|popularity| order.at(popularity as u64));
        HotRanges { ends, ranges, records: (count / RANGES).max(1), count: count.max(1) }
    }

    /// Returns a record's number.
    pub(crate) fn next(&self, draw: &mut Draw) -> u64 {
        let unit = draw.unit();
        let popularity = self.ends.partition_point(|end| *end <= unit);
        let range = self.ranges[popularity.min(self.ranges.len() - 1)];
        let [a, b] = KEY_SHARES;
        // From 0 to 4e7; popular keys of a range lie anywhere in it.
        let key = (draw.unit() / a).powf(1.0 / b) as u64;
        let offset = mix(key.wrapping_add(mix(range + 1))) % self.records;
        // With fewer records than ranges, some ranges share one.
        (range * self.records + offset) % self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::chi_square;

    const COUNT: u64 = 30_000;
    const DRAWN: u64 = 1_000_000;

    fn drawn() -> Vec<u64> {
        let (ranges, mut draw) = (HotRanges::new(COUNT + 7, 3), Draw::new(4));
        let mut counts = vec![0; COUNT as usize];
        (0..DRAWN).for_each(|_| counts[ranges.next(&mut draw) as usize] += 1);
        counts
    }

    #[test]
    fn ranges_have_the_shares_of_the_paper() {
        let counts = drawn();
        let mut ranges: Vec<u64> = counts.chunks(1000).map(|c| c.iter().sum()).collect();
        assert!(ranges[0] < DRAWN / 2, "the hottest range is the first");
        ranges.sort_unstable_by(|a, b| b.cmp(a));
        let weight = |n: f64| 14.18 * (-2.917 * n).exp() + 0.0164 * (-0.08082 * n).exp();
        let weights: Vec<f64> = (1..=30).map(|n| weight(f64::from(n))).collect();
        let total: f64 = weights.iter().sum();
        // The paper's fit is one of shares: their sum is nearly one already.
        assert!((total - 1.0).abs() < 0.03, "{total}");
        let shares: Vec<f64> = weights.iter().map(|w| w / total).collect();
        assert!((0.77..0.80).contains(&shares[0]), "{}", shares[0]);
        // The sort of neighbours with near shares costs a little of the
        // randomness.
        assert!(chi_square::deviation(&ranges, &shares, 29) < 4.0);
    }

    #[test]
    fn keys_of_a_range_follow_the_power_law() {
        let counts = drawn();
        let hottest = counts.chunks(1000).max_by_key(|c| c.iter().sum::<u64>()).unwrap();
        let of_range = hottest.iter().sum::<u64>() as f64;
        // The first key has a share of .0023, and the share of the keys that
        // scatter onto it: all 4e7 keys of the law share the range's 1000
        // records.
        let mut sorted = hottest.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let top = sorted[0] as f64 / of_range;
        assert!((0.0025..0.005).contains(&top), "{top}");
        assert!(0 < sorted[999], "all records are drawn");
        let median = sorted[500] as f64 / of_range;
        assert!(2.0 < top / median, "{top} {median}");
    }

    #[test]
    fn few_records_stay_in_bounds() {
        for count in [1, 29, 60, 61] {
            let (ranges, mut draw) = (HotRanges::new(count, 3), Draw::new(4));
            let drawn = (0..10_000).map(|_| ranges.next(&mut draw));
            assert_eq!(drawn.max(), Some(count.min(60) - 1));
        }
    }
}
