//! Merging: from a decision of `plan` to an edit of the manifest.
//!
//! `run` executes a decision, `dropping` says what of the entries must stay,
//! `writer` cuts them into tables. A flush takes the same road with a
//! memtable for its input. `raw` writes tables entry by entry, for repair.

pub mod dropping;
#[cfg(test)]
mod dropping_tests;
pub mod filters;
pub mod heat;
pub mod raw;
pub mod writer;
