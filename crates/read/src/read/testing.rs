//! Trees built by hand and by seed, and the model that reads are compared with.
//!
//! A history is a list of operations by sequence number. `TableWorld::grow` cuts it into partitions
//! of the keys and each partition's operations, oldest first, into places of the tree from the
//! bottom up, at different points in each partition: the trees that flushes and merges by partition
//! leave behind. `model` replays it.
//!
//! Owns: the files in memory, the trees and the model. Never does: run in a build that is not a
//! test's.

use super::access::Access;
use super::cost::ReadCost;
use super::readahead::Readahead;
use super::scan::Scan;
use super::scan_options::ScanOptions;
use super::view::ReadView;
use super::{Latest, ReadOwner};
use crate::cache::{BlockCache, TableCache, TableLimits};
use crate::gaps::Gaps;
use crate::memtable::Memtable;
use crate::operators;
use crate::stats::Counters;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::key::{self, Kind};
use windrow_base::{KeyOrder, KeyspaceId, Result, SeqNo};
use windrow_env::fs::{
    FileLock, Lease, LeaseState, LockMode, ReadFileOptions as FileReadOptions, ReadRequest, Stamp,
    WriteOptions,
};
use windrow_env::testing::{self, Handles, Rng};
use windrow_env::{FileSystem, LogFile, ReadFile, WriteFile};
use windrow_format::names;
use windrow_format::table::{TableOptions, TableWriter};
use windrow_format::tombstone::{RangeTombstone, Tombstones};
use windrow_plan::tree::{File, Level, Version};
use windrow_skiplist::ChunkPool;

/// One operation of a history.
#[derive(Clone, Debug)]
pub(crate) struct HistoryOp {
    pub(crate) key: Vec<u8>,
    pub(crate) seq: SeqNo,
    pub(crate) kind: Kind,
    /// The value as it is stored; the end of a range delete.
    pub(crate) value: Vec<u8>,
}

impl HistoryOp {
    pub(crate) fn new(seq: SeqNo, kind: Kind, key: &str, value: &str) -> HistoryOp {
        HistoryOp { key: key.into(), seq, kind, value: value.into() }
    }

    fn internal(&self) -> Vec<u8> {
        let mut internal = Vec::new();
        key::push_internal(&mut internal, &self.key, key::trailer(self.seq, self.kind));
        internal
    }
}

/// Returns the keys and values that a read at `seq` and `now_ms` sees of a history, with operator
/// `append`.
pub(crate) fn model(history: &[HistoryOp], seq: SeqNo, now_ms: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut map: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for op in history.iter().filter(|op| op.seq <= seq) {
        let expiry = || u64::from_le_bytes(op.value[..8].try_into().unwrap());
        let is_gone = op.kind.has_expiry() && expiry() <= now_ms;
        let value = if op.kind.has_expiry() { &op.value[8..] } else { &op.value[..] };
        match op.kind {
            _ if is_gone => drop(map.remove(&op.key)),
            Kind::Put | Kind::PutExpiry => drop(map.insert(op.key.clone(), value.to_vec())),
            Kind::Merge | Kind::MergeExpiry => map.entry(op.key.clone()).or_default().extend(value),
            Kind::RangeDelete => map.retain(|key, _| *key < op.key || *key >= op.value),
            _ => drop(map.remove(&op.key)),
        }
    }
    map
}

/// A directory in memory with tables in it.
pub(crate) struct TableWorld {
    pub(crate) handles: Handles,
    pub(crate) owner: Arc<ReadOwner>,
    next_number: u64,
    pub(crate) block_bytes: usize,
    pub(crate) partition_bytes: usize,
    pub(crate) hash_index: bool,
}

