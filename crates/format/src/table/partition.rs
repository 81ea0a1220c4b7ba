//! The writer's index and filter: one of each while they are small, else partitions.
//!
//! Partitions are written when the table is complete, and its filter's bits are known. If more is
//! pending before than a writer should hold, the table changes to partitions for good: from then on
//! index entries and hashes are held for one partition only, so a table of any size is written in
//! bounded memory.
//!
//! Owns: the index entries and hashes that are not written yet, and the decision on partitions.
//! Never does: build a data block, or choose the filter's bits.

use super::footer::Footer;
use super::index_builder::{IndexBuilder, IndexTarget};
use super::sink::BlockSink;
use super::{BlockHandle, BlockKind};
use crate::block::IndexLevel;
use crate::filter::{FilterBuilder, filter_bytes};
use windrow_base::{KeyOrder, Result};

/// Bytes of index and filter in one partition, about: small enough to be read
/// for one get, large enough that the top level stays a few KiB per GiB.
const PARTITION_TARGET_BYTES: usize = 16 << 10;

/// The number of times that the size of an unpartitioned index and filter may be pending before
/// partitions are written although the table is not complete.
const PENDING_MAX: usize = 16;

/// More filter bits per key than are worth having: a bound for the estimate of pieces.
const BITS_MOST: f64 = 32.0;

/// The bits per key of a filter that is only one line and says maybe to almost all keys.
const BITS_LEAST: f64 = 1.0 / 64.0;

/// The most data bytes under one index block: places are 32-bit offsets from its base.
const SPAN_BYTES_MAX: u64 = 1 << 31;

/// Index entries and filter hashes that are not written yet.
pub(super) struct PartitionBuilder {
    bits_per_key: f64,
    /// Whether keys are hashed: there are filter bits, or there may be later.
    filtered: bool,
    /// The most bytes of an index and filter that are not in partitions.
    whole_bytes_max: usize,
    leaf: IndexBuilder,
    /// Hashes added up to the end of each block of `leaf`.
    hash_ends: Vec<usize>,
    hashes: FilterBuilder,
    top: IndexBuilder,
    partitioned: bool,
    /// End of the last data block.
    data_end: u64,
    index_bytes: u64,
    filter_bytes: u64,
    scratch: Vec<u8>,
}

