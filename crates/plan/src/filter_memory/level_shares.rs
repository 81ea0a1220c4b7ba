//! The filter memory of each level, by the tree that is expected and not the present one.
//!
//! The best bits of a table depend on the size of the other levels. Files above the last level go
//! again with the next merges, while filters that were written short because of them stay short for
//! as long as their files live. The expected tree is known: level 0 and the SST-logs at their
//! limits, each level above the last at its capacity, and the last as it is. Memory is shared out
//! by Mnemosyne's Eq. 7 over one load for each level. A level's lookups in vain are not expected
//! but known: from its files, as far as they were asked.
//!
//! Owns: that share. Never does: share out within a level (`floors.rs`).

use super::curve::{BITS_CAP, BUILT};
use super::solver::{Load, solve};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

/// A level of the expected tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedLevel {
    /// Its number.
    pub level: u32,
    /// Bytes of its run and its SST-log together.
    pub bytes: f64,
    /// How many of its tables lie over a point.
    pub tables: f64,
}

/// Bits per key of each level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LevelBits {
    of_level: BTreeMap<u32, f64>,
    mean: f64,
}

impl LevelBits {
    /// Shares out a memory of `mean` bits per key of the tree; equally where nothing is expected.
    /// `vain` are the queries in vain of a table over all keys in a level.
    pub(super) fn new(
        expected: &[ExpectedLevel],
        vain: &dyn Fn(u32) -> f64,
        mean: f64,
    ) -> LevelBits {
        let load = |level: &ExpectedLevel| Load {
            entries: level.bytes,
            empty: level.tables * vain(level.level),
        };
        let loads: Vec<Load> = expected.iter().map(load).collect();
        let memory = mean * loads.iter().map(|load| load.entries).sum::<f64>();
        let bits = solve(&BUILT, &loads, memory, BITS_CAP).bits;
        let of_level = expected.iter().map(|level| level.level).zip(bits).collect();
        debug_invariant!(F2, mean >= 0.0, "{mean} bits per key of the tree");
        LevelBits { of_level, mean }
    }

    /// The bits per key of a level.
    pub(super) fn of(&self, level: u32) -> f64 {
        self.of_level.get(&level).copied().unwrap_or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(level: u32, bytes: f64, tables: f64) -> ExpectedLevel {
        ExpectedLevel { level, bytes, tables }
    }

    /// The rate of false positives of all levels is less than with the same bits for each, at the
    /// same memory.
    #[test]
    fn small_levels_have_longer_filters() {
        let tree = [level(0, 1.5, 1.5), level(1, 5.5, 1.5), level(2, 24.0, 1.0)];
        for mean in [2.0, 4.0, 10.0, 16.0] {
            let bits = LevelBits::new(&tree, &|_| 1.0, mean);
            assert!(bits.of(0) > bits.of(1) && bits.of(1) > bits.of(2), "{bits:?}");
            let used: f64 = tree.iter().map(|l| l.bytes * bits.of(l.level)).sum();
            let all: f64 = tree.iter().map(|l| l.bytes).sum();
            assert!((used / all - mean).abs() < 0.01, "{used} bits for {all} keys at {mean}");
            let rate = |bits_of: &dyn Fn(u32) -> f64| -> f64 {
                tree.iter().map(|l| l.tables * BUILT.rate(bits_of(l.level))).sum()
            };
            let (own, uniform) = (rate(&|n| bits.of(n)), rate(&|_| mean));
            assert!(own < uniform * 0.75, "{own} of {uniform} at {mean}");
        }
    }

    /// Where all lookups find their key, most of them in the last level, its filters are of little
    /// use.
    #[test]
    fn a_level_that_is_seldom_asked_in_vain_has_less() {
        let tree = [level(0, 1.5, 1.5), level(1, 5.5, 1.5), level(2, 24.0, 1.0)];
        let vain = |level: u32| if level == 2 { 0.01 } else { 1.0 };
        let (found, absent) =
            (LevelBits::new(&tree, &vain, 2.0), LevelBits::new(&tree, &|_| 1.0, 2.0));
        assert!(found.of(2) < absent.of(2) / 2.0, "{found:?} {absent:?}");
        assert!(found.of(1) > absent.of(1) + 2.0, "{found:?} {absent:?}");
    }

    #[test]
    fn a_level_that_nobody_expects_has_the_mean() {
        assert_eq!(LevelBits::new(&[], &|_| 1.0, 10.0).of(3), 10.0);
        let one = LevelBits::new(&[level(1, 100.0, 1.0)], &|_| 1.0, 10.0);
        assert!((one.of(1) - 10.0).abs() < 0.01 && one.of(2) == 10.0);
    }
}
