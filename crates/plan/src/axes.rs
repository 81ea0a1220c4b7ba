//! The five axes, and a policy as one value on each.
//!
//! A value is a struct in a file of its own that holds options and nothing
//! else; an axis is an enum over its values. Adding a value: its file, a
//! variant, an arm in each method, a row in `preset.rs`. Enums and not trait
//! objects, so that policies compare, print, clone and are exhaustively
//! matched where that matters.

use crate::cut::{BySize, Cutter, Overlap};
use crate::decision::Decision;
use crate::filter_memory::merlin::Estimate;
use crate::filter_memory::{FilterJob, FilterPlan, Mnemosyne, Monkey, Uniform};
use crate::level0::{Fifo, Partitioned, Tiered};
use crate::pick::leveled::Leveled;
use crate::pick::manual::{self, ManualState};
use crate::pick::small;
use crate::pick::sst_log::{LogMode, SstLog};
use crate::shape::{Garnering, Leveling};
use crate::tree::{File, LEVELS_MAX, Part, Version};
use crate::view::{Settings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How large each level may grow.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Each level is a fixed ratio larger than the one above.
    Leveling(Leveling),
    /// Ratios grow towards the top (Autumn).
    Garnering(Garnering),
}

/// How flushed data waits in level 0, and what takes it to level 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Level0 {
    /// Whole memtables pile up, and go down together.
    Tiered(Tiered),
    /// A queue: the oldest flush goes down alone (vLSM).
    Fifo(Fifo),
    /// Flushes are cut in lanes of the key space, each a queue of its own.
    Partitioned(Partitioned),
}

/// What moves down from the other levels, and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Picker {
    /// From the level most over its capacity, one file and what it overlaps.
    Leveled(Leveled),
    /// Files move to their level's log first, and down together (L2SM).
    SstLog(SstLog),
}

/// Where output files end.
#[derive(Clone, Debug, PartialEq)]
pub enum Cut {
    /// At a size, or earlier where the level below is dense.
    BySize(BySize),
    /// Where the level below is dense, at sizes between two bounds (vLSM).
    Overlap(Overlap),
}

