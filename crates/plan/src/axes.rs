//! The five axes, and a policy as one value on each.
//!
//! A value is a struct in a file of its own that holds options and nothing
//! else; an axis is an enum over its values. Adding a value: its file, a
//! variant, an arm in each method, a row in `preset.rs`. Enums and not trait
//! objects, so that policies compare, print, clone and are exhaustively
//! matched where that matters.

use crate::cut::{BySize, Cutter};
use crate::decision::Decision;
use crate::filter_memory::Uniform;
use crate::level0::Tiered;
use crate::pick::leveled::Leveled;
use crate::pick::manual::{self, ManualState};
use crate::shape::Leveling;
use crate::tree::{LEVELS_MAX, Part, Version};
use crate::view::{Settings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How large each level may grow.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Each level is a fixed ratio larger than the one above.
    Leveling(Leveling),
}

/// How flushed data waits in level 0, and what takes it to level 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Level0 {
    /// Whole memtables pile up, and go down together.
    Tiered(Tiered),
}

/// What moves down from the other levels, and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Picker {
    /// From the level most over its capacity, one file and what it overlaps.
    Leveled(Leveled),
}

/// Where output files end.
#[derive(Clone, Debug, PartialEq)]
pub enum Cut {
    /// At a size, or earlier where the level below is dense.
    BySize(BySize),
}

/// How many filter bits per key each file gets.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterMemory {
    /// No filters.
    None,
    /// The same for every file.
    Uniform(Uniform),
}

/// One value per axis. Parsed from a preset's name or an option string, which
/// `Display` gives back ([`crate::preset`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Level shape.
    pub shape: Shape,
    /// Level 0.
    pub level0: Level0,
    /// Picker.
    pub picker: Picker,
    /// Output cut.
    pub cut: Cut,
    /// Filter memory.
    pub filters: FilterMemory,
}

/// Work that waits, for pacing writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Epochs over the deepest point of level 0.
    pub level0_depth: u32,
    /// Estimate of the bytes that merges must write before every level is
    /// within its capacity.
    pub bytes: u64,
}

impl Policy {
    /// The next thing to do, or `Idle`. O(files) at worst; ask again only
    /// after the version, the busy set or the snapshots have changed, and now
    /// and then for what only time brings (expiry).
    pub fn pick(&self, view: &View<'_>) -> Decision {
        match &self.picker {
            Picker::Leveled(leveled) => leveled.pick(self, view),
        }
    }

    /// The next step of a manual compaction of `[lo, hi]` (`None`: unbounded).
    /// `Idle` with `state.is_done()` means finished, `Idle` without it that a
    /// running job is in the way: ask again when one has ended. Once done,
    /// what was in the range when it began stands in the deepest level without
    /// tombstones that no snapshot needs.
    ///
    /// Terminates whatever else happens: see [`ManualState`].
    pub fn manual(
        &self,
        view: &View<'_>,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
        state: &mut ManualState,
    ) -> Decision {
        manual::step(view, lo, hi, state)
    }

    /// Level 0's depth and an estimate of the merging that the tree's excess
    /// will cost.
    pub fn debt(&self, version: &Version, settings: &Settings) -> Debt {
        let level0_depth = version.level(0).map_or(0, |l| l.log_depth());
        let waiting = version.part_bytes(0, Part::Log);
        let mut bytes = 0u64;
        let mut carried = 0u64;
        if self.level0_score(version, settings) >= 1.0 {
            bytes = waiting.saturating_add(version.part_bytes(1, Part::Run));
            carried = waiting;
        }
        for level in 1..version.levels.len() as u32 {
            let run = version.part_bytes(level, Part::Run);
            let below = version.part_bytes(level + 1, Part::Run);
            let log = version.part_bytes(level, Part::Log);
            let size = run.saturating_add(carried);
            let excess = size.saturating_sub(self.capacity(version, settings, level));
            // What goes down is rewritten with its share of what it meets.
            let leaving = excess.saturating_add(log);
            let ratio = below as f64 / (size.max(1)) as f64;
            bytes = bytes.saturating_add((leaving as f64 * (1.0 + ratio)) as u64);
            carried = leaving;
        }
        Debt { level0_depth, bytes }
    }

    /// How urgent level 0 is; merging starts at 1.
    pub fn level0_score(&self, version: &Version, settings: &Settings) -> f64 {
        match &self.level0 {
            Level0::Tiered(tiered) => tiered.score(version, settings),
        }
    }

    pub(crate) fn pick_level0(&self, view: &View<'_>) -> Option<Decision> {
        match &self.level0 {
            Level0::Tiered(tiered) => tiered.pick(view),
        }
    }

    /// Keys before which a flush cuts its output, ascending; empty for one file.
    pub fn flush_cuts(&self, _version: &Version) -> Arc<[Vec<u8>]> {
        match &self.level0 {
            Level0::Tiered(_) => Arc::new([]),
        }
    }

    /// Decides where the files of an output into `output_level` end. Level 0
    /// is cut only by [`Policy::flush_cuts`].
    pub fn cutter(&self, version: &Version, settings: &Settings, output_level: u32) -> Cutter {
        match &self.cut {
            Cut::BySize(by_size) => by_size.cutter(version, settings, output_level),
        }
    }

    /// Filter bits per key for a file written into `level`; 0 means no filter.
    pub fn filter_bits(&self, version: &Version, level: u32) -> f64 {
        match &self.filters {
            FilterMemory::None => 0.0,
            FilterMemory::Uniform(uniform) => uniform.bits(version, level),
        }
    }

    /// Bytes that `level`'s run may hold before it is picked from. Level 0 has
    /// no run; its limit is a depth. The last possible level has no limit.
    pub fn capacity(&self, version: &Version, settings: &Settings, level: u32) -> u64 {
        if level + 1 >= LEVELS_MAX {
            return u64::MAX;
        }
        match &self.shape {
            Shape::Leveling(leveling) => leveling.capacity(version, settings, level),
        }
    }
}
