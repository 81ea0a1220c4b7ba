//! Tests of lower crates that need a whole database, which those crates cannot open.
//!
//! Each file is named for the file that it tests.
//!
//! Owns: the list of these files. Never does: test a file of this crate.

mod batch;
#[cfg(not(any(loom, shuttle)))]
mod carried_blocks;
#[cfg(not(any(loom, shuttle)))]
mod catalog;
#[cfg(not(any(loom, shuttle)))]
mod close;
mod commit;
mod compact;
mod database;
mod database_directory;
mod dump;
mod failure_policy;
mod flush;
mod flush_sample;
mod gaps;
mod keyspace_changes;
mod keyspace_list;
#[cfg(not(any(loom, shuttle)))]
mod read_triggered_merges;
mod reserve;
mod resume;
mod schedule;
#[cfg(not(any(loom, shuttle)))]
mod segments;
#[cfg(not(any(loom, shuttle)))]
mod start;
#[cfg(not(any(loom, shuttle)))]
mod stats_file;
mod stored_settings;
mod tables_at_rest;
mod unflushed_writes;
mod verify;
#[cfg(not(any(loom, shuttle)))]
mod writer;
