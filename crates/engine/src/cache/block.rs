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
            blocks: Cache::with_options(options, BlockWeight, WordHash, DefaultLifecycle::default()),
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
        self.capacity_bytes.store(bytes, Ordering::Relaxed);
        self.blocks.set_capacity(bytes);
        if bytes == 0 {
            self.blocks.clear();
        }
    }

    /// Memory of what is cached, overhead included.
    pub(crate) fn bytes_used(&self) -> u64 {
        self.blocks.weight()
    }

    /// Capacity, in bytes.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    /// Blocks that are cached.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }
}
