//! Undoing an open that fails: it removes the files that the open made, so that a device that was
//! full is not fuller after each attempt, and reports the room that an open needs.
//!
//! Every file of the attempt has a number that was not in use when it began (rule R8), so the files
//! are found by number and not noted one by one. No file is removed once CURRENT names a manifest
//! of the attempt, or where that cannot be told: the new files are in force then, and the next open
//! goes on from them. The numbers of removed files may be given out again, since the files that
//! CURRENT names have another uid.
//!
//! Owns: the removal of these files, and the estimate of the room. Never does: remove a file that
//! was there before.

use crate::discovery::read_current;
use windrow_base::{Error, ErrorKind, FileNumber, debug_invariant};
use windrow_env::fs::{ReadFileOptions, is_not_found};
use windrow_env::sync::atomic::Ordering;
use windrow_format::log::{LogKind, LogReader};
use windrow_format::names;
use windrow_store::catalog::Catalog;
use windrow_store::host::Host;
use windrow_store::host::listing::Listing;

/// Room for a manifest, for the first step of a log, and for the file system itself.
pub(crate) const MARGIN_BYTES: u64 = 1 << 20;

/// An open in progress.
pub struct OpenAttempt {
    /// The first file number that it gives out.
    first: FileNumber,
    /// The first log that it replays; `None` after a clean close.
    log_number: Option<FileNumber>,
}

impl OpenAttempt {
    /// Begins an attempt to write to a database that was found.
    pub fn begin(host: &Host, catalog: &Catalog) -> OpenAttempt {
        let catalog = catalog.lock();
        let state = catalog.state();
        let (first, known) = (host.next_file.load(Ordering::Relaxed), state.next_file);
        debug_invariant!(R8, known <= first, "file {first} is next, and {known} was before");
        OpenAttempt { first, log_number: state.clean_close.is_none().then_some(state.log_number) }
    }

    /// Removes the files of a failed attempt. Adds the room that it lacked to the error.
    pub(crate) fn undo(&self, host: &Host, listing: &Listing, error: Error) -> Error {
        if host.next_file.load(Ordering::Relaxed) > self.first {
            self.remove_own(host);
        }
        match error.kind() {
            ErrorKind::NoSpace => error.context(self.what_is_lacking(host, listing)),
            _ => error,
        }
    }

    /// Removes the files of the attempt. Returns their names instead where they may be in force.
    pub(crate) fn remove_own(&self, host: &Host) -> Vec<String> {
        let Ok(made) = Listing::read(&host.env, &host.dir) else { return Vec::new() };
        let own = self.first..;
        let tables = made.tables.range(own.clone()).map(|&n| names::table(n));
        let wals = made.wals.range(own.clone()).map(|&n| names::wal(n));
        let changes = made.changes.range(own.clone()).map(|&n| names::changes(n));
        let manifests = made.manifests.range(own.clone()).map(|&n| names::manifest(n));
        let temporary = made.temporary.range(own.clone()).map(|&n| names::temp(n));
        let own =
            tables.chain(wals).chain(changes).chain(manifests).chain(temporary).collect::<Vec<_>>();
        if host.place.check().is_err() || self.may_be_in_force(host) {
            return own;
        }
        let number_of = |name: &String| names::parse(name).map(|(_, number)| number);
        let alien = own.iter().find(|name| number_of(name) < Some(self.first));
        debug_invariant!(R8, alien.is_none(), "{alien:?} was there before the attempt");
        for name in own {
            // A file that cannot be removed is removed by the next open.
            let _ = host.env.fs.remove(&host.dir.join(name));
        }
        Vec::new()
    }

    /// Whether CURRENT names a manifest of the attempt, as far as can be told.
    fn may_be_in_force(&self, host: &Host) -> bool {
        match read_current(&host.env, &host.dir) {
            Ok(current) => current.manifest_number >= self.first,
            Err(error) => !is_not_found(&error),
        }
    }

    fn what_is_lacking(&self, host: &Host, listing: &Listing) -> String {
        let needed = self.needs_bytes(host, listing);
        let free = host.env.fs.free_bytes(&host.dir).unwrap_or(0);
        format!(
            "opening for writing needs about {needed} bytes of free space, and {free} are free; \
             nothing acknowledged is lost: make room, then open again"
        )
    }

    /// The bytes that an open needs before it can remove anything (tables of the logs' entries, and
    /// a manifest), and for the first step of a log after that.
    pub(crate) fn needs_bytes(&self, host: &Host, listing: &Listing) -> u64 {
        let first = self.log_number.unwrap_or(FileNumber::MAX);
        let logs = listing.wals.range(first..).map(|&wal| log_bytes(host, wal));
        MARGIN_BYTES + logs.sum::<u64>()
    }
}

/// The valid bytes of a log. Its length is the space reserved for it.
fn log_bytes(host: &Host, number: FileNumber) -> u64 {
    let path = host.dir.join(names::wal(number));
    let file = host.env.fs.open(&path, ReadFileOptions::default());
    let Ok(mut reader) = file.and_then(|file| LogReader::open(file, LogKind::Wal, None)) else {
        return 0;
    };
    while let Ok(Some(_)) = reader.next() {}
    reader.valid_bytes()
}

/// The bytes that a resume needs at most, with `in_memory` bytes unflushed, before the old logs are
/// removed.
pub(crate) fn resume_needs_bytes(in_memory: u64) -> u64 {
    MARGIN_BYTES + in_memory
}
