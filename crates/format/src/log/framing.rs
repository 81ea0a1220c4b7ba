//! The forms of a log, by the version in the file's header.
//!
//! Owns: their numbers. Never does: read or write one (`position.rs`, `batch.rs`).

/// The form of a log's fragment headers, and of the batches in it. The numbers are the
/// versions in the file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Framing {
    /// A header of 32 bytes, with the log's uid. Manifests, and logs of format version 1.
    Fixed = 1,
    /// A header of 11 bytes or more, with varints for the numbers that are mostly small.
    /// Write-ahead logs.
    Short = 2,
}
