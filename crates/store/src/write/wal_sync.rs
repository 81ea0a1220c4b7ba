//! The group sync over all segments of the write-ahead log.
//!
//! One sync covers every record that was published when it began, so writers that wait for the
//! device share it. A writer whose record was published before the running sync began waits for its
//! end; a later one waits for the end of the next. The end of a sync wakes the writers that it
//! covered, and one of the others, which leads the next.
//!
//! Order kept here: an older segment is synced whole before a newer one is synced at all (rule R4),
//! so that the records that survive are a prefix of the commits.
//!
//! Owns: which segments a sync must cover, and which thread syncs now. Never does: write.

use crate::host::database_directory::DatabaseDirectory;
use crate::host::write_state::{WriteState, panicked};
use crate::write::wal::Wal;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use windrow_base::{Error, FileNumber, Result, check_invariant, debug_invariant};
use windrow_env::sync::{Condvar, Mutex, MutexGuard};
use windrow_format::log::FILE_HEADER_BYTES;
use windrow_read::lock_ranks;

#[derive(Default)]
struct SyncState {
    /// Segments that are not known to be durable to their end, oldest first;
    /// the last one is the active segment.
    unsynced: Vec<Arc<Wal>>,
    /// Whether a sync is running: the one with the number `turn`; otherwise that is the next.
    running: bool,
    turn: u64,
    /// The active segment when the running sync began, and the end of its published records.
    covered: (FileNumber, u64),
    /// The number of threads that wait for the end of a sync of an even number, and of an odd one.
    waiting: [u32; 2],
}

impl SyncState {
    /// Begins a sync. Returns the segments that it covers, oldest first.
    fn begin(&mut self) -> Vec<Arc<Wal>> {
        debug_assert!(!self.running, "two syncs at once");
        self.running = true;
        self.covered = self.unsynced.last().map_or((0, 0), |wal| (wal.number, wal.written()));
        self.unsynced.clone()
    }

    /// The number of the sync that covers, at the latest, the records published up to `end` of a
    /// segment.
    fn turn_of(&self, wal: &Wal, end: u64) -> u64 {
        let is_covered = (wal.number, end) <= self.covered;
        self.turn + u64::from(self.running && !is_covered)
    }

    /// Whether a segment needs no sync: its records are in synced tables, or it was synced to its
    /// very end.
    fn is_retired(&self, wal: &Wal) -> bool {
        !self.unsynced.iter().any(|w| w.number == wal.number)
    }

    /// Lets go of segments that are durable to their very end.
    fn forget_complete(&mut self) {
        self.unsynced.retain(|wal| !wal.is_complete());
        if let Some(first) = self.unsynced.first() {
            // No older segment is left that could be lost.
            first.set_durable_up_to(FILE_HEADER_BYTES as u64);
        }
    }
}

/// Syncs segments oldest first, each to its written end. Stops at one with unfilled slots: a newer
/// one must not become durable before it (rule R4). The slot of a thread that waits for a newer one
/// is published, so then all slots of older ones are filled.
fn sync_in_order(batch: &[Arc<Wal>]) -> Result<()> {
    for (at, wal) in batch.iter().enumerate() {
        let target = wal.written();
        if wal.durable_up_to() < target {
            let older = batch[..at].iter().find(|older| !older.is_complete());
            let older = older.map(|older| older.number);
            check_invariant!(
                R4,
                older.is_none(),
                "log {older:?} is not durable before {}",
                wal.number
            );
            wal.sync()?;
            wal.set_durable_up_to(target);
        }
        if at + 1 < batch.len() && !wal.is_complete() {
            break;
        }
    }
    Ok(())
}

/// All segments that a sync must cover, and the state of the running sync.
pub struct WalSync {
    state: Mutex<SyncState>,
    /// The end of a sync of an even number, and of an odd one.
    done: [Condvar; 2],
    /// The directory of the segments; checked before each sync.
    place: Option<Arc<DatabaseDirectory>>,
}

impl Default for WalSync {
    fn default() -> WalSync {
        let state = Mutex::new(lock_ranks::WAL_SYNC, SyncState::default());
        WalSync { state, done: Default::default(), place: None }
    }
}

impl WalSync {
    /// Makes the sync of the segments in this place.
    pub fn of(place: Arc<DatabaseDirectory>) -> WalSync {
        WalSync { place: Some(place), ..WalSync::default() }
    }

