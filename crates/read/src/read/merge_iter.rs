//! Merges sorted sources into one sequence of all entries, both ways.
//!
//! Order: user key ascending, then trailer descending (true sequence order), then source, newest
//! first. Scans filter it for visibility; merges of tables take every entry.
//!
//! The winner is outside of the heap: after a step it is compared with the heap's top alone, and
//! stays while it is smaller. An element of the heap carries the first 16 bytes of its user key and
//! its trailer, so that under the bytewise order keys of up to 16 bytes are compared without
//! touching their source. (Eight bytes, the usual choice, do not tell apart keys that share a
//! table's or a tenant's prefix.)
//!
//! Owns: its sources. Never does: skip an entry unless `seek_source` says so. An error is sticky:
//! from then on every call returns it, and nothing is valid.

use super::level_iter::LevelIter;
use super::readahead::{self, PendingRead};
use super::table_iter::{TableIter, Target};
use crate::cache::BlockKey;
use crate::memtable::MemCursor;
use crate::slice::Slice;
use std::cmp::Ordering;
use std::sync::Arc;
use windrow_base::key::{self, TRAILER_BYTES};
use windrow_base::{Error, KeyOrder, Result};
use windrow_env::FileSystem;

/// A sequence to merge.
pub enum MergeSource {
    /// A memtable; `None` if it has no entries. It keeps its place among the sources, by which
    /// range tombstones know which entries they hide.
    Mem(Option<MemCursor>),
    /// A sorted run of tables, or one table.
    Level(LevelIter),
}

/// A memtable's cursor with the entry's internal key in one piece.
struct MemSource {
    cursor: MemCursor,
    key: Vec<u8>,
}

impl MemSource {
    fn seek(&mut self, target: Target<'_>) {
        match target {
            Target::First => self.cursor.seek_first(),
            Target::Last => self.cursor.seek_last(),
            Target::AtOrAfter(internal) => {
                let (user_key, trailer) = key::split(internal);
                self.cursor.seek(user_key, trailer);
            }
            Target::Before(internal) => {
                let (user_key, trailer) = key::split(internal);
                self.cursor.seek_before(user_key, trailer);
            }
        }
        self.take_key();
    }

    /// `seek` for a key after the current entry's: steps as long as the place is a few entries
    /// away.
    fn seek_ahead(&mut self, order: &KeyOrder, internal: &[u8]) {
        for _ in 0..AHEAD_STEPS_MAX {
            self.cursor.next();
            self.take_key();
            if !self.cursor.valid() || key::compare_internal(order, &self.key, internal).is_ge() {
                return;
            }
        }
        self.seek(Target::AtOrAfter(internal));
    }

    #[inline]
    fn take_key(&mut self) {
        if self.cursor.valid() {
            self.key.clear();
            key::push_internal(&mut self.key, self.cursor.key(), self.cursor.trailer());
        }
    }
}

enum MergeIterInput {
    Mem(MemSource),
    Level(LevelIter),
    Nothing,
}

impl From<MergeSource> for MergeIterInput {
    fn from(source: MergeSource) -> MergeIterInput {
        match source {
            MergeSource::Mem(Some(cursor)) => {
                MergeIterInput::Mem(MemSource { cursor, key: Vec::new() })
            }
            MergeSource::Mem(None) => MergeIterInput::Nothing,
            MergeSource::Level(iter) => MergeIterInput::Level(iter),
        }
    }
}

impl MergeIterInput {
    fn begin(&mut self, target: Target<'_>) -> Result<()> {
        match self {
            MergeIterInput::Mem(source) => source.seek(target),
            MergeIterInput::Level(iter) => iter.begin(target)?,
            MergeIterInput::Nothing => {}
        }
        Ok(())
    }

    /// Moves to the first entry at or after `internal` if that is cheap, from
    /// the first entry after some key before it. `false`: `begin` finds it.
    fn seek_ahead(&mut self, order: &KeyOrder, internal: &[u8]) -> Result<bool> {
        if !self.valid() || key::compare_internal(order, self.key(), internal).is_ge() {
            return Ok(true);
        }
        match self {
            MergeIterInput::Mem(source) => source.seek_ahead(order, internal),
            MergeIterInput::Level(iter) => return iter.seek_in_block(internal),
            MergeIterInput::Nothing => {}
        }
        Ok(true)
    }

    fn step(&mut self, target: Target<'_>) -> Result<Option<PendingRead>> {
        match self {
            MergeIterInput::Mem(_) | MergeIterInput::Nothing => Ok(None),
            MergeIterInput::Level(iter) => iter.step(target),
        }
    }

