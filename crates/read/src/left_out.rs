//! What is said of whole batches of a log that an open did not take over.
//!
//! Owns: the type. Never does: find them (`replay.rs`), or keep their log (`kept_logs.rs`).

use std::fmt;
use std::path::PathBuf;
use windrow_base::FileNumber;
use windrow_format::names;

/// Whole batches of a log that an open did not take over: they lie behind a gap in what was
/// written, and were never synced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordsLeftOut {
    /// The log's number.
    pub log: FileNumber,
    /// What was taken over of the log ends at this byte.
    pub from_byte: u64,
    /// What was written to it ends at this one.
    pub to_byte: u64,
    /// How many whole batches are in between.
    pub batches: u64,
    /// Where the log is kept as it was, by an open for writing; `None` from an open for reading,
    /// which leaves it in its place, and where the device had no room for it.
    pub kept: Option<PathBuf>,
}

impl RecordsLeftOut {
    /// Nothing of this log yet.
    #[doc(hidden)]
    pub fn of(log: FileNumber) -> RecordsLeftOut {
        RecordsLeftOut { log, from_byte: 0, to_byte: 0, batches: 0, kept: None }
    }
}

impl fmt::Display for RecordsLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordsLeftOut { log, from_byte, to_byte, batches, kept } = self;
        let name = names::wal(*log);
        write!(
            f,
            "{batches} whole batch{} in bytes {from_byte}..{to_byte} of {name}, never synced, left \
             out: something before is missing or damaged",
            if *batches == 1 { "" } else { "es" },
        )?;
        match kept {
            Some(path) => write!(f, "; the log is kept as {}", path.display()),
            None => Ok(()),
        }
    }
}
