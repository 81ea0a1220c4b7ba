//! `garnering(t, c)`: Autumn's shape (Zhao, Miller, Reznikov, Agrawal and
//! El Abbadi, "Autumn: A Scalable Read Optimized LSM-tree based Key-Value Stores
//! with Fast Point and Range Read Speed").
//!
//! The last of L levels is `t` times the one above it, and every ratio further
//! up is larger by 1/c (Eq. 4): `C_i / C_(i-1) = t / c^(L-i)`. So L grows with
//! the square root of the logarithm of the data, and a read asks fewer runs.
//!
//! L is persisted with the version. Deriving it from the deepest level that
//! holds a file was rejected: then a full last level must spill before there
//! is room, and one stray file below it costs a whole run for a long time.
//!
//! *Growing* (delayed last-level compaction): once the last level is over its
//! capacity, L rises by one edit and no data moves, because all capacities
//! rise with it. *Shrinking*: once the whole tree fits in a quarter of what the
//! last of L-1 levels would hold, level L-1 is emptied into level L by ordinary
//! jobs, when there is nothing more urgent, and then level L takes its name.
//! Both compare with the capacity of the last level, one with L levels and the
//! other with L-1, so that between a step and its undoing the data must grow or
//! shrink fourfold, whatever `t` and `c` are.
//!
//! Owns: the capacities, and when L changes. Never does: pick a file, but to empty level L-1 before
//! it goes.

use super::last_level_base::LastLevelBase;
use crate::decision::{Decision, Reason, Reshape};
use crate::pick;
use crate::tree::{LEVELS_MAX, Part, Version};
use crate::view::{PlanSettings, View};
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// The tree shrinks when it would fill only this part of the last level.
const SHRINK_PART: u64 = 4;

/// The capacity of level 1 as the tree grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Always `level_base_bytes`, so that jobs out of level 0 stay as small as
    /// they are; the levels below follow by Eq. 4.
    #[default]
    Constant,
    /// As Eq. 5 has it: it grows by 1/c with every level.
    Growing,
    /// The last level's bytes divided by all ratios; `level_base_bytes` at most:
    /// `shape/last_level_base.rs`.
    Last,
}

/// The Garnering shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Garnering {
    /// Ratio of the last level to the one above; above 1.
    pub t: f64,
    /// How much less each ratio is than the one above it; in (0, 1].
    pub c: f64,
    /// The capacity of level 1.
    pub base: Base,
}

impl Garnering {
    /// Capacity of `level`'s run in bytes; 0 for level 0, which has none.
    pub fn capacity(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        match self.base {
            Base::Last => self.capacities().capacity(version, settings, level),
            Base::Constant | Base::Growing => {
                self.capacity_of(version.planned_levels(), settings, level)
            }
        }
    }

    /// Eq. 4: `C_i / C_(i-1) = t / c^(L-i)`.
    fn capacities(&self) -> LastLevelBase<impl Fn(u32, u32) -> f64> {
        let (t, c) = (self.t, self.c);
        LastLevelBase { ratio: move |level, levels| t / libm::pow(c, (levels - level) as f64) }
    }

    /// Capacity in bytes of `level` of a tree of `levels`. With B the paper's
    /// buffer, here `level_base_bytes / t`, so that c = 1 is `leveling(t)`:
    ///
    /// - growing base, Eq. 5: `B t^i / c^((2L-1-i) i / 2)`;
    /// - constant base: the same without the factor `c^-(L-1)` of level 1, which
    ///   is `B t^i / c^((2L-2-i) (i-1) / 2)`, the product of Eq. 4 over levels 2 to i.
    ///
    /// Levels below L, which the plan does not have, go on with ratio `t`.
    fn capacity_of(&self, levels: u32, settings: &PlanSettings, level: u32) -> u64 {
        if level == 0 {
            return 0;
        }
        invariant!(S1, levels >= 1, "a tree of no levels");
        invariant!(S1, self.t > 1.0, "each level is {} of the one above", self.t);
        invariant!(S1, self.c > 0.0 && self.c <= 1.0, "ratios grow by {}", self.c);
        let (l, i) = (levels as f64, level.min(levels) as f64);
        let exponent = match self.base {
            Base::Growing => (2.0 * l - 1.0 - i) * i / 2.0,
            Base::Constant | Base::Last => (2.0 * l - 2.0 - i) * (i - 1.0) / 2.0,
        };
        let plain = settings.level_base_bytes as f64 * libm::pow(self.t, level as f64 - 1.0);
        // The cast saturates.
        (plain / libm::pow(self.c, exponent)) as u64
    }

