//! What is kept in memory of the tables: decoded blocks, and open readers.
//!
//! Owns: the two caches and their limits. Never does: decide what to read.

use crate::budget::{InUse, Shares};
use std::sync::Arc;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use windrow_skiplist::ChunkPool;

pub(crate) mod block;
pub(crate) mod file_record;
pub(crate) mod partitions;
pub(crate) mod table;

pub(crate) use block::BlockCache;
pub(crate) use partitions::PartitionBlock;
pub(crate) use table::{OpenGuard, OpenTable, TableCache, TableHandle, TableLimits};

/// A skiplist allocates chunks of 1 MiB, the last of which is partly used.
const CHUNK_SLACK_BYTES: u64 = 1 << 20;

/// The caches of an open database.
#[derive(Clone)]
pub(crate) struct Caches {
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) read_memory: Arc<ReadMemory>,
}

/// Keeps cached blocks and idle chunks of memtables within what open tables,
/// memtables and merges leave of the budget.
///
/// Memory that those do not use is lent to reads, but not while memtables fill as fast as
/// reads fill the cache: blocks would be evicted for a memtable as soon as they are read.
/// Reads get it once they filled the cache again while memtables took little. Until then
/// the active memtables count as full, and chunks that come back are kept for the next.
pub(crate) struct ReadMemory {
    counts: Arc<Counts>,
    blocks: Arc<BlockCache>,
    chunks: Arc<ChunkPool>,
}

/// The part of the budget that is in use, as far as reads must know.
struct Counts {
    shares: Shares,
    /// Active memtables, filled as far as they are ([`Shares::active_counted`]).
    active_bytes: AtomicU64,
    /// The same of frozen ones.
    frozen_bytes: AtomicU64,
    merge_bytes: AtomicU64,
    /// What memtables hold beyond their share.
    beyond_bytes: AtomicU64,
    tables_bytes: AtomicU64,
    /// Whether active memtables lend what they do not use.
    lends: AtomicBool,
}

/// Memtables take little if it is at most this part of the bytes that reads bring into the cache.
const WRITTEN_PART: u64 = 8;

impl Counts {
    fn used(&self) -> InUse {
        let mut active = self.active_bytes.load(Ordering::Relaxed);
        if !self.lends.load(Ordering::Relaxed) {
            active = active.max(self.shares.memtable_bytes);
        }
        let frozen = self.frozen_bytes.load(Ordering::Relaxed);
        let merge_bytes = self.merge_bytes.load(Ordering::Relaxed);
        InUse { memtables_bytes: active + frozen, merge_bytes }
    }

    /// The shares as they are now, what open tables may take, and what that leaves the cache.
    fn limits(&self) -> (u64, u64) {
        let beyond = self.beyond_bytes.load(Ordering::Relaxed);
        let (shares, used) = (self.shares.with_memtables_beyond(beyond), self.used());
        let tables = self.tables_bytes.load(Ordering::Relaxed);
        (shares.tables_limit_bytes(used), shares.cache_target_bytes(used, tables))
    }

    /// Reads brought `came_bytes` into the cache while memtables took `taken_bytes` of chunks: what
    /// the cache may grow to, or `None` if it may not.
    fn offer(
        &self,
        pool: &ChunkPool,
        retired_bytes: u64,
        (taken_bytes, came_bytes): (u64, u64),
    ) -> Option<u64> {
        let is_little = taken_bytes <= came_bytes / WRITTEN_PART;
        self.lends.store(is_little, Ordering::Relaxed);
        if !is_little {
            return None;
        }
        let used = self.used().memtables_bytes;
        pool.keep_within(used);
        // A memtable that was flushed a moment ago may be there, and nobody's.
        let counted = used + retired_bytes + CHUNK_SLACK_BYTES;
        (pool.held_bytes() as u64 <= counted).then(|| self.limits().1)
    }
}

