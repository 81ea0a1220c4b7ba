//! Verify: every checksum of every live table, the order of its keys, and
//! that it holds what the manifest says of it; the manifest itself, and the
//! logs (`logs.rs`).
//!
//! Reads only. Damage is reported, not an error: one bad table must not hide
//! another.

mod logs;

use crate::core::Core;
use crate::read::level_iter::LevelIter;
use crate::read::merge_iter::{MergeIter, Source};
use crate::read::table_iter::TableIterOptions;
use crate::read::view::{ReadFile, SortedRun};
use crate::tree::Tree;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result, unless_mutant};
use windrow_env::fs::ReadOptions;
use windrow_format::table::{self, Expect};

/// Bytes that verify reads at a time.
const READAHEAD_BYTES: u64 = 256 << 10;

/// What a verification found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Tables that were read.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their entries.
    pub entries: u64,
    /// Records of the manifest in force.
    pub manifest_records: u64,
    /// Logs that were read.
    pub logs: u64,
    /// Their bytes, without the space that is set aside for more.
    pub log_bytes: u64,
    /// Batches in them. What was flushed since its log was begun is in a table too.
    pub log_batches: u64,
    /// Operations in those batches: puts, deletes, merges, range deletes.
    pub log_operations: u64,
    /// Everything that is wrong, each naming its file and offset.
    pub problems: Vec<Error>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Problems of files that could not be read, by the system's word (an I/O
    /// error, no permission): what they hold may be whole.
    pub fn unreadable(&self) -> impl Iterator<Item = &Error> {
        self.problems.iter().filter(|error| is_refusal(error))
    }

    /// Problems of files that were read, and do not hold what was written.
    pub fn damaged(&self) -> impl Iterator<Item = &Error> {
        self.problems.iter().filter(|error| !is_refusal(error))
    }

    /// The first problem as an error.
    ///
    /// # Errors
    /// That problem.
    pub fn into_result(self) -> Result<VerifyReport> {
        match self.problems.first() {
            Some(error) => Err(error.clone()),
            None => Ok(self),
        }
    }
}

fn is_refusal(error: &Error) -> bool {
    error.kind() == ErrorKind::Io
}

/// Verifies the manifest, every table of every keyspace, and the logs, as they are now.
/// Tells after each table and log what was found so far.
pub(crate) fn verify(core: &Core, progress: &mut dyn FnMut(&VerifyReport)) -> Result<VerifyReport> {
    core.latch.check_read()?;
    let mut report = VerifyReport::default();
    logs::verify_manifest(core, &mut report);
    for tree in core.trees().iter() {
        let view = tree.pin();
        if let Err(error) = view.version.check() {
            report.problems.push(error);
        }
        for file in view.levels.iter().flat_map(|level| level.files()) {
            report.tables += 1;
            report.bytes += file.file.bytes;
            match check_table(core, tree, file) {
                Ok(entries) => report.entries += entries,
                Err(error) => report.problems.push(error),
            }
            progress(&report);
        }
    }
    logs::verify_logs(core, &mut report, progress);
    Ok(report)
}

/// Checks one table: its bytes, then its entries against the manifest.
fn check_table(core: &Core, tree: &Tree, file: &ReadFile) -> Result<u64> {
    let path = file.table.path();
    let named = |e: Error| e.with_file(path.display().to_string());
    let read = ReadOptions { direct: core.settings.direct_io };
    let raw = core.env.fs.open(&path, read)?;
    let expect =
        Expect { file_bytes: file.file.bytes, uid: file.file.uid, order: tree.order.clone() };
    unless_mutant!(VerifySkipsBytes, table::verify(&raw, expect).map_err(named)?);
    check_entries(core, tree, file).map_err(named)
}

fn check_entries(core: &Core, tree: &Tree, file: &ReadFile) -> Result<u64> {
    let meta = &file.file;
    let run = Arc::new(SortedRun::new(0, vec![file.clone()], &tree.order));
    let options = TableIterOptions::sequential(READAHEAD_BYTES);
    let source = Source::Level(LevelIter::new(run, tree.reads.clone(), options));
    let mut iter = MergeIter::new(vec![source], tree.order.clone(), core.env.fs.clone());
    let mut entries = 0;
    let mut last: Vec<u8> = Vec::new();
    iter.seek_first()?;
    while iter.valid() {
        let key = iter.key();
        let in_order =
            last.is_empty() || windrow_base::key::compare_internal(&tree.order, &last, key).is_lt();
        if !in_order {
            return Err(Error::corruption(format!("entry {entries} is out of order")));
        }
        if !file.covers(&tree.order, iter.user_key()) {
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

#[cfg(test)]
mod tests {
    use crate::{Db, Options};
    use windrow_env::testing::env;

    #[test]
    fn progress_is_told_after_each_file() {
        let mut options = Options::default();
        options.components.env = Some(env(1).0);
        let db = Db::open_with("db", options).unwrap();
        for key in ["a", "b"] {
            db.put(key, "value").unwrap();
            db.flush().unwrap();
        }
        let mut seen = Vec::new();
        let report = db.verify_with_progress(|so_far| seen.push((so_far.tables, so_far.bytes)));
        let report = report.unwrap();
        assert!(report.is_ok() && report.logs > 0 && report.tables > 0);
        assert_eq!(seen.len() as u64, report.tables + report.logs);
        assert!(seen.is_sorted() && seen[0].0 == 1 && seen[0].1 > 0, "{seen:?}");
        assert_eq!(seen.last(), Some(&(report.tables, report.bytes)));
        db.close().unwrap();
    }
}
