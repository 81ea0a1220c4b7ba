//! The compact form of an index block over data blocks: an entry takes 8.5 bytes, or 12.5, and the
//! rest of its key, where the plain form takes 16 bytes and the whole key.
//!
//! Columns: the first 4 or 8 bytes of each key (after the prefix that all keys share), the ends of
//! blocks in groups of eight, the ends of the keys' tails; then the tails, which are the bytes
//! after the first ones. Layout in `docs/format/table.md`.
//!
//! Owns: the form. Never does: hold the block, or know keys of another order than bytewise.

use super::column::{u16_at, u32_at, u64_at};
use std::cmp::Ordering;

use windrow_base::key::{KEY_BYTES_MAX, TRAILER_BYTES, prefix_u64, split};

/// Blocks whose ends are counted from one offset.
pub(crate) const GROUP: usize = 8;

/// Set in a tail's end where the key is stored with its trailer (else it is 0).
pub(crate) const TAIL_HAS_TRAILER: u16 = 1 << 15;

/// Set where the key is shorter than its column of first bytes: the tail's last byte has its
/// length.
pub(crate) const TAIL_IS_SHORT: u16 = 1 << 14;

/// The most bytes of all tails.
pub(crate) const TAILS_BYTES_MAX: usize = TAIL_IS_SHORT as usize - 1;

/// The positions of the columns, from the end of the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compact {
    count: usize,
    /// Bytes of each key's column: 4 or 8.
    width: usize,
    at: usize,
    shared_len: usize,
}

/// A key in the parts that it is stored in.
struct KeyParts<'a> {
    first: [u8; 8],
    first_len: usize,
    rest: &'a [u8],
    trailer: u64,
}

impl Compact {
    /// The columns of `count` entries from `at` on, the first with `width` bytes of each key.
    #[inline]
    pub(super) fn new(at: usize, count: usize, width: usize, shared_len: usize) -> Compact {
        Compact { count, width, at, shared_len }
    }

    #[inline]
    fn groups_at(&self) -> usize {
        self.at + self.count * self.width
    }

    #[inline]
    fn ends_at(&self) -> usize {
        self.groups_at() + self.count.div_ceil(GROUP) * 4
    }

    #[inline]
    fn tail_ends_at(&self) -> usize {
        self.ends_at() + self.count * 2
    }

    #[inline]
    pub(super) fn shared_at(&self) -> usize {
        self.tail_ends_at() + self.count * 2
    }

    #[inline]
    fn tails_at(&self) -> usize {
        self.shared_at() + self.shared_len
    }

    /// The end of a data block, from the base.
    #[inline]
    pub(super) fn block_end(&self, bytes: &[u8], i: usize) -> u32 {
        let group = u32_at(bytes, self.groups_at() + i / GROUP * 4);
        group.saturating_add(u16_at(bytes, self.ends_at() + i * 2).into())
    }

    #[inline]
    fn tail_end(&self, bytes: &[u8], i: usize) -> u16 {
        u16_at(bytes, self.tail_ends_at() + i * 2)
    }

    /// The first bytes of a key, as a number.
    #[inline]
    fn prefix(&self, bytes: &[u8], i: usize) -> u64 {
        match self.width {
            4 => u64::from(u32_at(bytes, self.at + i * 4)) << 32,
            _ => u64_at(bytes, self.at + i * 8),
        }
    }

