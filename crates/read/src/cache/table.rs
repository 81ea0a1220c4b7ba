//! Open tables: one handle per table file, its open reader in an atomic slot, and a clock that
//! closes readers, and lets go of partitions of their indexes and filters, when there are too many
//! or they are too large.
//!
//! A hit reads the slot and sets a bit: no lock, no hash, no shared list. An open reader stays open
//! for its holder, also when the clock has cleared the slot.
//!
//! Owns: the readers, and the last word on when an obsolete file may be unlinked (when its last
//! handle drops). Never does: unlink a file itself, read a data block.

use super::file_record::RecordSlot;
use super::partitions::{PartitionBlock, Partitions};
use crate::lock_ranks;
use crate::stats::Counters;
use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use windrow_base::{Error, ErrorKind, FileNumber, FileUid, KeyOrder, Result, SeqNo};
use windrow_env::fs::{ReadFileOptions, is_not_found};
use windrow_env::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use windrow_env::sync::{ArcSwapOption, Guard, Mutex};
use windrow_env::{Buffer, FileSystem, ReadFile};
use windrow_format::block::Account;
use windrow_format::names;
use windrow_format::table::{self, Block, BlockHandle, BlockKind, Expect, Table};
use windrow_plan::tree::File;

/// Called with the number of an obsolete file whose last user is gone.
pub type OnObsolete = Arc<dyn Fn(FileNumber) + Send + Sync>;

/// Returns the reason for which a table is absent, if it may be another than damage.
pub type WhyAbsent = Box<dyn Fn() -> Option<Error> + Send + Sync>;

/// Called with the memory of all open tables after one was opened, or a partition read.
pub type OnOpened = Arc<dyn Fn(u64) + Send + Sync>;

/// Memory of an open table in addition to [`Table::memory_bytes`]: handle, slot, file.
const OPEN_OVERHEAD_BYTES: u64 = 512;

/// Memory of a partition's block in addition to [`Block::memory_bytes`]: the counters of its `Arc`.
const BLOCK_OVERHEAD_BYTES: u64 = 32;

/// Most rounds of the clock's hand: one to see which tables are used, one to let go of partitions,
/// one to close tables; and then the same for pinned tables.
const EVICTION_ROUNDS: usize = 6;
const PINNED_ROUNDS: usize = 3;

/// The limits of a table cache.
#[derive(Clone, Debug)]
pub struct TableLimits {
    /// Files that are open.
    pub files: usize,
    /// Bytes of indexes and filters: the excess is let go of as tables are read.
    pub bytes: Arc<AtomicU64>,
    /// The limit on bytes while nothing is written and no merge runs, so that reads have more
    /// memory.
    pub bytes_at_rest: u64,
}

impl TableLimits {
    /// Returns limits that nobody changes.
    #[cfg(any(test, feature = "testing"))]
    pub fn fixed(files: usize, bytes: u64) -> TableLimits {
        TableLimits { files, bytes: Arc::new(AtomicU64::new(bytes)), bytes_at_rest: bytes }
    }
}

/// The memory and files of open tables, counted for as long as they are held.
#[derive(Default)]
struct Totals {
    files: AtomicUsize,
    bytes: AtomicU64,
    /// Blocks of partitions, counted for as long as they are held.
    partitions: Account,
    /// Memory of the open tables if they had their whole indexes and no filters; and the number of
    /// entries of these tables.
    lean_bytes: AtomicU64,
    open_entries: AtomicU64,
    /// Memory of all handles, and of the tree's metadata of their files.
    known_bytes: AtomicU64,
    known_entries: AtomicU64,
}

impl Totals {
    /// Returns the memory of all tables with a handle if they were open with their whole indexes
    /// and without filters: as much for an entry as the open ones take.
    fn lean_bytes_of_all(&self) -> u64 {
        let open_entries = self.open_entries.load(Ordering::Relaxed);
        if open_entries == 0 {
            return 0;
        }
        let each = self.lean_bytes.load(Ordering::Relaxed) as f64 / open_entries as f64;
        (each * self.known_entries.load(Ordering::Relaxed) as f64) as u64
    }
}

struct OpenTableCharge {
    totals: Arc<Totals>,
    bytes: u64,
    lean_bytes: u64,
    entries: u64,
}

