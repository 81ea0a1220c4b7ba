//! The other axes, as a picker asks them: how much a level may hold, and which job level 0 wants.
//!
//! Owns: nothing. Never does: pick from levels below 0.

use crate::decision::Decision;
use crate::level0::Level0;
use crate::shape::Shape;
use crate::tree::Version;
use crate::view::{PlanSettings, View};

/// The axes by which levels are full.
#[derive(Clone, Copy, Debug)]
pub struct Levels<'a> {
    /// Level shape.
    pub shape: &'a Shape,
    /// Level 0.
    pub level0: &'a Level0,
}

impl Levels<'_> {
    /// Bytes that `level`'s run may hold before it is picked from.
    pub(super) fn capacity(&self, version: &Version, settings: &PlanSettings, level: u32) -> u64 {
        self.shape.capacity(version, settings, level)
    }

    /// Returns the most urgent job of level 0.
    pub(super) fn pick_level0(&self, view: &View<'_>) -> Option<Decision> {
        self.level0.pick(view)
    }
}
