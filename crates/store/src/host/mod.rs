//! The context that every part of an open database uses: the environment and the directory, the
//! settings, events and counters, and whether writing is on.
//!
//! The other modules here need nothing above this one: `database_directory` and `listing` (the
//! directory), `readers` (other processes' leases), `write_state`, `shortage` (jobs that are tried
//! again), `workers` and `gate` (background work, and how a close ends it).
//!
//! Owns: the numbers and ids that it gives out, the list of snapshots, the time by which expiry is
//! judged, the wake-up of writers when writing goes off, and waiting for a change. Never does: know
//! what work there is, or change a file.

pub mod database_directory;
pub mod gate;
pub mod listing;
pub mod plan_sizes;
pub mod progress;
pub mod readers;
pub mod shortage;
pub mod workers;
pub mod write_state;

use crate::host::database_directory::DatabaseDirectory;
use crate::host::progress::Progress;
use crate::host::write_state::WriteState;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use windrow_base::key::SEQ_MAX;
use windrow_base::{Error, ErrorKind, FileNumber, Result};
use windrow_env::Env;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_plan::tree::Version;
use windrow_plan::{Busy, PlanSettings, View};
use windrow_read::budget::Shares;
use windrow_read::events::{Event, EventSink, JobId};
use windrow_read::gaps::LastGiven;
use windrow_read::options::{Components, Settings};
use windrow_read::snapshot_list::{LiveSnapshots, SnapshotList};
use windrow_read::stats::{Counters, PauseReason};

/// A pause of a writer that is being measured.
pub struct Pause {
    reason: PauseReason,
    begin_ns: u64,
}

/// The arguments of an open, from which a [`Host`] is made.
pub struct HostSetup {
    pub env: Env,
    pub place: Arc<DatabaseDirectory>,
    pub database_uid: u64,
    pub settings: Settings,
    pub shares: Shares,
    pub components: Components,
    pub read_only: bool,
}

/// The context that every part of an open database uses.
pub struct Host {
    pub env: Env,
    pub dir: PathBuf,
    pub place: Arc<DatabaseDirectory>,
    /// Tells open databases of one process apart.
    pub instance_id: u64,
    pub database_uid: u64,
    pub settings: Settings,
    pub shares: Shares,
    pub components: Components,
    pub events: EventSink,
    pub counters: Arc<Counters>,
    /// The last sequence number given out, asked of the commit queue.
    pub last_given: Arc<LastGiven>,
    pub write_state: WriteState,
    pub snapshots: SnapshotList,
    /// Monotonic time of the open.
    pub opened_ns: u64,
    pub next_file: AtomicU64,
    /// The latest time at which a merge judged expiry, in ms since 1970.
    pub time_floor_ms: AtomicU64,
    next_job: AtomicU64,
    /// Wakes writers, which would wait in vain once writing is off.
    wake_writers: OnceLock<Box<dyn Fn() + Send + Sync>>,
    progress: Progress,
}

impl Host {
    /// Makes the context of an empty database: file numbers and the time floor are its.
    pub fn new(ground: HostSetup) -> Arc<Host> {
        let HostSetup { env, place, database_uid, settings, shares, components, read_only } =
            ground;
        let (instance_id, opened_ns) = (env.random.next_u64(), env.clock.monotonic_ns());
        Arc::new(Host {
            env,
            dir: place.dir().to_path_buf(),
            place,
            instance_id,
            database_uid,
            settings,
            shares,
            events: EventSink::new(components.listener.clone()),
            components,
            counters: Arc::default(),
            last_given: Arc::default(),
            write_state: WriteState::new(read_only),
            snapshots: SnapshotList::default(),
            opened_ns,
            next_file: AtomicU64::new(1),
            time_floor_ms: AtomicU64::new(0),
            next_job: AtomicU64::new(1),
            wake_writers: OnceLock::new(),
            progress: Progress::default(),
        })
    }

    /// Sets the first file number, and the time before which expiry is never judged, for a database
    /// that exists.
    pub fn go_on_from(&self, next_file: FileNumber, time_floor_ms: u64) {
        self.next_file.store(next_file, Ordering::Relaxed);
        self.time_floor_ms.store(time_floor_ms, Ordering::Relaxed);
    }

