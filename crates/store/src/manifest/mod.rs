//! The manifest: which files make up the database, in records that are
//! appended and synced before what they say becomes visible.
//!
//! `record` is one record as data and bytes, `state` what a sequence of records
//! folds to, `log` the file that they are in, `catalog` all of it in an open
//! database, and `durable` what the write-ahead log is told of it.

pub mod folded;
pub mod log;
pub mod record;
pub mod state;
