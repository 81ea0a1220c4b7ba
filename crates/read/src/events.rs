//! The events of a database: each thing that happens, told to its listener as plain data.
//!
//! Owns: the events, how they read as a line of text, and the guard that keeps
//! a listener's panic from the engine.
//! Never does: store events, or decide anything by them.

use crate::records_left_out::RecordsLeftOut;
use crate::stats::PauseReason;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow_base::{Error, FileNumber};

/// Receives the events of a database.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use windrow::{Db, Event, EventListener, Options};
///
/// /// Counts what the device is given by flushes.
/// #[derive(Default)]
/// struct Flushed(AtomicU64);
///
/// impl EventListener for Flushed {
///     fn on_event(&self, event: &Event) {
///         if let Event::FlushEnd { written_bytes, error: None, .. } = event {
///             self.0.fetch_add(*written_bytes, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let flushed = Arc::new(Flushed::default());
/// let mut options = Options::default();
/// options.components.listener = Some(flushed.clone());
/// let db = Db::open_with(dir.path(), options)?;
/// db.put("a", "1")?;
/// db.flush()?;
/// assert!(flushed.0.load(Ordering::Relaxed) > 0);
/// # Ok::<(), windrow::Error>(())
/// ```
pub trait EventListener: Send + Sync + 'static {
    /// Called on the thread where the event happens, a writer's or a
    /// background one's, with no lock held that reads or snapshots take: it
    /// must be quick, must neither wait for the database nor change it, and may
    /// read it. A panic is contained and counted.
    fn on_event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> EventListener for F {
    fn on_event(&self, event: &Event) {
        self(event);
    }
}

/// Identity of a background job within one open of a database: ties an end to its beginning.
pub type JobId = u64;

/// Something that happened in a database. Sizes are in bytes, times in microseconds.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the fields are named for what they hold; each variant says the rest"
)]
pub enum Event {
    /// The database is open, with the findings of recovery. `torn_bytes` were behind the
    /// last valid record of a log or the manifest: they were never written
    /// whole, or the last sync group is damaged.
    Opened { wal_files: u64, batches: u64, torn_bytes: u64, duration_us: u64 },
    /// The open left whole batches of a log out
    /// ([`Db::records_left_out`](struct.Db.html#method.records_left_out)).
    RecordsLeftOut { records: RecordsLeftOut },
    /// A frozen memtable begins to be written to level 0.
    FlushBegin { job: JobId, keyspace: Arc<str>, entries: u64, memtable_bytes: u64 },
    /// A flush is over: its tables are part of the tree, or it failed.
    FlushEnd {
        job: JobId,
        keyspace: Arc<str>,
        files: u64,
        written_bytes: u64,
        duration_us: u64,
        error: Option<Error>,
    },
    /// A merge begins, for this reason.
    MergeBegin {
        job: JobId,
        keyspace: Arc<str>,
        reason: String,
        from_level: u32,
        to_level: u32,
        input_files: u64,
        input_bytes: u64,
    },
    /// A merge is over: its outputs have replaced its inputs, or it failed.
    MergeEnd {
        job: JobId,
        keyspace: Arc<str>,
        to_level: u32,
        output_files: u64,
        written_bytes: u64,
        dropped_entries: u64,
        duration_us: u64,
        error: Option<Error>,
    },
    /// A table changed its place without being rewritten.
    Moved { keyspace: Arc<str>, file: FileNumber, from_level: u32, to_level: u32, reason: String },
    /// A table went without being read: deletes hid all that it held, or it held deletes alone
    /// and nothing older lay below.
    Dropped { keyspace: Arc<str>, file: FileNumber, level: u32, reason: String },
    /// The shape plans for another number of levels; no table was rewritten.
    Reshaped { keyspace: Arc<str>, levels: u32, reason: String },
    /// A keyspace has another policy from here on.
    PolicyChanged { keyspace: Arc<str>, policy: String },
    /// A keyspace with `use=measured` has another use from here on.
    UseMeasured { keyspace: Arc<str>, reason: String },
    /// Writes go to a new write-ahead log from here on.
    WalRotated { wal: FileNumber, previous_bytes: u64 },
    /// The manifest was written again as one snapshot.
    ManifestRotated { manifest: FileNumber, previous_bytes: u64 },
    /// A writer waits.
    StallBegin { reason: PauseReason },
    /// A writer goes on.
    StallEnd { reason: PauseReason, duration_us: u64 },
    /// Writes are off until the database is resumed or opened again (rule R13).
    BackgroundError { error: Error },
    /// Writes are on again; what was in memory is in tables.
    Resumed { duration_us: u64 },
    /// A close found no room for tables: what was in memory is in logs, durable,
    /// and the next open replays it.
    LeftToReplay { error: Error },
    /// A table is complete and durable, not yet part of the tree.
    TableCreated { keyspace: Arc<str>, file: FileNumber, level: u32, bytes: u64 },
    /// A table that nothing uses any more was removed.
    TableDeleted { file: FileNumber, bytes: u64 },
    /// A file with a database's name that the database does not use stays in its
    /// directory: it is not Windrow's, or it could not be removed.
    OrphanLeft { name: String, reason: Error },
    /// A follower has lost its lease, since more bytes of files waited for it than
    /// `followers_keep_bytes`: the files are removed, and the follower is told.
    FollowerLeftBehind { kept_bytes: u64 },
    /// Bytes on disk are not what was written. The read or job that met them fails.
    CorruptionFound { error: Error },
    /// A keyspace was made.
    KeyspaceCreated { keyspace: Arc<str> },
    /// A keyspace was dropped; its files go when nothing reads them.
    KeyspaceDropped { keyspace: Arc<str> },
    /// A consistent copy of the database was made.
    CheckpointCreated { files: u64, linked_bytes: u64, copied_bytes: u64 },
    /// A backup was made: its number in the target, its tables, and the bytes that the target had not yet.
    BackupCreated { number: u64, tables: u64, copied_bytes: u64 },
}

