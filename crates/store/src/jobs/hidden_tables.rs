//! Tables that range tombstones hide whole are dropped without being read.
//!
//! Policies have no say in which they are (`plan/src/pick/hidden_tables.rs` decides). The choice
//! takes the range tombstones themselves, and the tree as metadata has only their count: so a job
//! opens tables that have some, before anything else is picked. It is due if such a table has
//! entered the tree since the last look, or if the reason that kept tables back then may be gone: a
//! snapshot, or a job that had them.
//!
//! A table that cannot be opened is passed over. The next read or merge of it reports the error.
//!
//! Owns no state. Never does: run the drop (`jobs/merge.rs` does).

use crate::host::Host;
use crate::tree::{LastLook, Tree, TreeWork};
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::FileNumber;
use windrow_plan::tree::{File, Part, Version, nothing_older};
use windrow_plan::{Covered, Covers, Decision, TableTombstone, hidden_tables};
use windrow_read::cache::OpenTable;

/// Most tables that a look opens, the newest: if more have range tombstones, these are many and
/// short.
const TABLES_MAX: usize = 128;
/// Most range tombstones that a look takes, about a megabyte. A table with more is passed over:
/// they are short, and no budget counts the memory of their keys.
const RANGES_MAX: u64 = 4 << 10;

/// Notes that a job of the tree has ended, which may have kept tables back.
pub(crate) fn note_job_ended(work: &mut TreeWork) {
    if let Some(notes) = &mut work.notes {
        notes.last_look.take_if(|seen| seen.waits);
    }
}

/// Whether a look may find more than the last one. It counts as made from here on.
pub(crate) fn take_due(host: &Host, tree: &Tree, work: &mut TreeWork) -> bool {
    let version = tree.version();
    let tables = Vec::from_iter(with_tombstones(&version).map(|(_, _, file)| file.number));
    if tables.is_empty() {
        return false;
    }
    let held = host.snapshots.held().seqs;
    let seen = work.notes.as_ref().and_then(|notes| notes.last_look.as_ref());
    let is_due = seen.is_none_or(|seen| seen.tables != tables || seen.held != held);
    if is_due {
        work.notes().last_look = Some(LastLook { tables, held, waits: false });
    }
    is_due
}

/// The tables whose range tombstones may hide others, the newest of them, in read order. Skips
/// levels without deletes.
fn with_tombstones(version: &Version) -> impl Iterator<Item = (u32, Part, &Arc<File>)> {
    let levels = (0..).zip(&version.levels).filter(|(_, level)| level.garbage_files() > 0);
    let files = levels.flat_map(|(n, level)| {
        let run = level.run.iter().map(move |file| (n, Part::Run, file));
        run.chain(level.sst_log.iter().map(move |file| (n, Part::SstLog, file)))
    });
    let hides = |(level, part, file): &(u32, Part, &Arc<File>)| {
        file.range_tombstones > 0 && !nothing_older(version, *level, *part, file)
    };
    let mut left = RANGES_MAX;
    let fits = move |(_, _, file): &(u32, Part, &Arc<File>)| {
        let rest = left.checked_sub(file.range_tombstones);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    files.filter(hides).filter(fits).take(TABLES_MAX)
}

/// Claims the tables that are covered, for a drop; `Idle` if there are none.
pub(crate) fn claim(host: &Host, tree: &Tree) -> Decision {
    // Nothing is read under the lock.
    let open = open_tables(tree);
    let mut work = tree.work.lock();
    let version = tree.version();
    // After the version: a snapshot that is taken later sees every tombstone in it.
    let held = host.snapshots.held().seqs;
    let covers = with_tombstones(&version).filter_map(|(level, part, file)| {
        let open = open.get(&file.number)?;
        let place = file.place(level, part);
        let cover = move |(start, end, seq)| TableTombstone { start, end, seq, place };
        Some(open.table.tombstones().rejoined().into_iter().map(cover))
    });
    let covers = Covers::new(&tree.reads.order, &held, covers.flatten());
    let sizes = tree.sizes.load();
    let view = host.plan_view(&version, &work.busy, &sizes);
    let Covered { decision, is_in_the_way } = hidden_tables::pick(&view, &covers);
    if let Some(seen) = &mut work.notes().last_look {
        seen.waits = is_in_the_way;
    }
    work.busy.claim(&decision);
    decision
}

/// Opens the tables with range tombstones that can be opened.
fn open_tables(tree: &Tree) -> BTreeMap<FileNumber, Arc<OpenTable>> {
    let version = tree.version();
    let open = with_tombstones(&version).filter_map(|(_, _, file)| {
        let tables = &tree.reads.tables;
        let open = tables.open(&tables.handle(file, &tree.reads.order)).ok()?;
        Some((file.number, open.to_arc()))
    });
    open.collect()
}
