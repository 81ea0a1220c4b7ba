//! The catalog: the manifest that is written, and the state that it folds to.
//!
//! Owns: the one state of the manifest that changes, and the order of a change. A record is folded
//! on a copy before it is written, so that the manifest has no record that an open would refuse. It
//! is in the manifest before the state shows it. A new manifest is durable before CURRENT names it.
//! Never does: decide what a record says, or show a version to readers.

pub mod cleanup;
pub mod durable_manifest;
pub mod install;

use crate::catalog::cleanup::Cleanup;
use crate::catalog::durable_manifest::DurableManifest;
use crate::host::Host;
use crate::manifest::log::{InForce, ManifestLog, set_current};
use crate::manifest::record::{Field, KeptLog, ManifestRecord};
use crate::manifest::state::{KeyspaceState, ManifestState};
use crate::tree::keyspace_list::Trees;
use crate::write::kept_logs::{KeptLimits, retain};
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::{
    Error, FileNumber, KeyspaceId, Result, SeqNo, check_invariant, debug_invariant, invariant,
};
use windrow_env::fs::is_out_of_descriptors;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_env::sync::{Mutex, MutexGuard};
use windrow_format::names;
use windrow_plan::tree::{Edit, Version};
use windrow_read::lock_ranks;

/// The manifest, and the state that it folds to.
struct Manifest {
    /// `None` until the database is written to.
    log: Option<ManifestLog>,
    state: ManifestState,
}

/// The part of the feed of changes that the logs have, for readers that do not wait for the manifest.
#[derive(Default)]
pub struct Retained {
    begin: AtomicU64,
    bytes: AtomicU64,
    drops: AtomicU64,
}

impl Retained {
    /// The first sequence number from which the logs have all operations.
    pub fn begin(&self) -> SeqNo {
        self.begin.load(Ordering::Acquire)
    }

    /// Bytes of the logs that are kept for the feed alone.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// A number that changes with the list of dropped keyspaces.
    pub fn drops(&self) -> u64 {
        self.drops.load(Ordering::Acquire)
    }

    fn note(&self, state: &ManifestState) {
        self.begin.store(state.changes_begin(), Ordering::Release);
        self.bytes.store(state.kept.values().map(|log| log.bytes).sum(), Ordering::Release);
    }
}

/// The catalog of an open database.
pub struct Catalog {
    host: Arc<Host>,
    cleanup: Arc<Cleanup>,
    durable: Arc<DurableManifest>,
    retained: Retained,
    manifest: Mutex<Manifest>,
}

/// The catalog, locked.
pub struct LockedCatalog<'a> {
    catalog: &'a Catalog,
    manifest: MutexGuard<'a, Manifest>,
}

/// A new manifest that is in force, and its state.
pub struct Begun {
    log: ManifestLog,
    state: ManifestState,
}

impl Catalog {
    /// Returns the catalog of a database that was found in this state, and is not written to yet.
    pub fn new(
        host: Arc<Host>,
        (cleanup, durable): (Arc<Cleanup>, Arc<DurableManifest>),
        state: ManifestState,
    ) -> Catalog {
        let retained = Retained::default();
        retained.note(&state);
        let manifest = Mutex::new(lock_ranks::CATALOG, Manifest { log: None, state });
        Catalog { host, cleanup, durable, retained, manifest }
    }

    /// The durable length of the manifest, now and later.
    pub fn durable(&self) -> &Arc<DurableManifest> {
        &self.durable
    }

    /// The part of the feed of changes that the logs have.
    pub fn retained(&self) -> &Retained {
        &self.retained
    }

