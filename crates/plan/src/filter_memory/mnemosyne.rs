//! `mnemosyne(bits, stays, sample)`: filter bits by the queries that each file gets in vain.
//!
//! The solver (`solver.rs`) on Merlin's estimates (`merlin.rs`), within the
//! memory that surviving filters leave (`budget.rs`).
//!
//! Owns: the options and their limits. Never does: share memory out itself.

/// Mnemosyne's filter memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Mnemosyne {
    /// Bits per key on average over the tree.
    pub bits: f64,
    /// Part of each level's memory, from 0 to 1, that stays with the level whatever lies above it.
    /// 0 is the paper: all memory moves by its price.
    pub stays: f64,
    /// One lookup in this number is recorded: a power of two. The paper's Merlin records each (1).
    pub sample: u32,
}

/// Recording costs a get the sample's part of a cold line for each file it asks: with one in 64 a
/// twentieth (`time_of_recording` in the engine's tests prints both).
pub const SAMPLE: u32 = 64;

/// Rarer records than this know nothing of a file before it is merged away.
pub const SAMPLE_MAX: u32 = 4096;
