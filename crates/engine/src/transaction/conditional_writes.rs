//! Writes that depend on the values of a few keys: each is a light transaction
//! (`light_transaction.rs`), tried until it commits.
//!
//! Owns: conditions, and the operations on one key that depend on its value. Never does: write if a
//! value that it read has changed.

use super::light_transaction::LightTransaction;
use super::retry::{ATTEMPTS_MAX, retry};
use crate::key_range::{self, KeyRange};
use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use std::ops::Bound;
use windrow_base::{Error, ErrorKind, KeyspaceId, Result, SeqNo};
use windrow_read::options::WriteSync;
use windrow_read::read::cursor::Iter;
use windrow_read::slice::Slice;
use windrow_recover::handle::Handle;
use windrow_store::write::batch::{Batch, InKeyspace};

/// The conditions on some keys under which [`crate::Db::write_if`] writes.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// let mut batch = windrow::Batch::new();
/// batch.put(&db, "name/ada", "7");
/// batch.put(&db, "user/7", "ada");
/// let free = windrow::Conditions::new().absent(&db, "name/ada").absent(&db, "user/7");
/// assert!(db.write_if(&mut batch, &free, windrow::WriteSync::No)?.is_some());
/// assert!(db.write_if(batch, &free, windrow::WriteSync::No)?.is_none());
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    list: Vec<Condition>,
}

#[derive(Clone, Debug)]
struct Condition {
    database_id: u64,
    keyspace: KeyspaceId,
    key: Vec<u8>,
    expected: ExpectedValue,
}

#[derive(Clone, Debug)]
enum ExpectedValue {
    Absent,
    Present,
    Value(Vec<u8>),
}

impl Conditions {
    /// No conditions: they always hold.
    pub fn new() -> Conditions {
        Conditions::default()
    }

    /// `key` has no value.
    #[must_use]
    pub fn absent(self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) -> Conditions {
        self.and(ks, key.as_ref(), ExpectedValue::Absent)
    }

    /// `key` has a value.
    #[must_use]
    pub fn present(self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) -> Conditions {
        self.and(ks, key.as_ref(), ExpectedValue::Present)
    }

