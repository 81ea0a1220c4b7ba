//! What a job is to the filters of its outputs.

use super::expected::ExpectedLevel;
use crate::tree::{File, Part};
use alloc::sync::Arc;

/// A job as its filters see it.
pub struct FilterJob<'a> {
    /// Files that go: every input, with where it is. None for a flush.
    pub inputs: &'a [(u32, Part, Arc<File>)],
    /// Level and half that the outputs enter.
    pub output: (u32, Part),
    /// Entries of what is written, for a flush; ignored where there are inputs.
    pub entries: u64,
    /// The tree that memory is shared out between levels by; empty where each has the same.
    pub expected: &'a [ExpectedLevel],
    /// Queries recorded so far: Merlin's D.
    pub queries: u64,
    /// Bits that other running jobs may draw: their [`growth_bits`](super::FilterPlan::growth_bits).
    pub reserved_bits: f64,
    /// Bits per key of the tree that there is memory for: filters beyond it would be read
    /// from the device over and over. Infinite where all fit.
    pub bits_max: f64,
}
