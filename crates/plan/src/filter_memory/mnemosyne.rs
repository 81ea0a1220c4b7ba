//! `mnemosyne(bits, stays)`: filter bits by the queries that each file gets in vain.
//!
//! The solver (`solver.rs`) on Merlin's estimates (`merlin.rs`), within the
//! memory that surviving filters leave (`budget.rs`).

/// Mnemosyne's filter memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Mnemosyne {
    /// Bits per key on average over the tree.
    pub bits: f64,
    /// Part of each level's memory, from 0 to 1, that stays with the level whatever lies above it.
    /// 0 is the paper: all memory moves by its price.
    pub stays: f64,
}
