//! Builds index blocks: leaves over data blocks, and the top level over the leaves.
//!
//! Owns: the entries that are not written yet, and the choice of a block's form and columns. Never
//! does: write a block, or decide on partitions (`partition.rs`).

use crate::block::{
    GROUP, HAS_TRAILER, HEAD_BYTES, IS_COMPACT, IS_WIDE, IndexLevel, TAIL_HAS_TRAILER,
    TAIL_IS_SHORT, TAILS_BYTES_MAX, common_prefix,
};
use windrow_base::KeyOrder;
use windrow_base::key::{TRAILER_BYTES, prefix_u64, split};

/// The place that an entry points to.
#[derive(Clone, Copy)]
pub(super) enum IndexTarget {
    /// A data block that ends at this file offset.
    BlockEnd(u64),
    /// A partition whose data ends at `data_end`.
    Partition { data_end: u64, index_offset: u64, index_bytes: u32, filter_bytes: u32 },
}

/// The length up to which a prefix that all keys share counts as if it were stored with each key:
/// the sizes are estimates, and for short keys simple ones.
const SHORT_BYTES: usize = 64;

/// The column has eight bytes of each key, not four, where more than one key in this number begins
/// with the four bytes of the key before it.
const ALIKE_PART: usize = 8;

/// The columns of a block in the compact form.
#[derive(Default)]
struct CompactColumns {
    flags: u8,
    first: Vec<u8>,
    groups: Vec<u32>,
    ends: Vec<u16>,
    tail_ends: Vec<u16>,
    tails: Vec<u8>,
}

impl CompactColumns {
    /// Adds a key without the shared prefix. The caller checks that the tails do not become too
    /// long.
    fn add_key(&mut self, key: &[u8], trailer: u64, width: usize) {
        let first = prefix_u64(key);
        match width {
            4 => self.first.extend_from_slice(&((first >> 32) as u32).to_le_bytes()),
            _ => self.first.extend_from_slice(&first.to_le_bytes()),
        }
        self.tails.extend_from_slice(key.get(width..).unwrap_or_default());
        let mut flags = 0;
        if trailer != 0 {
            self.tails.extend_from_slice(&trailer.to_le_bytes());
            flags |= TAIL_HAS_TRAILER;
        }
        if key.len() < width {
            self.tails.push(key.len() as u8);
            flags |= TAIL_IS_SHORT;
        }
        self.tail_ends.push(self.tails.len() as u16 & TAILS_BYTES_MAX as u16 | flags);
    }

    fn write(&self, shared: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first);
        self.groups.iter().for_each(|group| out.extend_from_slice(&group.to_le_bytes()));
        self.ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
        self.tail_ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
        out.extend_from_slice(shared);
        out.extend_from_slice(&self.tails);
    }
}

struct IndexEntry {
    /// The length of the prefix that its user key shares with that of the entry before.
    shared: usize,
    user_key_bytes: usize,
    trailer: u64,
    /// End of the rest of its user key in `rests`.
    rest_end: usize,
    place: IndexTarget,
}

impl IndexEntry {
    /// Bytes of its key in a block that takes `shared` bytes off all keys.
    fn key_bytes(&self, shared: usize) -> usize {
        let trailer = if self.trailer == 0 { 0 } else { TRAILER_BYTES };
        self.user_key_bytes - shared + trailer
    }
}

/// The entries of an index block being built. Keys of 64 KiB may differ in their last bytes only,
/// so only the part of each key that differs from the key before is held.
pub(super) struct IndexBuilder {
    level: IndexLevel,
    base: u64,
    /// Whether the prefix that all keys share is taken off them. A custom comparator needs whole
    /// keys.
    shares: bool,
    rests: Vec<u8>,
    entries: Vec<IndexEntry>,
    /// User key of the last entry.
    last_key: Vec<u8>,
    /// Sum of the entries' internal keys.
    key_bytes: usize,
    /// The length of the prefix that all user keys share, whether or not it is taken off. It is
    /// kept up to date because it is needed with every key of the table.
    common_bytes: usize,
}