impl TableWorld {
    pub(crate) fn new(seed: u64, order: KeyOrder) -> TableWorld {
        let (env, handles) = testing::env(seed);
        env.fs.create_dir(Path::new("db")).unwrap();
        let counters = Arc::new(Counters::default());
        let tables = TableCache::new(
            Arc::clone(&env.fs),
            "db",
            TableLimits::fixed(1000, u64::MAX),
            false,
            Arc::clone(&counters),
            Arc::new(|_| ()),
            Arc::new(|_| ()),
        );
        let owner = ReadOwner {
            tables: Arc::new(tables),
            blocks: Arc::new(BlockCache::new(1 << 20)),
            env: Arc::new(env),
            order,
            operator: operators::built_in("append"),
            operator_name: Some("append".into()),
            counters,
            access: Access::default(),
            cost: ReadCost::default(),
            gaps: Gaps::new(Arc::default()),
            process: windrow_env::Process::current(),
        };
        TableWorld {
            handles,
            owner: Arc::new(owner),
            next_number: 1,
            block_bytes: 256,
            partition_bytes: 1 << 20,
            hash_index: true,
        }
    }

    /// Returns an owner of these files under new, empty caches: the tables of `limit_files` may be
    /// open.
    pub(crate) fn with_cold_caches(&self, cache_bytes: u64, limit_files: usize) -> Arc<ReadOwner> {
        self.with_limits(cache_bytes, TableLimits::fixed(limit_files, u64::MAX))
    }

    /// Returns an owner of these files under new caches with a limit on the memory of tables.
    pub(crate) fn with_limits(&self, cache_bytes: u64, limits: TableLimits) -> Arc<ReadOwner> {
        let old = &self.owner;
        let fs = Arc::clone(&old.env.fs);
        let counters = Arc::new(Counters::default());
        let tables = TableCache::new(
            fs,
            "db",
            limits,
            false,
            Arc::clone(&counters),
            Arc::new(|_| ()),
            Arc::new(|_| ()),
        );
        Arc::new(ReadOwner {
            tables: Arc::new(tables),
            blocks: Arc::new(BlockCache::new(cache_bytes)),
            env: old.env.clone(),
            order: old.order.clone(),
            operator: old.operator.clone(),
            operator_name: old.operator_name.clone(),
            counters,
            access: Access::default(),
            cost: ReadCost::default(),
            gaps: Gaps::new(Arc::default()),
            process: windrow_env::Process::current(),
        })
    }

    /// Writes a table of these operations.
    pub(crate) fn table(&mut self, ops: &[HistoryOp]) -> File {
        let order = self.owner.order.clone();
        let number = self.next_number;
        self.next_number += 1;
        let uid = self.owner.env.random.next_u64();
        let options = TableOptions {
            block_bytes: self.block_bytes,
            partition_bytes: self.partition_bytes,
            hash_index: self.hash_index,
            restart_interval: 4,
            ..TableOptions::new(uid, KeyspaceId::DEFAULT, order.clone())
        };
        let path = Path::new("db").join(names::table(number));
        let file = self.owner.env.fs.create(&path, WriteOptions::default()).unwrap();
        let mut writer = TableWriter::new(file, options).unwrap();
        let mut points: Vec<&HistoryOp> =
            ops.iter().filter(|op| op.kind != Kind::RangeDelete).collect();
        points.sort_by(|a, b| key::compare_internal(&order, &a.internal(), &b.internal()));
        for op in points {
            writer.add(&op.internal(), &op.value).unwrap();
        }
        let ranges = tombstones(ops);
        for layer in Tombstones::build(ranges.iter().map(RangeTombstone::parts), &order).layers() {
            layer.iter().for_each(|fragment| writer.add_fragment(fragment).unwrap());
            writer.end_tombstone_layer();
        }
        let summary = writer.finish().unwrap();
        let (smallest, largest, largest_exclusive) = summary.bounds;
        File {
            number,
            uid,
            bytes: summary.file_bytes,
            entries: summary.entries,
            point_tombstones: summary.point_tombstones,
            range_tombstones: summary.range_tombstones,
            smallest,
            largest,
            largest_exclusive,
            point_bounds: summary.point_bounds,
            seq_min: summary.seq_min,
            seq_max: summary.seq_max,
            is_ingested: false,
            filter_bytes: summary.filter_bytes,
            ..File::default()
        }
    }

