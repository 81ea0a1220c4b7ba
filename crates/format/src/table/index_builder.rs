//! Builds index blocks: leaves over data blocks, and the top level over them.

use super::index::{HAS_TRAILER, HEAD_BYTES, IndexLevel};
use crate::block::common_prefix;
use windrow_base::KeyOrder;
use windrow_base::key::{TRAILER_BYTES, prefix_u64, split};

/// Where an entry leads.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// A data block that ends at this file offset.
    BlockEnd(u64),
    /// A partition whose data ends at `data_end`.
    Partition { data_end: u64, index_offset: u64, index_bytes: u32, filter_bytes: u32 },
}

struct Entry {
    /// End of its internal key in `keys`.
    key_end: usize,
    place: Place,
}

/// Entries of an index block in the making.
pub(super) struct IndexBuilder {
    level: IndexLevel,
    base: u64,
    keys: Vec<u8>,
    entries: Vec<Entry>,
}

impl IndexBuilder {
    /// A builder for entries whose data begins at file offset `base`.
    pub(super) fn new(level: IndexLevel, base: u64) -> IndexBuilder {
        IndexBuilder { level, base, keys: Vec::new(), entries: Vec::new() }
    }

    pub(super) fn add(&mut self, internal_key: &[u8], place: Place) {
        self.keys.extend_from_slice(internal_key);
        self.entries.push(Entry { key_end: self.keys.len(), place });
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of the block at most, if it were finished now.
    pub(super) fn bytes(&self) -> usize {
        let place = if self.level == IndexLevel::Blocks { 4 } else { 24 };
        HEAD_BYTES + self.entries.len() * (12 + place) + self.keys.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn key(&self, i: usize) -> &[u8] {
        let from = if i == 0 { 0 } else { self.entries[i - 1].key_end };
        &self.keys[from..self.entries[i].key_end]
    }

    /// The internal key of an entry.
    pub(super) fn key_of(&self, entry: usize) -> &[u8] {
        self.key(entry)
    }

    /// Data bytes that the entries are over.
    pub(super) fn span_bytes(&self) -> u64 {
        self.entries.len().checked_sub(1).map_or(0, |last| self.data_end(last) - self.base)
    }

    /// File offset where an entry's data ends.
    pub(super) fn data_end(&self, i: usize) -> u64 {
        match self.entries[i].place {
            Place::BlockEnd(end) => end,
            Place::Partition { data_end, .. } => data_end,
        }
    }

    /// The block of the first `count` entries, appended to `out`; they are
    /// forgotten, and the data of the rest begins where theirs ends.
    pub(super) fn finish_first(&mut self, count: usize, order: &KeyOrder, out: &mut Vec<u8>) {
        // A custom comparator is given whole keys, so nothing is taken off them.
        let shared_len = match (order.is_bytewise(), count) {
            (true, 1..) => {
                // Keys ascend: what the first and last share, all share.
                let (first, last) = (split(self.key(0)).0, split(self.key(count - 1)).0);
                common_prefix(first, last)
            }
            _ => 0,
        };
        out.push(self.level as u8);
        out.push(0);
        out.extend_from_slice(&(shared_len as u16).to_le_bytes());
        out.extend_from_slice(&(count as u32).to_le_bytes());
        out.extend_from_slice(&self.base.to_le_bytes());
        for i in 0..count {
            let rest = &split(self.key(i)).0[shared_len..];
            out.extend_from_slice(&prefix_u64(rest).to_le_bytes());
        }
        let mut end = 0u32;
        for i in 0..count {
            let (user_key, trailer) = split(self.key(i));
            end += (user_key.len() - shared_len) as u32;
            let flag = if trailer == 0 { 0 } else { HAS_TRAILER };
            end += if trailer == 0 { 0 } else { TRAILER_BYTES as u32 };
            debug_assert!(end < HAS_TRAILER, "the writer partitions before that");
            out.extend_from_slice(&(end | flag).to_le_bytes());
        }
        for entry in &self.entries[..count] {
            match entry.place {
                Place::BlockEnd(end) => {
                    out.extend_from_slice(&((end - self.base) as u32).to_le_bytes());
                }
                Place::Partition { data_end, index_offset, index_bytes, filter_bytes } => {
                    out.extend_from_slice(&data_end.to_le_bytes());
                    out.extend_from_slice(&index_offset.to_le_bytes());
                    out.extend_from_slice(&index_bytes.to_le_bytes());
                    out.extend_from_slice(&filter_bytes.to_le_bytes());
                }
            }
        }
        if count > 0 {
            out.extend_from_slice(&self.key(0)[..shared_len]);
        }
        for i in 0..count {
            let key = self.key(i);
            let kept = if split(key).1 == 0 { key.len() - TRAILER_BYTES } else { key.len() };
            out.extend_from_slice(&key[shared_len..kept]);
        }
        self.forget_first(count);
    }

    fn forget_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.base = self.data_end(count - 1);
        let key_bytes = self.entries[count - 1].key_end;
        self.keys.drain(..key_bytes);
        self.entries.drain(..count);
        self.entries.iter_mut().for_each(|e| e.key_end -= key_bytes);
    }

    /// Sets where the data of the first entry begins; only while there are none.
    pub(super) fn set_base(&mut self, base: u64) {
        debug_assert!(self.entries.is_empty());
        self.base = base;
    }
}
