//! The report on whole batches of a log that an open did not take over.
//!
//! Owns: the type. Never does: find them (`replay.rs`), or keep their log (`kept_logs.rs`).

use std::fmt;
use std::path::PathBuf;
use windrow_base::FileNumber;
use windrow_format::names;

/// Whole batches of a log that an open did not take over: they lie behind a gap in the log, and
/// were never synced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordsLeftOut {
    /// The log's number.
    pub log: FileNumber,
    /// The end of the part of the log that was taken over, in bytes.
    pub from_byte: u64,
    /// The end of the batches that were written to it, in bytes.
    pub to_byte: u64,
    /// The number of whole batches in between.
    pub batches: u64,
    /// Where an open for writing keeps the log as it was. `None` from an open for reading, which
    /// leaves it in its place, and if the device had no room for it.
    pub kept: Option<PathBuf>,
}

impl RecordsLeftOut {
    /// The report on a log that has no left-out batch yet.
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