    /// The key of an entry without the shared prefix.
    fn key<'a>(&self, bytes: &'a [u8], i: usize) -> KeyParts<'a> {
        let offset = |end: u16| usize::from(end & TAILS_BYTES_MAX as u16);
        let from = if i == 0 { 0 } else { offset(self.tail_end(bytes, i - 1)) };
        let end = self.tail_end(bytes, i);
        let tails = &bytes[self.tails_at()..];
        let mut rest = &tails[from..offset(end)];
        let mut first_len = self.width;
        if end & TAIL_IS_SHORT != 0
            && let Some((len, before)) = rest.split_last()
        {
            (first_len, rest) = (usize::from(*len).min(self.width), before);
        }
        let (rest, trailer) = if end & TAIL_HAS_TRAILER != 0 { split(rest) } else { (rest, 0) };
        KeyParts { first: self.prefix(bytes, i).to_be_bytes(), first_len, rest, trailer }
    }

    /// Appends the key of an entry, without the shared prefix, to `out`; returns its trailer.
    pub(super) fn push_key(&self, bytes: &[u8], i: usize, out: &mut Vec<u8>) -> u64 {
        let key = self.key(bytes, i);
        out.extend_from_slice(&key.first[..key.first_len]);
        out.extend_from_slice(key.rest);
        key.trailer
    }

    /// Checks that ends ascend to the end of the bytes, and that keys are of legal length. `None`
    /// if not.
    pub(super) fn check(&self, bytes: &[u8], base: u64) -> Option<()> {
        // No more entries than bytes, so that no offset overflows.
        if self.count > bytes.len() || self.tails_at() > bytes.len() {
            return None;
        }
        let (mut from, mut block_from) = (0, 0);
        for i in 0..self.count {
            let end = self.tail_end(bytes, i);
            let to = usize::from(end & TAILS_BYTES_MAX as u16);
            let mut tail = to.checked_sub(from)?;
            let mut first_len = self.width;
            if end & TAIL_IS_SHORT != 0 {
                tail = tail.checked_sub(1)?;
                first_len = usize::from(*bytes.get(self.tails_at() + to - 1)?);
                if first_len >= self.width {
                    return None;
                }
                // The search compares these bytes as they are.
                if self.prefix(bytes, i) << (first_len * 8) != 0 {
                    return None;
                }
            }
            if end & TAIL_HAS_TRAILER != 0 {
                tail = tail.checked_sub(TRAILER_BYTES)?;
            }
            let is_odd = end & TAIL_IS_SHORT != 0 && tail > 0;
            if is_odd || self.shared_len + first_len + tail > KEY_BYTES_MAX {
                return None;
            }
            let block_end = self.block_end(bytes, i);
            base.checked_add(block_end.into()).filter(|_| block_end > block_from)?;
            (from, block_from) = (to, block_end);
        }
        (self.tails_at() + from == bytes.len()).then_some(())
    }

    /// Returns the index of the first entry whose key is at or after a key, both without the shared
    /// prefix.
    #[inline]
    pub(super) fn search(&self, bytes: &[u8], target: &[u8], trailer: u64) -> usize {
        let wide = prefix_u64(target);
        let prefix = if self.width == 4 { wide >> 32 << 32 } else { wide };
        let mut at = self.lower_bound(bytes, prefix);
        // Entries of the same first bytes follow; they are few or none.
        while at < self.count && self.prefix(bytes, at) == prefix {
            if !self.is_before(bytes, at, target, trailer) {
                break;
            }
            at += 1;
        }
        at
    }

    fn is_before(&self, bytes: &[u8], i: usize, target: &[u8], trailer: u64) -> bool {
        let key = self.key(bytes, i);
        let (first, rest) = target.split_at(target.len().min(key.first_len));
        let order = key.first[..key.first_len].cmp(first).then_with(|| key.rest.cmp(rest));
        match order {
            Ordering::Equal => key.trailer > trailer,
            unequal => unequal.is_lt(),
        }
    }

    /// First entry whose first bytes are at least `prefix`, without branches that depend on data.
    #[inline]
    fn lower_bound(&self, bytes: &[u8], prefix: u64) -> usize {
        let (mut base, mut len) = (0, self.count);
        while len > 1 {
            let half = len / 2;
            let below = self.prefix(bytes, base + half - 1) < prefix;
            base += if below { half } else { 0 };
            len -= half;
        }
        base + usize::from(len == 1 && self.prefix(bytes, base) < prefix)
    }
}
