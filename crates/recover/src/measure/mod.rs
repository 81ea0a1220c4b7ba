//! The present state of a database in numbers: statistics, and sizes of ranges.
//!
//! Owns no state: it reads metadata and counters, and opens a table only where a range cuts it.
//! Never does: change the database.

pub mod stats_file;
pub mod tables_at_rest;

use crate::database::Database;
use std::cmp::Ordering as KeyOrdering;
use std::sync::Arc;
use windrow_base::key::{SEQ_MAX, push_internal, seek_trailer};
use windrow_base::{FileNumber, Result};
use windrow_env::sync::atomic::Ordering;
use windrow_plan::tree::File;
use windrow_plan::usage::Use;
use windrow_read::read::view::ReadView;
use windrow_read::stats::{KeyspaceStats, LevelShape, MemoryStats, Stats};
use windrow_store::tree::Tree;

/// The statistics of a database.
pub fn stats(database: &Database) -> Stats {
    if !database.write_state.is_of_this_process() {
        // Some are read under locks that no thread of a forked child may release.
        return Stats::default();
    }
    let mut stats = database.counters.snapshot();
    // Before the memtables, so that one which is flushed meanwhile does not count twice.
    let readers_bytes = database.caches.blocks.readers_bytes();
    let mut memtables_bytes = 0;
    for tree in database.trees().iter() {
        let view = tree.view();
        let memory: usize = view.memtables().map(|m| m.allocated_bytes()).sum();
        memtables_bytes += memory as u64;
        stats.push_keyspace(KeyspaceStats {
            name: tree.name.to_string(),
            policy: tree.policy.load().to_string(),
            measured_use: measured_use(tree),
            memtables_bytes: memory as u64,
            levels: shapes(&view),
            capacities: capacities(tree, &view),
            log_capacities: log_capacities(tree, &view),
            file_price_percent: file_price_percent(tree),
        });
    }
    let queue = database.pipeline.queue().lock();
    let older: u64 = queue.older_wals.iter().map(|(wal, _)| wal.written()).sum();
    stats.wal_live_bytes = older + queue.wal.written();
    drop(queue);
    stats.changes_bytes = database.catalog.retained().bytes();
    stats.changes_begin = database.catalog.retained().begin();
    stats.memory = MemoryStats {
        budget_bytes: database.settings.memory_bytes,
        memtables_bytes,
        cache_bytes: database.caches.blocks.bytes_used(),
        readers_bytes,
        tables_bytes: database.caches.tables.used_bytes(),
        merge_bytes: database.shares.merge_bytes
            * database.workers.merges_running.load(Ordering::Relaxed) as u64
            / (database.workers.merges_max() as u64 + 1),
        transactions_bytes: database.pipeline.transactions_bytes(),
        outside_bytes: database.caches.read_memory.outside_bytes(),
    };
    stats.readers_open = database.snapshots.len() as u64;
    stats.files_waiting = database.cleanup.waiting() as u64;
    stats.listener_panics = database.events.panics();
    stats.uptime_us = (database.env.clock.monotonic_ns() - database.opened_ns) / 1000;
    stats
}

fn measured_use(tree: &Tree) -> String {
    match tree.policy.load().usage {
        Use::Measured => {
            let work = tree.work.lock();
            let measured = work.notes.as_ref().and_then(|notes| notes.measured.as_ref());
            measured
                .map(|of| of.measured.to_string())
                .unwrap_or_else(|| windrow_plan::use_measure::UseMeasure::default().to_string())
        }
        _ => String::new(),
    }
}

/// The capacity of each existing level; 0 where nothing bounds it.
fn capacities(tree: &Tree, view: &ReadView) -> Vec<u64> {
    let (policy, sizes) = (tree.policy.load(), tree.sizes.load());
    let levels = (0..).take(view.version.levels.len());
    let capacity = |level| policy.capacity(&view.version, &sizes, level);
    levels.map(capacity).map(|bytes| if bytes == u64::MAX { 0 } else { bytes }).collect()
}

/// The capacity of each level's SST-log, and of level 0 as a whole.
fn log_capacities(tree: &Tree, view: &ReadView) -> Vec<u64> {
    let (policy, sizes) = (tree.policy.load(), tree.sizes.load());
    let capacity = |level| match level {
        0 => policy.level0_limit(&view.version, &sizes),
        level => policy.log_limit(&view.version, &sizes, level),
    };
    (0..).take(view.version.levels.len()).map(capacity).collect()
}

