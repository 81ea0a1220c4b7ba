//! The iterator over a data block's entries, in both directions.
//!
//! Forward is the hot path of scans and merges: one bounds check per entry, one key buffer for all
//! entries. Backward, a restart interval is decoded once, and its entries are then returned from a
//! small cache.
//!
//! Owns: its position, the current key, and the cache. Never does: read a block, or trust an offset
//! unchecked.

use super::entry::{EntryLayout, malformed};
use super::{Block, DataLayout};
use std::ops::Range;
use std::sync::Arc;
use windrow_base::key::{TRAILER_BYTES, split};
use windrow_base::{Error, KeyOrder, Result};

/// Entries that [`BlockIter::seek_ahead`] steps over before it searches the block.
const AHEAD_STEPS_MAX: u32 = 4;

/// Iterator over a data block. Owns its block. Positioning methods leave the iterator invalid past
/// either end, and at a malformed entry, which `status` reports.
pub struct BlockIter {
    block: Arc<Block>,
    order: KeyOrder,
    layout: DataLayout,
    /// Internal key of the current entry.
    key: Vec<u8>,
    /// Offsets of the current entry, its value and the next entry.
    at: usize,
    value_at: usize,
    end: usize,
    valid: bool,
    before: Before,
    error: Option<Error>,
}

/// Entries before the current one in its restart interval, last on top.
#[derive(Default)]
struct Before {
    keys: Vec<u8>,
    entries: Vec<Cached>,
    /// The cache holds the entries right before this offset.
    of: usize,
}

struct Cached {
    key_at: usize,
    at: usize,
    value_at: usize,
    end: usize,
}

impl BlockIter {
    /// An iterator that is not positioned yet. A block of another kind reads as empty.
    pub fn new(block: Arc<Block>, order: KeyOrder) -> BlockIter {
        let layout = block.data();
        BlockIter {
            block,
            order,
            layout,
            key: Vec::new(),
            at: 0,
            value_at: 0,
            end: 0,
            valid: false,
            before: Before::default(),
            error: None,
        }
    }

    /// Exchanges the block for another of the same order; keeps the buffers.
    pub fn reset(&mut self, block: Arc<Block>) {
        self.layout = block.data();
        self.block = block;
        self.valid = false;
        self.error = None;
        self.before.entries.clear();
    }