    fn supply(&mut self, read: PendingRead) -> Result<()> {
        match self {
            MergeIterInput::Mem(_) | MergeIterInput::Nothing => Ok(()),
            MergeIterInput::Level(iter) => iter.supply(read),
        }
    }

    fn seek(&mut self, target: Target<'_>) -> Result<()> {
        match self {
            MergeIterInput::Mem(source) => {
                source.seek(target);
                Ok(())
            }
            MergeIterInput::Level(iter) => iter.seek(target),
            MergeIterInput::Nothing => Ok(()),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match self {
            MergeIterInput::Mem(source) => {
                source.cursor.next();
                source.take_key();
                Ok(())
            }
            MergeIterInput::Level(iter) => iter.next(),
            MergeIterInput::Nothing => Ok(()),
        }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        match self {
            MergeIterInput::Mem(source) => {
                source.cursor.prev();
                source.take_key();
                Ok(())
            }
            MergeIterInput::Level(iter) => iter.prev(),
            MergeIterInput::Nothing => Ok(()),
        }
    }

    #[inline]
    fn valid(&self) -> bool {
        match self {
            MergeIterInput::Mem(source) => source.cursor.valid(),
            MergeIterInput::Level(iter) => iter.valid(),
            MergeIterInput::Nothing => false,
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            MergeIterInput::Mem(source) => &source.key,
            MergeIterInput::Level(iter) => iter.key(),
            MergeIterInput::Nothing => &[],
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self {
            MergeIterInput::Mem(source) => source.cursor.value(),
            MergeIterInput::Level(iter) => iter.value(),
            MergeIterInput::Nothing => &[],
        }
    }

    #[inline]
    fn value_slice(&self) -> Slice {
        match self {
            MergeIterInput::Mem(source) => Slice::copy_from(source.cursor.value()),
            MergeIterInput::Level(iter) => iter.value_slice(),
            MergeIterInput::Nothing => Slice::default(),
        }
    }
}

/// Entries of a memtable that a seek ahead steps over before it searches: a
/// step is one or two cache misses, a search some fifteen.
const AHEAD_STEPS_MAX: u32 = 4;

/// Seeks that search at once after one that found no source near its target: the
/// attempt costs some 50 ns, which seeks that go far need not pay each time.
const AHEAD_PAUSE: u8 = 7;

/// Memory of a source's key buffers, for short keys.
const KEY_BYTES_USUAL: usize = 64;

/// Bytes of the user key that an element of the heap carries.
const PREFIX_BYTES: usize = 16;

/// The comparable part of the entry that a source is at.
#[derive(Clone, Copy)]
struct Head {
    /// The user key's first bytes, big endian, zeros after its end.
    prefix: u128,
    trailer: u64,
    user_key_bytes: u32,
    source: u32,
}

impl Head {
    #[inline]
    fn new(internal: &[u8], source: usize) -> Head {
        let (user_key, trailer) = key::split(internal);
        let prefix = match internal.first_chunk::<PREFIX_BYTES>() {
            // Includes a part of the trailer if the user key is short: masked off.
            Some(head) => {
                let unused_bits = 8 * PREFIX_BYTES.saturating_sub(user_key.len()) as u32;
                u128::from_be_bytes(*head) >> unused_bits << unused_bits
            }
            None => {
                let mut head = [0; PREFIX_BYTES];
                head[..user_key.len()].copy_from_slice(user_key);
                u128::from_be_bytes(head)
            }
        };
        Head { prefix, trailer, user_key_bytes: user_key.len() as u32, source: source as u32 }
    }
}

/// Merges its sources. See the module's page.
pub struct MergeIter {
    inputs: Vec<MergeIterInput>,
    /// The source that is at the current entry.
    winner: Option<Head>,
    /// The other sources that are at an entry; a binary heap, nearest on top.
    heap: Vec<Head>,
    order: KeyOrder,
    is_bytewise: bool,
    is_forward: bool,
    /// The number of seeks to come for which no source is tried near its place.
    ahead_pause: u8,
    fs: Arc<dyn FileSystem>,
    error: Option<Error>,
    /// Holds the current internal key while the sources turn around.
    scratch: Vec<u8>,
}

impl MergeIter {
    /// Merges `sources`, given newest first. At no entry yet.
    pub fn new(sources: Vec<MergeSource>, order: KeyOrder, fs: Arc<dyn FileSystem>) -> MergeIter {
        MergeIter {
            heap: Vec::with_capacity(sources.len()),
            inputs: sources.into_iter().map(MergeIterInput::from).collect(),
            winner: None,
            is_bytewise: order.is_bytewise(),
            order,
            is_forward: true,
            ahead_pause: 0,
            fs,
            error: None,
            scratch: Vec::new(),
        }
    }

    /// Memory that it takes once it is at an entry, in bytes; without blocks, and keys longer than
    /// usual.
    pub fn memory_bytes(&self) -> usize {
        let source = size_of::<MergeIterInput>() + size_of::<Head>() + size_of::<TableIter>();
        self.inputs.capacity() * (source + KEY_BYTES_USUAL)
    }

    fn fail<T>(&mut self, error: Error) -> Result<T> {
        self.winner = None;
        self.heap.clear();
        self.error = Some(error.clone());
        Err(error)
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Whether `a` comes before `b` in the direction at hand.
    #[inline]
    fn is_nearer(&self, a: &Head, b: &Head) -> bool {
        (self.compare(a, b) == Ordering::Less) == self.is_forward
    }

    #[inline]
    fn compare(&self, a: &Head, b: &Head) -> Ordering {
        if a.prefix != b.prefix {
            return a.prefix.cmp(&b.prefix);
        }
        let short = PREFIX_BYTES as u32;
        let by_key = if self.is_bytewise && a.user_key_bytes <= short && b.user_key_bytes <= short {
            a.user_key_bytes.cmp(&b.user_key_bytes)
        } else {
            self.compare_user_keys(a, b)
        };
        by_key.then(b.trailer.cmp(&a.trailer)).then(a.source.cmp(&b.source))
    }

    fn compare_user_keys(&self, a: &Head, b: &Head) -> Ordering {
        let (a, _) = key::split(self.inputs[a.source as usize].key());
        let (b, _) = key::split(self.inputs[b.source as usize].key());
        self.order.compare(a, b)
    }

    #[inline]
    fn head(&self, source: usize) -> Head {
        let mut head = Head::new(self.inputs[source].key(), source);
        if !self.is_bytewise {
            head.prefix = 0;
        }
        head
    }

    /// Puts `head` at the top of the heap and lets it sink.
    fn sift_down(&mut self, mut at: usize, head: Head) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len()
                && self.is_nearer(&self.heap[child + 1], &self.heap[child])
            {
                child += 1;
            }
            if !self.is_nearer(&self.heap[child], &head) {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = head;
    }

    /// Finds the winner from the places of the sources.
    fn build_all(&mut self) {
        self.build_heap(None);
        self.winner = self.pop();
    }

    /// Builds the heap of all sources at an entry except `without`.
    fn build_heap(&mut self, without: Option<usize>) {
        self.heap.clear();
        for source in 0..self.inputs.len() {
            if Some(source) != without && self.inputs[source].valid() {
                let head = self.head(source);
                self.heap.push(head);
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            let head = self.heap[at];
            self.sift_down(at, head);
        }
    }

    fn pop(&mut self) -> Option<Head> {
        let last = self.heap.pop()?;
        if self.heap.is_empty() {
            return Some(last);
        }
        let top = self.heap[0];
        self.sift_down(0, last);
        Some(top)
    }

    fn position(&mut self, target: Target<'_>) -> Result<()> {
        self.status()?;
        let ahead = self.key_ahead(target);
        self.is_forward = target.is_forward();
        self.winner = None;
        match self.position_inputs(target, ahead) {
            Ok(()) => {
                self.build_all();
                Ok(())
            }
            Err(error) => self.fail(error),
        }
    }

    /// Returns the target's key, if it is after the current entry and the merge goes forward. Every
    /// source then is at its first entry after the current one, or has none: those at or after the
    /// target are where they belong, and the others are before it. (An entry equal to the current
    /// one's may have been passed in another source, so the key must be greater.)
    fn key_ahead<'a>(&mut self, target: Target<'a>) -> Option<&'a [u8]> {
        let Target::AtOrAfter(internal) = target else { return None };
        if self.ahead_pause > 0 {
            self.ahead_pause -= 1;
            return None;
        }
        let is_ahead = self.is_forward
            && self.winner.is_some()
            && key::compare_internal(&self.order, self.key(), internal).is_lt();
        is_ahead.then_some(internal)
    }

    /// Positions every source, and reads the blocks that they wait for at the same time: usually
    /// one round for all. `ahead` as of [`MergeIter::key_ahead`].
    fn position_inputs(&mut self, target: Target<'_>, ahead: Option<&[u8]>) -> Result<()> {
        let mut waiting: Vec<(usize, PendingRead)> = Vec::new();
        let mut is_near = ahead.is_none();
        for (source, input) in self.inputs.iter_mut().enumerate() {
            if let Some(internal) = ahead
                && input.seek_ahead(&self.order, internal)?
            {
                is_near |= input.valid();
                continue;
            }
            input.begin(target)?;
            if let Some(read) = input.step(target)? {
                waiting.push((source, read));
            }
        }
        if !is_near {
            self.ahead_pause = AHEAD_PAUSE;
        }
        while !waiting.is_empty() {
            readahead::read_together(&*self.fs, waiting.iter_mut().map(|(_, read)| read));
            let mut still_waiting = Vec::new();
            for (source, read) in waiting {
                let input = &mut self.inputs[source];
                input.supply(read)?;
                if let Some(read) = input.step(target)? {
                    still_waiting.push((source, read));
                }
            }
            waiting = still_waiting;
        }
        Ok(())
    }

    /// Whether the entry at hand comes from a cached block, for sources that note that.
    #[inline]
    pub fn is_cached(&self) -> bool {
        let input = self.winner.map(|winner| &self.inputs[winner.source as usize]);
        matches!(input, Some(MergeIterInput::Level(iter)) if iter.is_cached())
    }

    /// Hands over the names of the cached blocks that its sources met.
    pub fn take_cached(&mut self) -> Vec<BlockKey> {
        let of = |input: &mut MergeIterInput| match input {
            MergeIterInput::Level(iter) => iter.take_cached(),
            MergeIterInput::Mem(_) | MergeIterInput::Nothing => Vec::new(),
        };
        self.inputs.iter_mut().flat_map(of).collect()
    }

    /// Moves to the first entry of all.
    ///
    /// # Errors
    /// Any read's: `Corruption` naming file and offset, `Io`. Sticky, here and below.
    pub fn seek_first(&mut self) -> Result<()> {
        self.position(Target::First)
    }

    /// Moves to the last entry of all.
    ///
    /// # Errors
    /// As [`MergeIter::seek_first`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.position(Target::Last)
    }

    /// Moves to the first entry at or after an internal key.
    ///
    /// # Errors
    /// As [`MergeIter::seek_first`].
    pub fn seek(&mut self, internal: &[u8]) -> Result<()> {
        self.position(Target::AtOrAfter(internal))
    }

    /// Moves to the last entry before an internal key.
    ///
    /// # Errors
    /// As [`MergeIter::seek_first`].
    pub fn seek_before(&mut self, internal: &[u8]) -> Result<()> {
        self.position(Target::Before(internal))
    }

    /// Moves to the next entry. Does nothing if it is not valid.
    ///
    /// # Errors
    /// As [`MergeIter::seek_first`].
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        let Some(winner) = self.winner else {
            return self.status();
        };
        if !self.is_forward {
            self.turn(winner, true)?;
        }
        if let Err(error) = self.inputs[winner.source as usize].next() {
            return self.fail(error);
        }
        self.after_step(winner.source as usize);
        Ok(())
    }

