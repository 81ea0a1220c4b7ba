//! The point look-up.
//!
//! 1. Memtable, frozen memtables, then the tree's runs, newest first. In each:
//! 2. the newest range tombstone over the key hides entries older than it, there and in every place
//!    below;
//! 3. a put, delete or expired entry ends the search, a merge operand does not.
//! 4. A table is searched only if its filter says maybe; the filter never speaks for range
//!    tombstones (I8).
//!
//! On the cached path nothing is allocated (except for merges) and no lock is taken beyond the
//! block cache's shard. The key is hashed once.
//!
//! Owns: the search order and the end of a search. Never does: decide which blocks are cached.

use super::access::{Answer, is_sampled};
use super::cost::CountedRead;
use super::partition::PartitionRead;
use super::view::{ReadView, VersionFile};
use super::{EXPIRY_BYTES, ReadOwner, is_expired, merge_operands, split_expiry};
use crate::cache::file_record::Query;
use crate::cache::{OpenGuard, OpenTable, PartitionBlock};
use crate::memtable::Memtable;
use crate::slice::Slice;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use windrow_base::key::{Kind, seek_trailer, trailer_kind, trailer_seq};
use windrow_base::{Error, Result, SeqNo, debug_invariant};
use windrow_format::block::{Block, BlockGet};
use windrow_format::filter;
use windrow_format::table::{BlockHandle, FilterKind, Locate, decode_partition};
use windrow_skiplist::Entry;

/// Returns the newest value of `key` that a read of `view` at `seq` sees. `now_ms` (ms since 1970)
/// is asked only for an expiring entry.
///
/// # Errors
/// `Corruption` naming file and offset of a damaged block, `Io`; merge
/// operands without their operator are `InvalidArgument`.
pub fn get(
    owner: &Arc<ReadOwner>,
    view: &ReadView,
    key: &[u8],
    seq: SeqNo,
    now_ms: impl Fn() -> u64,
) -> Result<Option<Slice>> {
    if is_sampled(owner.counters.here().gets.get()) {
        return timed_get(owner, view, key, seq, now_ms);
    }
    look_up(owner, view, key, seq, now_ms)
}

/// Looks up, and records the time that it takes.
#[cold]
fn timed_get(
    owner: &Arc<ReadOwner>,
    view: &ReadView,
    key: &[u8],
    seq: SeqNo,
    now_ms: impl Fn() -> u64,
) -> Result<Option<Slice>> {
    let begin_ns = owner.env.clock.monotonic_ns();
    let value = look_up(owner, view, key, seq, now_ms)?;
    owner.counters.timings.get.record(owner.env.clock.monotonic_ns() - begin_ns);
    Ok(value)
}

#[inline]
fn look_up(
    owner: &Arc<ReadOwner>,
    view: &ReadView,
    key: &[u8],
    seq: SeqNo,
    now_ms: impl Fn() -> u64,
) -> Result<Option<Slice>> {
    let mut lookup = Lookup::new(key, seq);
    match lookup.run(owner, view, &now_ms, Blocks::Read)? {
        LookupProgress::Done(value) => Ok(value),
        LookupProgress::Needs(_) => unreachable!("a look-up that may read does not ask for blocks"),
    }
}

/// The reaction of a look-up to a block that is not cached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocks {
    /// Reads it.
    Read,
    /// Stops and returns it: the caller reads many at once.
    Defer,
}

/// The state that a look-up has reached.
pub(super) enum LookupProgress {
    Done(Option<Slice>),
    Needs(NeededBlock),
}

/// A block that a deferred look-up must be given before it goes on.
pub(super) struct NeededBlock {
    pub(super) open: Arc<OpenTable>,
    pub(super) what: Needed,
}

/// The needed block of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Needed {
    /// A data block.
    Data(BlockHandle),
    /// A block of a partition.
    Partition(PartitionRead),
}

impl Needed {
    /// The place of the block itself.
    pub(super) fn handle(&self) -> BlockHandle {
        match self {
            Needed::Data(handle) => *handle,
            Needed::Partition(read) => read.wanted.handle,
        }
    }
}

/// `Break`: the key's value is known. `Continue`: older places may add to it.
type Flow = ControlFlow<Option<Slice>>;

