//! Output cut: where the files of a job's output end.
//!
//! Owns: the axis, and the choice between its values. Never does: cut at a place
//! that a value did not choose.

mod by_size;
mod cutter;
mod overlap;

pub use by_size::BySize;
pub use cutter::Cutter;
pub use overlap::Overlap;

use crate::tree::Version;
use crate::view::PlanSettings;

/// Where output files end.
#[derive(Clone, Debug, PartialEq)]
pub enum Cut {
    /// At a size, or earlier where the level below is dense.
    BySize(BySize),
    /// Where the level below is dense, at sizes between two bounds (vLSM).
    Overlap(Overlap),
}

impl Cut {
    /// Decides where the files of an output into `level` end. `capacity` is that of a
    /// level's run.
    pub(crate) fn cutter(
        &self,
        version: &Version,
        settings: &PlanSettings,
        level: u32,
        capacity: impl Fn(u32) -> u64,
    ) -> Cutter {
        match self {
            Cut::BySize(by_size) => by_size.cutter(version, settings, level),
            Cut::Overlap(overlap) => {
                overlap.cutter(version, settings, level, (capacity(level), capacity(level + 1)))
            }
        }
    }
}
