//! Walks the entries of one table, both ways.
//!
//! A positioning call runs in steps, so that the first reads of many tables can be submitted
//! together: `begin`, then `step` until it no longer asks for a read. `supply` answers each read.
//! Everything else is that loop with the reads done at once.
//!
//! Owns: its place in the index and the block, and the bytes that it read ahead. Never does: look
//! at sequence numbers or kinds.

use super::ReadOwner;
use super::readahead::{
    PendingRead, Planner, ReadExtent, Readahead, ReadaheadBuffer, stretch_range,
};
use crate::cache::{BlockKey, OpenTable, PartitionBlock, TableHandle};
use crate::gaps::Beyond;
use crate::gaps::edge::Edge;
use crate::slice::Slice;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use windrow_base::key;
use windrow_base::{Error, KeyOrder, Result};
use windrow_env::Buffer;
use windrow_format::block::{Block, BlockIter};
use windrow_format::table::{BlockHandle, BlockKind, IndexIter};

/// The place at which to position an iterator. Keys are internal keys.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// The first entry.
    First,
    /// The last entry.
    Last,
    /// The first entry at or after a key.
    AtOrAfter(&'a [u8]),
    /// The last entry before a key.
    Before(&'a [u8]),
}

impl Target<'_> {
    /// Whether the search goes towards larger keys if a block has no answer.
    #[inline]
    pub(crate) fn is_forward(self) -> bool {
        matches!(self, Target::First | Target::AtOrAfter(_))
    }

    /// The target in blocks after the one that the key itself leads to.
    #[inline]
    pub fn edge(self) -> Target<'static> {
        if self.is_forward() { Target::First } else { Target::Last }
    }
}

/// User keys beyond which an iterator need not read: it may stop anywhere past them. Saves the
/// block (or file) after the last one of a short scan.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    pub lower: Option<Edge>,
    pub upper: Option<Edge>,
}

impl Bounds {
    #[inline]
    pub(crate) fn is_above(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|upper| match order.compare(&upper.key, user_key) {
            Ordering::Less => true,
            Ordering::Equal => !upper.after,
            Ordering::Greater => false,
        })
    }

    #[inline]
    pub(crate) fn is_below(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|lower| match order.compare(user_key, &lower.key) {
            Ordering::Less => true,
            Ordering::Equal => lower.after,
            Ordering::Greater => false,
        })
    }

    /// Returns the edge at which a scan goes on behind a gap. `None`: there is none within the
    /// bounds.
    pub fn within(&self, order: &KeyOrder, is_forward: bool, beyond: Beyond) -> Option<Edge> {
        match beyond {
            Beyond::Nothing => None,
            Beyond::From(edge) if is_forward && self.is_above(order, &edge.key) => None,
            Beyond::From(edge) if !is_forward && self.is_below(order, &edge.key) => None,
            Beyond::From(edge) => Some(edge),
        }
    }
}

/// How a table is walked.
#[derive(Clone, Debug)]
pub struct TableIterOptions {
    /// Whether blocks that are read go into the block cache.
    pub fill_cache: bool,
    pub readahead: Readahead,
    pub bounds: Bounds,
    /// Whether its memory is in the caller's account: it goes past the block cache, and reads ahead
    /// however much readers hold.
    pub(crate) is_accounted: bool,
    /// Whether it takes blocks that are cached all the same, and notes which.
    pub(crate) notes_cached: bool,
}

impl TableIterOptions {
    /// For merges: as [`TableIterOptions::sequential`], but a cached block is taken from the cache,
    /// and noted. Its memory is the cache's.
    pub fn of_merge(bytes: u64) -> TableIterOptions {
        TableIterOptions { notes_cached: true, ..TableIterOptions::sequential(bytes) }
    }

    /// For those who read whole tables from the device: long reads past the cache. The caller
    /// charges `bytes` for each iterator that is open.
    pub fn sequential(bytes: u64) -> TableIterOptions {
        TableIterOptions {
            fill_cache: false,
            readahead: Readahead::Sequential { bytes },
            bounds: Bounds::default(),
            is_accounted: true,
            notes_cached: false,
        }
    }
}