impl IndexBuilder {
    /// A builder for entries whose data begins at file offset `base`.
    pub(super) fn new(level: IndexLevel, base: u64, order: &KeyOrder) -> IndexBuilder {
        IndexBuilder {
            level,
            base,
            shares: order.is_bytewise(),
            rests: Vec::new(),
            entries: Vec::new(),
            last_key: Vec::new(),
            key_bytes: 0,
            common_bytes: 0,
        }
    }

    pub(super) fn add(&mut self, internal_key: &[u8], place: IndexTarget) {
        let (user_key, trailer) = split(internal_key);
        let shared = match self.entries.is_empty() {
            true => 0,
            false => common_prefix(user_key, &self.last_key),
        };
        self.rests.extend_from_slice(&user_key[shared..]);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&user_key[shared..]);
        let (user_key_bytes, rest_end) = (user_key.len(), self.rests.len());
        let entry = IndexEntry { shared, user_key_bytes, trailer, rest_end, place };
        self.common_bytes = match self.entries.is_empty() {
            true => user_key_bytes,
            false => self.common_bytes.min(shared),
        };
        self.key_bytes += user_key_bytes + TRAILER_BYTES;
        self.entries.push(entry);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The most bytes of a block of `count` keys that share `shared` bytes.
    fn block_bytes(&self, count: usize, key_bytes: usize, shared: usize) -> usize {
        let place = if self.level == IndexLevel::Blocks { 4 } else { 24 };
        let taken_off = count.saturating_sub(1) * shared.saturating_sub(SHORT_BYTES);
        HEAD_BYTES + count * (12 + place) + key_bytes - taken_off
    }

    /// The length of the prefix that the first `count` user keys share: as they ascend, the least
    /// that any two neighbours share.
    fn common_of(&self, count: usize) -> usize {
        let Some(first) = self.entries.first().filter(|_| count > 0) else { return 0 };
        let between = self.entries[1..count].iter().map(|entry| entry.shared).min();
        between.map_or(first.user_key_bytes, |shared| shared.min(first.user_key_bytes))
    }

    /// The length of the shared prefix that is taken off all keys.
    pub(super) fn shared_bytes(&self) -> usize {
        if self.shares { self.common_bytes } else { 0 }
    }

    /// The most bytes of the block, if it were finished now. O(1), since it is called with every
    /// key.
    pub(super) fn bytes(&self) -> usize {
        self.block_bytes(self.len(), self.key_bytes, self.shared_bytes())
    }

    /// The bytes by which this key makes the block longer: by the bytes that all keys then no
    /// longer share, or by the rest of the key itself, whichever is more.
    pub(super) fn bytes_more_with(&self, internal_key: &[u8]) -> usize {
        let (user_key, _) = split(internal_key);
        let shared = self.shared_bytes();
        let common = common_prefix(user_key, &self.last_key).min(shared);
        let lost = self.len().saturating_sub(1) * (shared - common);
        lost.max(user_key.len() - common)
    }

    /// The number of first entries that make a block of about `target` bytes, not counting the
    /// first one's key; and whether the next entry does not belong to them because all would share
    /// much less.
    pub(super) fn first_within(&self, target: usize) -> (usize, bool) {
        let (mut key_bytes, mut shared, mut before) = (0, usize::MAX, 0);
        let mut most = target;
        for (i, entry) in self.entries.iter().enumerate() {
            key_bytes += entry.user_key_bytes + TRAILER_BYTES;
            shared = match i {
                0 => entry.user_key_bytes,
                _ => shared.min(entry.shared),
            };
            let bytes = self.block_bytes(i + 1, key_bytes, if self.shares { shared } else { 0 });
            if i == 0 {
                most += bytes;
            } else if bytes > most {
                return (i, bytes - before > target);
            }
            before = bytes;
        }
        (self.len(), true)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.rests.capacity()
            + self.last_key.capacity()
            + self.entries.capacity() * size_of::<IndexEntry>()
    }

