//! Fuzz target: a table, which is opened, verified, and read entry by entry even if `verify` finds
//! damage: readers meet tables that were never verified.
//!
//! Owns: the walk through a table. Never does: rely on `verify`.

use super::checksums::{self, raw_and_recomputed};
use super::memory_file::MemoryFile;
use std::sync::Arc;
use windrow_base::key::push_internal;
use windrow_base::{KeyOrder, Result};
use windrow_env::ReadFile;
use windrow_format::block::BlockIter;
use windrow_format::filter;
use windrow_format::table::{
    BlockHandle, BlockKind, Expect, FOOTER_BYTES, IndexIter, Locate, PartitionHandle, Table,
    read_block, verify,
};

pub(super) fn run(input: &[u8]) -> bool {
    raw_and_recomputed(input, |bytes| checksums::table(bytes), |bytes| read(bytes).is_ok())
}

fn read(bytes: Vec<u8>) -> Result<()> {
    let uid_at = bytes.len().wrapping_sub(FOOTER_BYTES);
    let uid = bytes.get(uid_at..).and_then(|b| b.first_chunk::<8>());
    let uid = uid.map_or(0, |b| u64::from_le_bytes(*b));
    let expect = Expect { file_bytes: bytes.len() as u64, uid, order: KeyOrder::Bytewise };
    let file = MemoryFile::open(bytes);
    let verified = verify(&file, expect.clone());
    let table = Table::open(&file, expect)?;
    let mut walk = Walk { file: &*file, uid, table: &table, keys: Vec::new() };
    walk.run()?;
    walk.search()?;
    verified.map(drop)
}

/// The state of a walk.
struct Walk<'a> {
    file: &'a dyn ReadFile,
    uid: u64,
    table: &'a Table,
    /// Some of the keys that were read.
    keys: Vec<Vec<u8>>,
}

/// The most keys that are looked up again.
const KEYS_MAX: usize = 16;

impl Walk<'_> {
    fn run(&mut self) -> Result<()> {
        self.table.memory_bytes();
        for fragment in self.table.tombstones().fragments() {
            std::hint::black_box((fragment.start, fragment.end, fragment.newest(u64::MAX)));
        }
        let mut top = self.table.index_iter();
        top.seek_last();
        while top.valid() {
            match top.place() {
                Locate::Block(handle) => self.block(handle)?,
                Locate::Partition(partition) => self.partition(partition)?,
                Locate::None => return Ok(()),
            }
            top.prev();
        }
        Ok(())
    }

    fn partition(&mut self, partition: PartitionHandle) -> Result<()> {
        if let Some(handle) = partition.filter {
            let filter = read_block(self.file, self.uid, handle, BlockKind::Filter)?;
            filter.may_contain(filter::hash(b"key"));
        }
        let index = read_block(self.file, self.uid, partition.index, BlockKind::Index)?;
        let mut index = IndexIter::new(Arc::new(index), KeyOrder::Bytewise)?;
        index.seek_first();
        while let Locate::Block(handle) = index.place() {
            self.block(handle)?;
            index.next();
        }
        Ok(())
    }

    fn block(&mut self, handle: BlockHandle) -> Result<()> {
        let block = read_block(self.file, self.uid, handle, BlockKind::Data)?;
        let mut iter = BlockIter::new(Arc::new(block), KeyOrder::Bytewise);
        iter.seek_last();
        while iter.valid() {
            if self.keys.len() < KEYS_MAX {
                self.keys.push(iter.key().to_vec());
            }
            iter.prev();
        }
        iter.status()
    }

    /// Looks the keys up, and an absent one.
    fn search(&self) -> Result<()> {
        let mut absent = Vec::new();
        push_internal(&mut absent, b"absent", u64::MAX);
        let keys = self.keys.iter().map(Vec::as_slice).filter(|key| key.len() >= 8);
        for key in keys.chain([absent.as_slice()]) {
            let user_key = &key[..key.len() - 8];
            self.table.may_contain(filter::hash(user_key));
            self.table.data_bytes_before(key);
            self.table.tombstones().newest_covering(&KeyOrder::Bytewise, user_key, u64::MAX);
            if let Locate::Block(handle) = self.table.locate(key) {
                let block = read_block(self.file, self.uid, handle, BlockKind::Data)?;
                block.get(&KeyOrder::Bytewise, user_key, u64::MAX)?;
            }
        }
        Ok(())
    }
}
