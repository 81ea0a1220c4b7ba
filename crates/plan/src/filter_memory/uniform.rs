//! `uniform(bits)`: every file gets equal bits per key.
//!
//! Owns: the option. Never does: depend on a file's level or use.

/// An equal number of bits per key everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Uniform {
    /// Bits per key; may be fractional.
    pub bits: f64,
}
