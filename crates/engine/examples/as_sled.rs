//! Windrow behind a trait of the shape of sled's `Tree`: writes that return the value
//! before, compare and swap, ends that are popped, neighbours of a key, transactions.
//!
//! Every method is a call of Windrow, or two; nothing is emulated. Windrow has no counterpart of
//! sled's `watch_prefix`.
//!
//! `cargo run --example as_sled`

use std::ops::Bound;
use windrow::{
    Batch, Db, KeyRange, Keyspace, KeyspaceOptions, Result, Slice, Transaction, WriteSync,
};

type Pair = (Slice, Slice);

/// The value that was found instead of the expected one.
#[derive(Debug, PartialEq)]
struct CompareAndSwapError {
    current: Option<Slice>,
    proposed: Option<Vec<u8>>,
}

/// The operations that a program written for sled expects of a tree.
trait Tree {
    type Iter: DoubleEndedIterator<Item = Result<Pair>>;

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Slice>>;
    fn get(&self, key: &[u8]) -> Result<Option<Slice>>;
    fn remove(&self, key: &[u8]) -> Result<Option<Slice>>;
    fn contains_key(&self, key: &[u8]) -> Result<bool>;
    fn compare_and_swap(
        &self,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Result<(), CompareAndSwapError>>;
    fn fetch_and_update(
        &self,
        key: &[u8],
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>>;
    fn update_and_fetch(
        &self,
        key: &[u8],
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>>;
    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()>;
    /// Puts (`Some`) and removals (`None`), all or none.
    fn apply_batch(&self, operations: &[(&[u8], Option<&[u8]>)]) -> Result<()>;
    fn transaction<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T>;
    fn first(&self) -> Result<Option<Pair>>;
    fn last(&self) -> Result<Option<Pair>>;
    fn pop_min(&self) -> Result<Option<Pair>>;
    fn pop_max(&self) -> Result<Option<Pair>>;
    fn get_lt(&self, key: &[u8]) -> Result<Option<Pair>>;
    fn get_gt(&self, key: &[u8]) -> Result<Option<Pair>>;
    fn iter(&self) -> Self::Iter;
    fn range(&self, range: impl KeyRange) -> Self::Iter;
    fn scan_prefix(&self, prefix: &[u8]) -> Self::Iter;
    fn len(&self) -> Result<u64>;
    fn is_empty(&self) -> Result<bool>;
    fn clear(&self) -> Result<()>;
}

/// A keyspace, and the database for transactions and batches.
struct Map {
    db: Db,
    keyspace: Keyspace,
}

impl Map {
    fn open(db: &Db, name: &str) -> Result<Map> {
        // sled sets a merge operator while it runs; Windrow takes it when a keyspace is made.
        let options =
            KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
        Ok(Map { db: db.clone(), keyspace: db.keyspace_with(name, options)? })
    }
}

impl Tree for Map {
    type Iter = windrow::Iter;

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Slice>> {
        self.keyspace.replace(key, value)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        self.keyspace.get(key)
    }

    fn remove(&self, key: &[u8]) -> Result<Option<Slice>> {
        self.keyspace.remove(key)
    }

    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        self.keyspace.contains_key(key)
    }

    fn compare_and_swap(
        &self,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Result<(), CompareAndSwapError>> {
        let swapped = self.keyspace.compare_exchange(key, old, new)?;
        let proposed = || new.map(<[u8]>::to_vec);
        Ok(swapped.map_err(|current| CompareAndSwapError { current, proposed: proposed() }))
    }

    fn fetch_and_update(
        &self,
        key: &[u8],
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Slice>> {
        self.keyspace.update(key, change)
    }

    fn update_and_fetch(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        // The last value that was made is the one that was written.
        let mut made = None;
        self.keyspace.update(key, |old| made.insert(change(old)).clone())?;
        Ok(made.flatten())
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.keyspace.merge(key, operand)
    }

    fn apply_batch(&self, operations: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let mut batch = Batch::new();
        for (key, value) in operations {
            match value {
                Some(value) => batch.put(&self.keyspace, key, value),
                None => batch.delete(&self.keyspace, key),
            }
        }
        self.db.write(batch, WriteSync::No).map(|_| ())
    }

    fn transaction<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.db.transact(work)
    }

    fn first(&self) -> Result<Option<Pair>> {
        self.keyspace.first()
    }

    fn last(&self) -> Result<Option<Pair>> {
        self.keyspace.last()
    }

    fn pop_min(&self) -> Result<Option<Pair>> {
        self.keyspace.pop_first()
    }

    fn pop_max(&self) -> Result<Option<Pair>> {
        self.keyspace.pop_last()
    }

    fn get_lt(&self, key: &[u8]) -> Result<Option<Pair>> {
        self.keyspace.range(..key).next_back().transpose()
    }

    fn get_gt(&self, key: &[u8]) -> Result<Option<Pair>> {
        self.keyspace.range((Bound::Excluded(key), Bound::Unbounded)).next().transpose()
    }

    fn iter(&self) -> windrow::Iter {
        self.keyspace.iter()
    }

    fn range(&self, range: impl KeyRange) -> windrow::Iter {
        self.keyspace.range(range)
    }

    fn scan_prefix(&self, prefix: &[u8]) -> windrow::Iter {
        self.keyspace.prefix(prefix)
    }

    fn len(&self) -> Result<u64> {
        self.keyspace.count(..)
    }

    fn is_empty(&self) -> Result<bool> {
        self.keyspace.is_empty()
    }

    fn clear(&self) -> Result<()> {
        self.keyspace.clear()
    }
}

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-as-sled-{}", std::process::id()));
    let db = Db::open(&path)?;
    let map = Map::open(&db, "tree")?;
    exercise(&map)?;
    let doubled = map.transaction(|tx| {
        let ten = tx.get(&map.keyspace, "10")?.map_or(0, |value| value.len());
        tx.put(&map.keyspace, "20", vec![b'x'; 2 * ten])?;
        Ok(2 * ten)
    })?;
    assert_eq!(map.get(b"20")?.map(|value| value.len()), Some(doubled));
    db.sync()?;
    db.close()?;
    let db = Db::open(&path)?;
    assert_eq!(Map::open(&db, "tree")?.len()?, 2);
    db.close()?;
    Db::destroy(&path)
}

fn exercise(tree: &impl Tree) -> Result<()> {
    assert_eq!(tree.insert(b"1", b"one")?, None);
    assert_eq!(tree.insert(b"1", b"uno")?.as_deref(), Some(&b"one"[..]));
    assert_eq!(tree.remove(b"2")?, None);

    assert_eq!(tree.compare_and_swap(b"2", None, Some(b"two"))?, Ok(()));
    let refused = tree.compare_and_swap(b"2", None, Some(b"dos"))?.unwrap_err();
    assert_eq!(refused.current.as_deref(), Some(&b"two"[..]));
    assert_eq!(refused.proposed.as_deref(), Some(&b"dos"[..]));

    let longer = |old: Option<&[u8]>| Some([old.unwrap_or_default(), b"!"].concat());
    assert_eq!(tree.fetch_and_update(b"3", longer)?, None);
    assert_eq!(tree.update_and_fetch(b"3", longer)?.as_deref(), Some(&b"!!"[..]));
    assert_eq!(tree.update_and_fetch(b"3", |_| None)?, None);
    assert!(!tree.contains_key(b"3")?);

    tree.merge(b"2", b", dos")?;
    assert_eq!(tree.get(b"2")?.as_deref(), Some(&b"two, dos"[..]));
    tree.apply_batch(&[(b"4", Some(b"four")), (b"5", Some(b"five")), (b"1", None)])?;

    let key = |pair: Option<Pair>| pair.map(|(key, _)| key.to_vec());
    assert_eq!(key(tree.first()?).as_deref(), Some(&b"2"[..]));
    assert_eq!(key(tree.last()?).as_deref(), Some(&b"5"[..]));
    assert_eq!(key(tree.get_lt(b"4")?).as_deref(), Some(&b"2"[..]));
    assert_eq!(key(tree.get_gt(b"4")?).as_deref(), Some(&b"5"[..]));
    assert_eq!(key(tree.get_gt(b"5")?), None);
    assert_eq!((tree.len()?, tree.range("3"..).count(), tree.scan_prefix(b"5").count()), (3, 2, 1));
    assert_eq!(tree.iter().next_back().transpose()?, tree.last()?);

    assert_eq!(key(tree.pop_min()?).as_deref(), Some(&b"2"[..]));
    assert_eq!(key(tree.pop_max()?).as_deref(), Some(&b"5"[..]));
    tree.clear()?;
    assert!(tree.is_empty()? && tree.pop_min()?.is_none());
    tree.insert(b"10", b"ten").map(|_| ())
}
