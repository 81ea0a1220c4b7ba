//! Salvage: what can be read of a damaged table, written to new ones.
//!
//! Owns: taking entries and range tombstones out of what is left of a table
//! (`table::remains`), and the account of what is not there any more. Never
//! does: decide where in a tree the new tables go.

use super::Repair;
use super::report::{DamagedTable, LostRange};
use crate::core::Core;
use crate::merge::elide::Sink;
use crate::rebuild::{describe, newest_tombstones, outputs};
use crate::tree::Tree;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use windrow_base::{FileNumber, FileUid, Result, key};
use windrow_env::fs::{ReadOptions, is_not_found};
use windrow_format::block::BlockIter;
use windrow_format::names;
use windrow_format::table::{self, BlockHandle, BlockKind, Properties, Remains};
use windrow_format::tombstone::Tombstones;
use windrow_plan::tree::File;

/// What is known of a damaged table before it is looked into.
pub(crate) struct Known {
    pub(crate) number: FileNumber,
    pub(crate) uid: FileUid,
    /// Its entries and range tombstones, where somebody else counts them.
    pub(crate) counts: Option<(u64, u64)>,
}

impl Repair<'_> {
    /// Writes what can be read of a damaged table to new ones, and reports what cannot.
    ///
    /// # Errors
    /// What writing said, or opening: what cannot be opened now may be whole.
    pub(crate) fn salvage(
        &mut self,
        core: &Core,
        tree: &Tree,
        path: &Path,
        known: &Known,
        level: u32,
    ) -> Result<Vec<File>> {
        let mut account = DamagedTable {
            file: names::table(known.number),
            keyspace: Some(tree.name.to_string()),
            ..DamagedTable::default()
        };
        let saved = match self.env.fs.open(path, ReadOptions::default()) {
            Ok(file) => {
                let remains = table::remains(&file, known.uid, &tree.order);
                account.count(known, remains.properties.as_ref());
                self.rewrite(core, tree, (&*file, known, remains), level, &mut account)?
            }
            Err(e) if is_not_found(&e) => {
                account.count(known, None);
                Vec::new()
            }
            Err(e) => return Err(e),
        };
        self.count_saved(&saved);
        account.settle();
        self.report.tables.push(account);
        Ok(saved)
    }

    fn rewrite(
        &self,
        core: &Core,
        tree: &Tree,
        (file, known, remains): (&dyn windrow_env::ReadFile, &Known, Remains),
        level: u32,
        account: &mut DamagedTable,
    ) -> Result<Vec<File>> {
        let tombstones = remains.tombstones.as_ref();
        account.range_tombstones_saved = tombstones.is_some();
        let ranges = tombstones.into_iter().flat_map(Tombstones::rejoined);
        let mut outputs = outputs(core, tree, level, &newest_tombstones(tree, ranges));
        let made_of = remains.properties.as_ref().and_then(|p| {
            let whole = Arc::new(describe(known.number, p, file.len()));
            let of = p.made_of.as_ref()?.iter().chain([&known.number]);
            Some(of.map(|&of| (whole.clone(), of)).collect())
        });
        outputs.made_of = made_of;
        let mut lost = Lost::new(&remains.gaps);
        let mut last_key: Option<Vec<u8>> = None;
        for &handle in &remains.data {
            let block = table::read_block(file, known.uid, handle, BlockKind::Data)?;
            let mut iter = BlockIter::new(Arc::new(block), tree.order.clone());
            iter.seek_first();
            lost.pass(handle, last_key.as_deref(), iter.key());
            while iter.valid() {
                let (user_key, trailer) = key::split(iter.key());
                let first =
                    !last_key.as_deref().is_some_and(|last| tree.order.equal(last, user_key));
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
}

impl DamagedTable {
    /// Notes what it held, as the manifest or else the table itself says.
    fn count(&mut self, known: &Known, properties: Option<&Properties>) {
        let own = properties.map(|p| (p.entries, p.range_tombstones));
        let counts = known.counts.or(own);
        self.entries = counts.map(|(entries, _)| entries);
        self.range_tombstones = counts.map(|(_, tombstones)| tombstones);
    }

    /// Where every entry was saved, what cannot be read held none.
    fn settle(&mut self) {
        let tombstones = self.range_tombstones == Some(0) || self.range_tombstones_saved;
        if self.entries == Some(self.entries_saved) && tombstones {
            self.lost.clear();
        }
    }
}

/// The stretches of a table that cannot be read, between the keys that can.
struct Lost<'a> {
    gaps: &'a [Range<u64>],
    ranges: Vec<LostRange>,
}

impl<'a> Lost<'a> {
    fn new(gaps: &'a [Range<u64>]) -> Lost<'a> {
        Lost { gaps, ranges: Vec::new() }
    }

    /// A block that begins with `next` follows what ended with the key `last`.
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

    /// What is left lies behind the last key.
    fn finish(mut self, last: Option<Vec<u8>>) -> Vec<LostRange> {
        let behind =
            |gap: &Range<u64>| LostRange { bytes: gap.clone(), after: last.clone(), before: None };
        self.ranges.extend(self.gaps.iter().map(behind));
        self.ranges
    }
}
