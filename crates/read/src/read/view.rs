//! The state that one read sees: the memtables and a version of the tree, pinned at once.
//!
//! To a reader the tree is a list of sorted runs, newest first: level 0's log, run 1, log 1, run 2,
//! ... A log is packed into as few runs as its overlaps allow (a flush cut into partitions, or
//! partitions of different age, share one), so a read costs the depth over its key and not the
//! number of files.
//!
//! Owns: handles of the version's tables (so their files stay) and the search keys over them. Never
//! does: I/O; change after it was made.

use crate::cache::{OpenGuard, TableCache, TableHandle};
use crate::memtable::Memtable;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use windrow_base::key::prefix_u64;
use windrow_base::{KeyOrder, Result, SeqNo};
use windrow_plan::tree::{File, Level, Version};

/// A file of the version with the handle that opens it.
#[derive(Clone)]
pub struct VersionFile {
    pub file: Arc<File>,
    pub table: Arc<TableHandle>,
}

impl VersionFile {
    /// Whether the file's bounds contain the user key.
    #[inline]
    pub fn covers(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        order.compare(&self.file.smallest, user_key).is_le() && !self.is_below(order, user_key)
    }

    /// Whether all keys of the file are before the user key.
    #[inline]
    fn is_below(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        match order.compare(&self.file.largest, user_key) {
            Ordering::Less => true,
            Ordering::Equal => self.file.largest_exclusive,
            Ordering::Greater => false,
        }
    }

    /// Whether it has point entries (and not range tombstones alone).
    pub(crate) fn has_points(&self) -> bool {
        self.file.point_bounds.is_some()
    }

    /// Opens the table.
    ///
    /// # Errors
    /// As [`TableCache::open`].
    #[inline]
    pub fn open(&self, tables: &TableCache) -> Result<OpenGuard> {
        tables.open(&self.table)
    }
}

/// Files that are disjoint and sorted by key.
pub struct SortedRun {
    pub level: u32,
    /// Whether it is of the level's SST-log: over tables that may be merged with it.
    pub is_sst_log: bool,
    /// The size of all its files. In KiB, since every keyspace has a run.
    kib: u32,
    shared_bytes: u32,
    pub files: Box<[VersionFile]>,
    /// Eight bytes of each file's largest key, after the bytes that all keys of the run share
    /// (bytewise orders only): the binary search runs over these and touches a file's own bounds
    /// once or twice.
    prefixes: Box<[u64]>,
    /// Indexes of the files that hold range tombstones.
    with_tombstones: Box<[u32]>,
    order: KeyOrder,
}

fn kib(run: &Arc<SortedRun>) -> u64 {
    u64::from(run.kib)
}