/// Where the blocks that are read together end, at the latest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UpTo {
    /// With the wanted bytes.
    Wanted,
    /// Before the first one that is cached.
    FirstCached,
    /// With the last one that is not cached: to read those between costs less than another read.
    LastMissing,
}

/// An iterator over one table's point entries.
pub struct TableIter {
    owner: Arc<ReadOwner>,
    open: Arc<OpenTable>,
    options: Arc<TableIterOptions>,
    plan: Planner,
    /// Over data blocks, or over partitions of the index if there are any.
    top: IndexIter,
    is_partitioned: bool,
    /// Over the data blocks of the partition at `top`.
    part: Option<IndexIter>,
    /// Kept when the iterator leaves its block, for its buffers.
    block: Option<BlockIter>,
    /// Whether `block` is at an entry, and so the iterator.
    valid: bool,
    data_ahead: ReadaheadBuffer,
    index_ahead: ReadaheadBuffer,
    is_forward: bool,
    /// Whether the block at hand was reached by walking, not by the target's key.
    stepped: bool,
    /// Whether the block at hand was cached, if that is noted.
    is_cached: bool,
    /// The blocks that were, as far as they were not taken over.
    cached: Vec<BlockKey>,
}

impl TableIter {
    /// An iterator at no entry yet. Opens the table if it is not open.
    ///
    /// # Errors
    /// As [`crate::cache::TableCache::open`].
    pub fn new(
        handle: &Arc<TableHandle>,
        owner: Arc<ReadOwner>,
        options: impl Into<Arc<TableIterOptions>>,
    ) -> Result<TableIter> {
        let options = options.into();
        let open = owner.tables.open(handle)?.to_arc();
        Ok(TableIter {
            plan: Planner::new(options.readahead),
            top: open.table.index_iter(),
            is_partitioned: open.table.is_partitioned(),
            part: None,
            block: None,
            valid: false,
            data_ahead: ReadaheadBuffer::default(),
            index_ahead: ReadaheadBuffer::default(),
            is_forward: true,
            stepped: false,
            is_cached: false,
            cached: Vec::new(),
            owner,
            open,
            options,
        })
    }

    /// For scans that presumably take `bytes` from the table.
    pub(crate) fn expecting(mut self, bytes: u64) -> TableIter {
        self.plan = self.plan.expecting(bytes);
        self
    }

    /// Starts a positioning; `step` goes on with it.
    pub fn begin(&mut self, target: Target<'_>) {
        self.plan.seek();
        self.valid = false;
        self.part = None;
        self.is_forward = target.is_forward();
        self.stepped = false;
        position_index(&mut self.top, target);
    }

    /// Goes on with a positioning. `None`: it is done, and the iterator is at an entry or past the
    /// end; else a read that `supply` must be given.
    ///
    /// # Errors
    /// `Corruption` naming file and offset of a damaged block.
    pub fn step(&mut self, target: Target<'_>) -> Result<Option<PendingRead>> {
        loop {
            let target = if self.stepped { target.edge() } else { target };
            if self.is_partitioned && self.part.is_none() {
                let Some(partition) = self.top.partition() else {
                    return Ok(None);
                };
                let index = PartitionBlock::index(&partition);
                let Some(block) = self.index_at_hand(index)? else {
                    return self.pending_index(index.handle).map(Some);
                };
                let mut part = IndexIter::new(block, self.owner.order.clone())?;
                position_index(&mut part, target);
                self.part = Some(part);
            }
            let index = self.part.as_ref().unwrap_or(&self.top);
            if index.valid() {
                let handle = index.handle();
                let Some(block) = self.block_at_hand(handle)? else {
                    return self.pending(handle).map(Some);
                };
                if self.enter(block, target)? {
                    return Ok(None);
                }
            }
            if !self.advance_index() {
                return Ok(None);
            }
        }
    }