impl OpenTableCharge {
    fn new(totals: &Arc<Totals>, table: &Table, partitions: &Partitions) -> OpenTableCharge {
        let bytes = table.memory_bytes() + partitions.memory_bytes();
        let bytes = bytes as u64 + OPEN_OVERHEAD_BYTES;
        let properties = table.properties();
        let lean_bytes = match table.is_partitioned() {
            true => bytes + properties.index_bytes,
            false => bytes.saturating_sub(properties.filter_bytes),
        };
        let (totals, entries) = (Arc::clone(totals), properties.entries);
        let charge = OpenTableCharge { totals, bytes, lean_bytes, entries };
        let totals = &charge.totals;
        totals.files.fetch_add(1, Ordering::Relaxed);
        totals.bytes.fetch_add(charge.bytes, Ordering::Relaxed);
        totals.lean_bytes.fetch_add(charge.lean_bytes, Ordering::Relaxed);
        totals.open_entries.fetch_add(charge.entries, Ordering::Relaxed);
        charge
    }
}

impl Drop for OpenTableCharge {
    fn drop(&mut self) {
        let totals = &self.totals;
        totals.files.fetch_sub(1, Ordering::Relaxed);
        totals.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        totals.lean_bytes.fetch_sub(self.lean_bytes, Ordering::Relaxed);
        totals.open_entries.fetch_sub(self.entries, Ordering::Relaxed);
    }
}

/// A table whose footer, properties and tombstones are in memory, and its index and filter: whole,
/// or the partitions of them that were asked for.
pub struct OpenTable {
    pub file: Arc<dyn ReadFile>,
    pub table: Table,
    pub partitions: Partitions,
    pub uid: FileUid,
    /// The uid under which the block cache has its blocks: two tables of one uid, which were
    /// ingested twice, have entries of two sequence numbers.
    pub(crate) cached_as: FileUid,
    pub file_bytes: u64,
    /// The sequence number that its entries are given as its blocks are read; 0: they have their
    /// own.
    given_seq: SeqNo,
    _charge: OpenTableCharge,
}

impl OpenTable {
    /// Reads a block, checks it and decompresses it.
    ///
    /// # Errors
    /// As [`table::read_block`].
    pub fn read_block(&self, handle: BlockHandle, kind: BlockKind) -> Result<Block> {
        self.given(table::read_block(&*self.file, self.uid, handle, kind)?, handle)
    }

    /// Checks and decompresses a block whose bytes were read already.
    ///
    /// # Errors
    /// As [`table::decode_block`].
    pub(crate) fn decode_block(
        &self,
        raw: Buffer,
        handle: BlockHandle,
        kind: BlockKind,
    ) -> Result<Block> {
        let block = table::decode_block(raw, self.file.path(), self.uid, handle, kind)?;
        self.given(block, handle)
    }

    fn given(&self, mut block: Block, handle: BlockHandle) -> Result<Block> {
        if self.given_seq > 0 {
            let path = || self.file.path().display().to_string();
            let given = block.give_seq(self.given_seq);
            given.map_err(|e| e.with_file(path()).with_offset(handle.offset))?;
        }
        Ok(block)
    }
}

