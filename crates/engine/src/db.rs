//! The database's handle: its calls act on the database as a whole. Those of its default keyspace
//! are in `keyspace.rs`, and [`Db`] derefs to it. The handle that keeps a database open is in
//! `recover/src/handle.rs`.
//!
//! A call of one keyspace is written once, on [`Keyspace`]. Rejected: forwarding methods, which were
//! 33 copies without docs of their own; a trait, which every user would have to import; a macro,
//! which would write the copies all the same. A `Db` is its default keyspace and nothing else, so the
//! deref clones nothing and takes no lock.
//!
//! Owns: the calls of [`Db`]. Never does: read or write a single keyspace, or the work behind a call;
//! modules and lower crates do.

use crate::backup::{self, BackedUp, BackupOptions, BackupTarget};
use crate::changes::{self, ChangeOptions, Changes};
use crate::checkpoint;
use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use std::borrow::BorrowMut;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use windrow_base::{Error, ErrorKind, KeyspaceId, Result, SeqNo};
use windrow_env::Env;
use windrow_env::fs::FileLock;
use windrow_read::options::{KeyspaceOptions, Options, WriteSync};
use windrow_read::records_left_out::RecordsLeftOut;
use windrow_read::stats::Stats;
use windrow_recover::database::Database;
use windrow_recover::destroy::destroy;
use windrow_recover::discovery::keyspaces_left_out;
use windrow_recover::handle::Handle;
use windrow_recover::measure::stats_file::{self, RunningStats};
use windrow_recover::measure::tables_at_rest::KeyspaceAtRest;
use windrow_recover::open;
use windrow_recover::resume::resume;
use windrow_recover::stored_settings::{self, StoredKeyspace, StoredSettings};
use windrow_recover::verify::{self, VerifyReport};
use windrow_store::jobs::compact;
use windrow_store::tree::Tree;
use windrow_store::write::batch::{Batch, InKeyspace};

/// An open database.
///
/// It derefs to its default keyspace: all calls of [`Keyspace`] can be made on a `Db`, and `&db`
/// is accepted as a `&Keyspace`. They act on the default keyspace alone: [`get`](Keyspace::get) and
/// [`put`](Keyspace::put), and also [`clear`](Keyspace::clear), [`count`](Keyspace::count),
/// [`compact_range`](Keyspace::compact_range), [`policy`](Keyspace::policy) and
/// [`configure`](Keyspace::configure).
///
/// A `Db`'s own calls act on the database as a whole. Four of them have namesakes of a single
/// keyspace: [`Db::flush`], [`Db::compact`] and [`Db::set_policy`] act on all keyspaces, and
/// [`Db::synced`] returns a `Db`. (Where a trait gives `Db` a method of the same name,
/// `Keyspace::get(&db, key)` is the keyspace's.)
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use windrow::{Db, Keyspace};
///
/// fn add(fruits: &Keyspace) -> windrow::Result<()> {
///     fruits.put("apple", "red")
/// }
///
/// let db = Db::open(dir.path())?;
/// let dried = db.keyspace("dried")?;
/// add(&db)?; // into the default keyspace
/// add(&dried)?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// db.flush()?; // both keyspaces
/// db.clear()?; // the default keyspace
/// assert!(db.is_empty()? && !dried.is_empty()?);
/// db.close()?;
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// Cheap to clone, `Send`, `Sync`, `'static`. It stays open, and its directory
/// locked, for as long as any handle of it lives: a clone, a [`Keyspace`], a
/// [`Snapshot`], an [`Iter`](crate::Iter), a [`Cursor`](crate::Cursor). When the last
/// one drops, it is closed as by [`Db::close`], whose errors are then lost; `close`
/// itself closes it for all of them.
///
/// It belongs to the process that opened it. After a `fork` the child's copies
/// of all handles are inert: every call gives `Closed` or nothing at all, and
/// dropping them, `exit` and unwinding do nothing to the parent's database. A
/// child that needs the database opens it itself, once its parent has closed it
/// or has ended: a fork never keeps the directory locked. (As everything else
/// in a child of a process with several threads, that is safe only where what
/// those threads did at the moment of the fork leaves it so: prefer `exec`.)
#[derive(Clone)]
pub struct Db {
    default: Keyspace,
}

