//! Verify: checks every checksum of every live table, the order of its keys, and that it agrees
//! with the manifest; the manifest itself, and the logs (`logs.rs`).
//!
//! Damage is reported and is no error, since one bad table must not hide another.
//!
//! Owns: the walk over the tables, and their checks. Never does: write.

mod logs;
mod report;

pub use report::VerifyReport;

use crate::database::Database;
use std::sync::Arc;
use windrow_base::{Error, Result, unless_mutant};
use windrow_env::fs::ReadFileOptions;
use windrow_format::table::{self, Expect};
use windrow_read::read::level_iter::LevelIter;
use windrow_read::read::merge_iter::{MergeIter, MergeSource};
use windrow_read::read::table_iter::TableIterOptions;
use windrow_read::read::view::{SortedRun, VersionFile};
use windrow_store::tree::Tree;

/// Bytes that verify reads at a time.
const READAHEAD_BYTES: u64 = 256 << 10;

/// Verifies the manifest, every table of every keyspace, and the logs, as they are now. Passes the
/// report so far to `progress` after each table and log.
///
/// # Errors
/// `Closed`, of a follower whose files may be gone.
pub fn verify(
    database: &Database,
    progress: &mut dyn FnMut(&VerifyReport),
) -> Result<VerifyReport> {
    database.write_state.check_read()?;
    let records_left_out = database.records_left_out.get().cloned().unwrap_or_default();
    let mut report = VerifyReport { records_left_out, ..VerifyReport::default() };
    logs::verify_manifest(database, &mut report);
    for tree in database.trees().iter() {
        let view = tree.pin();
        if let Err(error) = view.version.check() {
            report.problems.push(error);
        }
        for file in view.levels.iter().flat_map(|level| level.files()) {
            report.tables += 1;
            report.bytes += file.file.bytes;
            match check_table(database, tree, file) {
                Ok(entries) => report.entries += entries,
                Err(error) => report.problems.push(error),
            }
            progress(&report);
        }
    }
    logs::verify_logs(database, &mut report, progress);
    match database.caches.tables.why_absent() {
        Some(why) if !report.problems.is_empty() => Err(why),
        _ => Ok(report),
    }
}

/// Checks one table: its bytes, then its entries against the manifest.
fn check_table(database: &Database, tree: &Tree, file: &VersionFile) -> Result<u64> {
    let path = file.table.path();
    let named = |e: Error| e.with_file(path.display().to_string());
    let read = ReadFileOptions { direct: database.settings.direct_io };
    let raw = database.env.fs.open(&path, read)?;
    let expect =
        Expect { file_bytes: file.file.bytes, uid: file.file.uid, order: tree.reads.order.clone() };
    unless_mutant!(VerifySkipsBytes, table::verify(&raw, expect).map_err(named)?);
    check_entries(database, tree, file).map_err(named)
}

fn check_entries(database: &Database, tree: &Tree, file: &VersionFile) -> Result<u64> {
    let meta = &file.file;
    let run = Arc::new(SortedRun::new(0, vec![file.clone()], &tree.reads.order));
    let options = TableIterOptions::sequential(READAHEAD_BYTES);
    let source = MergeSource::Level(LevelIter::new(run, tree.reads.clone(), options));
    let mut iter = MergeIter::new(vec![source], tree.reads.order.clone(), database.env.fs.clone());
    let mut entries = 0;
    let mut last: Vec<u8> = Vec::new();
    iter.seek_first()?;
    while iter.valid() {
        let key = iter.key();
        let in_order = last.is_empty()
            || windrow_base::key::compare_internal(&tree.reads.order, &last, key).is_lt();
        if !in_order {
            return Err(Error::corruption(format!("entry {entries} is out of order")));
        }
        if !file.covers(&tree.reads.order, iter.user_key()) {
            return Err(Error::corruption(format!(
                "entry {entries} lies outside the file's bounds"
            )));
        }
        last.clear();
        last.extend_from_slice(key);
        entries += 1;
        iter.next()?;
    }
    iter.status()?;
    if entries != meta.entries {
        return Err(Error::corruption(format!(
            "the table holds {entries} entries where the manifest says {}",
            meta.entries
        )));
    }
    Ok(entries)
}
