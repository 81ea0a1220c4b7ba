//! Segments of the log: how one is made, how the log goes on in the next, and
//! how the active one gets room for a record.
//!
//! A spare segment is made ahead, so that a switch of memtables finds it ready,
//! but not before a quarter of a memtable is filled: a process that writes
//! little needs none. It is a convenience: where it cannot be made (a full device, no descriptors)
//! the active segment goes on, since it can grow, and the attempt is made again
//! at the next switch. What turns writing off is a failure that may have taken
//! what others rely on: of the directory's sync, or of the manifest.
//!
//! Room is reserved before a slot is given out, so a writer that finds the
//! device full is refused with nothing written and nobody behind a hole.

use crate::core::Core;
use crate::manifest::log::InForce;
use crate::manifest::record::Field;
use crate::write::queue::QueueState;
use crate::write::wal::Wal;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{ErrorKind, FileNumber, Result, mutant, unless_mutant};
use windrow_env::Env;
use windrow_env::sync::atomic::Ordering;
use windrow_format::log::{self, FILE_HEADER_BYTES, FileHeader, LogKind};
use windrow_format::names;

/// Room for the mark that may go before a record, in bytes. A longer one makes
/// its own.
const MARK_ROOM_BYTES: u64 = 4096;

/// The length of a log that no record goes into.
pub(crate) const EMPTY_BYTES: u64 = FILE_HEADER_BYTES as u64;

impl Core {
    /// Makes the next log segment, if there is none yet: file, header and name
    /// durable, and known to the manifest before a record goes in. `false` if it
    /// could not be made: the active one goes on.
    ///
    /// # Errors
    /// `ReadOnly` where writing is off.
    pub(crate) fn prepare_wal(&self) -> Result<bool> {
        if self.preparing_wal.swap(true, Ordering::AcqRel) {
            // Somebody else is at it; a writer waits for the outcome.
            self.wait_until(|| {
                let settled = !self.preparing_wal.load(Ordering::Acquire);
                (settled || self.latch.check().is_err()).then_some(())
            });
            self.latch.check()?;
            return Ok(self.queue.lock().spare.is_some());
        }
        let made = self.make_spare();
        self.preparing_wal.store(false, Ordering::Release);
        self.note_progress();
        self.latch.check()?;
        Ok(made.is_ok())
    }

    fn make_spare(&self) -> Result<()> {
        self.latch.check()?;
        if self.queue.lock().spare.is_some() {
            return Ok(());
        }
        self.watch_place()?;
        let number = self.new_file_number();
        let wal =
            self.new_wal(number, self.catalog.in_force(), self.wal_capacity_bytes()).file()?;
        // A failed sync may have forgotten the names of others, tables among them.
        let synced = || self.env.fs.sync_dir(&self.dir).inspect_err(|error| self.trip(error));
        unless_mutant!(WalNameSync, synced()?);
        let next = self.next_file.load(Ordering::Relaxed);
        self.catalog.append(vec![wal.added(), Field::NextFile(next)])?;
        self.queue.lock().spare = Some(Arc::new(wal));
        Ok(())
    }

    /// Creates the log of a clean close: a header, durable with its name.
    pub(crate) fn create_empty_wal(&self) -> Result<Wal> {
        self.place.check()?;
        let number = self.new_file_number();
        self.new_wal(number, self.catalog.in_force(), EMPTY_BYTES).create()
    }

