//! Rebuild: repair where the manifest is lost.
//!
//! Nothing says any more which tables are part of a tree, which stands above
//! which, and what of the logs is in tables. So all of a keyspace's tables and
//! all that the logs hold are merged into one run, key by key in the order of
//! sequence numbers; which entries count is `lineage`'s to say.
//!
//! That tables reach up to some sequence number says nothing of the logs: a
//! flush writes its tables one by one, and was perhaps cut short.
//!
//! Owns: the state made anew, and that merge. Never does: delete a file.

use crate::core::Core;
use crate::lineage::{Entry, Lineage, Origin};
use crate::manifest::record::DEFAULT_KEYSPACE;
use crate::manifest::state::{KeyspaceState, ManifestState};
use crate::memtable::{MemCursor, Memtable};
use crate::merge::elide::Sink;
use crate::merge::filters::OutputFilters;
use crate::merge::writer::{OutputSpec, Outputs};
use crate::open::found::{Found, new_keyspace};
use crate::open::replay::{Replay, Replayed};
use crate::options::KeyspaceOptions;
use crate::read::level_iter::LevelIter;
use crate::read::merge_iter::{MergeIter, Source};
use crate::read::table_iter::TableIterOptions;
use crate::read::view::{ReadFile, SortedRun};
use crate::repair::{DamagedLog, DamagedTable, Known, Repair, is_blank};
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::key::{self, SEQ_MAX};
use windrow_base::{Error, FileNumber, FileUid, KeyOrder, KeyspaceId, Result, SeqNo};
use windrow_env::fs::ReadOptions;
use windrow_format::batch;
use windrow_format::log::{Class, LogKind, Reader};
use windrow_format::names;
use windrow_format::table::{self, Expect, Properties, Table};
use windrow_format::tombstone::{Parts, Tombstones};
use windrow_plan::tree::{Edit, File, Part, Version};

/// A table that is merged: of the database, of what was saved of one, or of a log.
struct Gathered {
    file: File,
    origin: Origin,
}

