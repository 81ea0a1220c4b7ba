//! Fuzz target: one block of a table, apart from its file. No index need lead to it, so bytes may
//! be inserted and removed. The first byte is its tag (kind and codec).
//!
//! Owns: the reads of a block. Never does: read a table's file (`table.rs` does).

use std::path::Path;
use std::sync::Arc;
use windrow_base::key::push_internal;
use windrow_base::{KeyOrder, Result};
use windrow_env::Buffer;
use windrow_format::block::BlockIter;
use windrow_format::filter;
use windrow_format::table::{
    BLOCK_TRAILER_BYTES, Block, BlockHandle, BlockKind, IndexIter, decode_block, decode_partition,
};

const UID: u64 = 7;
const OFFSET: u64 = 28;

/// Keys that are searched; the first bytes of the input are another.
const KEYS: [&[u8]; 3] = [b"", b"key", b"\xff\xff"];

pub(super) fn run(input: &[u8]) -> bool {
    let Some((tag, payload)) = input.split_first() else { return false };
    let kind = match tag >> 4 {
        1 => BlockKind::Data,
        2 => BlockKind::Index,
        3 => BlockKind::Filter,
        4 => BlockKind::Tombstones,
        5 => BlockKind::Properties,
        _ => return false,
    };
    read(*tag, payload, kind).is_ok()
}

fn read(tag: u8, payload: &[u8], kind: BlockKind) -> Result<()> {
    let mut raw = payload.to_vec();
    raw.push(tag);
    raw.resize(payload.len() + BLOCK_TRAILER_BYTES, 0);
    let handle = BlockHandle { offset: OFFSET, bytes: raw.len() as u32 };
    let crc = windrow_env::checksum::checksum(UID, OFFSET, &[payload, &[tag]]);
    raw[payload.len() + 1..].copy_from_slice(&crc.to_le_bytes());
    let block =
        Arc::new(decode_block(Buffer::copy_of(&raw), Path::new("input"), UID, handle, kind)?);
    let own = &payload[..payload.len().min(12)];
    for key in KEYS.into_iter().chain([own]) {
        block.may_contain(filter::hash(key));
        match kind {
            BlockKind::Data => search(&block, key)?,
            BlockKind::Index => search_index(&block, key)?,
            _ => {}
        }
    }
    Ok(())
}

fn search(block: &Arc<Block>, key: &[u8]) -> Result<()> {
    let order = KeyOrder::Bytewise;
    let mut internal = Vec::new();
    push_internal(&mut internal, key, u64::MAX);
    block.get(&order, key, u64::MAX)?;
    block.get_hashed(&order, key, filter::hash(key), u64::MAX)?;
    let mut iter = BlockIter::new(Arc::clone(block), order);
    let starts: [fn(&mut BlockIter, &[u8]); 4] = [
        |iter, _| iter.seek_first(),
        |iter, _| iter.seek_last(),
        |iter, key| iter.seek(key),
        |iter, key| iter.seek_before(key),
    ];
    for start in starts {
        for forward in [true, false] {
            start(&mut iter, &internal);
            while iter.valid() {
                assert!(iter.value().len() <= block.bytes().len(), "a value lies in its block");
                std::hint::black_box(iter.key());
                if forward { iter.next() } else { iter.prev() }
            }
        }
    }
    iter.status()
}

fn search_index(block: &Arc<Block>, key: &[u8]) -> Result<()> {
    let order = KeyOrder::Bytewise;
    let mut internal = Vec::new();
    push_internal(&mut internal, key, u64::MAX);
    let part = decode_partition(block)?;
    part.locate(&order, &internal);
    (0..part.len()).for_each(|entry| _ = part.get(entry));
    let mut iter = IndexIter::new(Arc::clone(block), order)?;
    let starts: [fn(&mut IndexIter, &[u8]); 3] =
        [|iter, _| iter.seek_first(), |iter, _| iter.seek_last(), |iter, key| iter.seek(key)];
    for start in starts {
        for forward in [true, false] {
            start(&mut iter, &internal);
            while iter.valid() {
                std::hint::black_box((iter.place(), iter.last_key().len()));
                if forward { iter.next() } else { iter.prev() }
            }
        }
    }
    Ok(())
}
