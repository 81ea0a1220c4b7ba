//! Repair: an openable database from whatever can still be read.
//!
//! 1. The manifest, as far as it can be believed; without one, the tables
//!    themselves say which keyspace they belong to.
//! 2. Each table is verified. A damaged one is replaced, in its place, by a
//!    table of what can be read of it (a file of the same level, within the
//!    same bounds, so no order between files changes).
//! 3. Logs are replayed up to their first damage.
//! 4. A new manifest is written. Damaged files are moved to `lost/`, never
//!    deleted.
//!
//! Repair never invents data. What it cannot know: a tombstone in a damaged
//! block is gone like any entry, so a deleted key may be there again, and a
//! key whose newest value is gone shows an older one. Without a manifest,
//! tables that were merged away but not yet unlinked count again, so deleted
//! keys may too; and the names and merge operators of keyspaces but the
//! default one are gone: they are called by their ids.

use crate::core::Core;
use crate::dump::uid_of_table;
use crate::manifest::record::Record;
use crate::manifest::state::{KeyspaceState, ManifestState};
use crate::merge::elide::Sink;
use crate::merge::writer::{OutputSpec, Outputs};
use crate::options::{KeyspaceOptions, Options};
use crate::read::level_iter::LevelIter;
use crate::read::merge_iter::{MergeIter, Source};
use crate::read::table_iter::TableIterOptions;
use crate::read::view::{ReadFile, SortedRun};
use crate::recovery::{
    DEFAULT_KEYSPACE, Folded, Found, Listing, assemble, fold_manifest, is_log, is_own,
    new_keyspace, read_current, refuse_newer,
};
use crate::replay::Replay;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::key::{self, SEQ_MAX};
use windrow_base::{Error, FileNumber, KeyspaceId, Result, mutant};
use windrow_env::Env;
use windrow_env::fs::{LockMode, ReadOptions};
use windrow_format::block::BlockIter;
use windrow_format::log::{Class, Length, LogKind, Mark, Reader};
use windrow_format::names;
use windrow_format::table::{self, BlockHandle, BlockKind, Expect, IndexIter, Locate, Table};
use windrow_format::tombstone::RangeTombstone;
use windrow_plan::Policy;
use windrow_plan::tree::{Edit, File, Part, Version};

/// Directory that damaged files are moved to.
const LOST: &str = "lost";

/// What a repair did.
#[derive(Clone, Debug, Default)]
pub struct RepairReport {
    /// The manifest could not be read: keyspaces and trees were made from the tables.
    pub manifest_rebuilt: bool,
    /// Tables that were whole.
    pub tables_kept: u64,
    /// Damaged tables of which something was saved.
    pub tables_salvaged: u64,
    /// Tables of which nothing could be read, or that are missing.
    pub tables_lost: u64,
    /// Entries saved from damaged tables.
    pub entries_salvaged: u64,
    /// Batches replayed from logs.
    pub batches_replayed: u64,
    /// Everything that was found wrong, each naming its file and offset.
    pub problems: Vec<Error>,
}

/// Makes the database in `dir` openable again, from what can be read of it.
///
/// Make a copy of the directory first if the data is precious.
///
/// # Errors
/// `Busy` if it is open; `InvalidArgument` if there is no database, or a
/// comparator of it is not registered; `NotSupported` if a newer version wrote
/// it; `Io`, `NoSpace`.
pub fn repair(dir: impl AsRef<Path>, options: Options) -> Result<RepairReport> {
    let dir = dir.as_ref();
    options.validate()?;
    let env = options.components.env_or_os(&options.settings);
    if !env.fs.exists(dir)? {
        return Err(Error::invalid(format!("there is no database in {}", dir.display())));
    }
    refuse_newer(&env, dir)?;
    let _lock = env.fs.lock(&dir.join(names::LOCK), LockMode::Exclusive)?;
    let listing = Listing::read(&env, dir)?;
    let mut repair =
        Repair { env, dir, options: &options, listing, report: RepairReport::default() };
    repair.run()?;
    Ok(repair.report)
}

