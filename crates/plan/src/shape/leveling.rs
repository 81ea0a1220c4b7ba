//! `leveling(t)`: level n holds `base * t^(n-1)` bytes.
//!
//! The classical shape: every level is t times the one above it. The deepest level is the last that
//! data has reached; when it fills, a new one begins below it.
//!
//! Owns: the formula. Never does: change L, but with `base=last`.

use super::Base;
use super::last_level_base::LastLevelBase;
use crate::decision::Decision;
use crate::tree::{LEVELS_MAX, Version};
use crate::view::PlanSettings;
use crate::view::View;
use windrow_base::invariant;

/// The plain leveled shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Leveling {
    /// Ratio of one level's capacity to that of the level above; above 1.
    pub t: f64,
    /// Ratio of level 2 to level 1 (vLSM's Phi); equal to `t` in the plain shape.
    pub phi: f64,
    /// The capacity of level 1: `Constant`, or `Last` for capacities from the last level up.
    pub base: Base,
}

impl Leveling {
    /// Capacity of `level`'s run in bytes; 0 for level 0, which has none.
    pub fn capacity(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        if self.base == Base::Last {
            return self.capacities().capacity(version, settings, level);
        }
        let base = settings.level_base_bytes as f64;
        let (t, phi) = (self.t, self.phi);
        invariant!(S1, t > 1.0 && phi >= 1.0, "ratios of {t} and {phi}");
        invariant!(S1, level < LEVELS_MAX, "level {level} of a tree of at most {LEVELS_MAX}");
        // The casts saturate.
        match level {
            0 => 0,
            1 => base as u64,
            n => (base * self.phi * libm::pow(self.t, (n - 2) as f64)) as u64,
        }
    }

    fn capacities(&self) -> LastLevelBase<impl Fn(u32, u32) -> f64> {
        let (t, phi) = (self.t, self.phi);
        LastLevelBase { ratio: move |level, _| if level == 2 { phi } else { t } }
    }

    /// Returns the insertion or removal of a level, if one is due.
    pub(crate) fn reshape(&self, view: &View<'_>) -> Option<Decision> {
        (self.base == Base::Last).then(|| self.capacities().reshape(view))?
    }
}