impl Repair<'_> {
    /// A state of which only the keyspaces are known: those of which there is
    /// a table, or an operation in a log.
    pub(crate) fn rebuild(&mut self) -> Result<Found> {
        self.report.manifest_rebuilt = true;
        let mut state = ManifestState::default();
        let mut comparators: BTreeMap<KeyspaceId, String> = BTreeMap::new();
        let asked = self.options.default_keyspace.comparator.clone();
        comparators.insert(KeyspaceId::DEFAULT, asked.unwrap_or_else(|| BYTEWISE_ID.to_owned()));
        for number in self.listing.tables.clone() {
            let properties = self.look_at(number)?;
            if let Some(properties) = &properties {
                comparators.insert(properties.keyspace, properties.comparator.clone());
            }
            self.looked_at.insert(number, properties);
        }
        let tables = self.looked_at.values().flatten();
        self.proof.seq = tables.map(|table| table.seq_max).max().unwrap_or(0);
        for number in self.listing.wals.clone() {
            let mut found = BTreeSet::new();
            // What is damaged is reported as it is replayed.
            let _ = self.keyspaces_of_log(number, &mut found);
            for id in found {
                if comparators.contains_key(&id) {
                    continue;
                }
                comparators.insert(id, BYTEWISE_ID.to_owned());
                if !self.options.components.comparators.is_empty() {
                    let what = format!(
                        "keyspace {id} is known from logs alone, which do not name its comparator"
                    );
                    let log = self.dir.join(names::wal(number)).display().to_string();
                    self.report.problems.push(Error::corruption(what).with_file(log));
                    self.doubt_logs();
                }
            }
        }
        for (id, comparator) in comparators {
            let default = id == KeyspaceId::DEFAULT;
            let name = if default { DEFAULT_KEYSPACE.into() } else { format!("keyspace-{id}") };
            if !default {
                self.report.keyspaces_renamed.push(name.clone());
            }
            let operator = &self.options.default_keyspace.merge_operator;
            let options = KeyspaceOptions {
                comparator: Some(comparator),
                merge_operator: operator.clone().filter(|_| default),
            };
            let record = new_keyspace(id, &name, &options, &self.options.components)?;
            let order = self.options.components.key_order(&record.comparator)?;
            let version = Arc::new(Version::empty(order));
            state.keyspaces.insert(id, KeyspaceState { record: Arc::new(record), version });
            state.next_keyspace = id.0.saturating_add(1);
        }
        let database_uid = self.env.random.next_u64();
        let (manifest, current, left_out) = (None, None, Vec::new());
        Ok(Found { state, database_uid, manifest, current, left_out })
    }

    /// Adds the keyspaces that a log has operations of, as far as it can be
    /// read, and notes what it says of older logs.
    fn keyspaces_of_log(
        &mut self,
        number: FileNumber,
        found: &mut BTreeSet<KeyspaceId>,
    ) -> Result<()> {
        let path = self.dir.join(names::wal(number));
        let file = self.env.fs.open(&path, ReadOptions::default())?;
        let mut reader = Reader::open(file, LogKind::Wal, None)?;
        while let Some(record) = reader.next()? {
            if record.durable_up_to > 0 {
                self.proof.log = self.proof.log.max(number);
            }
            if record.class != Class::Batch {
                continue;
            }
            for op in batch::decode(record.payload)?.2 {
                found.insert(op?.keyspace);
            }
        }
        Ok(())
    }

    /// Makes every keyspace's tree.
    pub(crate) fn gather(&mut self, core: &Arc<Core>) -> Result<Replayed> {
        let state = core.catalog.state();
        let salvaged = self.replay(Replay::anywhere(core, &state, self.proof), &state, 0)?;
        let (mut replayed, mut raw) = (salvaged.replayed, salvaged.raw);
        let log_end = replayed.last_seq;
        let trees: Vec<Arc<Tree>> = core.trees().iter().cloned().collect();
        for tree in &trees {
            let mut gathered: Vec<Gathered> = raw
                .remove(&tree.id)
                .unwrap_or_default()
                .into_iter()
                .map(|(chain, file)| Gathered { file, origin: Origin::Log { chain } })
                .collect();
            let damaged = self.gather_tables(core, tree, &mut gathered)?;
            let through = gathered.iter().map(|g| g.file.seq_max).max().unwrap_or(0).max(log_end);
            replayed.last_seq = replayed.last_seq.max(through);
            let merged = self.merge_all(core, tree, gathered)?;
            let edit = Edit {
                added: merged.into_iter().map(|f| (1, Part::Run, Arc::new(f))).collect(),
                flushed_through: Some(through),
                ..Edit::default()
            };
            self.apply(core, tree, edit)?;
            for number in damaged {
                self.keep_original(names::table(number))?;
            }
        }
        self.give_up_unknown()?;
        if self.logs_in_doubt {
            for number in self.listing.wals.clone() {
                self.keep_original(names::wal(number))?;
            }
        }
        Ok(replayed)
    }

    /// Verifies every table of a keyspace; of damaged ones it takes what can be
    /// read, and returns their numbers.
    fn gather_tables(
        &mut self,
        core: &Arc<Core>,
        tree: &Tree,
        gathered: &mut Vec<Gathered>,
    ) -> Result<Vec<FileNumber>> {
        let mut damaged = Vec::new();
        for (number, properties) in self.looked_at.clone() {
            let Some(properties) = properties.filter(|p| p.keyspace == tree.id) else {
                continue;
            };
            let path = self.table_path(number);
            let file = describe(number, &properties, self.env.fs.len(&path)?);
            let (uid, counts) = (file.uid, Some((file.entries, file.range_tombstones)));
            let made_of = properties.made_of;
            let (files, whole) = match self.check(tree, &file)? {
                None => {
                    self.report.tables_kept += 1;
                    (vec![file], true)
                }
                Some(error) => {
                    self.report.problems.push(error);
                    let known = Known { number, uid, counts };
                    let saved = self.salvage(core, tree, &path, &known, 1)?;
                    damaged.push(number);
                    (saved, false)
                }
            };
            let origin = || Origin::Table { number, made_of: made_of.clone(), whole };
            gathered.extend(files.into_iter().map(|file| Gathered { file, origin: origin() }));
        }
        Ok(damaged)
    }

    /// Merges tables, each with its origin, into new ones. Tables that may hold
    /// more than was taken of them are moved away.
    fn merge_all(
        &mut self,
        core: &Core,
        tree: &Tree,
        gathered: Vec<Gathered>,
    ) -> Result<Vec<File>> {
        let mut open = Vec::new();
        let (mut sources, mut origins, mut made_of) = (Vec::new(), Vec::new(), Vec::new());
        for Gathered { file, origin } in gathered {
            let file = Arc::new(file);
            let table = core.caches.tables.handle(&file, &tree.order);
            open.push(core.caches.tables.open(&table)?);
            made_of.push((file.clone(), file.number));
            if let Origin::Table { number, .. } = &origin {
                made_of.push((file.clone(), *number));
            }
            let run = Arc::new(SortedRun::new(1, vec![ReadFile { file, table }], &tree.order));
            let options = TableIterOptions::sequential(256 << 10);
            sources.push(Source::Level(LevelIter::new(run, tree.reads.clone(), options)));
            origins.push(origin);
        }
        let mut iter = MergeIter::new(sources, tree.order.clone(), core.env.fs.clone());
        let all = open.iter().flat_map(|open| open.table.tombstones().rejoined());
        let mut outputs = outputs(core, tree, 1, &newest_tombstones(tree, all));
        outputs.made_of = Some(made_of);
        let (mut key, mut entries, mut doubts) = (Vec::new(), Vec::new(), BTreeSet::new());
        iter.seek_first()?;
        while iter.valid() {
            key.clear();
            key.extend_from_slice(iter.user_key());
            read_key(&mut iter, tree, &key, &mut entries)?;
            let operator = tree.operator.as_deref();
            let lineage = Lineage { key: &key, entries: &entries, origins: &origins, operator };
            for (i, entry) in lineage.choose(&mut doubts).into_iter().enumerate() {
                outputs.keep(&key, entry.trailer, &entry.value, i == 0)?;
            }
        }
        iter.status()?;
        let files = outputs.finish(0)?;
        for origin in doubts {
            self.report_doubt(&origins[origin])?;
        }
        Ok(files)
    }

    /// Has all logs kept and reported: something in them was perhaps not taken over.
    fn doubt_logs(&mut self) {
        self.logs_in_doubt = true;
        for &number in &self.listing.wals {
            let file = names::wal(number);
            if self.report.logs.iter().all(|log| log.file != file) {
                let bytes = self.env.fs.len(&self.dir.join(&file)).unwrap_or(0);
                self.report.logs.push(DamagedLog { file, from_byte: 0, bytes });
            }
        }
    }

    /// Keeps what merge operands were left out of.
    fn report_doubt(&mut self, origin: &Origin) -> Result<()> {
        let Origin::Table { number, .. } = origin else {
            let what = "merge operands in the logs may be in tables too, and were left out";
            let dir = self.dir.display().to_string();
            self.report.problems.push(Error::corruption(what).with_file(dir));
            self.doubt_logs();
            return Ok(());
        };
        let what = "merge operands in the table may be in newer tables too, and were left out";
        let path = self.table_path(*number).display().to_string();
        self.report.problems.push(Error::corruption(what).with_file(path));
        let name = names::table(*number);
        match self.report.tables.iter_mut().find(|table| table.file == name) {
            Some(table) => table.in_doubt = true,
            None => self.report.tables.push(DamagedTable {
                file: name.clone(),
                in_doubt: true,
                ..DamagedTable::default()
            }),
        }
        self.keep_original(name)
    }

    /// Keeps the tables of which nothing says what they are of: a flush or merge
    /// that was cut short leaves such ones too, so they are no problem by themselves.
    fn give_up_unknown(&mut self) -> Result<()> {
        for (number, _) in self.looked_at.clone().iter().filter(|(_, known)| known.is_none()) {
            let file = self.env.fs.open(&self.table_path(*number), ReadOptions::default())?;
            if is_blank(&*file, 0) {
                continue;
            }
            let name = names::table(*number);
            self.report.tables_lost += 1;
            self.report.tables.push(DamagedTable { file: name.clone(), ..Default::default() });
            self.keep_original(name)?;
        }
        Ok(())
    }

    /// What a table says of itself, whatever else of it is damaged.
    ///
    /// # Errors
    /// What kept it from being opened: it may be whole.
    fn look_at(&self, number: FileNumber) -> Result<Option<Properties>> {
        let file = self.env.fs.open(&self.table_path(number), ReadOptions::default())?;
        let custom = self.options.components.comparators.iter().cloned().map(KeyOrder::Custom);
        let orders: Vec<KeyOrder> = [KeyOrder::Bytewise].into_iter().chain(custom).collect();
        let uids = table::uids(&*file);
        for &uid in &uids {
            for order in &orders {
                let expect = Expect { file_bytes: file.len(), uid, order: order.clone() };
                if let Ok(table) = Table::open(&file, expect) {
                    return Ok(Some(table.properties().clone()));
                }
            }
        }
        let found = |uid: &FileUid| table::remains(&file, *uid, &KeyOrder::Bytewise).properties;
        Ok(uids.iter().find_map(found))
    }
}

