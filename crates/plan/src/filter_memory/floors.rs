//! The floors: the filter memory that stays with a level, whatever lies above it at the moment.
//!
//! The price of the whole tree moves memory between levels as well as within them. Here the
//! expected tree (`level_shares.rs`) divides it between levels, and use moves it freely among the
//! files of one level. A small part of it is a pool, with the memory that levels leave that are not
//! as full as expected. Jobs draw from the pool by the price of the present tree while it lasts. A
//! job has its outputs' floor whatever other filters hold, so that no table goes without a filter
//! because others came first.
//!
//! Owns: the floors. Never does: give out the pool (`room.rs`).

use super::curve::{BITS_CAP, BUILT};
use super::level_shares::LevelBits;
use super::solver::{Load, solve};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

/// Returns the bits of a filter that come from the pool.
pub(super) fn drawn(held_bits: f64, floor_bits: f64) -> f64 {
    (held_bits - floor_bits).max(0.0)
}

/// The price of each level by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Floors {
    of_level: BTreeMap<u32, f64>,
    /// Bits per key that a level has of the memory.
    bits: LevelBits,
    /// Part of a level's memory that does not move to others.
    stays: f64,
}

impl Floors {
    /// Computes the floors of loads with their levels, which have `bits` of the memory. The part
    /// `stays` of that does not leave its level. O(F log F).
    pub(super) fn new(loads: &[(u32, Load)], bits: LevelBits, stays: f64) -> Floors {
        let mut levels: BTreeMap<u32, Vec<Load>> = BTreeMap::new();
        for (level, load) in loads {
            levels.entry(*level).or_default().push(*load);
        }
        let price = |level: u32, loads: &[Load]| {
            let entries: f64 = loads.iter().map(|load| load.entries).sum();
            solve(&BUILT, loads, bits.of(level) * entries, BITS_CAP).c
        };
        let of_level = levels.iter().map(|(level, loads)| (*level, price(*level, loads))).collect();
        Floors { of_level, bits, stays }
    }

    /// Bits per key of a level's files on average.
    pub(super) fn mean(&self, level: u32) -> f64 {
        self.stays * self.bits.of(level)
    }

    /// Bits per key that a file of the level has at least.
    pub(super) fn bits(&self, level: u32, load: &Load) -> f64 {
        let Some(c) = self.of_level.get(&level).filter(|_| load.empty > 0.0) else {
            return 0.0;
        };
        let bits = self.stays * BUILT.bits(libm::log(load.empty / load.entries) - c, BITS_CAP);
        debug_invariant!(F1, (0.0..=BITS_CAP).contains(&bits), "a floor of {bits} bits per key");
        bits
    }

    /// The floor of these loads together, in bits.
    pub(super) fn sum<'a>(&self, loads: impl IntoIterator<Item = &'a (u32, Load)>) -> f64 {
        loads.into_iter().map(|(level, load)| load.entries * self.bits(*level, load)).sum()
    }
}