    /// Moves to the entry before. Does nothing if it is not valid.
    ///
    /// # Errors
    /// As [`MergeIter::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        let Some(winner) = self.winner else {
            return self.status();
        };
        if self.is_forward {
            self.turn(winner, false)?;
        }
        if let Err(error) = self.inputs[winner.source as usize].prev() {
            return self.fail(error);
        }
        self.after_step(winner.source as usize);
        Ok(())
    }

    /// Finds the winner after its source has moved.
    #[inline]
    fn after_step(&mut self, source: usize) {
        if !self.inputs[source].valid() {
            self.winner = self.pop();
            return;
        }
        let head = self.head(source);
        match self.heap.first() {
            Some(&top) if self.is_nearer(&top, &head) => {
                self.sift_down(0, head);
                self.winner = Some(top);
            }
            _ => self.winner = Some(head),
        }
    }

    /// Turns around at the current entry: every other source goes to its
    /// entry on the other side of it.
    #[cold]
    fn turn(&mut self, winner: Head, forward: bool) -> Result<()> {
        let mut current = std::mem::take(&mut self.scratch);
        current.clear();
        current.extend_from_slice(self.key());
        let turned = (0..self.inputs.len())
            .filter(|&source| source != winner.source as usize)
            .try_for_each(|source| self.turn_input(source, &winner, &current, forward));
        self.scratch = current;
        if let Err(error) = turned {
            return self.fail(error);
        }
        self.is_forward = forward;
        self.build_heap(Some(winner.source as usize));
        Ok(())
    }

    fn turn_input(
        &mut self,
        source: usize,
        winner: &Head,
        current: &[u8],
        forward: bool,
    ) -> Result<()> {
        let is_newer_source = source < winner.source as usize;
        let input = &mut self.inputs[source];
        if input.valid() {
            if forward { input.next()? } else { input.prev()? }
        }
        let turned = input.valid()
            && match key::compare_internal(&self.order, input.key(), current) {
                // An entry in two sources: the newer source's comes first.
                Ordering::Equal => is_newer_source != forward,
                by_key => (by_key == Ordering::Greater) == forward,
            };
        if turned {
            return Ok(());
        }
        // It had run out, or `seek_source` had moved it ahead by more than one step.
        input.seek(if forward { Target::AtOrAfter(current) } else { Target::Before(current) })
    }

    /// Moves one source on to the first entry at or after `internal` (going backward: to the last
    /// entry before it). Skips the entries between.
    ///
    /// # Errors
    /// As [`MergeIter::seek_first`].
    pub(crate) fn seek_source(&mut self, source: usize, internal: &[u8]) -> Result<()> {
        self.status()?;
        let target = match self.is_forward {
            true => Target::AtOrAfter(internal),
            false => Target::Before(internal),
        };
        if let Err(error) = self.inputs[source].seek(target) {
            return self.fail(error);
        }
        match self.winner {
            Some(winner) if winner.source as usize == source => self.after_step(source),
            _ => {
                self.build_all();
            }
        }
        Ok(())
    }

    /// Whether it is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.winner.is_some()
    }

    #[inline]
    fn at(&self) -> &MergeIterInput {
        &self.inputs[self.source_index()]
    }

    /// The source of the entry. Only while valid, as all below.
    #[inline]
    pub fn source_index(&self) -> usize {
        self.winner.as_ref().expect("the iterator is at an entry").source as usize
    }

    /// The trailer of the entry.
    #[inline]
    pub fn trailer(&self) -> u64 {
        self.winner.as_ref().expect("the iterator is at an entry").trailer
    }

    /// The internal key of the entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.at().key()
    }

    /// The user key of the entry.
    #[inline]
    pub fn user_key(&self) -> &[u8] {
        let internal = self.key();
        &internal[..internal.len() - TRAILER_BYTES]
    }

    /// The stored value of the entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.at().value()
    }

    /// The stored value of the entry, pinning its block (copied if it is in a memtable).
    #[inline]
    pub fn value_slice(&self) -> Slice {
        self.at().value_slice()
    }
}

