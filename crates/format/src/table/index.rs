//! The index of a table: from internal keys to the data blocks that may hold them.
//!
//! One block, searched in place, of the same form whether it is the whole
//! index, a partition of it, or the top level over partitions. Columns:
//! eight-byte prefixes of the user keys (after what all keys share), key
//! ends, places; then the keys. A search is a branch-free binary search over
//! the dense prefixes and a full comparison only among equal ones.
//!
//! An entry's key is at or after the last key of its block and before the
//! first key of the next, shortened where it can be, with trailer 0 then (after
//! every version of its user key). Layout in `docs/format/table.md`.
//! Never does: read files, or hold anything but the block.

use super::{BlockHandle, Locate, PartitionHandle};
use crate::block::Block;
use std::cmp::Ordering;
use std::sync::Arc;
use windrow_base::coding::Decoder;
use windrow_base::key::{KEY_BYTES_MAX, TRAILER_BYTES, prefix_u64, split};
use windrow_base::{Error, KeyOrder, Result};

/// Fixed head: level, zero, shared bytes, count, base.
pub(super) const HEAD_BYTES: usize = 16;

/// Set in a key's end where the key is stored with its trailer (else it is 0).
pub(super) const HAS_TRAILER: u32 = 1 << 31;

const PREFIX_BYTES: usize = 8;
const END_BYTES: usize = 4;

/// What an index block is over. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum IndexLevel {
    /// Data blocks, back to back from the base.
    Blocks = 0,
    /// Partitions.
    Partitions = 1,
}

impl IndexLevel {
    fn place_bytes(self) -> usize {
        match self {
            IndexLevel::Blocks => 4,      // end of the block, from the base
            IndexLevel::Partitions => 24, // data end, index offset, index bytes, filter bytes
        }
    }
}

/// Where the columns of an index block lie; checked against its bytes once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexLayout {
    level: IndexLevel,
    count: usize,
    shared_len: usize,
    base: u64,
    ends_at: usize,
    places_at: usize,
    shared_at: usize,
    keys_at: usize,
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
        Some(b) => u32::from_le_bytes(*b),
        None => 0,
    }
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
        Some(b) => u64::from_le_bytes(*b),
        None => 0,
    }
}

impl IndexLayout {
    /// Finds the columns and checks that nothing in them leads outside.
    pub(crate) fn parse(bytes: &[u8]) -> Result<IndexLayout> {
        let bad = || Error::corruption("index block of an impossible shape");
        let mut d = Decoder::new(bytes);
        let level = match d.u8()? {
            0 => IndexLevel::Blocks,
            1 => IndexLevel::Partitions,
            _ => return Err(Error::not_supported("index of a level that needs a newer Windrow")),
        };
        if d.u8()? != 0 {
            return Err(Error::not_supported("index with flags that need a newer Windrow"));
        }
        let shared = d.bytes(2)?;
        let shared_len = u16::from_le_bytes([shared[0], shared[1]]) as usize;
        let count = d.u32()? as usize;
        let base = d.u64()?;
        d.bytes(count.checked_mul(PREFIX_BYTES).ok_or_else(bad)?)?;
        let ends_at = d.position();
        d.bytes(count.checked_mul(END_BYTES).ok_or_else(bad)?)?;
        let places_at = d.position();
        d.bytes(count.checked_mul(level.place_bytes()).ok_or_else(bad)?)?;
        let shared_at = d.position();
        d.bytes(shared_len)?;
        let keys_at = d.position();
        let layout =
            IndexLayout { level, count, shared_len, base, ends_at, places_at, shared_at, keys_at };
        layout.check_columns(bytes).ok_or_else(bad)?;
        Ok(layout)
    }

