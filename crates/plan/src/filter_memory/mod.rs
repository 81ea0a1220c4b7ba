//! Filter memory: bits per key of each file.
//!
//! Owns: the axis. Never does: build filters, or count lookups itself.

pub mod budget;
pub mod curve;
mod floors;
mod job;
mod level_shares;
pub mod merlin;
pub mod query_estimate;
pub mod solver;

mod mnemosyne;
mod monkey;
mod room;
mod uniform;

pub use budget::FilterPlan;
pub use job::FilterJob;
pub use level_shares::ExpectedLevel;
pub use mnemosyne::{Mnemosyne, SAMPLE, SAMPLE_MAX};
pub use monkey::Monkey;
pub use uniform::Uniform;

use windrow_base::debug_invariant;

/// How many filter bits per key each file gets.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterMemory {
    /// No filters.
    None,
    /// Equal bits for every file.
    Uniform(Uniform),
    /// By the size of each run (Monkey+).
    Monkey(Monkey),
    /// By the empty lookups that each file gets.
    Mnemosyne(Mnemosyne),
}

impl FilterMemory {
    /// Filter bits per key on average over the tree.
    pub fn bits_mean(&self) -> f64 {
        let bits = match self {
            FilterMemory::None => 0.0,
            FilterMemory::Uniform(uniform) => uniform.bits,
            FilterMemory::Monkey(monkey) => monkey.bits,
            FilterMemory::Mnemosyne(mnemosyne) => mnemosyne.bits,
        };
        debug_invariant!(F2, (0.0..f64::MAX).contains(&bits), "{bits} bits per key of the tree");
        bits
    }
}