    /// Locks the catalog. Does not check that writing is on.
    pub fn lock(&self) -> LockedCatalog<'_> {
        LockedCatalog { catalog: self, manifest: self.manifest.lock() }
    }

    /// Locks the catalog for a change.
    ///
    /// # Errors
    /// `ReadOnly` if writing is off; `Closed`.
    pub fn lock_to_change(&self) -> Result<LockedCatalog<'_>> {
        let locked = self.lock();
        self.host.write_state.check()?;
        let is_begun = locked.log().is_some();
        debug_invariant!(R2, is_begun, "a change comes before the manifest of this open");
        Ok(locked)
    }

    /// A copy of the state that the manifest folds to now.
    pub fn state(&self) -> ManifestState {
        self.lock().state().clone()
    }

    /// The manifest's identity and durable length, which a log made now remembers.
    pub fn in_force(&self) -> InForce {
        self.lock().in_force()
    }

    /// Logs fields that concern no version.
    ///
    /// # Errors
    /// As [`LockedCatalog::append`].
    pub fn append(&self, fields: Vec<Field>) -> Result<()> {
        self.lock_to_change()?.append(fields)
    }

    /// Writes a new manifest, in which all up to `last_seq` is in tables, and has CURRENT name it:
    /// no log from before is in force from then on.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn begin(&self, mut state: ManifestState, last_seq: SeqNo) -> Result<Begun> {
        let host = &self.host;
        let manifest_number = host.new_file_number();
        let before = state.last_seq;
        check_invariant!(R3, before <= last_seq, "tables go on to {before}, logs to {last_seq}");
        let through = state.keyspaces.values().map(|k| k.version.flushed_through).max();
        check_invariant!(
            R3,
            through <= Some(last_seq),
            "tables go on to {through:?} of {last_seq}"
        );
        match host.settings.changes_bytes {
            // Of a session that is not among them nobody knows what a crash took back.
            0 => state.sessions = Arc::default(),
            _ => state.begin_session(host.env.random.next_u64(), last_seq),
        }
        state.clean_close = None;
        state.last_seq = last_seq;
        state.log_number = host.new_file_number();
        let log_number = state.log_number;
        check_invariant!(
            R8,
            manifest_number < log_number,
            "log {log_number} was made before manifest {manifest_number}"
        );
        state.log_first_seq = last_seq + 1;
        state.wals.clear();
        retain(&mut state, KeptLimits::of(host), last_seq + 1);
        state.settings_text = host.settings.to_text().into();
        state.next_file = host.next_file.load(Ordering::Relaxed);
        let log = ManifestLog::create(&host.env, &host.dir, manifest_number, &state.snapshot())?;
        self.put_in_force(&log)?;
        Ok(Begun { log, state })
    }

    /// Has CURRENT name a manifest, durably, unless another program changed it.
    pub fn put_in_force(&self, log: &ManifestLog) -> Result<()> {
        let Host { env, dir, place, database_uid, .. } = &*self.host;
        let (durable, all) = (log.durable().bytes, log.bytes());
        check_invariant!(R1, durable == all, "CURRENT would name {all} bytes, {durable} durable");
        place.check()?;
        let current = log.current(*database_uid);
        place.replacing(&current);
        set_current(env, dir, &current)?;
        place.replaced(&current);
        Ok(())
    }

    /// Closes the manifest's file.
    ///
    /// # Errors
    /// An error of the file system. Nothing is lost then, as every record that matters was synced.
    pub fn finish(&self) -> Result<()> {
        self.manifest.lock().log.as_mut().map_or(Ok(()), ManifestLog::finish)
    }
}

