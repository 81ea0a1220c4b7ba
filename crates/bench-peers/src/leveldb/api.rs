//! LevelDB's C interface, as far as the adapter needs it.
//!
//! Owns: the declarations of `leveldb/c.h`, who frees which object, and every
//! `unsafe` that is about it. Never does: choose a setting.

#![allow(unsafe_code, reason = "LevelDB has no interface but C's and C++'s")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use windrow_bench::store::Result;

/// An object of LevelDB's; only the library knows its fields.
#[repr(C)]
struct Opaque([u8; 0]);

type Object = *mut Opaque;

// SAFETY: the names, arguments and results are those of `leveldb/c.h`, 1.23;
// its `char*` with a length are bytes here.
#[link(name = "leveldb", kind = "static")]
unsafe extern "C" {
    fn leveldb_open(options: Object, name: *const c_char, error: *mut *mut c_char) -> Object;
    fn leveldb_close(db: Object);
    fn leveldb_put(
        db: Object,
        options: Object,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_delete(
        db: Object,
        options: Object,
        key: *const u8,
        key_bytes: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_write(db: Object, options: Object, batch: Object, error: *mut *mut c_char);
    fn leveldb_get(
        db: Object,
        options: Object,
        key: *const u8,
        key_bytes: usize,
        value_bytes: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut u8;
    fn leveldb_property_value(db: Object, name: *const c_char) -> *mut c_char;
    fn leveldb_compact_range(
        db: Object,
        start: *const u8,
        start_bytes: usize,
        limit: *const u8,
        limit_bytes: usize,
    );

    fn leveldb_create_iterator(db: Object, options: Object) -> Object;
    fn leveldb_iter_destroy(cursor: Object);
    fn leveldb_iter_valid(cursor: Object) -> u8;
    fn leveldb_iter_seek(cursor: Object, key: *const u8, key_bytes: usize);
    fn leveldb_iter_next(cursor: Object);
    fn leveldb_iter_key(cursor: Object, bytes: *mut usize) -> *const u8;
    fn leveldb_iter_value(cursor: Object, bytes: *mut usize) -> *const u8;
    fn leveldb_iter_get_error(cursor: Object, error: *mut *mut c_char);

    fn leveldb_writebatch_create() -> Object;
    fn leveldb_writebatch_destroy(batch: Object);
    fn leveldb_writebatch_put(
        batch: Object,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
    );
    fn leveldb_writebatch_delete(batch: Object, key: *const u8, key_bytes: usize);

    fn leveldb_options_create() -> Object;
    fn leveldb_options_destroy(options: Object);
    fn leveldb_options_set_filter_policy(options: Object, filter: Object);
    fn leveldb_options_set_create_if_missing(options: Object, on: u8);
    fn leveldb_options_set_write_buffer_size(options: Object, bytes: usize);
    fn leveldb_options_set_max_open_files(options: Object, files: c_int);
    fn leveldb_options_set_cache(options: Object, cache: Object);
    fn leveldb_options_set_block_size(options: Object, bytes: usize);
    fn leveldb_options_set_max_file_size(options: Object, bytes: usize);
    fn leveldb_options_set_compression(options: Object, compression: c_int);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Object;
    fn leveldb_filterpolicy_destroy(filter: Object);
    fn leveldb_cache_create_lru(bytes: usize) -> Object;
    fn leveldb_cache_destroy(cache: Object);
    fn leveldb_readoptions_create() -> Object;
    fn leveldb_readoptions_destroy(options: Object);
    fn leveldb_writeoptions_create() -> Object;
    fn leveldb_writeoptions_destroy(options: Object);
    fn leveldb_writeoptions_set_sync(options: Object, on: u8);

    fn leveldb_free(memory: *mut c_void);
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;

    // `leveldb::EnvPosixTestHelper::SetReadOnlyMMapLimit(int)`: only the static
    // library has it, hence the static link.
    #[link_name = "_ZN7leveldb18EnvPosixTestHelper20SetReadOnlyMMapLimitEi"]
    fn leveldb_set_mmap_limit(files: c_int);
}

/// Keeps this process's LevelDB from mapping files, if called before the first
/// database is opened; later it changes nothing.
pub(super) fn map_nothing() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: sets a number that LevelDB reads when its environment is made.
    ONCE.call_once(|| unsafe { leveldb_set_mmap_limit(0) });
}

/// `leveldb_no_compression` of the header.
const NO_COMPRESSION: c_int = 0;

/// Version of the library that is linked, as in `1.23`.
pub(super) fn version() -> String {
    // SAFETY: both take nothing and return a constant.
    let (major, minor) = unsafe { (leveldb_major_version(), leveldb_minor_version()) };
    format!("{major}.{minor}")
}

/// Takes an error that LevelDB set, if it did.
fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: an error that is set is a string with its zero that is ours to
    // free, with LevelDB's own function and once: it is not kept.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        leveldb_free(error.cast());
        text
    };
    Err(format!("leveldb: {text}").into())
}

