//! A segment of the write-ahead log.
//!
//! Writers write disjoint slots at the same time; a slot counts as written when every slot before
//! it is ([`Wal::advance_written`], called at publication).
//!
//! Owns: how far a segment is written and durable. Never does: decide when to sync (`wal_sync.rs`).

use crate::manifest::record::Field;
use std::sync::{Arc, OnceLock};
use windrow_base::{Error, FileNumber, FileUid, Result, debug_invariant, invariant};
use windrow_env::LogFile;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_format::log::FILE_HEADER_BYTES;

/// One log segment.
pub struct Wal {
    pub number: FileNumber,
    pub uid: FileUid,
    pub file: Arc<dyn LogFile>,
    /// Its length when it was made.
    bytes: u64,
    /// The end of the published records.
    written: AtomicU64,
    /// The end of the durable part of the segment if every older segment is durable *too*; 0 while
    /// an older one is not. It is in each record (rule R5).
    synced: AtomicU64,
    /// The end of the last slot, once the log has gone on in another segment.
    sealed_end: AtomicU64,
    /// The error of a sync that failed: none is tried again (rule R13).
    failed: OnceLock<Error>,
}

impl Wal {
    /// A new segment of `bytes` whose header is written and durable.
    pub fn new(number: FileNumber, uid: FileUid, file: Arc<dyn LogFile>, bytes: u64) -> Wal {
        let header = FILE_HEADER_BYTES as u64;
        Wal {
            number,
            uid,
            file,
            bytes,
            written: AtomicU64::new(header),
            synced: AtomicU64::new(0),
            sealed_end: AtomicU64::new(u64::MAX),
            failed: OnceLock::new(),
        }
    }

    /// Makes the written records durable, unless a sync has failed before.
    pub fn sync(&self) -> Result<()> {
        if let Some(first) = self.failed.get() {
            return Err(Error::after(first, "an earlier sync of the log has failed"));
        }
        self.file.sync().inspect_err(|error| _ = self.failed.set(error.clone()))
    }

    /// Gives back the space that it reserved and did not use, once no thread writes to it.
    pub fn give_back(&self) {
        self.file.release(self.written());
    }

    /// The field that the manifest must hold before a record goes in.
    pub fn added(&self) -> Field {
        Field::WalAdded { number: self.number, uid: self.uid, bytes: self.bytes }
    }

    /// The end of the published records.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Takes over the end of a published slot. Called in commit order.
    pub(crate) fn advance_written(&self, end: u64) {
        let (before, sealed) = (self.written(), self.sealed_end.load(Ordering::Acquire));
        debug_invariant!(Q1, before <= end, "a log is written up to {before}, and then {end}");
        debug_invariant!(Q1, end <= sealed, "a log is written up to {end}, sealed at {sealed}");
        self.written.store(end, Ordering::Release);
    }

    /// Notes that no slot is given out beyond `end`; some before it may still be filled. Called
    /// under the commit queue's lock.
    pub(crate) fn seal(&self, end: u64) {
        let (written, before) = (self.written(), self.sealed_end.load(Ordering::Acquire));
        invariant!(Q1, written <= end, "a log is sealed at {end}, and written up to {written}");
        debug_invariant!(Q1, before == u64::MAX, "a log is sealed at {before} and {end}");
        self.sealed_end.store(end, Ordering::Release);
    }

    /// Gives back the space that it reserved and will not use, once it is sealed.
    pub fn release(&self) {
        let end = self.sealed_end.load(Ordering::Acquire);
        if end < self.file.reserved_bytes() {
            self.file.release(end);
        }
    }

    /// Whether the log has gone on in another segment.
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed_end.load(Ordering::Acquire) != u64::MAX
    }

    /// Whether everything that it will ever hold is durable.
    pub(crate) fn is_complete(&self) -> bool {
        let (synced, end) =
            (self.synced.load(Ordering::Acquire), self.sealed_end.load(Ordering::Acquire));
        synced >= end
    }

    /// Notes that everything before `end`, and every older segment, is durable.
    pub(crate) fn set_durable_up_to(&self, end: u64) {
        let (written, number) = (self.written(), self.number);
        invariant!(R4, end <= written, "log {number} is durable to {end}, written to {written}");
        let known = self.durable_up_to().max(FILE_HEADER_BYTES as u64);
        let has_failed = self.failed.get().is_some();
        invariant!(R13, !has_failed || end <= known, "log {number} is durable, its sync failed");
        self.synced.fetch_max(end, Ordering::AcqRel);
    }

    /// The "durable up to" mark for a record written now.
    pub fn durable_up_to(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::path::Path;
    use windrow_env::testing::env;

    #[test]
    #[should_panic(expected = "(R4): log 1 is durable to 4000, written to 100")]
    fn what_is_not_written_is_not_durable() {
        let (env, _handles) = env(1);
        let file = env.fs.create_log(Path::new("/1.wal"), 4096).unwrap();
        let wal = Wal::new(1, 1, file, 4096);
        wal.advance_written(100);
        wal.set_durable_up_to(100);
        wal.set_durable_up_to(4000);
    }

    #[test]
    #[should_panic(expected = "(R13): log 1 is durable, its sync failed")]
    fn what_could_not_be_synced_is_not_durable() {
        let (env, handles) = env(1);
        let file = env.fs.create_log(Path::new("/1.wal"), 4096).unwrap();
        let wal = Wal::new(1, 1, file, 4096);
        wal.advance_written(100);
        handles.fs.crash_at(0);
        assert!(wal.sync().is_err());
        wal.set_durable_up_to(FILE_HEADER_BYTES as u64);
        wal.set_durable_up_to(100);
    }
}