/// How the end of a job says that it failed.
struct FailureSuffix<'a>(&'a Option<Error>);

impl fmt::Display for FailureSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |error| write!(f, ", FAILED: {error}"))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::FlushBegin { .. }
            | Event::FlushEnd { .. }
            | Event::MergeBegin { .. }
            | Event::MergeEnd { .. }
            | Event::Moved { .. }
            | Event::Dropped { .. }
            | Event::Reshaped { .. }
            | Event::PolicyChanged { .. }
            | Event::UseMeasured { .. } => self.fmt_work(f),
            Event::WalRotated { .. }
            | Event::ManifestRotated { .. }
            | Event::TableCreated { .. }
            | Event::TableDeleted { .. }
            | Event::CheckpointCreated { .. }
            | Event::BackupCreated { .. } => self.fmt_files(f),
            Event::Opened { wal_files, batches, torn_bytes, duration_us } => write!(
                f,
                "opened: {batches} batches replayed from {wal_files} logs, {torn_bytes} torn \
                 bytes, {duration_us} us"
            ),
            Event::StallBegin { reason } => write!(f, "writes wait: {reason}"),
            Event::StallEnd { reason, duration_us } => {
                write!(f, "writes go on after {duration_us} us: {reason}")
            }
            Event::BackgroundError { error } => write!(f, "writes are off: {error}"),
            Event::Resumed { duration_us } => write!(f, "writes are on again, {duration_us} us"),
            Event::RecordsLeftOut { records } => write!(f, "{records}"),
            Event::OrphanLeft { name, reason } => {
                write!(f, "{name} is no part of the database and was left: {reason}")
            }
            Event::LeftToReplay { error } => {
                write!(f, "closed without a flush, logs are left to be replayed: {error}")
            }
            Event::FollowerLeftBehind { kept_bytes } => {
                write!(f, "a follower is left behind, for which {kept_bytes} bytes were kept")
            }
            Event::CorruptionFound { error } => write!(f, "corruption found: {error}"),
            Event::KeyspaceCreated { keyspace } => write!(f, "keyspace {keyspace} created"),
            Event::KeyspaceDropped { keyspace } => write!(f, "keyspace {keyspace} dropped"),
        }
    }
}

