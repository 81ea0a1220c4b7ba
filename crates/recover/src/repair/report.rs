//! The report of a repair, for the user: the files kept, the entries saved, and those lost.
//!
//! Owns: the types. Never does: print them, or decide which entries are lost.

use std::ops::Range;
use std::path::PathBuf;
use windrow_base::Error;

/// The report of a repair.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// The manifest could not be read: keyspaces and trees were made from the tables.
    pub manifest_rebuilt: bool,
    /// Keyspaces whose names are lost with the manifest, by their new names.
    pub keyspaces_renamed: Vec<String>,
    /// Tables that were whole.
    pub tables_kept: u64,
    /// Damaged tables from which something was saved.
    pub tables_salvaged: u64,
    /// Tables that are missing, or from which nothing could be read.
    pub tables_lost: u64,
    /// Tables that were made for another database, by their names: where the manifest is lost, they
    /// are left out, and kept in `lost/`. One may lie in the place of a table that is missing.
    pub tables_of_another_database: Vec<String>,
    /// Tables that were taken in where the manifest is lost, and do not say which database they
    /// were made for: an earlier version wrote them.
    pub tables_of_unknown_database: u64,
    /// Entries saved from damaged tables.
    pub entries_salvaged: u64,
    /// Batches replayed from logs.
    pub batches_replayed: u64,
    /// Every damaged or missing table, and what is lost of it.
    pub tables: Vec<DamagedTable>,
    /// Every log that was not taken over whole, or from which records may be missing.
    pub logs: Vec<DamagedLog>,
    /// The paths where this repair keeps the files that it replaced: in `lost/` of the database's
    /// directory, as they were.
    pub originals: Vec<PathBuf>,
    /// Everything that was found wrong, each naming its file and offset.
    pub problems: Vec<Error>,
}

impl RepairReport {
    /// Whether anything that the database held may be missing from it now, or has another name.
    pub fn lost_something(&self) -> bool {
        !self.keyspaces_renamed.is_empty()
            || !self.logs.is_empty()
            || !self.tables_of_another_database.is_empty()
            || self.tables.iter().any(DamagedTable::lost_something)
    }
}

/// A table that was damaged or missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedTable {
    /// Its file's name.
    pub file: String,
    /// The keyspace that it was part of, where that is known.
    pub keyspace: Option<String>,
    /// The number of entries that it held, where that is known.
    pub entries: Option<u64>,
    /// The number of them that were saved.
    pub entries_saved: u64,
    /// The number of range tombstones that it held, where that is known.
    pub range_tombstones: Option<u64>,
    /// Whether its range tombstones were saved, if it had any.
    pub range_tombstones_saved: bool,
    /// The byte ranges of the file whose entries cannot be read any more.
    pub lost: Vec<LostRange>,
    /// Whether entries were left out that may be in other tables too: it is not known any more
    /// whether they would count twice.
    pub in_doubt: bool,
}

impl DamagedTable {
    /// Whether anything that it held may be missing.
    pub fn lost_something(&self) -> bool {
        let all_entries = self.entries == Some(self.entries_saved);
        let tombstones = self.range_tombstones == Some(0) || self.range_tombstones_saved;
        !all_entries || !tombstones || !self.lost.is_empty() || self.in_doubt
    }
}

/// A byte range of a table whose entries cannot be read any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostRange {
    /// The range in the file.
    pub bytes: Range<u64>,
    /// The last key that was saved before it; `None`: it is at the start of the table.
    pub after: Option<Vec<u8>>,
    /// The first key that was saved behind it; `None`: it is at the end of the table.
    pub before: Option<Vec<u8>>,
}

/// A log that was not taken over whole, or from which records may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedLog {
    /// Its file's name.
    pub file: String,
    /// The first byte of the part that was not taken over, or not as a whole.
    pub from_byte: u64,
    /// The file's length; 0 where it is missing.
    pub bytes: u64,
    /// The number of whole batches in that part, where the log ends in bytes that are no record.
    pub whole_batches: u64,
}