    /// A segment of this database's log, to be made.
    pub(crate) fn new_wal(
        &self,
        number: FileNumber,
        manifest: InForce,
        capacity_bytes: u64,
    ) -> NewWal<'_> {
        NewWal { env: &self.env, dir: &self.dir, number, manifest, capacity_bytes }
    }

    /// The segment that lacks room for a record of `bytes`, and up to where it
    /// must have some.
    #[inline]
    pub(crate) fn lacks_room(&self, queue: &QueueState, bytes: u64) -> Option<(Arc<Wal>, u64)> {
        let end = queue.wal_offset + bytes + MARK_ROOM_BYTES;
        (queue.wal.file.reserved_bytes() < end).then(|| (queue.wal.clone(), end))
    }

    /// Reserves room in a segment.
    ///
    /// # Errors
    /// `NoSpace` for this write alone: nothing of it was written. Any other
    /// failure turns writing off.
    #[cold]
    pub(crate) fn make_room(&self, (wal, end): (Arc<Wal>, u64)) -> Result<()> {
        let made = wal.file.reserve(end);
        made.map_err(|error| match error.kind() {
            ErrorKind::NoSpace => {
                error.context("nothing of the write was done; make room and retry")
            }
            _ => {
                self.trip(&error);
                error
            }
        })
    }

    /// Whether so much is written that a switch, and with it the next segment,
    /// is in sight.
    pub(crate) fn is_spare_due(&self, queue: &QueueState) -> bool {
        let filled = queue.wal_offset.max(queue.active_bytes as u64);
        queue.spare.is_none() && self.shares.memtable_bytes / 4 <= filled
    }

    /// The same, once for each eighth of a memtable that is written: for writers,
    /// who then have the spare made.
    #[inline]
    pub(crate) fn asks_for_spare(&self, queue: &mut QueueState) -> bool {
        if queue.spare.is_some() || queue.wal_offset < queue.spare_from {
            return false;
        }
        let due = self.is_spare_due(queue);
        if due {
            queue.spare_from = queue.wal_offset + self.shares.memtable_bytes / 8;
        }
        due
    }

    /// Gives back what sealed segments reserved and did not use.
    pub(crate) fn release_sealed(&self) {
        let sealed: Vec<Arc<Wal>> =
            self.queue.lock().older_wals.iter().map(|(wal, _)| wal.clone()).collect();
        sealed.iter().for_each(|wal| wal.release());
    }

    /// Goes on in the spare log segment; `false` if none is ready.
    pub(crate) fn rotate_wal(&self, queue: &mut QueueState) -> bool {
        let Some(spare) = queue.spare.take() else {
            return false;
        };
        let old = queue.rotate(spare);
        queue.older_wals.push(old);
        self.wal_sync.activate(queue.wal.clone());
        true
    }
}

/// A log segment to be made.
pub(crate) struct NewWal<'a> {
    pub(crate) env: &'a Env,
    pub(crate) dir: &'a Path,
    pub(crate) number: FileNumber,
    /// The manifest beside which it is made.
    pub(crate) manifest: InForce,
    pub(crate) capacity_bytes: u64,
}

impl NewWal<'_> {
    /// Makes it, its header written and synced and its name durable.
    pub(crate) fn create(&self) -> Result<Wal> {
        let wal = self.file()?;
        unless_mutant!(WalNameSync, self.env.fs.sync_dir(self.dir)?);
        Ok(wal)
    }

    /// The same but for its name, which is not durable. What was created and is
    /// of no use is removed again.
    fn file(&self) -> Result<Wal> {
        let NewWal { env, dir, number, ref manifest, capacity_bytes } = *self;
        let path = dir.join(names::wal(number));
        let uid = env.random.next_u64();
        let header = FileHeader {
            kind: LogKind::Wal,
            number,
            uid,
            manifest_number: manifest.durable.number,
            manifest_durable_bytes: manifest.durable.bytes,
            manifest_uid: manifest.uid,
        };
        let file = env.fs.create_log(&path, capacity_bytes)?;
        let begin = || {
            file.write_at(0, &log::encode_file_header(&header))?;
            if capacity_bytes > EMPTY_BYTES || !mutant!(CloseLogSync) {
                unless_mutant!(WalHeaderSync, file.sync()?);
            }
            // The length it was given, where the file system does that.
            env.fs.len(&path)
        };
        let bytes = begin().inspect_err(|_| {
            let _ = env.fs.remove(&path);
        })?;
        Ok(Wal::new(number, uid, file, bytes))
    }
}
