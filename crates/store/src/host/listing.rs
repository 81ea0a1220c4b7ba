//! The files in a database directory, by their names.
//!
//! Owns: the kinds and numbers that are there, and the check that numbers are left for new files.
//! Never does: look into a file, or decide whose it is (`remains.rs`).

use std::collections::BTreeSet;
use std::path::Path;
use windrow_base::{COUNTER_MAX, Error, FileNumber, Result};
use windrow_env::Env;
use windrow_format::names::{self, FileKind};

/// File numbers that must be left at an open.
const NUMBERS_MIN: u64 = 1 << 40;

/// The files in a database directory.
#[derive(Clone, Default)]
pub struct Listing {
    pub current: bool,
    pub tables: BTreeSet<FileNumber>,
    pub wals: BTreeSet<FileNumber>,
    /// Logs that are kept for the feed of changes.
    pub changes: BTreeSet<FileNumber>,
    pub manifests: BTreeSet<FileNumber>,
    pub temporary: BTreeSet<FileNumber>,
    /// Traces of repairs that were cut short.
    pub repairs: BTreeSet<FileNumber>,
    /// Leases of readers.
    pub readers: BTreeSet<FileNumber>,
    pub reserve: bool,
}

impl Listing {
    pub fn read(env: &Env, dir: &Path) -> Result<Listing> {
        let mut listing = Listing::default();
        for name in env.fs.list(dir)? {
            match names::parse(&name) {
                Some((FileKind::Current, _)) => listing.current = true,
                Some((FileKind::Table, number)) => _ = listing.tables.insert(number),
                Some((FileKind::Wal, number)) => _ = listing.wals.insert(number),
                Some((FileKind::Changes, number)) => _ = listing.changes.insert(number),
                Some((FileKind::Manifest, number)) => _ = listing.manifests.insert(number),
                Some((FileKind::Temp, number)) => _ = listing.temporary.insert(number),
                Some((FileKind::Repair, number)) => _ = listing.repairs.insert(number),
                Some((FileKind::Reader, place)) => _ = listing.readers.insert(place),
                Some((FileKind::Reserve, _)) => listing.reserve = true,
                _ => {}
            }
        }
        Ok(listing)
    }

    /// Whether there is a database, or the remains of one.
    pub fn holds_database(&self) -> bool {
        let files = [&self.tables, &self.wals, &self.manifests];
        self.current || files.iter().any(|numbers| !numbers.is_empty())
    }

    /// Checks that numbers are left above the largest, which may be a stranger's. A number beyond
    /// the limit would be no name of ours.
    pub fn check_numbers(&self, dir: &Path) -> Result<()> {
        let number = self.number_max();
        if number <= COUNTER_MAX - NUMBERS_MIN {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "a file in {} has the number {number}, which leaves none for new files: move it away",
            dir.display()
        )))
    }

    /// The largest file number in use, orphans' included (rule R8): if a number were given out
    /// again, its file would be removed as the orphan.
    pub fn number_max(&self) -> FileNumber {
        let logs = [&self.wals, &self.changes, &self.manifests];
        let sets = logs.into_iter().chain([&self.tables, &self.temporary, &self.repairs]);
        sets.filter_map(|set| set.last().copied()).max().unwrap_or(0)
    }
}
