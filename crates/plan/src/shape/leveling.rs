//! `leveling(t)`: level n holds `base * t^(n-1)` bytes.
//!
//! The classical shape: every level is t times the one above it. The deepest
//! level is whichever was reached; when it fills, a new one begins below it.

use crate::tree::Version;
use crate::view::Settings;

/// The plain leveled shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Leveling {
    /// Ratio of one level's capacity to that of the level above; above 1.
    pub t: f64,
}

impl Leveling {
    /// Capacity of `level`'s run in bytes; 0 for level 0, which has none.
    pub fn capacity(&self, _version: &Version, settings: &Settings, level: u32) -> u64 {
        match level {
            0 => 0,
            // The cast saturates.
            n => (settings.level_base_bytes as f64 * libm::pow(self.t, (n - 1) as f64)) as u64,
        }
    }
}