    pub(crate) fn memtable(&self, ops: &[HistoryOp]) -> Arc<Memtable> {
        let memtable = Memtable::new(self.owner.order.clone(), Arc::new(ChunkPool::new(0)));
        for op in ops {
            memtable.insert(op.kind, op.seq, &op.key, &op.value);
        }
        Arc::new(memtable)
    }

    /// Makes a view of memtables (newest first) and levels of (run, log newest first).
    pub(crate) fn view(
        &self,
        memtables: &[Vec<HistoryOp>],
        levels: Vec<(Vec<File>, Vec<File>)>,
    ) -> Arc<ReadView> {
        let order = &self.owner.order;
        let mut epoch = 1000;
        let levels = levels.into_iter().map(|(run, log)| {
            let log = log.into_iter().map(|file| {
                epoch -= 1;
                Arc::new(file.at_epoch(epoch))
            });
            let run = run.into_iter().map(Arc::new).collect();
            Arc::new(Level::new(order, run, log.collect()).unwrap())
        });
        let version = Version { levels: levels.collect(), ..Version::empty(order.clone()) };
        let mut memtables = memtables.iter().map(|ops| self.memtable(ops));
        let memtable = memtables.next().unwrap_or_else(|| self.memtable(&[]));
        self.view_of(&self.owner, memtable, memtables.collect(), Arc::new(version))
    }

    /// Makes a view of the same tree for an owner of other caches.
    pub(crate) fn view_for(&self, owner: &Arc<ReadOwner>, view: &ReadView) -> Arc<ReadView> {
        let (memtable, frozen) = (Arc::clone(&view.memtable), view.frozen.clone());
        self.view_of(owner, memtable, frozen.into_vec(), Arc::clone(&view.version))
    }

    fn view_of(
        &self,
        owner: &Arc<ReadOwner>,
        memtable: Arc<Memtable>,
        frozen: Vec<Arc<Memtable>>,
        version: Arc<Version>,
    ) -> Arc<ReadView> {
        let handle = |file: &Arc<File>| owner.tables.handle(file, &owner.order);
        let levels = ReadView::next_levels(&[], &version, handle);
        Arc::new(ReadView::new(memtable, frozen, version, levels))
    }

    pub(crate) fn scan(&self, view: &Arc<ReadView>, seq: SeqNo, now_ms: u64) -> Scan {
        let owner = Arc::clone(&self.owner);
        Scan::new(owner, Arc::clone(view), seq, now_ms, everything())
    }