    /// Moves to the first entry at or after `internal`, which is after the current one, if that is
    /// in the block at hand: neither the index nor the cache is asked. `false`: it may be
    /// elsewhere, `begin` finds it.
    ///
    /// # Errors
    /// `Corruption` naming file and offset of a damaged block.
    pub(crate) fn seek_in_block(&mut self, internal: &[u8]) -> Result<bool> {
        let Some(block) = self.block.as_mut().filter(|_| self.valid) else {
            return Ok(false);
        };
        // The separator is before all keys of the next block.
        let index = self.part.as_mut().unwrap_or(&mut self.top);
        if key::compare_internal(&self.owner.order, index.last_key(), internal).is_lt() {
            return Ok(false);
        }
        self.plan.seek();
        self.is_forward = true;
        block.seek_ahead(internal);
        self.valid = block.valid();
        match block.status() {
            Ok(()) => Ok(self.valid),
            Err(error) => Err(self.name(error)),
        }
    }

    /// Supplies the bytes of the read that `step` asked for.
    ///
    /// # Errors
    /// The error of the read.
    pub(crate) fn supply(&mut self, read: PendingRead) -> Result<()> {
        let ahead = read.finish()?;
        if self.is_partitioned && self.part.is_none() {
            self.index_ahead = ahead;
        } else {
            self.data_ahead = ahead;
        }
        Ok(())
    }

    fn run(&mut self, target: Target<'_>) -> Result<()> {
        while let Some(mut read) = self.step(target)? {
            read.run();
            self.supply(read)?;
        }
        Ok(())
    }

    /// Positions in a block. Returns whether there is an entry.
    fn enter(&mut self, block: Arc<Block>, target: Target<'_>) -> Result<bool> {
        let iter = match &mut self.block {
            Some(iter) => {
                iter.reset(block);
                iter
            }
            none => none.insert(BlockIter::new(block, self.owner.order.clone())),
        };
        match target {
            Target::First => iter.seek_first(),
            Target::Last => iter.seek_last(),
            Target::AtOrAfter(key) => iter.seek(key),
            Target::Before(key) => iter.seek_before(key),
        }
        self.valid = iter.valid();
        match iter.status() {
            Ok(()) => Ok(self.valid),
            Err(error) => Err(self.name(error)),
        }
    }

    /// Names file and block in an error about a block's entries.
    fn name(&self, error: Error) -> Error {
        let index = self.part.as_ref().unwrap_or(&self.top);
        let error = error.with_file(self.open.file.path().display().to_string());
        if index.valid() { error.with_offset(index.handle().offset) } else { error }
    }

    /// Returns the index of a partition, if no device read is needed for it. Merges keep none.
    fn index_at_hand(&mut self, index: PartitionBlock) -> Result<Option<Arc<Block>>> {
        if let Some(guard) = self.open.partitions.get(index) {
            return Ok(Some(Arc::clone(guard.block())));
        }
        let Some(raw) = self.index_ahead.take(index.handle, self.is_forward) else {
            return Ok(None);
        };
        let block = self.open.decode_block(raw, index.handle, BlockKind::Index)?;
        Ok(Some(match self.options.is_accounted {
            true => Arc::new(block),
            false => self.owner.tables.keep(&self.open, index, block),
        }))
    }

    #[cold]
    fn pending_index(&mut self, handle: BlockHandle) -> Result<PendingRead> {
        if !self.options.is_accounted {
            self.owner.counters.partition_read(u64::from(handle.bytes));
        }
        PendingRead::new(&self.open, handle.offset..handle.end(), self.index_ahead.take_buffer())
    }

