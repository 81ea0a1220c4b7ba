//! Cursors over the entries of a keyspace.
//!
//! Owns: the handles, and the options of a read. Never does: write.

use crate::bytes::windrow_slice;
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::keyspace::windrow_keyspace;
use crate::snapshot::windrow_snapshot;
use engine::{Cursor, ReadOptions, Result};

/// How a cursor reads. Zeros, with `fill_cache` true, mean all entries of the newest state.
#[repr(C)]
pub struct windrow_read_options<'a> {
    /// The snapshot that is read; NULL: the newest state when the cursor is made.
    pub snapshot: Option<&'a windrow_snapshot>,
    /// The first key that may be returned; NULL: from the first key.
    pub lower: Option<&'a windrow_slice>,
    /// The bound before which the cursor ends; NULL: to the last key.
    pub upper: Option<&'a windrow_slice>,
    /// Whether the blocks that are read enter the cache: false for one pass over much data.
    pub fill_cache: bool,
}

fn read_options(of: Option<&windrow_read_options<'_>>) -> Result<ReadOptions> {
    let Some(of) = of else { return Ok(ReadOptions::default()) };
    let owned = |bound: Option<&windrow_slice>| -> Result<Option<Vec<u8>>> {
        bound.map(|bound| bound.bytes().map(<[u8]>::to_vec)).transpose()
    };
    Ok(ReadOptions {
        lower: owned(of.lower)?,
        upper: owned(of.upper)?,
        fill_cache: of.fill_cache,
        snapshot: of.snapshot.map(|snapshot| snapshot.0.clone()),
        ..ReadOptions::default()
    })
}

/// A place among the entries of a keyspace, or none. It shows the entries as of the moment at which it was made; later
/// writes do not change it. Used by one thread at a time.
pub struct windrow_cursor(Cursor);

/// Makes a cursor, at no entry yet. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_new(
    keyspace: Option<&windrow_keyspace>,
    options: Option<&windrow_read_options<'_>>,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_cursor>> {
    caught(error, || {
        let cursor = given(keyspace, "keyspace")?.keyspace.cursor(read_options(options)?);
        cursor.status()?;
        Ok(Box::new(windrow_cursor(cursor)))
    })
}

/// Frees a cursor.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_free(cursor: Option<Box<windrow_cursor>>) {
    drop(cursor);
}

/// Moves a cursor; whether it is at an entry then.
fn moved(
    cursor: Option<&mut windrow_cursor>,
    error: *mut *mut windrow_error,
    go: impl FnOnce(&mut Cursor) -> Result<bool>,
) -> bool {
    caught(error, || go(&mut given(cursor, "cursor")?.0)).unwrap_or(false)
}

/// Goes to the first entry. True if there is one; false at an end, and on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_seek_first(
    cursor: Option<&mut windrow_cursor>,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, Cursor::seek_first)
}

/// Goes to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_seek_last(
    cursor: Option<&mut windrow_cursor>,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, Cursor::seek_last)
}

/// Goes to the first entry whose key is `key` or after it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_seek(
    cursor: Option<&mut windrow_cursor>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, |cursor| cursor.seek(key.bytes()?))
}

/// Goes to the last entry whose key is before `key`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_seek_before(
    cursor: Option<&mut windrow_cursor>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, |cursor| cursor.seek_before(key.bytes()?))
}

/// Goes to the next entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_next(
    cursor: Option<&mut windrow_cursor>,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, Cursor::next)
}

/// Goes to the entry before.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_prev(
    cursor: Option<&mut windrow_cursor>,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, Cursor::prev)
}

/// Whether the cursor is at an entry.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_valid(cursor: Option<&windrow_cursor>) -> bool {
    cursor.is_some_and(|cursor| cursor.0.valid())
}

/// The key of the entry, valid until the cursor is moved or freed; no bytes where it is at none.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_key(cursor: Option<&windrow_cursor>) -> windrow_slice {
    let at = cursor.filter(|cursor| cursor.0.valid());
    at.map_or(windrow_slice::EMPTY, |cursor| windrow_slice::of(cursor.0.key()))
}

/// The value of the entry, valid until the cursor is moved or freed; no bytes where it is at none.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_value(cursor: Option<&windrow_cursor>) -> windrow_slice {
    let at = cursor.filter(|cursor| cursor.0.valid());
    at.map_or(windrow_slice::EMPTY, |cursor| windrow_slice::of(cursor.0.value()))
}

/// Shows the newest state from now on, at the same key or the one after it; clears an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_refresh(
    cursor: Option<&mut windrow_cursor>,
    error: *mut *mut windrow_error,
) -> bool {
    moved(cursor, error, Cursor::refresh)
}

/// Whether the last move failed. The error stays with the cursor.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_cursor_status(
    cursor: Option<&windrow_cursor>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(cursor, "cursor")?.0.status())
}
