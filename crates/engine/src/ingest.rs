//! Ingestion: sorted entries written straight to tables, which all become visible at once.
//!
//! The entries bypass the log and the memtables. They go to the deepest level that has nothing of
//! their keys above it, so no merge need write them again. A write takes a sequence number as it
//! comes; an ingestion takes one for all its entries, when the tables are complete. In the files
//! the entries have number 0, and a reader gives them the number that the manifest has for the
//! table (`File::is_ingested`).
//!
//! The order of `finish` follows from the durability of the tables (R7) and the order of the tree
//! (I3, I4):
//!
//! 1. The tables and their names are durable. Where any of them goes to level 0, the ingestion
//!    waits for the same pace as writers do.
//! 2. The places of the tables in the tree are reserved, so that no merge that begins now takes
//!    them (I9).
//! 3. With the manifest locked, and all memtables of the keyspace empty, the commit queue gives out
//!    a sequence number. A memtable that is not empty is flushed first; from the second try on,
//!    writers wait for that. A flush waits for all numbers that were given out, so none may be held
//!    while a flush is awaited.
//! 4. When all writes before that number are visible and durable, the manifest gets the edit, and
//!    the durable length of the logs. If that part is missing later, a device has lied, and the
//!    open says so.
//! 5. The view is installed, and only then the number published. A reader that got hold of an older
//!    view, and saw the number, takes the view again (`Pipeline::at`).
//!
//! A checkpoint takes the state of one moment, before or after the ingestion. A crash before 4
//! leaves tables that no manifest names, which the next open removes. A writer that comes after the
//! number may have its record in the log by then. The record is there without the ingestion, as
//! after an ingestion that failed, so a follower that reads between the two shows the ingestion
//! later.
//!
//! Owns: the writing of the tables, and that order. Never does: choose a place
//! (`windrow_plan::ingestion`), or give out a number (`write/commit.rs`).

use std::sync::Arc;
use std::time::Duration;
use windrow_base::key::{Kind, trailer};
use windrow_base::{Error, FileNumber, Result};
use windrow_env::sync::MutexGuard;
use windrow_env::sync::atomic::Ordering;
use windrow_format::tombstone::Tombstones;
use windrow_plan::ingestion;
use windrow_plan::tree::{File, Part};
use windrow_read::stats::{MergeInput, PauseReason};
use windrow_recover::database::Database;
use windrow_recover::handle::Handle;
use windrow_store::catalog::install::TreeEdit;
use windrow_store::host::workers::{Kick, closed};
use windrow_store::manifest::record::Field;
use windrow_store::merge::dropper::Sink;
use windrow_store::merge::filters::OutputFilters;
use windrow_store::merge::writer::{OutputSpec, Outputs};
use windrow_store::tree::{Tree, dropped};
use windrow_store::write::batch::check_limits;
use windrow_store::write::commit::outcome_unknown;

/// The text for an ingestion whose record may be in the manifest.
const UNSEEN: &str = "the ingestion is not visible and `resume` leaves it out, but if the database is \
                      reopened instead, the manifest may have it";

/// The part of a tree's bytes, up to a number of tables, that an ingestion leaves free on the
/// device.
const ROOM_PART: u64 = 8;
const ROOM_TABLES: u64 = 4;
/// Bytes of entries between two checks of the free space of the device.
const LOOK_BYTES: usize = 1 << 20;

/// Bytes that go to level 0 between two pauses of the pace: as many as a put has, since no pause is
/// longer than a write's longest delay.
const PAID_BYTES: u64 = 1 << 10;

/// Tries to find the memtables empty before writers must wait.
const FREE_TRIES: u32 = 1;

/// The amount that an ingestion added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ingested {
    /// Entries.
    pub entries: u64,
    /// Tables that they are in.
    pub tables: u64,
    /// Bytes of those tables.
    pub bytes: u64,
}

