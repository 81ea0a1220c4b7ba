//! Tables that a repair writes, entry by entry: nothing is dropped, and they are part of no tree
//! until the repair adds them.
//!
//! Owns: the writing of them, and the description of a table that nothing but itself describes.
//! Never does: decide which entries count (`lineage.rs`), or install a table.

use crate::host::Host;
use crate::merge::dropper::Sink;
use crate::merge::filters::OutputFilters;
use crate::merge::writer::{OutputSpec, Outputs};
use crate::tree::Tree;
use std::sync::Arc;
use windrow_base::key::SEQ_MAX;
use windrow_base::{FileNumber, Result};
use windrow_format::table::Properties;
use windrow_format::tombstone::{TombstoneParts, Tombstones};
use windrow_plan::tree::File;
use windrow_read::memtable::{MemCursor, Memtable};

/// Writes a memtable to tables that are part of no tree, entry by entry.
pub fn raw_tables(host: &Host, tree: &Tree, memtable: &Memtable) -> Result<Vec<File>> {
    let mut outputs = outputs(host, tree, 0, &memtable.tombstones_under(&[]));
    let mut last: Option<Vec<u8>> = None;
    let mut entries = memtable.cursor();
    entries.iter_mut().for_each(MemCursor::seek_first);
    while let Some(cursor) = entries.as_mut().filter(|cursor| cursor.valid()) {
        let first = last.as_deref().is_none_or(|last| !tree.reads.order.equal(last, cursor.key()));
        outputs.keep(cursor.key(), cursor.trailer(), cursor.value(), first)?;
        if first {
            last = Some(cursor.key().to_vec());
        }
        cursor.next();
    }
    outputs.finish(0)
}

/// Returns range tombstones (start, end, sequence number) as a tree without snapshots needs them.
pub fn newest_tombstones<'a>(
    tree: &Tree,
    all: impl Iterator<Item = TombstoneParts<'a>>,
) -> Tombstones {
    Tombstones::newest_of_stripes(all.collect(), &tree.reads.order, &[])
}

/// Makes the outputs of a repair.
pub fn outputs<'a>(
    host: &'a Host,
    tree: &'a Tree,
    level: u32,
    tombstones: &Tombstones,
) -> Outputs<'a> {
    let version = tree.version();
    let policy = tree.policy.load();
    let filters = Arc::new(OutputFilters::of_repair(tree));
    let spec = OutputSpec {
        level,
        cutter: policy.cutter(&version, &tree.sizes.load(), level),
        filters,
        tombstones: tombstones.clone(),
    };
    Outputs::new(host, tree, spec)
}

/// Returns a table's metadata from its own properties. Only the manifest knows the sequence number
/// of the entries of an ingested table. Here it is the first that they may have, as if nothing had
/// been written while the table was ingested.
pub fn describe(number: FileNumber, p: &Properties, bytes: u64) -> File {
    debug_assert!(p.seq_max <= SEQ_MAX);
    let given_seq = p.given_above.map_or(0, |above| above + 1);
    File {
        number,
        uid: p.uid,
        bytes,
        entries: p.entries,
        point_tombstones: p.point_tombstones,
        range_tombstones: p.range_tombstones,
        smallest: p.smallest.clone(),
        largest: p.largest.clone(),
        largest_exclusive: p.largest_exclusive,
        point_bounds: p.point_bounds.clone(),
        seq_min: p.seq_min.max(given_seq),
        seq_max: p.seq_max.max(given_seq),
        is_ingested: given_seq > 0,
        epoch: 0,
        created_ms: p.created_ms,
        expiring_entries: p.expiring_entries,
        expiry_min_ms: p.expiry_min_ms,
        filter_bytes: p.filter_bytes,
        hotness: 0,
        statistics: Vec::new(),
    }
}