    /// Returns a change of L that is due and possible now.
    pub fn reshape(&self, view: &View<'_>) -> Option<Decision> {
        if self.base == Base::Last {
            return self.capacities().reshape(view);
        }
        let levels = view.version.planned_levels();
        let reshape = self.grow(view, levels).or_else(|| self.shrink(view, levels))?;
        Some(Decision::Reshape(reshape))
    }

    /// Adds a level. Where level 1 is the last and its capacity constant, this gives it no room;
    /// its files then go to level 2 in the ordinary way.
    fn grow(&self, view: &View<'_>, levels: u32) -> Option<Reshape> {
        let capacity = self.capacity_of(levels, view.settings, levels);
        let bytes = view.version.part_bytes(levels, Part::Run);
        let levels = levels + 1;
        let after = self.capacity_of(levels, view.settings, levels);
        debug_invariant!(S1, after >= capacity, "{levels} levels hold {after} and not {capacity}");
        (bytes > capacity && levels < LEVELS_MAX).then(|| Reshape {
            levels,
            renamed: Vec::new(),
            is_insertion: false,
            cursors: Vec::new(),
            reason: Reason::Grow { levels, bytes, capacity },
        })
    }

    /// Removes a level. I3 holds after renaming because nothing lies between the two levels, and I4
    /// because epochs stay and the log they come to is empty. No job may be under way to either
    /// level: its edit would name the wrong one.
    fn shrink(&self, view: &View<'_>, levels: u32) -> Option<Reshape> {
        let reason = self.wants_shrink(view, levels)?;
        let version = view.version;
        let planned_only = version.part(levels, Part::Run).is_empty()
            && version.part(levels, Part::SstLog).is_empty();
        let above_is_empty = version.level(levels - 1).is_none_or(|l| l.is_empty());
        invariant!(S1, levels > 1, "a tree of {levels} levels is to shrink");
        let free = match planned_only {
            true => !view.busy.reaches(levels),
            false => above_is_empty && !view.busy.reaches(levels - 1),
        };
        let files = version.files().filter(|(n, _, _)| *n == levels);
        let renamed: Vec<_> = files.map(|(n, part, f)| (n, part, f.clone())).collect();
        let is_bare = renamed.is_empty();
        invariant!(S1, is_bare == planned_only, "level {levels} has {} tables", renamed.len());
        let idle = renamed.iter().all(|(_, _, f)| !view.busy.is_busy(f.number));
        let shape = Reshape {
            levels: levels - 1,
            renamed,
            is_insertion: false,
            cursors: Vec::new(),
            reason,
        };
        (free && idle).then_some(shape)
    }

    fn wants_shrink(&self, view: &View<'_>, levels: u32) -> Option<Reason> {
        let fewer = levels.checked_sub(1).filter(|&n| n >= 1)?;
        let capacity = self.capacity_of(fewer, view.settings, fewer);
        let bytes = view.version.bytes();
        let reason = Reason::Shrink { levels: fewer, bytes, capacity };
        (bytes < capacity / SHRINK_PART).then_some(reason)
    }

    /// Returns the next job that empties level L-1 of a tree that will shrink: its log oldest
    /// first, then its run. Asked for when the picker has nothing to do, so that it delays no work
    /// that readers or writers wait for. It ends: every step takes a file off level L-1, and only
    /// writes add one.
    pub fn drain(&self, view: &View<'_>) -> Option<Decision> {
        if self.base == Base::Last {
            return None;
        }
        let version = view.version;
        let levels = version.planned_levels();
        let reason = self.wants_shrink(view, levels)?;
        // A last level that is planned but empty goes without this.
        if version.deepest() != Some(levels) {
            return None;
        }
        invariant!(S1, levels > 1, "a tree of {levels} levels is to have fewer");
        let above = levels - 1;
        let log =
            (0..version.part(above, Part::SstLog).len()).rev().map(|i| (above, Part::SstLog, i));
        let run = (0..version.part(above, Part::Run).len()).map(|i| (above, Part::Run, i));
        let to = (levels, Part::Run);
        log.chain(run).find_map(|seat| pick::job(view, [seat], to, reason.clone()))
    }
}