/// Takes sorted entries, and adds all of them to a keyspace at once: see [`crate::Keyspace::ingest`].
///
/// Dropped without [`Ingest::finish`], it leaves nothing.
pub struct Ingest {
    database: Handle,
    tree: Arc<Tree>,
    /// `None` once it has failed, or is finished.
    outputs: Option<Outputs<'static>>,
    first: Vec<u8>,
    last: Vec<u8>,
    entries: u64,
    user_bytes: u64,
    since_look: usize,
    /// An expiry with its value.
    expiring: Vec<u8>,
}

impl Ingest {
    /// Begins an ingestion into a keyspace.
    pub(crate) fn new(database: Handle, tree: Arc<Tree>) -> Result<Ingest> {
        database.write_state.check()?;
        database.workers.check_open()?;
        let version = tree.version();
        let (policy, sizes) = (tree.policy.load(), tree.sizes.load());
        let level = ingestion::deepest_level(&policy, &version, &sizes, 0);
        let spec = OutputSpec {
            level,
            cutter: policy.cutter(&version, &sizes, level),
            filters: Arc::new(OutputFilters::of_repair(&tree)),
            tombstones: Tombstones::default(),
        };
        let mut outputs = Outputs::shared(database.host.clone(), tree.clone(), spec);
        outputs.given_above = Some(database.pipeline.visible());
        Ok(Ingest {
            outputs: Some(outputs),
            first: Vec::new(),
            last: Vec::new(),
            entries: 0,
            user_bytes: 0,
            // The first entry checks the free space.
            since_look: LOOK_BYTES,
            expiring: Vec::new(),
            database,
            tree,
        })
    }

    /// Adds an entry. Its key must come after the last one's, in the keyspace's order. It
    /// expires if the keyspace has a TTL.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that does not come after the last one, and for a broken limit:
    /// the entry is left out, and the ingestion can go on. The errors of writing a table;
    /// `ReadOnly`; `Closed`: it has failed then.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), value.as_ref(), self.tree.ttl())
    }

    /// Adds an entry that expires when `ttl` from now has passed.
    ///
    /// # Errors
    /// As [`Ingest::put`].
    pub fn put_with_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.add(key.as_ref(), value.as_ref(), Some(ttl))
    }

    fn add(&mut self, key: &[u8], value: &[u8], ttl: Option<Duration>) -> Result<()> {
        check_limits(Kind::Put, key, value)?;
        let order = &self.tree.reads.order;
        if self.entries > 0 && !order.compare(&self.last, key).is_lt() {
            return Err(Error::invalid(format!(
                "key \"{}\" does not come after \"{}\": an ingestion takes keys in ascending \
                 order, each once",
                key.escape_ascii(),
                self.last.escape_ascii()
            )));
        }
        match ttl {
            None => self.write(key, Kind::Put, value),
            Some(ttl) => {
                let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                let expiry_ms = self.database.now_ms().saturating_add(ttl_ms);
                let mut expiring = std::mem::take(&mut self.expiring);
                expiring.clear();
                expiring.extend_from_slice(&expiry_ms.to_le_bytes());
                expiring.extend_from_slice(value);
                let written = self.write(key, Kind::PutExpiry, &expiring);
                self.expiring = expiring;
                written
            }
        }
        .inspect_err(|_| self.give_up())?;
        if self.entries == 0 {
            self.first.extend_from_slice(key);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.entries += 1;
        self.user_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn write(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<()> {
        let database = &self.database;
        let Some(outputs) = &mut self.outputs else { return Err(failed()) };
        database.write_state.check()?;
        // A close waits for this entry, and not for the ingestion.
        let _entered = Entered::new(database)?;
        self.since_look += key.len() + value.len();
        if self.since_look >= LOOK_BYTES {
            let merges = database.workers.merges_running.load(Ordering::Acquire);
            let step = self.since_look as u64 + room_to_merge_bytes(&self.tree);
            database.pipeline.segments.leave_room_to_flush(step, merges)?;
            self.since_look = 0;
        }
        outputs.keep(key, trailer(0, kind), value, true)
    }

    /// Makes all entries durable and visible, at one moment. Without entries it does nothing. Where
    /// merges are behind, and tables go to level 0, it waits as writers do.
    ///
    /// # Errors
    /// The errors of writing a table, and of flushing the keyspace's memtables; `ReadOnly`;
    /// `Closed`: nothing was added then. `OutcomeUnknown` if writing to the manifest failed:
    /// nothing is visible, and a reopen may find all of it.
    pub fn finish(mut self) -> Result<Ingested> {
        let Some(outputs) = self.outputs.take() else { return Err(failed()) };
        let (database, tree) = (&self.database, &self.tree);
        if !database.write_state.is_of_this_process() {
            // The files belong to the parent.
            std::mem::forget(outputs);
            return database.write_state.check().map(|()| Ingested::default());
        }
        database.write_state.check()?;
        let _underway = database.workers.begin()?;
        let files = outputs.finish(0)?;
        if files.is_empty() {
            return Ok(Ingested::default());
        }
        let done =
            Ingested { entries: self.entries, tables: files.len() as u64, bytes: bytes_of(&files) };
        add(database, tree, (&self.first, &self.last), files)?;
        database.counters.user_bytes.add(self.user_bytes);
        database.pipeline.steps.note();
        Ok(done)
    }

    fn give_up(&mut self) {
        let Some(outputs) = self.outputs.take() else { return };
        if !self.database.write_state.is_of_this_process() {
            std::mem::forget(outputs);
        }
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        self.give_up();
        if !self.database.write_state.is_of_this_process() {
            // As the drop of a keyspace does.
            std::mem::forget(self.tree.clone());
        }
    }
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ingest({} entries into {:?})", self.entries, self.tree.name)
    }
}

/// The room that an ingestion leaves to each merge that runs, or to one merge: without any, the
/// entries that newer tables hide would stay. A table is merged down together with the tables that
/// it overlaps there.
fn room_to_merge_bytes(tree: &Tree) -> u64 {
    let version = tree.version();
    let levels = 0..version.levels.len() as u32;
    let bytes: u64 = levels
        .map(|level| version.part_bytes(level, Part::Run) + version.part_bytes(level, Part::SstLog))
        .sum();
    (bytes / ROOM_PART).min(ROOM_TABLES * tree.sizes.load().file_bytes)
}

fn failed() -> Error {
    Error::invalid("the ingestion has failed: nothing of it will be added; begin another one")
}

/// A close waits for as long as this lives.
struct Entered<'a>(&'a Database);