impl LockedCatalog<'_> {
    /// The state that the manifest folds to.
    pub fn state(&self) -> &ManifestState {
        &self.manifest.state
    }

    /// The manifest that is written, for a test to spoil.
    #[cfg(any(test, feature = "testing"))]
    pub fn log_mut(&mut self) -> Option<&mut ManifestLog> {
        self.manifest.log.as_mut()
    }

    /// The manifest that is written; `None` until the database is written to.
    pub fn log(&self) -> Option<&ManifestLog> {
        self.manifest.log.as_ref()
    }

    /// The manifest's identity and durable length, which a log made now remembers.
    pub fn in_force(&self) -> InForce {
        self.log().expect("a writable database has a manifest").in_force()
    }

    /// Appends fields, durably, and folds them into the state.
    ///
    /// # Errors
    /// `Internal` if they do not fold, with nothing written; or an error of the manifest.
    /// Each turns writing off, and leaves the state as it was.
    pub fn append(&mut self, fields: Vec<Field>) -> Result<()> {
        debug_assert!(!fields.is_empty(), "a record that says nothing");
        self.append_edits(fields, Vec::new(), true, || ())
    }

    /// Appends fields and edits of trees in one record, durably if asked, and folds them into the
    /// state. Each edit comes with its keyspace and the version that it makes. For
    /// [`LockedCatalog::install`].
    ///
    /// # Errors
    /// As [`LockedCatalog::append`]; the edits may then still be in the manifest.
    pub(crate) fn append_edits(
        &mut self,
        fields: Vec<Field>,
        edits: Vec<(Edit, (KeyspaceId, Arc<Version>))>,
        durable: bool,
        on_failure: impl FnOnce(),
    ) -> Result<()> {
        let mut record = ManifestRecord(fields);
        let order_of = |id: &str| self.catalog.host.components.key_order(id);
        // An open must be able to fold every record that is written.
        let change = match self.state().change(&record, &order_of) {
            Ok(change) => change,
            Err(error) => {
                on_failure();
                return Err(self.refuse(error.of_our_making()));
            }
        };
        let mut versions = Vec::with_capacity(edits.len());
        for (edit, (id, version)) in edits {
            record.0.push(Field::KeyspaceEdit(id, edit));
            versions.push((id, version));
        }
        self.write(&record, durable, on_failure)?;
        self.manifest.state.adopt(change);
        self.note_retained(&record);
        for (id, version) in versions {
            self.keyspace(id).version = version;
        }
        self.manifest.state.check_numbers();
        let (known, next) = (self.state().next_file, self.next_file().load(Ordering::Relaxed));
        debug_invariant!(R8, known <= next, "file {next} is next, and the manifest says {known}");
        Ok(())
    }

    fn note_retained(&self, record: &ManifestRecord) {
        let retained = &self.catalog.retained;
        retained.note(self.state());
        let drops = record.0.iter().filter(|field| matches!(field, Field::KeyspaceDropped(_)));
        retained.drops.fetch_add(drops.count() as u64, Ordering::AcqRel);
    }

    /// Turns writing off for an error of Windrow's own.
    pub(crate) fn refuse(&self, error: Error) -> Error {
        self.catalog.host.set_background_error(&error);
        error
    }

    /// The number of the next file of the database.
    pub fn next_file(&self) -> &AtomicU64 {
        &self.catalog.host.next_file
    }

    /// The deletion of files.
    pub fn cleanup(&self) -> &Cleanup {
        &self.catalog.cleanup
    }

    /// Edits a tree before the database is written to: the manifest that this open begins with will
    /// include the edit. Returns the new version.
    ///
    /// # Errors
    /// `Corruption` if the edit does not fit the version.
    pub fn edit_unlogged(
        &mut self,
        id: KeyspaceId,
        edit: impl FnOnce(&Version) -> Edit,
    ) -> Result<Arc<Version>> {
        debug_invariant!(R2, self.manifest.log.is_none(), "an edit is kept from the manifest");
        let keyspace = self.keyspace(id);
        keyspace.version = Arc::new(keyspace.version.apply(&edit(&keyspace.version))?);
        Ok(keyspace.version.clone())
    }

    /// Sets which logs are kept for the feed of changes, before a manifest is begun, which will say
    /// so.
    pub fn keep_unlogged(&mut self, kept: BTreeMap<FileNumber, KeptLog>) {
        self.manifest.state.kept = Arc::new(kept);
    }

    /// Goes on in a manifest that was begun. CURRENT may name the one before it until the new one's
    /// log is there.
    pub fn adopt(&mut self, Begun { log, state }: Begun) {
        let (before, after) = (self.log().map(|old| old.number), log.number);
        invariant!(R8, before < Some(after), "manifest {after} comes after {before:?}");
        let (has, due) = (log.durable().bytes, log.bytes());
        invariant!(R1, has == due, "{has} of {due} bytes of a manifest in force are durable");
        self.manifest.state = state;
        self.catalog.retained.note(&self.manifest.state);
        if let Some(old) = self.manifest.log.replace(log) {
            self.catalog.cleanup.keep(&names::manifest(old.number));
        }
    }

    /// Starts a new manifest when the old one is mostly history.
    ///
    /// # Errors
    /// An error of the file system, which turns writing off.
    pub fn roll_if_wanted(&mut self, trees: &Trees) -> Result<()> {
        let Catalog { host, cleanup, durable, .. } = self.catalog;
        let bytes_min = host.settings.manifest_bytes;
        if !self.log().is_some_and(|log| log.wants_roll(bytes_min)) {
            return Ok(());
        }
        let number = host.new_file_number();
        self.manifest.state.next_file = host.next_file.load(Ordering::Relaxed);
        self.keep_statistics(trees).inspect_err(|error| host.set_background_error(error))?;
        let snapshot = self.state().snapshot();
        let created = ManifestLog::create(&host.env, &host.dir, number, &snapshot);
        if created.as_ref().is_err_and(is_out_of_descriptors) {
            // The old one goes on until the next record finds free descriptors.
            cleanup.unlink(&names::manifest(number));
            return Ok(());
        }
        let rolled = created.and_then(|log| self.catalog.put_in_force(&log).map(|()| log));
        let new = rolled.inspect_err(|error| {
            host.set_background_error(error);
            // CURRENT may name the new one.
            cleanup.keep(&names::manifest(number));
            cleanup.keep(&names::temp(number));
        })?;
        durable.set(new.durable());
        debug_assert!(!new.wants_roll(bytes_min), "manifest {number} is too long as it is new");
        let mut old = self.manifest.log.replace(new).expect("checked above");
        let before = old.number;
        check_invariant!(R8, before < number, "manifest {number} comes after {before}");
        let finished = old.finish();
        cleanup.unlink(&names::manifest(old.number));
        finished.inspect_err(|error| host.set_background_error(error))
    }

    /// Puts today's statistics into the state: the snapshot names every file anyway.
    fn keep_statistics(&mut self, trees: &Trees) -> Result<()> {
        for tree in trees.iter().filter(|tree| tree.reads.access.is_on()) {
            if let Some(keyspace) = self.manifest.state.keyspaces.get_mut(&tree.id) {
                let edit = tree.estimates().edit(&keyspace.version);
                debug_invariant!(I2, edit.only_relocates(), "statistics add or remove a table");
                keyspace.version =
                    Arc::new(keyspace.version.apply(&edit).map_err(Error::of_our_making)?);
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        record: &ManifestRecord,
        durable: bool,
        on_failure: impl FnOnce(),
    ) -> Result<()> {
        let host = &self.catalog.host;
        let log = self.manifest.log.as_mut().expect("a writable database has a manifest");
        let begin = log.bytes();
        let appended = log.check_in_place(&host.place).and_then(|()| match durable {
            true => log.append(record),
            false => log.append_unsynced(record),
        });
        host.counters.manifest_bytes.add(log.bytes() - begin);
        let appended = appended.and_then(|()| {
            let (has, due) = (log.durable().bytes, log.bytes());
            check_invariant!(R7, !durable || has == due, "{has} of {due} bytes are durable");
            Ok(())
        });
        if let Err(error) = appended {
            on_failure();
            host.set_background_error(&error);
            return Err(error);
        }
        self.catalog.durable.set(log.durable());
        Ok(())
    }

    fn keyspace(&mut self, id: KeyspaceId) -> &mut KeyspaceState {
        self.manifest.state.keyspaces.get_mut(&id).expect("a tree is of a keyspace")
    }
}