    /// The value of `key` is `value`.
    #[must_use]
    pub fn equal(
        self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Conditions {
        self.and(ks, key.as_ref(), ExpectedValue::Value(value.as_ref().to_vec()))
    }

    fn and(mut self, ks: &impl InKeyspace, key: &[u8], expected: ExpectedValue) -> Conditions {
        let (database_id, keyspace) = (ks.database_id(), ks.keyspace_id());
        self.list.push(Condition { database_id, keyspace, key: key.to_vec(), expected });
        self
    }

    /// Whether all hold in a state. The keys that it looks at count as read.
    fn hold(&self, light: &mut LightTransaction<'_>) -> Result<bool> {
        for condition in &self.list {
            if condition.database_id != light.database.instance_id {
                return Err(Error::invalid("a condition is about another open database"));
            }
            let tree = light.database.tree(condition.keyspace)?;
            let keyspace = Keyspace::new(light.database.clone(), tree);
            let value = light.get(&keyspace, &condition.key)?;
            let holds = match &condition.expected {
                ExpectedValue::Absent => value.is_none(),
                ExpectedValue::Present => value.is_some(),
                ExpectedValue::Value(expected) => value.as_deref() == Some(expected),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Writes a batch directly after a state for which `decide`, which may fill it, returns `true`. As
/// long as others change in between what it read, `decide` is asked again.
///
/// # Errors
/// Those of `decide`; `Conflict` where others came in between a hundred times; as
/// [`crate::Db::write`].
fn write_after<T>(
    database: &Handle,
    batch: &mut Batch,
    sync: WriteSync,
    mut decide: impl FnMut(&mut LightTransaction<'_>, &mut Batch) -> Result<(bool, T)>,
) -> Result<(Option<SeqNo>, T)> {
    retry(database, |is_last| {
        let mut light = LightTransaction::begin(database);
        let (is_due, done) = decide(&mut light, batch)?;
        if !is_due {
            return Ok(Some((None, done)));
        }
        match light.commit(batch, sync) {
            Ok(seq) => Ok(Some((Some(seq), done))),
            Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
            Err(_) if !is_last => Ok(None),
            Err(_) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "nothing was written: others wrote the same keys each of the {ATTEMPTS_MAX} \
                     times that it was tried: try again later, or use a pessimistic transaction"
                ),
            )),
        }
    })
}

/// Writes a batch if all conditions hold: see [`crate::Db::write_if`].
pub(super) fn write_if(
    database: &Handle,
    batch: &mut Batch,
    conditions: &Conditions,
    sync: WriteSync,
) -> Result<Option<SeqNo>> {
    let decide =
        |light: &mut LightTransaction<'_>, _: &mut Batch| Ok((conditions.hold(light)?, ()));
    write_after(database, batch, sync, decide).map(|(seq, ())| seq)
}

impl Keyspace {
    /// Sets `key` to `new` (`None` removes it) if its value is `old` (`None`: if it has none).
    /// Where the value is another one, writes nothing and returns that value as `Err`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// assert!(db.compare_exchange("lock", None, Some(b"ada"))?.is_ok());
    /// let held_by = db.compare_exchange("lock", None, Some(b"grace"))?.unwrap_err();
    /// assert_eq!(held_by.as_deref(), Some(&b"ada"[..]));
    /// assert_eq!(db.compare_exchange("lock", Some(b"ada"), None)?, Ok(()));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `Conflict` if others wrote the key in each of a hundred attempts.
    pub fn compare_exchange(
        &self,
        key: impl AsRef<[u8]>,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Result<(), Option<Slice>>> {
        self.change(key.as_ref(), |value, batch| {
            if value.as_deref() != old {
                return (false, Err(value));
            }
            self.set(batch, key.as_ref(), new);
            (true, Ok(()))
        })
    }

    /// Sets `key` to the result of `change` for its value (`None`: no value, or remove it). Returns
    /// the value before. `change` may be called more than once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let next = |old: Option<&[u8]>| {
    ///     let old = old.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")));
    ///     Some((old + 1).to_be_bytes().to_vec())
    /// };
    /// assert!(db.update("ids", next)?.is_none());
    /// assert_eq!(db.update("ids", next)?.as_deref(), Some(&1u64.to_be_bytes()[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::compare_exchange`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>> {
        self.change(key.as_ref(), |value, batch| {
            self.set(batch, key.as_ref(), change(value.as_deref()).as_deref());
            (true, value)
        })
    }

    /// Sets `key` to `value` if it has no value. Otherwise returns the value that it has.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// assert!(db.put_if_absent("name/ada", "user 7")?.is_none());
    /// assert_eq!(db.put_if_absent("name/ada", "user 8")?.as_deref(), Some(&b"user 7"[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::compare_exchange`].
    pub fn put_if_absent(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>> {
        self.change(key.as_ref(), |before, batch| {
            self.set(batch, key.as_ref(), Some(value.as_ref()));
            (before.is_none(), before)
        })
    }

    /// Sets `key` to `value`. Returns the value before.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// assert!(db.replace("city", "London")?.is_none());
    /// assert_eq!(db.replace("city", "Paris")?.as_deref(), Some(&b"London"[..]));
    /// assert_eq!(db.remove("city")?.as_deref(), Some(&b"Paris"[..]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::compare_exchange`].
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.change(key.as_ref(), |before, batch| {
            self.set(batch, key.as_ref(), Some(value.as_ref()));
            (true, before)
        })
    }

    /// Removes `key`. Returns its value; where it had none, nothing is written.
    ///
    /// # Errors
    /// As [`Keyspace::compare_exchange`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.change(key.as_ref(), |before, batch| {
            self.set(batch, key.as_ref(), None);
            (before.is_some(), before)
        })
    }

