//! A failing device: a workload of some hundred operations on files, each of them failing in turn
//! (once, or from there on), and a disk that fills up.
//!
//! The rules (R13, P7-P10): no panic, no wrong answer, nothing acknowledged lost; after a failed
//! write, writes fail until the next open, which works once the fault is gone. Owns: these runs.
//! Never does: judge.

use crate::features::Feature;
use crate::trial::{Death, Trial};
use windrow_env::testing::Fault;

/// The number of operations of each sort in a run of a workload without faults.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Operations that change files.
    pub mutating: u64,
    /// Operations that read.
    pub reading: u64,
}

/// A workload under one set of options.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The workload.
    pub feature: Feature,
    /// The differences from the smallest settings.
    pub settings: &'static [(&'static str, &'static str)],
}

impl Work {
    /// Runs the workload without a fault.
    ///
    /// # Errors
    /// The operation that failed.
    pub fn measure(&self) -> Result<Extent, String> {
        let mut trial = Trial::new(self.settings);
        trial.run(&self.feature.deeds()?)?;
        Ok(Extent { mutating: trial.fs().operations(), reading: trial.fs().reads() })
    }

    /// Runs the workload with a fault, then continues without it from the remaining files, after
    /// the death of the process as well as after a power loss.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn check_fault(&self, fault: &Fault) -> Result<(), String> {
        let mut trial = Trial::new(self.settings);
        trial.fs().inject(fault.clone());
        trial.expect_failures();
        trial.run(&self.feature.deeds()?)?;
        trial.aftermath()
    }

    /// Fills a device of `capacity_bytes`, then gives it room.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn check_full(&self, capacity_bytes: u64) -> Result<(), String> {
        let mut trial = Trial::new(self.settings);
        trial.fs().set_capacity(Some(capacity_bytes));
        trial.expect_failures();
        trial.run(&self.feature.deeds()?)?;
        // While it is still full, opening may fail, but for no other reason.
        let mut full = trial.forked(Death::Killed(2));
        full.expect_failures();
        full.open().map_err(|e| format!("on the full device: {e}"))?;
        trial.fs().set_capacity(None);
        trial.aftermath().map_err(|e| format!("once there is room, {e}"))
    }

    /// Runs the workload with at most `count` files open.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn check_descriptors(&self, count: usize) -> Result<(), String> {
        let mut trial = Trial::new(self.settings);
        trial.fs().set_descriptors_max(Some(count));
        trial.expect_failures();
        trial.run(&self.feature.deeds()?)?;
        trial.fs().set_descriptors_max(None);
        trial.aftermath()
    }
}
