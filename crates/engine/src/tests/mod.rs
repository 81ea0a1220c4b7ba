//! Tests of lower crates that need a whole database, which those crates cannot open.
//!
//! Each file is named for the file that it tests.
//!
//! Owns: the list of these files. Never does: test a file of this crate.

mod at_rest;
mod batch;
#[cfg(not(any(loom, shuttle)))]
mod catalog;
#[cfg(not(any(loom, shuttle)))]
mod close;
mod commit;
mod compact;
mod database;
mod dump;
mod flush;
mod flush_sample;
#[cfg(not(any(loom, shuttle)))]
mod for_reads;
mod gaps;
mod place;
mod reserve;
mod resume;
mod schedule;
#[cfg(not(any(loom, shuttle)))]
mod segments;
#[cfg(not(any(loom, shuttle)))]
mod start;
#[cfg(not(any(loom, shuttle)))]
mod stats_file;
mod stored;
mod trees;
mod trouble;
mod unflushed;
mod upkeep;
mod verify;
#[cfg(not(any(loom, shuttle)))]
mod writer;
