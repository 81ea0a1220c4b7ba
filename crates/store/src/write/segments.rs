//! Segments of the log: how one is made, how the log goes on in the next, how the active one gets
//! room for a record, and when one is no longer needed.
//!
//! A spare segment is made ahead, so that a switch of memtables finds it ready, but not before a
//! quarter of a memtable is filled: a process that writes little needs none. If it cannot be made
//! (a full device, no descriptors), the active segment goes on, since it can grow, and the attempt
//! is made again at the next switch. A failure turns writing off only if it may have lost names or
//! records that others rely on: a failure of the directory's sync, or of the manifest.
//!
//! Room is reserved before a slot is given out, so a writer that finds the device full is refused
//! with nothing written, and no slot is behind a hole.
//!
//! Owns: the commit queue, which gives out their slots, and their sync. Never does: freeze a
//! memtable, or wait for a flush.

use crate::catalog::cleanup::Cleanup;
use crate::catalog::{Catalog, LockedCatalog};
use crate::host::Host;
use crate::manifest::log::InForce;
use crate::manifest::record::{Field, KeptLog};
use crate::manifest::state::ManifestState;
use crate::write::kept_logs::{KeptLogs, Leaving, leaving};
use crate::write::queue::{Queue, QueueState};
use crate::write::wal::Wal;
use crate::write::wal_sync::WalSync;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{
    ErrorKind, FileNumber, Result, SeqNo, check_invariant, debug_invariant, unless_mutant,
};
use windrow_env::Env;
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_format::log::{self, FILE_HEADER_BYTES, FileHeader, Length, LogKind};
use windrow_format::names;
use windrow_read::memtable::Memtable;

/// Room for the mark that may go before a record, in bytes. A longer mark takes room of its own.
const MARK_ROOM_BYTES: u64 = 4096;

/// The length of a log without records.
pub const EMPTY_BYTES: u64 = FILE_HEADER_BYTES as u64;

/// The segments of the log, and the queue that gives out slots of them.
pub struct Segments {
    pub(super) host: Arc<Host>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) cleanup: Arc<Cleanup>,
    pub queue: Queue,
    pub wal_sync: WalSync,
    /// Whether a thread makes a spare.
    preparing: AtomicBool,
    /// Old ones, for the feed of changes.
    pub kept: KeptLogs,
}

impl Segments {
    /// Makes the segments of a database that goes on after `last_seq`, for now into `wal`.
    pub fn new(
        (host, catalog, cleanup): (Arc<Host>, Arc<Catalog>, Arc<Cleanup>),
        last_seq: SeqNo,
        wal: Arc<Wal>,
    ) -> Segments {
        let queue = Queue::new(last_seq, wal, catalog.durable().clone());
        let wal_sync = WalSync::of(host.place.clone());
        let preparing = AtomicBool::new(false);
        let kept = KeptLogs::new(host.clone(), cleanup.clone());
        Segments { host, catalog, cleanup, queue, wal_sync, preparing, kept }
    }

    /// Wakes all threads that wait for a slot or a sync.
    pub(crate) fn wake_all(&self) {
        self.queue.wake_all();
        self.wal_sync.wake_all();
    }

    /// Makes the next log segment, if there is none yet: file, header and name durable, and known
    /// to the manifest before a record goes in. `false` if it could not be made: the active one
    /// goes on.
    ///
    /// # Errors
    /// `ReadOnly` if writing is off.
    pub fn prepare(&self) -> Result<bool> {
        if self.preparing.swap(true, Ordering::AcqRel) {
            // Another thread makes it; a writer waits for the outcome.
            self.host.wait_until(|| {
                let settled = !self.preparing.load(Ordering::Acquire);
                (settled || self.host.write_state.check().is_err()).then_some(())
            });
            self.host.write_state.check()?;
            return Ok(self.queue.lock().spare.is_some());
        }
        let made = self.make_spare();
        if let Err(error) = &made
            && error.kind() == ErrorKind::Internal
        {
            self.host.set_background_error(error);
        }
        // Exchanged: loom gives a store no place among the exchanges of others.
        let was_mine = self.preparing.swap(false, Ordering::AcqRel);
        debug_invariant!(R2, was_mine, "two made the next log at once");
        self.host.note_progress();
        self.host.write_state.check()?;
        Ok(made.is_ok())
    }

