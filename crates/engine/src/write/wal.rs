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
use std::sync::Arc;
use windrow_base::{FileNumber, FileUid, Result};
use windrow_env::LogFile;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::sync::{Condvar, Mutex};
use windrow_format::log::FILE_HEADER_BYTES;

/// One log segment.
pub(crate) struct Wal {
    pub(crate) number: FileNumber,
    pub(crate) uid: FileUid,
    pub(crate) file: Arc<dyn LogFile>,
    /// Where the published records end.
    written: AtomicU64,
    /// Up to where the segment is durable *and* every older segment is too;
    /// 0 while an older one is not. Stands in each record (rule R5).
    synced: AtomicU64,
}

impl Wal {
    /// A new segment whose header is written and durable.
    pub(crate) fn new(number: FileNumber, uid: FileUid, file: Arc<dyn LogFile>) -> Wal {
        let header = FILE_HEADER_BYTES as u64;
        Wal { number, uid, file, written: AtomicU64::new(header), synced: AtomicU64::new(0) }
    }

    /// Where the published records end.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Takes over the end of a published slot. Called in commit order.
    pub(crate) fn advance_written(&self, end: u64) {
        self.written.store(end, Ordering::Release);
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

/// All segments that a sync must cover, and who syncs now.
#[derive(Default)]
pub(crate) struct WalSync {
    state: Mutex<SyncState>,
    done: Condvar,
}

impl WalSync {
    /// Makes `wal` the active segment. Called under the commit queue's lock.
    pub(crate) fn activate(&self, wal: Arc<Wal>) {
        let mut state = self.state.lock();
        if state.unsynced.is_empty() {
            wal.synced.store(FILE_HEADER_BYTES as u64, Ordering::Release);
        }
        state.unsynced.push(wal);
    }

    /// Forgets segments below `number`: what they held is in tables now.
    pub(crate) fn retire_below(&self, number: FileNumber) {
        let mut state = self.state.lock();
        state.unsynced.retain(|wal| wal.number >= number);
        if let Some(first) = state.unsynced.first() {
            // Nothing older is left that could be lost.
            first.synced.fetch_max(FILE_HEADER_BYTES as u64, Ordering::AcqRel);
        }
    }

    /// Returns once everything up to `end` of `wal` is durable. The first to
    /// come syncs for all who wait (group commit).
    ///
    /// # Errors
    /// What the device said, which latches the database; `ReadOnly` where it is latched.
    pub(crate) fn sync_to(&self, wal: &Arc<Wal>, end: u64, latch: &Latch) -> Result<bool> {
        let mut synced_here = false;
        loop {
            if wal.synced.load(Ordering::Acquire) >= end {
                return Ok(synced_here);
            }
            latch.check()?;
            let mut state = self.state.lock();
            if wal.synced.load(Ordering::Acquire) >= end {
                return Ok(synced_here);
            }
            if !state.unsynced.iter().any(|w| w.number == wal.number) {
                // Retired: its records are in synced tables.
                return Ok(synced_here);
            }
            if state.running {
                self.done.wait(&mut state);
                continue;
            }
            state.running = true;
            let batch = state.unsynced.clone();
            drop(state);
            let result = self.sync_in_order(&batch);
            let mut state = self.state.lock();
            state.running = false;
            if result.is_ok() {
                // All but the active segment are durable to their end for good.
                state.unsynced.retain(|w| batch.last().is_none_or(|l| w.number >= l.number));
            }
            drop(state);
            if let Err(error) = &result {
                latch.trip(error);
            }
            self.done.notify_all();
            result?;
            synced_here = true;
        }
    }

    /// Syncs segments oldest first, each to what is written now.
    fn sync_in_order(&self, batch: &[Arc<Wal>]) -> Result<()> {
        for wal in batch {
            let target = wal.written();
            if wal.synced.load(Ordering::Acquire) < target {
                wal.file.sync()?;
                wal.synced.fetch_max(target, Ordering::AcqRel);
            }
        }
        Ok(())
    }

    /// The active segment, if any.
    pub(crate) fn active(&self) -> Option<Arc<Wal>> {
        self.state.lock().unsynced.last().cloned()
    }

    /// Bytes of log that recovery would read.
    pub(crate) fn wake_all(&self) {
        self.done.notify_all();
    }
}