/// The entries of the key at hand, down to the first that ends a search (and
/// others of its sequence number).
fn read_key(iter: &mut MergeIter, tree: &Tree, key: &[u8], entries: &mut Vec<Entry>) -> Result<()> {
    entries.clear();
    let mut end: SeqNo = 0;
    while iter.valid() && tree.order.equal(iter.user_key(), key) {
        let (trailer, origin) = (iter.trailer(), iter.source_index());
        let seq = key::trailer_seq(trailer);
        if end <= seq {
            let entry = Entry { trailer, value: iter.value_slice(), origin };
            if entry.ends_search() {
                end = seq;
            }
            entries.push(entry);
        }
        iter.next()?;
    }
    Ok(())
}

/// Writes a memtable to tables that are part of no tree, entry by entry.
pub(crate) fn raw_tables(core: &Core, tree: &Tree, memtable: &Memtable) -> Result<Vec<File>> {
    let mut outputs = outputs(core, tree, 0, &memtable.tombstones_under(&[]));
    let mut last: Option<Vec<u8>> = None;
    let mut entries = memtable.cursor();
    entries.iter_mut().for_each(MemCursor::seek_first);
    while let Some(cursor) = entries.as_mut().filter(|cursor| cursor.valid()) {
        let first = last.as_deref().is_none_or(|last| !tree.order.equal(last, cursor.key()));
        outputs.keep(cursor.key(), cursor.trailer(), cursor.value(), first)?;
        if first {
            last = Some(cursor.key().to_vec());
        }
        cursor.next();
    }
    outputs.finish(0)
}