    fn make_spare(&self) -> Result<()> {
        self.host.write_state.check()?;
        if self.queue.lock().spare.is_some() {
            return Ok(());
        }
        self.host.watch_place()?;
        let number = self.host.new_file_number();
        let wal = self.new_wal(number, self.catalog.in_force(), self.capacity_bytes()).file()?;
        // A failed sync may have lost the names of other files, tables among them.
        let synced = self.host.env.fs.sync_dir(&self.host.dir);
        synced.inspect_err(|error| self.host.set_background_error(error))?;
        let next = self.host.next_file.load(Ordering::Relaxed);
        self.catalog.append(vec![wal.added(), Field::NextFile(next)])?;
        let mut queue = self.queue.lock();
        check_invariant!(R2, queue.spare.is_none(), "two logs were made ahead");
        let active = queue.wal.number;
        check_invariant!(R8, active < number, "log {number} is to come after {active}");
        queue.spare = Some(Arc::new(wal));
        Ok(())
    }

    /// Creates the log of a clean close: a header, durable with its name.
    pub fn create_empty(&self) -> Result<Wal> {
        self.host.place.check()?;
        let number = self.host.new_file_number();
        self.new_wal(number, self.catalog.in_force(), EMPTY_BYTES).create()
    }

    /// Returns a segment of this database's log, not made yet.
    pub fn new_wal(
        &self,
        number: FileNumber,
        manifest: InForce,
        capacity_bytes: u64,
    ) -> NewWal<'_> {
        NewWal { env: &self.host.env, dir: &self.host.dir, number, manifest, capacity_bytes }
    }

    /// Returns the segment that lacks room for a record of `bytes`, and the length to which it must
    /// have room.
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
                self.host.set_background_error(&error);
                error
            }
        })
    }

    /// Gives back the space that sealed segments reserved and did not use.
    pub(crate) fn release_sealed(&self) {
        let sealed: Vec<Arc<Wal>> =
            self.queue.lock().older_wals.iter().map(|(wal, _)| wal.clone()).collect();
        let open = sealed.iter().find(|wal| !wal.is_sealed()).map(|wal| wal.number);
        debug_invariant!(R4, open.is_none(), "log {open:?} is not sealed, and a newer one is used");
        sealed.iter().for_each(|wal| wal.release());
    }

    /// Goes on in the spare log segment; `false` if none is ready.
    pub fn rotate(&self, queue: &mut QueueState) -> bool {
        let Some(spare) = queue.spare.take() else {
            return false;
        };
        let old = queue.rotate(spare);
        queue.older_wals.push(old);
        let (first, next) = (queue.wal_first_seq, queue.next_seq);
        debug_invariant!(Q1, first == next, "a log begins with {first}, and {next} is next");
        queue.check(self.queue.visible());
        self.wal_sync.activate(queue.wal.clone());
        true
    }

    /// Whether enough is written that a switch, and with it the next segment, is near.
    pub(crate) fn is_spare_due(&self, queue: &QueueState) -> bool {
        let filled = queue.wal_offset.max(queue.unflushed.active_bytes() as u64);
        queue.spare.is_none() && self.host.shares.memtable_bytes / 4 <= filled
    }

    /// Whether a writer must have the spare made: asked once for each eighth of a memtable that is
    /// written.
    #[inline]
    pub(crate) fn asks_for_spare(&self, queue: &mut QueueState) -> bool {
        if queue.spare.is_some() || queue.wal_offset < queue.spare_from {
            return false;
        }
        let due = self.is_spare_due(queue);
        if due {
            queue.spare_from = queue.wal_offset + self.host.shares.memtable_bytes / 8;
        }
        due
    }

    /// Whether the log should go on in a new segment when `leaving` active memtables are frozen: if
    /// that lets the old one go, or if the old one has grown. Each segment takes a memtable's room
    /// on the device, however few records it has.
    pub(crate) fn wants_new_log(&self, leaving: usize, queue: &QueueState) -> bool {
        let pinned = queue.unflushed.active().len() > leaving;
        queue.wal_offset >= self.host.shares.memtable_bytes / 2 || !pinned
    }

    /// Makes the log for which a manifest just begun waits, and adds it to the manifest.
    pub fn create_first(&self, catalog: &mut LockedCatalog<'_>) -> Result<Wal> {
        let number = catalog.state().log_number;
        let known = catalog.state().wals.len();
        check_invariant!(R2, known == 0, "the first log of a manifest that has {known}");
        let wal = self.new_wal(number, catalog.in_force(), self.capacity_bytes()).create()?;
        catalog.append(vec![wal.added()])?;
        Ok(wal)
    }

    /// The log from which recovery must replay once these are in tables, and how much of the logs
    /// from there on is durable (rule R4). `state`: the manifest's, under whose lock this is called.
    /// Logs before that one that are kept for the feed of changes are made durable.
    ///
    /// # Errors
    /// An error of the device, which is a background error.
    pub fn log_begin(
        &self,
        flushed: &[Arc<Memtable>],
        state: &ManifestState,
    ) -> Result<Vec<Field>> {
        let queue = self.queue.lock();
        let oldest = queue.unflushed.oldest_log(flushed);
        let number = oldest.map_or(queue.wal.number, |oldest| oldest.min(queue.wal.number));
        let first_seq = first_seq_of(&queue, number);
        let next = queue.next_seq;
        debug_invariant!(R4, first_seq <= next, "replay begins with {first_seq}, {next} is next");
        let synced = synced_from(&queue, number);
        let leaving = leaving(&queue, state.log_number, number);
        drop(queue);
        // Before the beginning of the logs: a fold forgets what the kept ones do not need.
        let mut fields = self.keep(leaving, first_seq, state)?;
        fields.push(Field::LogBegin { number, first_seq });
        fields.extend(synced);
        Ok(fields)
    }

    /// As [`Segments::log_begin`], for a clean close, which ends the log in use as well: the fields
    /// that keep logs for the feed of changes.
    ///
    /// # Errors
    /// An error of the device, which is a background error.
    pub fn log_end(&self, state: &ManifestState) -> Result<Vec<Field>> {
        let queue = self.queue.lock();
        let (leaving, next_seq) =
            (leaving(&queue, state.log_number, FileNumber::MAX), queue.next_seq);
        drop(queue);
        self.keep(leaving, next_seq, state)
    }

    /// How much is durable of each log from `log_number` on, the first that the manifest asks for.
    /// The queue may still have older ones, whose entries are in tables by the manifest, and which
    /// a flush is about to remove: the manifest no longer knows them.
    pub fn log_synced(&self, log_number: FileNumber) -> Vec<Field> {
        synced_from(&self.queue.lock(), log_number).collect()
    }

    /// Removes logs whose records are all in tables, but for those that the manifest keeps for the
    /// feed of changes, and such that it does not keep any more. Called under the manifest's lock.
    ///
    /// # Errors
    /// `Internal` if a memtable still needs one of them.
    pub fn retire_below(
        &self,
        log_number: FileNumber,
        kept: &BTreeMap<FileNumber, KeptLog>,
    ) -> Result<()> {
        let mut queue = self.queue.lock();
        let needed = queue.unflushed.oldest_log(&[]).unwrap_or(log_number);
        check_invariant!(
            R7,
            log_number <= needed,
            "logs before {log_number} go, and log {needed} holds what is in no table"
        );
        let (gone, needed) = std::mem::take(&mut queue.older_wals)
            .into_iter()
            .partition(|(wal, _)| wal.number < log_number);
        queue.older_wals = needed;
        drop(queue);
        self.wal_sync.retire_below(log_number);
        let gone: Vec<(Arc<Wal>, SeqNo)> = gone;
        for (wal, _) in gone {
            self.kept.retire(wal.number, kept);
        }
        self.kept.remove_others(kept);
        Ok(())
    }

    /// Makes logs that leave durable, if logs are kept for the feed of changes, and returns the
    /// fields that keep them and let older ones go.
    fn keep(
        &self,
        leaving: Vec<Leaving>,
        next_seq: SeqNo,
        state: &ManifestState,
    ) -> Result<Vec<Field>> {
        if self.kept.is_on() {
            for Leaving { wal, .. } in &leaving {
                self.sync_whole(wal)?;
            }
        }
        Ok(self.kept.fields(leaving, next_seq, state))
    }

    fn sync_whole(&self, wal: &Arc<Wal>) -> Result<()> {
        unless_mutant!(KeptUnsynced, self.sync_to(wal, wal.written())?);
        Ok(())
    }

    /// Makes the ended logs durable, if logs are kept: before the manifest is locked for the record
    /// that keeps them.
    ///
    /// # Errors
    /// An error of the device, which is a background error.
    pub(crate) fn sync_to_keep(&self) -> Result<()> {
        let ended = self.queue.lock().older_wals.last().map(|(wal, _)| wal.clone());
        if let Some(wal) = ended.filter(|_| self.kept.is_on()) {
            self.sync_whole(&wal)?;
        }
        Ok(())
    }

    /// Lets logs go that were kept for long enough, though nothing is written.
    ///
    /// # Errors
    /// An error of the manifest, which is a background error.
    pub fn expire_kept(&self) -> Result<()> {
        if !self.kept.may_expire() {
            return Ok(());
        }
        let mut catalog = self.catalog.lock_to_change()?;
        let (next_seq, state) = (catalog.state().log_first_seq, catalog.state());
        let fields = self.keep(Vec::new(), next_seq, state)?;
        if !fields.is_empty() {
            catalog.append(fields)?;
            self.kept.remove_others(&catalog.state().kept);
        }
        Ok(())
    }

    /// The length of a log: a memtable's entries, and record headers. Space is reserved for it in
    /// steps.
    pub fn capacity_bytes(&self) -> u64 {
        self.host.shares.memtable_bytes + self.host.shares.memtable_bytes / 4
    }

    /// Begins to write to a log made for this open.
    pub fn begin(&self, last_seq: SeqNo, wal: Arc<Wal>) {
        self.wal_sync.activate(wal.clone());
        self.queue.begin(last_seq, wal);
    }

    /// Goes on in a new segment after the published records, for when all is settled.
    pub fn restart(&self, wal: Wal) {
        let wal = Arc::new(wal);
        self.wal_sync.activate(wal.clone());
        self.queue.restart(wal);
        let (last, visible) = (self.queue.lock().last_seq(), self.queue.visible());
        debug_invariant!(Q2, last == visible, "{last} was given out again, {visible} is visible");
    }

    /// Makes every write so far durable.
    ///
    /// # Errors
    /// An error of the device, which is a background error.
    pub fn sync(&self) -> Result<()> {
        self.host.write_state.check()?;
        let (next, wal) = {
            let queue = self.queue.lock();
            (queue.next_ticket(), queue.wal.clone())
        };
        // A slot of this segment, or of one before, may still be unfilled, also one of a mark
        // alone, which no sequence number shows. Until it is filled the sync would repeat without
        // end.
        self.queue.wait_published(next, &self.host.write_state)?;
        self.sync_to(&wal, wal.written())
    }

    /// Makes a segment, and all before it, durable up to `end`.
    ///
    /// # Errors
    /// An error of the device, which is a background error.
    pub fn sync_to(&self, wal: &Arc<Wal>, end: u64) -> Result<()> {
        if self
            .wal_sync
            .sync_to(wal, end, &self.host.write_state, |e| self.host.set_background_error(e))?
        {
            self.host.counters.wal_syncs.add(1);
            self.queue.wake_listeners();
        }
        Ok(())
    }

    /// Makes the log durable if more than `count` memtables have entries that are in no table yet.
    ///
    /// # Errors
    /// As [`Segments::sync`].
    pub fn sync_if_more_than(&self, count: usize) -> Result<()> {
        let more = self.queue.lock().unflushed.more_than(count);
        if more { self.sync() } else { Ok(()) }
    }

    /// The segments whose records are not all in tables, oldest first.
    pub fn in_use(&self) -> Vec<Arc<Wal>> {
        let queue = self.queue.lock();
        queue.older_wals.iter().map(|(wal, _)| wal).chain([&queue.wal]).cloned().collect()
    }

    /// Removes every segment, but for those that the manifest keeps for the feed of changes: a clean
    /// close has made a log of its own.
    pub fn remove_all(&self, kept: &BTreeMap<FileNumber, KeptLog>) {
        let mut queue = self.queue.lock();
        let spare = queue.spare.take();
        let older = std::mem::take(&mut queue.older_wals);
        let active = queue.wal.clone();
        let left = queue.unflushed.active().len() + queue.unflushed.frozen().len();
        debug_invariant!(R10, left == 0, "all logs go, and {left} memtables are in no table");
        drop(queue);
        let older = older.into_iter().map(|(wal, _)| wal);
        for wal in older.chain([active]).chain(spare) {
            if kept.contains_key(&wal.number) {
                wal.give_back();
            }
            self.kept.retire(wal.number, kept);
        }
        self.kept.remove_others(kept);
        self.cleanup.run(false);
    }
}

