//! A write-ahead log segment, and the group sync over all segments.
//!
//! Writers write disjoint slots at the same time; a slot counts as written
//! when every slot before it is ([`Wal::advance_written`], called at
//! publication). One sync covers whatever was written when it began, so
//! writers that wait for the device share it.
//!
//! Order kept here: an older segment is synced whole before a newer one is
//! synced at all (rule R4), so that what survives is a prefix of the commits.

use crate::latch::Latch;
use crate::manifest::record::Field;
use crate::place::Place;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, FileNumber, FileUid, Result, mutant, unless_mutant};
use windrow_env::LogFile;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow_env::sync::{Condvar, Mutex};
use windrow_format::log::FILE_HEADER_BYTES;

/// One log segment.
pub(crate) struct Wal {
    pub(crate) number: FileNumber,
    pub(crate) uid: FileUid,
    pub(crate) file: Arc<dyn LogFile>,
    /// Its length when it was made.
    bytes: u64,
    /// Where the published records end.
    written: AtomicU64,
    /// Up to where the segment is durable *and* every older segment is too;
    /// 0 while an older one is not. Stands in each record (rule R5).
    synced: AtomicU64,
    /// Where the last slot ends, once the log has gone on in another segment.
    sealed_end: AtomicU64,
    /// A sync of it has failed: none is tried again (rule R13).
    failed: AtomicBool,
}

impl Wal {
    /// A new segment of `bytes` whose header is written and durable.
    pub(crate) fn new(number: FileNumber, uid: FileUid, file: Arc<dyn LogFile>, bytes: u64) -> Wal {
        let header = FILE_HEADER_BYTES as u64;
        Wal {
            number,
            uid,
            file,
            bytes,
            written: AtomicU64::new(header),
            synced: AtomicU64::new(0),
            sealed_end: AtomicU64::new(u64::MAX),
            failed: AtomicBool::new(false),
        }
    }

