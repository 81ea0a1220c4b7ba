//! `by_size`: a file ends at `file_bytes`, or earlier once it overlaps so much
//! of the level below that merging it down later would be a large job.
//!
//! Owns: the limits of this value. Never does: cut an output into level 0.

use super::cutter::{CutLimits, Cutter};
use crate::tree::Version;
use crate::view::PlanSettings;
use alloc::sync::Arc;
use windrow_base::invariant;

/// Cuts by size and by overlap with the next level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BySize;

impl BySize {
    /// The cutter of one output stream into `output_level`.
    pub fn cutter(&self, version: &Version, settings: &PlanSettings, output_level: u32) -> Cutter {
        BySize::cutter_at(settings.file_bytes, version, settings, output_level)
    }

    /// Returns the cutter for files of `file_bytes` bytes.
    pub(super) fn cutter_at(
        file_bytes: u64,
        version: &Version,
        settings: &PlanSettings,
        output_level: u32,
    ) -> Cutter {
        invariant!(I1, file_bytes > 0, "tables of no bytes");
        // Level 0 is not cut: its files are made for one reading, and fewer are better.
        if output_level == 0 {
            return Cutter::at(Arc::new([]));
        }
        let limits = CutLimits {
            file_bytes,
            passed_bytes: settings.file_bytes.saturating_mul(settings.overlap_files_max as u64),
            ..CutLimits::NONE
        };
        Cutter::new(limits, version.level(output_level + 1).cloned())
    }
}
