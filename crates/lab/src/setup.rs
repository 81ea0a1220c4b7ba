//! The set-up of a simulation: a policy, the sizes of its tree, a workload.
//!
//! Sizes are in *units*: one unit represents a file of 8 MB, in which the design's table counts,
//! and is made of `unit_keys` keys.
//!
//! Owns: the sizes, and their defaults. Never does: simulate.

use crate::workload::Workload;
use windrow_base::{Error, Result};
use windrow_plan::axes::Level0;
use windrow_plan::{PlanSettings, Policy};

/// Sizes of a tree, in units.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSizes {
    /// Updates that fill a memtable.
    pub memtable: f64,
    /// Where output files are cut.
    pub file: f64,
    /// Capacity of level 1.
    pub base: f64,
    /// Units of the level below after which an output file is cut early, in
    /// times `file`.
    pub overlap: u32,
}

impl TreeSizes {
    /// Returns the sizes that the table of `evidence.rs` has for a policy of this level 0: a
    /// memtable of 64 MB and a level 1 of 256 MB, or those of vLSM (8 and 64 MB) where level 0 is a
    /// queue. Files of 8 MB.
    pub fn of(policy: &Policy) -> TreeSizes {
        let overlap = PlanSettings::default().overlap_files_max;
        match policy.level0 {
            Level0::Fifo(_) => TreeSizes { memtable: 1.0, file: 1.0, base: 8.0, overlap },
            Level0::Tiered(_) | Level0::Partitioned(_) => {
                // From the last level up, as the policy itself has it: seventeen memtables at most.
                let base = if policy.shape.is_from_last() { 136.0 } else { 32.0 };
                TreeSizes { memtable: 8.0, file: 1.0, base, overlap }
            }
        }
    }
}

/// The order of work after a job on level 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Every level below is brought back within its limit before level 0 is looked at again. This
    /// is a chain, as the design's table counts it.
    #[default]
    Chains,
    /// The policy's most urgent job comes first, as in the engine: several jobs on level 0 may
    /// share the work that follows, and the last of them is charged with it.
    Urgency,
}

/// One simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The policy.
    pub policy: Policy,
    /// Sizes of its tree.
    pub sizes: TreeSizes,
    /// Distinct keys.
    pub keys: u32,
    /// Keys in a unit.
    pub unit_keys: u32,
    /// Which keys are updated.
    pub workload: Workload,
    /// The order of work after a job on level 0.
    pub order: Order,
    /// Seed of everything random.
    pub seed: u64,
    /// Updates before measuring, after every key was written, as a multiple of the keys;
    /// [`LOAD`] to measure from the empty tree on.
    pub warm_rounds: f64,
    /// Updates measured, as a multiple of the keys.
    pub rounds: f64,
}

/// Rounds before measuring that leave out the first write of every key, too.
pub const LOAD: f64 = -1.0;
/// Keys that represent 8 MB.
pub const UNIT_KEYS: u32 = 256;
/// The design's data: 12 GB.
pub const DATA_UNITS: u32 = 1536;

impl Setup {
    /// The design's data under a policy, at its sizes.
    pub fn new(policy: Policy) -> Setup {
        Setup {
            sizes: TreeSizes::of(&policy),
            policy,
            keys: DATA_UNITS * UNIT_KEYS,
            unit_keys: UNIT_KEYS,
            workload: Workload::Uniform,
            order: Order::default(),
            seed: 1,
            warm_rounds: 1.0,
            rounds: 2.0,
        }
    }

    /// Reads a policy as [`Policy::parse`] does, with sizes among its words:
    /// `leveled memtable=8 file=8 base=32`, in units.
    ///
    /// # Errors
    /// `InvalidArgument` naming the word at fault.
    pub fn parse(text: &str) -> Result<Setup> {
        let mut sizes = Vec::new();
        let mut rest = Vec::new();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((name @ ("memtable" | "file" | "base" | "overlap"), value)) => {
                    sizes.push((name, value))
                }
                _ => rest.push(word),
            }
        }
        let rest = if rest.is_empty() { "leveled".to_owned() } else { rest.join(" ") };
        let mut setup = Setup::new(Policy::parse(&rest)?);
        for (name, value) in sizes {
            let units = value.parse::<f64>().ok().filter(|u| (0.01..=1e6).contains(u));
            let units = units.ok_or_else(|| {
                Error::invalid(format!("`{name}={value}` must be a number of units above 0"))
            })?;
            match name {
                "memtable" => setup.sizes.memtable = units,
                "file" => setup.sizes.file = units,
                "overlap" => setup.sizes.overlap = units as u32,
                _ => setup.sizes.base = units,
            }
        }
        Ok(setup)
    }

    /// The sizes as policies read them, a key being a byte.
    pub(crate) fn settings(&self) -> PlanSettings {
        let keys = |units: f64| ((units * self.unit_keys as f64) as u64).max(1);
        PlanSettings {
            memtable_bytes: keys(self.sizes.memtable),
            file_bytes: keys(self.sizes.file),
            level_base_bytes: keys(self.sizes.base),
            overlap_files_max: self.sizes.overlap,
            file_price_percent: self.policy.usage.file_price_percent(),
            space_max_percent: self.policy.usage.space_max_percent(),
            ..PlanSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_be_given_with_the_words_of_a_policy() {
        let setup = Setup::parse("leveled memtable=8 level0=tiered(k=2) base=16").unwrap();
        assert_eq!(setup.policy, Policy::parse("leveled level0=tiered(k=2)").unwrap());
        assert_eq!(setup.sizes, TreeSizes { memtable: 8.0, file: 1.0, base: 16.0, overlap: 10 });
        assert_eq!(Setup::parse("leveled overlap=40").unwrap().sizes.overlap, 40);
        assert_eq!(Setup::parse("file=8").unwrap().policy, Policy::leveled());
        assert!(Setup::parse("leveled file=0").is_err());
        assert!(Setup::parse("leveled file=much").is_err());
        assert!(Setup::parse("no_such_preset").is_err());
    }
}