    /// Sets how writers are woken when writing goes off.
    pub(crate) fn wake_writers_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake_writers.set(Box::new(wake));
    }

    /// A file number that was never used before.
    pub fn new_file_number(&self) -> FileNumber {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// An id that ties a job's end to its beginning in events.
    pub(crate) fn new_job_id(&self) -> JobId {
        self.next_job.fetch_add(1, Ordering::Relaxed)
    }

    /// The wall clock by which this database judges expiry: never before the time that a merge
    /// judged by.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.env.clock.wall_ms().max(self.time_floor_ms.load(Ordering::Relaxed))
    }

    /// The time by which a merge that began now would judge expiry.
    pub(crate) fn judge_ms(&self) -> u64 {
        self.judge_ms_under(&self.snapshots.held())
    }

    /// The time by which a merge would judge expiry while these snapshots are held: none may miss
    /// an entry that had not expired by its own time.
    pub(crate) fn judge_ms_under(&self, held: &LiveSnapshots) -> u64 {
        held.time_min_ms.unwrap_or(u64::MAX).min(self.now_ms())
    }

    /// The moment as a policy sees it.
    pub(crate) fn plan_view<'a>(
        &self,
        version: &'a Version,
        busy: &'a Busy,
        sizes: &'a PlanSettings,
    ) -> View<'a> {
        View {
            version,
            busy,
            settings: sizes,
            snapshots_oldest: self.snapshots.held().seqs.first().copied().unwrap_or(SEQ_MAX),
            now_ms: self.judge_ms(),
        }
    }

    /// Turns writing off after a failure, and wakes the writers, which would wait in vain.
    pub fn set_background_error(&self, error: &Error) {
        // A failure after the directory was taken away is reported as that loss. The file system
        // itself may have panicked: if it does so again here, the check reports nothing.
        let look = catch_unwind(AssertUnwindSafe(|| self.place.check()));
        let taken = look.ok().and_then(Result::err);
        let error = taken.as_ref().unwrap_or(error);
        if error.kind() != ErrorKind::ReadOnly && self.write_state.set_background_error(error) {
            self.events.send(&Event::BackgroundError { error: error.first_failure().clone() });
        }
        if let Some(wake) = self.wake_writers.get() {
            wake();
        }
        self.note_progress();
    }

    /// Turns writing off if the directory is no longer this database's.
    ///
    /// # Errors
    /// As [`DatabaseDirectory::check`].
    pub fn watch_place(&self) -> Result<()> {
        self.place.check().inspect_err(|error| self.set_background_error(error))
    }

    /// Waits until `done` answers. A stepper runs queued jobs instead of waiting.
    pub fn wait_until<T>(&self, done: impl FnMut() -> Option<T>) -> T {
        self.progress.wait_until(|| self.env.jobs.step(), done)
    }

    /// Tells the waiting threads that something changed.
    pub fn note_progress(&self) {
        self.progress.note();
    }

    /// Makes a writer wait until `done`, or until writing is off, and records why.
    pub fn pause(&self, reason: PauseReason, done: impl Fn() -> bool) {
        let pause = self.pause_begin(reason);
        self.wait_until(|| (done() || self.write_state.check().is_err()).then_some(()));
        self.pause_end(pause);
    }

    pub(crate) fn pause_begin(&self, reason: PauseReason) -> Pause {
        self.events.send(&Event::StallBegin { reason });
        Pause { reason, begin_ns: self.env.clock.monotonic_ns() }
    }

    pub(crate) fn pause_end(&self, pause: Pause) {
        let us = (self.env.clock.monotonic_ns() - pause.begin_ns) / 1000;
        self.counters.pauses.record(pause.reason, us);
        self.events.send(&Event::StallEnd { reason: pause.reason, duration_us: us });
    }

    /// Records how long a synced write waited for the device.
    pub(crate) fn note_sync_wait(&self, ns: u64) {
        self.counters.pauses.record(PauseReason::SyncWait, ns / 1000);
    }
}
