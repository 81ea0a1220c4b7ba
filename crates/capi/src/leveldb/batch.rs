//! Batches, which LevelDB makes without a database.
//!
//! Owns: the operations of a batch. Never does: write them.

use super::memory::bytes;
use engine::{Batch, Db, Error, Result};
use libc::{c_char, c_void};

#[derive(Clone, Copy)]
enum Operation {
    Put { key: usize, value: usize },
    Delete { key: usize },
}

/// A batch: its operations, and the bytes of all keys and values one after the other.
#[derive(Default)]
pub struct leveldb_writebatch_t {
    operations: Vec<Operation>,
    bytes: Vec<u8>,
    /// The error of the first operation that could not be added, which the write reports.
    wrong: Option<Error>,
}

impl leveldb_writebatch_t {
    /// Calls back with each operation: a key, and the value of a put.
    fn each(&self, mut call: impl FnMut(&[u8], Option<&[u8]>)) {
        let mut rest = self.bytes.as_slice();
        let mut next = |len: usize| {
            let (of, behind) = rest.split_at(len);
            rest = behind;
            of
        };
        for operation in &self.operations {
            match *operation {
                Operation::Put { key, value } => {
                    let key = next(key);
                    call(key, Some(next(value)));
                }
                Operation::Delete { key } => call(next(key), None),
            }
        }
    }

    /// Adds a key, and the value of a put.
    fn add(&mut self, key: Result<&[u8]>, value: Option<Result<&[u8]>>) {
        match (key, value.transpose()) {
            (Ok(key), Ok(value)) => {
                self.bytes.extend_from_slice(key);
                self.bytes.extend_from_slice(value.unwrap_or_default());
                let (key, value) = (key.len(), value.map(<[u8]>::len));
                self.operations.push(
                    value.map_or(Operation::Delete { key }, |value| Operation::Put { key, value }),
                );
            }
            (Err(error), _) | (_, Err(error)) => _ = self.wrong.get_or_insert(error),
        }
    }

    /// Returns the batch as one of the engine.
    pub(super) fn batch(&self, db: &Db) -> Result<Batch> {
        if let Some(error) = &self.wrong {
            return Err(error.clone());
        }
        let mut batch = Batch::new();
        self.each(|key, value| match value {
            Some(value) => batch.put(db, key, value),
            None => batch.delete(db, key),
        });
        Ok(batch)
    }
}

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> Box<leveldb_writebatch_t> {
    Box::default()
}

/// Frees a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_destroy(batch: Option<Box<leveldb_writebatch_t>>) {
    drop(batch);
}

/// Empties a batch.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_clear(batch: Option<&mut leveldb_writebatch_t>) {
    if let Some(batch) = batch {
        batch.operations.clear();
        batch.bytes.clear();
        batch.wrong = None;
    }
}

/// Adds a put.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_put(
    batch: Option<&mut leveldb_writebatch_t>,
    key: *const c_char,
    klen: usize,
    value: *const c_char,
    vlen: usize,
) {
    if let Some(batch) = batch {
        batch.add(bytes(key, klen), Some(bytes(value, vlen)));
    }
}

/// Adds a delete.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_delete(
    batch: Option<&mut leveldb_writebatch_t>,
    key: *const c_char,
    klen: usize,
) {
    if let Some(batch) = batch {
        batch.add(bytes(key, klen), None);
    }
}

/// Calls the caller's functions with each operation, in their order.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_iterate(
    batch: Option<&leveldb_writebatch_t>,
    state: *mut c_void,
    put: Option<extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize)>,
    deleted: Option<extern "C" fn(*mut c_void, *const c_char, usize)>,
) {
    let (Some(batch), Some(put), Some(deleted)) = (batch, put, deleted) else { return };
    batch.each(|key, value| {
        let (first, len) = (key.as_ptr().cast(), key.len());
        match value {
            Some(value) => put(state, first, len, value.as_ptr().cast(), value.len()),
            None => deleted(state, first, len),
        }
    });
}

/// Adds the operations of another batch, which may be the same one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_append(
    destination: *mut leveldb_writebatch_t,
    source: *const leveldb_writebatch_t,
) {
    if destination.is_null() || source.is_null() {
        return;
    }
    // SAFETY: two batches of the caller, or one twice: the source is copied before anything is written.
    let (operations, bytes, wrong) = unsafe {
        let source = &*source;
        (source.operations.clone(), source.bytes.clone(), source.wrong.clone())
    };
    // SAFETY: no other reference to it is left.
    let destination = unsafe { &mut *destination };
    destination.operations.extend(operations);
    destination.bytes.extend_from_slice(&bytes);
    destination.wrong = destination.wrong.take().or(wrong);
}
