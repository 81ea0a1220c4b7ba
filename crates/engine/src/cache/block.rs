//! Decoded blocks by file uid and offset, bounded by the memory they take.
//!
//! Owns: the cached blocks. Never does: read a file. A hit takes the shared
//! lock of one shard and clones an `Arc`; nothing moves in a list.

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use windrow_base::FileUid;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_format::block::Block;

/// Memory that a cached block takes beside [`Block::memory_bytes`]: the slot in
/// the shard's table and list, and the `Arc`'s counters.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

/// A shard refuses what is larger than itself, so shards are not made smaller than this.
const SHARD_BYTES_MIN: u64 = 4 << 20;

/// More shards than this no longer take contention away.
const SHARDS_MAX: u64 = 64;

/// Bytes of a typical block, to size the shards' tables at first.
const TYPICAL_BLOCK_BYTES: u64 = 4 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockKey {
    uid: FileUid,
    offset: u64,
}

impl Hash for BlockKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Uids are random, offsets are not: spread the offset over the word first.
        state.write_u64(self.uid ^ self.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// Hashes the one word of a [`BlockKey`] by a folded multiplication.
#[derive(Clone, Default)]
struct WordHash;

struct WordHasher(u64);

impl BuildHasher for WordHash {
    type Hasher = WordHasher;

    #[inline]
    fn build_hasher(&self) -> WordHasher {
        WordHasher(0)
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(word ^ self.0) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
struct BlockWeight;

impl Weighter<BlockKey, Arc<Block>> for BlockWeight {
    #[inline]
    fn weight(&self, _key: &BlockKey, block: &Arc<Block>) -> u64 {
        block.memory_bytes() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// The block cache. One per database, shared by its keyspaces.
pub(crate) struct BlockCache {
    blocks: Cache<BlockKey, Arc<Block>, BlockWeight, WordHash>,
    /// 0 turns caching off: the cache below would round it up.
    capacity_bytes: AtomicU64,
}

impl BlockCache {
    /// A cache of at most `bytes` (0: nothing is ever cached).
    pub(crate) fn new(bytes: u64) -> BlockCache {
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // Rounded down to a power of two, since the cache below rounds up.
        let shards = 1usize << shards.ilog2();
        let options = OptionsBuilder::new()
            .shards(shards)
            .estimated_items_capacity((bytes / TYPICAL_BLOCK_BYTES).max(64) as usize)
            .weight_capacity(bytes)
            .build()
            .expect("capacities are set");
        BlockCache {
            blocks: Cache::with_options(
                options,
                BlockWeight,
                WordHash,
                DefaultLifecycle::default(),
            ),
            capacity_bytes: AtomicU64::new(bytes),
        }
    }

    /// The block at `offset` of the file `uid`, if it is cached.
    #[inline]
    pub(crate) fn get(&self, uid: FileUid, offset: u64) -> Option<Arc<Block>> {
        self.blocks.get(&BlockKey { uid, offset })
    }

    /// Caches a block, if it is not too large for one shard.
    pub(crate) fn insert(&self, uid: FileUid, offset: u64, block: Arc<Block>) {
        if self.capacity_bytes.load(Ordering::Relaxed) > 0 {
            self.blocks.insert(BlockKey { uid, offset }, block);
        }
    }

    /// Changes the capacity; shrinking evicts at once.
    pub(crate) fn resize(&self, bytes: u64) {
        if self.capacity_bytes.swap(bytes, Ordering::Relaxed) == bytes {
            return;
        }
        self.blocks.set_capacity(bytes);
        if bytes == 0 {
            self.blocks.clear();
        }
    }

    /// Memory of what is cached, overhead included.
    pub(crate) fn bytes_used(&self) -> u64 {
        self.blocks.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{Op, World};
    use windrow_base::{KeyOrder, Kind};
    use windrow_format::table::{BlockKind, read_block};

    fn some_block(world: &mut World, value_bytes: usize) -> Arc<Block> {
        let put = Op::new(1, Kind::Put, "key", &"v".repeat(value_bytes));
        let file = world.table(&[put]);
        let handle = world.owner.tables.handle(&file, &KeyOrder::Bytewise);
        let open = world.owner.tables.open(&handle).unwrap();
        let mut index = open.table.index_iter();
        index.seek_first();
        Arc::new(read_block(&*open.file, open.uid, index.handle(), BlockKind::Data).unwrap())
    }

    #[test]
    fn memory_stays_below_the_capacity_and_is_charged_in_full() {
        let mut world = World::new(1, KeyOrder::Bytewise);
        let block = some_block(&mut world, 4000);
        let weight = block.memory_bytes() as u64 + ENTRY_OVERHEAD_BYTES;
        let cache = BlockCache::new(1 << 20);
        for offset in 0..1000 {
            cache.insert(7, offset, Arc::clone(&block));
            assert!(cache.bytes_used() <= 1 << 20);
        }
        assert_eq!(cache.bytes_used(), cache.blocks.len() as u64 * weight);
        assert!(
            cache.blocks.len() as u64 >= (1 << 20) / weight * 9 / 10,
            "{} blocks",
            cache.blocks.len()
        );
        cache.resize(1 << 18);
        assert!(cache.bytes_used() <= 1 << 18 && !cache.blocks.is_empty());
        cache.resize(0);
        cache.insert(7, 5, Arc::clone(&block));
        assert!(cache.bytes_used() == 0 && cache.get(7, 5).is_none());
        cache.resize(1 << 18);
        cache.insert(7, 5, block);
        assert!(
            cache.get(7, 5).is_some() && cache.get(8, 5).is_none() && cache.get(7, 6).is_none()
        );
    }

    /// A small cache takes a block as large as itself, nearly: it has one shard.
    #[test]
    fn a_large_block_fits_a_small_cache() {
        let mut world = World::new(2, KeyOrder::Bytewise);
        let block = some_block(&mut world, 700 << 10);
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 0, block);
        assert!(cache.get(1, 0).is_some());
    }

    #[test]
    fn hashes_of_neighbouring_blocks_spread() {
        let mut low = std::collections::HashSet::new();
        let mut shards = std::collections::HashSet::new();
        for i in 0..4096u64 {
            let hash = WordHash.hash_one(BlockKey { uid: 0x1234_5678_9abc_def0, offset: i * 4096 });
            low.insert(hash & 0xffff);
            shards.insert(hash.rotate_right(32) & 63);
        }
        assert!(low.len() > 3800 && shards.len() == 64, "{} {}", low.len(), shards.len());
    }
}