impl Db {
    /// Opens the database in a directory, or makes one there, with the
    /// default options, whatever it was opened with before (see
    /// [`Db::stored_settings`]).
    ///
    /// # Errors
    /// `Busy`, naming the pid, if another process (or handle) has it open;
    /// `Corruption`, `NotSupported`, `Io`, `NoSpace`.
    pub fn open(dir: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(dir, Options::default())
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` that lists everything wrong with the options.
    pub fn open_with(dir: impl AsRef<Path>, options: Options) -> Result<Db> {
        let given = options.default_keyspace.settings.clone();
        let opened = open::open(dir.as_ref(), options)?;
        let db = Db::of(opened.database, opened.lock)?;
        db.database().give(&db.default.tree, &given)?;
        Ok(db)
    }

    /// The first handle of an open database, whose directory is held by `lock`.
    pub(crate) fn of(database: Arc<Database>, lock: Box<dyn FileLock>) -> Result<Db> {
        let tree = database.tree(KeyspaceId::DEFAULT)?;
        let handle = Handle::new(database, lock);
        Ok(Db { default: Keyspace::new(handle, tree) })
    }

    /// The settings that the database in a directory was last opened with for
    /// writing; `None` if there is no database. Reads no more than the manifest, and writes
    /// nothing but the lease of a reader where another process has the database open
    /// ([`crate::Follower`]).
    ///
    /// An open does not look at them: it uses the settings that it is given,
    /// and stores them if it is for writing. A program that keeps the earlier
    /// choices begins with these:
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path();
    /// let mut options = windrow::Options::default();
    /// if let Some(stored) = windrow::Db::stored_settings(dir)? {
    ///     options.settings = stored.settings;
    /// }
    /// let db = windrow::Db::open_with(dir, options)?;
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corruption`, `NotSupported`, `Io`: above all where another process has it open and no
    /// lease can be made in the directory.
    pub fn stored_settings(dir: impl AsRef<Path>) -> Result<Option<StoredSettings>> {
        stored_settings::read(&Env::os(1), dir.as_ref())
    }

    /// The statistics of a database that a process has open for writing, this one or another,
    /// as that wrote them last (`stats_period_ms`); `None` if none has, or not for that long yet.
    /// After a crash they are those of the process that is gone.
    ///
    /// # Errors
    /// `Io`.
    pub fn running_stats(dir: impl AsRef<Path>) -> Result<Option<RunningStats>> {
        stats_file::read(&Env::os(1), dir.as_ref())
    }

    /// Returns the keyspaces of the database in a directory, in the order in which they were made,
    /// with the components that each needs; `None` if there is no database. Reads and writes as
    /// [`Db::stored_settings`], and needs none of these components.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path();
    /// # let db = windrow::Db::open(dir)?;
    /// db.keyspace("users")?;
    /// db.close()?;
    /// for keyspace in windrow::Db::stored_keyspaces(dir)?.expect("it was made") {
    ///     println!("{}: order {}", keyspace.name, keyspace.comparator);
    /// }
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corruption`, `NotSupported`, `Io`: above all where another process has it open and no
    /// lease can be made in the directory.
    pub fn stored_keyspaces(dir: impl AsRef<Path>) -> Result<Option<Vec<StoredKeyspace>>> {
        stored_settings::keyspaces(&Env::os(1), dir.as_ref())
    }

    /// Removes a database's files, and its directory if nothing else is in it.
    ///
    /// Files that are not Windrow's stay, whatever their names.
    ///
    /// # Errors
    /// `Busy` if it is open; `InvalidArgument`, with nothing removed, if the
    /// directory is another program's, or a link; `Io`.
    pub fn destroy(dir: impl AsRef<Path>) -> Result<()> {
        destroy(&Env::os(1), dir.as_ref())
    }

    pub(crate) fn database(&self) -> &Database {
        &self.default.database
    }

    /// Returns a new database in memory, for a test, and the handles of its environment.
    #[cfg(test)]
    pub(crate) fn in_memory() -> (Db, windrow_env::testing::Handles) {
        let (env, handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        (Db::open_with("db", options).unwrap(), handles)
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.default.database
    }

    /// Returns a handle of a keyspace, whose writes are as durable as those of this handle.
    fn over(&self, tree: Arc<Tree>) -> Keyspace {
        self.default.over(tree, self.default.sync)
    }

    /// A handle whose writes are on the device when they return: those of the default keyspace, and
    /// of all keyspaces and transactions that it gives. See [`Keyspace::synced`]. [`Db::write`] and other calls
    /// that take a [`WriteSync`] do as that says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = windrow::Db::open(dir.path())?.synced();
    /// db.put("a", "1")?;
    /// db.transact(|tx| tx.put(&db, "b", "2"))?;
    /// // Whatever happens to the machine now, both are there.
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn synced(&self) -> Db {
        Db { default: self.default.synced() }
    }

    /// Where the database lives: the path that it was opened by, from the root
    /// on. A directory that was moved since is still the database's, and open.
    pub fn path(&self) -> &Path {
        &self.database().dir
    }

    /// Gives all keyspaces another policy: see [`Keyspace::set_policy`], which gives one to a
    /// single keyspace. Keyspaces that are made afterwards have it too.
    ///
    /// # Errors
    /// As there.
    pub fn set_policy(&self, policy: &str) -> Result<()> {
        let trees: Vec<_> = self.database().trees().iter().cloned().collect();
        trees.iter().try_for_each(|tree| match self.database().set_policy(tree, policy) {
            // Another thread drops it: it is no longer one of the keyspaces.
            Err(error) if error.kind() == ErrorKind::Closed && tree.is_dropped() => Ok(()),
            set => set,
        })
    }

    /// Writes a batch: all of its operations or none. Returns the sequence
    /// number of its last one. Takes a [`Batch`], or `&mut` one that the caller keeps, to be
    /// cleared and filled again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use windrow::{Batch, WriteSync};
    /// let mut batch = Batch::new();
    /// for hundred in 0..3u32 {
    ///     batch.clear();
    ///     for number in 0..100u32 {
    ///         batch.put(&db, (hundred * 100 + number).to_be_bytes(), "");
    ///     }
    ///     db.write(&mut batch, WriteSync::No)?;
    /// }
    /// assert_eq!(db.count(..)?, 300);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a broken limit, a batch over a quarter of
    /// `memory_bytes` or one made for another database; else as [`Keyspace::put`].
    pub fn write(&self, mut batch: impl BorrowMut<Batch>, sync: WriteSync) -> Result<SeqNo> {
        self.database().pipeline.write_batch(batch.borrow_mut(), sync)
    }

    /// A state of all keyspaces that stays readable while it is held, also when
    /// the database is closed. One of a database that was closed before gives `Closed`.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.default.database)
    }

    /// A handle of the default keyspace, which is as durable as this one ([`Db::synced`]). Where a
    /// `&Keyspace` will do, `&db` is one.
    pub fn default_keyspace(&self) -> Keyspace {
        self.default.clone()
    }

    /// The keyspace of this name, made if it is not there. To make many see
    /// [`Db::create_keyspaces`].
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name; `ReadOnly` if it would have to be made.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, KeyspaceOptions::default())
    }

    /// The keyspace of this name, made with these options if it is not there.
    ///
    /// # Errors
    /// As [`Db::keyspace`]; `InvalidArgument` where it was made with others.
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let tree = self.database().open_or_create_keyspaces(&[name], &options)?.remove(0);
        Ok(self.over(tree))
    }

    /// The keyspaces of these names, in their order; those that are not there are
    /// made, all or none, with two syncs for all. ([`Db::keyspace`] takes two for each
    /// that it makes: one of the manifest, one of the log.)
    ///
    /// A database is meant for up to 10,000 keyspaces. One with a table that nobody
    /// writes to takes some 2 KiB of memory (each further table some 0.5 KiB), which
    /// `memory_bytes` does not cover; one that is written to takes 1.5 KiB more until
    /// its flush.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let spaces = db.create_keyspaces(&["users", "orders", "items"])?;
    /// spaces[0].put("ada", "London")?;
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::keyspace`].
    pub fn create_keyspaces(&self, names: &[&str]) -> Result<Vec<Keyspace>> {
        let options = KeyspaceOptions::default();
        let trees = self.database().open_or_create_keyspaces(names, &options)?;
        Ok(trees.into_iter().map(|tree| self.over(tree)).collect())
    }