/// The reason for which a step stopped: an error, or a block to supply.
enum LookupStop {
    Error(Error),
    Needs(NeededBlock),
}

impl From<Error> for LookupStop {
    fn from(error: Error) -> LookupStop {
        LookupStop::Error(error)
    }
}

/// One key's search. Resumes at the file at which it asked for a block.
pub(super) struct Lookup<'a> {
    key: &'a [u8],
    seq: SeqNo,
    /// The newest range tombstone met so far: hides all entries below it.
    hidden_below: SeqNo,
    /// Operands met so far, newest first.
    operands: Vec<Slice>,
    /// Whether memtables have been asked; `run` is the next of the view's runs.
    in_tree: bool,
    run: usize,
    hash: u64,
    /// Set if this lookup is recorded.
    query: Query,
    /// Set if it counts for the cost of tables; from the table at hand on.
    counted: Option<CountedRead>,
    /// Blocks of the file at hand that were supplied.
    supplied: Vec<(u64, Arc<Block>)>,
    filter_checks: u64,
    filter_negatives: u64,
    filter_wasted: u64,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(key: &'a [u8], seq: SeqNo) -> Lookup<'a> {
        Lookup {
            key,
            seq,
            hidden_below: 0,
            operands: Vec::new(),
            in_tree: false,
            run: 0,
            hash: 0,
            query: 0,
            counted: None,
            supplied: Vec::new(),
            filter_checks: 0,
            filter_negatives: 0,
            filter_wasted: 0,
        }
    }

    /// Supplies a block that the look-up asked for; `run` then goes on.
    pub(super) fn supply(&mut self, handle: BlockHandle, block: Arc<Block>) {
        self.supplied.push((handle.offset, block));
    }

    /// Returns the key.
    pub(super) fn key(&self) -> &'a [u8] {
        self.key
    }

    /// Asks the memtable of this age (0: the active one), in which `first` is the first entry from
    /// the key on. Returns the end of the search, if it has ended.
    #[inline]
    pub(super) fn ask_memtable(
        &mut self,
        owner: &ReadOwner,
        (age, memtable): (usize, &Memtable),
        first: Option<Entry<'_>>,
        now_ms: &impl Fn() -> u64,
    ) -> Result<Option<LookupProgress>> {
        match self.memtable(owner, memtable, first, now_ms)? {
            ControlFlow::Continue(()) => Ok(None),
            ControlFlow::Break(value) => {
                let here = owner.counters.here();
                let hits = if age == 0 { &here.get_hits_memtable } else { &here.get_hits_frozen };
                hits.add(1);
                Ok(Some(self.done(owner, value)))
            }
        }
    }

    /// Goes on in the tree: all memtables have been asked.
    #[inline]
    pub(super) fn leave_memtables(&mut self, owner: &ReadOwner, view: &ReadView) {
        self.in_tree = true;
        if !view.runs.is_empty() {
            self.hash = filter::hash(self.key);
            self.query = owner.access.begin(&owner.counters, self.hash);
            if self.query != 0 {
                self.counted = owner.cost.begin_get(&owner.counters, &*owner.env.clock);
            }
        }
    }

    /// Begins to count again, if this is counted: other look-ups had their turn since.
    pub(super) fn count_from_here(&mut self, owner: &ReadOwner) {
        // Not while it waits for a block, whose time counts.
        if self.counted.is_some() && self.supplied.is_empty() {
            self.counted = Some(owner.cost.begin(&owner.counters, &*owner.env.clock));
        }
    }

    /// Searches until the value is known or a block is needed.
    pub(super) fn run(
        &mut self,
        owner: &Arc<ReadOwner>,
        view: &ReadView,
        now_ms: &impl Fn() -> u64,
        blocks: Blocks,
    ) -> Result<LookupProgress> {
        if !self.in_tree {
            for (age, memtable) in view.memtables().enumerate() {
                let list = memtable.list();
                let first = list.and_then(|list| list.seek(self.key, seek_trailer(self.seq)));
                let done = self.ask_memtable(owner, (age, memtable), first, now_ms)?;
                if let Some(value) = done {
                    return Ok(value);
                }
            }
            self.leave_memtables(owner, view);
        }
        while let Some(run) = view.runs.get(self.run) {
            if let Some(file) = run.file_of(self.key) {
                let negatives = self.filter_negatives;
                match self.file(owner, file, now_ms, blocks) {
                    Ok(ControlFlow::Break(value)) => {
                        owner.counters.hit_level(run.level);
                        return Ok(self.done(owner, value));
                    }
                    Ok(ControlFlow::Continue(())) => {
                        if let Some(from) = self.counted {
                            let is_searched = self.filter_negatives == negatives;
                            let (counters, clock) = (&owner.counters, &*owner.env.clock);
                            let more = self.supplied.len();
                            let bytes = from.of_table(counters, clock, more, is_searched);
                            owner.cost.asked(file, run.is_sst_log, bytes);
                            self.counted = Some(owner.cost.begin(counters, clock));
                        }
                        self.supplied.clear();
                    }
                    Err(LookupStop::Needs(needed)) => return Ok(LookupProgress::Needs(needed)),
                    Err(LookupStop::Error(error)) => return Err(error),
                }
            }
            self.run += 1;
        }
        let value = match self.finish(owner, None)? {
            ControlFlow::Break(value) => value,
            ControlFlow::Continue(()) => None,
        };
        Ok(self.done(owner, value))
    }

    fn done(&mut self, owner: &ReadOwner, value: Option<Slice>) -> LookupProgress {
        let here = owner.counters.here();
        here.gets.add(1);
        here.gets_found.add(u64::from(value.is_some()));
        if self.filter_checks > 0 {
            here.filter_checks.add(self.filter_checks);
            here.filter_negatives.add(self.filter_negatives);
            if self.filter_wasted > 0 {
                here.filter_false_positives.add(self.filter_wasted);
            }
        }
        LookupProgress::Done(value)
    }

    /// Ends the search on this base (`None`: the key is absent below here).
    fn finish(&mut self, owner: &ReadOwner, base: Option<Slice>) -> Result<Flow> {
        if self.operands.is_empty() {
            return Ok(ControlFlow::Break(base));
        }
        let value = merge_operands(owner, self.key, base.as_deref(), &self.operands)?;
        Ok(ControlFlow::Break(Some(value)))
    }

    /// Takes in the next older entry of the key.
    #[inline]
    fn entry(
        &mut self,
        owner: &ReadOwner,
        trailer: u64,
        stored: &[u8],
        slice: impl FnOnce() -> Slice,
        now_ms: &impl Fn() -> u64,
    ) -> Result<Flow> {
        if trailer_seq(trailer) < self.hidden_below {
            return self.finish(owner, None);
        }
        match Kind::from_u8(trailer_kind(trailer))? {
            Kind::Put => self.finish(owner, Some(slice())),
            Kind::Delete | Kind::SingleDelete => self.finish(owner, None),
            Kind::Merge => {
                self.operands.push(slice());
                Ok(ControlFlow::Continue(()))
            }
            kind @ (Kind::PutExpiry | Kind::MergeExpiry) => {
                let (expiry_ms, _) = split_expiry(stored)?;
                if is_expired(expiry_ms, now_ms()) {
                    // It hides older entries, as a delete does.
                    return self.finish(owner, None);
                }
                let value = slice().skip(EXPIRY_BYTES);
                if kind == Kind::PutExpiry {
                    return self.finish(owner, Some(value));
                }
                self.operands.push(value);
                Ok(ControlFlow::Continue(()))
            }
            Kind::RangeDelete | Kind::Blob | Kind::BlobExpiry => {
                Err(Error::corruption("a range tombstone or blob reference among point entries"))
            }
        }
    }

    /// Ends a place: a range tombstone there hides all later places (I3, I4).
    #[inline]
    fn leave(&mut self, owner: &ReadOwner) -> Result<Flow> {
        if self.hidden_below > 0 { self.finish(owner, None) } else { Ok(ControlFlow::Continue(())) }
    }

    fn memtable(
        &mut self,
        owner: &ReadOwner,
        memtable: &Memtable,
        first: Option<Entry<'_>>,
        now_ms: &impl Fn() -> u64,
    ) -> Result<Flow> {
        if memtable.has_tombstones() {
            let newest = memtable.newest_tombstone(self.key, self.seq);
            self.hidden_below = self.hidden_below.max(newest.unwrap_or(0));
        }
        let Some(list) = memtable.list() else { return self.leave(owner) };
        let mut next = first;
        while let Some(entry) = next {
            if !owner.order.equal(entry.key(), self.key) {
                break;
            }
            let (found, value) = (entry.trailer(), entry.value());
            let flow = self.entry(owner, found, value, || Slice::copy_from(value), now_ms)?;
            if flow.is_break() {
                return Ok(flow);
            }
            next = found.checked_sub(1).and_then(|older| list.seek(self.key, older));
        }
        self.leave(owner)
    }

    fn file(
        &mut self,
        owner: &Arc<ReadOwner>,
        file: &VersionFile,
        now_ms: &impl Fn() -> u64,
        blocks: Blocks,
    ) -> Result<Flow, LookupStop> {
        let open = file.open(&owner.tables)?;
        if file.file.range_tombstones > 0 {
            let tombstones = open.table.tombstones();
            let newest = tombstones.newest_covering(&owner.order, self.key, self.seq);
            self.hidden_below = self.hidden_below.max(newest.unwrap_or(0));
        }
        if file.has_points() {
            let flow = self.points(owner, file, &open, now_ms, blocks)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(self.leave(owner)?)
    }

    /// Searches the table's point entries.
    fn points(
        &mut self,
        owner: &ReadOwner,
        file: &VersionFile,
        open: &OpenGuard,
        now_ms: &impl Fn() -> u64,
        blocks: Blocks,
    ) -> Result<Flow, LookupStop> {
        if !open.table.may_contain(self.hash) {
            let has_filter = open.table.filter() == FilterKind::Whole;
            debug_invariant!(I8, has_filter, "a table without a filter rules out a key");
            return Ok(self.filtered(owner, file));
        }
        let newest = seek_trailer(self.seq);
        let mut is_filtered = open.table.filter() == FilterKind::Whole;
        let mut place = open.table.locate_user(self.key, newest);
        if let Locate::Partition(partition) = &place
            && !file.table.skips_filter()
            && let Some(filter) = PartitionBlock::filter(partition)
        {
            is_filtered = true;
            let may_contain = match open.partitions.get(filter) {
                Some(guard) => guard.block().may_contain(self.hash),
                None => {
                    let read = PartitionRead::filter(open, partition, filter);
                    self.partition(owner, open, read, blocks)?.may_contain(self.hash)
                }
            };
            if !may_contain {
                return Ok(self.filtered(owner, file));
            }
        }
        let Some(handle) = self.data_block(owner, open, place, newest, blocks)? else {
            return Ok(self.wasted(owner, file, is_filtered));
        };
        let block = self.block(owner, open, handle, blocks)?;
        let got = block.get_hashed(&owner.order, self.key, self.hash, newest);
        let BlockGet::Found { mut trailer, value } = got.map_err(|e| name(e, open, handle))? else {
            return Ok(self.wasted(owner, file, is_filtered));
        };
        // Here and not above: a look-up that was put off comes here again.
        self.filter_checks += u64::from(is_filtered);
        owner.access.answered(file, Answer::Found, self.query);
        let mut flow = self.stored(owner, &block, trailer, value, now_ms);
        // Operands were met: older versions follow in this block or a later
        // one. Read at once: a look-up put off here would take them in twice.
        let (mut block, mut handle) = (block, handle);
        loop {
            if flow.as_ref().map_or(true, ControlFlow::is_break) || trailer == 0 {
                return Ok(flow.map_err(|e| name(e, open, handle))?);
            }
            place = open.table.locate_user(self.key, trailer - 1);
            let next = self.data_block(owner, open, place, trailer - 1, Blocks::Read)?;
            let Some(next) = next else {
                return Ok(ControlFlow::Continue(()));
            };
            if next != handle {
                block = owner.block(open, next)?;
                handle = next;
            }
            let got = block.get_hashed(&owner.order, self.key, self.hash, trailer - 1);
            let BlockGet::Found { trailer: older, value } =
                got.map_err(|e| name(e, open, handle))?
            else {
                return Ok(ControlFlow::Continue(()));
            };
            trailer = older;
            flow = self.stored(owner, &block, trailer, value, now_ms);
        }
    }

    /// Takes in an entry that is in a block.
    #[inline]
    fn stored(
        &mut self,
        owner: &ReadOwner,
        block: &Arc<Block>,
        trailer: u64,
        value: Range<usize>,
        now_ms: &impl Fn() -> u64,
    ) -> Result<Flow> {
        let stored = &block.bytes()[value.clone()];
        self.entry(owner, trailer, stored, || Slice::pinned(block, value), now_ms)
    }

    /// Returns the data block that may hold the key at `trailer`, given the answer of the index (or
    /// of its top level).
    #[inline]
    fn data_block(
        &mut self,
        owner: &ReadOwner,
        open: &OpenGuard,
        place: Locate,
        trailer: u64,
        blocks: Blocks,
    ) -> Result<Option<BlockHandle>, LookupStop> {
        match place {
            Locate::Block(handle) => Ok(Some(handle)),
            Locate::None => Ok(None),
            Locate::Partition(partition) => {
                let key = self.key;
                let find = |index: &Block| -> Result<Option<BlockHandle>, LookupStop> {
                    match decode_partition(index)?.locate_user(&owner.order, key, trailer) {
                        Locate::Block(handle) => Ok(Some(handle)),
                        _ => Ok(None),
                    }
                };
                if let Some(guard) = open.partitions.get(PartitionBlock::index(&partition)) {
                    return find(guard.block());
                }
                find(&*self.partition(owner, open, PartitionRead::index(&partition), blocks)?)
            }
        }
    }

    fn filtered(&mut self, owner: &ReadOwner, file: &VersionFile) -> Flow {
        self.filter_checks += 1;
        self.filter_negatives += 1;
        owner.access.answered(file, Answer::Filtered, self.query);
        ControlFlow::Continue(())
    }

    fn wasted(&mut self, owner: &ReadOwner, file: &VersionFile, is_filtered: bool) -> Flow {
        self.filter_checks += u64::from(is_filtered);
        self.filter_wasted += u64::from(is_filtered);
        owner.access.answered(file, Answer::Wasted, self.query);
        ControlFlow::Continue(())
    }

    /// Returns a data block.
    #[inline]
    fn block(
        &mut self,
        owner: &ReadOwner,
        open: &OpenGuard,
        handle: BlockHandle,
        blocks: Blocks,
    ) -> Result<Arc<Block>, LookupStop> {
        if blocks == Blocks::Read {
            return Ok(owner.block(open, handle)?);
        }
        if let Some(block) = self.supplied(handle) {
            return Ok(block);
        }
        if let Some(block) = owner.blocks.get(open.cached_as, handle.offset) {
            owner.counters.cache_hit();
            return Ok(block);
        }
        Err(LookupStop::Needs(NeededBlock { open: open.to_arc(), what: Needed::Data(handle) }))
    }

    /// Returns a block of a partition that is not in memory.
    #[cold]
    fn partition(
        &mut self,
        owner: &ReadOwner,
        open: &OpenGuard,
        read: PartitionRead,
        blocks: Blocks,
    ) -> Result<Arc<Block>, LookupStop> {
        if blocks == Blocks::Read {
            return Ok(read.run(owner, &open.to_arc())?);
        }
        // It was read for this look-up, and let go of since.
        if let Some(block) = self.supplied(read.wanted.handle) {
            return Ok(block);
        }
        Err(LookupStop::Needs(NeededBlock { open: open.to_arc(), what: Needed::Partition(read) }))
    }

    fn supplied(&self, handle: BlockHandle) -> Option<Arc<Block>> {
        let mut supplied = self.supplied.iter();
        supplied.find(|(offset, _)| *offset == handle.offset).map(|(_, block)| Arc::clone(block))
    }
}

/// Names file and block in an error about a block's entries.
#[cold]
fn name(error: Error, open: &OpenTable, handle: BlockHandle) -> Error {
    error.with_file(open.file.path().display().to_string()).with_offset(handle.offset)
}