impl<'a> Entered<'a> {
    fn new(database: &'a Database) -> Result<Entered<'a>> {
        if database.workers.gate.enter() { Ok(Entered(database)) } else { Err(closed()) }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.workers.gate.leave();
        if self.0.workers.gate.is_closing() {
            self.0.note_progress();
        }
    }
}

/// Tables that no edit has taken over. They are removed if the ingestion fails.
struct UninstalledIngestion<'a> {
    database: &'a Database,
    numbers: Vec<FileNumber>,
}

impl Drop for UninstalledIngestion<'_> {
    fn drop(&mut self) {
        self.database.cleanup.unlink_tables(&self.numbers);
    }
}

/// Adds tables, which are durable with their names, to a tree. `bounds`: the first and the last key
/// in them.
fn add(
    database: &Database,
    tree: &Arc<Tree>,
    bounds: (&[u8], &[u8]),
    files: Vec<File>,
) -> Result<()> {
    let numbers = files.iter().map(|file| file.number).collect();
    let mut loose = UninstalledIngestion { database, numbers };
    pay(database, tree, &files)?;
    let _one = lock_when_level0_has_room(database, tree, &files)?;
    let mut held = None;
    for tries in 1.. {
        // Given back after the lock of the manifest.
        let places = Places::reserve(database, tree, &files);
        let mut catalog = database.catalog.lock_to_change()?;
        let added = database.pipeline.ingest(tree, bounds, |seq| {
            let Some(before) = catalog.version(tree.id) else {
                return Err(dropped(&tree.name));
            };
            let edit = ingestion::edit(before, &places.files, seq)?;
            let levels: Vec<(u32, u64)> = edit.added.iter().map(|a| (a.0, a.2.bytes)).collect();
            let log_number = catalog.state().log_number;
            let mut fields = vec![Field::LastSeq(seq)];
            fields.extend(database.pipeline.segments.log_synced(log_number));
            // From here on they may be in the manifest, even if the install fails.
            loose.numbers.clear();
            let edit = TreeEdit { tree, edit, flushed: None };
            let installed = catalog.install(fields, vec![edit], || ());
            installed.map_err(|error| outcome_unknown(error, UNSEEN))?;
            database.pipeline.observers.installed_ingestion();
            levels.iter().for_each(|&(level, bytes)| {
                database.counters.merged(level, MergeInput::default(), bytes);
            });
            Ok(())
        })?;
        if added.is_some() {
            // The ingestion is complete. A failure here turns writing off, and the next writer gets
            // the error.
            let _ = catalog.roll_if_wanted(&database.pipeline.trees());
            return Ok(());
        }
        drop(catalog);
        drop(places);
        if tries > FREE_TRIES {
            held.get_or_insert_with(|| HeldWriters::new(database));
        }
        database.pipeline.flush_tree_unless_closing(tree)?;
    }
    unreachable!("there are always more tries")
}

