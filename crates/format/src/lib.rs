//! The bytes on disk: logs, batches, blocks, tables, filters, CURRENT, file names.
//!
//! `docs/format/` describes the encodings byte by byte.
//!
//! Owns: every encoding that outlives a process, and its checks. Never does: create, name, sync or
//! delete files by itself (it is handed open ones), choose merges, or trust a byte that it has not
//! checked.

pub mod batch;
pub mod block;
pub mod codec;
pub mod current;
pub mod filter;
pub mod lease;
pub mod log;
pub mod names;
pub mod owner;
pub mod table;
pub mod tombstone;

mod fields;
#[cfg(test)]
mod test_files;