    /// Calls `see` with each of the first `count` user keys and its entry.
    fn for_each_key(&self, count: usize, mut see: impl FnMut(&[u8], &IndexEntry)) {
        let (mut key, mut at) = (Vec::new(), 0);
        for entry in &self.entries[..count] {
            key.truncate(entry.shared);
            key.extend_from_slice(&self.rests[at..entry.rest_end]);
            at = entry.rest_end;
            see(&key, entry);
        }
    }

    /// The internal key of an entry.
    pub(super) fn key_of(&self, entry: usize) -> Vec<u8> {
        let mut internal = Vec::new();
        self.for_each_key(entry + 1, |user_key, entry| {
            internal.clear();
            internal.extend_from_slice(user_key);
            internal.extend_from_slice(&entry.trailer.to_le_bytes());
        });
        internal
    }

    /// The bytes of data under the entries.
    pub(super) fn span_bytes(&self) -> u64 {
        self.entries.len().checked_sub(1).map_or(0, |last| self.data_end(last) - self.base)
    }

    /// The file offset at which an entry's data ends.
    pub(super) fn data_end(&self, i: usize) -> u64 {
        match self.entries[i].place {
            IndexTarget::BlockEnd(end) => end,
            IndexTarget::Partition { data_end, .. } => data_end,
        }
    }

    /// Appends the block of the first `count` entries to `out`, and drops them. The data of the
    /// other entries begins where theirs ends.
    pub(super) fn finish_first(&mut self, count: usize, out: &mut Vec<u8>) {
        debug_assert!(self.common_bytes == self.common_of(self.len()), "{}", self.common_bytes);
        let shared_len = if self.shares { self.common_of(count) } else { 0 };
        let compact = self.compact_columns(count, shared_len);
        out.push(self.level as u8);
        out.push(match &compact {
            Some(columns) => columns.flags,
            None => 0,
        });
        out.extend_from_slice(&(shared_len as u16).to_le_bytes());
        out.extend_from_slice(&(count as u32).to_le_bytes());
        out.extend_from_slice(&self.base.to_le_bytes());
        match compact {
            Some(columns) => columns.write(&self.rests[..shared_len], out),
            None => self.plain_columns(count, shared_len, out),
        }
        self.forget_first(count);
    }

    /// The columns of the compact form, if it can hold the first `count` entries.
    fn compact_columns(&self, count: usize, shared_len: usize) -> Option<CompactColumns> {
        if !self.shares || self.level != IndexLevel::Blocks {
            return None;
        }
        let mut ends = Vec::with_capacity(count);
        for entry in &self.entries[..count] {
            let IndexTarget::BlockEnd(end) = entry.place else { return None };
            ends.push(u32::try_from(end - self.base).ok()?);
        }
        let groups_of = |ends: &[u32]| -> Vec<u32> {
            let before = |g: usize| if g == 0 { 0 } else { ends[g * GROUP - 1] };
            (0..ends.len().div_ceil(GROUP)).map(before).collect()
        };
        let groups = groups_of(&ends);
        let in_group = |(i, end): (usize, &u32)| u16::try_from(end - groups[i / GROUP]).ok();
        let ends: Vec<u16> = ends.iter().enumerate().map(in_group).collect::<Option<_>>()?;
        let mut columns = CompactColumns { groups, ends, ..CompactColumns::default() };
        let (mut alike, mut last) = (0, None);
        self.for_each_key(count, |user_key, entry| {
            let first = prefix_u64(&user_key[shared_len..]) >> 32;
            // A key with a trailer is compared whole in any case, and a wider column does not help.
            alike += usize::from(last.replace(first) == Some(first) && entry.trailer == 0);
        });
        let width = if alike > count / ALIKE_PART { 8 } else { 4 };
        columns.flags = if width == 8 { IS_COMPACT | IS_WIDE } else { IS_COMPACT };
        self.for_each_key(count, |user_key, entry| {
            columns.add_key(&user_key[shared_len..], entry.trailer, width);
        });
        (columns.tails.len() <= TAILS_BYTES_MAX).then_some(columns)
    }

