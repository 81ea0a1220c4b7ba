//! The six axes, and a policy as one value on each.
//!
//! A value is a struct in a file of its own that holds options and nothing else; an axis is an enum
//! over its values, in the folder of those files. A new value takes its file, a variant of the
//! axis, an arm in each method and a row in `preset.rs`. Axes are enums and not trait objects, so
//! that policies compare, print, clone and are exhaustively matched where that matters.
//!
//! Owns: the policy, and the order in which its axes are asked. Never does: choose a file itself,
//! or keep state.

use crate::cut::Cutter;
use crate::decision::Decision;
use crate::filter_memory::merlin::Estimate;
use crate::filter_memory::{ExpectedLevel, FilterJob, FilterPlan};
use crate::pick::Levels;
use crate::pick::manual::{self, ManualState};
use crate::pick::read_triggered_merges::{self, ReadCosts};
use crate::pick::{scarce_room, small_files};
use crate::sizes::{self, Sizes};
use crate::soundness::checked;
use crate::tree::{File, LEVELS_MAX, Part, Version};
use crate::usage::Use;
use crate::view::{PlanSettings, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

pub use crate::cut::Cut;
pub use crate::filter_memory::FilterMemory;
pub use crate::level0::{Level0, Sample, Sampler};
pub use crate::pick::Picker;
pub use crate::shape::Shape;

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
    /// The keyspace's use: the dial between writes and reads, for values that go by it.
    pub usage: Use,
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
    /// Returns the next decision, or `Idle`. O(files) at worst; ask again only after the version,
    /// the busy set or the snapshots have changed, and now and then because entries expire.
    pub fn pick(&self, view: &View<'_>) -> Decision {
        invariant!(I1, !view.version.levels.is_empty(), "a tree without a level");
        if view.busy.is_reshaping() {
            return Decision::Idle;
        }
        if let Some(decision) = self.shape.reshape(view) {
            return checked(view, decision);
        }
        let decision = match self.picker.pick(self.levels(), view) {
            Decision::Idle => self.shape.drain(view).unwrap_or(Decision::Idle),
            decision => decision,
        };
        let cutter = |level| self.cutter(view.version, view.settings, level);
        let decision = match decision {
            Decision::Idle => small_files::pick(view, cutter).unwrap_or(Decision::Idle),
            decision => decision,
        };
        checked(view, decision)
    }

    /// Returns a merge of tables that have cost reads as many bytes as it rewrites. The engine asks
    /// where [`Policy::pick`] is idle. `Idle` for policies that do not go by their use.
    pub fn pick_for_reads(&self, view: &View<'_>, costs: &ReadCosts) -> Decision {
        if !self.merges_for_reads() || costs.is_empty() || view.busy.is_reshaping() {
            return Decision::Idle;
        }
        checked(view, read_triggered_merges::pick(view, costs).unwrap_or(Decision::Idle))
    }

    /// Whether reads must be counted for [`Policy::pick_for_reads`].
    pub fn merges_for_reads(&self) -> bool {
        self.level0.is_by_dial() || self.picker.is_by_dial()
    }

    /// The axes that the picker asks.
    fn levels(&self) -> Levels<'_> {
        Levels { shape: &self.shape, level0: &self.level0 }
    }

    /// Returns a decision that takes files out of level 0, or merges some of them there, even if
    /// another level is more urgent. For a level 0 that slows writers while everything below it
    /// must be left alone.
    pub fn relieve(&self, view: &View<'_>) -> Decision {
        if view.busy.is_reshaping() {
            return Decision::Idle;
        }
        let decision = checked(view, self.level0.pick(view).unwrap_or(Decision::Idle));
        let files = decision.files();
        let is_relief = files.is_empty() || files.iter().any(|(level, _, _)| *level == 0);
        invariant!(I10, is_relief, "{decision} takes nothing out of level 0");
        let deep = files.iter().map(|(level, _, _)| *level).find(|&level| level > 1);
        invariant!(I10, deep.is_none(), "{decision} takes from level {deep:?}, not from level 0");
        decision
    }

    /// Returns a merge that reads `room_bytes` at most, and so writes no more, where the device has
    /// no room for the merge that [`Policy::pick`] or [`Policy::manual`] wants. `Idle` if none
    /// fits. It takes nothing from below `deepest`.
    pub fn pick_within(&self, view: &View<'_>, room_bytes: u64, deepest: u32) -> Decision {
        if view.busy.is_reshaping() {
            return Decision::Idle;
        }
        checked(view, scarce_room::pick(view, room_bytes, deepest).unwrap_or(Decision::Idle))
    }

    /// Returns the next step of a manual compaction of `[lo, hi]` (`None`: unbounded). `Idle` with
    /// `state.is_done()` means finished, `Idle` without it that a running job is in the way: ask
    /// again when one has ended. Once done, the entries that were in the range when it began are in
    /// the deepest level, without tombstones that no snapshot needs.
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
        let (level, was_done) = (state.level(), state.is_done());
        let decision = checked(view, manual::step(view, lo, hi, state));
        debug_assert!(level <= state.level(), "it goes back from {level} to {}", state.level());
        debug_assert!(!was_done || decision.is_idle(), "it is done, and goes on: {decision}");
        decision
    }

    /// Returns level 0's depth and an estimate of the merging that the tree's excess will cost.
    pub fn debt(&self, version: &Version, settings: &PlanSettings) -> Debt {
        let level0_depth = version.level(0).map_or(0, |l| l.sst_log_depth());
        let (mut carried, mut bytes) = self.level0.debt(version, settings);
        let waiting = version.part_bytes(0, Part::SstLog);
        debug_assert!(carried <= waiting, "{carried} bytes leave level 0, which has {waiting}");
        debug_assert!(carried <= bytes, "{carried} bytes are merged by writing {bytes}");
        for level in 1..version.levels.len() as u32 {
            let run = version.part_bytes(level, Part::Run);
            let below = version.part_bytes(level + 1, Part::Run);
            let log = version.part_bytes(level, Part::SstLog);
            let log = log.saturating_sub(self.log_limit(version, settings, level));
            let size = run.saturating_add(carried);
            let excess = size.saturating_sub(self.capacity(version, settings, level));
            // The leaving bytes are rewritten with their share of the level below.
            let leaving = excess.saturating_add(log);
            let most = size.saturating_add(version.part_bytes(level, Part::SstLog));
            debug_assert!(leaving <= most, "{leaving} bytes leave level {level}, of {most}");
            let ratio = below as f64 / size.saturating_add(log).max(1) as f64;
            bytes = bytes.saturating_add((leaving as f64 * (1.0 + ratio)) as u64);
            carried = leaving;
        }
        Debt { level0_depth, bytes }
    }

    /// Bytes that `level`'s SST-log may hold; 0 where the picker empties it.
    pub fn log_limit(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        let limit = self.picker.log_limit(self.levels(), version, settings, level);
        let is_bottom = version.deepest().is_none_or(|deepest| level >= deepest);
        invariant!(I10, limit == 0 || !is_bottom, "the SST-log of the last level may be kept");
        invariant!(I10, limit == 0 || level > 0, "level 0 may hold {limit} bytes for good");
        limit
    }

    /// Bytes that level 0 may hold before something is merged out of it.
    pub fn level0_limit(&self, version: &Version, settings: &PlanSettings) -> u64 {
        self.level0.expected(version, settings).bytes as u64
    }

    /// Whether output tables must record how hot their keys are (`hotness/`).
    pub fn wants_hotness(&self) -> bool {
        self.picker.wants_hotness()
    }

    /// How urgent level 0 is; merging starts at 1.
    pub fn level0_score(&self, version: &Version, settings: &PlanSettings) -> f64 {
        self.level0.score(version, settings)
    }

    /// Whether [`Policy::boundaries`] needs a sample of the entries that a flush will write: while
    /// the tree does not show where keys are. A sample takes a pass over the memtable.
    pub fn wants_sample(&self, version: &Version, settings: &PlanSettings) -> bool {
        self.level0.wants_sample(version, settings)
    }

    /// New boundaries of the partitions of level 0, if the present ones no longer fit. Asked before
    /// each flush, which is cut by them and stores them with its edit. Flushes that run at once
    /// from one version must bring the same sample.
    pub fn boundaries(
        &self,
        version: &Version,
        settings: &PlanSettings,
        sample: Option<&Sample>,
    ) -> Option<Arc<[Vec<u8>]>> {
        let boundaries = self.level0.boundaries(version, settings, sample);
        let ascend = boundaries.iter().all(|keys| {
            keys.windows(2).all(|pair| version.order.compare(&pair[0], &pair[1]).is_lt())
        });
        debug_invariant!(I1, ascend, "the boundaries of level 0's partitions do not ascend");
        boundaries
    }

    /// Decides where the files of a flush of `bytes` end, given the partitions' boundaries.
    pub fn flush_cutter(&self, bytes: u64, boundaries: &Arc<[Vec<u8>]>) -> Cutter {
        self.level0.flush_cutter(bytes, boundaries)
    }

    /// Decides where the files of an output into `output_level` end.
    pub fn cutter(&self, version: &Version, settings: &PlanSettings, output_level: u32) -> Cutter {
        if output_level == 0 {
            // As a flush would have been: partitions are merged down separately.
            return self.flush_cutter(settings.memtable_bytes, &version.boundaries);
        }
        invariant!(I1, output_level < LEVELS_MAX, "an output into level {output_level}");
        let capacity = |level| self.capacity(version, settings, level);
        // A partition has several files of level 1, so that boundaries can follow the data.
        let halved =
            PlanSettings { file_bytes: (settings.file_bytes / 2).max(1), ..settings.clone() };
        let settings = if self.splits_level1() && output_level == 1 { &halved } else { settings };
        let cutter = self.cut.cutter(version, settings, output_level, capacity);
        // Jobs of different partitions must share no file of level 1: each would
        // have to wait for the other, and rewrite its part as well. A partition's job
        // writes all of its part of level 1, so that there is at most one small file
        // per partition.
        let by_columns =
            self.picker.takes_columns() && version.deepest().is_some_and(|n| n == output_level);
        match &self.level0 {
            Level0::Partitioned(_) if output_level == 1 || by_columns => {
                cutter.also_at(version.boundaries.clone())
            }
            _ => cutter,
        }
    }

    /// Whether files of level 1 are half as large as others: where sizes do not
    /// follow from the number of partitions.
    fn splits_level1(&self) -> bool {
        matches!(self.level0, Level0::Partitioned(_)) && self.shape.is_from_last()
    }

    /// The tree that filter memory is shared out by: level 0, SST-logs and the levels above the
    /// last one as full as they may be, the last one as it is.
    pub fn expected_levels(
        &self,
        version: &Version,
        settings: &PlanSettings,
    ) -> Vec<ExpectedLevel> {
        let last = version.planned_levels();
        let of_level = |level: u32| {
            let run = match level == last {
                true => version.level(level).map_or(0, |level| level.bytes()),
                false => self.capacity(version, settings, level),
            };
            let log = if level == last { 0 } else { self.log_limit(version, settings, level) };
            // An SST-log's files came out of the run.
            let tables = 1.0 + log as f64 / run.max(1) as f64;
            let bytes = run.saturating_add(log) as f64;
            (run > 0).then_some(ExpectedLevel { level, bytes, tables })
        };
        let level0 = self.level0.expected(version, settings);
        core::iter::once(level0).chain((1..=last).filter_map(of_level)).collect()
    }

    /// Decides the filters of a job's outputs; see [`FilterPlan::new`].
    pub fn filter_plan(
        &self,
        version: &Version,
        job: &FilterJob<'_>,
        fresh: Option<Estimate>,
        estimate: &dyn Fn(&File) -> Option<Estimate>,
    ) -> FilterPlan {
        let level = job.output.0;
        invariant!(I1, level < LEVELS_MAX, "filters are planned for level {level}");
        debug_invariant!(F2, job.reserved_bits >= 0.0, "{} bits reserved", job.reserved_bits);
        FilterPlan::new(&self.filters, version, job, fresh, estimate)
    }

    /// Filter bits per key on average over the tree.
    pub fn filter_bits_mean(&self) -> f64 {
        self.filters.bits_mean()
    }

    /// Whether queries must be recorded file by file.
    pub fn learns_from_queries(&self) -> bool {
        self.query_sample().is_some()
    }

    /// Returns n, a power of two, where one lookup in n is recorded; `None` if none is.
    pub fn query_sample(&self) -> Option<u32> {
        match &self.filters {
            FilterMemory::Mnemosyne(mnemosyne) => Some(mnemosyne.sample),
            _ => None,
        }
    }

    /// Bytes that `level`'s run may hold before it is picked from. Level 0 has
    /// no run; its limit is a depth. The last possible level has no limit.
    pub fn capacity(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        self.shape.capacity(version, settings, level)
    }

    /// Largest memtable that suits the policy; `u64::MAX` if any does.
    pub fn memtable_bytes_max(&self) -> u64 {
        sizes::memtable_bytes_max(&self.level0)
    }

    /// The sizes that go with a memtable of `memtable_bytes`.
    pub fn sizes(&self, memtable_bytes: u64) -> Sizes {
        Sizes::of(&self.shape, &self.level0, &self.cut, memtable_bytes)
    }
}
