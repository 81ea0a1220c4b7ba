//! The remains of a damaged table: every whole block, whether or not an index or the footer still
//! points to it.
//!
//! Blocks lie back to back, end with their kind and a checksum, and their checksums are seeded with
//! the file's uid and the block's offset (rule R6). So if the offset of a block is known, its end
//! is found by reading on until the checksum agrees. Behind a damaged block the next whole one is
//! found by comparing all beginnings with all ends (`checksum::sealed`). A block that agrees by
//! chance does not pass for entries, because entries are decoded. A whole index is used first: it
//! knows the end of a damaged block.
//!
//! Owns: the search for whole blocks. Never does: choose among versions, or invent an entry.

use super::footer::{Footer, decode_header};
use super::{
    BLOCK_TRAILER_BYTES, BlockHandle, BlockKind, FOOTER_BYTES, HEADER_BYTES, IndexIter, Locate,
    Properties, read_block,
};
use crate::block::{Block, BlockIter};
use crate::tombstone::Tombstones;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use windrow_base::key::split_checked;
use windrow_base::{FileUid, KeyOrder};
use windrow_env::ReadFile;
use windrow_env::checksum::{Running, sealed};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// The bytes in which all beginnings are compared with all ends at a time. Behind damage, a block
/// longer than half of this is found only through an index.
const WINDOW_BYTES: usize = 1 << 20;

/// The remains of a table.
#[derive(Debug, Default)]
pub struct Remains {
    /// Its whole data blocks, in their order.
    pub data: Vec<BlockHandle>,
    /// Its properties, if their block is whole.
    pub properties: Option<Properties>,
    /// Its range tombstones. A table without such a block, and without a sign that there was one,
    /// has none.
    pub tombstones: Option<Tombstones>,
    /// The ranges of the file that may have held more.
    pub gaps: Vec<Range<u64>>,
}

/// The uids in a table's header and footer, as far as they can be read.
pub fn uids(file: &dyn ReadFile) -> Vec<FileUid> {
    let mut head = [0; HEADER_BYTES];
    let header = file.read_at(0, &mut head).and_then(|()| decode_header(&head)).ok();
    let mut uid = [0; 8];
    let at = file.len().checked_sub(FOOTER_BYTES as u64);
    let footer = at.and_then(|at| file.read_at(at, &mut uid).ok());
    let footer = footer.map(|()| FileUid::from_le_bytes(uid));
    let mut uids: Vec<FileUid> = header.into_iter().chain(footer).collect();
    uids.dedup();
    uids
}

/// Searches for all blocks of a table of this identity and order. Unreadable bytes count as
/// damaged.
pub fn remains(file: &Arc<dyn ReadFile>, uid: FileUid, order: &KeyOrder) -> Remains {
    let mut search = RemainsSearch {
        file: &**file,
        uid,
        order,
        known: known_blocks(file, uid, order),
        chunk: ByteWindow::default(),
        found: Remains::default(),
        last_key: Vec::new(),
    };
    search.run();
    let RemainsSearch { mut found, .. } = search;
    if found.tombstones.is_none()
        && found.properties.as_ref().is_some_and(|p| p.range_tombstones == 0)
    {
        found.tombstones = Some(Tombstones::empty());
    }
    found
}

