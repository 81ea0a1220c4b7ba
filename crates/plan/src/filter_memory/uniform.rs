//! `uniform(bits)`: every file gets the same.

/// The same number of bits per key everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Uniform {
    /// Bits per key; may be fractional.
    pub bits: f64,
}
