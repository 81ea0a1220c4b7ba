//! A keyspace's handle: reads, writes, and upkeep of one tree.
//!
//! Owns: references to the tree and its database, and nothing else. Never does: keep the keyspace
//! from being dropped. The handle then gives `Closed`, but for the state that earlier snapshots
//! see.

use crate::ingest::Ingest;
use crate::key_range::{self, KeyRange};
use crate::read_options::ReadOptions;
use crate::snapshot::Snapshot;
use crate::ttl::Ttl;
use std::cell::RefCell;
use std::ops::Bound;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;
use windrow_base::{KeyspaceId, Result, SeqNo};
use windrow_read::options::{KeyspaceSettings, WriteSync};
use windrow_read::read::cursor::{Cursor, Iter};
use windrow_read::read::scan::Scan;
use windrow_read::read::scan_options::ScanOptions;
use windrow_read::read::view::ReadView;
use windrow_read::read::{self, Latest};
use windrow_read::slice::Slice;
use windrow_recover::handle::Handle;
use windrow_store::jobs::compact;
use windrow_store::tree::Tree;
use windrow_store::write::batch::{Batch, InKeyspace};

thread_local! {
    /// The buffer of single writes: their encoding allocates nothing.
    static SINGLE: RefCell<Batch> = RefCell::new(Batch::new());
}

/// Batches larger than this give their memory back after a single write.
const SINGLE_BYTES_KEPT: usize = 64 << 10;

/// An ordered map from keys to values within a database, with its own tree.
///
/// Cheap to clone, `Send` and `Sync`. Keys are at most 65,535 bytes, values at
/// most 1 GiB. Keeps the database open, as a clone of [`crate::Db`] does.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// let (users, cities) = (db.keyspace("users")?, db.keyspace("cities")?);
/// users.put("ada", "London")?;
/// // The same key of another keyspace is another entry.
/// cities.put("ada", "Oklahoma")?;
/// assert_eq!(users.get("ada")?.as_deref(), Some(&b"London"[..]));
/// assert_eq!(db.keyspaces(), ["default", "users", "cities"]);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) database: Handle,
    pub(crate) tree: Arc<Tree>,
    /// How durable writes through this handle are, unless a call says so itself.
    pub(crate) sync: WriteSync,
}

// State that a panic of another thread may leave half done is behind locks. The next thread that
// takes the lock completes it, or reports it as broken.
impl UnwindSafe for Keyspace {}
impl RefUnwindSafe for Keyspace {}

impl Drop for Keyspace {
    fn drop(&mut self) {
        if !self.database.write_state.is_of_this_process() {
            // As the handle does: a dropped keyspace's files are the parent's to remove.
            std::mem::forget(self.tree.clone());
        }
    }
}

/// The values that a read at one moment needs.
struct ReadMoment {
    view: Arc<ReadView>,
    seq: SeqNo,
    now_ms: u64,
}

impl Keyspace {
    pub(crate) fn new(database: Handle, tree: Arc<Tree>) -> Keyspace {
        Keyspace { database, tree, sync: WriteSync::No }
    }

    /// A handle whose writes are on the device when they return: all calls that take no
    /// [`WriteSync`] themselves, those that read first ([`Keyspace::update`],
    /// [`Keyspace::pop_first`]) among them. Where such a call writes nothing, it waits for nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let seen = db.keyspace("seen")?; // its writes survive the death of the process
    /// let orders = db.keyspace("orders")?.synced(); // and these the loss of power
    /// orders.put_if_absent("17", "paid")?;
    /// orders.delete_range("10", "15")?;
    /// seen.put("17", "")?;
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn synced(&self) -> Keyspace {
        self.over(self.tree.clone(), WriteSync::Yes)
    }

    /// A handle of a keyspace of the same database.
    pub(crate) fn over(&self, tree: Arc<Tree>, sync: WriteSync) -> Keyspace {
        Keyspace { database: self.database.clone(), tree, sync }
    }