/// Range tombstones (start, end, sequence number) as a tree without snapshots needs them.
pub(crate) fn newest_tombstones<'a>(
    tree: &Tree,
    all: impl Iterator<Item = Parts<'a>>,
) -> Tombstones {
    Tombstones::newest_of_stripes(all.collect(), &tree.order, &[])
}

/// Takes what repair writes.
pub(crate) fn outputs<'c>(
    core: &'c Core,
    tree: &'c Tree,
    level: u32,
    tombstones: &Tombstones,
) -> Outputs<'c> {
    let version = tree.version();
    let policy = tree.policy.load();
    let filters = Arc::new(OutputFilters::of_repair(tree));
    let spec = OutputSpec {
        level,
        cutter: policy.cutter(&version, &tree.sizes.load(), level),
        filters,
        tombstones: tombstones.clone(),
    };
    Outputs::new(core, tree, spec)
}

/// A table's metadata from its own properties.
pub(crate) fn describe(number: FileNumber, p: &Properties, bytes: u64) -> File {
    debug_assert!(p.seq_max <= SEQ_MAX);
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
        seq_min: p.seq_min,
        seq_max: p.seq_max,
        epoch: 0,
        created_ms: p.created_ms,
        expiring_entries: p.expiring_entries,
        expiry_min_ms: p.expiry_min_ms,
        filter_bytes: p.filter_bytes,
        hotness: 0,
        statistics: Vec::new(),
    }
}