    /// Makes `wal` the active segment. Called under the commit queue's lock.
    pub(crate) fn activate(&self, wal: Arc<Wal>) {
        let mut state = self.state.lock();
        // A segment that was synced to its end before it was sealed is complete now: the first
        // record of the new one must say so.
        state.forget_complete();
        if state.unsynced.is_empty() {
            wal.set_durable_up_to(FILE_HEADER_BYTES as u64);
        }
        let (last, number) = (state.unsynced.last().map(|wal| wal.number), wal.number);
        debug_invariant!(R4, last < Some(number), "log {number} is to be synced after {last:?}");
        state.unsynced.push(wal);
    }

    /// Forgets segments below `number`: their records are in tables now.
    pub fn retire_below(&self, number: FileNumber) {
        let mut state = self.state.lock();
        state.unsynced.retain(|wal| wal.number >= number);
        state.forget_complete();
    }

    fn done(&self, turn: u64) -> &Condvar {
        &self.done[(turn % 2) as usize]
    }

    /// Waits for the end of a sync, or until the thread is woken to lead that one.
    fn wait(&self, state: &mut MutexGuard<'_, SyncState>, turn: u64) {
        let parity = (turn % 2) as usize;
        state.waiting[parity] += 1;
        self.done[parity].wait(state);
        debug_assert!(
            state.waiting[parity] > 0,
            "nobody waits for sync {turn}, and somebody stops"
        );
        state.waiting[parity] -= 1;
    }

    /// Wakes one of the threads that wait for the next sync, if none leads it yet.
    fn wake_leader(&self, state: &SyncState) {
        if !state.running && state.waiting[(state.turn % 2) as usize] > 0 {
            self.done(state.turn).notify_one();
        }
    }

    /// Returns once no thread syncs. The background error is set, so that none begins to.
    pub fn wait_idle(&self) {
        let mut state = self.state.lock();
        while state.running {
            let turn = state.turn;
            self.wait(&mut state, turn);
        }
    }

    /// Forgets all segments: a clean close has put their records into tables. A write that still
    /// waits for the device is durable, not refused.
    pub fn retire_all(&self) {
        self.state.lock().unsynced.clear();
        self.done.iter().for_each(Condvar::notify_all);
    }

    /// Returns once everything up to `end` of `wal` is durable, and whether it was synced here. The
    /// first thread to come syncs for all that wait (group commit).
    ///
    /// # Errors
    /// An error of the device, which turns writing off; `ReadOnly` if it is off.
    pub fn sync_to(
        &self,
        wal: &Arc<Wal>,
        end: u64,
        write_state: &WriteState,
        on_failure: impl Fn(&Error),
    ) -> Result<bool> {
        if wal.durable_up_to() >= end {
            return Ok(false);
        }
        let (mut synced_here, mut waited_for) = (false, None);
        let mut state = self.state.lock();
        while wal.durable_up_to() < end && !state.is_retired(wal) {
            // Under the lock: a leader that fails sets the background error before its sync ends,
            // and no thread may lead the next one after that.
            write_state.check()?;
            if state.running {
                let turn = state.turn_of(wal, end);
                waited_for = Some(turn);
                self.wait(&mut state, turn);
                continue;
            }
            let batch = state.begin();
            drop(state);
            let led = self.lead(&batch, &on_failure);
            state = self.state.lock();
            match led {
                Ok(()) => synced_here = true,
                // As for the threads that waited behind it. After a close another process may have
                // the directory already: its files now say nothing of this write.
                Err(_) if state.is_retired(wal) => break,
                Err(error) => return Err(error),
            }
        }
        let is_safe = wal.durable_up_to() >= end || state.is_retired(wal);
        if waited_for == Some(state.turn) {
            // Woken to lead, and with nothing left to sync for itself.
            self.wake_leader(&state);
        }
        drop(state);
        check_acknowledged(wal, end, is_safe).inspect_err(on_failure)?;
        Ok(synced_here)
    }

