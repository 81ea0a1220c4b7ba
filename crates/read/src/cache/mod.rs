//! The memory that tables take: decoded blocks, and open readers.
//!
//! Owns: the two caches and their limits. Never does: decide which block is read.

use crate::budget::{InUse, Shares};
use std::sync::Arc;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use windrow_env::{Clock, FileSystem};
use windrow_skiplist::ChunkPool;

pub mod block;
pub mod file_record;
pub mod partitions;
pub mod table;

pub use block::{BlockCache, BlockKey};
pub use partitions::PartitionBlock;
pub use table::{OpenGuard, OpenTable, TableCache, TableHandle, TableLimits};

/// A skiplist allocates chunks of 1 MiB; the last one is partly used.
const CHUNK_SLACK_BYTES: u64 = 1 << 20;

/// The caches of an open database.
#[derive(Clone)]
pub struct Caches {
    pub tables: Arc<TableCache>,
    pub blocks: Arc<BlockCache>,
    pub read_memory: Arc<ReadMemory>,
}

/// Keeps cached blocks and idle chunks of memtables within the memory that open tables, memtables
/// and merges leave of the budget.
///
/// Memory that those do not use is lent to reads that outdo slow writers: once reads filled the
/// cache again while memtables took little, and as long as a memtable takes seconds to fill. A
/// faster writer would have blocks evicted as soon as they are read. So until then the active
/// memtables count as full, all merges as running, and chunks that come back are kept for the next
/// memtable.
pub struct ReadMemory {
    counts: Arc<Counts>,
    blocks: Arc<BlockCache>,
    chunks: Arc<ChunkPool>,
}

/// The parts of the budget in use, as far as reads must know them.
struct Counts {
    shares: Shares,
    /// Bytes of active memtables, counted as [`Shares::active_counted`] does.
    active_bytes: AtomicU64,
    /// Bytes of frozen memtables.
    frozen_bytes: AtomicU64,
    merge_bytes: AtomicU64,
    /// Bytes that memtables hold beyond their share.
    beyond_bytes: AtomicU64,
    tables_bytes: AtomicU64,
    /// Bytes of the budget that the program holds.
    outside_bytes: AtomicU64,
    /// Limit of open tables' memory, read by the table cache.
    tables_limit_bytes: Arc<AtomicU64>,
    /// Whether memtables and merges lend their unused memory.
    lends: AtomicBool,
    writers: Writers,
    /// Knows the memory for blocks beyond those that are held.
    fs: Arc<dyn FileSystem>,
}

/// How fast writers fill memtables. Changed under the lock of those who resize the cache.
#[derive(Default)]
struct Writers {
    /// Chunks taken when reads last filled the cache, and when the rate was last measured.
    seen: AtomicUsize,
    measured: AtomicUsize,
    measured_ns: AtomicU64,
    are_slow: AtomicBool,
}

/// Memtables take little if it is at most this part of the bytes that reads bring into the cache.
const WRITTEN_PART: u64 = 8;

/// The rate of writers is measured over this time at least: chunks come one by one.
const RATE_NS: u64 = 1_000_000_000;

/// Writers are slow if a memtable would take this time to fill.
const FILL_NS_MIN: u64 = 5 * RATE_NS;

impl Writers {
    /// Notes that memtables have taken `taken` chunks of the pool up to now. Returns whether that
    /// is slow, and the bytes taken since the last call.
    fn look(&self, taken: usize, now_ns: u64, memtable_bytes: u64) -> (bool, u64) {
        let bytes_since = |before: usize| taken.wrapping_sub(before) as u64 * CHUNK_SLACK_BYTES;
        let more_bytes = bytes_since(self.seen.swap(taken, Ordering::Relaxed));
        let passed_ns = now_ns.saturating_sub(self.measured_ns.load(Ordering::Relaxed));
        if passed_ns >= RATE_NS {
            self.measured_ns.store(now_ns, Ordering::Relaxed);
            let bytes = bytes_since(self.measured.swap(taken, Ordering::Relaxed));
            let (taken, fill) = (u128::from(bytes), u128::from(memtable_bytes));
            let are_slow = taken * u128::from(FILL_NS_MIN) <= fill * u128::from(passed_ns);
            self.are_slow.store(are_slow, Ordering::Relaxed);
        }
        (self.are_slow.load(Ordering::Relaxed), more_bytes)
    }
}

