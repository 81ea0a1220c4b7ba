//! A job as the filters of its outputs see it.
//!
//! Owns: the description. Never does: decide bits (`budget.rs`).

use super::level_shares::ExpectedLevel;
use crate::tree::{File, Part};
use alloc::sync::Arc;

/// The input of a filter plan.
pub struct FilterJob<'a> {
    /// Files that go: every input, with where it is. None for a flush.
    pub inputs: &'a [(u32, Part, Arc<File>)],
    /// Level and half that the outputs enter.
    pub output: (u32, Part),
    /// Entries that a flush writes; ignored where there are inputs.
    pub entries: u64,
    /// The tree by which memory is shared out between levels; empty where each has equal bits per
    /// key.
    pub expected: &'a [ExpectedLevel],
    /// Queries recorded so far: Merlin's D.
    pub queries: u64,
    /// Bits that other running jobs may draw: their
    /// [`growth_bits`](super::FilterPlan::growth_bits).
    pub reserved_bits: f64,
    /// Bits per key of the tree that there is memory for: filters beyond it would be read
    /// from the device over and over. Infinite where all fit.
    pub bits_max: f64,
}
