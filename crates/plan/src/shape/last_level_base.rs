//! `base=last`: capacities from the last level up.
//!
//! The last of L levels has no limit. The capacity of each level above it is that of the one below
//! divided by the shape's ratio, as in RocksDB's dynamic level sizes and as Autumn's section 3.1
//! asks for ("Space Amplification"). So the last level is always the ratio `t` larger than the
//! level that can shadow it, whatever the size of the data. Capacities that are fixed from the top
//! down leave a last level that is a fraction of its capacity, next to a level above it that is as
//! large.
//!
//! Level 1 grows with the data, and its partitions keep its jobs small. Once its
//! capacity passes `level_base_bytes`, a level is *inserted* on top: one edit renames
//! every level to the next number, and no data moves. Once level 2 would
//! hold less than half of that as level 1, level 1 is *removed*: its capacity is 0,
//! ordinary jobs empty it, and one edit renames the others back. Between the two the data
//! must halve or double.
//!
//! Rejected: to insert below level 0 without renaming, by numbers that leave gaps.
//! Every loop over levels would meet empty ones, and a manifest is written once for each
//! eightfold growth.
//!
//! Owns: those capacities, and when a level is inserted or removed. Never does: move data.

use crate::decision::{Decision, Reason, Reshape};
use crate::tree::{LEVELS_MAX, Version};
use crate::view::{PlanSettings, View};
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// A level is removed once its successor as level 1 would have less than this part of the bytes
/// that insert one.
const REMOVE_PART: u64 = 2;

/// Capacities of a tree from its last level up.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastLevelBase<R> {
    /// Capacity of a level over that of the one above, given the level (from 2)
    /// and L; above 1.
    pub(super) ratio: R,
}

impl<R: Fn(u32, u32) -> f64> LastLevelBase<R> {
    /// Capacity of `level`'s run in bytes; 0 for level 0, which has none, and for a level 1 that
    /// will be removed. The last level has no limit.
    pub(super) fn capacity(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        let levels = version.planned_levels();
        match level {
            0 => 0,
            n if n >= levels => u64::MAX,
            1 if self.removes(version, settings, levels).is_some() => 0,
            n => self.share(version, levels, n) as u64,
        }
    }

    /// Returns the share of `level` in a tree of L levels: the last one's bytes, divided by the
    /// ratios between.
    fn share(&self, version: &Version, levels: u32, level: u32) -> f64 {
        invariant!(S1, (1..=levels).contains(&level), "level {level} of {levels}");
        let last = version.level(levels).map_or(0, |last| last.bytes()) as f64;
        let ratios = (level + 1..=levels).map(|n| (self.ratio)(n, levels)).product::<f64>();
        invariant!(S1, ratios >= 1.0, "levels {level} to {levels} shrink by {ratios}");
        last / ratios
    }

    /// Returns the reason to insert a level, if one is due.
    fn inserts(&self, version: &Version, settings: &PlanSettings, levels: u32) -> Option<Reason> {
        let (bytes, limit) = (self.share(version, levels, 1) as u64, settings.level_base_bytes);
        let reason = Reason::InsertLevel { levels: levels + 1, bytes, limit };
        (bytes > limit && levels + 2 < LEVELS_MAX).then_some(reason)
    }

    /// Returns the reason to remove a level, if one is superfluous: of a tree without it, level 1
    /// would have less than half of the bytes that insert one.
    fn removes(&self, version: &Version, settings: &PlanSettings, levels: u32) -> Option<Reason> {
        let fewer = levels.checked_sub(1).filter(|&n| n >= 1)?;
        let bytes = self.share(version, levels, 2) as u64;
        let limit = settings.level_base_bytes / REMOVE_PART;
        (bytes < limit).then_some(Reason::RemoveLevel { levels: fewer, bytes, limit })
    }

    /// Returns the insertion or removal that is due. One that is due and not possible yet is
    /// `Idle`: no job begins until those that run have ended, since they know levels by their
    /// numbers. `None` while a table is damaged: jobs that wait for it would wait for ever.
    pub(super) fn reshape(&self, view: &View<'_>) -> Option<Decision> {
        let (version, levels) = (view.version, view.version.planned_levels());
        if view.busy.is_damaged() {
            return None;
        }
        let inserted = self.inserts(version, view.settings, levels);
        let removed = || {
            // Its jobs go on until it is empty.
            let is_empty = version.level(1).is_none_or(|level| level.is_empty());
            self.removes(version, view.settings, levels).filter(|_| is_empty)
        };
        let is_insertion = inserted.is_some();
        let reason = inserted.or_else(removed)?;
        if !view.busy.is_empty() {
            return Some(Decision::Idle);
        }
        let after = if is_insertion { levels + 1 } else { levels - 1 };
        debug_invariant!(S1, (1..LEVELS_MAX).contains(&after), "a tree of {after} levels");
        let renamed: Vec<_> = version
            .files()
            .filter(|(level, _, _)| *level > 0)
            .map(|(level, part, file)| (level, part, file.clone()))
            .collect();
        let cursors = renamed_cursors(version, is_insertion);
        Some(Decision::Reshape(Reshape { levels: after, renamed, is_insertion, cursors, reason }))
    }
}

/// Returns where round-robin picking goes on in each level, under its new number.
fn renamed_cursors(version: &Version, is_insertion: bool) -> Vec<(u32, Option<Vec<u8>>)> {
    let cursor = |level: u32| version.cursor(level).map(<[u8]>::to_vec);
    let last = version.cursors.len() as u32;
    let renamed = (1..=last).map(|level| match is_insertion {
        true => (level, if level > 1 { cursor(level - 1) } else { None }),
        false => (level, cursor(level + 1)),
    });
    renamed.collect()
}
