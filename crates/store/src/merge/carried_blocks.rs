//! Blocks of a merge's outputs that take the place of cached blocks of its inputs.
//!
//! Without them every merge would send reads of what it merged to the device, once a block: the
//! new tables' blocks are not in the cache. A block is carried if most of its bytes come from
//! cached blocks, so a merge brings no more into the cache than twice what was there. Until the new
//! tables are in the tree, readers ask for the old blocks, so both are held, the new ones in memory
//! of the merge. Those that do not fit go into the cache at once: where it has room, they stay.
//!
//! Owns: the blocks until they are in the cache. Never does: decide which blocks are carried
//! (`TableWriter` does).

use std::sync::Arc;
use windrow_base::FileUid;
use windrow_format::block::Block;
use windrow_read::cache::{BlockCache, BlockKey};

/// The blocks that one merge carries.
pub struct CarriedBlocks {
    cache: Arc<BlockCache>,
    waiting: Vec<(BlockKey, Block)>,
    waiting_bytes: u64,
    max_bytes: u64,
}

impl CarriedBlocks {
    /// Carries into `cache`. At most `max_bytes` wait for the end of the merge.
    pub fn new(cache: &Arc<BlockCache>, max_bytes: u64) -> CarriedBlocks {
        let cache = Arc::clone(cache);
        CarriedBlocks { cache, waiting: Vec::new(), waiting_bytes: 0, max_bytes }
    }

    /// Adds a data block of the output `uid`.
    #[cold]
    pub(crate) fn add(&mut self, uid: FileUid, (offset, block): (u64, Block)) {
        self.waiting_bytes += block.memory_bytes() as u64;
        self.waiting.push((BlockKey { uid, offset }, block));
        if self.max_bytes < self.waiting_bytes {
            self.waiting_bytes = 0;
            self.cache.replace(&[], self.waiting.drain(..));
        }
    }

    /// Puts the blocks into the cache, in the place of `old` ones: the outputs are in the tree now,
    /// the inputs are not.
    pub fn replace(self, old: &[BlockKey]) {
        self.cache.replace(old, self.waiting.into_iter());
    }
}
