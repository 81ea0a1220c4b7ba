//! Windrow behind traits of the shape of fjall's (3.1): a database of keyspaces, each a map;
//! batches over them, snapshots, transactions.
//!
//! Every method is a call of Windrow, or two; nothing is emulated.
//!
//! `cargo run --example as_fjall`

use windrow::{
    Batch, Db, Iter, KeyRange, Keyspace, Result, Slice, Snapshot, Transaction, WriteSync,
};

type Pair = (Slice, Slice);

/// The reach of a `persist`.
enum PersistMode {
    /// To the kernel, where every write is when its call returns.
    Buffer,
    /// To the device.
    SyncAll,
}

/// The operations that a program written for fjall expects of its store.
trait FjallDatabase {
    type Keyspace: FjallKeyspace;

    fn keyspace(&self, name: &str) -> Result<Self::Keyspace>;
    fn keyspace_exists(&self, name: &str) -> Result<bool>;
    fn list_keyspace_names(&self) -> Vec<String>;
    fn delete_keyspace(&self, keyspace: Self::Keyspace) -> Result<()>;
    fn batch(&self) -> WriteBatch<'_>;
    fn persist(&self, mode: PersistMode) -> Result<()>;
    fn disk_space(&self) -> u64;
    /// Reads and writes as if no other thread wrote; run again where one did.
    fn write_tx<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T>;
    fn read_tx(&self) -> Snapshot;
}

trait FjallKeyspace {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()>;
    fn get(&self, key: &[u8]) -> Result<Option<Slice>>;
    fn remove(&self, key: &[u8]) -> Result<()>;
    fn contains_key(&self, key: &[u8]) -> Result<bool>;
    fn size_of(&self, key: &[u8]) -> Result<Option<usize>>;
    fn iter(&self) -> Iter;
    fn range(&self, range: impl KeyRange) -> Iter;
    fn prefix(&self, prefix: &[u8]) -> Iter;
    fn keys(&self) -> impl DoubleEndedIterator<Item = Result<Slice>>;
    fn values(&self) -> impl DoubleEndedIterator<Item = Result<Slice>>;
    fn first_key_value(&self) -> Result<Option<Pair>>;
    fn last_key_value(&self) -> Result<Option<Pair>>;
    fn len(&self) -> Result<u64>;
    fn approximate_len(&self) -> Result<u64>;
    fn is_empty(&self) -> Result<bool>;
    fn major_compact(&self) -> Result<()>;
    // For keyspaces of a database with transactions:
    fn take(&self, key: &[u8]) -> Result<Option<Slice>>;
    fn fetch_update(
        &self,
        key: &[u8],
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>>;
}

/// Operations on keyspaces, collected until they are committed.
struct WriteBatch<'a> {
    db: &'a Db,
    batch: Batch,
    sync: WriteSync,
}

impl WriteBatch<'_> {
    fn durability(mut self, mode: PersistMode) -> Self {
        self.sync = match mode {
            PersistMode::Buffer => WriteSync::No,
            PersistMode::SyncAll => WriteSync::Yes,
        };
        self
    }

    fn insert(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) {
        self.batch.put(keyspace, key, value);
    }

    fn remove(&mut self, keyspace: &Keyspace, key: &[u8]) {
        self.batch.delete(keyspace, key);
    }

    fn commit(self) -> Result<()> {
        self.db.write(self.batch, self.sync).map(|_| ())
    }
}

impl FjallDatabase for Db {
    type Keyspace = Keyspace;

    fn keyspace(&self, name: &str) -> Result<Keyspace> {
        Db::keyspace(self, name)
    }

    fn keyspace_exists(&self, name: &str) -> Result<bool> {
        Ok(self.open_keyspace(name)?.is_some())
    }

    fn list_keyspace_names(&self) -> Vec<String> {
        self.keyspaces()
    }

    fn delete_keyspace(&self, keyspace: Keyspace) -> Result<()> {
        self.drop_keyspace(keyspace.name())
    }

    fn batch(&self) -> WriteBatch<'_> {
        WriteBatch { db: self, batch: Batch::new(), sync: WriteSync::No }
    }

    fn persist(&self, mode: PersistMode) -> Result<()> {
        match mode {
            PersistMode::Buffer => Ok(()),
            PersistMode::SyncAll => self.sync(),
        }
    }

    fn disk_space(&self) -> u64 {
        let stats = self.stats();
        let levels = stats.keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
        levels.map(|level| level.bytes).sum::<u64>() + stats.wal_live_bytes
    }

    fn write_tx<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transact(work)
    }

    fn read_tx(&self) -> Snapshot {
        self.snapshot()
    }
}