impl Counts {
    fn used(&self) -> InUse {
        let mut used = InUse {
            memtables_bytes: self.active_bytes.load(Ordering::Relaxed),
            merge_bytes: self.merge_bytes.load(Ordering::Relaxed),
        };
        if !self.lends.load(Ordering::Relaxed) {
            let full = self.shares.one_in_use();
            used.memtables_bytes = used.memtables_bytes.max(full.memtables_bytes);
            used.merge_bytes = full.merge_bytes;
        }
        used.memtables_bytes += self.frozen_bytes.load(Ordering::Relaxed);
        used
    }

    /// Sets the memory that open tables may take now. Returns the memory that they leave the cache.
    fn share_out(&self) -> u64 {
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        let (shares, used) = (self.shares.with_memtables_beyond(beyond), self.used());
        self.tables_limit_bytes.store(shares.tables_limit_bytes(used), Ordering::Relaxed);
        let spare = self.fs.spare_memory(shares.reads_bytes(used));
        let tables = self.tables_bytes.load(Ordering::Relaxed);
        let outside = self.outside_bytes.load(Ordering::Relaxed);
        shares.cache_target_bytes(used, tables.saturating_add(spare).saturating_add(outside))
    }

    /// Returns the size to which the cache may grow, after reads brought `came_bytes` into it since
    /// the last call; `None` if it may not.
    fn offer(
        &self,
        pool: &ChunkPool,
        retired_bytes: u64,
        (came_bytes, now_ns): (u64, u64),
    ) -> Option<u64> {
        let one = self.shares.memtable_bytes;
        let (are_slow, taken_bytes) = self.writers.look(pool.taken(), now_ns, one);
        let is_little = taken_bytes <= came_bytes / WRITTEN_PART;
        self.lends.store(is_little && are_slow, Ordering::Relaxed);
        if !is_little {
            return None;
        }
        let used = self.used().memtables_bytes;
        pool.keep_within(used);
        // A memtable that was flushed a moment ago may be there, and counted by nobody.
        let counted = used + retired_bytes + CHUNK_SLACK_BYTES;
        (pool.held_bytes() as u64 <= counted).then(|| self.share_out())
    }
}

impl ReadMemory {
    pub fn new(
        shares: Shares,
        blocks: Arc<BlockCache>,
        (fs, clock): (Arc<dyn FileSystem>, Arc<dyn Clock>),
    ) -> ReadMemory {
        let chunks = Arc::new(ChunkPool::new(shares.memtables_bytes()));
        let counts = Arc::new(Counts {
            shares,
            active_bytes: AtomicU64::new(shares.memtable_bytes),
            frozen_bytes: AtomicU64::default(),
            merge_bytes: AtomicU64::new(shares.merge_bytes),
            beyond_bytes: AtomicU64::default(),
            tables_bytes: AtomicU64::default(),
            outside_bytes: AtomicU64::default(),
            tables_limit_bytes: Arc::new(AtomicU64::new(
                shares.tables_limit_bytes(shares.one_in_use()),
            )),
            lends: AtomicBool::new(false),
            writers: Writers::default(),
            fs,
        });
        counts.writers.measured_ns.store(clock.monotonic_ns(), Ordering::Relaxed);
        let (pool, known) = (chunks.clone(), counts.clone());
        let retired = blocks.retired().clone();
        blocks.grow_when(move |came_bytes| {
            known.offer(&pool, retired.bytes(), (came_bytes, clock.monotonic_ns()))
        });
        ReadMemory { counts, blocks, chunks }
    }

    /// The memory of all memtables.
    #[inline]
    pub fn chunks(&self) -> &Arc<ChunkPool> {
        &self.chunks
    }