    /// Returns the data block, if no device read is needed for it.
    fn block_at_hand(&mut self, handle: BlockHandle) -> Result<Option<Arc<Block>>> {
        let is_cached = !self.options.is_accounted;
        // Blocks that were read ahead were not cached a moment ago.
        if is_cached
            && !self.data_ahead.has(handle)
            && let Some(block) = self.owner.blocks.get(self.open.cached_as, handle.offset)
        {
            self.owner.counters.cache_hit();
            return Ok(Some(block));
        }
        self.is_cached = false;
        if self.options.notes_cached {
            let key = BlockKey { uid: self.open.cached_as, offset: handle.offset };
            if let Some(block) = self.owner.blocks.peek(key) {
                self.is_cached = true;
                self.cached.push(key);
                return Ok(Some(block));
            }
        }
        // A merge uses its buffer again, and pays for it from its own share.
        let raw = match is_cached {
            true => self.data_ahead.take(handle, self.is_forward),
            false => self.data_ahead.copy(handle),
        };
        let Some(raw) = raw else {
            return Ok(None);
        };
        let block = self.open.decode_block(raw, handle, BlockKind::Data)?;
        if !is_cached {
            return Ok(Some(Arc::new(block)));
        }
        let block = self.owner.blocks.admit(block);
        if self.options.fill_cache {
            self.owner.blocks.insert(self.open.cached_as, handle.offset, Arc::clone(&block));
        }
        Ok(Some(block))
    }

    #[cold]
    fn pending(&mut self, handle: BlockHandle) -> Result<PendingRead> {
        if self.options.is_accounted {
            let range = self.range_to_read(handle);
            return PendingRead::new(&self.open, range, self.data_ahead.take_buffer());
        }
        self.data_ahead = ReadaheadBuffer::default();
        let mut read = self.pending_of_reader(handle)?;
        self.owner.counters.scan_block_read(read.bytes() as u64);
        read.charge_to(&self.owner.blocks);
        Ok(read)
    }

    /// As much as readers may read ahead now. Forward, each block has a buffer of its own, which the
    /// cache can take: a stretch's bytes would all be copied.
    fn pending_of_reader(&mut self, handle: BlockHandle) -> Result<PendingRead> {
        let Some(ahead_max_bytes) = self.owner.blocks.ahead_max_bytes() else {
            return PendingRead::of_blocks(&self.open, handle.offset, &[handle.bytes]);
        };
        let forward = self.is_forward;
        let blocks = match self.plan.extent(handle, self.stepped, forward, ahead_max_bytes) {
            ReadExtent::Stretch { bytes } if forward => {
                self.blocks_ahead(handle, bytes, bytes, UpTo::LastMissing)
            }
            ReadExtent::Stretch { bytes } => {
                let range = stretch_range(handle, bytes, forward, self.open.file_bytes);
                return PendingRead::new(&self.open, range, Buffer::default());
            }
            ReadExtent::Blocks { wanted_bytes, max_bytes } => {
                self.blocks_ahead(handle, wanted_bytes, max_bytes, UpTo::FirstCached)
            }
        };
        PendingRead::of_blocks(&self.open, handle.offset, &blocks)
    }

    /// Returns the range to read for the block at hand where all that is planned may be read.
    fn range_to_read(&mut self, handle: BlockHandle) -> Range<u64> {
        let forward = self.is_forward;
        match self.plan.extent(handle, self.stepped, forward, u64::MAX) {
            ReadExtent::Stretch { bytes } => {
                stretch_range(handle, bytes, forward, self.open.file_bytes)
            }
            ReadExtent::Blocks { wanted_bytes, max_bytes } => {
                let blocks = self.blocks_ahead(handle, wanted_bytes, max_bytes, UpTo::Wanted);
                let bytes: u64 = blocks.iter().map(|bytes| u64::from(*bytes)).sum();
                handle.offset..handle.offset.saturating_add(bytes)
            }
        }
    }