    /// The keyspace of this name, if it is there.
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` for one that was left out ([`Db::keyspaces_left_out`]).
    pub fn open_keyspace(&self, name: &str) -> Result<Option<Keyspace>> {
        self.database().write_state.check_read()?;
        keyspaces_left_out::check(&self.database().left_out, name)?;
        let tree = self.database().pipeline.keyspaces.named(name);
        Ok(tree.map(|tree| self.over(tree)))
    }

    /// The names of all keyspaces, in the order in which they were made; those
    /// that were left out are not among them.
    pub fn keyspaces(&self) -> Vec<String> {
        self.database().trees().iter().map(|tree| tree.name.to_string()).collect()
    }

    /// Keyspaces that are there and cannot be used: a read-only open leaves out
    /// those whose comparator is not registered in
    /// [`crate::Components::comparators`]. Neither reads nor [`Db::verify`] see them; where
    /// the default keyspace is among them, every call on it says so. An open for writing
    /// refuses such a database.
    pub fn keyspaces_left_out(&self) -> Vec<StoredKeyspace> {
        self.database().left_out.iter().map(StoredKeyspace::of).collect()
    }

    /// Returns the whole batches that the open found in the write-ahead logs and did not take over:
    /// a record before them is missing or damaged, and an open recovers a prefix of the writes.
    /// None of them was synced. A power loss may leave a few, and so may the end of a process
    /// in which several threads wrote; many are a sign of damage to the log.
    ///
    /// An open for writing keeps such a log in `lost/` of the database's directory, where nothing
    /// reads it again: `windrow dump wal` prints its contents. Of more than eight logs that
    /// opens have kept there, those with the fewest batches go; and a log is kept only if twice
    /// its bytes are free on the device.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path();
    /// let db = windrow::Db::open(dir)?;
    /// for records in db.records_left_out() {
    ///     eprintln!("{records}");
    /// }
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn records_left_out(&self) -> Vec<RecordsLeftOut> {
        self.database().records_left_out.get().cloned().unwrap_or_default()
    }

    /// Removes a keyspace and all that is in it. Its name may be used again.
    ///
    /// # Errors
    /// `InvalidArgument` for the default keyspace or one that is not there. An error of the device
    /// turns writing off; [`Db::keyspaces`] then says whether the keyspace is gone.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.database().drop_keyspace(name)
    }

    /// Makes every write so far durable.
    ///
    /// # Errors
    /// The device's error, which turns writing off until the database is reopened.
    pub fn sync(&self) -> Result<()> {
        self.database().pipeline.segments.sync()
    }

    /// Writes the memtables of all keyspaces to tables, and waits until that is done.
    /// [`Keyspace::flush`] does so for one.
    ///
    /// # Errors
    /// As [`Keyspace::flush`].
    pub fn flush(&self) -> Result<()> {
        self.database().pipeline.flush_all()
    }

    /// Compacts all keyspaces: see [`Keyspace::compact_range`], which compacts one, as
    /// [`Keyspace::compact`] does.
    ///
    /// # Errors
    /// As there.
    pub fn compact(&self) -> Result<()> {
        compact::compact_all(&self.database().scheduler)
    }

    /// Waits until no flush or merge is due or running.
    ///
    /// # Errors
    /// `ReadOnly` if writing was turned off meanwhile.
    pub fn wait_idle(&self) -> Result<()> {
        self.database().scheduler.wait_idle()
    }

    /// Makes a copy of the database in a directory that is empty or not there
    /// yet. Tables are shared by hard links where the file system can; elsewhere they are copied, and
    /// each block is compared with its checksum.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// # let elsewhere = tempfile::tempdir().unwrap();
    /// # let backup = elsewhere.path().join("backup");
    /// db.put("key", "before")?;
    /// db.checkpoint(&backup)?;
    /// db.put("key", "after")?;
    /// let copy = windrow::Db::open(&backup)?;
    /// assert_eq!(copy.get("key")?.as_deref(), Some(&b"before"[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the directory holds something; `Io`, `NoSpace`; `Corruption` of a table that
    /// is copied. This database is intact whatever happens.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        checkpoint::checkpoint(self.database(), dir.as_ref())
    }

    /// Backs the database up as it is now into a place that keeps many backups: tables that are
    /// there already are not copied again. Writers go on meanwhile. See
    /// [`crate::backup::restore_backup`].
    ///
    /// # Errors
    /// `InvalidArgument` where the target has backups of another database; `Busy` while another
    /// backup or a prune goes on there; other errors of the target; `Io`, `Closed`, `ReadOnly`. The
    /// backups that the target had are whole, and so is this one if it is among them nevertheless.
    pub fn backup(&self, target: &dyn BackupTarget, options: BackupOptions) -> Result<BackedUp> {
        backup::backup(self.database(), target, options)
    }

    /// The changes from sequence number `from` on: see [`crate::changes`].
    ///
    /// # Errors
    /// `InvalidArgument` for a number that the logs do not have any more, or that lies behind the
    /// next one: the message says how to go on. `Closed`.
    pub fn changes(&self, from: SeqNo, options: ChangeOptions) -> Result<Changes> {
        changes::of_db(self.default.database.clone(), from, options)
    }

    /// Reads every table and checks every checksum, the order of keys, and
    /// that each holds what the manifest says.
    ///
    /// # Errors
    /// `Io`, `Closed`; damage is in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with_progress(|_| {})
    }

    /// As [`Db::verify`]; `progress` gets the report so far after each table and log.
    ///
    /// # Errors
    /// As there.
    pub fn verify_with_progress(
        &self,
        mut progress: impl FnMut(&VerifyReport),
    ) -> Result<VerifyReport> {
        verify::verify(self.database(), &mut progress)
    }

    /// Returns counters since the database was opened, and the size of its contents now.
    /// All zeros in a forked child.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.put("a", "1")?;
    /// let stats = db.stats();
    /// assert_eq!(stats.keyspaces[0].name, "default");
    /// println!("{stats}"); // a table; `stats.to_json()` for programs
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        windrow_recover::measure::stats(self.database())
    }

    /// Counts `bytes` that the program itself holds, such as buffers of its clients, within
    /// `memory_bytes`: the cache of blocks gives way to them, down to its least size. Each call
    /// gives the total.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.set_outside_memory(8 << 20);
    /// assert_eq!(db.stats().memory.outside_bytes, 8 << 20);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn set_outside_memory(&self, bytes: u64) {
        let database = self.database();
        // In a forked child nobody may release the cache's lock.
        if database.write_state.is_of_this_process() {
            database.caches.read_memory.set_outside(bytes);
        }
    }

    /// Returns the contents of each keyspace: entries, tombstones and sizes, in memtables and by
    /// level.
    ///
    /// Opens every table, which reads its index and properties.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.put("a", "1")?;
    /// db.flush()?;
    /// let tables = db.at_rest()?[0].tables();
    /// assert_eq!((tables.tables, tables.entries, tables.value_bytes), (1, 1, 1));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corruption` for a table whose index or properties are damaged; `Io`; `Closed`.
    pub fn at_rest(&self) -> Result<Vec<KeyspaceAtRest>> {
        windrow_recover::measure::tables_at_rest::at_rest(self.database())
    }