/// The settings that a database is opened with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) write_buffer_bytes: usize,
    /// 0 for LevelDB's own cache of 8 MiB, which it makes if it is given none.
    pub(super) cache_bytes: usize,
    pub(super) block_bytes: usize,
    pub(super) file_bytes: usize,
    pub(super) open_files: i32,
    /// 0 for no filter.
    pub(super) filter_bits: i32,
}

/// An object that is destroyed with its owner.
struct Owned {
    object: NonNull<Opaque>,
    destroy: unsafe extern "C" fn(Object),
}

impl Owned {
    /// Takes the result of a `create` function, and the function that destroys
    /// it.
    fn new(object: Object, destroy: unsafe extern "C" fn(Object)) -> Result<Owned> {
        let object = NonNull::new(object).ok_or("leveldb: out of memory")?;
        Ok(Owned { object, destroy })
    }

    fn get(&self) -> Object {
        self.object.as_ptr()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the object is from the `create` that belongs to `destroy`,
        // and nobody else destroys it.
        unsafe { (self.destroy)(self.get()) }
    }
}

/// An open database.
pub(super) struct Database {
    // Dropped in this order: the database uses all the others.
    db: Owned,
    read: Owned,
    /// The options of a write without a sync, and with one.
    write: [Owned; 2],
    _options: Owned,
    _cache: Owned,
    _filter: Option<Owned>,
}

// SAFETY: LevelDB's databases may be used from several threads at once without
// further locks (its doc/index.md, "Concurrency"); the options are only read
// once they are made, and nothing of any of them belongs to a thread.
unsafe impl Send for Database {}
// SAFETY: as for `Send`.
unsafe impl Sync for Database {}

impl Database {
    /// Opens or makes a database.
    ///
    /// # Errors
    /// LevelDB's.
    pub(super) fn open(dir: &Path, config: &Config) -> Result<Database> {
        let name = CString::new(dir.as_os_str().as_bytes())?;
        let cache_bytes = config.cache_bytes;
        // SAFETY: each `create` is paired with its own `destroy`.
        let (options, cache, read, filter) = unsafe {
            let filter = match config.filter_bits {
                0 => None,
                bits => {
                    let filter = leveldb_filterpolicy_create_bloom(bits);
                    Some(Owned::new(filter, leveldb_filterpolicy_destroy)?)
                }
            };
            (
                Owned::new(leveldb_options_create(), leveldb_options_destroy)?,
                Owned::new(leveldb_cache_create_lru(cache_bytes), leveldb_cache_destroy)?,
                Owned::new(leveldb_readoptions_create(), leveldb_readoptions_destroy)?,
                filter,
            )
        };
        // SAFETY: all objects are alive, and outlive the options' use: they
        // are dropped after the database. No filter is the null pointer.
        unsafe {
            let options = options.get();
            leveldb_options_set_create_if_missing(options, 1);
            leveldb_options_set_write_buffer_size(options, config.write_buffer_bytes);
            leveldb_options_set_max_open_files(options, config.open_files);
            leveldb_options_set_cache(options, cache.get());
            leveldb_options_set_block_size(options, config.block_bytes);
            leveldb_options_set_max_file_size(options, config.file_bytes);
            leveldb_options_set_compression(options, NO_COMPRESSION);
            let filter = filter.as_ref().map_or(null_mut(), Owned::get);
            leveldb_options_set_filter_policy(options, filter);
        }
        let write = [Database::write_options(false)?, Database::write_options(true)?];
        let mut error = null_mut();
        // SAFETY: the options are alive and the name ends in a zero.
        let db = unsafe { leveldb_open(options.get(), name.as_ptr(), &mut error) };
        check(error)?;
        let db = Owned::new(db, leveldb_close)?;
        Ok(Database { db, read, write, _options: options, _cache: cache, _filter: filter })
    }

    fn write_options(sync: bool) -> Result<Owned> {
        // SAFETY: made here, set once, destroyed by `Owned`.
        unsafe {
            let options = Owned::new(leveldb_writeoptions_create(), leveldb_writeoptions_destroy)?;
            leveldb_writeoptions_set_sync(options.get(), u8::from(sync));
            Ok(options)
        }
    }

    /// Sets a key.
    ///
    /// # Errors
    /// LevelDB's.
    pub(super) fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: the database and its options are alive; LevelDB copies the
        // bytes, which the pointers and lengths describe, before it returns.
        unsafe {
            leveldb_put(
                self.db.get(),
                self.write[usize::from(sync)].get(),
                key.as_ptr(),
                key.len(),
                value.as_ptr(),
                value.len(),
                &mut error,
            );
        }
        check(error)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// LevelDB's.
    pub(super) fn delete(&self, key: &[u8], sync: bool) -> Result<()> {
        let mut error = null_mut();
        let write = self.write[usize::from(sync)].get();
        // SAFETY: as in `put`.
        unsafe { leveldb_delete(self.db.get(), write, key.as_ptr(), key.len(), &mut error) }
        check(error)
    }

