//! Level shapes: the capacity of each level.
//!
//! Owns: the axis, and that the last possible level has no limit. Never does: pick
//! files.

mod garnering;
mod last_level_base;
mod leveling;

pub use garnering::{Base, Garnering};
pub use leveling::Leveling;

use crate::decision::Decision;
use crate::tree::{LEVELS_MAX, Version};
use crate::view::{PlanSettings, View};
use windrow_base::debug_invariant;

/// How large each level may grow.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Each level is a fixed ratio larger than the one above.
    Leveling(Leveling),
    /// Ratios grow towards the top (Autumn).
    Garnering(Garnering),
}

impl Shape {
    /// Bytes that `level`'s run may hold before it is picked from. Level 0 has
    /// no run; its limit is a depth. The last possible level has no limit.
    pub fn capacity(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        if level + 1 >= LEVELS_MAX {
            return u64::MAX;
        }
        let capacity = |level| match self {
            Shape::Leveling(leveling) => leveling.capacity(version, settings, level),
            Shape::Garnering(garnering) => garnering.capacity(version, settings, level),
        };
        let here = capacity(level);
        debug_invariant!(S1, here <= capacity(level + 1), "level {level} holds more than the next");
        here
    }

    /// Whether capacities go from the last level up.
    pub fn is_from_last(&self) -> bool {
        let (Shape::Leveling(Leveling { base, .. }) | Shape::Garnering(Garnering { base, .. })) =
            self;
        *base == Base::Last
    }

    /// Returns a change of the number of levels that is planned for; it goes first. `Idle` if it
    /// has to wait for the jobs that run, and nothing may begin before it.
    pub(crate) fn reshape(&self, view: &View<'_>) -> Option<Decision> {
        let reshape = match self {
            Shape::Leveling(leveling) => leveling.reshape(view),
            Shape::Garnering(garnering) => garnering.reshape(view),
        };
        let fits = matches!(reshape, None | Some(Decision::Idle | Decision::Reshape(_)));
        debug_invariant!(I3, fits, "{reshape:?} is no change of the shape");
        reshape
    }

    /// Returns a job that takes data to where the shape wants it, when nothing is over its
    /// capacity.
    pub(crate) fn drain(&self, view: &View<'_>) -> Option<Decision> {
        match self {
            Shape::Leveling(_) => None,
            Shape::Garnering(garnering) => garnering.drain(view),
        }
    }
}