/// Returns the uid under which the blocks of a table are cached.
fn cached_as(uid: FileUid, given_seq: SeqNo) -> FileUid {
    uid ^ given_seq.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A table file that a reader may use. There is at most one per file.
pub struct TableHandle {
    pub number: FileNumber,
    pub uid: FileUid,
    pub file_bytes: u64,
    order: KeyOrder,
    slot: ArcSwapOption<OpenTable>,
    /// Set by every use, cleared by the clock's hand.
    used: AtomicBool,
    /// Whether the clock passes it by: every get and seek asks the tables of level 0.
    pinned: AtomicBool,
    obsolete: AtomicBool,
    /// Queries of the file, if the policy asks for them.
    pub record: RecordSlot,
    /// The bytes of merging that it has cost reads while it was in an SST-log (`read/cost.rs`).
    /// Only sampled reads add to it (`read/access.rs`): four bytes do.
    read_cost: AtomicU32,
    /// Whether its filter does not pay for being read: it is asked in vain too rarely.
    skip_filter: AtomicBool,
    /// Held while the table is being opened, so that it is opened once.
    opening: Mutex<()>,
    registry: Arc<Registry>,
    known_bytes: u64,
    entries: u64,
    totals: Arc<Totals>,
}

/// Every live handle by file number.
struct Registry {
    dir: PathBuf,
    handles: Mutex<HashMap<FileNumber, Weak<TableHandle>>>,
    /// The sequence numbers that the entries of ingested tables are given. Few, and asked for as a
    /// table is opened: so the many handles do not have one each.
    given: Mutex<HashMap<FileNumber, SeqNo>>,
    on_obsolete: OnObsolete,
}

impl TableHandle {
    /// Marks the file as in no version any more: when the last user of this handle goes, the file
    /// may be unlinked.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// For the clock's hand: whether the table or a partition of it was used since it last passed.
    /// Lets go of partitions that were not.
    fn is_in_use(&self) -> bool {
        let used = self.used.swap(false, Ordering::Relaxed);
        let any = self.slot.load().as_ref().is_some_and(|open| open.partitions.sweep());
        used || any
    }

    /// Keeps the table's index and filter in memory once it was opened, for as long as the limits
    /// hold.
    pub fn set_pinned(&self, pinned: bool) {
        self.pinned.store(pinned, Ordering::Relaxed);
    }

    /// Adds `bytes` to its cost for the sampled reads. Returns the sum. Two threads that add at
    /// once may count as one.
    pub(crate) fn add_read_cost(&self, bytes: u32) -> u32 {
        let cost = self.read_cost.load(Ordering::Relaxed).saturating_add(bytes);
        self.read_cost.store(cost, Ordering::Relaxed);
        cost
    }

    /// Its cost for the sampled reads, in bytes.
    pub fn read_cost(&self) -> u32 {
        self.read_cost.load(Ordering::Relaxed)
    }

    /// Forgets the cost: the table gets another place, over other tables.
    pub fn forget_read_cost(&self) {
        self.read_cost.store(0, Ordering::Relaxed);
    }

    /// Whether lookups skip filters of the file that would have to be read.
    #[inline]
    pub(crate) fn skips_filter(&self) -> bool {
        self.skip_filter.load(Ordering::Relaxed)
    }

    /// Sets whether lookups skip filters of the file that would have to be read.
    pub fn set_skips_filter(&self, skip: bool) {
        if self.skips_filter() != skip {
            self.skip_filter.store(skip, Ordering::Relaxed);
        }
    }

    /// The file's path. Not kept: thousands of tables may be idle.
    pub fn path(&self) -> PathBuf {
        self.registry.dir.join(names::table(self.number))
    }
}

impl Drop for TableHandle {
    fn drop(&mut self) {
        self.totals.known_bytes.fetch_sub(self.known_bytes, Ordering::Relaxed);
        self.totals.known_entries.fetch_sub(self.entries, Ordering::Relaxed);
        let mut handles = self.registry.handles.lock();
        // A new handle of the same number may have been made since the count fell to 0.
        if handles.get(&self.number).is_some_and(|weak| weak.strong_count() == 0) {
            handles.remove(&self.number);
            self.registry.given.lock().remove(&self.number);
        }
        drop(handles);
        if self.obsolete.load(Ordering::Acquire) {
            self.slot.store(None);
            (self.registry.on_obsolete)(self.number);
        }
    }
}

/// An open table, held without counting references on the hot path.
pub struct OpenGuard(Guard<Option<Arc<OpenTable>>>);

impl OpenGuard {
    fn new(guard: Guard<Option<Arc<OpenTable>>>) -> Option<OpenGuard> {
        guard.is_some().then_some(OpenGuard(guard))
    }

    /// Returns the table, to keep.
    pub fn to_arc(&self) -> Arc<OpenTable> {
        Arc::clone(self.0.as_ref().expect("an open guard holds a table"))
    }
}

impl Deref for OpenGuard {
    type Target = OpenTable;

    #[inline]
    fn deref(&self) -> &OpenTable {
        self.0.as_ref().expect("an open guard holds a table")
    }
}

/// Handles whose slot may be full, and the place of the clock's hand.
#[derive(Default)]
struct EvictionClock {
    ring: Vec<Weak<TableHandle>>,
    hand: usize,
}

impl EvictionClock {
    fn push(&mut self, handle: &Arc<TableHandle>, open_count: usize) {
        // Handles of deleted files leave the ring only when the hand meets them, which below the
        // limits is never.
        if self.ring.len() > 2 * open_count + 64 {
            self.ring.retain(|weak| weak.strong_count() > 0);
        }
        self.ring.push(Arc::downgrade(handle));
    }
}

/// The table cache. One per database.
pub struct TableCache {
    fs: Arc<dyn FileSystem>,
    direct_io: bool,
    limit_files: usize,
    limit_bytes: Arc<AtomicU64>,
    /// The limit on bytes while memtables and merges are at rest.
    rest_limit_bytes: u64,
    counters: Arc<Counters>,
    on_opened: OnOpened,
    totals: Arc<Totals>,
    clock: Mutex<EvictionClock>,
    registry: Arc<Registry>,
    /// Whether the directory is, or may soon be, another's.
    released: AtomicBool,
    why_absent: OnceLock<WhyAbsent>,
}

impl TableCache {
    /// Makes a cache over the tables in `dir` that keeps to its limits as far as running reads let
    /// it.
    pub fn new(
        fs: Arc<dyn FileSystem>,
        dir: impl Into<PathBuf>,
        limits: TableLimits,
        direct_io: bool,
        counters: Arc<Counters>,
        on_obsolete: OnObsolete,
        on_opened: OnOpened,
    ) -> TableCache {
        TableCache {
            fs,
            direct_io,
            limit_files: limits.files.max(1),
            limit_bytes: limits.bytes,
            rest_limit_bytes: limits.bytes_at_rest,
            counters,
            on_opened,
            totals: Arc::default(),
            clock: Mutex::new(lock_ranks::TABLE_CLOCK, EvictionClock::default()),
            registry: Arc::new(Registry {
                dir: dir.into(),
                handles: Mutex::new(lock_ranks::TABLE_HANDLES, HashMap::new()),
                given: Mutex::new(lock_ranks::TABLES_GIVEN, HashMap::new()),
                on_obsolete,
            }),
            released: AtomicBool::new(false),
            why_absent: OnceLock::new(),
        }
    }

    /// Returns the handle of a file: the one that exists, or a new one. Opens nothing.
    pub fn handle(&self, file: &File, order: &KeyOrder) -> Arc<TableHandle> {
        let mut handles = self.registry.handles.lock();
        if let Some(handle) = handles.get(&file.number).and_then(Weak::upgrade) {
            debug_assert_eq!(handle.uid, file.uid);
            return handle;
        }
        let known_bytes = (size_of::<TableHandle>() + file.memory_bytes()) as u64;
        self.totals.known_bytes.fetch_add(known_bytes, Ordering::Relaxed);
        self.totals.known_entries.fetch_add(file.entries, Ordering::Relaxed);
        let handle = Arc::new(TableHandle {
            number: file.number,
            uid: file.uid,
            file_bytes: file.bytes,
            order: order.clone(),
            slot: ArcSwapOption::empty(),
            used: AtomicBool::new(false),
            pinned: AtomicBool::new(false),
            obsolete: AtomicBool::new(false),
            record: RecordSlot::new(),
            read_cost: AtomicU32::new(0),
            skip_filter: AtomicBool::new(false),
            opening: Mutex::new(lock_ranks::TABLE_OPENING, ()),
            registry: Arc::clone(&self.registry),
            known_bytes,
            entries: file.entries,
            totals: Arc::clone(&self.totals),
        });
        handles.insert(file.number, Arc::downgrade(&handle));
        if file.is_ingested {
            self.registry.given.lock().insert(file.number, file.given_seq());
        }
        handle
    }

    /// Returns the handle's table, opened if it is not open.
    ///
    /// # Errors
    /// `Corruption` naming the file if its metadata blocks are damaged or it is
    /// not the file that the manifest names, `Io` if it cannot be read.
    #[inline]
    pub fn open(&self, handle: &Arc<TableHandle>) -> Result<OpenGuard> {
        if let Some(guard) = OpenGuard::new(handle.slot.load()) {
            // Written only when clear: the line stays shared between cores.
            if !handle.used.load(Ordering::Relaxed) {
                handle.used.store(true, Ordering::Relaxed);
            }
            return Ok(guard);
        }
        self.open_cold(handle)
    }

    #[cold]
    fn open_cold(&self, handle: &Arc<TableHandle>) -> Result<OpenGuard> {
        let opening = handle.opening.lock();
        if let Some(guard) = OpenGuard::new(handle.slot.load()) {
            return Ok(guard);
        }
        // Makes room first, so that the limit on files holds while this one opens.
        self.evict(1, Some(handle));
        let file = self.fs.open(&handle.path(), ReadFileOptions { direct: self.direct_io });
        let file = file.map_err(|error| self.judge_absence(error))?;
        let expect =
            Expect { file_bytes: handle.file_bytes, uid: handle.uid, order: handle.order.clone() };
        let table = Table::open(&file, expect)?;
        let given_seq = self.registry.given.lock().get(&handle.number).copied().unwrap_or(0);
        check_given(&table, given_seq)
            .map_err(|e| e.with_file(handle.path().display().to_string()))?;
        self.counters.table_opened(table.opening_bytes());
        let partitions = Partitions::new(table.partitions());
        let charge = OpenTableCharge::new(&self.totals, &table, &partitions);
        let open = Arc::new(OpenTable {
            file,
            table,
            partitions,
            uid: handle.uid,
            cached_as: cached_as(handle.uid, given_seq),
            file_bytes: handle.file_bytes,
            given_seq,
            _charge: charge,
        });
        handle.used.store(true, Ordering::Relaxed);
        handle.slot.store(Some(Arc::clone(&open)));
        self.clock.lock().push(handle, self.open_count());
        drop(opening);
        self.evict(0, Some(handle));
        (self.on_opened)(self.used_bytes());
        Ok(OpenGuard(Guard::from_inner(Some(open))))
    }

    /// Keeps a block of a partition that was read, until memory is short.
    pub fn keep(&self, open: &OpenTable, place: PartitionBlock, mut block: Block) -> Arc<Block> {
        let bytes = block.memory_bytes() as u64 + BLOCK_OVERHEAD_BYTES;
        block.carry(self.totals.partitions.charge(bytes));
        let block = Arc::new(block);
        open.partitions.put(place, block.clone());
        self.evict(0, None);
        (self.on_opened)(self.used_bytes());
        block
    }

    /// Notes that the directory may have another owner from here on. A table that is absent was
    /// removed by that owner, and is not missing.
    pub fn release_directory(&self) {
        self.released.store(true, Ordering::Release);
    }

    /// Sets the function that is asked why a table is absent.
    pub fn ask_of_absence(&self, why: WhyAbsent) {
        _ = self.why_absent.set(why);
    }

    /// The reason for which a table may be absent though it is part of the tree: nothing is damaged
    /// then.
    pub fn why_absent(&self) -> Option<Error> {
        self.why_absent.get().and_then(|why| why())
    }

    fn judge_absence(&self, error: Error) -> Error {
        if is_not_found(&error)
            && let Some(why) = self.why_absent()
        {
            return why.with_source(error);
        }
        if is_not_found(&error) && self.released.load(Ordering::Acquire) {
            let text = "the database was closed, and a table that this reads is gone since";
            return Error::new(ErrorKind::Closed, text);
        }
        error
    }

    /// The limit on open tables: the metadata of all tables takes a part of the whole limit, but
    /// leaves half of it.
    fn open_limit_bytes(&self) -> u64 {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        limit - self.known_bytes().min(limit / 2)
    }

    /// Filter bits for each entry of all tables that there is memory for next to their indexes,
    /// while memtables and merges are at rest. If indexes alone would take more than half, filters
    /// have the other half: they save more reads than an index does.
    pub fn filter_bits_max(&self) -> f64 {
        let entries = self.totals.known_entries.load(Ordering::Relaxed);
        let limit = self.rest_limit_bytes - self.known_bytes().min(self.rest_limit_bytes / 2);
        let filters = limit.saturating_sub(self.totals.lean_bytes_of_all()).max(limit / 2);
        if entries == 0 { f64::INFINITY } else { filters as f64 * 8.0 / entries as f64 }
    }

    fn is_over(&self, files_more: usize) -> bool {
        self.open_count() + files_more > self.limit_files
            || self.memory_bytes() > self.open_limit_bytes()
    }

    /// Lets go of partitions that were not used since the hand last passed, and closes unused
    /// tables that have no partition in memory, until the limits hold with `files_more` more files.
    /// Pinned tables are spared except in the last rounds, since the limits are a promise and pins
    /// are not. Tables that running reads hold stay.
    fn evict(&self, files_more: usize, spare: Option<&Arc<TableHandle>>) {
        if !self.is_over(files_more) {
            return;
        }
        let mut met = Vec::new();
        let mut clock = self.clock.lock();
        let round = clock.ring.len();
        let mut steps = EVICTION_ROUNDS * round;
        while steps > 0 && !clock.ring.is_empty() && self.is_over(files_more) {
            steps -= 1;
            let hand = clock.hand % clock.ring.len();
            let Some(handle) = clock.ring[hand].upgrade() else {
                clock.ring.swap_remove(hand);
                continue;
            };
            let is_spared = steps >= PINNED_ROUNDS * round && handle.pinned.load(Ordering::Relaxed)
                || spare.is_some_and(|spare| Arc::ptr_eq(&handle, spare));
            if is_spared || handle.is_in_use() {
                clock.hand = hand + 1;
            } else {
                clock.ring.swap_remove(hand);
                handle.slot.store(None);
            }
            // Dropped after the lock: the last one of a handle runs its clean-up.
            met.push(handle);
        }
        drop(clock);
    }

    /// Memory of all open tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.totals.bytes.load(Ordering::Relaxed) + self.totals.partitions.bytes()
    }

    /// Memory of the metadata of all tables in use, open or not: their handles, and their bounds,
    /// keys of up to 64 KiB.
    pub(crate) fn known_bytes(&self) -> u64 {
        self.totals.known_bytes.load(Ordering::Relaxed)
    }

    /// Memory of open tables and of all metadata.
    pub fn used_bytes(&self) -> u64 {
        self.memory_bytes() + self.known_bytes()
    }

    /// Tables that are open (one file descriptor each).
    pub(crate) fn open_count(&self) -> usize {
        self.totals.files.load(Ordering::Relaxed)
    }
}

