//! Tests of the crates below that open a whole database, which those crates cannot.
//!
//! Each file is named for the one that it tests.

mod batch;
#[cfg(not(any(loom, shuttle)))]
mod catalog;
mod commit;
mod compact;
mod flush;
mod flush_sample;
#[cfg(not(any(loom, shuttle)))]
mod for_reads;
mod gaps;
mod place;
mod schedule;
#[cfg(not(any(loom, shuttle)))]
mod segments;
mod trees;
mod trouble;
mod unflushed;
#[cfg(not(any(loom, shuttle)))]
mod writer;