    /// Limit of open tables' memory: it changes with the memory in use.
    pub fn tables_limit_bytes(&self) -> &Arc<AtomicU64> {
        &self.counts.tables_limit_bytes
    }

    /// Size at which a memtable is frozen now.
    #[inline]
    pub fn memtable_bytes(&self) -> u64 {
        self.counts.shares.memtable_bytes_left(self.blocks.retired().bytes())
    }

    /// Notes that open tables hold `tables_bytes` now: the cache has the memory that they,
    /// memtables and merges leave.
    pub fn share(&self, tables_bytes: u64) {
        self.share_after(|counts| counts.tables_bytes.store(tables_bytes, Ordering::Relaxed));
    }

    /// Shares out after `change`, under the lock of those who resize the cache.
    fn share_after(&self, change: impl FnOnce(&Counts)) {
        let counts = &self.counts;
        let mut memtables_bytes = 0;
        self.blocks.resize(|| {
            change(counts);
            memtables_bytes = counts.used().memtables_bytes;
            counts.share_out()
        });
        // Reads have given back the memory lent to them. Memtables do not keep chunks that they
        // lend.
        match counts.lends.load(Ordering::Relaxed) {
            true => self.chunks.keep_returned_within(memtables_bytes),
            false => self.chunks.keep_at_least(memtables_bytes),
        }
    }

    /// Notes that the program holds `bytes` of the budget now: the cache gives way.
    pub fn set_outside(&self, bytes: u64) {
        if self.outside_bytes() != bytes {
            self.share_after(|counts| counts.outside_bytes.store(bytes, Ordering::Relaxed));
        }
    }

    /// Bytes of the budget that the program holds.
    pub fn outside_bytes(&self) -> u64 {
        self.counts.outside_bytes.load(Ordering::Relaxed)
    }

