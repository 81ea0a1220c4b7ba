//! What is kept in memory of the tables: decoded blocks, and open readers.
//!
//! Owns: the two caches and their limits. Never does: decide what to read.

use crate::budget::Shares;
use std::sync::Arc;
use windrow_env::sync::atomic::{AtomicU64, Ordering};

pub(crate) mod block;
pub(crate) mod table;

pub(crate) use block::BlockCache;
pub(crate) use table::{OpenGuard, OpenTable, TableCache, TableHandle};

/// Keeps cached blocks within what open tables and memtables leave of the budget.
pub(crate) struct ReadMemory {
    shares: Shares,
    frozen_bytes: AtomicU64,
    blocks: Arc<BlockCache>,
}

impl ReadMemory {
    pub(crate) fn new(shares: Shares, blocks: Arc<BlockCache>) -> ReadMemory {
        ReadMemory { shares, frozen_bytes: AtomicU64::new(0), blocks }
    }

    /// Open tables hold `tables_bytes` now.
    pub(crate) fn opened(&self, tables_bytes: u64) {
        let frozen = self.frozen_bytes.load(Ordering::Relaxed);
        self.blocks.resize(self.shares.cache_target_bytes(frozen, tables_bytes));
    }

    /// Frozen memtables hold `frozen_bytes` now, and open tables `tables_bytes`.
    pub(crate) fn froze(&self, frozen_bytes: u64, tables_bytes: u64) {
        self.frozen_bytes.store(frozen_bytes, Ordering::Relaxed);
        self.opened(tables_bytes);
    }
}
