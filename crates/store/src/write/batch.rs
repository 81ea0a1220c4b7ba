//! A batch: operations on any keyspaces that become visible, and durable, all or none.
//!
//! It encodes each operation once, in the form in which it goes to the log; the commit path seals
//! that buffer in place. Limits are checked as operations come in; the first one broken is reported
//! by the write.
//!
//! Owns: the encoded operations, and the counts that the commit path needs of them. Never does:
//! write them, or look whether their keyspaces exist.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};
use windrow_base::key::{KEY_BYTES_MAX, Kind, VALUE_BYTES_MAX, prefix_end};
use windrow_base::{Error, KeyspaceId, Result};
use windrow_format::batch::{BatchBuf, Op, RollbackPoint};
use windrow_read::memtable::memory_bytes_of;
use windrow_read::read::split_expiry;

/// The keyspace of an operation of a [`Batch`]: a [`Db`](struct.Db.html) (its default keyspace) or
/// a [`Keyspace`](struct.Keyspace.html).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::{Batch, InKeyspace};
/// fn put_all(batch: &mut Batch, ks: &impl InKeyspace, keys: &[&str]) {
///     keys.iter().for_each(|key| batch.put(ks, key, ""));
/// }
/// let users = db.keyspace("users")?;
/// let mut batch = Batch::new();
/// put_all(&mut batch, &db, &["a", "b"]);
/// put_all(&mut batch, &users, &["ada"]);
/// db.write(batch, windrow::WriteSync::No)?;
/// assert_eq!((db.count(..)?, users.count(..)?), (2, 1));
/// # Ok::<(), windrow::Error>(())
/// ```
pub trait InKeyspace {
    /// The keyspace's id.
    fn keyspace_id(&self) -> KeyspaceId;
    /// The database's wall clock, in ms since 1970, from which a TTL counts.
    fn now_ms(&self) -> u64;
    /// An identity of the database, so that a batch is not written to another.
    fn database_id(&self) -> u64;
    /// How long a value is kept if its put does not say; `None`: for ever.
    fn default_ttl(&self) -> Option<Duration>;
}

/// The part of a batch that concerns one keyspace.
#[derive(Clone, Copy, Debug)]
pub struct Touched {
    pub id: KeyspaceId,
    /// Memtable bytes its operations need.
    pub bytes: usize,
    /// Bytes of its keys and values.
    pub user_bytes: usize,
    /// The number of operations that remove a range.
    pub(crate) range_deletes: usize,
    /// Whether one of them is a merge operand: the keyspace needs an operator.
    pub merges: bool,
    /// Whether a prefix is removed: keys must be in bytewise order.
    pub(crate) prefixes: bool,
}

impl Touched {
    fn new(id: KeyspaceId) -> Touched {
        Touched { id, bytes: 0, user_bytes: 0, range_deletes: 0, merges: false, prefixes: false }
    }
}

