//! `monkey(bits)`: Monkey+, filter bits by the size of each run.
//!
//! The solver with the same z for every run: a lookup asks each run once, and
//! of a run's files those that cover the key. A file's z is its share of the
//! key space; its share of its run's entries is taken for that (`budget.rs`). So the
//! rate is in proportion to the size of the run (Autumn, Eq. 9), for trees of any
//! shape.
//!
//! Owns: the option. Never does: depend on the queries that a file got.

/// Monkey+'s filter memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Monkey {
    /// Bits per key on average over the tree.
    pub bits: f64,
}
