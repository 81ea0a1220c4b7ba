//! `overlap(f, max, min)`: vLSM's overlap-aware files ("vLSM: Low tail latency
//! and I/O amplification in LSM-based KV stores", section 4.2.1).
//!
//! A file ends at S_M bytes; and once the files of the next level that it
//! touches, the one with the next key included, have more than `f * S_M` bytes,
//! it ends if it has S_m of its own. So *good* files, that end within the bound,
//! are cheap to take down later; *poor* ones, that had too little of their own
//! by then, gather the costly ranges and are as small as can be.
//!
//! The paper bounds a ratio, bytes below over bytes of the file. At its own setting, an S_M of 1/f
//! of the bytes below, no file would be good by that, so the bound here is on bytes. The paper cuts
//! so in level 1 alone, where the step to the next level is larger than f; here that is asked of
//! every level, since with a Garnering shape it holds of more. Elsewhere a file seldom touches that
//! much, and early cuts would make small files for nothing: there it is `by_size`.
//!
//! Owns: the two bounds, and where they hold. Never does: cut by them in level 0, or where the step
//! to the next level is less than f.

use super::by_size::BySize;
use super::cutter::{CutLimits, Cutter};
use crate::tree::{Part, Version};
use crate::view::PlanSettings;
use windrow_base::invariant;

/// S_m is this part of S_M, as in the paper.
const MIN_PART: u64 = 8;

/// Cuts by overlap with the level below.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// Most bytes of the next level that a good file overlaps, in files (S_M).
    pub f: f64,
    /// S_M in bytes; 0 for the setting `file_bytes`.
    pub max_bytes: u64,
    /// S_m in bytes; 0 for an eighth of S_M.
    pub min_bytes: u64,
}

impl Overlap {
    /// The cutter of one output stream into `output_level`, given the
    /// capacities of that level and the next in bytes.
    pub fn cutter(
        &self,
        version: &Version,
        settings: &PlanSettings,
        output_level: u32,
        (capacity, below): (u64, u64),
    ) -> Cutter {
        let file_bytes = if self.max_bytes > 0 { self.max_bytes } else { settings.file_bytes };
        // A last level has no limit: its bytes count.
        let below = match below {
            u64::MAX => version.part_bytes(output_level + 1, Part::Run),
            below => below,
        };
        // Capacities are rounded down: a byte more, or a ratio of f may seem larger.
        let steep = below as f64 > self.f * (capacity as f64 + 1.0);
        if output_level == 0 || !steep {
            return BySize::cutter_at(file_bytes, version, settings, output_level);
        }
        let min_bytes = if self.min_bytes > 0 { self.min_bytes } else { file_bytes / MIN_PART };
        invariant!(I1, file_bytes > 0, "tables of no bytes");
        debug_assert!(self.f >= 1.0, "a table may touch {} tables", self.f);
        let limits = CutLimits {
            file_bytes,
            touched_bytes: (self.f * file_bytes as f64) as u64,
            touched_min_bytes: min_bytes.min(file_bytes),
            ..CutLimits::NONE
        };
        Cutter::new(limits, version.level(output_level + 1).cloned())
    }
}
