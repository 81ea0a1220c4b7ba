//! The index of a table: from internal keys to the data blocks that may hold them.
//!
//! The whole index, a partition of it, and the top level over partitions are blocks of the same
//! form, searched in place: see `block/index.rs` for their columns.
//!
//! An entry's key is at or after the last key of its block and before the first key of the next,
//! shortened where possible, and then with trailer 0 (after every version of its user key). Layout
//! in `docs/format/table.md`.
//!
//! Owns: the meaning of an index block's entries. Never does: read files, or hold more than the
//! block.

use super::{BlockHandle, Locate, PartitionHandle};
use crate::block::{Block, IndexLayout, IndexLevel};
use std::sync::Arc;
use windrow_base::key::split;
use windrow_base::{Error, KeyOrder, Result};

/// An index block read in place.
#[derive(Clone, Copy)]
pub struct IndexPart<'a> {
    bytes: &'a [u8],
    layout: &'a IndexLayout,
}

/// Views an index block in place, without a copy.
///
/// # Errors
/// `Corruption` if the block is not an index.
#[inline]
pub fn decode_partition(block: &Block) -> Result<IndexPart<'_>> {
    match block.index_layout() {
        Some(layout) => Ok(IndexPart { bytes: block.bytes(), layout }),
        None => Err(Error::corruption("a block that is not an index stands for one")),
    }
}

impl IndexPart<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.layout.count()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.layout.count() == 0
    }

    /// Returns the block (in a top level, the partition) that may hold an internal key.
    #[inline]
    pub fn locate(&self, order: &KeyOrder, internal_key: &[u8]) -> Locate {
        let (user_key, trailer) = split(internal_key);
        self.locate_user(order, user_key, trailer)
    }

    /// [`IndexPart::locate`] for a key in two parts.
    #[inline]
    pub fn locate_user(&self, order: &KeyOrder, user_key: &[u8], trailer: u64) -> Locate {
        let at = self.layout.search(self.bytes, order, user_key, trailer);
        self.layout.place(self.bytes, at)
    }

    /// The block or partition of an entry.
    pub fn get(&self, entry: usize) -> Locate {
        self.layout.place(self.bytes, entry)
    }

    /// The file offset of the data under the entry that may hold the key.
    pub(super) fn data_offset(&self, order: &KeyOrder, internal_key: &[u8]) -> u64 {
        let (user_key, trailer) = split(internal_key);
        let at = self.layout.search(self.bytes, order, user_key, trailer);
        match (at, self.layout.level()) {
            (0, _) => self.layout.base(),
            (_, IndexLevel::Blocks) => {
                self.layout.base() + u64::from(self.layout.block_end(self.bytes, at - 1))
            }
            (_, IndexLevel::Partitions) => self.layout.data_end(self.bytes, at - 1),
        }
    }

    /// The file offset of the first entry's data.
    pub(super) fn base(&self) -> u64 {
        self.layout.base()
    }

    pub(super) fn level(&self) -> IndexLevel {
        self.layout.level()
    }

    /// Appends an entry's internal key to `out`.
    pub(super) fn push_key(&self, entry: usize, out: &mut Vec<u8>) {
        let trailer = self.layout.push_key(self.bytes, entry, out);
        out.extend_from_slice(&trailer.to_le_bytes());
    }
}

/// The iterator over an index: over data blocks, or over partitions. Owns its block.
pub struct IndexIter {
    block: Arc<Block>,
    order: KeyOrder,
    at: usize,
    count: usize,
    key: Vec<u8>,
}

impl IndexIter {
    /// An iterator over an index block (a whole index or a partition), not positioned yet.
    ///
    /// # Errors
    /// `Corruption` if the block is not an index.
    pub fn new(block: Arc<Block>, order: KeyOrder) -> Result<IndexIter> {
        decode_partition(&block)?;
        Ok(IndexIter::over(block, order))
    }

    /// An iterator over a block that is known to be an index.
    pub(super) fn over(block: Arc<Block>, order: KeyOrder) -> IndexIter {
        let count = decode_partition(&block).map_or(0, |part| part.len());
        IndexIter { block, order, at: count, count, key: Vec::new() }
    }

    fn part(&self) -> Option<IndexPart<'_>> {
        decode_partition(&self.block).ok()
    }

    /// Whether the iterator is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.at < self.count
    }

    /// Moves to the first entry.
    pub fn seek_first(&mut self) {
        self.at = 0;
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) {
        self.at = self.count.wrapping_sub(1);
    }

    /// Moves to the entry that may hold the first key at or after an internal key.
    pub fn seek(&mut self, internal_key: &[u8]) {
        let (user_key, trailer) = split(internal_key);
        self.at = match self.part() {
            Some(part) => part.layout.search(part.bytes, &self.order, user_key, trailer),
            None => self.count,
        };
    }

    /// Moves to the next entry. Does nothing when not valid.
    #[inline]
    pub fn next(&mut self) {
        if self.valid() {
            self.at += 1;
        }
    }

    /// Moves to the previous entry. Does nothing when not valid.
    #[inline]
    pub fn prev(&mut self) {
        if self.valid() {
            self.at = self.at.wrapping_sub(1);
        }
    }

    /// The data block or partition; `Locate::None` when not valid.
    #[inline]
    pub fn place(&self) -> Locate {
        self.part().map_or(Locate::None, |part| part.get(self.at))
    }

    /// The data block, or the partition's index block; empty when not valid.
    #[inline]
    pub fn handle(&self) -> BlockHandle {
        match self.place() {
            Locate::Block(handle) => handle,
            Locate::Partition(partition) => partition.index,
            Locate::None => BlockHandle::default(),
        }
    }

    /// The partition, in the top level of a partitioned index.
    pub fn partition(&self) -> Option<PartitionHandle> {
        match self.place() {
            Locate::Partition(partition) => Some(partition),
            _ => None,
        }
    }

    /// The entry's internal key: at or after the block's last key, and before
    /// the next block's first. Empty when not valid.
    pub fn last_key(&mut self) -> &[u8] {
        self.key.clear();
        if self.at < self.count
            && let Ok(part) = decode_partition(&self.block)
        {
            part.push_key(self.at, &mut self.key);
        }
        &self.key
    }
}
