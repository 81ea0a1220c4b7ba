//! Handles of blocks and partitions, and the result of locating a key.
//!
//! Owns: the handles that indexes return. Never does: read.

/// The place of a block in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes on disk, trailer included; 0 for no block.
    pub bytes: u32,
}

impl BlockHandle {
    /// File offset after the block.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.into())
    }
}

/// A partition of a large table's index and filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionHandle {
    /// The number of the partition in its table, from 0.
    pub number: u32,
    /// The partition's index block, for [`decode_partition`](crate::table::decode_partition).
    pub index: BlockHandle,
    /// Its filter block, for [`Block::may_contain`](super::Block::may_contain); covers
    /// exactly the keys of the partition.
    pub filter: Option<BlockHandle>,
}

/// The place where a key may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locate {
    /// In this data block.
    Block(BlockHandle),
    /// In this partition: read its index, and locate the key in it.
    Partition(PartitionHandle),
    /// In no block: the key is after the table's last key.
    None,
}