/// The places of blocks, as far as the index and the footer can be read.
fn known_blocks(
    file: &Arc<dyn ReadFile>,
    uid: FileUid,
    order: &KeyOrder,
) -> BTreeMap<u64, (BlockHandle, BlockKind)> {
    let mut known = BTreeMap::new();
    // An index with a right checksum may still point outside the file.
    let mut add = |handle: BlockHandle, kind| {
        if handle.bytes > 0 && handle.end() <= file.len() {
            known.insert(handle.offset, (handle, kind));
        }
    };
    let Some(footer) = footer_of(&**file, uid) else { return known };
    let kinds = [BlockKind::Tombstones, BlockKind::Filter, BlockKind::Index, BlockKind::Properties];
    footer.handles().into_iter().zip(kinds).for_each(|(handle, kind)| add(handle, kind));
    let index = |handle| {
        let block = read_block(&**file, uid, handle, BlockKind::Index).ok()?;
        let mut index = IndexIter::new(Arc::new(block), order.clone()).ok()?;
        index.seek_first();
        Some(index)
    };
    let Some(mut top) = index(footer.index) else { return known };
    while top.valid() {
        match top.place() {
            Locate::Block(handle) => add(handle, BlockKind::Data),
            Locate::Partition(partition) => {
                add(partition.index, BlockKind::Index);
                add(partition.filter.unwrap_or_default(), BlockKind::Filter);
                let mut part = index(partition.index);
                while let Some(Locate::Block(handle)) = part.as_ref().map(IndexIter::place) {
                    add(handle, BlockKind::Data);
                    part.as_mut().expect("just looked at").next();
                }
            }
            Locate::None => break,
        }
        top.next();
    }
    known
}

fn footer_of(file: &dyn ReadFile, uid: FileUid) -> Option<Footer> {
    let mut bytes = [0; FOOTER_BYTES];
    file.read_at(file.len().checked_sub(FOOTER_BYTES as u64)?, &mut bytes).ok()?;
    Footer::decode(&bytes, file.len(), uid).ok()
}

struct RemainsSearch<'a> {
    file: &'a dyn ReadFile,
    uid: FileUid,
    order: &'a KeyOrder,
    /// Blocks known from the index and the footer, by their offsets.
    known: BTreeMap<u64, (BlockHandle, BlockKind)>,
    chunk: ByteWindow,
    found: Remains,
    /// Internal key of the last entry found.
    last_key: Vec<u8>,
}

