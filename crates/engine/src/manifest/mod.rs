//! The manifest: which files make up the database, in records that are
//! appended and synced before what they say becomes visible.
//!
//! `record` is one record as data and bytes, `state` what a sequence of
//! records folds to, `log` the file they stand in.

pub(crate) mod log;
pub(crate) mod record;
pub(crate) mod state;