    /// Makes a random tree that holds `history`, whose keys are below `keys`.
    pub(crate) fn grow(
        &mut self,
        rng: &mut Rng,
        history: &[HistoryOp],
        keys: u64,
    ) -> Arc<ReadView> {
        // Places from the oldest: log 2, run 2, log 1 (three epochs), run 1,
        // log 0 (three), a frozen memtable, the memtable.
        const PLACES: usize = 11;
        let mut cuts: Vec<u64> = (0..3).map(|_| rng.below(keys)).collect();
        cuts.extend([0, u64::MAX]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut tables: Vec<Vec<File>> = vec![Vec::new(); PLACES];
        // Memtables are not cut into partitions: their ages are the same everywhere.
        let frozen_from = rng.below(history.len() as u64 + 1) as usize;
        let memtable_from =
            frozen_from + rng.below((history.len() - frozen_from) as u64 + 1) as usize;
        for partition in cuts.windows(2) {
            let (lo, hi) = (
                number_key(partition[0]),
                (partition[1] != u64::MAX).then(|| number_key(partition[1])),
            );
            let ops = within(&history[..frozen_from], &lo, hi.as_deref());
            let mut ends: Vec<usize> =
                (0..PLACES - 3).map(|_| rng.below(ops.len() as u64 + 1) as usize).collect();
            ends.extend([0, ops.len()]);
            ends.sort_unstable();
            for (place, end) in ends.windows(2).enumerate() {
                if end[0] < end[1] {
                    self.vary(rng);
                    let file = self.table(&ops[end[0]..end[1]]);
                    tables[place].push(file);
                }
            }
        }
        let mut tables = tables.into_iter();
        let mut places = |count: usize| -> Vec<File> {
            let taken: Vec<Vec<File>> = tables.by_ref().take(count).collect();
            taken.into_iter().rev().flatten().collect()
        };
        let (log_2, run_2, log_1, run_1, log_0) =
            (places(1), places(1), places(3), places(1), places(3));
        let memtables =
            [history[memtable_from..].to_vec(), history[frozen_from..memtable_from].to_vec()];
        self.view(&memtables, vec![(Vec::new(), log_0), (run_1, log_1), (run_2, log_2)])
    }

    fn vary(&mut self, rng: &mut Rng) {
        self.block_bytes = [40, 100, 256, 4096][rng.below(4) as usize];
        self.partition_bytes = [60, 300, 1 << 20][rng.below(3) as usize];
        self.hash_index = rng.chance(0.7);
    }
}

/// A scan of all keys.
pub(crate) fn everything() -> ScanOptions {
    ScanOptions {
        lower: None,
        lower_after: false,
        upper: None,
        upper_after: false,
        prefix: None,
        fill_cache: true,
        readahead: Readahead::Auto { max_bytes: 1 << 16 },
    }
}

fn tombstones(ops: &[HistoryOp]) -> Vec<RangeTombstone> {
    let ranges = ops.iter().filter(|op| op.kind == Kind::RangeDelete);
    let tombstone = |op: &HistoryOp| RangeTombstone {
        start: op.key.clone(),
        end: op.value.clone(),
        seq: op.seq,
    };
    ranges.map(tombstone).collect()
}

/// The operations on keys of `[lo, hi)`, range deletes cut to it.
fn within(history: &[HistoryOp], lo: &[u8], hi: Option<&[u8]>) -> Vec<HistoryOp> {
    let is_below_hi = |key: &[u8]| hi.is_none_or(|hi| key < hi);
    let mut ops = Vec::new();
    for op in history {
        if op.kind != Kind::RangeDelete {
            if lo <= &op.key[..] && is_below_hi(&op.key) {
                ops.push(op.clone());
            }
            continue;
        }
        let mut cut = op.clone();
        cut.key = cut.key.max(lo.to_vec());
        if let Some(hi) = hi {
            cut.value = cut.value.min(hi.to_vec());
        }
        if cut.key < cut.value {
            ops.push(cut);
        }
    }
    ops
}

/// Keys of differing lengths, some with a long common prefix, in number order.
pub(crate) fn number_key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => format!("k{number:03}").into_bytes(),
        1 => format!("k{number:03}-and-a-good-deal-more").into_bytes(),
        _ => format!("k{number:03}\0").into_bytes(),
    }
}

/// A random history over keys below `keys`, sequence numbers from 1.
/// Expiries lie around 1000 ms.
pub(crate) fn random_history(rng: &mut Rng, ops: u64, keys: u64) -> Vec<HistoryOp> {
    let mut history = Vec::new();
    for seq in 1..=ops {
        // Some keys are hot: their versions span blocks.
        let number = if rng.chance(0.3) { rng.below(3) } else { rng.below(keys) };
        let key = number_key(number);
        let text = format!("v{seq}{}", "x".repeat(rng.below(30) as usize)).into_bytes();
        let (kind, value) = match rng.below(20) {
            0..9 => (Kind::Put, text),
            9..12 => (Kind::Delete, Vec::new()),
            12 => (Kind::SingleDelete, Vec::new()),
            13..16 => (Kind::Merge, text),
            16 => (Kind::RangeDelete, number_key(number + 1 + rng.below(keys / 3 + 1))),
            expiring => {
                let expiry_ms: u64 = 900 + rng.below(200);
                let kind = if expiring == 17 { Kind::MergeExpiry } else { Kind::PutExpiry };
                (kind, [&expiry_ms.to_le_bytes()[..], &text].concat())
            }
        };
        history.push(HistoryOp { key, seq, kind, value });
    }
    history
}