/// The size of files, in KiB.
fn kib_of(files: &[VersionFile]) -> u32 {
    let bytes = files.iter().fold(0, |sum: u64, f| sum.saturating_add(f.file.bytes));
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

impl SortedRun {
    /// A run of files that are sorted and disjoint already.
    pub fn new(level: u32, files: Vec<VersionFile>, order: &KeyOrder) -> SortedRun {
        debug_assert!(
            files.windows(2).all(|pair| pair[0].is_below(order, &pair[1].file.smallest)),
            "files of a run overlap (I1)"
        );
        let shared_bytes = match (files.first(), files.last()) {
            (Some(first), Some(last)) if order.is_bytewise() => {
                let pairs = first.file.smallest.iter().zip(last.file.largest.iter());
                pairs.take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        let prefixes = match order.is_bytewise() {
            true => files.iter().map(|f| prefix_u64(&f.file.largest[shared_bytes..])).collect(),
            false => Box::default(),
        };
        let with_tombstones = (0..files.len() as u32)
            .filter(|&i| files[i as usize].file.range_tombstones > 0)
            .collect();
        SortedRun {
            level,
            is_sst_log: false,
            kib: kib_of(&files),
            shared_bytes: shared_bytes as u32,
            files: files.into(),
            prefixes,
            with_tombstones,
            order: order.clone(),
        }
    }

    /// Whether one of its files holds range tombstones.
    #[inline]
    pub(crate) fn has_tombstones(&self) -> bool {
        !self.with_tombstones.is_empty()
    }

    /// Returns the file with range tombstones whose bounds contain the user key. `narrow` gets the
    /// interval of keys around it for which the answer is this file (or none).
    pub(crate) fn tombstones_near(
        &self,
        user_key: &[u8],
        narrow: impl FnOnce(Bound<&[u8]>, Bound<&[u8]>),
    ) -> Option<&VersionFile> {
        let after_end = |file: &VersionFile| file.is_below(&self.order, user_key);
        let at = self.with_tombstones.partition_point(|&i| after_end(&self.files[i as usize]));
        let next = self.with_tombstones.get(at).map(|&i| &self.files[i as usize]);
        if let Some(file) = next.filter(|file| file.covers(&self.order, user_key)) {
            let largest = &*file.file.largest;
            let to = match file.file.largest_exclusive {
                true => Bound::Excluded(largest),
                false => Bound::Included(largest),
            };
            narrow(Bound::Included(&file.file.smallest), to);
            return Some(file);
        }
        let from = match at
            .checked_sub(1)
            .map(|before| &self.files[self.with_tombstones[before] as usize].file)
        {
            Some(before) if before.largest_exclusive => Bound::Included(&*before.largest),
            Some(before) => Bound::Excluded(&*before.largest),
            None => Bound::Unbounded,
        };
        narrow(from, next.map_or(Bound::Unbounded, |next| Bound::Excluded(&next.file.smallest)));
        None
    }

    /// Returns the index of the first file that is not wholly before the user key.
    #[inline]
    pub fn find(&self, user_key: &[u8]) -> usize {
        let below = |file: &VersionFile| file.is_below(&self.order, user_key);
        if self.prefixes.is_empty() {
            return self.files.partition_point(below);
        }
        let shared = &self.files[0].file.smallest[..self.shared_bytes as usize];
        let prefix = match user_key.strip_prefix(shared) {
            Some(rest) => prefix_u64(rest),
            None if user_key < shared => return 0,
            None => return self.files.len(),
        };
        let from = self.prefixes.partition_point(|&p| p < prefix);
        if self.prefixes.get(from) != Some(&prefix) {
            return from;
        }
        let same = self.prefixes[from..].partition_point(|&p| p == prefix);
        from + self.files[from..from + same].partition_point(below)
    }

    /// Returns the file whose bounds contain the user key.
    #[inline]
    pub(crate) fn file_of(&self, user_key: &[u8]) -> Option<&VersionFile> {
        let file = self.files.get(self.find(user_key))?;
        self.order.compare(&file.file.smallest, user_key).is_le().then_some(file)
    }
}

/// A level's files, ready for searches. Shared between views while the level stays.
pub struct ReadLevel {
    /// The run, if the level has files in it.
    pub run: Option<Arc<SortedRun>>,
    /// The log packed into runs, newest first: where two files overlap, the
    /// newer one is in an earlier run (I4).
    pub sst_log: Vec<Arc<SortedRun>>,
    source: Arc<Level>,
}

impl ReadLevel {
    fn new(
        number: u32,
        level: &Arc<Level>,
        order: &KeyOrder,
        table: &impl Fn(&Arc<File>) -> Arc<TableHandle>,
    ) -> ReadLevel {
        let read_file =
            |file: &Arc<File>| VersionFile { file: Arc::clone(file), table: table(file) };
        let new_run = || SortedRun::new(number, level.run.iter().map(read_file).collect(), order);
        ReadLevel {
            run: (!level.run.is_empty()).then(|| Arc::new(new_run())),
            sst_log: pack_log(number, level.sst_log.iter().map(read_file), order),
            source: Arc::clone(level),
        }
    }

    /// All files of the level.
    #[inline]
    pub fn files(&self) -> impl Iterator<Item = &VersionFile> {
        self.run.iter().chain(&self.sst_log).flat_map(|run| &run.files)
    }
}

/// Packs a log (newest first) into sorted runs, newest first: from the oldest
/// file on, each goes one run above the newest run that it overlaps.
pub fn pack_log(
    level: u32,
    log: impl DoubleEndedIterator<Item = VersionFile>,
    order: &KeyOrder,
) -> Vec<Arc<SortedRun>> {
    let mut runs: Vec<Vec<VersionFile>> = Vec::new();
    for file in log.rev() {
        // Where the file would be in a run, if it overlaps nothing there.
        let gap = |run: &[VersionFile]| {
            let at = run.partition_point(|other| other.is_below(order, &file.file.smallest));
            let fits = run.get(at).is_none_or(|next| file.is_below(order, &next.file.smallest));
            fits.then_some(at)
        };
        let place = runs.iter().rposition(|run| gap(run).is_none()).map_or(0, |below| below + 1);
        match runs.get(place).and_then(|run| gap(run)) {
            Some(at) => runs[place].insert(at, file),
            None => runs.push(vec![file]),
        }
    }
    let pack = |files| {
        let run = SortedRun::new(level, files, order);
        Arc::new(SortedRun { is_sst_log: true, ..run })
    };
    runs.into_iter().rev().map(pack).collect()
}

/// The memtables and the tree as one read sees them.
pub struct ReadView {
    pub memtable: Arc<Memtable>,
    /// Newest first.
    pub frozen: Box<[Arc<Memtable>]>,
    pub version: Arc<Version>,
    pub levels: Box<[Arc<ReadLevel>]>,
    /// Every run, in read order; none is empty.
    pub runs: Box<[Arc<SortedRun>]>,
    /// The number of versions that were installed before. Entries that a merge dropped are only in
    /// views with a smaller number.
    pub installs: u64,
}

impl ReadView {
    /// Returns the sequence number at which to read this view, once `visible` is published. Entries
    /// above the view's own last one were written after it, or have failed.
    #[inline]
    pub fn seq_at(&self, visible: SeqNo) -> SeqNo {
        visible.min(self.memtable.seq_max())
    }

    /// Makes a view of these memtables and levels.
    pub fn new(
        memtable: Arc<Memtable>,
        frozen: Vec<Arc<Memtable>>,
        version: Arc<Version>,
        levels: Vec<Arc<ReadLevel>>,
    ) -> ReadView {
        let in_order = levels.iter().flat_map(|level| level.run.iter().chain(&level.sst_log));
        let runs = in_order.cloned().collect();
        let (frozen, levels) = (frozen.into(), levels.into());
        ReadView { memtable, frozen, version, levels, runs, installs: 0 }
    }

    /// Returns the bytes that a scan of `entries` entries presumably takes from each run: its
    /// share, by its size, of the bytes of that number of entries. An entry counts the mean size in
    /// a table at the bottom.
    pub(crate) fn expected_bytes(&self, entries: u64) -> impl Fn(&SortedRun) -> u64 {
        let table = self.runs.last().and_then(|run| run.files.first());
        let entry_bytes = table.map_or(0, |t| t.file.bytes / t.file.entries.max(1));
        let (bytes, all) = (entries.saturating_mul(entry_bytes), self.runs.iter().map(kib).sum());
        let all: u64 = std::cmp::max(all, 1);
        move |run| bytes.saturating_mul(u64::from(run.kib)) / all
    }

    /// Returns the levels of `version`, sharing those of `old` whose files are the same.
    pub fn next_levels(
        old: &[Arc<ReadLevel>],
        version: &Version,
        table: impl Fn(&Arc<File>) -> Arc<TableHandle>,
    ) -> Vec<Arc<ReadLevel>> {
        let reuse_or_build = |(number, level): (usize, &Arc<Level>)| match old.get(number) {
            Some(read) if Arc::ptr_eq(&read.source, level) => Arc::clone(read),
            _ => Arc::new(ReadLevel::new(number as u32, level, &version.order, &table)),
        };
        version.levels.iter().enumerate().map(reuse_or_build).collect()
    }

    /// Returns this view with other memtables.
    pub fn with_memtables(&self, memtable: Arc<Memtable>, frozen: Vec<Arc<Memtable>>) -> ReadView {
        ReadView {
            memtable,
            frozen: frozen.into(),
            version: Arc::clone(&self.version),
            levels: self.levels.clone(),
            runs: self.runs.clone(),
            installs: self.installs,
        }
    }

    /// Returns this view, marked as one that comes after another one by an install.
    #[inline]
    pub fn installed_after(mut self, before: &ReadView) -> ReadView {
        self.installs = before.installs + 1;
        self
    }

    /// All memtables, newest first.
    #[inline]
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.memtable).chain(&self.frozen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::TableWorld;
    use windrow_env::testing::Rng;

    /// A file of these bounds; never opened.
    fn file(world: &TableWorld, number: u64, lo: u64, hi: u64, hi_exclusive: bool) -> VersionFile {
        // Long shared prefixes, and prefixes of eight bytes that are equal.
        let key = |n: u64| format!("shared-{:05}-{}", n / 4, n % 4).into_bytes();
        let file = Arc::new(File {
            number,
            smallest: key(lo).into(),
            largest: key(hi).into(),
            largest_exclusive: hi_exclusive,
            range_tombstones: u64::from(hi_exclusive),
            ..File::default()
        });
        let table = world.owner.tables.handle(&file, &KeyOrder::Bytewise);
        VersionFile { file, table }
    }

    fn key(n: u64) -> Vec<u8> {
        format!("shared-{:05}-{}", n / 4, n % 4).into_bytes()
    }

    #[test]
    fn a_run_finds_the_file_over_a_key() {
        let world = TableWorld::new(1, KeyOrder::Bytewise);
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            let mut files = Vec::new();
            let mut at = rng.below(5);
            for number in 1..=rng.below(30) {
                let hi = at + 1 + rng.below(6);
                let exclusive = rng.chance(0.3);
                files.push(file(&world, number, at, hi, exclusive));
                // After an open end the next file may begin right there.
                at = hi + u64::from(!exclusive) + rng.below(3);
            }
            let run = SortedRun::new(1, files, &KeyOrder::Bytewise);
            for n in 0..at + 3 {
                let user_key = key(n);
                let expected = run.files.iter().find(|f| f.covers(&KeyOrder::Bytewise, &user_key));
                let found = run.file_of(&user_key);
                assert_eq!(found.map(|f| f.file.number), expected.map(|f| f.file.number));
                let mut calls = 0;
                let near = run.tombstones_near(&user_key, |_, _| calls += 1);
                let expected = expected.filter(|f| f.file.range_tombstones > 0);
                assert_eq!(near.map(|f| f.file.number), expected.map(|f| f.file.number));
                assert_eq!(calls, 1);
            }
            for outside in [&b""[..], b"shared", b"shared-9", b"t"] {
                let expected =
                    run.files.iter().position(|f| !f.is_below(&KeyOrder::Bytewise, outside));
                assert_eq!(run.find(outside), expected.unwrap_or(run.files.len()));
            }
        }
    }

    /// A packed log keeps every file, in runs that are disjoint, and of two
    /// files that overlap the newer one comes first. It is no deeper than the log.
    #[test]
    fn a_packed_log_reads_in_the_same_order() {
        let world = TableWorld::new(1, KeyOrder::Bytewise);
        let order = KeyOrder::Bytewise;
        let mut rng = Rng::new(2);
        for _ in 0..100 {
            let count = rng.below(40);
            let log: Vec<VersionFile> = (0..count)
                .map(|number| {
                    let lo = rng.below(60);
                    file(&world, 100 + number, lo, lo + 1 + rng.below(12), rng.chance(0.3))
                })
                .collect();
            let runs = pack_log(0, log.iter().cloned(), &order);
            assert_eq!(runs.iter().map(|run| run.files.len()).sum::<usize>() as u64, count);
            let place = |file: &VersionFile| {
                let holds = |run: &Arc<SortedRun>| {
                    run.files.iter().any(|f| Arc::ptr_eq(&f.file, &file.file))
                };
                runs.iter().position(holds).unwrap()
            };
            for (i, newer) in log.iter().enumerate() {
                for older in &log[i + 1..] {
                    if newer.file.overlaps(&order, &older.file.span()) {
                        assert!(place(newer) < place(older));
                    }
                }
            }
            let covers = |n: u64| log.iter().filter(|f| f.covers(&order, &key(n))).count();
            let depth = (0..80).map(covers).max().unwrap_or(0);
            assert!(runs.len() >= depth && runs.len() as u64 <= count);
        }
    }

    /// Flushes cut into partitions take one run each, not one per file.
    #[test]
    fn partitions_of_one_flush_share_a_run() {
        let world = TableWorld::new(1, KeyOrder::Bytewise);
        let log = (0..4u64).flat_map(|flush| (0..16u64).map(move |partition| (flush, partition)));
        let log: Vec<VersionFile> = log
            .map(|(flush, partition)| {
                file(
                    &world,
                    1 + flush * 16 + partition,
                    partition * 100,
                    partition * 100 + 99,
                    false,
                )
            })
            .collect();
        assert_eq!(pack_log(0, log.into_iter(), &KeyOrder::Bytewise).len(), 4);
    }
}
