//! The bytes on disk: logs, batches, blocks, tables, filters, CURRENT, file names.
//!
//! Owns: every encoding that outlives a process, and its checks. What is
//! written here is described byte by byte in `docs/format/`.
//! Never does: create, name, sync or delete files by itself (it is handed open
//! ones), decide what is merged when, or trust a byte it has not checked.

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
