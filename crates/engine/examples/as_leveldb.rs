//! Windrow behind traits of the shape of LevelDB's interface: put, get and delete with options,
//! write batches that can be read, snapshots, iterators whose moves return nothing.
//!
//! Every method is a call of Windrow, or two; nothing is emulated. A batch is made by the store
//! that it is for, as Windrow's batch knows its database.
//!
//! `cargo run --example as_leveldb`

use std::ops::Bound;
use windrow::inspect::BatchOp;
use windrow::{Batch, Cursor, Db, Keyspace, Options, ReadOptions, Result, Snapshot, WriteSync};

#[derive(Clone, Copy)]
struct Reading<'a, S> {
    fill_cache: bool,
    snapshot: Option<&'a S>,
}

#[derive(Clone, Copy, Default)]
struct Writing {
    sync: bool,
}

/// The operations that a program written for LevelDB expects of its store.
trait Store {
    type Batch: WriteBatch;
    type Iterator: Moves;
    /// Released when it is dropped.
    type Snapshot;

    fn put(&self, options: Writing, key: &[u8], value: &[u8]) -> Result<()>;
    fn delete(&self, options: Writing, key: &[u8]) -> Result<()>;
    fn new_batch(&self) -> Self::Batch;
    fn write(&self, options: Writing, updates: &mut Self::Batch) -> Result<()>;
    fn get(&self, options: Reading<'_, Self::Snapshot>, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn new_iterator(&self, options: Reading<'_, Self::Snapshot>) -> Self::Iterator;
    fn get_snapshot(&self) -> Self::Snapshot;
    fn get_property(&self, property: &str) -> Option<String>;
    fn get_approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>>;
    fn compact_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()>;
}

trait WriteBatch {
    fn put(&mut self, key: &[u8], value: &[u8]);
    fn delete(&mut self, key: &[u8]);
    fn clear(&mut self);
    fn append(&mut self, other: &Self);
    fn approximate_size(&self) -> usize;
    fn iterate(&self, handler: &mut impl Handler);
}

/// Receives the operations of a batch.
trait Handler {
    fn put(&mut self, key: &[u8], value: &[u8]);
    fn delete(&mut self, key: &[u8]);
}

trait Moves {
    fn seek_to_first(&mut self);
    fn seek_to_last(&mut self);
    fn seek(&mut self, target: &[u8]);
    fn next(&mut self);
    fn prev(&mut self);
    fn valid(&self) -> bool;
    fn key(&self) -> &[u8];
    fn value(&self) -> &[u8];
    fn status(&self) -> Result<()>;
}

fn sync_of(options: Writing) -> WriteSync {
    if options.sync { WriteSync::Yes } else { WriteSync::No }
}

fn read_options(options: Reading<'_, Snapshot>) -> ReadOptions {
    let Reading { fill_cache, snapshot } = options;
    ReadOptions { fill_cache, snapshot: snapshot.cloned(), ..ReadOptions::default() }
}

impl Store for Db {
    type Batch = Updates;
    type Iterator = Cursor;
    type Snapshot = Snapshot;

    fn put(&self, options: Writing, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, sync_of(options))
    }

    fn delete(&self, options: Writing, key: &[u8]) -> Result<()> {
        self.delete_with(key, sync_of(options))
    }

    fn new_batch(&self) -> Updates {
        Updates { db: self.clone(), batch: Batch::new() }
    }

    fn write(&self, options: Writing, updates: &mut Updates) -> Result<()> {
        Db::write(self, &mut updates.batch, sync_of(options)).map(|_| ())
    }

    fn get(&self, options: Reading<'_, Snapshot>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = match options.snapshot {
            Some(snapshot) => snapshot.get(key),
            None => Keyspace::get(self, key),
        };
        Ok(value?.map(Vec::from))
    }

    fn new_iterator(&self, options: Reading<'_, Snapshot>) -> Cursor {
        self.cursor(read_options(options))
    }

    fn get_snapshot(&self) -> Snapshot {
        self.snapshot()
    }

    fn get_property(&self, property: &str) -> Option<String> {
        match property.strip_prefix("leveldb.")? {
            "stats" => Some(self.stats().to_string()),
            of_level => {
                let level: usize = of_level.strip_prefix("num-files-at-level")?.parse().ok()?;
                let levels = &self.stats().keyspaces[0].levels;
                Some(
                    levels
                        .get(level)
                        .map_or(0, |shape| shape.run_files + shape.log_files)
                        .to_string(),
                )
            }
        }
    }

    fn get_approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        ranges.iter().map(|(begin, end)| self.approximate_bytes(begin, end)).collect()
    }

    fn compact_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        let end_of =
            |key: Option<&[u8]>| key.map_or(Bound::Unbounded, |key| Bound::Included(key.to_vec()));
        Keyspace::compact_range(self, (end_of(begin), end_of(end)))
    }
}

struct Updates {
    db: Db,
    batch: Batch,
}

