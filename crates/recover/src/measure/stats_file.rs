//! The file STATS: the counters of a running database, for other processes to read.
//!
//! Only the process that has a database open knows its counters, and its lock keeps others out. So
//! it writes them every `stats_period_ms`, if any has changed: to a new file that is renamed, so
//! that readers find a whole one. The file is never synced. A close removes it, and the next open
//! replaces one that a crash left.
//!
//! Owns: the file. Never does: fail another operation, or replace a file that is not Windrow's.

use crate::database::Database;
use crate::measure;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow_base::Result;
use windrow_env::Env;
use windrow_env::fs::{WriteOptions, is_not_found};
use windrow_format::names;
use windrow_read::stats::Stats;
use windrow_store::host::Host;

/// The first bytes of the file.
const MAGIC: &str = "windrow stats 1";

/// The statistics of a database that a process has open, as that process wrote them last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningStats {
    /// The process's number.
    pub process: u32,
    /// When, in milliseconds since 1970.
    pub written_ms: u64,
    /// As [`Stats::to_json`] gives them.
    pub json: String,
    /// As they are displayed.
    pub table: String,
}

impl RunningStats {
    fn parse(text: &str) -> Option<RunningStats> {
        let (head, rest) = text.split_once('\n')?;
        let mut words = head.strip_prefix(MAGIC)?.split_whitespace();
        let process = words.next()?.parse().ok()?;
        let written_ms = words.next()?.parse().ok()?;
        let (json, table) = rest.split_once('\n')?;
        let (json, table) = (json.to_owned(), table.to_owned());
        Some(RunningStats { process, written_ms, json, table })
    }
}

/// The content of a directory's file; `None` if there is none, or if it is another program's.
///
/// # Errors
/// The error of the file system.
pub fn read(env: &Env, dir: &Path) -> Result<Option<RunningStats>> {
    match env.fs.read_all(&dir.join(names::STATS)) {
        Ok(bytes) => Ok(std::str::from_utf8(&bytes).ok().and_then(RunningStats::parse)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the file of the process before, and writes a new one every `stats_period_ms`, until
/// the database closes.
pub fn start(database: &Arc<Database>) {
    remove(&database.env, &database.dir);
    let period_ms = database.settings.stats_period_ms;
    if period_ms == 0 {
        return;
    }
    let (weak, written) = (Arc::downgrade(database), AtomicU64::new(0));
    let post = move || {
        let Some(database) = weak.upgrade() else { return false };
        // A close waits for this, and then removes the file.
        let Ok(_underway) = database.workers.begin() else { return false };
        database.workers.contain(|| post_if_changed(&database, &written));
        true
    };
    database.env.jobs.every(period_ms, Arc::new(post));
}

pub fn post_if_changed(database: &Database, written: &AtomicU64) {
    let stats = measure::stats(database);
    let changes = stats.changes();
    if written.swap(changes, Ordering::Relaxed) != changes && database.watch_place().is_ok() {
        // If it fails, a reader sees how old the file is.
        let _ = write(database, &stats);
    }
}

pub fn write(host: &Host, stats: &Stats) -> Result<()> {
    if !is_free(host)? {
        return Ok(());
    }
    let (fs, temporary) = (&host.env.fs, host.dir.join(names::temp(0)));
    let (process, now_ms) = (std::process::id(), host.env.clock.wall_ms());
    let text = format!("{MAGIC} {process} {now_ms}\n{}\n{stats}", stats.to_json());
    // Left by a write that failed before.
    let _ = fs.remove(&temporary);
    let mut file = fs.create(&temporary, WriteOptions::default())?;
    let renamed = file
        .append(text.as_bytes())
        .and_then(|()| file.finish())
        .and_then(|()| fs.rename(&temporary, &host.dir.join(names::STATS)));
    renamed.inspect_err(|_| _ = fs.remove(&temporary))
}

/// Whether there is no file of this name, or one of Windrow's.
fn is_free(host: &Host) -> Result<bool> {
    match host.env.fs.read_all(&host.dir.join(names::STATS)) {
        Ok(bytes) => Ok(bytes.starts_with(MAGIC.as_bytes())),
        Err(error) if is_not_found(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Removes the file, if it is there and Windrow's.
pub fn remove(env: &Env, dir: &Path) {
    let path = dir.join(names::STATS);
    if matches!(env.fs.read_all(&path), Ok(bytes) if bytes.starts_with(MAGIC.as_bytes())) {
        let _ = env.fs.remove(&path);
    }
}
