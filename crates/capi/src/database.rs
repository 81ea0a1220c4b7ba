//! Opening and closing a database, and its keyspaces.
//!
//! Owns: the handle. Never does: read or write a key.

use crate::bytes::{c_string, path_in, text_in, text_out};
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::keyspace::windrow_keyspace;
use crate::options::{keyspace_options, windrow_keyspace_options, windrow_options};
use crate::snapshot::windrow_snapshot;
use engine::{Db, Options};
use std::ffi::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;

/// A database that is open. Any number of threads may use it at once.
pub struct windrow_db(pub(crate) Db);

/// The version of the library, like "0.1.0". Not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Opens the database in a directory, which is created if it does not exist. `options` may be NULL. To be closed by
/// windrow_close and freed by windrow_free.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_open(
    path: *const c_char,
    options: Option<&windrow_options>,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_db>> {
    caught(error, || {
        let options = options.map_or_else(Options::default, |of| of.options.clone());
        Ok(Box::new(windrow_db(Db::open_with(path_in(path)?, options)?)))
    })
}

/// Writes the memtables to tables, and closes the database: the directory is free. All handles stay valid until they
/// are freed. Their calls fail, except that cursors and snapshots go on reading. A second close does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_close(db: Option<&windrow_db>, error: *mut *mut windrow_error) -> bool {
    done(error, || given(db, "database")?.0.close())
}

/// Frees the handle. The last handle of a database that was not closed closes it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_free(db: Option<Box<windrow_db>>) {
    drop(db);
}

/// The database's directory, to be freed by windrow_string_free; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_path(db: Option<&windrow_db>) -> *mut c_char {
    db.map_or(std::ptr::null_mut(), |db| text_out(db.0.path().as_os_str().as_bytes()))
}

/// The keyspace that every database has. To be freed by windrow_keyspace_free; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_default_keyspace(
    db: Option<&windrow_db>,
) -> Option<Box<windrow_keyspace>> {
    db.map(|db| windrow_keyspace::boxed(db.0.default_keyspace()))
}

/// The keyspace of that name, which is created if it does not exist. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_open(
    db: Option<&windrow_db>,
    name: *const c_char,
    options: Option<&windrow_keyspace_options>,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_keyspace>> {
    caught(error, || {
        let (db, name) = (&given(db, "database")?.0, text_in(name, "the keyspace's name")?);
        Ok(windrow_keyspace::boxed(db.keyspace_with(name, keyspace_options(options)?)?))
    })
}

/// The keyspace of that name; NULL, without an error, if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_find(
    db: Option<&windrow_db>,
    name: *const c_char,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_keyspace>> {
    caught(error, || {
        let (db, name) = (&given(db, "database")?.0, text_in(name, "the keyspace's name")?);
        Ok(db.open_keyspace(name)?.map(windrow_keyspace::boxed))
    })
    .flatten()
}

/// Calls `each` with the name of every keyspace, which is valid during the call.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspaces(
    db: Option<&windrow_db>,
    state: *mut c_void,
    each: Option<extern "C" fn(state: *mut c_void, name: *const c_char)>,
) {
    let (Some(db), Some(each)) = (db, each) else { return };
    for name in db.0.keyspaces() {
        each(state, c_string(name).as_ptr());
    }
}

/// Drops a keyspace with all its entries. Its handles fail from then on.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_drop(
    db: Option<&windrow_db>,
    name: *const c_char,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(db, "database")?.0.drop_keyspace(text_in(name, "the keyspace's name")?))
}

/// A snapshot of the database as it is now. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_new(db: Option<&windrow_db>) -> Option<Box<windrow_snapshot>> {
    db.map(|db| Box::new(windrow_snapshot(db.0.snapshot())))
}