/// Waits for the bytes that go to level 0 as writers do, in proportion to the debt of merges.
fn pay(database: &Database, tree: &Tree, files: &[File]) -> Result<()> {
    let mut left = level0_bytes(tree, files);
    while left > 0 {
        database.write_state.check()?;
        database.workers.check_open()?;
        let step = left.min(PAID_BYTES);
        database.pipeline.pay(step as usize);
        left -= step;
    }
    Ok(())
}

/// The lock under which ingestions are added one by one. It waits until level 0 is not so deep that
/// writers have to wait, or none of the tables goes there. Both are checked under the lock: each
/// ingestion sees the depth that the one before has left.
fn lock_when_level0_has_room<'a>(
    database: &'a Database,
    tree: &Tree,
    files: &[File],
) -> Result<MutexGuard<'a, ()>> {
    let Database { host, pipeline, workers, .. } = database;
    loop {
        let one = database.checkpointing.lock();
        if !pipeline.pace.is_stopped() || level0_bytes(tree, files) == 0 {
            return Ok(one);
        }
        drop(one);
        let is_over = || !pipeline.pace.is_stopped() || workers.gate.is_closing();
        host.pause(PauseReason::Level0Deep, is_over);
        host.write_state.check()?;
        workers.check_open()?;
    }
}

/// Bytes of the tables that would go to level 0 now.
fn level0_bytes(tree: &Tree, files: &[File]) -> u64 {
    let (policy, sizes) = (tree.policy.load_full(), tree.sizes.load_full());
    let work = tree.work.lock();
    let version = tree.version();
    let deepest = ingestion::deepest_level(&policy, &version, &sizes, bytes_of(files));
    let is_met = |file: &&File| ingestion::level_for(&version, &work.busy, file, deepest) == 0;
    files.iter().filter(is_met).map(|file| file.bytes).sum()
}

fn bytes_of(files: &[File]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

/// New writers wait for as long as this lives.
struct HeldWriters<'a>(&'a Database);

impl<'a> HeldWriters<'a> {
    fn new(database: &'a Database) -> HeldWriters<'a> {
        database.pipeline.pace.hold();
        HeldWriters(database)
    }
}

impl Drop for HeldWriters<'_> {
    fn drop(&mut self) {
        self.0.pipeline.pace.let_go();
        self.0.note_progress();
    }
}

/// The places that are reserved for tables, until this is dropped.
struct Places<'a> {
    database: &'a Database,
    tree: &'a Arc<Tree>,
    /// Each file with its level.
    files: Vec<(u32, File)>,
}