/// A keyspace that does not change, or a snapshot of it.
pub(crate) struct Still {
    pub(crate) view: Arc<ReadView>,
    pub(crate) seq: SeqNo,
    pub(crate) now_ms: u64,
    pub(crate) is_snapshot: bool,
}

impl Still {
    pub(crate) fn new(view: &Arc<ReadView>, seq: SeqNo, now_ms: u64) -> Arc<Still> {
        Arc::new(Still { view: Arc::clone(view), seq, now_ms, is_snapshot: false })
    }
}

impl Latest for Still {
    fn latest(&self) -> Result<(Arc<ReadView>, SeqNo, u64)> {
        Ok((Arc::clone(&self.view), self.seq, self.now_ms))
    }

    fn later_view(&self) -> Option<Arc<ReadView>> {
        self.is_snapshot.then(|| Arc::clone(&self.view))
    }
}

/// Counts submissions; the bytes come from the files themselves.
pub(crate) struct Submissions(pub std::sync::atomic::AtomicUsize);

impl FileSystem for Submissions {
    fn read_many(&self, requests: &mut [ReadRequest<'_>]) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        requests.iter_mut().for_each(|r| r.result = r.file.read_at(r.offset, r.buf));
    }

    fn absolute(&self, _: &Path) -> Result<PathBuf> {
        unreachable!()
    }
    fn anchor(&self, _: &Path) -> Result<Arc<dyn FileSystem>> {
        unreachable!()
    }
    fn stamp(&self, _: &Path) -> Result<Option<Stamp>> {
        unreachable!()
    }
    fn create(&self, _: &Path, _: WriteOptions) -> Result<Box<dyn WriteFile>> {
        unreachable!()
    }
    fn create_log(&self, _: &Path, _: u64) -> Result<Arc<dyn LogFile>> {
        unreachable!()
    }
    fn open(&self, _: &Path, _: FileReadOptions) -> Result<Arc<dyn ReadFile>> {
        unreachable!()
    }
    fn read_all(&self, _: &Path) -> Result<Vec<u8>> {
        unreachable!()
    }
    fn list(&self, _: &Path) -> Result<Vec<String>> {
        unreachable!()
    }
    fn exists(&self, _: &Path) -> Result<bool> {
        unreachable!()
    }
    fn len(&self, _: &Path) -> Result<u64> {
        unreachable!()
    }
    fn rename(&self, _: &Path, _: &Path) -> Result<()> {
        unreachable!()
    }
    fn remove(&self, _: &Path) -> Result<()> {
        unreachable!()
    }
    fn link(&self, _: &Path, _: &Path) -> Result<()> {
        unreachable!()
    }
    fn create_dir(&self, _: &Path) -> Result<()> {
        unreachable!()
    }
    fn remove_dir(&self, _: &Path) -> Result<()> {
        unreachable!()
    }
    fn sync_dir(&self, _: &Path) -> Result<()> {
        unreachable!()
    }
    fn lock(&self, _: &Path, _: LockMode) -> Result<Box<dyn FileLock>> {
        unreachable!()
    }
    fn lease(&self, _: &Path) -> Result<Box<dyn Lease>> {
        unreachable!()
    }
    fn lease_state(&self, _: &Path) -> Result<LeaseState> {
        unreachable!()
    }
    fn open_files_max(&self) -> usize {
        unreachable!()
    }
    fn free_bytes(&self, _: &Path) -> Result<u64> {
        unreachable!()
    }
}
