//! `uniform(bits)`: every file gets the same.

use crate::tree::Version;

/// The same number of bits per key everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Uniform {
    /// Bits per key; may be fractional.
    pub bits: f64,
}

impl Uniform {
    /// Bits per key for a new file.
    pub fn bits(&self, _version: &Version, _level: u32) -> f64 {
        self.bits
    }
}