    /// Counts the memory in use now; memtables hold `beyond_bytes` more than their share. Called
    /// under the lock of the queue that they are in, so that the last call is the latest one;
    /// [`ReadMemory::share`] follows.
    #[inline]
    pub fn count(
        &self,
        (active_bytes, frozen_bytes): (u64, u64),
        merge_bytes: u64,
        beyond_bytes: u64,
    ) {
        self.counts.active_bytes.store(active_bytes, Ordering::Relaxed);
        self.counts.frozen_bytes.store(frozen_bytes, Ordering::Relaxed);
        self.counts.merge_bytes.store(merge_bytes, Ordering::Relaxed);
        self.counts.beyond_bytes.store(beyond_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::memtable::UserOrder;
    use crate::options::Settings;
    use windrow_base::KeyOrder;
    use windrow_env::testing;
    use windrow_skiplist::SkipList;

    const MIB: u64 = 1 << 20;

    fn fs_and_clock() -> (Arc<dyn FileSystem>, Arc<dyn Clock>) {
        let (env, _handles) = testing::env(1);
        (env.fs, env.clock)
    }

    fn fill(chunks: &Arc<ChunkPool>, bytes: u64) -> SkipList<UserOrder> {
        let list = SkipList::with_pool(UserOrder(KeyOrder::Bytewise), chunks.clone());
        for trailer in 0..bytes >> 10 {
            list.insert(b"key", trailer, &[7; 1 << 10]);
        }
        list
    }

    #[test]
    fn memtables_pass_their_memory_on_within_their_share() {
        let settings = Settings { memory_bytes: 64 * MIB, ..Settings::default() };
        let shares = Budget::split_for(&settings, u64::MAX);
        let memory = ReadMemory::new(shares, Arc::new(BlockCache::new(MIB)), fs_and_clock());
        let share = shares.memtables_bytes() as usize;
        let mut last = None;
        for _ in 0..5 {
            last = Some(fill(memory.chunks(), shares.memtable_bytes));
            assert!(memory.chunks().held_bytes() <= share + share / 8);
        }
        drop(last);
        let taken = memory.chunks().taken();
        let (held, one) = (memory.chunks().held_bytes(), shares.memtable_bytes as usize);
        assert!(one < held && held <= share, "{held}");
        // All of it out of the pool.
        drop(fill(memory.chunks(), shares.memtable_bytes));
        assert!(memory.chunks().taken() > taken && memory.chunks().held_bytes() == held);
    }

    #[test]
    fn the_cache_gives_way_to_what_the_program_holds() {
        let settings = Settings { memory_bytes: 64 * MIB, ..Settings::default() };
        let shares = Budget::split_for(&settings, u64::MAX);
        let memory = ReadMemory::new(shares, Arc::new(BlockCache::new(64 * MIB)), fs_and_clock());
        memory.share(0);
        let before = memory.counts.share_out();
        memory.set_outside(5 * MIB);
        let (less, step) = (memory.counts.share_out(), before / 4);
        assert!(less < before && less >= before - 5 * MIB - step, "{less} of {before}");
        assert_eq!(memory.outside_bytes(), 5 * MIB);
        memory.set_outside(u64::MAX);
        assert!(memory.counts.share_out() < before, "down to a floor");
        memory.set_outside(0);
        assert_eq!(memory.counts.share_out(), before);
    }

    /// Reads that outdo a slow writer are lent the memory that the active memtable and merges do
    /// not use, and then no chunk that comes back is kept in its place. As soon as the writer is
    /// faster, they count as full again.
    #[test]
    fn memory_is_lent_once() {
        const SECOND: u64 = 1_000_000_000;
        let settings = Settings { memory_bytes: 64 * MIB, ..Settings::default() };
        let shares = Budget::split_for(&settings, u64::MAX);
        let memory = ReadMemory::new(shares, Arc::new(BlockCache::new(64 * MIB)), fs_and_clock());
        let (one, pool) = (shares.memtable_bytes, memory.chunks().clone());
        let little = shares.active_counted(one / 8);
        let full = shares.one_in_use();
        let lent = InUse { memtables_bytes: little, merge_bytes: shares.merges_used(0, 1) };
        let mut now_ns = memory.counts.writers.measured_ns.load(Ordering::Relaxed);
        let mut offer = |retired: u64, seconds: u64| {
            now_ns += seconds * SECOND;
            let offered = memory.counts.offer(&pool, retired, (one * WRITTEN_PART, now_ns));
            (offered, memory.counts.used())
        };
        // A flushed memtable, which a reader holds, and one that is filled by an eighth.
        let (held, _active) = (fill(&pool, one), fill(&pool, one / 8));
        memory.count((little, 0), lent.merge_bytes, 0);
        memory.share(0);
        // More than a memtable in a second, which is more than the part of the bytes that reads
        // brought in.
        assert_eq!(offer(one, 1), (None, full));
        // No writes since, but nobody knows yet for how long.
        assert_eq!(offer(one, 0), (Some(shares.cache_target_bytes(full, 0)), full));
        assert_eq!(offer(one, 1), (Some(shares.cache_target_bytes(lent, 0)), lent));
        // Open tables have their part of it at once.
        let tables_limit_bytes = || memory.tables_limit_bytes().load(Ordering::Relaxed);
        assert_eq!(tables_limit_bytes(), shares.tables_limit_bytes(lent));
        // Another one was frozen, and is in tables.
        for frozen in [one, 0] {
            memory.count((little, frozen), lent.merge_bytes, 0);
            memory.share(0);
        }
        drop(held);
        assert!(pool.held_bytes() as u64 <= little + MIB, "{} are kept", pool.held_bytes());
        // Half a memtable in two seconds fills one in four.
        let more = fill(&pool, one / 2);
        assert_eq!(offer(0, 2).1, full);
        drop(more);
        let _more = fill(&pool, one / 2);
        assert_eq!(offer(0, 6).1, lent);
        // Memory that memtables hold and do not count for is lent to nobody.
        let _unknown = fill(&pool, one);
        assert_eq!(offer(0, 30), (None, lent));
    }
}
