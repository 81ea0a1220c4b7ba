//! What a repair did, for the user: what it kept, what it saved, and what is lost.
//!
//! Owns: the types. Never does: print them, or decide what is lost.

use std::path::PathBuf;
use windrow_base::Error;

/// What a repair did.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// The manifest could not be read: keyspaces and trees were made from the tables.
    pub manifest_rebuilt: bool,
    /// Tables that were whole.
    pub tables_kept: u64,
    /// Damaged tables of which something was saved.
    pub tables_salvaged: u64,
    /// Tables of which nothing could be read, or that are missing.
    pub tables_lost: u64,
    /// Entries saved from damaged tables.
    pub entries_salvaged: u64,
    /// Batches replayed from logs.
    pub batches_replayed: u64,
    /// Every log of which something was not taken over.
    pub logs: Vec<DamagedLog>,
    /// Where this repair keeps the files that it replaced: in `lost/` of the
    /// database's directory, as they were.
    pub originals: Vec<PathBuf>,
    /// Everything that was found wrong, each naming its file and offset.
    pub problems: Vec<Error>,
}

impl RepairReport {
    /// Whether anything that the database held may be missing from it now, or
    /// is there under another name: a manifest made again from the tables does
    /// not know what keyspaces were called.
    pub fn lost_something(&self) -> bool {
        self.manifest_rebuilt
            || !self.logs.is_empty()
            || self.tables_salvaged + self.tables_lost > 0
    }
}

/// A log of which something was not taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedLog {
    /// Its file's name.
    pub file: String,
    /// What lies from this byte on was not taken over.
    pub from_byte: u64,
    /// The file's length.
    pub bytes: u64,
}
