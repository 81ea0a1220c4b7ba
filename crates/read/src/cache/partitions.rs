//! The partitions of an open table's index and filter that are in memory: each block in a slot of
//! its own, so that a hit takes no lock and asks no hash table.
//!
//! Owns: the slots, and which of them were used since the clock's hand last passed. Never does:
//! read a block, or decide when memory is short.

use std::sync::Arc;
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_env::sync::{ArcSwapOption, Guard};
use windrow_format::block::Block;
use windrow_format::table::{BlockHandle, BlockKind, PartitionHandle};

/// A block of a partition: its index, or its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionBlock {
    slot: u32,
    pub kind: BlockKind,
    pub handle: BlockHandle,
}

impl PartitionBlock {
    /// Returns the index of a partition.
    #[inline]
    pub fn index(partition: &PartitionHandle) -> PartitionBlock {
        let slot = partition.number * 2;
        PartitionBlock { slot, kind: BlockKind::Index, handle: partition.index }
    }

    /// Returns the filter of a partition, if it has one.
    #[inline]
    pub fn filter(partition: &PartitionHandle) -> Option<PartitionBlock> {
        let slot = partition.number * 2 + 1;
        partition.filter.map(|handle| PartitionBlock { slot, kind: BlockKind::Filter, handle })
    }
}

/// A block in its slot, held without counting references.
pub struct PartitionGuard(Guard<Option<Arc<Block>>>);

impl PartitionGuard {
    /// The block.
    #[inline]
    pub fn block(&self) -> &Arc<Block> {
        self.0.as_ref().expect("a guard of a full slot")
    }
}

#[derive(Default)]
struct PartitionSlot {
    block: ArcSwapOption<Block>,
    /// Set by every use, cleared by the clock's hand.
    used: AtomicBool,
}

/// The slots of one table: two for each partition.
pub struct Partitions {
    slots: Box<[PartitionSlot]>,
}

impl Partitions {
    pub(super) fn new(partitions: usize) -> Partitions {
        Partitions { slots: (0..2 * partitions).map(|_| PartitionSlot::default()).collect() }
    }

    /// Memory of the slots, without their blocks.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// Returns the block, if it is in memory.
    #[inline]
    pub fn get(&self, block: PartitionBlock) -> Option<PartitionGuard> {
        let slot = self.slots.get(block.slot as usize)?;
        let guard = slot.block.load();
        guard.as_ref()?;
        // Written only when clear: the line stays shared between cores.
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Some(PartitionGuard(guard))
    }

    /// Whether the block is in memory.
    pub fn has(&self, block: PartitionBlock) -> bool {
        self.slots.get(block.slot as usize).is_some_and(|slot| slot.block.load().is_some())
    }

    /// Puts a block that was read into its slot.
    pub(super) fn put(&self, block: PartitionBlock, read: Arc<Block>) {
        if let Some(slot) = self.slots.get(block.slot as usize) {
            slot.used.store(true, Ordering::Relaxed);
            slot.block.store(Some(read));
        }
    }

    /// Lets go of blocks that were not used since the hand last passed. Returns whether any was in
    /// memory.
    pub(super) fn sweep(&self) -> bool {
        let mut any = false;
        for slot in &self.slots {
            let used = slot.used.swap(false, Ordering::Relaxed);
            if slot.block.load().is_some() {
                any = true;
                if !used {
                    slot.block.store(None);
                }
            }
        }
        any
    }
}