/// An operation of a [`Batch`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::inspect::BatchOp;
/// let mut batch = windrow::Batch::new();
/// batch.put(&db, "a", "1");
/// batch.delete(&db, "b");
/// let deleted = |op: &BatchOp<'_>| matches!(op, BatchOp::Delete { .. });
/// assert_eq!(batch.iter().filter(|(_, op)| deleted(op)).count(), 1);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOp<'a> {
    /// [`Batch::put`].
    Put {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// [`Batch::put_with_ttl`].
    PutUntil {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// When it expires, in ms since 1970.
        expiry_ms: u64,
    },
    /// [`Batch::delete`].
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// [`Batch::single_delete`].
    SingleDelete {
        /// The key.
        key: &'a [u8],
    },
    /// [`Batch::merge`].
    Merge {
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// [`Batch::merge_with_ttl`].
    MergeUntil {
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
        /// When it expires, in ms since 1970.
        expiry_ms: u64,
    },
    /// [`Batch::delete_range`], [`Batch::delete_prefix`].
    DeleteRange {
        /// The first key.
        from: &'a [u8],
        /// The end, exclusive.
        to: &'a [u8],
    },
}

impl<'a> BatchOp<'a> {
    fn new(Op { kind, key, value, .. }: Op<'a>) -> BatchOp<'a> {
        match kind {
            Kind::Put => BatchOp::Put { key, value },
            Kind::PutExpiry => {
                let (expiry_ms, value) = split_expiry(value).expect("it was encoded here");
                BatchOp::PutUntil { key, value, expiry_ms }
            }
            Kind::Delete => BatchOp::Delete { key },
            Kind::SingleDelete => BatchOp::SingleDelete { key },
            Kind::Merge => BatchOp::Merge { key, operand: value },
            Kind::MergeExpiry => {
                let (expiry_ms, operand) = split_expiry(value).expect("it was encoded here");
                BatchOp::MergeUntil { key, operand, expiry_ms }
            }
            Kind::RangeDelete => BatchOp::DeleteRange { from: key, to: value },
            Kind::Blob | Kind::BlobExpiry => {
                unreachable!("no call of a batch adds a {kind:?}")
            }
        }
    }
}

/// Most keyspaces of a batch that are looked up one by one; a batch of more has a map.
pub const FEW: usize = 8;

/// Operations that are written together.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// let users = db.keyspace("users")?;
/// let mut batch = windrow::Batch::new();
/// batch.put(&users, "u1", "ada");
/// batch.delete(&db, "apple");
/// db.write(batch, windrow::WriteSync::Yes)?;
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Batch {
    #[doc(hidden)]
    pub buf: BatchBuf,
    #[doc(hidden)]
    pub touched: Vec<Touched>,
    /// Where each keyspace is in `touched`, once there are more than [`FEW`].
    places: HashMap<KeyspaceId, usize>,
    #[doc(hidden)]
    pub error: Option<Error>,
    #[doc(hidden)]
    pub database_id: Option<u64>,
}

/// A place in a [`Batch`] to go back to.
#[derive(Clone, Debug)]
pub struct BatchMark {
    pub buf: RollbackPoint,
    touched: Vec<Touched>,
}

impl Batch {
    /// An empty batch.
    #[inline]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Sets `key` to `value`.
    #[inline]
    pub fn put(&mut self, ks: &impl InKeyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        match ks.default_ttl() {
            None => self.push(ks, Kind::Put, key.as_ref(), value.as_ref()),
            Some(ttl) => self.put_with_ttl(ks, key, value, ttl),
        }
    }

    /// Sets `key` to `value` until `ttl` from now has passed.
    pub fn put_with_ttl(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        self.push_until(ks, Kind::PutExpiry, (key.as_ref(), value.as_ref()), ttl);
    }

    /// Sets `key` to `value` until the clock shows `at`, in milliseconds. If that time has passed,
    /// the value is hidden at once. As [`Batch::put_with_ttl`], for a moment that the caller has
    /// chosen.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use std::time::{Duration, SystemTime};
    /// use windrow::{Batch, WriteSync};
    ///
    /// let new_year_2100 = SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    /// let mut batch = Batch::new();
    /// batch.put_until(&db, "century", "21st", new_year_2100);
    /// batch.put_until(&db, "epoch", "over", SystemTime::UNIX_EPOCH);
    /// db.write(batch, WriteSync::No)?;
    /// assert!(db.contains_key("century")? && !db.contains_key("epoch")?);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn put_until(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: SystemTime,
    ) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.admit(ks, Kind::PutExpiry, key, value) {
            let since_1970 = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let expiry_ms = u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX);
            self.buf.push_expiring(Kind::PutExpiry, ks.keyspace_id(), key, value, expiry_ms);
        }
    }

    /// Removes `key`, which need not exist.
    #[inline]
    pub fn delete(&mut self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) {
        self.push(ks, Kind::Delete, key.as_ref(), &[]);
    }

    /// Removes a key that was put exactly once since its last single delete. Both entries then
    /// vanish at their first meeting, without a tombstone that is carried to the last level. The
    /// value of a key that was put more often, merged, or removed by [`Batch::delete`] is undefined
    /// afterwards: use one kind of removal for a key.
    pub fn single_delete(&mut self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) {
        self.push(ks, Kind::SingleDelete, key.as_ref(), &[]);
    }

    /// Adds an operand for the keyspace's merge operator.
    #[inline]
    pub fn merge(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) {
        self.push(ks, Kind::Merge, key.as_ref(), operand.as_ref());
    }

    /// Adds an operand for the keyspace's merge operator until `ttl` from now has passed. Then the
    /// key is as if it had been deleted at this place: its value before this operand is gone as
    /// well, and operands that came in later apply to nothing. If all operands of a key have the
    /// same TTL, its value is made of those of the time just passed:
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// use std::time::Duration;
    /// use windrow::KeyspaceOptions;
    /// let counters = KeyspaceOptions { merge_operator: Some("add".into()), ..Default::default() };
    /// let requests = db.keyspace_with("requests of the last minute", counters)?;
    /// for _ in 0..3 {
    ///     requests.merge_with_ttl("ada", 1i64.to_le_bytes(), Duration::from_secs(60))?;
    /// }
    /// assert_eq!(requests.get("ada")?.as_deref(), Some(&3i64.to_le_bytes()[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// Operands that expire are kept one by one until they do: no merge combines them, and a
    /// read applies them all.
    pub fn merge_with_ttl(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        self.push_until(ks, Kind::MergeExpiry, (key.as_ref(), operand.as_ref()), ttl);
    }

    /// Removes every key in `from..to` (the end is exclusive). Does nothing if the range is empty.
    pub fn delete_range(
        &mut self,
        ks: &impl InKeyspace,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) {
        let (from, to) = (from.as_ref(), to.as_ref());
        // It deletes nothing, in any order of keys: in the log an empty range is an ingestion.
        if from != to {
            self.push(ks, Kind::RangeDelete, from, to);
        } else if let Err(error) = check_limits(Kind::RangeDelete, from, to) {
            self.error.get_or_insert(error);
        }
    }

    /// Removes every key that starts with `prefix`, without looking for any: a
    /// [`Batch::delete_range`] that ends where the prefix does. For an empty prefix, or one of 255s
    /// alone, no key ends the range but the last possible one: these take 128 KiB. The write is
    /// refused if the keyspace is not in bytewise order, since a prefix is no range there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// db.put("user/7/name", "ada")?;
    /// db.put("user/70", "grace")?;
    /// let mut batch = windrow::Batch::new();
    /// batch.delete_prefix(&db, "user/7/");
    /// batch.put(&db, "user/7/gone", "");
    /// db.write(batch, windrow::WriteSync::No)?;
    /// let keys: Vec<windrow::Slice> = db.iter().keys().collect::<Result<_, _>>()?;
    /// assert_eq!(keys, ["user/7/gone", "user/70"]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn delete_prefix(&mut self, ks: &impl InKeyspace, prefix: impl AsRef<[u8]>) {
        let prefix = prefix.as_ref();
        match prefix_end(prefix) {
            Some(end) => self.push(ks, Kind::RangeDelete, prefix, &end),
            None => {
                let last = vec![0xff; KEY_BYTES_MAX];
                self.delete_range(ks, prefix, &last);
                self.push(ks, Kind::Delete, &last, &[]);
            }
        }
        let at = self.place_of(ks.keyspace_id());
        self.touched[at].prefixes = true;
    }

    /// The number of operations.
    #[inline]
    pub fn len(&self) -> usize {
        self.buf.count() as usize
    }

    /// Whether it has no operations.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the batch takes in the log.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.buf.byte_len()
    }

    /// Bytes that the batch will take in memtables, overhead included: more than in the log if keys
    /// and values are small. A write refuses a batch over half of `memory_bytes`.
    pub fn memory_bytes(&self) -> usize {
        self.touched.iter().map(|touched| touched.bytes).sum()
    }

    /// The operations in their order, each with its keyspace.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (KeyspaceId, BatchOp<'_>)> {
        self.buf.ops().map(|op| (op.keyspace, BatchOp::new(op)))
    }

    /// Adds the operations of another batch after those of this one.
    pub fn append(&mut self, other: &Batch) {
        if let Some(error) = &other.error {
            self.error.get_or_insert_with(|| error.clone());
        }
        let Some(database) = other.database_id else { return };
        if !self.admit_of(database, other.buf.count()) {
            return;
        }
        self.buf.append(&other.buf);
        for more in &other.touched {
            let at = self.place_of(more.id);
            let touched = &mut self.touched[at];
            touched.bytes += more.bytes;
            touched.user_bytes += more.user_bytes;
            touched.range_deletes += more.range_deletes;
            touched.merges |= more.merges;
            touched.prefixes |= more.prefixes;
        }
    }

    /// The error of the first operation that was refused, if any was. A write of the batch gives
    /// the same error.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// Forgets all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.touched.clear();
        self.places.clear();
        self.error = None;
        self.database_id = None;
    }

    /// The present end, for [`Batch::truncate_to`].
    #[doc(hidden)]
    #[inline]
    pub fn mark(&self) -> BatchMark {
        BatchMark { buf: self.buf.mark(), touched: self.touched.clone() }
    }

    /// Whether it goes as far as `mark`.
    #[doc(hidden)]
    #[inline]
    pub fn holds(&self, mark: &BatchMark) -> bool {
        self.buf.holds(mark.buf)
    }

    /// Drops the operations pushed since `mark`.
    #[doc(hidden)]
    pub fn truncate_to(&mut self, mark: BatchMark) {
        self.buf.truncate_to(mark.buf);
        self.touched = mark.touched;
        self.places.clear();
        if self.touched.len() > FEW {
            self.places.extend(self.touched.iter().map(|t| t.id).zip(0..));
        }
    }

    fn push(&mut self, ks: &impl InKeyspace, kind: Kind, key: &[u8], value: &[u8]) {
        if self.admit(ks, kind, key, value) {
            self.buf.push(kind, ks.keyspace_id(), key, value);
        }
    }

    fn push_until(
        &mut self,
        ks: &impl InKeyspace,
        kind: Kind,
        (key, value): (&[u8], &[u8]),
        ttl: Duration,
    ) {
        if self.admit(ks, kind, key, value) {
            let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            let expiry_ms = ks.now_ms().saturating_add(ttl_ms);
            self.buf.push_expiring(kind, ks.keyspace_id(), key, value, expiry_ms);
        }
    }

    /// Adds an operation as it is in the log of another database: with its own expiry or none,
    /// whatever TTL the keyspace has.
    #[doc(hidden)]
    pub fn push_as(
        &mut self,
        ks: &impl InKeyspace,
        kind: Kind,
        (key, value): (&[u8], &[u8]),
        expiry_ms: Option<u64>,
    ) {
        match expiry_ms {
            None => self.push(ks, kind, key, value),
            Some(expiry_ms) if self.admit(ks, kind, key, value) => {
                self.buf.push_expiring(kind, ks.keyspace_id(), key, value, expiry_ms);
            }
            Some(_) => {}
        }
    }

    /// Checks limits and counts what the operation will need in memory.
    fn admit(&mut self, ks: &impl InKeyspace, kind: Kind, key: &[u8], value: &[u8]) -> bool {
        if let Err(error) = check_limits(kind, key, value) {
            self.error.get_or_insert(error);
            return false;
        }
        if !self.admit_of(ks.database_id(), 1) {
            return false;
        }
        let id = ks.keyspace_id();
        let user_bytes = key.len() + value.len();
        let bytes = memory_bytes_of(kind, user_bytes);
        let range_deletes = usize::from(kind == Kind::RangeDelete);
        let at = self.place_of(id);
        let touched = &mut self.touched[at];
        touched.bytes += bytes;
        touched.user_bytes += user_bytes;
        touched.range_deletes += range_deletes;
        touched.merges |= kind.is_merge();
        true
    }

    /// Checks that `count` operations for a database may come in.
    fn admit_of(&mut self, database: u64, count: u32) -> bool {
        if self.buf.count().checked_add(count).is_none() {
            let error = Error::invalid("a batch holds 4,294,967,295 operations at most: split it");
            self.error.get_or_insert(error);
            return false;
        }
        if *self.database_id.get_or_insert(database) != database {
            let error = Error::invalid("a batch holds operations for two databases: split it");
            self.error.get_or_insert(error);
            return false;
        }
        true
    }

    /// Returns the keyspace's place in `touched`; adds it if it has none.
    fn place_of(&mut self, id: KeyspaceId) -> usize {
        let count = self.touched.len();
        let found = match count <= FEW {
            true => self.touched.iter().position(|touched| touched.id == id),
            false => self.places.get(&id).copied(),
        };
        if let Some(at) = found {
            return at;
        }
        self.touched.push(Touched::new(id));
        match count {
            0..FEW => {}
            FEW => self.places.extend(self.touched.iter().map(|t| t.id).zip(0..)),
            _ => _ = self.places.insert(id, count),
        }
        count
    }
}

/// Checks an operation against the limits on keys and values.
///
/// # Errors
/// `InvalidArgument` that names the limit.
pub fn check_limits(kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
    let key_longest =
        if kind == Kind::RangeDelete { key.len().max(value.len()) } else { key.len() };
    if key_longest > KEY_BYTES_MAX {
        return Err(Error::invalid(format!(
            "a key of {key_longest} bytes is longer than the limit of {KEY_BYTES_MAX}"
        )));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(Error::invalid(format!(
            "a value of {} bytes is longer than the limit of {VALUE_BYTES_MAX}",
            value.len()
        )));
    }
    Ok(())
}