    fn plain_columns(&self, count: usize, shared_len: usize, out: &mut Vec<u8>) {
        self.for_each_key(count, |user_key, _| {
            out.extend_from_slice(&prefix_u64(&user_key[shared_len..]).to_le_bytes());
        });
        let mut end = 0u32;
        for entry in &self.entries[..count] {
            end += entry.key_bytes(shared_len) as u32;
            let flag = if entry.trailer == 0 { 0 } else { HAS_TRAILER };
            debug_assert!(end < HAS_TRAILER, "the writer partitions before that");
            out.extend_from_slice(&(end | flag).to_le_bytes());
        }
        for entry in &self.entries[..count] {
            match entry.place {
                IndexTarget::BlockEnd(end) => {
                    out.extend_from_slice(&((end - self.base) as u32).to_le_bytes());
                }
                IndexTarget::Partition { data_end, index_offset, index_bytes, filter_bytes } => {
                    out.extend_from_slice(&data_end.to_le_bytes());
                    out.extend_from_slice(&index_offset.to_le_bytes());
                    out.extend_from_slice(&index_bytes.to_le_bytes());
                    out.extend_from_slice(&filter_bytes.to_le_bytes());
                }
            }
        }
        // The first entry is stored whole.
        out.extend_from_slice(&self.rests[..shared_len]);
        self.for_each_key(count, |user_key, entry| {
            out.extend_from_slice(&user_key[shared_len..]);
            if entry.trailer != 0 {
                out.extend_from_slice(&entry.trailer.to_le_bytes());
            }
        });
    }

    fn forget_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.base = self.data_end(count - 1);
        let gone = self.entries[count - 1].rest_end;
        let next = (count < self.len()).then(|| self.key_of(count));
        // The next entry becomes the first, and so is stored whole.
        let whole = next.as_deref().map_or(&[][..], |next| split(next).0);
        let shared = self.entries.get(count).map_or(0, |next| next.shared);
        self.rests.splice(..gone, whole[..shared].iter().copied());
        self.entries.drain(..count);
        if let Some(first) = self.entries.first_mut() {
            first.shared = 0;
        }
        self.entries.iter_mut().for_each(|e| e.rest_end = e.rest_end - gone + shared);
        let key_bytes = self.entries.iter().map(|entry| entry.user_key_bytes + TRAILER_BYTES);
        self.key_bytes = key_bytes.sum();
        self.common_bytes = self.common_of(self.len());
    }

    /// Sets the offset of the first entry's data; only while there are no entries.
    pub(super) fn set_base(&mut self, base: u64) {
        debug_assert!(self.entries.is_empty());
        self.base = base;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use windrow_base::key::push_internal;

    /// The shared prefix is right after every key and every partition, for any keys.
    #[test]
    fn what_all_keys_share_is_kept_up_to_date() {
        let mut index = IndexBuilder::new(IndexLevel::Blocks, 0, &KeyOrder::Bytewise);
        let (mut end, mut key, mut most) = (0, Vec::new(), 0);
        for round in 0..40u64 {
            for n in 0..round % 7 {
                // Some rounds share "key00001", others begin with another letter.
                let user_key = format!("{}key{:05}{n}", (b'a' + (round / 9) as u8) as char, round);
                key.clear();
                push_internal(&mut key, user_key.as_bytes(), 0);
                end += 100;
                index.add(&key, IndexTarget::BlockEnd(end));
                assert_eq!(index.shared_bytes(), index.common_of(index.len()), "{user_key}");
                most = most.max(index.shared_bytes());
            }
            let gone = index.len() * (round % 4) as usize / 3;
            if gone > 0 {
                index.finish_first(gone, &mut Vec::new());
            }
            assert_eq!(index.shared_bytes(), index.common_of(index.len()), "round {round}");
        }
        assert!(most > 8, "{most}");
    }
}