    /// Whether a keyspace may have this name: for programs that ask before they make a database.
    ///
    /// # Errors
    /// `InvalidArgument` that says why not.
    pub fn check_name(name: &str) -> Result<()> {
        windrow_recover::keyspace_changes::check_name(name)
    }

    /// The keyspace's name.
    pub fn name(&self) -> &str {
        &self.tree.name
    }

    /// The keyspace's id, which no other keyspace ever gets.
    pub fn id(&self) -> KeyspaceId {
        self.tree.id
    }

    fn check(&self) -> Result<()> {
        self.database.write_state.check_read()?;
        self.check_not_dropped()
    }

    fn check_not_dropped(&self) -> Result<()> {
        if self.tree.is_dropped() {
            return Err(self.tree.gone());
        }
        Ok(())
    }

    /// Whether a read may begin. A read of a snapshot may begin also when the database was closed,
    /// or the keyspace dropped, since.
    fn check_at(&self, snapshot: Option<&Snapshot>) -> Result<()> {
        let Some(snapshot) = snapshot else {
            return self.check();
        };
        snapshot.check_of(&self.database)?;
        if self.tree.is_seen_by(snapshot.inner.id) { Ok(()) } else { self.check_not_dropped() }
    }

    // ---- reading

    /// The value of `key`, `None` if it is absent, deleted or expired. The
    /// slice points into the cached block and keeps it alive.
    ///
    /// # Errors
    /// `Corruption` naming file and offset of a damaged block; `Io`; `Closed`; `MergeRefused` where
    /// the merge operator does not accept the value that it must apply to.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.check()?;
        // The view first, then the sequence number: see `write/queue.rs`.
        let (view, seq) =
            self.database.pipeline.at(|| self.tree.view(), |view, visible| view.seq_at(visible));
        let value =
            read::get::get(&self.tree.reads, &view, key.as_ref(), seq, || self.database.now_ms());
        value.inspect_err(|error| self.note(error))
    }

    /// Whether `key` is there, even with a value that the merge operator does not accept.
    ///
    /// # Errors
    /// As [`Keyspace::get`], but for `MergeRefused`.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        read::is_there(self.get(key))
    }

    /// How long `key` remains if nobody writes it. For a merged value: until the first of its parts
    /// expires.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Ttl> {
        let mut cursor = self.cursor(ReadOptions::default());
        let order = &self.tree.reads.order;
        if !cursor.seek(&key)? || order.compare(cursor.key(), key.as_ref()).is_ne() {
            return Ok(Ttl::NoKey);
        }
        Ok(match cursor.expiry_ms() {
            None => Ttl::Forever,
            Some(at_ms) => {
                Ttl::Left(Duration::from_millis(at_ms.saturating_sub(self.database.now_ms())))
            }
        })
    }

    /// Whether no key is there.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn is_empty(&self) -> Result<bool> {
        self.iter().keys().next().transpose().map(|key| key.is_none())
    }

    /// The first key and its value.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The last key and its value.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// The number of keys in a range: counted one by one, past the block cache.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// for name in ["ada", "alan", "grace"] {
    ///     db.put(name, "")?;
    /// }
    /// assert_eq!(db.count(..)?, 3);
    /// assert_eq!(db.count("a".."b")?, 2);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn count(&self, range: impl KeyRange) -> Result<u64> {
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut keys = self.scan_range(options, &range).keys();
        keys.try_fold(0, |count, key| key.map(|_| count + 1))
    }

    /// About how many keys there are, from the metadata of tables and memtables: nothing is read.
    /// It is exact once everything has been merged and if no key has expired. Before that a key
    /// counts as often as it was put, and a tombstone takes one away. Keys that range tombstones
    /// hide count.
    ///
    /// # Errors
    /// `Closed`.
    pub fn approximate_len(&self) -> Result<u64> {
        self.check()?;
        Ok(windrow_recover::measure::approximate_len(&self.tree))
    }

    /// The value of `key` as a snapshot sees it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let users = db.keyspace("users")?;
    /// users.put("ada", "London")?;
    /// let then = db.snapshot();
    /// users.put("ada", "Paris")?;
    /// assert_eq!(users.get_at(&then, "ada")?.as_deref(), Some(&b"London"[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `InvalidArgument` if the snapshot is of another
    /// database, or of another time that this one was open.
    pub fn get_at(&self, snapshot: &Snapshot, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.check_at(Some(snapshot))?;
        let view = self.tree.view();
        let inner = &snapshot.inner;
        let value =
            read::get::get(&self.tree.reads, &view, key.as_ref(), inner.seq, || inner.now_ms);
        value.inspect_err(|error| self.note(error))
    }

    /// The values of many keys, in their order, all of one moment. Cold blocks
    /// are read together.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let values: Vec<_> = db.multi_get(&["a", "b", "c"]).into_iter().collect::<Result<_, _>>()?;
    /// let found: Vec<bool> = values.iter().map(Option::is_some).collect();
    /// assert_eq!(found, [true, false, true]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Slice>>> {
        self.multi_get_in(keys, None)
    }

    /// The values of many keys as a snapshot sees them. Errors are those of
    /// [`Keyspace::get_at`].
    pub fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        snapshot: &Snapshot,
        keys: &[K],
    ) -> Vec<Result<Option<Slice>>> {
        self.multi_get_in(keys, Some(snapshot))
    }

    fn multi_get_in<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<Slice>>> {
        if let Err(error) = self.check_at(snapshot) {
            return keys.iter().map(|_| Err(error.clone())).collect();
        }
        let ReadMoment { view, seq, now_ms } = self.moment(snapshot);
        let values = read::multi_get::multi_get(&self.tree.reads, &view, keys, seq, || now_ms);
        values.iter().filter_map(|value| value.as_ref().err()).for_each(|error| self.note(error));
        values
    }

    /// Searches the memtables for many keys at once, for calls that read or write each of them soon:
    /// they find what they pass in the processor's caches. Reads no table, and keeps nothing.
    pub fn prefetch<K: AsRef<[u8]>>(&self, keys: &[K]) {
        if self.check().is_ok() {
            read::multi_get::prefetch(&self.tree.view(), keys);
        }
    }

    /// Tells the listener of damage that a read found.
    #[cold]
    fn note(&self, error: &windrow_base::Error) {
        if error.is_corruption() {
            let found = || windrow_read::events::Event::CorruptionFound { error: error.clone() };
            self.database.events.send_with(found);
        }
    }

    fn moment(&self, snapshot: Option<&Snapshot>) -> ReadMoment {
        match snapshot {
            Some(snapshot) => {
                let view = self.tree.pin();
                ReadMoment { view, seq: snapshot.inner.seq, now_ms: snapshot.inner.now_ms }
            }
            None => {
                let (view, seq) = self
                    .database
                    .pipeline
                    .at(|| self.tree.pin(), |view, visible| view.seq_at(visible));
                ReadMoment { view, seq, now_ms: self.database.now_ms() }
            }
        }
    }

    /// All entries, in key order from either end.
    pub fn iter(&self) -> Iter {
        self.scan(ReadOptions::default(), None)
    }

    /// The entries of a range of keys.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// for item in db.range("a".."n").rev() {
    ///     let (key, value) = item?;
    ///     println!("{key:?} {value:?}");
    /// }
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Iter {
        self.scan_range(ReadOptions::default(), &range)
    }

    /// The entries of a range of keys, as a snapshot sees them.
    pub fn range_at(&self, snapshot: &Snapshot, range: impl KeyRange) -> Iter {
        let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        self.scan_range(options, &range)
    }

    /// All entries, as a snapshot sees them.
    pub fn iter_at(&self, snapshot: &Snapshot) -> Iter {
        self.range_at(snapshot, ..)
    }

    /// The entries whose keys start with `prefix`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// for key in ["user/ada", "user/grace", "word/ada"] {
    ///     db.put(key, "")?;
    /// }
    /// assert_eq!(db.prefix("user/").count(), 2);
    /// let last = db.prefix("user/").next_back().transpose()?.expect("there are two");
    /// assert_eq!(last.0, "user/grace");
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.scan(ReadOptions::default(), Some(prefix.as_ref()))
    }

    /// The entries whose keys start with `prefix`, as a snapshot sees them.
    pub fn prefix_at(&self, snapshot: &Snapshot, prefix: impl AsRef<[u8]>) -> Iter {
        let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        self.scan(options, Some(prefix.as_ref()))
    }

    /// The entries that `options` asks for. If they ask for a snapshot of another open database,
    /// the iterator gives `InvalidArgument` only.
    pub fn iter_with(&self, options: ReadOptions) -> Iter {
        self.scan(options, None)
    }

    fn scan(&self, options: ReadOptions, prefix: Option<&[u8]>) -> Iter {
        let scan = self.scan_options(&options, prefix);
        self.iter_over(options, scan)
    }

    fn scan_range(&self, options: ReadOptions, range: &impl KeyRange) -> Iter {
        let (lower, upper) = key_range::owned(range);
        let (lower_after, upper_after) =
            (matches!(lower, Bound::Excluded(_)), matches!(upper, Bound::Included(_)));
        let key = |bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let scan = ScanOptions {
            lower: key(lower),
            lower_after,
            upper: key(upper),
            upper_after,
            ..self.scan_options(&options, None)
        };
        self.iter_over(options, scan)
    }

    fn iter_over(&self, mut options: ReadOptions, scan: ScanOptions) -> Iter {
        // While memory is short an iterator must be able to release its view: the snapshot keeps
        // the entries that it reads.
        if options.snapshot.is_none()
            && self.database.caches.blocks.is_crowded()
            && self.database.write_state.is_of_this_process()
        {
            options.snapshot = Some(Snapshot::take(&self.database));
        }
        let ReadMoment { view, seq, now_ms } = self.moment(options.snapshot.as_ref());
        let latest = self.latest(&options);
        let iter = Iter::new(self.tree.reads.clone(), view, seq, now_ms, scan, latest);
        iter.failing(self.check_at(options.snapshot.as_ref()).err())
    }

    fn scan_options(&self, options: &ReadOptions, prefix: Option<&[u8]>) -> ScanOptions {
        let scan = options.scan(self.database.settings.readahead_bytes);
        match prefix {
            Some(prefix) => scan.with_prefix(prefix),
            None => scan,
        }
    }

    fn latest(&self, options: &ReadOptions) -> Arc<dyn Latest> {
        Arc::new(LatestOf { keyspace: self.clone(), snapshot: options.snapshot.clone() })
    }

    /// A cursor, at no entry yet.
    pub fn cursor(&self, options: ReadOptions) -> Cursor {
        let ReadMoment { view, seq, now_ms } = self.moment(options.snapshot.as_ref());
        let scan = self.scan_options(&options, None);
        let mut scan = Scan::new(self.tree.reads.clone(), view, seq, now_ms, scan);
        scan.fail_with(self.check_at(options.snapshot.as_ref()).err());
        Cursor::new(scan, self.latest(&options))
    }

    /// A cursor over what a snapshot sees.
    pub fn cursor_at(&self, snapshot: &Snapshot) -> Cursor {
        let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        self.cursor(options)
    }

    // ---- writing

    /// Sets `key` to `value`. It survives the death of the process, but not of the machine: see
    /// [`Keyspace::put_with`] and [`Keyspace::synced`].
    ///
    /// # Errors
    /// `InvalidArgument` for a broken limit; `NoSpace`, `Io`; `ReadOnly` after a failed write;
    /// `Closed`: nothing was written then, and never will be. `OutcomeUnknown` if writing to the
    /// log, or syncing it, failed: look whether the write is there before you try again.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, self.sync)
    }

    /// Sets `key` to `value`, as durably as `sync` asks.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.put_with("order/17", "paid", windrow::WriteSync::Yes)?;
    /// // From here on it survives the loss of power, and so does all that was written before.
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        sync: WriteSync,
    ) -> Result<()> {
        self.single(sync, |batch| batch.put(self, key, value))
    }

    /// Sets `key` to `value` until `ttl` has passed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use std::time::Duration;
    /// db.put_with_ttl("session/7", "ada", Duration::from_secs(3600))?;
    /// db.put_with_ttl("session/8", "grace", Duration::ZERO)?;
    /// assert!(db.contains_key("session/7")?);
    /// assert!(!db.contains_key("session/8")?);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn put_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.single(self.sync, |batch| batch.put_with_ttl(self, key, value, ttl))
    }

    /// Removes `key`, which need not exist.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single(self.sync, |batch| batch.delete(self, key))
    }

    /// Removes `key`, as durably as `sync` asks.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, sync: WriteSync) -> Result<()> {
        self.single(sync, |batch| batch.delete(self, key))
    }

    /// Removes a key that was put once: see [`Batch::single_delete`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single(self.sync, |batch| batch.single_delete(self, key))
    }

    /// Adds an operand for the merge operator.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use windrow::KeyspaceOptions;
    /// let counters = KeyspaceOptions { merge_operator: Some("add".into()), ..Default::default() };
    /// let hits = db.keyspace_with("hits", counters)?;
    /// for _ in 0..3 {
    ///     hits.merge("/index", 1i64.to_le_bytes())?; // reads nothing, conflicts with nobody
    /// }
    /// assert_eq!(hits.get("/index")?.as_deref(), Some(&3i64.to_le_bytes()[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `InvalidArgument` if the keyspace has no operator, it
    /// is not registered, or it does not accept the operand.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.single(self.sync, |batch| batch.merge(self, key, operand))
    }

    /// Adds an operand for the merge operator until `ttl` has passed: see [`Batch::merge_with_ttl`].
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    pub fn merge_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.single(self.sync, |batch| batch.merge_with_ttl(self, key, operand, ttl))
    }

    /// Removes every key in `from..to` (the end is exclusive), at the cost of one small write
    /// regardless of the number of keys.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// for day in 1..=31u8 {
    ///     db.put([day], "")?;
    /// }
    /// db.delete_range([1], [15])?;
    /// assert_eq!(db.first()?.expect("half of it is left").0, [15]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.single(self.sync, |batch| batch.delete_range(self, from, to))
    }

    /// Writes one operation, in the thread's own buffer.
    fn single(&self, sync: WriteSync, fill: impl FnOnce(&mut Batch)) -> Result<()> {
        SINGLE.with(|cell| {
            // A listener may write from within a write: it gets its own buffer.
            let Ok(mut batch) = cell.try_borrow_mut() else {
                let mut batch = Batch::new();
                fill(&mut batch);
                return self.database.pipeline.write_batch(&mut batch, sync).map(|_| ());
            };
            batch.clear();
            fill(&mut batch);
            let written = self.database.pipeline.write_batch(&mut batch, sync).map(|_| ());
            if batch.byte_len() > SINGLE_BYTES_KEPT {
                *batch = Batch::new();
            }
            written
        })
    }

    // ---- upkeep

    /// About how many bytes of tables and memtables the keys in `from..to` take.
    ///
    /// # Errors
    /// `Corruption`, `Io` from a table that must be opened.
    pub fn approximate_bytes(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<u64> {
        self.check()?;
        windrow_recover::measure::approximate_bytes(&self.tree, from.as_ref(), to.as_ref())
    }

    /// Takes sorted entries, and adds them at once when it is finished: far faster than puts, since
    /// they go straight to tables. They replace the values that the keys have then; earlier
    /// snapshots do not see them. Compaction filters see them like any other entries. It keeps the
    /// database open, as the keyspace does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let mut ingest = db.ingest()?;
    /// for n in 0..1000 {
    ///     ingest.put(format!("key{n:04}"), "value")?;
    /// }
    /// assert!(db.is_empty()?);
    /// ingest.finish()?;
    /// assert_eq!(db.get("key0007")?.as_deref(), Some(&b"value"[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly`; `Closed`.
    pub fn ingest(&self) -> Result<Ingest> {
        self.check()?;
        Ingest::new(self.database.clone(), self.tree.clone())
    }

    /// Writes the memtables to tables, and waits until that is done.
    ///
    /// # Errors
    /// The error of the file system; `ReadOnly`; `Closed`.
    pub fn flush(&self) -> Result<()> {
        self.check()?;
        self.database.pipeline.flush_tree(&self.tree)
    }

    /// Gives the keyspace another policy: a preset's name, or one value per axis, as the setting
    /// `preset` takes it. It takes effect with the next decision, and merges in the background
    /// bring the tree into its new shape. It holds until the database is closed: the next open uses
    /// the setting. Memtables keep their size.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let archive = db.keyspace("archive")?;
    /// archive.set_policy("leveled filters=monkey(bits=8)")?;
    /// println!("{}", archive.policy());
    /// assert!(archive.set_policy("level").unwrap_err().message().contains("leveled"));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` that lists what is valid; `ReadOnly`; `Closed`.
    pub fn set_policy(&self, policy: &str) -> Result<()> {
        self.check()?;
        self.database.set_policy(&self.tree, policy)
    }

    /// Stores settings of its own with the keyspace, in place of its former ones, and applies them
    /// now and at every later open. [`Keyspace::set_policy`] lasts only until the close.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use windrow::settings::KeyspaceSettings;
    /// let archive = db.keyspace("archive")?;
    /// let before = archive.settings();
    /// archive.configure(KeyspaceSettings { policy: Some("leveled".into()), ..before })?;
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` that lists everything wrong with them; `ReadOnly`; `Closed`; `Io`,
    /// `NoSpace`.
    pub fn configure(&self, settings: KeyspaceSettings) -> Result<()> {
        self.check()?;
        self.database.configure(&self.tree, settings)
    }

    /// The settings that the keyspace has of its own.
    pub fn settings(&self) -> KeyspaceSettings {
        self.tree.settings()
    }

    /// The policy in full, one value per axis.
    pub fn policy(&self) -> String {
        self.tree.policy.load().to_string()
    }

    /// Merges everything in the range down to the last level. Tombstones, shadowed and expired
    /// entries in it give their space back, unless a snapshot needs them. Whole tables are merged,
    /// and so the keys next to the range with it.
    ///
    /// # Errors
    /// As [`Keyspace::flush`]; `Corruption` from a damaged input.
    pub fn compact_range(&self, range: impl KeyRange) -> Result<()> {
        self.check()?;
        let end = |bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let (from, to) = range.key_bounds();
        compact::compact(&self.database.scheduler, &self.tree, end(from), end(to))
    }

    /// Merges the whole keyspace down to the last level: [`Keyspace::compact_range`] of `..`.
    ///
    /// # Errors
    /// As there.
    pub fn compact(&self) -> Result<()> {
        self.compact_range(..)
    }
}

/// The source of the newest state, or of their snapshot's, for a keyspace's cursors.
struct LatestOf {
    keyspace: Keyspace,
    snapshot: Option<Snapshot>,
}

impl Latest for LatestOf {
    fn latest(&self) -> Result<(Arc<ReadView>, SeqNo, u64)> {
        self.keyspace.check_at(self.snapshot.as_ref())?;
        let ReadMoment { view, seq, now_ms } = self.keyspace.moment(self.snapshot.as_ref());
        Ok((view, seq, now_ms))
    }

    /// It works for a dropped keyspace too: nothing leaves its last view.
    fn later_view(&self) -> Option<Arc<ReadView>> {
        self.snapshot.is_some().then(|| self.keyspace.tree.pin())
    }
}

impl InKeyspace for Keyspace {
    fn keyspace_id(&self) -> KeyspaceId {
        self.tree.id
    }

    fn now_ms(&self) -> u64 {
        self.database.now_ms()
    }

    fn database_id(&self) -> u64 {
        self.database.instance_id
    }

    #[inline]
    fn default_ttl(&self) -> Option<Duration> {
        self.tree.ttl()
    }
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keyspace({}, id {})", self.name(), self.id())
    }
}