struct Repair<'a> {
    env: Env,
    dir: &'a Path,
    options: &'a Options,
    listing: Listing,
    report: RepairReport,
}

impl Repair<'_> {
    fn run(&mut self) -> Result<()> {
        let found = match self.best_manifest()? {
            Some(found) => found,
            None => self.rebuild()?,
        };
        let policy = Policy::parse(&self.options.settings.preset)?;
        let rebuilt = self.report.manifest_rebuilt;
        let core =
            assemble(self.env.clone(), self.dir, self.options, &self.listing, found, &policy)?;
        let trees: Vec<Arc<Tree>> = core.trees().iter().cloned().collect();
        for tree in &trees {
            self.mend_tree(&core, tree)?;
        }
        self.replay(&core, rebuilt)?;
        Ok(())
    }

    /// The state that the manifest in force gives: the one that CURRENT names,
    /// or, where CURRENT cannot be read, the newest. `None` if it is damaged or
    /// shorter than the logs remember it: cut short it names files that are
    /// gone and misses others, and an older one does so all the more. What is
    /// there is then told better by the tables.
    fn best_manifest(&mut self) -> Result<Option<Found>> {
        let newest = self.listing.manifests.last().copied();
        let (number, uid, database_uid) = match read_current(&self.env, self.dir) {
            Ok(current) => {
                (Some(current.manifest_number), Some(current.manifest_uid), current.database_uid)
            }
            Err(error) => {
                self.report.problems.push(error);
                (newest, None, self.env.random.next_u64())
            }
        };
        let Some(number) = number else { return Ok(None) };
        let mut state = ManifestState::default();
        let order_of = |id: &str| self.options.components.key_order(id);
        let fold = |record: &Record| state.apply(record, &order_of);
        let folded = fold_manifest(&self.env, self.dir, number, uid, fold)
            .and_then(|folded| self.check_witnesses(&state, &folded));
        match folded {
            Ok(()) if state.keyspaces.contains_key(&KeyspaceId::DEFAULT) => {
                Ok(Some(Found { state, database_uid, manifest: None }))
            }
            Ok(()) => Ok(None),
            Err(error) if error.is_corruption() => {
                self.report.problems.push(error);
                Ok(None)
            }
            // A manifest that cannot be read now may be whole: made anew from the
            // tables it would lose the names of keyspaces.
            Err(error) => Err(error),
        }
    }

    /// Whether the manifest is what every log that can be read remembers of it.
    fn check_witnesses(&self, state: &ManifestState, manifest: &Folded) -> Result<()> {
        for &number in &self.listing.wals {
            let path = self.dir.join(names::wal(number));
            let file = self.env.fs.open(&path, ReadOptions::default())?;
            let Ok(mut reader) = Reader::open(file, LogKind::Wal, None) else { continue };
            let header = reader.header();
            let known = state.wals.get(&number);
            if !is_log(header, number, known)
                || known.is_none() && !is_own(&self.env, self.dir, header, Some(manifest))?
            {
                continue;
            }
            let (seen, bytes) = (header.manifest_number, header.manifest_durable_bytes);
            manifest.check(self.dir, Length { number: seen, bytes }, number)?;
            while let Ok(Some(record)) = reader.next() {
                if record.class == Class::Mark {
                    let mark = Mark::decode(record.payload);
                    mark.and_then(|mark| manifest.check(self.dir, mark.manifest, number))?;
                }
            }
        }
        Ok(())
    }

    /// A state made of the tables: all of a keyspace's tables are merged into
    /// one run, entry by entry in the order of their sequence numbers, since
    /// nothing says any more which file stood above which.
    fn rebuild(&mut self) -> Result<Found> {
        self.report.manifest_rebuilt = true;
        let mut state = ManifestState::default();
        let mut comparators: BTreeMap<KeyspaceId, String> = BTreeMap::new();
        comparators.insert(KeyspaceId::DEFAULT, BYTEWISE_ID.to_owned());
        for &number in &self.listing.tables {
            if let Ok(table) = self.open_any(number) {
                let properties = table.properties();
                comparators.insert(properties.keyspace, properties.comparator.clone());
            }
        }
        for (id, comparator) in comparators {
            let default = id == KeyspaceId::DEFAULT;
            let name = if default { DEFAULT_KEYSPACE.into() } else { format!("keyspace-{id}") };
            let operator = &self.options.default_keyspace.merge_operator;
            let options = KeyspaceOptions {
                comparator: Some(comparator),
                merge_operator: operator.clone().filter(|_| default),
            };
            let record = new_keyspace(id, &name, &options, &self.options.components)?;
            let order = self.options.components.key_order(&record.comparator)?;
            let version = Arc::new(Version::empty(order));
            state.keyspaces.insert(id, KeyspaceState { record, version });
            state.next_keyspace = id.0 + 1;
        }
        Ok(Found { state, database_uid: self.env.random.next_u64(), manifest: None })
    }

    /// Opens a table without knowing anything of it.
    fn open_any(&self, number: FileNumber) -> Result<Table> {
        let file = self.env.fs.open(&self.table_path(number), ReadOptions::default())?;
        let uid = uid_of_table(&*file)?;
        Table::open(&file, Expect { file_bytes: file.len(), uid, order: Default::default() })
            .or_else(|_| self.open_ordered(number))
    }

    /// The same where the table is of an order other than the bytewise one.
    fn open_ordered(&self, number: FileNumber) -> Result<Table> {
        let file = self.env.fs.open(&self.table_path(number), ReadOptions::default())?;
        let uid = uid_of_table(&*file)?;
        let mut last = Err(Error::corruption("no registered comparator opens the table"));
        for comparator in &self.options.components.comparators {
            let order = windrow_base::KeyOrder::Custom(comparator.clone());
            last = Table::open(&file, Expect { file_bytes: file.len(), uid, order });
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn table_path(&self, number: FileNumber) -> PathBuf {
        self.dir.join(names::table(number))
    }

    /// Verifies a keyspace's tables and replaces those that are damaged; where
    /// the manifest was lost, gathers them first.
    fn mend_tree(&mut self, core: &Arc<Core>, tree: &Tree) -> Result<()> {
        if self.report.manifest_rebuilt {
            return self.gather(core, tree);
        }
        let version = tree.version();
        let mut edit = Edit::default();
        for (level, part, file) in version.files() {
            if let Err(error) = self.check(tree, file) {
                self.report.problems.push(error);
                edit.removed.push((level, part, file.number));
                let saved = self.salvage(core, tree, file.number, Some(file.uid), level)?;
                self.count_saved(&saved);
                let at_place = |f: File| (level, part, Arc::new(File { epoch: file.epoch, ..f }));
                edit.added.extend(saved.into_iter().map(at_place));
                self.move_to_lost(&names::table(file.number))?;
            } else {
                self.report.tables_kept += 1;
            }
        }
        self.apply(core, tree, edit)
    }

    fn count_saved(&mut self, saved: &[File]) {
        match saved.is_empty() {
            true => self.report.tables_lost += 1,
            false => self.report.tables_salvaged += 1,
        }
        self.report.entries_salvaged += saved.iter().map(|f| f.entries).sum::<u64>();
    }

    fn check(&self, tree: &Tree, file: &File) -> Result<()> {
        if mutant!(RepairTrustsTables) {
            return Ok(());
        }
        let raw = self.env.fs.open(&self.table_path(file.number), ReadOptions::default())?;
        let expect = Expect { file_bytes: file.bytes, uid: file.uid, order: tree.order.clone() };
        table::verify(&raw, expect).map(|_| ())
    }

    fn apply(&self, core: &Core, tree: &Tree, edit: Edit) -> Result<()> {
        let mut manifest = core.manifest.lock();
        let keyspace = manifest.state.keyspaces.get_mut(&tree.id).expect("the tree was made of it");
        keyspace.version = Arc::new(keyspace.version.apply(&edit)?);
        tree.install(keyspace.version.clone(), None);
        Ok(())
    }

    /// Writes what can be read of a damaged table to new ones.
    fn salvage(
        &mut self,
        core: &Core,
        tree: &Tree,
        number: FileNumber,
        uid: Option<u64>,
        level: u32,
    ) -> Result<Vec<File>> {
        let opened = self.env.fs.open(&self.table_path(number), ReadOptions::default());
        let Ok(file) = opened else {
            return Ok(Vec::new());
        };
        let Ok(uid) = uid.map_or_else(|| uid_of_table(&*file), Ok) else {
            return Ok(Vec::new());
        };
        let expect = Expect { file_bytes: file.len(), uid, order: tree.order.clone() };
        let Ok(table) = Table::open(&file, expect) else {
            return Ok(Vec::new());
        };
        let mut outputs = self.outputs(core, tree, level, table.tombstones().to_tombstones());
        let mut last_key: Option<Vec<u8>> = None;
        for handle in data_blocks(&table, &*file, uid, tree) {
            let Ok(block) = table::read_block(&*file, uid, handle, BlockKind::Data) else {
                continue;
            };
            let mut iter = BlockIter::new(Arc::new(block), tree.order.clone());
            iter.seek_first();
            while iter.valid() {
                key::split_checked(iter.key())?;
                let (user_key, trailer) = key::split(iter.key());
                let first = last_key.as_deref() != Some(user_key);
                outputs.keep(user_key, trailer, iter.value(), first)?;
                last_key = Some(user_key.to_vec());
                iter.next();
            }
        }
        outputs.finish(0)
    }

    fn outputs<'c>(
        &self,
        core: &'c Core,
        tree: &'c Tree,
        level: u32,
        tombstones: Vec<RangeTombstone>,
    ) -> Outputs<'c> {
        let version = tree.version();
        let policy = tree.policy.load();
        let filters = Arc::new(core.repair_filters(tree));
        let spec = OutputSpec {
            level,
            cutter: policy.cutter(&version, &tree.sizes.load(), level),
            filters,
            tombstones,
        };
        Outputs::new(core, tree, spec)
    }

    /// Merges every table of a keyspace into run 1. Damaged ones are salvaged
    /// first; entries that two tables hold (an orphaned input beside its
    /// output) are written once.
    fn gather(&mut self, core: &Arc<Core>, tree: &Tree) -> Result<()> {
        let mut files: Vec<File> = Vec::new();
        for number in self.listing.tables.clone() {
            let Ok(table) = self.open_any(number) else {
                if tree.id == KeyspaceId::DEFAULT {
                    self.report.tables_lost += 1;
                    self.move_to_lost(&names::table(number))?;
                }
                continue;
            };
            if table.properties().keyspace != tree.id {
                continue;
            }
            let file = describe(number, &table, self.env.fs.len(&self.table_path(number))?);
            match self.check(tree, &file) {
                Ok(()) => {
                    self.report.tables_kept += 1;
                    files.push(file);
                }
                Err(error) => {
                    self.report.problems.push(error);
                    let saved = self.salvage(core, tree, number, Some(file.uid), 1)?;
                    self.count_saved(&saved);
                    files.extend(saved);
                    self.move_to_lost(&names::table(number))?;
                }
            }
        }
        let through = files.iter().map(|f| f.seq_max).max().unwrap_or(0);
        let merged = self.merge_all(core, tree, &files)?;
        let edit = Edit {
            added: merged.into_iter().map(|f| (1, Part::Run, Arc::new(f))).collect(),
            flushed_through: Some(through),
            ..Edit::default()
        };
        self.apply(core, tree, edit)
    }

    fn merge_all(&self, core: &Core, tree: &Tree, files: &[File]) -> Result<Vec<File>> {
        let mut tombstones = Vec::new();
        let mut sources = Vec::new();
        for file in files {
            let table = core.tables.handle(file, &tree.order);
            tombstones.extend(core.tables.open(&table)?.table.tombstones().to_tombstones());
            let read = ReadFile { file: Arc::new(file.clone()), table };
            let run = Arc::new(SortedRun::new(1, vec![read], &tree.order));
            let options = TableIterOptions::sequential(256 << 10);
            sources.push(Source::Level(LevelIter::new(run, tree.reads.clone(), options)));
        }
        let mut iter = MergeIter::new(sources, tree.order.clone(), core.env.fs.clone());
        let mut outputs = self.outputs(core, tree, 1, tombstones);
        let mut last: Vec<u8> = Vec::new();
        iter.seek_first()?;
        while iter.valid() {
            if last != iter.key() {
                let first =
                    last.is_empty() || !tree.order.equal(key::split(&last).0, iter.user_key());
                outputs.keep(iter.user_key(), iter.trailer(), iter.value(), first)?;
                last.clear();
                last.extend_from_slice(iter.key());
            }
            iter.next()?;
        }
        iter.status()?;
        outputs.finish(0)
    }

    /// Replays the logs as far as they go, and makes the result the database.
    fn replay(&mut self, core: &Arc<Core>, rebuilt: bool) -> Result<()> {
        let state = core.manifest.lock().state.clone();
        let from = if rebuilt { 0 } else { state.log_number };
        let numbers: Vec<FileNumber> = self.listing.wals.range(from..).copied().collect();
        let paths: Vec<(FileNumber, PathBuf)> =
            numbers.iter().map(|&n| (n, self.dir.join(names::wal(n)))).collect();
        let (replayed, problems) = Replay::tolerant(core, &state, rebuilt).run_tolerant(&paths)?;
        self.report.batches_replayed = replayed.batches;
        for (number, error) in problems {
            self.move_to_lost(&names::wal(number))?;
            self.report.problems.push(error);
        }
        // Open needs none of the old files: what is not live goes, but for lost ones.
        let listing = Listing::read(&self.env, self.dir)?;
        core.start_writing(&listing, &replayed)?;
        core.close()
    }

    fn move_to_lost(&self, name: &str) -> Result<()> {
        let (from, lost) = (self.dir.join(name), self.dir.join(LOST));
        if !self.env.fs.exists(&from)? {
            return Ok(());
        }
        self.env.fs.create_dir(&lost)?;
        self.env.fs.rename(&from, &lost.join(name))?;
        self.env.fs.sync_dir(&lost)?;
        self.env.fs.sync_dir(self.dir)
    }
}

/// The data blocks that the index can still name.
fn data_blocks(
    table: &Table,
    file: &dyn windrow_env::ReadFile,
    uid: u64,
    tree: &Tree,
) -> Vec<BlockHandle> {
    let mut handles = Vec::new();
    let mut top = table.index_iter();
    top.seek_first();
    while top.valid() {
        match top.place() {
            Locate::Block(handle) => handles.push(handle),
            Locate::Partition(partition) => {
                let block = table::read_block(file, uid, partition.index, BlockKind::Index);
                let part = block.and_then(|b| IndexIter::new(Arc::new(b), tree.order.clone()));
                if let Ok(mut part) = part {
                    part.seek_first();
                    while part.valid() {
                        handles.push(part.handle());
                        part.next();
                    }
                }
            }
            Locate::None => {}
        }
        top.next();
    }
    handles
}

/// A table's metadata from its own properties.
fn describe(number: FileNumber, table: &Table, bytes: u64) -> File {
    let p = table.properties();
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