    /// Syncs for all waiting threads, and wakes those that it covered, and the next leader.
    fn lead(&self, batch: &[Arc<Wal>], on_failure: impl Fn(&Error)) -> Result<()> {
        let synced = catch_unwind(AssertUnwindSafe(|| {
            // A write in a directory that was deleted is not acknowledged as durable.
            self.place.as_ref().map_or(Ok(()), |place| place.check())?;
            sync_in_order(batch)
        }));
        let failure = match &synced {
            Ok(result) => result.clone().err(),
            Err(panic) => Some(panicked("a sync of the write-ahead log", panic)),
        };
        if let Some(error) = failure {
            // Before another thread may lead: no sync is tried again (R13).
            on_failure(&error);
        }
        self.end();
        synced.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Ends the sync that runs.
    fn end(&self) {
        let mut state = self.state.lock();
        let ended = state.turn;
        debug_assert!(state.running, "sync {ended} ends that does not run");
        state.running = false;
        state.turn += 1;
        state.forget_complete();
        self.wake_leader(&state);
        drop(state);
        self.done(ended).notify_all();
    }

    /// Makes every segment durable to its end, whether writing is on or not: for a close, when no
    /// thread writes or syncs any more.
    ///
    /// # Errors
    /// An error of the device; that a sync of one has failed before.
    pub fn sync_all(&self) -> Result<()> {
        let batch = self.state.lock().unsynced.clone();
        sync_in_order(&batch)
    }

    /// Wakes all waiting threads, after a background error was set.
    pub(crate) fn wake_all(&self) {
        let _state = self.state.lock();
        self.done.iter().for_each(Condvar::notify_all);
    }
}

/// Checks that a write is acknowledged as synced only if it is (R1).
fn check_acknowledged(wal: &Wal, end: u64, is_safe: bool) -> Result<()> {
    let durable = wal.durable_up_to();
    check_invariant!(R1, is_safe, "{end} is acknowledged, and {durable} is durable");
    Ok(())
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

    /// Makes a segment with bytes to sync, on a file system that has crashed.
    fn about_to_fail() -> (Arc<Wal>, WalSync, WriteState) {
        let (env, handles) = env(1);
        let wal = wal(&env.fs, 1);
        let sync = WalSync::default();
        sync.activate(wal.clone());
        wal.advance_written(100);
        handles.fs.crash_at(0);
        (wal, sync, WriteState::new(false))
    }

    #[test]
    fn a_segment_with_a_slot_still_open_stays_to_be_synced() {
        let (env, _handles) = env(1);
        let (old, new) = (wal(&env.fs, 1), wal(&env.fs, 2));
        let (sync, write_state) = (WalSync::default(), WriteState::new(false));
        let on_failure = |error: &Error| panic!("{error}");
        sync.activate(old.clone());
        // Two slots were given out in the old segment; one is filled.
        old.advance_written(100);
        old.seal(200);
        sync.activate(new.clone());
        assert!(sync.sync_to(&old, 100, &write_state, on_failure).unwrap());
        assert_eq!((old.durable_up_to(), new.durable_up_to()), (100, 0));
        // The other is filled: a thread that asks for the new segment syncs the old one too.
        old.advance_written(200);
        new.advance_written(300);
        assert!(sync.sync_to(&new, 300, &write_state, on_failure).unwrap());
        assert_eq!((old.durable_up_to(), new.durable_up_to()), (200, 300));
    }

    #[test]
    fn the_first_mark_of_a_segment_confirms_the_one_before() {
        let (env, _handles) = env(1);
        let (old, new) = (wal(&env.fs, 1), wal(&env.fs, 2));
        let (sync, write_state) = (WalSync::default(), WriteState::new(false));
        sync.activate(old.clone());
        old.advance_written(100);
        assert!(sync.sync_to(&old, 100, &write_state, |error| panic!("{error}")).unwrap());
        old.seal(100);
        sync.activate(new.clone());
        assert_eq!(new.durable_up_to(), FILE_HEADER_BYTES as u64);
    }

    /// A close comes while a writer checks the directory, or syncs, and the next open replaces the
    /// files there.
    #[test]
    fn a_write_that_a_close_made_durable_is_not_refused() {
        let (wal, sync, write_state) = about_to_fail();
        let close = |_: &Error| {
            sync.retire_all();
            write_state.close();
        };
        assert!(!sync.sync_to(&wal, 100, &write_state, close).unwrap());
    }

    #[test]
    fn the_background_error_is_set_before_anybody_else_may_sync() {
        let (wal, sync, write_state) = about_to_fail();
        let on_failure = |error: &Error| {
            assert!(sync.state.lock().running, "the leader is still the leader");
            write_state.set_background_error(error);
        };
        assert!(sync.sync_to(&wal, 100, &write_state, on_failure).is_err());
        assert!(write_state.check().is_err());
    }
}
