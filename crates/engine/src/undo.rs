//! What an open that fails takes back: the files that it made, so that a device
//! that was full is not fuller after each attempt, and what room it needs.
//!
//! Every file of the attempt has a number that was not in use when it began
//! (rule R8), so those are looked for and not noted one by one. Nothing is
//! removed once CURRENT names a manifest of the attempt, or where that cannot
//! be told: what was made is in force then, and the next open goes on from it.
//! Their numbers may be given out again: what CURRENT names has another uid.
//! Never does: remove a file that was there before.

use crate::core::Core;
use crate::recovery::{Listing, read_current};
use windrow_base::{Error, ErrorKind, FileNumber, mutant};
use windrow_env::fs::is_not_found;
use windrow_env::sync::atomic::Ordering;
use windrow_format::names;

/// Room for a manifest and for what a file system takes for itself.
pub(crate) const MARGIN_BYTES: u64 = 1 << 20;

/// An open under way.
pub(crate) struct Attempt {
    /// The first file number that it gives out.
    first: FileNumber,
    /// The first log that it replays; `None` after a clean close.
    log_number: Option<FileNumber>,
}

impl Core {
    /// Begins to write to what was found.
    pub(crate) fn begin_attempt(&self) -> Attempt {
        let state = &self.manifest.lock().state;
        Attempt {
            first: self.next_file.load(Ordering::Relaxed),
            log_number: state.clean_close.is_none().then_some(state.log_number),
        }
    }

    /// Removes what a failed attempt made, and says what it lacked.
    pub(crate) fn undo(&self, attempt: &Attempt, listing: &Listing, error: Error) -> Error {
        if self.next_file.load(Ordering::Relaxed) > attempt.first {
            self.remove_own(attempt);
        }
        match error.kind() {
            ErrorKind::NoSpace => error.context(self.what_is_lacking(attempt, listing)),
            _ => error,
        }
    }

    fn remove_own(&self, attempt: &Attempt) {
        if self.place.check().is_err() || self.may_be_in_force(attempt) || mutant!(UndoneInForce) {
            return;
        }
        let Ok(made) = Listing::read(&self.env, &self.dir) else { return };
        let own = attempt.first..;
        let tables = made.tables.range(own.clone()).map(|&n| names::table(n));
        let wals = made.wals.range(own.clone()).map(|&n| names::wal(n));
        let manifests = made.manifests.range(own.clone()).map(|&n| names::manifest(n));
        let temporary = made.temporary.range(own.clone()).map(|&n| names::temp(n));
        for name in tables.chain(wals).chain(manifests).chain(temporary) {
            // One that stays is removed by the next open.
            let _ = self.env.fs.remove(&self.dir.join(name));
        }
    }

    /// Whether CURRENT names a manifest of the attempt, as far as can be told.
    fn may_be_in_force(&self, attempt: &Attempt) -> bool {
        match read_current(&self.env, &self.dir) {
            Ok(current) => current.manifest_number >= attempt.first,
            Err(error) => !is_not_found(&error),
        }
    }

    fn what_is_lacking(&self, attempt: &Attempt, listing: &Listing) -> String {
        let needed = self.open_needs_bytes(attempt, listing);
        let free = self.env.fs.free_bytes(&self.dir).unwrap_or(0);
        format!(
            "opening for writing needs about {needed} bytes of free space, and {free} are free; \
             nothing acknowledged is lost: make room, then open again"
        )
    }

    /// What an open takes at most before it can remove anything: tables of what
    /// is in the logs, a manifest; and then a log, in bytes.
    pub(crate) fn open_needs_bytes(&self, attempt: &Attempt, listing: &Listing) -> u64 {
        let first = attempt.log_number.unwrap_or(FileNumber::MAX);
        let len = |&wal| self.env.fs.len(&self.dir.join(names::wal(wal))).unwrap_or(0);
        let logs: u64 = listing.wals.range(first..).map(len).sum();
        self.wal_capacity_bytes() + MARGIN_BYTES + logs
    }
}
