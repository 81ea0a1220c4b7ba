//! What a job is to the filters of its outputs.

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
    /// Queries recorded so far: Merlin's D.
    pub queries: u64,
    /// Bits that other running jobs may draw: their [`growth_bits`](super::FilterPlan::growth_bits).
    pub reserved_bits: f64,
}
