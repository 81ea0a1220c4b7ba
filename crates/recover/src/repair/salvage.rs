//! Salvage: the readable entries of a damaged table, written to new ones.
//!
//! Owns: taking entries and range tombstones out of the readable blocks of a table
//! (`table::remains`), and the account of the lost ones. Never does: decide where in a tree the new
//! tables go.

use super::findings::Findings;
use super::report::{DamagedTable, LostRange};
use super::site::Site;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{FileNumber, FileUid, Result, SeqNo, key};
use windrow_env::ReadFile;
use windrow_env::fs::{ReadFileOptions, is_not_found};
use windrow_format::block::BlockIter;
use windrow_format::names;
use windrow_format::table::{self, BlockHandle, BlockKind, Properties, Remains};
use windrow_format::tombstone::Tombstones;
use windrow_plan::tree::File;
use windrow_store::host::Host;
use windrow_store::merge::dropper::Sink;
use windrow_store::merge::raw_tables::{describe, newest_tombstones, outputs};
use windrow_store::tree::Tree;

/// The facts about a damaged table that are known before it is read.
pub(super) struct Damaged<'a> {
    pub(super) path: &'a Path,
    pub(super) number: FileNumber,
    pub(super) uid: FileUid,
    /// The sequence number that its entries are given; 0: they have their own.
    pub(super) given_seq: SeqNo,
    /// The numbers of its entries and range tombstones, where the manifest has them.
    pub(super) counts: Option<(u64, u64)>,
    /// The level of the new tables.
    pub(super) level: u32,
}

/// Writes the readable entries of a damaged table to new ones, and reports the lost ones.
///
/// # Errors
/// The errors of writing and of opening: a table that cannot be opened now may be whole.
pub(super) fn salvage(
    site: &Site<'_>,
    findings: &mut Findings,
    host: &Host,
    tree: &Tree,
    damaged: &Damaged<'_>,
) -> Result<Vec<File>> {
    let mut account = DamagedTable {
        file: names::table(damaged.number),
        keyspace: Some(tree.name.to_string()),
        ..DamagedTable::default()
    };
    let saved = match site.env.fs.open(damaged.path, ReadFileOptions::default()) {
        Ok(file) => {
            let remains = table::remains(&file, damaged.uid, &tree.reads.order);
            account.count(damaged, remains.properties.as_ref());
            rewrite(host, tree, (&*file, damaged, remains), &mut account)?
        }
        Err(e) if is_not_found(&e) => {
            account.count(damaged, None);
            Vec::new()
        }
        Err(e) => return Err(e),
    };
    findings.count_saved(&saved);
    account.settle();
    findings.report.tables.push(account);
    Ok(saved)
}

fn rewrite(
    host: &Host,
    tree: &Tree,
    (file, damaged, remains): (&dyn ReadFile, &Damaged<'_>, Remains),
    account: &mut DamagedTable,
) -> Result<Vec<File>> {
    let tombstones = remains.tombstones.as_ref();
    account.range_tombstones_saved = tombstones.is_some();
    let ranges = tombstones.into_iter().flat_map(Tombstones::rejoined);
    let mut outputs = outputs(host, tree, damaged.level, &newest_tombstones(tree, ranges));
    let made_of = remains.properties.as_ref().and_then(|p| {
        let whole = Arc::new(describe(damaged.number, p, file.len()));
        let of = p.made_of.as_ref()?.iter().chain([&damaged.number]);
        Some(of.map(|&of| (whole.clone(), of)).collect())
    });
    outputs.made_of = made_of;
    let mut lost = Lost::new(&remains.gaps);
    let mut last_key: Option<Vec<u8>> = None;
    for &handle in &remains.data {
        let mut block = table::read_block(file, damaged.uid, handle, BlockKind::Data)?;
        if damaged.given_seq > 0 {
            block.give_seq(damaged.given_seq)?;
        }
        let mut iter = BlockIter::new(Arc::new(block), tree.reads.order.clone());
        iter.seek_first();
        lost.pass(handle, last_key.as_deref(), iter.key());
        while iter.valid() {
            let (user_key, trailer) = key::split(iter.key());
            let first =
                !last_key.as_deref().is_some_and(|last| tree.reads.order.equal(last, user_key));
            outputs.keep(user_key, trailer, iter.value(), first)?;
            account.entries_saved += 1;
            if first {
                last_key = Some(user_key.to_vec());
            }
            iter.next();
        }
    }
    account.lost = lost.finish(last_key);
    outputs.finish(0)
}

impl DamagedTable {
    /// Notes the numbers of its entries, from the manifest or else from the table itself.
    fn count(&mut self, damaged: &Damaged<'_>, properties: Option<&Properties>) {
        let own = properties.map(|p| (p.entries, p.range_tombstones));
        let counts = damaged.counts.or(own);
        self.entries = counts.map(|(entries, _)| entries);
        self.range_tombstones = counts.map(|(_, tombstones)| tombstones);
    }

    /// Clears the unreadable ranges where every entry was saved: they held none.
    fn settle(&mut self) {
        let tombstones = self.range_tombstones == Some(0) || self.range_tombstones_saved;
        if self.entries == Some(self.entries_saved) && tombstones {
            self.lost.clear();
        }
    }
}

/// The byte ranges of a table that cannot be read, between the keys that can.
struct Lost<'a> {
    gaps: &'a [Range<u64>],
    ranges: Vec<LostRange>,
}

impl<'a> Lost<'a> {
    fn new(gaps: &'a [Range<u64>]) -> Lost<'a> {
        Lost { gaps, ranges: Vec::new() }
    }

    /// Passes a block that begins with the key `next`, after the key `last`.
    fn pass(&mut self, block: BlockHandle, last: Option<&[u8]>, next: &[u8]) {
        while let Some((gap, rest)) = self.gaps.split_first()
            && gap.start < block.offset
        {
            let before = Some(key::split(next).0.to_vec());
            let after = last.map(<[u8]>::to_vec);
            self.ranges.push(LostRange { bytes: gap.clone(), after, before });
            self.gaps = rest;
        }
    }

    /// Adds the remaining ranges, which lie behind the last key.
    fn finish(mut self, last: Option<Vec<u8>>) -> Vec<LostRange> {
        let behind =
            |gap: &Range<u64>| LostRange { bytes: gap.clone(), after: last.clone(), before: None };
        self.ranges.extend(self.gaps.iter().map(behind));
        self.ranges
    }
}