impl WriteBatch for Updates {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.put(&self.db, key, value);
    }

    fn delete(&mut self, key: &[u8]) {
        self.batch.delete(&self.db, key);
    }

    fn clear(&mut self) {
        self.batch.clear();
    }

    fn append(&mut self, other: &Updates) {
        self.batch.append(&other.batch);
    }

    fn approximate_size(&self) -> usize {
        self.batch.byte_len()
    }

    fn iterate(&self, handler: &mut impl Handler) {
        for (_, operation) in self.batch.iter() {
            match operation {
                BatchOp::Put { key, value } => handler.put(key, value),
                BatchOp::Delete { key } => handler.delete(key),
                other => unreachable!("{other:?} cannot be added here"),
            }
        }
    }
}

// The result of a move can be asked for later as well: errors stay until a refresh.
impl Moves for Cursor {
    fn seek_to_first(&mut self) {
        let _ = Cursor::seek_first(self);
    }

    fn seek_to_last(&mut self) {
        let _ = Cursor::seek_last(self);
    }

    fn seek(&mut self, target: &[u8]) {
        let _ = Cursor::seek(self, target);
    }

    fn next(&mut self) {
        let _ = Cursor::next(self);
    }

    fn prev(&mut self) {
        let _ = Cursor::prev(self);
    }

    fn valid(&self) -> bool {
        Cursor::valid(self)
    }

    fn key(&self) -> &[u8] {
        Cursor::key(self)
    }

    fn value(&self) -> &[u8] {
        Cursor::value(self)
    }

    fn status(&self) -> Result<()> {
        Cursor::status(self)
    }
}

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-as-leveldb-{}", std::process::id()));
    assert!(
        Db::open_with(&path, Options { create_if_missing: false, ..Options::default() }).is_err()
    );
    let db = Db::open(&path)?;
    exercise(&db)?;
    db.close()?;
    windrow::repair(&path, Options::default())?;
    let db = Db::open_with(&path, Options { create_if_missing: false, ..Options::default() })?;
    assert_eq!(db.count(..)?, 3);
    db.close()?;
    Db::destroy(&path)
}

/// Records the operations that it receives.
#[derive(Default)]
struct Told(Vec<String>);

impl Handler for Told {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.0.push(format!("{}={}", key.escape_ascii(), value.escape_ascii()));
    }

    fn delete(&mut self, key: &[u8]) {
        self.0.push(format!("-{}", key.escape_ascii()));
    }
}

fn exercise<S: Store>(db: &S) -> Result<()> {
    let now = || Reading { fill_cache: true, snapshot: None };
    db.put(Writing::default(), b"a", b"1")?;
    db.put(Writing { sync: true }, b"b", b"2")?;
    let snapshot = db.get_snapshot();
    let then = || Reading { fill_cache: false, snapshot: Some(&snapshot) };

    let mut updates = db.new_batch();
    updates.put(b"c", b"3");
    let mut more = db.new_batch();
    more.delete(b"a");
    more.put(b"d", b"4");
    updates.append(&more);
    let mut told = Told::default();
    updates.iterate(&mut told);
    assert_eq!(told.0, ["c=3", "-a", "d=4"]);
    assert!(updates.approximate_size() > more.approximate_size());
    db.write(Writing { sync: true }, &mut updates)?;
    updates.clear();
    db.write(Writing::default(), &mut updates)?;

    assert_eq!(db.get(now(), b"a")?, None);
    assert_eq!(db.get(then(), b"a")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(keys(&mut db.new_iterator(now()))?, "b c d");
    assert_eq!(keys(&mut db.new_iterator(then()))?, "a b");

    let mut at = db.new_iterator(now());
    assert!(!at.valid());
    at.seek(b"bb");
    assert_eq!((at.key(), at.value()), (&b"c"[..], &b"3"[..]));
    at.prev();
    assert_eq!(at.key(), b"b");
    at.prev();
    assert!(!at.valid());
    at.seek_to_last();
    assert_eq!(at.key(), b"d");
    at.next();
    assert!(!at.valid() && at.status().is_ok());

    db.compact_range(None, None)?;
    assert!(db.get_approximate_sizes(&[(b"a", b"z"), (b"x", b"z")])?[0] > 0);
    let files =
        (0..).map_while(|level| db.get_property(&format!("leveldb.num-files-at-level{level}")));
    assert_eq!(files.take(12).map(|files| files.parse::<u64>().unwrap()).sum::<u64>(), 1);
    assert!(db.get_property("leveldb.stats").is_some());
    assert!(db.get_property("rocksdb.stats").is_none());
    db.delete(Writing::default(), b"none")
}

fn keys(at: &mut impl Moves) -> Result<String> {
    let mut keys = Vec::new();
    at.seek_to_first();
    while at.valid() {
        keys.push(String::from_utf8_lossy(at.key()).into_owned());
        at.next();
    }
    at.status()?;
    Ok(keys.join(" "))
}