    /// Returns the sizes of the blocks that hold `wanted_bytes` from the one at hand on, and at most
    /// `max_bytes`, as far as they are in this partition one after the other.
    fn blocks_ahead(
        &mut self,
        handle: BlockHandle,
        wanted_bytes: u64,
        max_bytes: u64,
        up_to: UpTo,
    ) -> Vec<u32> {
        let index = self.part.as_mut().unwrap_or(&mut self.top);
        let mut blocks = vec![handle.bytes];
        let (mut end, mut missing, mut passed) = (handle.end(), 1, 0);
        while end - handle.offset < wanted_bytes {
            index.next();
            passed += 1;
            if !index.valid() {
                index.seek_last();
                passed -= 1;
                break;
            }
            let next = index.handle();
            if next.offset != end || next.end() - handle.offset > max_bytes {
                break;
            }
            let is_cached =
                up_to != UpTo::Wanted && self.owner.blocks.holds(self.open.cached_as, next.offset);
            if is_cached && up_to == UpTo::FirstCached {
                break;
            }
            end = next.end();
            blocks.push(next.bytes);
            missing = if is_cached { missing } else { blocks.len() };
        }
        for _ in 0..passed {
            index.prev();
        }
        blocks.truncate(missing);
        blocks
    }

    /// Moves to the neighbouring data block (or partition); `false` at the end or if all later ones
    /// are out of bounds.
    fn advance_index(&mut self) -> bool {
        self.stepped = true;
        let index = self.part.as_mut().unwrap_or(&mut self.top);
        if index.valid() {
            if self.is_forward {
                // The separator is at or after everything in its block, and before the next.
                let (last, _) = key::split(index.last_key());
                if self.options.bounds.is_above(&self.owner.order, last) {
                    return false;
                }
                index.next();
            } else {
                index.prev();
                if index.valid() {
                    let (last, _) = key::split(index.last_key());
                    if self.options.bounds.is_below(&self.owner.order, last) {
                        return false;
                    }
                }
            }
            if index.valid() {
                return true;
            }
        }
        if self.part.take().is_none() {
            return false;
        }
        if self.is_forward {
            self.top.next()
        } else {
            self.top.prev()
        }
        self.top.valid()
    }

    #[cold]
    fn leave_block(&mut self, forward: bool) -> Result<()> {
        self.valid = false;
        if let Some(block) = &self.block {
            block.status().map_err(|error| self.name(error))?;
        }
        self.is_forward = forward;
        if !self.advance_index() {
            return Ok(());
        }
        self.run(if forward { Target::First } else { Target::Last })
    }

    /// Moves to the next entry. Only while valid.
    ///
    /// # Errors
    /// As [`TableIter::step`]; `Io`.
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        if let Some(block) = &mut self.block {
            block.next();
            if block.valid() {
                return Ok(());
            }
        }
        self.leave_block(true)
    }

    /// Moves to the entry before. Only while valid.
    ///
    /// # Errors
    /// As [`TableIter::step`]; `Io`.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if let Some(block) = &mut self.block {
            block.prev();
            if block.valid() {
                return Ok(());
            }
        }
        self.leave_block(false)
    }

    /// Whether it is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Whether the entry's block was cached, for iterators that note that. Only while valid.
    #[inline]
    pub(crate) fn is_cached(&self) -> bool {
        self.is_cached
    }

    /// Hands over the names of the cached blocks that it met.
    pub(crate) fn take_cached(&mut self) -> Vec<BlockKey> {
        std::mem::take(&mut self.cached)
    }

    #[inline]
    fn at(&self) -> &BlockIter {
        self.block.as_ref().expect("the iterator is at an entry")
    }

    /// The internal key of the entry. Only while valid, as `value` and `value_slice`.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.at().key()
    }

    /// The stored value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.at().value()
    }

    /// The stored value, pinning its block.
    #[inline]
    pub fn value_slice(&self) -> Slice {
        let at = self.at();
        Slice::pinned(at.block(), at.value_range())
    }
}

/// Positions an index: at the block (or partition) in which the target's search begins.
fn position_index(index: &mut IndexIter, target: Target<'_>) {
    match target {
        Target::First => index.seek_first(),
        Target::Last => index.seek_last(),
        Target::AtOrAfter(key) => index.seek(key),
        Target::Before(key) => {
            index.seek(key);
            if !index.valid() {
                index.seek_last();
            }
        }
    }
}