impl PartitionBuilder {
    pub(super) fn new(
        order: KeyOrder,
        bits_per_key: f64,
        late_filter: bool,
        partition_bytes: usize,
        data_offset: u64,
    ) -> PartitionBuilder {
        let filtered = order.equality_is_bytewise() && (bits_per_key > 0.0 || late_filter);
        PartitionBuilder {
            bits_per_key: if filtered { bits_per_key } else { 0.0 },
            filtered,
            whole_bytes_max: partition_bytes.min(1 << 30),
            leaf: IndexBuilder::new(IndexLevel::Blocks, data_offset, &order),
            hash_ends: Vec::new(),
            hashes: FilterBuilder::new(),
            top: IndexBuilder::new(IndexLevel::Partitions, data_offset, &order),
            partitioned: false,
            data_end: data_offset,
            index_bytes: 0,
            filter_bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Whether keys should be hashed into the filter.
    #[inline]
    pub(super) fn filtered(&self) -> bool {
        self.filtered
    }

    /// Changes the bits per key of filters that are not written yet. All partitions of a table have
    /// a filter or none has: once some are written, the bits stay 0, or above 0.
    pub(super) fn set_bits_per_key(&mut self, bits_per_key: f64) {
        if self.filtered {
            self.bits_per_key = match (self.partitioned, self.filter_bytes > 0) {
                (true, true) => bits_per_key.max(BITS_LEAST),
                (true, false) => 0.0,
                (false, _) => bits_per_key,
            };
        }
    }

    /// Bits per key of filters that are written from here on.
    pub(super) fn bits_per_key(&self) -> f64 {
        self.bits_per_key
    }

    /// Keys whose filter is not written yet.
    pub(super) fn pending_keys(&self) -> usize {
        self.hashes.len()
    }

    #[inline]
    pub(super) fn add_hash(&mut self, hash: u64) {
        self.hashes.add_hash(hash);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.leaf.memory_bytes()
            + self.top.memory_bytes()
            + self.hashes.memory_bytes()
            + self.hash_ends.capacity() * size_of::<usize>()
            + self.scratch.capacity()
    }

    /// About the bytes that are still to write for the entries added so far.
    pub(super) fn pending_bytes(&self) -> usize {
        self.leaf.bytes() + self.top.bytes() + filter_bytes(self.hashes.len(), self.bits_per_key)
    }

    /// Decides, for a complete table, whether its index and filter go into partitions.
    pub(super) fn complete(&mut self) -> bool {
        self.partitioned |= self.splittable_bytes() > self.whole_bytes_max;
        self.partitioned
    }

    /// Bytes of index written.
    pub(super) fn index_bytes(&self) -> u64 {
        self.index_bytes
    }

    /// Bytes of filter written.
    pub(super) fn filter_bytes(&self) -> u64 {
        self.filter_bytes
    }

    /// Adds a data block that was written, and writes partitions if enough is pending.
    pub(super) fn add_block(
        &mut self,
        separator: &[u8],
        handle: BlockHandle,
        sink: &mut BlockSink,
    ) -> Result<()> {
        if self.leaf.len() == 0 {
            self.leaf.set_base(handle.offset);
            if self.top.len() == 0 {
                self.top.set_base(handle.offset);
            }
        }
        self.data_end = handle.end();
        self.leaf.add(separator, IndexTarget::BlockEnd(self.data_end));
        self.hash_ends.push(self.hashes.len());
        if self.splittable_bytes() > self.limit() || self.leaf.span_bytes() > SPAN_BYTES_MAX {
            self.partitioned = true;
            self.write_partitions(sink)?;
        }
        Ok(())
    }

    /// Pending bytes beyond which partitions are written before the table is complete.
    fn limit(&self) -> usize {
        match self.partitioned {
            true => self.target_bytes(),
            false => self.whole_bytes_max.saturating_mul(PENDING_MAX),
        }
    }

    /// The most filters that the pending keys may be split into.
    pub(super) fn pieces_max(&self) -> usize {
        let bytes = self.leaf.bytes() + filter_bytes(self.hashes.len(), BITS_MOST);
        match self.partitioned || bytes > self.whole_bytes_max {
            true => 2 + bytes / self.target_bytes(),
            false => 1,
        }
    }

    fn target_bytes(&self) -> usize {
        PARTITION_TARGET_BYTES.min(self.whole_bytes_max).max(1)
    }

    /// Writes the pending partitions, before a data block is written, if the block's key shares
    /// much less with their keys: long keys go into partitions with those that share most of them.
    /// It must be done before the block, since the blocks of a partition lie back to back.
    pub(super) fn make_way(&mut self, separator: &[u8], sink: &mut BlockSink) -> Result<()> {
        let more = self.leaf.bytes_more_with(separator);
        if more > self.target_bytes() && self.splittable_bytes() + more > self.limit() {
            self.partitioned = true;
            self.write_partitions(sink)?;
        }
        Ok(())
    }

    /// The bytes of pending index and filter, without the prefix that all keys share, which would
    /// be in each partition.
    fn splittable_bytes(&self) -> usize {
        let index = self.leaf.bytes() - self.leaf.shared_bytes();
        index + filter_bytes(self.hashes.len(), self.bits_per_key)
    }

    /// Writes all pending entries as partitions of about the target size.
    fn write_partitions(&mut self, sink: &mut BlockSink) -> Result<()> {
        while self.leaf.len() > 0 {
            let parts = self.splittable_bytes().div_ceil(self.target_bytes());
            let spans = self.leaf.span_bytes().div_ceil(SPAN_BYTES_MAX) as usize;
            let even = self.leaf.len().div_ceil(parts.max(spans));
            // Long keys go with those that share most of them.
            let blocks = match self.leaf.first_within(self.target_bytes()) {
                (first, true) if first < self.leaf.len() => first,
                (first, _) => even.min(first),
            };
            self.write_partition(blocks, sink)?;
        }
        Ok(())
    }

    fn write_partition(&mut self, blocks: usize, sink: &mut BlockSink) -> Result<()> {
        let last_key = self.leaf.key_of(blocks - 1);
        let data_end = self.leaf.data_end(blocks - 1);
        let filter = self.write_filter(blocks, sink)?;
        self.scratch.clear();
        self.leaf.finish_first(blocks, &mut self.scratch);
        let index = sink.write_plain(BlockKind::Index, &self.scratch)?;
        self.index_bytes += u64::from(index.bytes);
        let place = IndexTarget::Partition {
            data_end,
            index_offset: index.offset,
            index_bytes: index.bytes,
            filter_bytes: filter.bytes,
        };
        self.top.add(&last_key, place);
        Ok(())
    }

    /// Writes the filter of the first `blocks` pending blocks; an empty handle if there is none.
    fn write_filter(&mut self, blocks: usize, sink: &mut BlockSink) -> Result<BlockHandle> {
        let hashes = match blocks {
            0 => 0,
            _ => self.hash_ends[blocks - 1],
        };
        let filter = self.hashes.finish_first(hashes, self.bits_per_key);
        self.hash_ends.drain(..blocks);
        self.hash_ends.iter_mut().for_each(|end| *end -= hashes);
        if filter.is_empty() {
            return Ok(BlockHandle::default());
        }
        let handle = sink.write_plain(BlockKind::Filter, &filter)?;
        self.filter_bytes += u64::from(handle.bytes);
        Ok(handle)
    }

    /// Writes the whole filter, if there is one; or the last partitions.
    pub(super) fn finish_filter(
        &mut self,
        sink: &mut BlockSink,
        footer: &mut Footer,
    ) -> Result<()> {
        footer.partitioned = self.partitioned;
        if self.partitioned {
            self.write_partitions(sink)?;
        } else {
            footer.filter = self.write_filter(self.leaf.len(), sink)?;
        }
        footer.filtered = self.filter_bytes > 0;
        Ok(())
    }

    /// Writes the whole index, or the top level over the partitions.
    pub(super) fn finish_index(&mut self, sink: &mut BlockSink, footer: &mut Footer) -> Result<()> {
        let index = if self.partitioned { &mut self.top } else { &mut self.leaf };
        self.scratch.clear();
        index.finish_first(index.len(), &mut self.scratch);
        footer.index = sink.write_plain(BlockKind::Index, &self.scratch)?;
        self.index_bytes += u64::from(footer.index.bytes);
        Ok(())
    }
}