    /// Turns writing on again after a failure, without reopening, once its cause is
    /// gone: there is room on the device again, descriptors, memory, or the device
    /// takes writes. Everything that was acknowledged stays; a write that failed
    /// is not there, now or after a crash, except one with [`WriteSync::Yes`] whose sync
    /// alone failed: readers saw it already, and it stays. The memtables are written to
    /// tables, which takes as much room. Nothing happens where writing is on.
    ///
    /// Call it from a thread of yours: not from an [`crate::EventListener`], nor from a
    /// compaction filter, whose end it would wait for.
    ///
    /// # Errors
    /// `ReadOnly` where reopening is the only way on, or `repair` (damage, a panic),
    /// or the database was opened read-only; `Closed`. `NoSpace`, which says how
    /// much is needed, and `Io`: writing stays off then, nothing is lost, and it
    /// may be called again.
    pub fn resume(&self) -> Result<()> {
        resume(self.database())
    }

    /// The error that turned writing off, if one did.
    pub fn write_error(&self) -> Option<Error> {
        self.database().write_state.cause()
    }

    /// Flushes, makes everything durable, records a clean close, and releases
    /// the directory. All handles fail from here on; a second close is `Ok`.
    /// Iterators, cursors and snapshots that are alive stay readable; the latter
    /// through their own methods and those of handles that take a snapshot. Where the
    /// directory is opened again and merges remove a table that they had not opened,
    /// they fail with `Closed`.
    ///
    /// # Errors
    /// The error that kept the last writes from being made durable: they are then
    /// as safe as their own calls said.
    pub fn close(&self) -> Result<()> {
        self.default.database.close()
    }
}

/// The default keyspace.
impl Deref for Db {
    type Target = Keyspace;

    #[inline]
    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl InKeyspace for Db {
    fn keyspace_id(&self) -> KeyspaceId {
        KeyspaceId::DEFAULT
    }

    fn now_ms(&self) -> u64 {
        self.database().now_ms()
    }

    fn database_id(&self) -> u64 {
        self.database().instance_id
    }

    #[inline]
    fn default_ttl(&self) -> Option<Duration> {
        self.default.default_ttl()
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path: &PathBuf = &self.database().dir;
        write!(f, "Db({})", path.display())
    }
}