impl<'a> Places<'a> {
    fn reserve(database: &'a Database, tree: &'a Arc<Tree>, files: &[File]) -> Places<'a> {
        let (policy, sizes) = (tree.policy.load_full(), tree.sizes.load_full());
        let bytes = bytes_of(files);
        let mut work = tree.work.lock();
        let version = tree.version();
        let deepest = ingestion::deepest_level(&policy, &version, &sizes, bytes);
        let place = |file: &File| {
            let level = ingestion::level_for(&version, &work.busy, file, deepest);
            if level > 0 {
                work.busy.reserve(file, level);
            }
            (level, file.clone())
        };
        let files = files.iter().map(place).collect();
        drop(work);
        Places { database, tree, files }
    }
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        let mut work = self.tree.work.lock();
        let reserved = self.files.iter().filter(|(level, _)| *level > 0);
        reserved.for_each(|(_, file)| work.busy.give_back(file.number));
        drop(work);
        self.database.jobs.note_due(self.tree);
        self.database.workers.kick(Kick::MayBeDue);
        self.database.note_progress();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::{Db, ErrorKind, Options};
    use std::sync::atomic::{AtomicU32, Ordering};
    use windrow_env::jobs::{Jobs, Urgency};
    use windrow_env::testing::{Handles, env};

    const STOP: u32 = 8;

    fn open() -> (Db, Handles) {
        let (env, handles) = env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        let settings = [("level0_slowdown_files", "4"), ("level0_stop_files", "8")];
        for (name, value) in settings {
            options.settings.set(name, value).unwrap();
        }
        (Db::open_with("db", options).unwrap(), handles)
    }

    fn depth(db: &Db) -> u32 {
        let version = db.default_keyspace().tree.version();
        version.level(0).map_or(0, |level| level.sst_log_depth())
    }

    fn ingest(db: &Db, round: u32) {
        let mut ingest = db.ingest().unwrap();
        (0..100).for_each(|n| ingest.put(format!("key{n:04}"), round.to_le_bytes()).unwrap());
        ingest.finish().unwrap();
    }

    /// Merges run only on threads that wait for them.
    #[test]
    fn ingestions_of_the_same_keys_wait_for_merges() {
        let (db, _handles) = open();
        let mut deepest = 0;
        for round in 0..200 {
            ingest(&db, round);
            deepest = deepest.max(depth(&db));
        }
        // An ingestion is let in as long as level 0 has less.
        assert_eq!(deepest, STOP, "level 0 became {deepest} deep");
        assert_eq!(db.get("key0099").unwrap().as_deref(), Some(&199u32.to_le_bytes()[..]));
        db.close().unwrap();
    }

    /// In any interleaving of two, each sees the depth that the other has left.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "ingestions side by side")]
    fn ingestions_side_by_side_do_not_go_deeper_together() {
        let (db, _handles) = open();
        let deepest = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..100 {
                        ingest(&db, round);
                        deepest.fetch_max(depth(&db), Ordering::Relaxed);
                    }
                });
            }
        });
        let deepest = deepest.into_inner();
        assert!(deepest <= STOP, "level 0 became {deepest} deep");
        db.close().unwrap();
    }

    /// A table that overlaps nothing goes below, and waits for nothing.
    #[test]
    fn an_ingestion_past_level_0_does_not_wait_for_it() {
        let (db, handles) = open();
        for round in 0.. {
            if db.database().pipeline.pace.is_stopped() {
                break;
            }
            ingest(&db, round);
        }
        let before = (depth(&db), handles.jobs.steps());
        let mut beyond = db.ingest().unwrap();
        beyond.put("z", "1").unwrap();
        beyond.finish().unwrap();
        assert_eq!((depth(&db), handles.jobs.steps()), before, "it has waited");
        ingest(&db, 1);
        assert!(depth(&db) <= STOP);
        db.close().unwrap();
    }

    /// A close waits for the ingestion, which waits for a flush that does not begin any more.
    #[test]
    fn an_ingestion_that_waits_for_a_flush_gives_up_where_the_database_is_closed() {
        let (db, handles) = Db::in_memory();
        db.put("a", "1").unwrap();
        let mut ingest = db.ingest().unwrap();
        ingest.put("b", "2").unwrap();
        // The flush waits, as for a checkpoint, until the gate is shut.
        let database = db.handle().clone();
        database.jobs.flush_through.store(0, Ordering::Release);
        let shut = database.clone();
        let shut = move || {
            shut.workers.gate.close();
        };
        handles.jobs.submit(Urgency::High, Box::new(shut));
        assert_eq!(ingest.finish().unwrap_err().kind(), ErrorKind::Closed);
    }
}
