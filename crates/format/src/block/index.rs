//! Index blocks: their columns, and the search in them.
//!
//! The compact form (`compact.rs`) is written where it can be. The plain one's columns: eight-byte
//! prefixes of the user keys (after the prefix that all keys share), key ends, places; then the
//! keys. A search is a branch-free binary search over the dense prefixes and a full comparison only
//! among equal ones.
//!
//! Owns: the form of an index block. Never does: hold the block, or read others.

use super::column::{u32_at, u64_at};
use super::compact::Compact;
use super::handle::{BlockHandle, Locate, PartitionHandle};
use std::cmp::Ordering;

use windrow_base::coding::Decoder;
use windrow_base::key::{KEY_BYTES_MAX, TRAILER_BYTES, prefix_u64, split};
use windrow_base::{Error, KeyOrder, Result};

/// Fixed head: level, flags, shared bytes, count, base.
pub(crate) const HEAD_BYTES: usize = 16;

/// The block is in the compact form.
pub(crate) const IS_COMPACT: u8 = 1;

/// In a compact block: the column has eight first bytes of each key, not four.
pub(crate) const IS_WIDE: u8 = 2;

/// Set in a key's end where the key is stored with its trailer (else it is 0).
pub(crate) const HAS_TRAILER: u32 = 1 << 31;

const PREFIX_BYTES: usize = 8;
const END_BYTES: usize = 4;

/// The level of an index block: the kind of its entries. The numbers are on disk.
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

/// The positions of an index block's columns, checked once against its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexLayout {
    base: u64,
    count: u32,
    shared_len: u16,
    level: IndexLevel,
    flags: u8,
}

impl IndexLayout {
    /// Finds the columns, and checks that every position in them is within the bytes.
    pub(super) fn parse(bytes: &[u8]) -> Result<IndexLayout> {
        let bad = || Error::corruption("index block of an impossible shape");
        let mut d = Decoder::new(bytes);
        let level = match d.u8()? {
            0 => IndexLevel::Blocks,
            1 => IndexLevel::Partitions,
            _ => return Err(Error::not_supported("index of a level that needs a newer Windrow")),
        };
        let flags = d.u8()?;
        let known = match level {
            IndexLevel::Blocks => [0, IS_COMPACT, IS_COMPACT | IS_WIDE].contains(&flags),
            IndexLevel::Partitions => flags == 0,
        };
        if !known {
            return Err(Error::not_supported("index with flags that need a newer Windrow"));
        }
        let shared = d.bytes(2)?;
        let shared_len = u16::from_le_bytes([shared[0], shared[1]]);
        let count = d.u32()?;
        let base = d.u64()?;
        let layout = IndexLayout { base, count, shared_len, level, flags };
        if let Some(compact) = layout.compact() {
            compact.check(bytes, base).ok_or_else(bad)?;
            return Ok(layout);
        }
        let columns = PREFIX_BYTES + END_BYTES + level.place_bytes();
        d.bytes((count as usize).checked_mul(columns).ok_or_else(bad)?)?;
        d.bytes(usize::from(shared_len))?;
        debug_assert_eq!(layout.keys_at(), d.position());
        layout.check_columns(bytes).ok_or_else(bad)?;
        Ok(layout)
    }

    /// The columns, if the block is in the compact form.
    #[inline]
    fn compact(&self) -> Option<Compact> {
        let width = if self.flags & IS_WIDE != 0 { 8 } else { 4 };
        let columns = || Compact::new(HEAD_BYTES, self.count(), width, self.shared_len.into());
        (self.flags & IS_COMPACT != 0).then(columns)
    }

