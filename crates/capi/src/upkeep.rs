//! Upkeep of a database: flushes, copies, checks, repair, statistics.
//!
//! Owns: no state. Never does: open a database for longer than a call.

use crate::bytes::{path_in, put_out, text_out};
use crate::database::windrow_db;
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::options::windrow_options;
use engine::{Db, Error, Options, repair};
use serde_json::json;
use std::ffi::c_char;

/// Makes everything that was written durable.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_sync(db: Option<&windrow_db>, error: *mut *mut windrow_error) -> bool {
    done(error, || given(db, "database")?.0.sync())
}

/// Writes all memtables to tables.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_flush(db: Option<&windrow_db>, error: *mut *mut windrow_error) -> bool {
    done(error, || given(db, "database")?.0.flush())
}

/// Merges all keyspaces down to their last levels, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_compact(db: Option<&windrow_db>, error: *mut *mut windrow_error) -> bool {
    done(error, || given(db, "database")?.0.compact())
}

/// Waits until nothing is left to be flushed or merged.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_wait_idle(
    db: Option<&windrow_db>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(db, "database")?.0.wait_idle())
}

/// Makes a copy of the database as it is now in a directory that is empty or does not exist, by hard links where both
/// are on one file system.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_checkpoint(
    db: Option<&windrow_db>,
    path: *const c_char,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(db, "database")?.0.checkpoint(path_in(path)?))
}

/// Reads every table and log, and checks every checksum. Returns true if it finds no problem. `problems` (may be NULL)
/// becomes the number of problems, and the error the first of them.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_verify(
    db: Option<&windrow_db>,
    problems: *mut u64,
    error: *mut *mut windrow_error,
) -> bool {
    put_out(problems, 0);
    done(error, || {
        let report = given(db, "database")?.0.verify()?;
        put_out(problems, report.problems.len() as u64);
        report.problems.into_iter().next().map_or(Ok(()), Err)
    })
}

/// Turns writing on again after a failure, once its cause is gone: for one, when there is room again.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_resume(db: Option<&windrow_db>, error: *mut *mut windrow_error) -> bool {
    done(error, || given(db, "database")?.0.resume())
}

/// True if writing is on; else `error` becomes the error that turned it off.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_is_writable(
    db: Option<&windrow_db>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(db, "database")?.0.write_error().map_or(Ok(()), Err))
}

/// All counters and sizes as JSON, to be freed by windrow_string_free; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_stats_json(db: Option<&windrow_db>) -> *mut c_char {
    db.map_or(std::ptr::null_mut(), |db| text_out(db.0.stats().to_json()))
}

/// All counters and sizes as a table for people, to be freed likewise; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_stats_text(db: Option<&windrow_db>) -> *mut c_char {
    db.map_or(std::ptr::null_mut(), |db| text_out(db.0.stats().to_string()))
}

/// Removes a database's files, and its directory if nothing else is in it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_destroy(path: *const c_char, error: *mut *mut windrow_error) -> bool {
    done(error, || Db::destroy(path_in(path)?))
}

/// Makes a damaged database openable again from its readable parts. `options` may be NULL, but must have its
/// comparators and merge operators. Returns the report as JSON, to be freed by windrow_string_free; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_repair(
    path: *const c_char,
    options: Option<&windrow_options>,
    error: *mut *mut windrow_error,
) -> *mut c_char {
    let repaired = caught(error, || {
        let options = options.map_or_else(Options::default, |of| of.options.clone());
        repair(path_in(path)?, options)
    });
    let Some(report) = repaired else { return std::ptr::null_mut() };
    let problems: Vec<String> = report.problems.iter().map(Error::to_string).collect();
    let told = json!({
        "lost_something": report.lost_something(),
        "tables_kept": report.tables_kept,
        "tables_salvaged": report.tables_salvaged,
        "tables_lost": report.tables_lost,
        "entries_salvaged": report.entries_salvaged,
        "batches_replayed": report.batches_replayed,
        "manifest_rebuilt": report.manifest_rebuilt,
        "keyspaces_renamed": report.keyspaces_renamed,
        "originals": report.originals,
        "problems": problems,
    });
    text_out(told.to_string())
}