/// How many filter bits per key each file gets.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterMemory {
    /// No filters.
    None,
    /// The same for every file.
    Uniform(Uniform),
    /// By the size of each run (Monkey+).
    Monkey(Monkey),
    /// By the empty lookups that each file gets.
    Mnemosyne(Mnemosyne),
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
        if view.busy.is_reshaping() {
            return Decision::Idle;
        }
        if let Shape::Garnering(garnering) = &self.shape
            && let Some(decision) = garnering.reshape(view)
        {
            return decision;
        }
        let decision = match &self.picker {
            Picker::Leveled(leveled) => leveled.pick(self, view),
            Picker::SstLog(sst_log) => sst_log.pick(self, view),
        };
        let decision = match (&self.shape, decision) {
            (Shape::Garnering(garnering), Decision::Idle) => {
                garnering.drain(view).unwrap_or(Decision::Idle)
            }
            (_, decision) => decision,
        };
        match decision {
            Decision::Idle => small::pick(self, view).unwrap_or(Decision::Idle),
            decision => decision,
        }
    }

    /// What takes files out of level 0, or merges some of them there, whatever
    /// else were more urgent: for a level 0 that slows writers while all below it
    /// is to be left alone.
    pub fn relieve(&self, view: &View<'_>) -> Decision {
        if view.busy.is_reshaping() {
            return Decision::Idle;
        }
        self.pick_level0(view).unwrap_or(Decision::Idle)
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
        if view.busy.is_reshaping() {
            // It knows levels by their numbers.
            return Decision::Idle;
        }
        manual::step(view, lo, hi, state)
    }

    /// Level 0's depth and an estimate of the merging that the tree's excess
    /// will cost.
    pub fn debt(&self, version: &Version, settings: &Settings) -> Debt {
        let level0_depth = version.level(0).map_or(0, |l| l.log_depth());
        let (mut carried, mut bytes) = match &self.level0 {
            _ if self.level0_score(version, settings) < 1.0 => (0, 0),
            Level0::Tiered(tiered) => tiered.debt(version),
            Level0::Fifo(fifo) => fifo.debt(version),
            Level0::Partitioned(partitioned) => partitioned.debt(version, settings),
        };
        for level in 1..version.levels.len() as u32 {
            let run = version.part_bytes(level, Part::Run);
            let below = version.part_bytes(level + 1, Part::Run);
            let log = version.part_bytes(level, Part::Log);
            let log = log.saturating_sub(self.log_limit(version, settings, level));
            let size = run.saturating_add(carried);
            let excess = size.saturating_sub(self.capacity(version, settings, level));
            // What goes down is rewritten with its share of what it meets.
            let leaving = excess.saturating_add(log);
            let ratio = below as f64 / size.saturating_add(log).max(1) as f64;
            bytes = bytes.saturating_add((leaving as f64 * (1.0 + ratio)) as u64);
            carried = leaving;
        }
        Debt { level0_depth, bytes }
    }

    /// Bytes that `level`'s log may hold; 0 where the picker empties it.
    pub fn log_limit(&self, version: &Version, settings: &Settings, level: u32) -> u64 {
        match &self.picker {
            Picker::Leveled(_) => 0,
            Picker::SstLog(sst_log) => {
                sst_log.log_limit(self, version, settings, level).unwrap_or(0)
            }
        }
    }

    /// Whether output tables are to say how hot their keys are (`hotness/`).
    pub fn wants_hotness(&self) -> bool {
        matches!(&self.picker, Picker::SstLog(log) if log.mode == LogMode::Paper)
    }

    /// How urgent level 0 is; merging starts at 1.
    pub fn level0_score(&self, version: &Version, settings: &Settings) -> f64 {
        match &self.level0 {
            Level0::Tiered(tiered) => tiered.score(version, settings),
            Level0::Fifo(fifo) => fifo.score(version, settings),
            Level0::Partitioned(partitioned) => partitioned.score(version, settings),
        }
    }

    pub(crate) fn pick_level0(&self, view: &View<'_>) -> Option<Decision> {
        match &self.level0 {
            Level0::Tiered(tiered) => tiered.pick(view),
            Level0::Fifo(fifo) => fifo.pick(view),
            Level0::Partitioned(partitioned) => partitioned.pick(view),
        }
    }

    /// New boundaries of level 0's lanes, if the present ones no longer fit.
    /// Asked before each flush, which is cut by them and stores them with its
    /// edit.
    pub fn lanes(&self, version: &Version, settings: &Settings) -> Option<Arc<[Vec<u8>]>> {
        match &self.level0 {
            Level0::Partitioned(partitioned) => partitioned.lanes(version, settings),
            Level0::Tiered(_) | Level0::Fifo(_) => {
                (!version.lanes.is_empty()).then(|| Arc::new([]) as Arc<[Vec<u8>]>)
            }
        }
    }

    /// Decides where the files of a flush end, given the lanes' boundaries.
    pub fn flush_cutter(&self, settings: &Settings, lanes: &Arc<[Vec<u8>]>) -> Cutter {
        match &self.level0 {
            Level0::Partitioned(partitioned) => partitioned.flush_cutter(settings, lanes),
            Level0::Tiered(_) | Level0::Fifo(_) => Cutter::at(Arc::new([])),
        }
    }

    /// Decides where the files of an output into `output_level` end.
    pub fn cutter(&self, version: &Version, settings: &Settings, output_level: u32) -> Cutter {
        if output_level == 0 {
            // As a flush would have been: lanes go down apart.
            return self.flush_cutter(settings, &version.lanes);
        }
        let cutter = match &self.cut {
            Cut::BySize(by_size) => by_size.cutter(version, settings, output_level),
            Cut::Overlap(overlap) => {
                let capacity = self.capacity(version, settings, output_level);
                let below = self.capacity(version, settings, output_level + 1);
                overlap.cutter(version, settings, output_level, (capacity, below))
            }
        };
        // So that jobs of different lanes share no file of level 1: each would
        // have to wait for the other, and rewrite its part as well. A lane's job
        // writes all of its part of level 1, so that of small files there is
        // one a lane at most.
        match &self.level0 {
            Level0::Partitioned(_) if output_level == 1 => cutter.also_at(version.lanes.clone()),
            _ => cutter,
        }
    }

    /// Decides the filters of a job's outputs; see [`FilterPlan::new`].
    pub fn filter_plan(
        &self,
        version: &Version,
        job: &FilterJob<'_>,
        fresh: Option<Estimate>,
        estimate: &dyn Fn(&File) -> Option<Estimate>,
    ) -> FilterPlan {
        FilterPlan::new(&self.filters, version, job, fresh, estimate)
    }

    /// Filter bits per key on average over the tree.
    pub fn filter_bits_mean(&self) -> f64 {
        match &self.filters {
            FilterMemory::None => 0.0,
            FilterMemory::Uniform(uniform) => uniform.bits,
            FilterMemory::Monkey(monkey) => monkey.bits,
            FilterMemory::Mnemosyne(mnemosyne) => mnemosyne.bits,
        }
    }

    /// Whether queries are to be recorded file by file.
    pub fn learns_from_queries(&self) -> bool {
        matches!(self.filters, FilterMemory::Mnemosyne(_))
    }

    /// Bytes that `level`'s run may hold before it is picked from. Level 0 has
    /// no run; its limit is a depth. The last possible level has no limit.
    pub fn capacity(&self, version: &Version, settings: &Settings, level: u32) -> u64 {
        if level + 1 >= LEVELS_MAX {
            return u64::MAX;
        }
        match &self.shape {
            Shape::Leveling(leveling) => leveling.capacity(version, settings, level),
            Shape::Garnering(garnering) => garnering.capacity(version, settings, level),
        }
    }
}
