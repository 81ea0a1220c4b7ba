//! A document store: JSON objects by id, with indexes on fields that are chosen when the store is
//! opened. One of the indexes is unique.
//!
//! A document and its entries in the indexes are written by one transaction, so that no
//! reader, crash or second writer finds one without the others.
//!
//! `cargo run --example document_store`

use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use windrow::{Db, Keyspace, Transaction};

pub(crate) fn main() -> Result<(), StoreError> {
    let path = std::env::temp_dir().join(format!("windrow-documents-{}", std::process::id()));
    let store = Documents::open(&path, &["email"], &["city"])?;
    store.put("ada", r#"{"email": "ada@example.org", "city": "London", "born": 1815}"#)?;
    store.put("grace", r#"{"email": "grace@example.org", "city": "New York"}"#)?;
    store.put("alan", r#"{"email": "alan@example.org", "city": "London"}"#)?;
    assert_eq!(store.find("city", &json!("London"))?, ["ada", "alan"]);

    // A change of a document changes its index entries: the old one is gone.
    store.put("grace", r#"{"email": "grace@example.org", "city": "London"}"#)?;
    assert_eq!(store.find("city", &json!("London"))?, ["ada", "alan", "grace"]);
    assert!(store.find("city", &json!("New York"))?.is_empty());

    // A document that is refused leaves nothing behind.
    let taken = store.put("eve", r#"{"email": "ada@example.org", "city": "Oslo"}"#);
    assert!(matches!(taken, Err(StoreError::NotUnique { by, .. }) if by == "ada"));
    assert!(matches!(store.put("eve", r#"{"email": "#), Err(StoreError::NotJson(_))));
    assert!(matches!(store.put("eve", "[1, 2]"), Err(StoreError::NotAnObject)));
    assert!(matches!(store.find("name", &json!("eve")), Err(StoreError::NoIndex(_))));
    assert!(store.get("eve")?.is_none() && store.find("city", &json!("Oslo"))?.is_empty());

    // Two threads that change one document do so one after the other.
    std::thread::scope(|scope| {
        let add = || (0..100).try_for_each(|_| store.change("ada", add_visit));
        let others = scope.spawn(add);
        add()?;
        others.join().expect("it does not panic")
    })?;
    assert_eq!(store.get("ada")?.expect("she is there")["visits"], 200);

    // Opened with another index, the store makes it from its documents, and forgets the index that
    // is not asked for any more.
    store.db.close()?;
    let store = Documents::open(&path, &["email"], &["born"])?;
    assert_eq!(store.find("born", &json!(1815))?, ["ada"]);
    store.put("alan", r#"{"email": "alan@example.org", "city": "Manchester"}"#)?;
    store.db.close()?;
    let store = Documents::open(&path, &["email"], &["city"])?;
    assert_eq!(store.find("city", &json!("Manchester"))?, ["alan"]);
    assert!(store.remove("alan")? && !store.remove("alan")?);
    assert_eq!(store.find("city", &json!("London"))?, ["ada", "grace"]);
    store.db.close()?;
    Ok(Db::destroy(&path)?)
}

fn add_visit(document: &mut Value) {
    let visits = document["visits"].as_u64().unwrap_or(0);
    document["visits"] = json!(visits + 1);
}

struct Documents {
    db: Db,
    documents: Keyspace,
    /// The fields whose index is whole, with its kind. An index that a crash interrupted is made
    /// again.
    indexed: Keyspace,
    indexes: Vec<Index>,
}

/// The ids of documents by the value of one field: the value, then the id.
struct Index {
    field: String,
    is_unique: bool,
    entries: Keyspace,
}

impl Documents {
    fn open(path: &Path, unique: &[&str], others: &[&str]) -> Result<Documents, StoreError> {
        let db = Db::open(path)?;
        let (documents, indexed) = (db.keyspace("documents")?, db.keyspace("indexed fields")?);
        let mut store = Documents { db, documents, indexed, indexes: Vec::new() };
        for item in store.indexed.iter().keys() {
            let field = text(&item?);
            if !unique.iter().chain(others).any(|asked| *asked == field) {
                // No operation keeps it right from here on.
                store.indexed.delete(&field)?;
            }
        }
        for field in unique.iter().chain(others) {
            let (name, is_unique) = (format!("by {field}"), unique.contains(field));
            let is_known = store.indexed.get(field)?.is_some_and(|kind| kind == kind_of(is_unique));
            if !is_known && store.db.open_keyspace(&name)?.is_some() {
                store.db.drop_keyspace(&name)?;
            }
            let entries = store.db.keyspace(&name)?;
            let index = Index { field: (*field).to_owned(), is_unique, entries };
            if !is_known {
                store.fill(&index)?;
            }
            store.indexes.push(index);
        }
        Ok(store)
    }

    /// Makes an index of the existing documents, and records in the same step that it is whole.
    fn fill(&self, index: &Index) -> Result<(), StoreError> {
        self.db.transact(|tx| {
            let mut all = Vec::new();
            for item in tx.iter(&self.documents)? {
                let (id, document) = item?;
                all.push((text(&id), parse(&text(&document))?));
            }
            all.iter().try_for_each(|(id, document)| index.add(tx, id, document))?;
            Ok(tx.put(&self.indexed, &index.field, kind_of(index.is_unique))?)
        })
    }

    fn get(&self, id: &str) -> Result<Option<Value>, StoreError> {
        self.documents.get(id)?.map(|document| parse(&text(&document))).transpose()
    }

    fn put(&self, id: &str, document: &str) -> Result<(), StoreError> {
        let document = parse(document)?;
        self.db.transact(|tx| self.set(tx, id, Some(&document)).map(|_| ()))
    }

    /// Passes a document, where there is one, to `change`, and stores the changed document.
    fn change(&self, id: &str, change: impl Fn(&mut Value)) -> Result<(), StoreError> {
        self.db.transact(|tx| {
            let Some(before) = tx.get(&self.documents, id)? else { return Ok(()) };
            let mut document = parse(&text(&before))?;
            change(&mut document);
            self.set(tx, id, Some(&document)).map(|_| ())
        })
    }

    /// Removes a document. Returns whether there was one.
    fn remove(&self, id: &str) -> Result<bool, StoreError> {
        self.db.transact(|tx| self.set(tx, id, None))
    }

    /// Replaces a document and its index entries. Returns whether there was one before.
    fn set(
        &self,
        tx: &mut Transaction,
        id: &str,
        document: Option<&Value>,
    ) -> Result<bool, StoreError> {
        let before = tx.get(&self.documents, id)?;
        if let Some(before) = &before {
            let before = parse(&text(before))?;
            self.indexes.iter().try_for_each(|index| index.remove(tx, id, &before))?;
        }
        match document {
            Some(document) => {
                tx.put(&self.documents, id, document.to_string())?;
                self.indexes.iter().try_for_each(|index| index.add(tx, id, document))?;
            }
            None => tx.delete(&self.documents, id)?,
        }
        Ok(before.is_some())
    }

    /// The ids of the documents with this value of a field, in their order.
    fn find(&self, field: &str, value: &Value) -> Result<Vec<String>, StoreError> {
        let index = self.indexes.iter().find(|index| index.field == field);
        let index = index.ok_or_else(|| StoreError::NoIndex(field.to_owned()))?;
        let prefix = value_key(value);
        let keys = index.entries.prefix(&prefix).keys();
        keys.map(|key| Ok(text(&key?[prefix.len()..]))).collect()
    }
}

impl Index {
    fn key(&self, id: &str, document: &Value) -> Option<Vec<u8>> {
        let value = document.get(&self.field)?;
        Some([&value_key(value), id.as_bytes()].concat())
    }

    fn add(&self, tx: &mut Transaction, id: &str, document: &Value) -> Result<(), StoreError> {
        let Some(key) = self.key(id, document) else { return Ok(()) };
        if self.is_unique {
            // The range that is looked at counts as read: two that take one value conflict.
            let prefix = &key[..key.len() - id.len()];
            if let Some(entry) = tx.prefix(&self.entries, prefix)?.next().transpose()? {
                let by = text(&entry.0[prefix.len()..]);
                return Err(StoreError::NotUnique { field: self.field.clone(), by });
            }
        }
        Ok(tx.put(&self.entries, key, "")?)
    }

    fn remove(&self, tx: &mut Transaction, id: &str, document: &Value) -> Result<(), StoreError> {
        match self.key(id, document) {
            Some(key) => Ok(tx.delete(&self.entries, key)?),
            None => Ok(()),
        }
    }
}

fn kind_of(is_unique: bool) -> &'static str {
    if is_unique { "unique" } else { "any" }
}

/// A value as the beginning of a key. JSON escapes the zero byte, which therefore ends it: no
/// value's key is the beginning of another's.
fn value_key(value: &Value) -> Vec<u8> {
    format!("{value}\0").into_bytes()
}

fn parse(document: &str) -> Result<Value, StoreError> {
    let value: Value = serde_json::from_str(document).map_err(StoreError::NotJson)?;
    if value.is_object() { Ok(value) } else { Err(StoreError::NotAnObject) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Why the store refused a call, or a transaction ended.
#[derive(Debug)]
pub(crate) enum StoreError {
    NotJson(serde_json::Error),
    NotAnObject,
    NoIndex(String),
    NotUnique { field: String, by: String },
    Database(windrow::Error),
}

impl From<windrow::Error> for StoreError {
    fn from(error: windrow::Error) -> StoreError {
        StoreError::Database(error)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotJson(error) => write!(f, "not JSON: {error}"),
            StoreError::NotAnObject => write!(f, "a document is a JSON object"),
            StoreError::NoIndex(field) => write!(f, "there is no index on `{field}`"),
            StoreError::NotUnique { field, by } => write!(f, "`{field}` is taken by document {by}"),
            StoreError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}
