//! Iterators.
//!
//! Owns: the handle. Never does: report a failure from a move; `leveldb_iter_get_error` does.

use super::database::leveldb_t;
use super::memory::{bytes, lent, null, saving};
use super::options::leveldb_readoptions_t;
use crate::edge::contained;
use engine::{Cursor, Result};
use libc::c_char;

/// A place among the entries, or none.
pub struct leveldb_iterator_t(Cursor);

/// Makes an iterator, at no entry yet. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_iterator(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_readoptions_t>,
) -> Option<Box<leveldb_iterator_t>> {
    let db = db?;
    let cursor = contained(|| Ok(db.0.cursor(leveldb_readoptions_t::options(options))));
    cursor.ok().map(|cursor| Box::new(leveldb_iterator_t(cursor)))
}

/// Frees an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_destroy(iterator: Option<Box<leveldb_iterator_t>>) {
    drop(iterator);
}

/// Whether the iterator is at an entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_valid(iterator: Option<&leveldb_iterator_t>) -> u8 {
    u8::from(iterator.is_some_and(|iterator| iterator.0.valid()))
}

/// Moves the iterator. An error stays with the cursor.
fn go(iterator: Option<&mut leveldb_iterator_t>, go: impl FnOnce(&mut Cursor) -> Result<bool>) {
    if let Some(iterator) = iterator {
        let _ = contained(|| go(&mut iterator.0));
    }
}

/// Goes to the first entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_first(iterator: Option<&mut leveldb_iterator_t>) {
    go(iterator, Cursor::seek_first);
}

/// Goes to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek_to_last(iterator: Option<&mut leveldb_iterator_t>) {
    go(iterator, Cursor::seek_last);
}

/// Goes to the first entry whose key is this one or after it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_seek(
    iterator: Option<&mut leveldb_iterator_t>,
    key: *const c_char,
    klen: usize,
) {
    go(iterator, |cursor| cursor.seek(bytes(key, klen)?));
}

/// Goes to the next entry. The iterator must be at one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_next(iterator: Option<&mut leveldb_iterator_t>) {
    go(iterator, |cursor| if cursor.valid() { cursor.next() } else { Ok(false) });
}

/// Goes to the entry before. The iterator must be at one.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_prev(iterator: Option<&mut leveldb_iterator_t>) {
    go(iterator, |cursor| if cursor.valid() { cursor.prev() } else { Ok(false) });
}

/// The key, valid until the iterator is moved. NULL where it is at no entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_key(
    iterator: Option<&leveldb_iterator_t>,
    klen: *mut usize,
) -> *const c_char {
    match iterator.filter(|iterator| iterator.0.valid()) {
        Some(iterator) => lent(iterator.0.key(), klen),
        None => none(klen),
    }
}

/// The value, valid until the iterator is moved. NULL where it is at no entry.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_value(
    iterator: Option<&leveldb_iterator_t>,
    vlen: *mut usize,
) -> *const c_char {
    match iterator.filter(|iterator| iterator.0.valid()) {
        Some(iterator) => lent(iterator.0.value(), vlen),
        None => none(vlen),
    }
}

fn none(len: *mut usize) -> *const c_char {
    crate::bytes::put_out(len, 0);
    std::ptr::null()
}

/// Reports the error of the last move, if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_iter_get_error(
    iterator: Option<&leveldb_iterator_t>,
    errptr: *mut *mut c_char,
) {
    let _ = saving(errptr, || iterator.ok_or_else(|| null("iterator"))?.0.status());
}
