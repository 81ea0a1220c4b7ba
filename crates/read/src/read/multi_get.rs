//! Many point look-ups at once: all of them search each memtable together, then the tree as far as
//! cached blocks let them, then the blocks that they miss are read in one submission, until none
//! misses any. A batch of n cold keys costs a few device latencies, not n. A large batch goes in
//! windows, so that the blocks that its look-ups hold while they wait for each other are bounded.
//!
//! Owns: the rounds, and searches for keys that are read later. Never does: search by itself
//! (`get::Lookup` does).

use super::ReadOwner;
use super::get::{Blocks, Lookup, LookupProgress, Needed, NeededBlock};
use super::readahead::{self, PendingRead};
use super::view::ReadView;
use crate::memtable::Memtable;
use crate::slice::Slice;
use std::collections::HashMap;
use std::sync::Arc;
use windrow_base::key::{SEQ_MAX, seek_trailer};
use windrow_base::{FileUid, Result, SeqNo};
use windrow_env::Buffer;
use windrow_format::block::Block;
use windrow_format::table::BlockKind;

/// Most reads in one submission: devices of this decade do as many at once.
const READS_TOGETHER_MAX: usize = 64;

/// Most keys that search at once. Each may wait with a block (4 MiB of small
/// ones); sixteen full submissions are enough to keep a device busy.
const KEYS_TOGETHER_MAX: usize = 1024;

/// The value of a key, once its look-up has ended.
type Found = Option<Result<Option<Slice>>>;

/// Returns the values of `keys`, in their order, all of one `view` and `seq`. Each key has its own
/// result: a damaged block fails the keys that need it.
pub fn multi_get<K: AsRef<[u8]>>(
    owner: &Arc<ReadOwner>,
    view: &ReadView,
    keys: &[K],
    seq: SeqNo,
    now_ms: impl Fn() -> u64,
) -> Vec<Result<Option<Slice>>> {
    let mut results = Vec::with_capacity(keys.len());
    for window in keys.chunks(KEYS_TOGETHER_MAX) {
        results.extend(look_up(owner, view, window, seq, &now_ms));
    }
    results
}

/// Lists that take less than this are in the processor's caches anyway.
const PREFETCHED_BYTES_MIN: usize = 512 << 10;

/// Searches the memtables for keys, each until it is found.
pub fn prefetch<K: AsRef<[u8]>>(view: &ReadView, keys: &[K]) {
    let mut keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
    for memtable in view.memtables() {
        let list = memtable.list().filter(|list| list.allocated_bytes() >= PREFETCHED_BYTES_MIN);
        let Some(list) = list else { continue };
        let mut is_found = vec![false; keys.len()];
        list.seek_many(&keys, seek_trailer(SEQ_MAX), |place, entry| {
            is_found[place] = entry.is_some_and(|entry| entry.key() == keys[place]);
        });
        let mut is_found = is_found.into_iter();
        keys.retain(|_| is_found.next() == Some(false));
        if keys.is_empty() {
            return;
        }
    }
}