impl RemainsSearch<'_> {
    fn run(&mut self) {
        let mut at = HEADER_BYTES as u64;
        // The footer follows the last block.
        let end = self.file.len().saturating_sub(FOOTER_BYTES as u64);
        while at < self.file.len() && !(at == end && self.found.properties.is_some()) {
            let known = self.known.get(&at).copied();
            let next = match known {
                Some((handle, kind)) if self.take(handle, kind) => handle.end(),
                Some((handle, kind)) => {
                    // A filter holds no entry, and the search finds an index's entries without it.
                    if !matches!(kind, BlockKind::Filter | BlockKind::Index) {
                        self.found.gaps.push(at..handle.end());
                    }
                    handle.end()
                }
                None => self.block_at(at).unwrap_or_else(|| self.after_gap(at)),
            };
            debug_assert!(at < next);
            at = next;
        }
    }

    /// Takes a block, if it is whole.
    fn take(&mut self, handle: BlockHandle, kind: BlockKind) -> bool {
        let Ok(block) = read_block(self.file, self.uid, handle, kind) else { return false };
        match kind {
            BlockKind::Data => return self.take_data(handle, block),
            BlockKind::Tombstones => {
                // The footer says whether there are several layers, but it may be lost.
                let decode = |layered| Tombstones::decode(block.bytes(), self.order, layered);
                match decode(false).or_else(|_| decode(true)) {
                    Ok(tombstones) => self.found.tombstones = Some(tombstones),
                    Err(_) => return false,
                }
            }
            BlockKind::Properties => match Properties::decode(block.bytes()) {
                Ok(properties) if properties.uid == self.uid => {
                    self.found.properties = Some(properties);
                }
                _ => return false,
            },
            BlockKind::Index | BlockKind::Filter => {}
        }
        true
    }

    /// Takes a block if its entries ascend, also from the last entry found.
    fn take_data(&mut self, handle: BlockHandle, block: Block) -> bool {
        let mut iter = BlockIter::new(Arc::new(block), self.order.clone());
        let mut last = self.last_key.clone();
        let mut entries = 0;
        iter.seek_first();
        while iter.valid() {
            let key = iter.key();
            let ascends = last.is_empty()
                || windrow_base::key::compare_internal(self.order, &last, key).is_lt();
            if !ascends || split_checked(key).is_err() {
                return false;
            }
            last.clear();
            last.extend_from_slice(key);
            entries += 1;
            iter.next();
        }
        if iter.status().is_err() || entries == 0 {
            return false;
        }
        self.last_key = last;
        self.found.data.push(handle);
        true
    }

    /// Takes the block that begins here, if it is whole, and returns its end.
    fn block_at(&mut self, at: u64) -> Option<u64> {
        let mut running = Running::new(self.uid, at);
        // This block ends at or before the next known block.
        let limit = self.known.range(at + 1..).next().map_or(self.file.len(), |(next, _)| *next);
        let mut place = at;
        while place < limit {
            let byte = self.chunk.byte(self.file, place)?;
            running.push(byte);
            place += 1;
            let Some(kind) = BlockKind::of_tag(byte) else { continue };
            if self.chunk.stored(self.file, place) != Some(running.value()) {
                continue;
            }
            let bytes = place - at + (BLOCK_TRAILER_BYTES as u64 - 1);
            let handle = BlockHandle { offset: at, bytes: bytes.try_into().ok()? };
            if self.take(handle, kind) {
                return Some(handle.end());
            }
        }
        None
    }

    /// Returns the beginning of the next whole block behind a damaged one.
    fn after_gap(&mut self, at: u64) -> u64 {
        let limit = self.known.range(at + 1..).next().map_or(self.file.len(), |(next, _)| *next);
        let mut from = at + 1;
        while from < limit {
            let bytes = readable(self.file, from, WINDOW_BYTES.min((limit - from) as usize));
            // Tombstone blocks do not count here: one that agrees by chance would delete entries.
            let kind_of = |byte| {
                BlockKind::of_tag(byte)
                    .filter(|kind| matches!(kind, BlockKind::Data | BlockKind::Properties))
            };
            for range in sealed(&bytes, self.uid, from, |byte| kind_of(byte).is_some()) {
                let offset = from + range.start as u64;
                let handle =
                    BlockHandle { offset, bytes: (range.len() + BLOCK_TRAILER_BYTES - 1) as u32 };
                if kind_of(bytes[range.end - 1]).is_some_and(|kind| self.take(handle, kind)) {
                    self.found.gaps.push(at..offset);
                    return handle.end();
                }
            }
            let step = (WINDOW_BYTES as u64 / 2).min(limit - from);
            from += step.max(1);
        }
        self.found.gaps.push(at..limit);
        limit
    }
}

/// Bytes of a file, zeros where they cannot be read.
fn readable(file: &dyn ReadFile, from: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    if file.read_at(from, &mut bytes).is_ok() {
        return bytes;
    }
    for (number, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
        if file.read_at(from + (number * SECTOR_BYTES) as u64, sector).is_err() {
            sector.fill(0);
        }
    }
    bytes
}

/// The least bytes that a device fails to read.
const SECTOR_BYTES: usize = 512;

/// A buffer for reading the file byte by byte.
#[derive(Default)]
struct ByteWindow {
    start: u64,
    bytes: Vec<u8>,
}

impl ByteWindow {
    fn byte(&mut self, file: &dyn ReadFile, at: u64) -> Option<u8> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if !held.contains(&at) {
            let left = file.len().checked_sub(at).filter(|left| *left > 0)?;
            self.bytes = readable(file, at, CHUNK_BYTES.min(left as usize));
            self.start = at;
        }
        self.bytes.get((at - self.start) as usize).copied()
    }

    /// The checksum stored at an offset.
    fn stored(&mut self, file: &dyn ReadFile, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = self.byte(file, at + n as u64)?;
        }
        Some(u32::from_le_bytes(bytes))
    }
}