impl Event {
    /// Flushes, merges, moves, drops.
    fn fmt_work(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::FlushBegin { job, keyspace, entries, memtable_bytes } => write!(
                f,
                "{keyspace}: flush {job} begins: {entries} entries, {memtable_bytes} bytes"
            ),
            Event::FlushEnd { job, keyspace, files, written_bytes, duration_us, error } => write!(
                f,
                "{keyspace}: flush {job} wrote {files} files, {written_bytes} bytes in \
                 {duration_us} us{}",
                FailureSuffix(error)
            ),
            Event::MergeBegin {
                job,
                keyspace,
                reason,
                from_level,
                to_level,
                input_files,
                input_bytes,
            } => write!(
                f,
                "{keyspace}: merge {job} from level {from_level} to {to_level} begins: \
                 {input_files} files, {input_bytes} bytes: {reason}"
            ),
            Event::MergeEnd {
                job,
                keyspace,
                to_level,
                output_files,
                written_bytes,
                dropped_entries,
                duration_us,
                error,
            } => write!(
                f,
                "{keyspace}: merge {job} wrote {output_files} files, {written_bytes} bytes to \
                 level {to_level}, dropped {dropped_entries} entries in {duration_us} us{}",
                FailureSuffix(error)
            ),
            Event::Moved { keyspace, file, from_level, to_level, reason } => write!(
                f,
                "{keyspace}: table {file} moved from level {from_level} to {to_level}: {reason}"
            ),
            Event::Dropped { keyspace, file, level, reason } => {
                write!(f, "{keyspace}: table {file} dropped from level {level}: {reason}")
            }
            Event::Reshaped { keyspace, levels, reason } => {
                write!(f, "{keyspace}: {levels} levels planned: {reason}")
            }
            Event::PolicyChanged { keyspace, policy } => write!(f, "{keyspace}: policy {policy}"),
            Event::UseMeasured { keyspace, reason } => write!(f, "{keyspace}: use {reason}"),
            _ => Ok(()),
        }
    }

    /// Files that came and went.
    fn fmt_files(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::WalRotated { wal, previous_bytes } => {
                write!(f, "log {wal} begins; the one before has {previous_bytes} bytes")
            }
            Event::ManifestRotated { manifest, previous_bytes } => {
                write!(f, "manifest {manifest} begins; the one before has {previous_bytes} bytes")
            }
            Event::TableCreated { keyspace, file, level, bytes } => {
                write!(f, "{keyspace}: table {file} created for level {level}, {bytes} bytes")
            }
            Event::TableDeleted { file, bytes } => {
                write!(f, "table {file} deleted, {bytes} bytes")
            }
            Event::CheckpointCreated { files, linked_bytes, copied_bytes } => write!(
                f,
                "checkpoint of {files} files: {linked_bytes} bytes linked, {copied_bytes} copied"
            ),
            Event::BackupCreated { number, tables, copied_bytes } => {
                write!(f, "backup {number} of {tables} tables: {copied_bytes} bytes copied")
            }
            _ => Ok(()),
        }
    }
}

/// Where the engine sends its events. Costs a null check where nobody listens.
pub struct EventSink {
    listener: Option<Arc<dyn EventListener>>,
    panics: AtomicU64,
}

impl EventSink {
    pub fn new(listener: Option<Arc<dyn EventListener>>) -> EventSink {
        EventSink { listener, panics: AtomicU64::new(0) }
    }

    /// Tells the listener, if there is one. The caller holds no lock, but for the
    /// manifest's where that is what failed ([`Event::BackgroundError`]).
    #[inline]
    pub fn send(&self, event: &Event) {
        if let Some(listener) = &self.listener {
            self.deliver(&**listener, event);
        }
    }

    /// As [`EventSink::send`], for events that cost something to make.
    #[inline]
    pub fn send_with(&self, event: impl FnOnce() -> Event) {
        if let Some(listener) = &self.listener {
            self.deliver(&**listener, &event());
        }
    }

    #[cold]
    fn deliver(&self, listener: &dyn EventListener, event: &Event) {
        // Unwind safety: the engine shares no state with the listener but the event.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| listener.on_event(event))) {
            self.panics.fetch_add(1, Ordering::Relaxed);
            // The payload's destructor is the listener's code too and may
            // panic again, here outside the guard: leak it.
            std::mem::forget(payload);
        }
    }

    /// How many events the listener panicked on.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_listener_is_counted_and_called_again() {
        struct PanicsOnDrop;
        impl Drop for PanicsOnDrop {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }
        let calls = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&calls);
        let sink = EventSink::new(Some(Arc::new(move |_: &Event| {
            if seen.fetch_add(1, Ordering::Relaxed) == 0 {
                std::panic::panic_any(PanicsOnDrop);
            }
        })));
        for _ in 0..3 {
            sink.send(&Event::TableDeleted { file: 7, bytes: 1 });
        }
        assert_eq!((calls.load(Ordering::Relaxed), sink.panics()), (3, 1));
    }

    #[test]
    fn without_a_listener_no_event_is_made() {
        EventSink::new(None).send_with(|| unreachable!("nobody listens"));
    }

    #[test]
    fn events_read_as_one_line() {
        let keyspace: Arc<str> = "users".into();
        let mut end = Event::FlushEnd {
            job: 9,
            keyspace: Arc::clone(&keyspace),
            files: 3,
            written_bytes: 4096,
            duration_us: 1500,
            error: None,
        };
        assert_eq!(end.to_string(), "users: flush 9 wrote 3 files, 4096 bytes in 1500 us");
        if let Event::FlushEnd { error, .. } = &mut end {
            *error = Some(Error::corruption("bad block checksum").with_file("000007.sst"));
        }
        assert_eq!(
            end.to_string(),
            "users: flush 9 wrote 3 files, 4096 bytes in 1500 us, FAILED: corruption: bad block \
             checksum (file 000007.sst)"
        );
        let created = Event::TableCreated { keyspace, file: 12, level: 0, bytes: 5 };
        assert_eq!(created.to_string(), "users: table 12 created for level 0, 5 bytes");
    }
}