fn look_up<K: AsRef<[u8]>>(
    owner: &Arc<ReadOwner>,
    view: &ReadView,
    keys: &[K],
    seq: SeqNo,
    now_ms: &impl Fn() -> u64,
) -> impl Iterator<Item = Result<Option<Slice>>> {
    let mut results: Vec<Found> = (0..keys.len()).map(|_| None).collect();
    let mut running: Vec<(usize, Lookup<'_>)> =
        keys.iter().map(|key| Lookup::new(key.as_ref(), seq)).enumerate().collect();
    for place in view.memtables().enumerate() {
        ask_memtable(owner, place, (&mut running, &mut results), (seq, now_ms));
    }
    running.iter_mut().for_each(|(_, lookup)| lookup.leave_memtables(owner, view));
    while !running.is_empty() {
        let mut waiting = Vec::new();
        let mut round = Round::default();
        for (index, mut lookup) in running {
            lookup.count_from_here(owner);
            match lookup.run(owner, view, now_ms, Blocks::Defer) {
                Ok(LookupProgress::Done(value)) => results[index] = Some(Ok(value)),
                Ok(LookupProgress::Needs(block)) => waiting.push((index, lookup, round.add(block))),
                Err(error) => results[index] = Some(Err(error)),
            }
        }
        let blocks = round.read(owner);
        running = Vec::with_capacity(waiting.len());
        for (index, mut lookup, slot) in waiting {
            let (needed, block) = &blocks[slot];
            match block {
                Ok(block) => {
                    lookup.supply(needed.what.handle(), Arc::clone(block));
                    running.push((index, lookup));
                }
                Err(error) => results[index] = Some(Err(error.clone())),
            }
        }
    }
    results.into_iter().map(|result| result.expect("every look-up ended"))
}

/// Asks a memtable for all keys that are still searched for.
fn ask_memtable<'k>(
    owner: &Arc<ReadOwner>,
    (age, memtable): (usize, &Arc<Memtable>),
    (running, results): (&mut Vec<(usize, Lookup<'k>)>, &mut [Found]),
    (seq, now_ms): (SeqNo, &impl Fn() -> u64),
) {
    let keys: Vec<&[u8]> = running.iter().map(|(_, lookup)| lookup.key()).collect();
    let mut firsts = vec![None; keys.len()];
    if let Some(list) = memtable.list() {
        list.seek_many(&keys, seek_trailer(seq), |place, entry| firsts[place] = entry);
    }
    let mut firsts = firsts.into_iter();
    running.retain_mut(|(index, lookup)| {
        let first = firsts.next().flatten();
        let ended = match lookup.ask_memtable(owner, (age, memtable), first, now_ms) {
            Ok(None) => return true,
            Ok(Some(LookupProgress::Done(value))) => Ok(value),
            Ok(Some(LookupProgress::Needs(_))) => unreachable!("a memtable has no blocks"),
            Err(error) => Err(error),
        };
        results[*index] = Some(ended);
        false
    });
}

/// The distinct blocks that the look-ups of a round wait for.
#[derive(Default)]
struct Round {
    blocks: Vec<NeededBlock>,
    slots: HashMap<(FileUid, u64), usize>,
}

impl Round {
    /// Returns the slot in which the block will be found.
    fn add(&mut self, block: NeededBlock) -> usize {
        let place = (block.open.cached_as, block.what.handle().offset);
        *self.slots.entry(place).or_insert_with(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        })
    }

    fn read(self, owner: &ReadOwner) -> Vec<(NeededBlock, Result<Arc<Block>>)> {
        let mut done = Vec::with_capacity(self.blocks.len());
        let mut rest = self.blocks.into_iter().peekable();
        while rest.peek().is_some() {
            let batch: Vec<NeededBlock> = rest.by_ref().take(READS_TOGETHER_MAX).collect();
            done.extend(read_batch(owner, batch));
        }
        done
    }
}

fn read_batch(
    owner: &ReadOwner,
    batch: Vec<NeededBlock>,
) -> impl Iterator<Item = (NeededBlock, Result<Arc<Block>>)> {
    let mut reads: Vec<Result<PendingRead>> = batch
        .iter()
        .map(|block| {
            let range = match block.what {
                Needed::Data(handle) => {
                    owner.counters.block_read(u64::from(handle.bytes));
                    handle.offset..handle.end()
                }
                Needed::Partition(read) => {
                    owner.counters.partition_read(read.range().end - read.range().start);
                    read.range()
                }
            };
            PendingRead::new(&block.open, range, Buffer::default())
        })
        .collect();
    readahead::read_together(&*owner.env.fs, reads.iter_mut().flatten());
    batch.into_iter().zip(reads).map(|(block, read)| {
        let decoded = read.and_then(PendingRead::finish).and_then(|ahead| {
            let (open, raw) = (&block.open, ahead.into_bytes());
            let handle = match block.what {
                Needed::Data(handle) => handle,
                Needed::Partition(read) => return read.finish(owner, open, raw),
            };
            let decoded = owner.blocks.admit(open.decode_block(raw, handle, BlockKind::Data)?);
            owner.blocks.insert(open.cached_as, handle.offset, Arc::clone(&decoded));
            Ok(decoded)
        });
        (block, decoded)
    })
}