/// The price of a table over a point, if the policy asks for one.
fn file_price_percent(tree: &Tree) -> u64 {
    match tree.policy.load().merges_for_reads() {
        true => u64::from(tree.sizes.load().file_price_percent),
        false => 0,
    }
}

fn shapes(view: &ReadView) -> Vec<LevelShape> {
    let shape = |level: &Arc<windrow_plan::tree::Level>| LevelShape {
        run_files: level.run.len() as u64,
        log_files: level.sst_log.len() as u64,
        bytes: level.bytes(),
    };
    view.version.levels.iter().map(shape).collect()
}

/// How often lookups searched a table, as Merlin estimates it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSearches {
    /// The keyspace.
    pub keyspace: Arc<str>,
    /// The table's file number.
    pub file: FileNumber,
    /// Gets whose key was within the table's bounds and in no table read before it, filtered or
    /// not, as if the table had existed since the first get.
    pub queries: f64,
    /// Those of them that found their key in it.
    pub hits: f64,
}

/// The estimates of every table of the keyspaces whose policy makes any.
pub fn table_searches(database: &Database) -> Vec<TableSearches> {
    let mut searches = Vec::new();
    for tree in database.trees().iter() {
        let (estimates, sample) = (tree.estimates(), tree.reads.access.sample());
        searches.extend(estimates.iter().map(|(file, estimate)| TableSearches {
            keyspace: tree.name.clone(),
            file,
            queries: estimate.queries * sample,
            hits: estimate.hits * sample,
        }));
    }
    searches
}

/// About how many bytes the keys in `from..to` take, in tables and memtables.
pub fn approximate_bytes(tree: &Tree, from: &[u8], to: &[u8]) -> Result<u64> {
    if tree.reads.order.compare(from, to) != KeyOrdering::Less {
        return Ok(0);
    }
    let view = tree.pin();
    let mut bytes = memtable_bytes(&view, tree, from, to);
    for file in view.levels.iter().flat_map(|level| level.files()) {
        let meta = &file.file;
        let begins_inside = tree.reads.order.compare(from, &meta.smallest).is_le();
        let ends_inside = tree.reads.order.compare(&meta.largest, to).is_lt();
        let outside = tree.reads.order.compare(&meta.largest, from).is_lt()
            || tree.reads.order.compare(&meta.smallest, to).is_ge();
        if outside {
            continue;
        }
        if begins_inside && ends_inside {
            bytes += meta.bytes;
            continue;
        }
        let open = file.open(&tree.reads.tables)?;
        let before = |key: &[u8]| {
            let mut internal = Vec::new();
            push_internal(&mut internal, key, seek_trailer(SEQ_MAX));
            open.table.data_bytes_before(&internal)
        };
        let low = if begins_inside { 0 } else { before(from) };
        let high = if ends_inside { meta.bytes } else { before(to) };
        bytes += high.saturating_sub(low);
    }
    Ok(bytes)
}

/// About how many keys a tree has: see `Keyspace::approximate_len`.
pub fn approximate_len(tree: &Tree) -> u64 {
    let view = tree.pin();
    let in_memory =
        view.memtables().map(|memtable| (memtable.entries(), memtable.point_tombstones()));
    let files = view.levels.iter().flat_map(|level| level.files());
    let in_files = files.map(|file| {
        let File { entries, point_tombstones, .. } = &*file.file;
        (*entries, *point_tombstones)
    });
    let (entries, tombstones) = in_memory
        .chain(in_files)
        .fold((0u64, 0u64), |sum, of| (sum.0.saturating_add(of.0), sum.1.saturating_add(of.1)));
    // A tombstone is an entry too, and hides another.
    entries.saturating_sub(tombstones.saturating_mul(2))
}

/// Memtables are small: their entries in the range are counted up to a bound, and the others are
/// assumed to be like them.
fn memtable_bytes(view: &ReadView, tree: &Tree, from: &[u8], to: &[u8]) -> u64 {
    const COUNTED_MAX: usize = 10_000;
    let mut bytes = 0;
    for memtable in view.memtables() {
        let Some(mut cursor) = memtable.cursor() else { continue };
        cursor.seek(from, seek_trailer(SEQ_MAX));
        let (mut counted, mut counted_bytes) = (0, 0);
        while cursor.valid() && tree.reads.order.compare(cursor.key(), to).is_lt() {
            counted_bytes += (cursor.key().len() + cursor.value().len()) as u64;
            counted += 1;
            if counted == COUNTED_MAX {
                counted_bytes = counted_bytes.max(memtable.allocated_bytes() as u64 / 2);
                break;
            }
            cursor.next();
        }
        bytes += counted_bytes;
    }
    bytes
}