    /// Key ends ascend to the end of the bytes; places ascend; keys are of legal length.
    fn check_columns(&self, bytes: &[u8]) -> Option<()> {
        let mut key_from = 0;
        let mut place_from = self.base;
        for i in 0..self.count {
            let end = u32_at(bytes, self.ends_at + i * END_BYTES);
            let trailer_bytes = if end & HAS_TRAILER != 0 { TRAILER_BYTES } else { 0 };
            let key_end = (end & !HAS_TRAILER) as usize;
            let rest = key_end.checked_sub(key_from)?.checked_sub(trailer_bytes)?;
            if rest + self.shared_len > KEY_BYTES_MAX {
                return None;
            }
            key_from = key_end;
            let place_end = match self.level {
                IndexLevel::Blocks => self.base.checked_add(self.block_end(bytes, i).into())?,
                IndexLevel::Partitions => {
                    let p = self.partition(bytes, i);
                    p.index.offset.checked_sub(p.filter.map_or(0, |f| f.bytes.into()))?;
                    p.index.offset.checked_add(p.index.bytes.into())?;
                    self.data_end(bytes, i)
                }
            };
            if place_end <= place_from {
                return None;
            }
            place_from = place_end;
        }
        (self.keys_at + key_from == bytes.len()).then_some(())
    }

    #[inline]
    fn prefix(&self, bytes: &[u8], i: usize) -> u64 {
        u64_at(bytes, HEAD_BYTES + i * PREFIX_BYTES)
    }

    #[inline]
    fn block_end(&self, bytes: &[u8], i: usize) -> u32 {
        u32_at(bytes, self.places_at + i * 4)
    }

    #[inline]
    fn data_end(&self, bytes: &[u8], i: usize) -> u64 {
        u64_at(bytes, self.places_at + i * 24)
    }

    fn partition(&self, bytes: &[u8], i: usize) -> PartitionHandle {
        let at = self.places_at + i * 24;
        let index = BlockHandle { offset: u64_at(bytes, at + 8), bytes: u32_at(bytes, at + 16) };
        let filter_bytes = u32_at(bytes, at + 20);
        // A partition's filter lies right before its index.
        let filter = (filter_bytes > 0).then(|| BlockHandle {
            offset: index.offset.wrapping_sub(filter_bytes.into()),
            bytes: filter_bytes,
        });
        PartitionHandle { index, filter }
    }

    #[inline]
    fn block(&self, bytes: &[u8], i: usize) -> BlockHandle {
        let from = if i == 0 { 0 } else { self.block_end(bytes, i - 1) };
        let to = self.block_end(bytes, i);
        BlockHandle { offset: self.base + u64::from(from), bytes: to - from }
    }

    fn place(&self, bytes: &[u8], i: usize) -> Locate {
        if i >= self.count {
            return Locate::None;
        }
        match self.level {
            IndexLevel::Blocks => Locate::Block(self.block(bytes, i)),
            IndexLevel::Partitions => Locate::Partition(self.partition(bytes, i)),
        }
    }

