//! Point lookup in a data block, without an iterator and without building keys.
//!
//! Owns: the lookup by hash index or binary search, and the scan of a restart interval. Never does:
//! read a block, or search a second one.

use super::entry::{EntryLayout, malformed};
use super::{BUCKET_COLLISION, BUCKET_EMPTY, Block, DataLayout, bucket_of};
use crate::filter;
use std::cmp::Ordering;
use std::ops::Range;
use windrow_base::{KeyOrder, Result};

/// The most bytes of a restart interval that are prefetched at once: a processor has a dozen or so
/// misses in flight.
const ASKED_BYTES_MAX: usize = 1 << 10;

/// The result of a point lookup in a data block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockGet {
    /// The newest entry at or below the trailer asked for.
    Found {
        /// The entry's sequence number and kind.
        trailer: u64,
        /// The value, as a range of [`Block::bytes`].
        value: Range<usize>,
    },
    /// The block holds no such entry, and none can lie in a later block.
    Absent,
    /// The block ends before the place of the key; a later block may have it. After `Table::locate`
    /// it means absent too, since index keys tell versions of one user key apart.
    Passed,
}

/// The entry at which a search stopped.
pub(super) struct StopPosition {
    /// Offset of the entry.
    pub(super) at: usize,
    pub(super) entry: EntryLayout,
    /// Whether its user key is the target's.
    pub(super) equal: bool,
}

impl Block {
    /// Finds the newest entry of `user_key` with a trailer of at most `trailer` (from
    /// [`windrow_base::key::seek_trailer`]).
    ///
    /// # Errors
    /// `Corruption` for malformed entries in a block whose checksum holds.
    #[inline]
    pub fn get(&self, order: &KeyOrder, user_key: &[u8], trailer: u64) -> Result<BlockGet> {
        let layout = self.data();
        let use_hash = layout.buckets > 0 && order.equality_is_bytewise();
        let hash = if use_hash { filter::hash(user_key) } else { 0 };
        self.get_in(&layout, order, user_key, hash, trailer)
    }

    /// [`Block::get`] for a caller that has the key's [`filter::hash`].
    ///
    /// # Errors
    /// As [`Block::get`].
    #[inline]
    pub fn get_hashed(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        hash: u64,
        trailer: u64,
    ) -> Result<BlockGet> {
        self.get_in(&self.data(), order, user_key, hash, trailer)
    }

    fn get_in(
        &self,
        layout: &DataLayout,
        order: &KeyOrder,
        user_key: &[u8],
        hash: u64,
        trailer: u64,
    ) -> Result<BlockGet> {
        if layout.restarts == 0 {
            return Ok(BlockGet::Passed);
        }
        if layout.buckets > 0 && order.equality_is_bytewise() {
            let index = layout.entries_end + layout.restarts * 4;
            match self.bytes[index + bucket_of(hash, layout.buckets)] {
                BUCKET_EMPTY => return Ok(BlockGet::Absent),
                BUCKET_COLLISION => {}
                restart => {
                    // All versions of the key in this block are in this interval.
                    let restart = restart as usize;
                    let range = self.restart(layout, restart)..self.restart_end(layout, restart);
                    self.ask_for(&range);
                    return Ok(match self.scan(range, order, user_key, trailer)? {
                        BlockGet::Passed => BlockGet::Absent,
                        answer => answer,
                    });
                }
            }
        }
        let restart = self.seek_restart(layout, order, user_key, trailer)?;
        let from = self.restart(layout, restart);
        self.ask_for(&(from..self.restart_end(layout, restart)));
        self.scan(from..layout.entries_end, order, user_key, trailer)
    }

    /// Prefetches the entries of a restart interval: the place of each follows from the entry
    /// before it, so the processor would fetch them one by one.
    #[inline]
    fn ask_for(&self, range: &Range<usize>) {
        let end = range.end.min(range.start + ASKED_BYTES_MAX);
        windrow_env::prefetch(self.bytes.get(range.start..end).unwrap_or_default());
    }

