//! Windrow behind a trait of the shape of `kvdb`'s, the interface of Ethereum nodes to their store:
//! numbered columns, a transaction as a list of operations, prefixes.
//!
//! A column is a keyspace, a transaction is a batch, and nothing is emulated.
//!
//! `cargo run --example as_kvdb`

use std::path::Path;
use windrow::{Batch, Db, Keyspace, Result, Slice, WriteSync};

type Pairs<'a> = Box<dyn Iterator<Item = Result<(Slice, Slice)>> + 'a>;

/// The operations that such a program expects of its store.
trait KeyValueDb: Send + Sync {
    fn get(&self, column: u32, key: &[u8]) -> Result<Option<Slice>>;
    fn has_key(&self, column: u32, key: &[u8]) -> Result<bool>;
    /// The value of the first key with this prefix.
    fn get_by_prefix(&self, column: u32, prefix: &[u8]) -> Result<Option<Slice>>;
    fn has_prefix(&self, column: u32, prefix: &[u8]) -> Result<bool>;
    fn transaction(&self) -> Operations {
        Operations::default()
    }
    /// All of the operations, in their order, or none.
    fn write(&self, operations: &Operations) -> Result<()>;
    fn iter(&self, column: u32) -> Pairs<'_>;
    fn iter_with_prefix(&self, column: u32, prefix: &[u8]) -> Pairs<'_>;
    fn columns(&self) -> u32;
}

enum Operation {
    Insert { column: u32, key: Vec<u8>, value: Vec<u8> },
    Delete { column: u32, key: Vec<u8> },
    DeletePrefix { column: u32, prefix: Vec<u8> },
}

/// Operations that are not bound to a database.
#[derive(Default)]
struct Operations {
    list: Vec<Operation>,
}

impl Operations {
    fn put(&mut self, column: u32, key: &[u8], value: &[u8]) {
        self.list.push(Operation::Insert { column, key: key.into(), value: value.into() });
    }

    fn delete(&mut self, column: u32, key: &[u8]) {
        self.list.push(Operation::Delete { column, key: key.into() });
    }

    fn delete_prefix(&mut self, column: u32, prefix: &[u8]) {
        self.list.push(Operation::DeletePrefix { column, prefix: prefix.into() });
    }
}

struct Columns {
    db: Db,
    columns: Vec<Keyspace>,
}

impl Columns {
    fn open(path: &Path, count: u32) -> Result<Columns> {
        let db = Db::open(path)?;
        let names: Vec<String> = (0..count).map(|column| format!("col{column}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let columns = db.create_keyspaces(&names)?;
        Ok(Columns { db, columns })
    }

    fn column(&self, column: u32) -> Result<&Keyspace> {
        let no_column =
            || windrow::Error::new(windrow::ErrorKind::InvalidArgument, "no such column");
        self.columns.get(column as usize).ok_or_else(no_column)
    }
}

impl KeyValueDb for Columns {
    fn get(&self, column: u32, key: &[u8]) -> Result<Option<Slice>> {
        self.column(column)?.get(key)
    }

    fn has_key(&self, column: u32, key: &[u8]) -> Result<bool> {
        self.column(column)?.contains_key(key)
    }

    fn get_by_prefix(&self, column: u32, prefix: &[u8]) -> Result<Option<Slice>> {
        let first = self.column(column)?.prefix(prefix).next().transpose()?;
        Ok(first.map(|(_, value)| value))
    }

    fn has_prefix(&self, column: u32, prefix: &[u8]) -> Result<bool> {
        let first = self.column(column)?.prefix(prefix).keys().next().transpose()?;
        Ok(first.is_some())
    }

    fn write(&self, operations: &Operations) -> Result<()> {
        let mut batch = Batch::new();
        for operation in &operations.list {
            match operation {
                Operation::Insert { column, key, value } => {
                    batch.put(self.column(*column)?, key, value);
                }
                Operation::Delete { column, key } => batch.delete(self.column(*column)?, key),
                Operation::DeletePrefix { column, prefix } => {
                    batch.delete_prefix(self.column(*column)?, prefix);
                }
            }
        }
        self.db.write(batch, WriteSync::No).map(|_| ())
    }

    fn iter(&self, column: u32) -> Pairs<'_> {
        match self.column(column) {
            Ok(column) => Box::new(column.iter()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn iter_with_prefix(&self, column: u32, prefix: &[u8]) -> Pairs<'_> {
        match self.column(column) {
            Ok(column) => Box::new(column.prefix(prefix)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn columns(&self) -> u32 {
        self.columns.len() as u32
    }
}

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("windrow-as-kvdb-{}", std::process::id()));
    let store = Columns::open(&path, 3)?;
    exercise(&store)?;
    store.db.close()?;
    // With more columns than before: the old columns keep their entries.
    let store = Columns::open(&path, 4)?;
    assert_eq!(store.columns(), 4);
    assert_eq!(store.get(1, b"head")?.as_deref(), Some(&b"7"[..]));
    assert!(store.iter(3).next().is_none());
    store.db.close()?;
    Db::destroy(&path)
}

fn exercise(store: &dyn KeyValueDb) -> Result<()> {
    let mut changes = store.transaction();
    for number in 0..10u8 {
        changes.put(0, &[b'h', number], b"header");
        changes.put(0, &[b'b', number], &[number]);
    }
    changes.put(1, b"head", b"7");
    store.write(&changes)?;
    assert_eq!(store.iter(0).count(), 20);
    assert_eq!(store.iter_with_prefix(0, b"h").count(), 10);
    assert_eq!(store.get_by_prefix(0, b"b")?.as_deref(), Some(&[0][..]));
    assert!(store.has_prefix(0, b"h")? && !store.has_prefix(0, b"x")?);
    assert!(store.has_key(1, b"head")? && !store.has_key(2, b"head")?);

    // In their order: a key that a later operation puts stays.
    let mut changes = store.transaction();
    changes.delete_prefix(0, b"h");
    changes.put(0, b"h\x03", b"again");
    changes.delete(0, b"b\x00");
    changes.delete_prefix(2, b"");
    store.write(&changes)?;
    assert_eq!(store.iter(0).count(), 10);
    assert_eq!(store.get(0, b"h\x03")?.as_deref(), Some(&b"again"[..]));

    // One bad operation, and none of them is applied.
    let mut changes = store.transaction();
    changes.delete(1, b"head");
    changes.put(99, b"key", b"value");
    assert!(
        store.write(&changes).is_err() && store.iter(99).next().is_some_and(|item| item.is_err())
    );
    assert!(store.has_key(1, b"head")?);
    Ok(())
}