#[cfg(test)]
mod tests {
    use crate::read::testing::{HistoryOp, TableWorld};
    use windrow_base::key::Kind;
    use windrow_base::{KeyOrder, SeqNo};

    /// A seek just ahead steps: neither the index nor the cache is asked for the block at hand.
    #[test]
    fn a_seek_just_ahead_stays_in_its_block() {
        let mut world = TableWorld::new(4, KeyOrder::Bytewise);
        world.block_bytes = 4096;
        let ops = |seq: SeqNo, from: usize| -> Vec<HistoryOp> {
            let keys = (from..2000).step_by(2).map(|i| format!("key{i:06}"));
            keys.map(|key| HistoryOp::new(seq, Kind::Put, &key, "value")).collect()
        };
        let (bottom, top) = (world.table(&ops(1, 0)), world.table(&ops(2, 1)));
        let view = world.view(&[], vec![(vec![], vec![top]), (vec![bottom], vec![])]);
        let mut scan = world.scan(&view, 100, 0);
        assert!(scan.seek(b"key000000").unwrap());
        let asked = || {
            let counters = world.owner.counters.snapshot();
            counters.cache_hits + counters.cache_misses
        };
        let before = asked();
        for i in (0..2000).step_by(3) {
            let key = format!("key{i:06}");
            assert!(scan.seek(key.as_bytes()).unwrap());
            assert_eq!(scan.key(), key.as_bytes());
        }
        // For each block that it comes to and a few seeks after it, not for each of 667 in two
        // tables.
        let asked = asked() - before;
        assert!(asked < 200, "the cache was asked for {asked} blocks");
    }
}
