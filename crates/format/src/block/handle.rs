//! Where a block lies, and where a key may be.
//!
//! Owns: handles, as indexes give them. Never does: read.

/// Where a block lies in its file.
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
    /// Which of the table's partitions it is, from 0.
    pub number: u32,
    /// The partition's index block, for [`decode_partition`](crate::table::decode_partition).
    pub index: BlockHandle,
    /// Its filter block, for [`Block::may_contain`](super::Block::may_contain); covers
    /// exactly the keys of the partition.
    pub filter: Option<BlockHandle>,
}

/// Where a key may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locate {
    /// In this data block.
    Block(BlockHandle),
    /// In this partition: read it first and ask again.
    Partition(PartitionHandle),
    /// Nowhere: the key is beyond the table's last.
    None,
}