impl ReadMemory {
    pub(crate) fn new(shares: Shares, blocks: Arc<BlockCache>) -> ReadMemory {
        let chunks = Arc::new(ChunkPool::new(shares.memtables_bytes()));
        let counts = Arc::new(Counts {
            shares,
            active_bytes: AtomicU64::new(shares.memtable_bytes),
            frozen_bytes: AtomicU64::default(),
            merge_bytes: AtomicU64::new(shares.merge_bytes),
            beyond_bytes: AtomicU64::default(),
            tables_bytes: AtomicU64::default(),
            lends: AtomicBool::new(false),
        });
        let (pool, known) = (chunks.clone(), counts.clone());
        let (retired, taken_before) = (blocks.retired().clone(), AtomicUsize::new(0));
        blocks.grow_when(move |came_bytes| {
            let taken = pool.taken();
            let more = taken.wrapping_sub(taken_before.swap(taken, Ordering::Relaxed));
            known.offer(&pool, retired.bytes(), (more as u64 * CHUNK_SLACK_BYTES, came_bytes))
        });
        ReadMemory { counts, blocks, chunks }
    }

    /// The memory of all memtables.
    pub(crate) fn chunks(&self) -> &Arc<ChunkPool> {
        &self.chunks
    }

    /// Size at which a memtable is frozen now.
    #[inline]
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.counts.shares.memtable_bytes_left(self.blocks.retired().bytes())
    }

    /// Open tables hold `tables_bytes` now: the cache has what they, memtables and merges leave.
    /// `set_limit` is told what they may take.
    pub(crate) fn share(&self, tables_bytes: u64, set_limit: impl FnOnce(u64)) {
        let counts = &self.counts;
        let mut memtables_bytes = 0;
        self.blocks.resize(|| {
            counts.tables_bytes.store(tables_bytes, Ordering::Relaxed);
            memtables_bytes = counts.used().memtables_bytes;
            let (tables_limit_bytes, cache_bytes) = counts.limits();
            set_limit(tables_limit_bytes);
            cache_bytes
        });
        // Reads have given back what they were lent of it. What memtables lend they do not keep.
        match counts.lends.load(Ordering::Relaxed) {
            true => self.chunks.keep_returned_within(memtables_bytes),
            false => self.chunks.keep_at_least(memtables_bytes),
        }
    }

    /// So much is in use now, and memtables hold `beyond_bytes` more than their share. Said
    /// under the lock of the queue that they are in, so that the last word is the latest one;
    /// [`ReadMemory::share`] follows.
    pub(crate) fn count(
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
    use windrow_skiplist::SkipList;

    const MIB: u64 = 1 << 20;

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
        let memory = ReadMemory::new(shares, Arc::new(BlockCache::new(MIB)));
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

    /// Reads that outdo writers are lent what the active memtable does not use, and then no chunk
    /// that comes back is kept in its place; as soon as writers take more, it counts as full again.
    #[test]
    fn memory_is_lent_once() {
        let settings = Settings { memory_bytes: 64 * MIB, ..Settings::default() };
        let shares = Budget::split_for(&settings, u64::MAX);
        let memory = ReadMemory::new(shares, Arc::new(BlockCache::new(64 * MIB)));
        let (one, pool) = (shares.memtable_bytes, memory.chunks().clone());
        let left = |used: InUse| shares.cache_target_bytes(used, 0);
        let little = shares.active_counted(one / 8);
        // A flushed memtable, which a reader holds, and one that is filled by an eighth.
        let (held, _active) = (fill(&pool, one), fill(&pool, one / 8));
        memory.count((little, 0), shares.merge_bytes, 0);
        memory.share(0, |_| ());
        let fast = memory.counts.offer(&pool, one, (2 * MIB, 8 * MIB));
        assert_eq!((fast, memory.counts.used().memtables_bytes), (None, one));
        let slow = memory.counts.offer(&pool, one, (MIB, 8 * MIB));
        assert_eq!(slow, Some(left(InUse { memtables_bytes: little, ..shares.one_in_use() })));
        // Another one was frozen, and is in tables.
        for frozen in [one, 0] {
            memory.count((little, frozen), shares.merge_bytes, 0);
            memory.share(0, |_| ());
        }
        drop(held);
        assert!(pool.held_bytes() as u64 <= little + MIB, "{} are kept", pool.held_bytes());
        // Memory that memtables hold and do not count for is lent to nobody.
        let _more = fill(&pool, one);
        assert_eq!(memory.counts.offer(&pool, 0, (0, 8 * MIB)), None);
        memory.counts.offer(&pool, 0, (2 * MIB, 8 * MIB));
        assert_eq!(memory.counts.used(), shares.one_in_use());
    }
}