/// A log segment that is not made yet.
pub struct NewWal<'a> {
    pub env: &'a Env,
    pub dir: &'a Path,
    pub number: FileNumber,
    /// The manifest in force when it is made.
    pub manifest: InForce,
    pub capacity_bytes: u64,
}

impl NewWal<'_> {
    /// Makes it. Its header is written and synced, and its name durable.
    pub fn create(&self) -> Result<Wal> {
        let wal = self.file()?;
        self.env.fs.sync_dir(self.dir)?;
        Ok(wal)
    }

    /// Makes it, but its name is not durable. A file that cannot be used is removed again.
    fn file(&self) -> Result<Wal> {
        let NewWal { env, dir, number, ref manifest, capacity_bytes } = *self;
        let seen = manifest.durable.bytes;
        check_invariant!(R11, seen > 0, "log {number} names a manifest that is not durable");
        let path = dir.join(names::wal(number));
        let uid = env.random.next_u64();
        let header = FileHeader {
            kind: LogKind::Wal,
            framing: LogKind::Wal.framing(),
            number,
            uid,
            manifest_number: manifest.durable.number,
            manifest_durable_bytes: manifest.durable.bytes,
            manifest_uid: manifest.uid,
        };
        let file = env.fs.create_log(&path, capacity_bytes)?;
        let begin = || {
            file.write_at(0, &log::encode_file_header(&header))?;
            unless_mutant!(WalHeaderSync, file.sync()?);
            // Its length, which some file systems preallocate.
            env.fs.len(&path)
        };
        let bytes = begin().inspect_err(|_| {
            let _ = env.fs.remove(&path);
        })?;
        Ok(Wal::new(number, uid, file, bytes))
    }
}

/// The sequence number of the first record in log `number`.
fn first_seq_of(queue: &QueueState, number: FileNumber) -> SeqNo {
    let older = queue.older_wals.iter().find(|(wal, _)| wal.number == number);
    let is_known = older.is_some() || number == queue.wal.number;
    debug_invariant!(R4, is_known, "log {number} is to be replayed, and is not in use");
    older.map_or(queue.wal_first_seq, |&(_, first_seq)| first_seq)
}

/// How much is durable of each log from `number` on.
fn synced_from(queue: &QueueState, number: FileNumber) -> impl Iterator<Item = Field> + use<> {
    let logs = queue.lengths().into_iter().filter(move |log| log.number >= number);
    logs.map(|Length { number, bytes }| Field::WalSynced { number, bytes })
}