impl FjallKeyspace for Keyspace {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        Keyspace::get(self, key)
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.delete(key)
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        Keyspace::contains_key(self, key)
    }

    fn size_of(&self, key: &[u8]) -> Result<Option<usize>> {
        Ok(Keyspace::get(self, key)?.map(|value| value.len()))
    }

    fn iter(&self) -> Iter {
        Keyspace::iter(self)
    }

    fn range(&self, range: impl KeyRange) -> Iter {
        Keyspace::range(self, range)
    }

    fn prefix(&self, prefix: &[u8]) -> Iter {
        Keyspace::prefix(self, prefix)
    }

    fn keys(&self) -> impl DoubleEndedIterator<Item = Result<Slice>> {
        Keyspace::iter(self).keys()
    }

    fn values(&self) -> impl DoubleEndedIterator<Item = Result<Slice>> {
        Keyspace::iter(self).map(|pair| pair.map(|(_, value)| value))
    }

    fn first_key_value(&self) -> Result<Option<Pair>> {
        self.first()
    }

    fn last_key_value(&self) -> Result<Option<Pair>> {
        self.last()
    }

    fn len(&self) -> Result<u64> {
        self.count(..)
    }

    fn approximate_len(&self) -> Result<u64> {
        Keyspace::approximate_len(self)
    }

    fn is_empty(&self) -> Result<bool> {
        Keyspace::is_empty(self)
    }

    fn major_compact(&self) -> Result<()> {
        self.compact()
    }

    fn take(&self, key: &[u8]) -> Result<Option<Slice>> {
        Keyspace::remove(self, key)
    }

    fn fetch_update(
        &self,
        key: &[u8],
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>> {
        self.update(key, change)
    }
}

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-as-fjall-{}", std::process::id()));
    let db = Db::open(&path)?;
    let items = FjallDatabase::keyspace(&db, "items")?;
    exercise(&items)?;
    over_keyspaces(&db)?;
    db.persist(PersistMode::SyncAll)?;
    db.close()?;
    let db = Db::open(&path)?;
    assert!(db.keyspace_exists("items")? && !db.keyspace_exists("index")?);
    assert_eq!(FjallKeyspace::len(&db.keyspace("items")?)?, 4);
    db.close()?;
    Db::destroy(&path)
}

fn exercise(items: &impl FjallKeyspace) -> Result<()> {
    for (key, value) in [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")] {
        items.insert(key, value)?;
    }
    items.remove(b"b")?;
    assert_eq!((items.size_of(b"a")?, items.size_of(b"b")?), (Some(1), None));
    assert_eq!(
        (items.iter().count(), items.range("b"..).count(), items.prefix(b"a").count()),
        (2, 1, 1)
    );
    assert_eq!(items.keys().next_back().transpose()?, items.last_key_value()?.map(|pair| pair.0));
    assert_eq!(items.values().next().transpose()?, items.first_key_value()?.map(|pair| pair.1));
    items.major_compact()?;
    assert_eq!((items.len()?, items.approximate_len()?), (2, 2));

    let twice = |old: Option<&[u8]>| Some(old?.repeat(2));
    assert_eq!(items.fetch_update(b"a", twice)?.as_deref(), Some(&b"1"[..]));
    assert_eq!(items.take(b"a")?.as_deref(), Some(&b"11"[..]));
    assert!(!items.contains_key(b"a")? && items.get(b"a")?.is_none());
    assert!(!items.is_empty()?);
    Ok(())
}

fn over_keyspaces(db: &Db) -> Result<()> {
    let (items, index) = (db.keyspace("items")?, db.keyspace("index")?);
    let before = db.read_tx();
    let mut batch = db.batch().durability(PersistMode::SyncAll);
    batch.insert(&items, b"d", b"4");
    batch.insert(&index, b"4", b"d");
    batch.remove(&index, b"3");
    batch.commit()?;
    let count = db.write_tx(|tx| {
        let count = tx.iter(&items)?.count();
        tx.put(&items, "count", count.to_string())?;
        tx.put(&items, "double", (2 * count).to_string())?;
        Ok(count)
    })?;
    assert_eq!(count, 2);
    assert_eq!(items.iter_at(&before).count(), 1);
    assert!(db.disk_space() > 0);
    assert_eq!(db.list_keyspace_names(), ["default", "items", "index"]);
    db.persist(PersistMode::Buffer)?;
    db.delete_keyspace(index)
}