    /// Scans entries for the first one at or after `(user_key, trailer)`.
    fn scan(
        &self,
        range: Range<usize>,
        order: &KeyOrder,
        user_key: &[u8],
        trailer: u64,
    ) -> Result<BlockGet> {
        match order {
            KeyOrder::Bytewise => self.scan_bytewise(range, user_key, trailer),
            KeyOrder::Custom(_) => self.scan_custom(range, order, user_key, trailer),
        }
    }

    fn scan_bytewise(
        &self,
        range: Range<usize>,
        user_key: &[u8],
        trailer: u64,
    ) -> Result<BlockGet> {
        Ok(match self.find_bytewise(range, user_key, trailer)? {
            Some(StopPosition { entry, equal: true, .. }) => BlockGet::Found {
                trailer: entry.trailer(&self.bytes),
                value: entry.value_at..entry.end,
            },
            Some(_) => BlockGet::Absent,
            None => BlockGet::Passed,
        })
    }

    /// Finds the first entry at or after `(user_key, trailer)` in a range of entries that begins at
    /// a restart point, under the bytewise order.
    ///
    /// Keys are never assembled. The last key shares its first `matched` bytes with the target, and
    /// is below it at the next byte. An entry that shares more than `matched` bytes with the last
    /// key is below the target as well; one that shares less is above it. So the search always
    /// stops at an entry whose shared bytes are the target's own.
    pub(super) fn find_bytewise(
        &self,
        range: Range<usize>,
        user_key: &[u8],
        trailer: u64,
    ) -> Result<Option<StopPosition>> {
        let entries = self.bytes.get(..range.end).unwrap_or_default();
        let mut at = range.start;
        let mut matched = 0;
        let mut key_len = 0;
        while at < range.end {
            let entry = EntryLayout::read(entries, at).ok_or_else(malformed)?;
            if entry.shared > key_len {
                return Err(malformed());
            }
            let rest = entry.rest(entries);
            key_len = entry.shared + rest.len();
            if entry.shared == 0 {
                // A restart point stores its whole key.
                matched = 0;
            }
            if entry.shared < matched {
                return Ok(Some(StopPosition { at, entry, equal: false }));
            }
            if entry.shared == matched {
                let target = &user_key[matched..];
                let same = common_prefix(rest, target);
                match rest.get(same).cmp(&target.get(same)) {
                    Ordering::Greater => return Ok(Some(StopPosition { at, entry, equal: false })),
                    Ordering::Equal if entry.trailer(entries) <= trailer => {
                        return Ok(Some(StopPosition { at, entry, equal: true }));
                    }
                    Ordering::Equal | Ordering::Less => {}
                }
                matched += same;
            }
            at = entry.end;
        }
        Ok(None)
    }

    fn scan_custom(
        &self,
        range: Range<usize>,
        order: &KeyOrder,
        user_key: &[u8],
        trailer: u64,
    ) -> Result<BlockGet> {
        let entries = self.bytes.get(..range.end).unwrap_or_default();
        let mut at = range.start;
        let mut key = Vec::new();
        while at < range.end {
            let entry = EntryLayout::read(entries, at).ok_or_else(malformed)?;
            if entry.shared > key.len() {
                return Err(malformed());
            }
            key.truncate(entry.shared);
            key.extend_from_slice(entry.rest(entries));
            let found = entry.trailer(entries);
            match order.compare(&key, user_key) {
                Ordering::Less => {}
                Ordering::Equal if found > trailer => {}
                Ordering::Equal => {
                    let value = entry.value_at..entry.end;
                    return Ok(BlockGet::Found { trailer: found, value });
                }
                Ordering::Greater => return Ok(BlockGet::Absent),
            }
            at = entry.end;
        }
        Ok(BlockGet::Passed)
    }
}

/// Number of equal bytes at the head of both, eight at a step.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let mut at = 0;
    for (x, y) in words {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return at + (differ.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}