    /// The key of an entry without what all share, and its trailer.
    #[inline]
    fn key<'a>(&self, bytes: &'a [u8], i: usize) -> (&'a [u8], u64) {
        let from = if i == 0 { 0 } else { u32_at(bytes, self.ends_at + (i - 1) * END_BYTES) };
        let to = u32_at(bytes, self.ends_at + i * END_BYTES);
        let from = self.keys_at + (from & !HAS_TRAILER) as usize;
        let key = &bytes[from..self.keys_at + (to & !HAS_TRAILER) as usize];
        if to & HAS_TRAILER == 0 { (key, 0) } else { split(key) }
    }

    /// Index of the first entry whose key is at or after an internal key.
    #[inline]
    fn search(&self, bytes: &[u8], order: &KeyOrder, user_key: &[u8], trailer: u64) -> usize {
        let (mut lo, mut hi) = (0, self.count);
        let mut target = user_key;
        if order.is_bytewise() {
            let shared = &bytes[self.shared_at..self.keys_at];
            match user_key.strip_prefix(shared) {
                Some(rest) => target = rest,
                None => return if user_key < shared { 0 } else { self.count },
            }
            let prefix = prefix_u64(target);
            lo = self.lower_bound(bytes, prefix);
            // Entries of the same prefix follow; they are few or none.
            hi = lo;
            while hi < self.count && self.prefix(bytes, hi) == prefix {
                hi = (hi + 1 + (hi - lo)).min(self.count);
            }
            while hi > lo && self.prefix(bytes, hi - 1) != prefix {
                hi -= 1;
            }
        }
        while lo < hi {
            let mid = (lo + hi) / 2;
            let (key, key_trailer) = self.key(bytes, mid);
            let before = match order.compare(key, target) {
                Ordering::Equal => key_trailer > trailer,
                unequal => unequal.is_lt(),
            };
            if before {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        lo
    }

    /// First entry whose prefix is at least `prefix`, without branches that depend on data.
    #[inline]
    fn lower_bound(&self, bytes: &[u8], prefix: u64) -> usize {
        let column = &bytes[HEAD_BYTES..self.ends_at];
        let (mut column, _) = column.as_chunks::<PREFIX_BYTES>();
        let mut base = 0;
        while column.len() > 1 {
            let half = column.len() / 2;
            let below = u64::from_le_bytes(column[half - 1]) < prefix;
            base += if below { half } else { 0 };
            column = if below { &column[half..] } else { &column[..column.len() - half] };
        }
        base + usize::from(column.first().is_some_and(|p| u64::from_le_bytes(*p) < prefix))
    }
}

/// An index block read in place.
#[derive(Clone, Copy)]
pub struct IndexPart<'a> {
    bytes: &'a [u8],
    layout: &'a IndexLayout,
}

/// Reads an index partition in place; costs nothing.
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
        self.layout.count
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.layout.count == 0
    }

    /// The block (or, of a top level, the partition) that may hold an internal key.
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

    /// File offset where the data of the entry that may hold the key begins.
    pub(super) fn data_offset(&self, order: &KeyOrder, internal_key: &[u8]) -> u64 {
        let (user_key, trailer) = split(internal_key);
        let at = self.layout.search(self.bytes, order, user_key, trailer);
        match (at, self.layout.level) {
            (0, _) => self.layout.base,
            (_, IndexLevel::Blocks) => {
                self.layout.base + u64::from(self.layout.block_end(self.bytes, at - 1))
            }
            (_, IndexLevel::Partitions) => self.layout.data_end(self.bytes, at - 1),
        }
    }

    /// File offset where the first entry's data begins.
    pub(super) fn base(&self) -> u64 {
        self.layout.base
    }

    pub(super) fn level(&self) -> IndexLevel {
        self.layout.level
    }

    /// Appends an entry's internal key to `out`.
    pub(super) fn push_key(&self, entry: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[self.layout.shared_at..self.layout.keys_at]);
        let (rest, trailer) = self.layout.key(self.bytes, entry);
        windrow_base::key::push_internal(out, rest, trailer);
    }
}

/// Walks an index: over data blocks, or over partitions. Owns its block.
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

    /// Whether it stands at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.at < self.count
    }

    /// To the first entry.
    pub fn seek_first(&mut self) {
        self.at = 0;
    }

    /// To the last entry.
    pub fn seek_last(&mut self) {
        self.at = self.count.wrapping_sub(1);
    }

    /// To the entry that may hold the first key at or after an internal key.
    pub fn seek(&mut self, internal_key: &[u8]) {
        let (user_key, trailer) = split(internal_key);
        self.at = match self.part() {
            Some(part) => part.layout.search(part.bytes, &self.order, user_key, trailer),
            None => self.count,
        };
    }

    /// To the next entry. Does nothing when not valid.
    #[inline]
    pub fn next(&mut self) {
        if self.valid() {
            self.at += 1;
        }
    }

    /// To the previous entry. Does nothing when not valid.
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