    /// Does all writes of a batch or none.
    ///
    /// # Errors
    /// LevelDB's.
    pub(super) fn write(&self, batch: &Batch, sync: bool) -> Result<()> {
        let mut error = null_mut();
        let write = self.write[usize::from(sync)].get();
        // SAFETY: database, options and batch are alive.
        unsafe { leveldb_write(self.db.get(), write, batch.0.get(), &mut error) }
        check(error)
    }

    /// Reads a key's value into `value`; returns whether the key was there.
    ///
    /// # Errors
    /// LevelDB's.
    pub(super) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let (mut bytes, mut error) = (0, null_mut());
        let read = self.read.get();
        // SAFETY: as in `put`; the length and the error are ours to be set.
        let found = unsafe {
            leveldb_get(self.db.get(), read, key.as_ptr(), key.len(), &mut bytes, &mut error)
        };
        check(error)?;
        if found.is_null() {
            return Ok(false);
        }
        // SAFETY: a pointer that is not null is an array of that length, ours
        // to free, and it is not used after.
        unsafe {
            value.extend_from_slice(std::slice::from_raw_parts(found, bytes));
            leveldb_free(found.cast());
        }
        Ok(true)
    }

    /// Returns a property's text, `None` if there is no such property.
    pub(super) fn property(&self, name: &CStr) -> Option<String> {
        // SAFETY: the database is alive and the name ends in a zero.
        let text = unsafe { leveldb_property_value(self.db.get(), name.as_ptr()) };
        if text.is_null() {
            return None;
        }
        // SAFETY: a pointer that is not null is a string with its zero, ours to
        // free.
        unsafe {
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            leveldb_free(text.cast());
            Some(owned)
        }
    }

    /// Compacts a range of keys, both ends included. Before that it writes the
    /// memtable out, whatever keys it holds.
    pub(super) fn compact_range(&self, start: &[u8], limit: &[u8]) {
        let db = self.db.get();
        // SAFETY: the database is alive; the slices outlive the call, and are
        // not null even when they are empty.
        unsafe {
            leveldb_compact_range(db, start.as_ptr(), start.len(), limit.as_ptr(), limit.len());
        }
    }

    /// Returns a cursor over the database as it is now, at no entry.
    ///
    /// # Errors
    /// If memory is short.
    pub(super) fn cursor(&self) -> Result<Cursor<'_>> {
        // SAFETY: database and options are alive; `Cursor` borrows them.
        let cursor = unsafe { leveldb_create_iterator(self.db.get(), self.read.get()) };
        Ok(Cursor { cursor: Owned::new(cursor, leveldb_iter_destroy)?, _database: self })
    }
}

/// Writes that are applied together.
pub(super) struct Batch(Owned);

impl Batch {
    pub(super) fn new() -> Result<Batch> {
        // SAFETY: made here, destroyed by `Owned`.
        Ok(Batch(Owned::new(unsafe { leveldb_writebatch_create() }, leveldb_writebatch_destroy)?))
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let batch = self.0.get();
        // SAFETY: the batch is alive and copies the bytes.
        unsafe {
            leveldb_writebatch_put(batch, key.as_ptr(), key.len(), value.as_ptr(), value.len());
        }
    }

    pub(super) fn delete(&mut self, key: &[u8]) {
        // SAFETY: the batch is alive and copies the bytes.
        unsafe { leveldb_writebatch_delete(self.0.get(), key.as_ptr(), key.len()) }
    }
}

/// A cursor; it must not outlive the database.
pub(super) struct Cursor<'a> {
    cursor: Owned,
    _database: &'a Database,
}

impl Cursor<'_> {
    /// Moves to the first key at or after `key`.
    pub(super) fn seek(&mut self, key: &[u8]) {
        // SAFETY: the cursor is alive and copies the key.
        unsafe { leveldb_iter_seek(self.cursor.get(), key.as_ptr(), key.len()) }
    }

    /// Moves to the next entry. Does nothing past the end, where LevelDB's must
    /// not go.
    pub(super) fn next(&mut self) {
        if self.valid() {
            // SAFETY: the cursor is alive and at an entry.
            unsafe { leveldb_iter_next(self.cursor.get()) }
        }
    }

    fn valid(&self) -> bool {
        // SAFETY: the cursor is alive.
        unsafe { leveldb_iter_valid(self.cursor.get()) != 0 }
    }

    /// Returns the entry that the cursor is at.
    pub(super) fn entry(&self) -> Option<(&[u8], &[u8])> {
        if !self.valid() {
            return None;
        }
        let cursor = self.cursor.get();
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: the cursor is at an entry; the slices stay valid until it is
        // moved, which the borrow of `self` forbids.
        unsafe {
            let key = leveldb_iter_key(cursor, &mut key_bytes);
            let value = leveldb_iter_value(cursor, &mut value_bytes);
            Some((
                std::slice::from_raw_parts(key, key_bytes),
                std::slice::from_raw_parts(value, value_bytes),
            ))
        }
    }

    /// Returns the error that ended the scan, if it did not reach the last
    /// entry.
    ///
    /// # Errors
    /// LevelDB's.
    pub(super) fn status(&self) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: the cursor is alive, the error ours to be set.
        unsafe { leveldb_iter_get_error(self.cursor.get(), &mut error) }
        check(error)
    }
}