    /// Makes what is written durable, unless that has failed before.
    fn sync(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) && !mutant!(WalSyncRetried) {
            return Err(Error::new(ErrorKind::Io, "an earlier sync of the log has failed"));
        }
        let synced = if mutant!(WalSync) { Ok(()) } else { self.file.sync() };
        synced.inspect_err(|_| self.failed.store(true, Ordering::Release))
    }

    /// Gives back the space that it reserved and did not use, where nobody writes
    /// any more.
    pub(crate) fn give_back(&self) {
        self.file.release(self.written());
    }

    /// What the manifest must hold of it before a record goes in.
    pub(crate) fn added(&self) -> Field {
        Field::WalAdded { number: self.number, uid: self.uid, bytes: self.bytes }
    }

    /// Where the published records end.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Takes over the end of a published slot. Called in commit order.
    pub(crate) fn advance_written(&self, end: u64) {
        self.written.store(end, Ordering::Release);
    }

    /// No slot is given out beyond `end`; some before it may still be filled.
    /// Called under the commit queue's lock.
    pub(crate) fn seal(&self, end: u64) {
        self.sealed_end.store(end, Ordering::Release);
    }

    /// Gives back the space that it reserved and will not use, once it is sealed.
    pub(crate) fn release(&self) {
        let end = self.sealed_end.load(Ordering::Acquire);
        if end < self.file.reserved_bytes() {
            self.file.release(end);
        }
    }

    /// Whether everything that it will ever hold is durable.
    fn is_complete(&self) -> bool {
        let (synced, end) =
            (self.synced.load(Ordering::Acquire), self.sealed_end.load(Ordering::Acquire));
        synced >= end || mutant!(WalTailForgotten) && end != u64::MAX && synced > 0
    }

    /// The "durable up to" mark for a record written now.
    pub(crate) fn durable_up_to(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct SyncState {
    /// Segments that are not known to be durable to their end, oldest first;
    /// the last one is the active segment.
    unsynced: Vec<Arc<Wal>>,
    running: bool,
}

impl SyncState {
    /// Whether a segment needs no sync: its records are in synced tables, or it
    /// was synced to its very end.
    fn is_retired(&self, wal: &Wal) -> bool {
        !self.unsynced.iter().any(|w| w.number == wal.number)
    }

    /// Lets go of segments that are durable to their very end.
    fn forget_complete(&mut self) {
        self.unsynced.retain(|wal| !wal.is_complete());
        if let Some(first) = self.unsynced.first() {
            // Nothing older is left that could be lost.
            first.synced.fetch_max(FILE_HEADER_BYTES as u64, Ordering::AcqRel);
        }
    }
}

/// Syncs segments oldest first, each to what is written now. Stops at one whose
/// slots are not all filled: a newer one must not become durable before it
/// (rule R4). Who waits for a newer slot is published, so then they all are.
fn sync_in_order(batch: &[Arc<Wal>]) -> Result<()> {
    for (at, wal) in batch.iter().enumerate() {
        if mutant!(WalOlderFirst) && at + 1 < batch.len() {
            continue;
        }
        let target = wal.written();
        if wal.synced.load(Ordering::Acquire) < target {
            let synced = wal.sync();
            unless_mutant!(WalSyncIgnored, synced?);
            wal.synced.fetch_max(target, Ordering::AcqRel);
        }
        if at + 1 < batch.len() && !wal.is_complete() {
            break;
        }
    }
    Ok(())
}

/// All segments that a sync must cover, and who syncs now.
#[derive(Default)]
pub(crate) struct WalSync {
    state: Mutex<SyncState>,
    done: Condvar,
    /// Where the segments lie; looked at before each sync.
    place: Option<Arc<Place>>,
}

impl WalSync {
    /// The sync of the segments that lie in this place.
    pub(crate) fn of(place: Arc<Place>) -> WalSync {
        WalSync { place: Some(place), ..WalSync::default() }
    }

    /// Makes `wal` the active segment. Called under the commit queue's lock.
    pub(crate) fn activate(&self, wal: Arc<Wal>) {
        let mut state = self.state.lock();
        // One that was synced to its end before it was sealed is complete now:
        // the first record of the new one must say so.
        state.forget_complete();
        if state.unsynced.is_empty() {
            wal.synced.store(FILE_HEADER_BYTES as u64, Ordering::Release);
        }
        state.unsynced.push(wal);
    }

    /// Forgets segments below `number`: what they held is in tables now.
    pub(crate) fn retire_below(&self, number: FileNumber) {
        let mut state = self.state.lock();
        state.unsynced.retain(|wal| wal.number >= number);
        state.forget_complete();
    }

    /// Returns once nobody syncs. The latch is tripped, so that nobody begins to.
    pub(crate) fn wait_idle(&self) {
        let mut state = self.state.lock();
        while state.running {
            self.done.wait(&mut state);
        }
    }

    /// Forgets all segments: a clean close has put what they held into tables. A
    /// write that still waits for the device is durable, not refused.
    pub(crate) fn retire_all(&self) {
        self.state.lock().unsynced.clear();
        self.done.notify_all();
    }

    /// Returns once everything up to `end` of `wal` is durable. The first to
    /// come syncs for all who wait (group commit).
    ///
    /// # Errors
    /// What the device said, which latches the database; `ReadOnly` where it is latched.
    pub(crate) fn sync_to(
        &self,
        wal: &Arc<Wal>,
        end: u64,
        latch: &Latch,
        trip: impl Fn(&Error),
    ) -> Result<bool> {
        let mut synced_here = false;
        loop {
            if wal.synced.load(Ordering::Acquire) >= end {
                return Ok(synced_here);
            }
            let mut state = self.state.lock();
            if wal.synced.load(Ordering::Acquire) >= end {
                return Ok(synced_here);
            }
            if state.is_retired(wal) {
                return Ok(synced_here);
            }
            // Under the lock: a leader that panics wakes its followers only by
            // the latch, and none may begin to wait after that.
            latch.check()?;
            if state.running {
                self.done.wait(&mut state);
                continue;
            }
            state.running = true;
            let batch = state.unsynced.clone();
            drop(state);
            // Nobody is told that it is durable in a directory that was deleted.
            let in_place = self.place.as_ref().map_or(Ok(()), |place| place.check());
            let result = in_place.and_then(|()| sync_in_order(&batch));
            if let Err(error) = &result {
                // Before anybody else may lead: no sync is tried again (R13).
                unless_mutant!(WalSyncRetried, trip(error));
            }
            let mut state = self.state.lock();
            state.running = false;
            state.forget_complete();
            let is_retired = state.is_retired(wal);
            drop(state);
            self.done.notify_all();
            match result {
                Ok(()) => synced_here = true,
                // As for who waited behind it. After a close another may have the
                // directory already: what is there now says nothing of this write.
                Err(_) if is_retired => return Ok(synced_here),
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes every segment durable to its end, whatever the latch says: for a
    /// close, when nobody writes or syncs any more.
    ///
    /// # Errors
    /// What the device said; that a sync of one has failed before.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let batch = self.state.lock().unsynced.clone();
        sync_in_order(&batch)
    }

    /// As a leader that has panicked leaves it.
    #[cfg(all(test, loom))]
    pub(crate) fn lead_for_ever(&self) {
        self.state.lock().running = true;
    }

    /// Wakes everybody who waits, after the latch was tripped.
    pub(crate) fn wake_all(&self) {
        let _state = self.state.lock();
        self.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use windrow_env::FileSystem;
    use windrow_env::testing::env;

    fn wal(fs: &Arc<dyn FileSystem>, number: FileNumber) -> Arc<Wal> {
        let path = format!("/{number}.wal");
        Arc::new(Wal::new(number, number, fs.create_log(Path::new(&path), 4096).unwrap(), 4096))
    }

    #[test]
    fn a_segment_with_a_slot_still_open_stays_to_be_synced() {
        let (env, _handles) = env(1);
        let (old, new) = (wal(&env.fs, 1), wal(&env.fs, 2));
        let (sync, latch) = (WalSync::default(), Latch::new(false));
        let trip = |error: &Error| panic!("{error}");
        sync.activate(old.clone());
        // Two slots were given out in the old segment; one is filled.
        old.advance_written(100);
        old.seal(200);
        sync.activate(new.clone());
        assert!(sync.sync_to(&old, 100, &latch, trip).unwrap());
        assert_eq!((old.durable_up_to(), new.durable_up_to()), (100, 0));
        // The other is filled: who asks for the new segment syncs the old one too.
        old.advance_written(200);
        new.advance_written(300);
        assert!(sync.sync_to(&new, 300, &latch, trip).unwrap());
        assert_eq!((old.durable_up_to(), new.durable_up_to()), (200, 300));
    }

    #[test]
    fn the_first_mark_of_a_segment_vouches_for_the_one_before() {
        let (env, _handles) = env(1);
        let (old, new) = (wal(&env.fs, 1), wal(&env.fs, 2));
        let (sync, latch) = (WalSync::default(), Latch::new(false));
        sync.activate(old.clone());
        old.advance_written(100);
        assert!(sync.sync_to(&old, 100, &latch, |error| panic!("{error}")).unwrap());
        old.seal(100);
        sync.activate(new.clone());
        assert_eq!(new.durable_up_to(), FILE_HEADER_BYTES as u64);
    }

    /// A close comes while a writer looks at the directory, or syncs, and the next
    /// open replaces what is there.
    #[test]
    fn a_write_that_a_close_made_durable_is_not_refused() {
        let (env, handles) = env(1);
        let wal = wal(&env.fs, 1);
        let (sync, latch) = (WalSync::default(), Latch::new(false));
        sync.activate(wal.clone());
        wal.advance_written(100);
        handles.fs.crash_at(0);
        let close = |_: &Error| {
            sync.retire_all();
            latch.close();
        };
        assert!(!sync.sync_to(&wal, 100, &latch, close).unwrap());
    }

    #[test]
    fn the_latch_is_tripped_before_anybody_else_may_sync() {
        let (env, handles) = env(1);
        let wal = wal(&env.fs, 1);
        let (sync, latch) = (WalSync::default(), Latch::new(false));
        sync.activate(wal.clone());
        wal.advance_written(100);
        handles.fs.crash_at(0);
        let trip = |error: &Error| {
            assert!(sync.state.lock().running, "the leader is still the leader");
            latch.trip(error);
        };
        assert!(sync.sync_to(&wal, 100, &latch, trip).is_err());
        assert!(latch.check().is_err());
    }
}
