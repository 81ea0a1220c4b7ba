//! The parts of merges and flushes that make tables of entries.
//!
//! `dropper` decides which entries stay, `writer` cuts them into tables, `filters` gives the tables
//! their filters, and `heat` measures how hot their keys are, and `carried_blocks` keeps in the cache what was
//! there. `jobs` runs them, for a merge or,
//! with a memtable as the input, for a flush. `raw_tables` writes tables entry by entry, for
//! repair.
//!
//! Owns: the entries and tables of one job. Never does: pick a job, or install an edit (`jobs`).

pub mod carried_blocks;
pub mod dropper;
#[cfg(test)]
mod dropper_tests;
pub mod filters;
pub mod heat;
pub mod raw_tables;
pub mod writer;
