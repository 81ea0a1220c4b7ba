//! Databases and snapshots.
//!
//! Owns: the handles. Never does: keep a pointer of the caller.

use super::batch::leveldb_writebatch_t;
use super::memory::{allocated, bytes, null, saving};
use super::options::{leveldb_options_t, leveldb_readoptions_t, leveldb_writeoptions_t};
use super::snapshot::leveldb_snapshot_t;
use crate::bytes::{array, c_bytes, path_in, put_out};
use crate::edge::contained;
use engine::{Db, Result, inspect, repair};
use libc::{c_char, c_int};
use std::fmt::Write as _;
use std::ops::Bound;

/// A database that is open.
pub struct leveldb_t(pub(super) Db);

fn given(db: Option<&leveldb_t>) -> Result<&Db> {
    db.map(|db| &db.0).ok_or_else(|| null("database"))
}

/// Opens the database in a directory. NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_open(
    options: Option<&leveldb_options_t>,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> Option<Box<leveldb_t>> {
    saving(errptr, || {
        let options = options.ok_or_else(|| null("options"))?.options()?;
        Ok(Box::new(leveldb_t(Db::open_with(path_in(name)?, options)?)))
    })
}

/// Closes the database, and frees the handle. Iterators and snapshots that are left go on reading.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(db: Option<Box<leveldb_t>>) {
    if let Some(db) = db {
        // LevelDB's function returns no error. Acknowledged writes are in the log.
        let _ = contained(|| db.0.close());
    }
}

/// Puts a value.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_put(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_writeoptions_t>,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    let sync = leveldb_writeoptions_t::sync(options);
    let _ = saving(errptr, || given(db)?.put_with(bytes(key, keylen)?, bytes(val, vallen)?, sync));
}

/// Deletes a key.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_delete(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_writeoptions_t>,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    let sync = leveldb_writeoptions_t::sync(options);
    let _ = saving(errptr, || given(db)?.delete_with(bytes(key, keylen)?, sync));
}

/// Writes all of a batch or nothing of it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_write(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_writeoptions_t>,
    batch: Option<&leveldb_writebatch_t>,
    errptr: *mut *mut c_char,
) {
    let sync = leveldb_writeoptions_t::sync(options);
    let _ = saving(errptr, || {
        let db = given(db)?;
        db.write(batch.ok_or_else(|| null("batch"))?.batch(db)?, sync).map(|_| ())
    });
}

/// The value of a key, to be freed by `leveldb_free`; NULL if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_get(
    db: Option<&leveldb_t>,
    options: Option<&leveldb_readoptions_t>,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    put_out(vallen, 0);
    let value = saving(errptr, || match leveldb_readoptions_t::snapshot(options) {
        Some(snapshot) => given(db)?.get_at(snapshot, bytes(key, keylen)?),
        None => given(db)?.get(bytes(key, keylen)?),
    });
    let Some(value) = value.flatten() else { return std::ptr::null_mut() };
    put_out(vallen, value.len());
    allocated(&value)
}

/// Makes a snapshot of the database as it is now.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_snapshot(
    db: Option<&leveldb_t>,
) -> Option<Box<leveldb_snapshot_t>> {
    db.map(|db| Box::new(leveldb_snapshot_t(db.0.snapshot())))
}

/// Frees a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_release_snapshot(
    _db: Option<&leveldb_t>,
    snapshot: Option<Box<leveldb_snapshot_t>>,
) {
    drop(snapshot);
}

/// A property, to be freed by `leveldb_free`; NULL if there is none of that name: `leveldb.stats`,
/// `leveldb.sstables`, `leveldb.approximate-memory-usage`, `leveldb.num-files-at-level` with a number.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_property_value(
    db: Option<&leveldb_t>,
    propname: *const c_char,
) -> *mut c_char {
    let value = contained(|| {
        let (db, name) = (given(db)?, c_bytes(propname, "the property's name")?);
        Ok(property(db, &String::from_utf8_lossy(name)))
    });
    value.ok().flatten().map_or(std::ptr::null_mut(), |value| allocated(value.as_bytes()))
}

fn property(db: &Db, name: &str) -> Option<String> {
    let stats = db.stats();
    match name.strip_prefix("leveldb.")? {
        "stats" => Some(stats.to_string()),
        "sstables" => Some(tables(db)),
        "approximate-memory-usage" => {
            let memory = stats.memory;
            Some((memory.memtables_bytes + memory.cache_bytes + memory.tables_bytes).to_string())
        }
        of_level => {
            let level = of_level.strip_prefix("num-files-at-level")?.parse::<usize>().ok()?;
            let levels = &stats.keyspaces.first()?.levels;
            let files = levels.get(level).map_or(0, |shape| shape.run_files + shape.log_files);
            Some(files.to_string())
        }
    }
}

/// Lists the tables by level, a line each.
fn tables(db: &Db) -> String {
    let mut text = String::new();
    for (_, version) in inspect::trees(db).iter().take(1) {
        for (number, level) in version.levels.iter().enumerate() {
            let _ = writeln!(text, "--- level {number} ---");
            for file in level.run.iter().chain(level.sst_log.iter()) {
                let (smallest, largest) =
                    (file.smallest.escape_ascii(), file.largest.escape_ascii());
                let _ =
                    writeln!(text, " {}:{}['{smallest}' .. '{largest}']", file.number, file.bytes);
            }
        }
    }
    text
}

/// Estimates the number of bytes that each range of keys takes.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_approximate_sizes(
    db: Option<&leveldb_t>,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
) {
    let count = usize::try_from(num_ranges).unwrap_or(0);
    let _ = contained(|| {
        let db = given(db)?;
        let starts = array(range_start_key, count, "keys")?;
        let start_lens = array(range_start_key_len, count, "lengths")?;
        let limits = array(range_limit_key, count, "keys")?;
        let limit_lens = array(range_limit_key_len, count, "lengths")?;
        for at in 0..count {
            let (start, limit) =
                (bytes(starts[at], start_lens[at])?, bytes(limits[at], limit_lens[at])?);
            let size = db.approximate_bytes(start, limit).unwrap_or(0);
            if !sizes.is_null() {
                put_out(sizes.wrapping_add(at), size);
            }
        }
        Ok(())
    });
}

/// Merges a range of keys down to the last level. NULL: to the end.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_compact_range(
    db: Option<&leveldb_t>,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    let _ = contained(|| {
        let bound = |key: *const c_char, len| match key.is_null() {
            true => Ok(Bound::Unbounded),
            false => bytes(key, len).map(Bound::Included),
        };
        let range = (bound(start_key, start_key_len)?, bound(limit_key, limit_key_len)?);
        given(db)?.compact_range(range)
    });
}

/// Removes a database. An absent database is no error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_destroy_db(
    _options: Option<&leveldb_options_t>,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    let _ = saving(errptr, || {
        let path = path_in(name)?;
        if path.exists() { Db::destroy(path) } else { Ok(()) }
    });
}

/// Makes a damaged database openable again.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_repair_db(
    options: Option<&leveldb_options_t>,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    let _ = saving(errptr, || {
        let options = options.ok_or_else(|| null("options"))?.options()?;
        repair(path_in(name)?, options).map(|_| ())
    });
}