    /// Whether the iterator is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Internal key of the current entry; meaningful only while `valid`.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Value of the current entry; meaningful only while `valid`.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.block.bytes[self.value_at..self.end]
    }

    /// The value as a range of [`Block::bytes`].
    #[inline]
    pub fn value_range(&self) -> Range<usize> {
        self.value_at..self.end
    }

    /// The block.
    pub fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// Returns `Ok` if all entries so far were well formed.
    ///
    /// # Errors
    /// `Corruption` otherwise; the iterator stays invalid.
    pub fn status(&self) -> Result<()> {
        match &self.error {
            None => Ok(()),
            Some(e) => Err(e.clone()),
        }
    }

    #[cold]
    fn fail(&mut self) {
        self.valid = false;
        self.error = Some(malformed());
    }

    /// Moves to the first entry.
    pub fn seek_first(&mut self) {
        self.start_at(0);
    }

    /// Moves to the last entry.
    pub fn seek_last(&mut self) {
        if self.layout.restarts == 0 || self.error.is_some() {
            self.valid = false;
            return;
        }
        self.at = self.layout.entries_end;
        self.step_back();
    }

    /// Moves to the first entry at or after an internal key.
    pub fn seek(&mut self, internal_key: &[u8]) {
        if self.layout.restarts == 0 || self.error.is_some() {
            self.valid = false;
            return;
        }
        let (user_key, trailer) = split(internal_key);
        let restart = match self.block.seek_restart(&self.layout, &self.order, user_key, trailer) {
            Ok(restart) => restart,
            Err(_) => return self.fail(),
        };
        if self.order.is_bytewise() {
            return self.seek_bytewise(restart, user_key, trailer);
        }
        self.start_at(restart);
        while self.valid && self.is_before(user_key, trailer) {
            self.next();
        }
    }

    /// Finds the place without building the keys before it.
    fn seek_bytewise(&mut self, restart: usize, user_key: &[u8], trailer: u64) {
        let range = self.block.restart(&self.layout, restart)..self.layout.entries_end;
        match self.block.find_bytewise(range, user_key, trailer) {
            Ok(Some(stop)) => {
                self.key.clear();
                self.key.extend_from_slice(&user_key[..stop.entry.shared]);
                push_key(&mut self.key, 0, &stop.entry, &self.block.bytes);
                self.at = stop.at;
                self.value_at = stop.entry.value_at;
                self.end = stop.entry.end;
                self.valid = true;
            }
            Ok(None) => self.valid = false,
            Err(_) => self.fail(),
        }
    }

    /// [`BlockIter::seek`] for a key after the current entry: steps if the place is a few entries
    /// away.
    pub fn seek_ahead(&mut self, internal_key: &[u8]) {
        let (user_key, trailer) = split(internal_key);
        debug_assert!(!self.valid || self.is_before(user_key, trailer));
        for _ in 0..AHEAD_STEPS_MAX {
            self.next();
            if !self.valid || !self.is_before(user_key, trailer) {
                return;
            }
        }
        self.seek(internal_key);
    }

    /// Moves to the last entry before an internal key.
    pub fn seek_before(&mut self, internal_key: &[u8]) {
        self.seek(internal_key);
        if self.valid {
            self.step_back();
        } else if self.error.is_none() {
            self.seek_last();
        }
    }

    #[inline]
    fn is_before(&self, user_key: &[u8], trailer: u64) -> bool {
        let (key, found) = split(&self.key);
        self.order.compare(key, user_key).then(trailer.cmp(&found)).is_lt()
    }

    fn start_at(&mut self, index: usize) {
        if index >= self.layout.restarts || self.error.is_some() {
            self.valid = false;
            return;
        }
        self.end = self.block.restart(&self.layout, index);
        self.key.clear();
        self.key.extend_from_slice(&[0; TRAILER_BYTES]);
        self.valid = true;
        self.next();
    }

    /// Moves to the next entry. Does nothing when not valid.
    #[inline]
    pub fn next(&mut self) {
        if !self.valid {
            return;
        }
        let entries = &self.block.bytes[..self.layout.entries_end];
        if self.end >= entries.len() {
            self.valid = false;
            return;
        }
        let at = self.end;
        // The buffer holds the last entry's whole internal key.
        let user_bytes = self.key.len() - TRAILER_BYTES;
        match EntryLayout::read(entries, at) {
            Some(entry) if entry.shared <= user_bytes => {
                push_key(&mut self.key, 0, &entry, entries);
                self.at = at;
                self.value_at = entry.value_at;
                self.end = entry.end;
            }
            _ => self.fail(),
        }
    }

    /// Moves to the previous entry. Does nothing when not valid.
    pub fn prev(&mut self) {
        if self.valid {
            self.step_back();
        }
    }

    /// Moves to the entry that ends at `self.at`.
    fn step_back(&mut self) {
        if self.at == 0 {
            self.valid = false;
            return;
        }
        let cached = self.before.of == self.at && !self.before.entries.is_empty();
        if !cached && self.fill_before().is_none() {
            return self.fail();
        }
        let Some(entry) = self.before.entries.pop() else {
            return self.fail();
        };
        self.key.clear();
        self.key.extend_from_slice(&self.before.keys[entry.key_at..]);
        self.before.keys.truncate(entry.key_at);
        self.before.of = entry.at;
        self.at = entry.at;
        self.value_at = entry.value_at;
        self.end = entry.end;
        self.valid = true;
    }

    /// Decodes the entries of the restart interval that ends at, or holds, `self.at`, up to that
    /// offset.
    fn fill_before(&mut self) -> Option<()> {
        let before = &mut self.before;
        before.keys.clear();
        before.entries.clear();
        before.of = self.at;
        let entries = &self.block.bytes[..self.layout.entries_end];
        let restart = self.block.restart_of(&self.layout, self.at - 1);
        let mut at = self.block.restart(&self.layout, restart);
        let mut last_key_at = 0;
        let mut last_user_bytes = 0;
        while at < self.at {
            let entry = EntryLayout::read(entries, at)?;
            if entry.shared > last_user_bytes {
                return None;
            }
            let key_at = before.keys.len();
            before.keys.extend_from_within(last_key_at..last_key_at + entry.shared);
            push_key(&mut before.keys, key_at, &entry, entries);
            last_key_at = key_at;
            last_user_bytes = before.keys.len() - key_at - TRAILER_BYTES;
            before.entries.push(Cached { key_at, at, value_at: entry.value_at, end: entry.end });
            at = entry.end;
        }
        // The last entry must end at `self.at` exactly.
        (at == self.at).then_some(())
    }
}

/// Completes a key whose shared part is in `out[from..]`.
#[inline]
fn push_key(out: &mut Vec<u8>, from: usize, entry: &EntryLayout, entries: &[u8]) {
    out.truncate(from + entry.shared);
    out.extend_from_slice(entry.rest(entries));
    out.extend_from_slice(&entries[entry.trailer_at..entry.trailer_at + TRAILER_BYTES]);
}
