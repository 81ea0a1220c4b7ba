//! The manifest: which files make up the database, in records that are appended and synced before
//! their changes become visible.
//!
//! `record` is one record as data and bytes, `state` the fold of a sequence of records, `log` the
//! file that they are in, and `folded_manifest` a manifest that was read to its end.
//! `crate::catalog` has all of it in an open database.
//!
//! Owns: the format and the fold of records, and the file. Never does: show a version to readers,
//! or remove a file.

pub mod folded_manifest;
pub mod log;
pub mod record;
pub mod state;