    /// Checks that key ends ascend to the end of the bytes, that places ascend, and that keys are
    /// of legal length.
    fn check_columns(&self, bytes: &[u8]) -> Option<()> {
        let mut key_from = 0;
        let mut place_from = self.base;
        for i in 0..self.count() {
            let end = u32_at(bytes, self.ends_at() + i * END_BYTES);
            let trailer_bytes = if end & HAS_TRAILER != 0 { TRAILER_BYTES } else { 0 };
            let key_end = (end & !HAS_TRAILER) as usize;
            let rest = key_end.checked_sub(key_from)?.checked_sub(trailer_bytes)?;
            if rest + usize::from(self.shared_len) > KEY_BYTES_MAX {
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
        (self.keys_at() + key_from == bytes.len()).then_some(())
    }

    /// The offset of the column of key ends.
    #[inline]
    fn ends_at(&self) -> usize {
        HEAD_BYTES + self.count() * PREFIX_BYTES
    }

    #[inline]
    fn places_at(&self) -> usize {
        self.ends_at() + self.count() * END_BYTES
    }

    #[inline]
    fn shared_at(&self) -> usize {
        self.places_at() + self.count() * self.level.place_bytes()
    }

    #[inline]
    fn keys_at(&self) -> usize {
        self.shared_at() + usize::from(self.shared_len)
    }

    /// The level of the block.
    #[inline]
    pub(crate) fn level(&self) -> IndexLevel {
        self.level
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// File offset where the first entry's data begins.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The prefix that all keys share.
    #[inline]
    pub(crate) fn shared<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let at = self.compact().map_or_else(|| self.shared_at(), |compact| compact.shared_at());
        &bytes[at..at + usize::from(self.shared_len)]
    }

    #[inline]
    fn prefix(&self, bytes: &[u8], i: usize) -> u64 {
        u64_at(bytes, HEAD_BYTES + i * PREFIX_BYTES)
    }

    /// The end of a data block, from the base.
    #[inline]
    pub(crate) fn block_end(&self, bytes: &[u8], i: usize) -> u32 {
        match self.compact() {
            Some(compact) => compact.block_end(bytes, i),
            None => u32_at(bytes, self.places_at() + i * 4),
        }
    }

    /// File offset where a partition's data ends.
    #[inline]
    pub(crate) fn data_end(&self, bytes: &[u8], i: usize) -> u64 {
        u64_at(bytes, self.places_at() + i * 24)
    }

    fn partition(&self, bytes: &[u8], i: usize) -> PartitionHandle {
        let at = self.places_at() + i * 24;
        let index = BlockHandle { offset: u64_at(bytes, at + 8), bytes: u32_at(bytes, at + 16) };
        let filter_bytes = u32_at(bytes, at + 20);
        // A partition's filter lies right before its index.
        let filter = (filter_bytes > 0).then(|| BlockHandle {
            offset: index.offset.wrapping_sub(filter_bytes.into()),
            bytes: filter_bytes,
        });
        PartitionHandle { number: i as u32, index, filter }
    }

    #[inline]
    fn block(&self, bytes: &[u8], i: usize) -> BlockHandle {
        let from = if i == 0 { 0 } else { self.block_end(bytes, i - 1) };
        let to = self.block_end(bytes, i);
        BlockHandle { offset: self.base + u64::from(from), bytes: to - from }
    }

    /// The block or partition of an entry.
    pub(crate) fn place(&self, bytes: &[u8], i: usize) -> Locate {
        if i >= self.count() {
            return Locate::None;
        }
        match self.level {
            IndexLevel::Blocks => Locate::Block(self.block(bytes, i)),
            IndexLevel::Partitions => Locate::Partition(self.partition(bytes, i)),
        }
    }

    /// Appends the key of an entry, with the shared prefix, to `out`; returns its trailer.
    pub(crate) fn push_key(&self, bytes: &[u8], i: usize, out: &mut Vec<u8>) -> u64 {
        out.extend_from_slice(self.shared(bytes));
        if let Some(compact) = self.compact() {
            return compact.push_key(bytes, i, out);
        }
        let (rest, trailer) = self.key(bytes, i);
        out.extend_from_slice(rest);
        trailer
    }

    /// The key of an entry of the plain form without the shared prefix, and its trailer.
    #[inline]
    fn key<'a>(&self, bytes: &'a [u8], i: usize) -> (&'a [u8], u64) {
        let from = if i == 0 { 0 } else { u32_at(bytes, self.ends_at() + (i - 1) * END_BYTES) };
        let to = u32_at(bytes, self.ends_at() + i * END_BYTES);
        let from = self.keys_at() + (from & !HAS_TRAILER) as usize;
        let key = &bytes[from..self.keys_at() + (to & !HAS_TRAILER) as usize];
        if to & HAS_TRAILER == 0 { (key, 0) } else { split(key) }
    }

    /// Returns the index of the first entry whose key is at or after an internal key.
    #[inline]
    pub(crate) fn search(
        &self,
        bytes: &[u8],
        order: &KeyOrder,
        user_key: &[u8],
        trailer: u64,
    ) -> usize {
        let (mut lo, mut hi) = (0, self.count());
        let mut target = user_key;
        // Writers use the compact form for the bytewise order only.
        if order.is_bytewise() || self.flags & IS_COMPACT != 0 {
            let shared = self.shared(bytes);
            match user_key.strip_prefix(shared) {
                Some(rest) => target = rest,
                None => return if user_key < shared { 0 } else { self.count() },
            }
            if let Some(compact) = self.compact() {
                return compact.search(bytes, target, trailer);
            }
            let prefix = prefix_u64(target);
            lo = self.lower_bound(bytes, prefix);
            // Entries of the same prefix follow; they are few or none.
            hi = lo;
            while hi < self.count() && self.prefix(bytes, hi) == prefix {
                hi = (hi + 1 + (hi - lo)).min(self.count());
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
        let column = &bytes[HEAD_BYTES..self.ends_at()];
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