    /// Removes the first key and returns it with its value. Each key is returned to one caller,
    /// however many there are.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let queue = db.keyspace("queue")?;
    /// for number in 0..3u32 {
    ///     queue.put(number.to_be_bytes(), format!("job {number}"))?;
    /// }
    /// let (_, job) = queue.pop_first()?.expect("there are three");
    /// assert_eq!(job, "job 0");
    /// assert_eq!(queue.pop_last()?.expect("there are two").1, "job 2");
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::compare_exchange`], for the key that is the first in an attempt.
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice)>> {
        self.pop(Iter::next, |key| (Bound::Unbounded, Bound::Included(key)))
    }

    /// Removes the last key and returns it with its value, in the same way.
    ///
    /// # Errors
    /// As [`Keyspace::pop_first`].
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice)>> {
        self.pop(Iter::next_back, |key| (Bound::Included(key), Bound::Unbounded))
    }

    /// Removes the entry that `end` gives, if no entry was written in the range `passed` meanwhile.
    fn pop(
        &self,
        end: impl Fn(&mut Iter) -> Option<Result<(Slice, Slice)>>,
        passed: impl Fn(Vec<u8>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<Option<(Slice, Slice)>> {
        let mut batch = Batch::new();
        let popped = write_after(&self.database, &mut batch, self.sync, |light, batch| {
            batch.clear();
            let found = end(&mut self.iter_at(&light.snapshot)).transpose()?;
            if let Some((key, _)) = &found {
                light.passed(self, passed(key.to_vec()))?;
                batch.delete(self, key);
            }
            Ok((found.is_some(), found))
        });
        popped.map(|(_, entry)| entry)
    }

    /// Removes every key, at the cost of two small writes regardless of their number.
    ///
    /// # Errors
    /// As [`Keyspace::clear_range`].
    pub fn clear(&self) -> Result<()> {
        self.clear_range(..)
    }

    /// Removes every key of a range with any bounds: all that exist when it is written. It looks
    /// for the first and the last of them, and removes the keys between by one range tombstone.
    /// [`Keyspace::delete_range`] looks for nothing, and takes only a range with an exclusive end.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// for key in ["a", "b", "c", "d"] {
    ///     db.put(key, "")?;
    /// }
    /// db.clear_range("b"..="c")?;
    /// assert_eq!(db.count(..)?, 2);
    /// db.clear_range("d"..)?;
    /// db.clear_prefix("a")?;
    /// assert!(db.is_empty()?);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `Conflict` if others wrote before the first key or after the last in
    /// each of a hundred attempts.
    pub fn clear_range(&self, range: impl KeyRange) -> Result<()> {
        let bounds = key_range::owned(&range);
        self.clear_found(&bounds, |snapshot| self.range_at(snapshot, bounds.clone()))
    }

    /// Removes every key that starts with `prefix`, in the same way.
    ///
    /// # Errors
    /// As [`Keyspace::clear_range`].
    pub fn clear_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let prefix = prefix.as_ref();
        let bounds = match self.tree.reads.order.is_bytewise() {
            true => {
                let end = windrow_base::key::prefix_end(prefix);
                (Bound::Included(prefix.to_vec()), end.map_or(Bound::Unbounded, Bound::Excluded))
            }
            // In another order the keys of a prefix need not be neighbours: remove them one by one.
            false => return self.clear_one_by_one(prefix),
        };
        self.clear_found(&bounds, |snapshot| self.prefix_at(snapshot, prefix))
    }

    /// Removes the keys from the first to the last entry of a scan. All keys are within `bounds`.
    fn clear_found(
        &self,
        bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
        scan: impl Fn(&Snapshot) -> Iter,
    ) -> Result<()> {
        let mut batch = Batch::new();
        let cleared = write_after(&self.database, &mut batch, self.sync, |light, batch| {
            batch.clear();
            let mut keys = scan(&light.snapshot).keys();
            let Some(first) = keys.next().transpose()? else { return Ok((false, ())) };
            let last = keys.next_back().transpose()?.unwrap_or_else(|| first.clone());
            // Keys that are written between the two until then are removed as well.
            light.passed(self, (bounds.0.clone(), Bound::Excluded(first.to_vec())))?;
            light.passed(self, (Bound::Excluded(last.to_vec()), bounds.1.clone()))?;
            batch.delete_range(self, &first, &last);
            batch.delete(self, &last);
            Ok((true, ()))
        });
        cleared.map(|_| ())
    }

    /// Removes keys that start with `prefix` wherever the order of keys has put them.
    fn clear_one_by_one(&self, prefix: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        let cleared = write_after(&self.database, &mut batch, self.sync, |light, batch| {
            batch.clear();
            for key in self.prefix_at(&light.snapshot, prefix).keys() {
                batch.delete(self, key?);
            }
            light.passed(self, (Bound::Unbounded, Bound::Unbounded))?;
            Ok((!batch.is_empty(), ()))
        });
        cleared.map(|_| ())
    }

    /// Writes the batch that `decide` makes from a key's value, where it returns `true`.
    fn change<T>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<Slice>, &mut Batch) -> (bool, T),
    ) -> Result<T> {
        let mut batch = Batch::new();
        let changed = write_after(&self.database, &mut batch, self.sync, |light, batch| {
            batch.clear();
            Ok(decide(light.get(self, key)?, batch))
        });
        changed.map(|(_, done)| done)
    }

    fn set(&self, batch: &mut Batch, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) => batch.put(self, key, value),
            None => batch.delete(self, key),
        }
    }
}
