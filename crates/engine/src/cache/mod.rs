//! What is kept in memory of the tables: decoded blocks, and open readers.
//!
//! Owns: the two caches and their limits. Never does: decide what to read.

use crate::budget::Shares;
use std::sync::Arc;
use windrow_env::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Keeps cached blocks and idle chunks of memtables within what open tables
/// and memtables leave of the budget.
///
/// Memory that memtables do not use is lent to reads, but not between an open
/// or a flush and the next freeze: blocks would be evicted for a memtable that
/// fills as soon as they are read. Reads get it once they filled the cache
/// again while no memtable took a chunk.
pub(crate) struct ReadMemory {
    shares: Shares,
    frozen_bytes: Arc<AtomicU64>,
    /// What memtables hold beyond their share.
    beyond_bytes: AtomicU64,
    blocks: Arc<BlockCache>,
    chunks: Arc<ChunkPool>,
}

impl ReadMemory {
    pub(crate) fn new(shares: Shares, blocks: Arc<BlockCache>) -> ReadMemory {
        let chunks = Arc::new(ChunkPool::new(shares.memtables_bytes()));
        let (frozen_bytes, beyond_bytes) = (Arc::<AtomicU64>::default(), AtomicU64::new(0));
        let (pool, frozen) = (chunks.clone(), frozen_bytes.clone());
        let (retired, taken_before) = (blocks.retired().clone(), AtomicUsize::new(0));
        blocks.grow_when(move || {
            let taken = pool.taken();
            let unchanged = taken_before.swap(taken, Ordering::Relaxed) == taken;
            if unchanged {
                pool.keep_within(shares.memtable_bytes + frozen.load(Ordering::Relaxed));
            }
            // A memtable that was flushed a moment ago may be there, and nobody's.
            let counted = shares.memtable_bytes + frozen.load(Ordering::Relaxed) + retired.bytes();
            unchanged && pool.held_bytes() as u64 <= counted + CHUNK_SLACK_BYTES
        });
        ReadMemory { shares, frozen_bytes, beyond_bytes, blocks, chunks }
    }

    /// The memory of all memtables.
    pub(crate) fn chunks(&self) -> &Arc<ChunkPool> {
        &self.chunks
    }

    /// Size at which a memtable is frozen now.
    #[inline]
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.shares.memtable_bytes_left(self.blocks.retired().bytes())
    }

    /// Open tables hold `tables_bytes` now: the cache has what they and memtables leave.
    /// `set_limit` is told what they may take.
    pub(crate) fn share(&self, tables_bytes: u64, set_limit: impl FnOnce(u64)) {
        let mut frozen = 0;
        self.blocks.resize(|| {
            frozen = self.frozen_bytes.load(Ordering::Relaxed);
            let beyond = self.beyond_bytes.load(Ordering::Relaxed);
            let shares = self.shares.with_memtables_beyond(beyond);
            set_limit(shares.tables_limit_bytes(frozen));
            shares.cache_target_bytes(frozen, tables_bytes)
        });
        // Reads have given back what they were lent of it.
        self.chunks.keep_at_least(self.shares.memtable_bytes + frozen);
    }

    /// Memtables besides the size of one hold `frozen_bytes` now, all of them `beyond_bytes` more
    /// than their share. Said under the lock of the queue that they are in, so that the last word is
    /// the latest one; [`ReadMemory::share`] follows.
    pub(crate) fn count_memtables(&self, frozen_bytes: u64, beyond_bytes: u64) {
        self.frozen_bytes.store(frozen_bytes, Ordering::Relaxed);
        self.beyond_bytes.store(beyond_bytes, Ordering::Relaxed);
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
}