/// Checks that the tree gives the entries of a table a sequence number exactly if they have none.
fn check_given(table: &Table, given_seq: SeqNo) -> Result<()> {
    let above = table.properties().given_above;
    if above.map_or(given_seq == 0, |above| above < given_seq) {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "the manifest gives the entries of the table sequence number {given_seq}, and the table \
         asks for one above {above:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{HistoryOp, TableWorld};
    use windrow_base::Kind;
    use windrow_env::sync::Rank;

    fn tables(world: &mut TableWorld, count: u64) -> Vec<File> {
        let put = |i| HistoryOp::new(1, Kind::Put, &format!("key{i}"), "value");
        (0..count).map(|i| world.table(&[put(i)])).collect()
    }

    fn cache(
        world: &TableWorld,
        limit_files: usize,
        limit_bytes: u64,
    ) -> (TableCache, Arc<Mutex<Vec<FileNumber>>>) {
        let gone = Arc::new(Mutex::new(Rank::INNERMOST, Vec::new()));
        let sink = Arc::clone(&gone);
        let on_obsolete: OnObsolete = Arc::new(move |number| sink.lock().push(number));
        let fs = Arc::clone(&world.owner.env.fs);
        (
            TableCache::new(
                fs,
                "db",
                TableLimits::fixed(limit_files, limit_bytes),
                false,
                Arc::default(),
                on_obsolete,
                Arc::new(|_| ()),
            ),
            gone,
        )
    }

    fn is_open(handle: &TableHandle) -> bool {
        handle.slot.load().is_some()
    }

    #[test]
    fn the_limit_on_files_holds_and_used_tables_stay() {
        let mut world = TableWorld::new(1, KeyOrder::Bytewise);
        let files = tables(&mut world, 12);
        let (cache, _) = cache(&world, 4, u64::MAX);
        let handles: Vec<_> =
            files.iter().map(|file| cache.handle(file, &KeyOrder::Bytewise)).collect();
        for handle in &handles {
            cache.open(handle).unwrap();
            cache.open(&handles[0]).unwrap();
            assert!(cache.open_count() <= 4);
        }
        assert!(is_open(&handles[0]), "the table that every round used was closed");
        assert_eq!(handles.iter().filter(|handle| is_open(handle)).count(), 4);
        let pinned: Vec<_> =
            handles.iter().map(|handle| cache.open(handle).unwrap().to_arc()).collect();
        assert_eq!(cache.open_count(), 12, "what is in use stays open");
        drop(pinned);
        cache.open(&handles[3]).unwrap();
        assert!(cache.open_count() <= 4);
    }

    #[test]
    fn pinned_tables_go_last() {
        let mut world = TableWorld::new(1, KeyOrder::Bytewise);
        let files = tables(&mut world, 12);
        let (cache, _) = cache(&world, 4, u64::MAX);
        let handles: Vec<_> =
            files.iter().map(|file| cache.handle(file, &KeyOrder::Bytewise)).collect();
        handles[..2].iter().for_each(|handle| handle.set_pinned(true));
        for handle in &handles {
            cache.open(handle).unwrap();
        }
        assert!(is_open(&handles[0]) && is_open(&handles[1]), "a pinned table was closed");
        // Even pinned tables do not pass the limit.
        handles.iter().for_each(|handle| handle.set_pinned(true));
        cache.open(&handles[4]).unwrap();
        assert!(cache.open_count() <= 4);
    }

    #[test]
    fn the_limit_on_bytes_holds_and_bytes_are_given_back() {
        let mut world = TableWorld::new(2, KeyOrder::Bytewise);
        let files = tables(&mut world, 10);
        let one = {
            let (probe, _) = cache(&world, 100, u64::MAX);
            let handle = probe.handle(&files[0], &KeyOrder::Bytewise);
            probe.open(&handle).unwrap();
            probe.memory_bytes()
        };
        assert!(one > OPEN_OVERHEAD_BYTES);
        let (cache, _) = cache(&world, 100, 3 * one + one / 2);
        let handles: Vec<_> =
            files.iter().map(|file| cache.handle(file, &KeyOrder::Bytewise)).collect();
        for handle in &handles {
            cache.open(handle).unwrap();
            assert!(cache.memory_bytes() <= 3 * one + one / 2);
        }
        drop(handles);
        assert_eq!((cache.memory_bytes(), cache.open_count()), (0, 0));
    }

    #[test]
    fn a_file_has_one_handle_and_is_obsolete_when_its_last_user_is_gone() {
        let mut world = TableWorld::new(3, KeyOrder::Bytewise);
        let files = tables(&mut world, 2);
        let (cache, gone) = cache(&world, 10, u64::MAX);
        let handle = cache.handle(&files[0], &KeyOrder::Bytewise);
        assert!(Arc::ptr_eq(&handle, &cache.handle(&files[0], &KeyOrder::Bytewise)));
        let other = cache.handle(&files[1], &KeyOrder::Bytewise);
        cache.open(&handle).unwrap();
        handle.mark_obsolete();
        let user = Arc::clone(&handle);
        drop((handle, other));
        assert!(gone.lock().is_empty());
        drop(user);
        assert_eq!(*gone.lock(), [files[0].number]);
        assert_eq!(cache.open_count(), 0);
        assert!(cache.registry.handles.lock().is_empty());
    }

    #[test]
    fn a_table_of_another_uid_or_length_is_corruption() {
        let mut world = TableWorld::new(4, KeyOrder::Bytewise);
        let file = tables(&mut world, 1).remove(0);
        for wrong in [
            File { uid: file.uid ^ 1, ..file.clone() },
            File { bytes: file.bytes + 1, ..file.clone() },
        ] {
            let (cache, _) = cache(&world, 10, u64::MAX);
            let handle = cache.handle(&wrong, &KeyOrder::Bytewise);
            let error = cache.open(&handle).err().unwrap();
            assert!(error.is_corruption() && error.file().is_some(), "{error}");
            assert_eq!(cache.open_count(), 0);
        }
    }
}
