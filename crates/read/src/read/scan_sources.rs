//! The sources of a scan: the memtables and runs of a view, in the order in which a merge takes
//! them.
//!
//! Owns: their order, and the charge for them to the scan. Never does: move.

use super::ReadOwner;
use super::level_iter::LevelIter;
use super::merge_iter::{MergeIter, MergeSource};
use super::readahead::Readahead;
use super::table_iter::{Bounds, TableIterOptions};
use super::view::ReadView;
use std::sync::Arc;
use windrow_format::block::{Account, Charge};

/// Returns the options of the scan's table iterators. Their blocks and buffers are charged as they
/// come.
pub(super) fn table_options(
    fill_cache: bool,
    readahead: Readahead,
    bounds: &Bounds,
) -> TableIterOptions {
    TableIterOptions {
        fill_cache,
        readahead,
        bounds: bounds.clone(),
        is_accounted: false,
        notes_cached: false,
    }
}

pub(super) fn charge_for(owner: &ReadOwner, merge: &MergeIter, own_bytes: usize) -> Charge {
    if owner.check_process().is_err() {
        // Nothing will be read, and the cache would give way under its lock.
        return Account::default().charge(0);
    }
    owner.blocks.hold((own_bytes + merge.memory_bytes()) as u64)
}

/// Makes the merge of everything in a view; its sources are the memtables, then the runs.
pub(super) fn merge_of(
    owner: &Arc<ReadOwner>,
    view: &ReadView,
    options: TableIterOptions,
) -> MergeIter {
    let options = Arc::new(options);
    let expected_bytes = view.expected_bytes(owner.cost.scan_length.entries());
    let mut sources = Vec::with_capacity(1 + view.frozen.len() + view.runs.len());
    sources.extend(view.memtables().map(|memtable| MergeSource::Mem(memtable.cursor())));
    for run in &view.runs {
        let iter = LevelIter::new(Arc::clone(run), Arc::clone(owner), Arc::clone(&options));
        sources.push(MergeSource::Level(iter.expecting(expected_bytes(run))));
    }
    MergeIter::new(sources, owner.order.clone(), Arc::clone(&owner.env.fs))
}
