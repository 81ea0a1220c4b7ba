//! Checks every byte of a table, and that its parts agree with each other.
//!
//! Blocks must tile the file from header to footer without a gap; every block passes its checksum;
//! keys ascend through all blocks and lie where the index says; the filter knows every key; a get
//! finds every entry that the scan found; counts and bounds are those of the properties.
//!
//! Owns: the walk over a table. Never does: repair, or go on after the first problem.

use super::footer::decode_header;
use super::pieces::check_tiles;
use super::{
    Block, BlockHandle, BlockKind, Expect, FilterKind, HEADER_BYTES, IndexIter, Locate,
    PartitionHandle, Table, read_block,
};
use crate::block::{BlockGet, BlockIter};
use crate::filter;
use std::sync::Arc;
use windrow_base::key::{
    KEY_BYTES_MAX, Kind, compare_internal, split, split_checked, trailer_kind,
};
use windrow_base::{Error, FileUid, KeyOrder, Result};
use windrow_env::ReadFile;

/// The counts of a verified table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyCount {
    /// Bytes of the file.
    pub bytes: u64,
    /// Blocks of all kinds.
    pub blocks: u64,
    /// Point entries.
    pub entries: u64,
    /// Range tombstones, counted by fragment and sequence number.
    pub range_tombstones: u64,
}

/// Verifies a table.
///
/// # Errors
/// `Corruption` at the first problem; otherwise as [`Table::open`].
pub fn verify(file: &Arc<dyn ReadFile>, expect: Expect) -> Result<VerifyCount> {
    let uid = expect.uid;
    let table = Table::open(file, expect)?;
    let mut walk = TableWalk {
        file: &**file,
        uid,
        order: table.order().clone(),
        handles: table.footer.handles().into_iter().filter(|h| h.bytes > 0).collect(),
        last_key: Vec::new(),
        entries: 0,
        point_tombstones: 0,
        seq: (u64::MAX, 0),
        filter: None,
    };
    walk.run(&table).map_err(|e| e.with_file(file.path().display().to_string()))
}

struct TableWalk<'a> {
    file: &'a dyn ReadFile,
    uid: FileUid,
    order: KeyOrder,
    /// Every block so far, to check that they tile the file.
    handles: Vec<BlockHandle>,
    /// Internal key of the last entry.
    last_key: Vec<u8>,
    entries: u64,
    point_tombstones: u64,
    seq: (u64, u64),
    /// The filter of the current partition.
    filter: Option<Block>,
}

impl TableWalk<'_> {
    fn run(&mut self, table: &Table) -> Result<VerifyCount> {
        let mut head = [0; HEADER_BYTES];
        self.file.read_at(0, &mut head)?;
        if decode_header(&head)? != self.uid {
            return Err(Error::corruption("table header carries another uid").with_offset(0));
        }
        let mut top = table.index_iter();
        top.seek_first();
        if table.is_partitioned() {
            while let Some(partition) = top.partition() {
                self.partition(table, partition)?;
                self.bounded_by(top.last_key(), partition.index.offset)?;
                top.next();
            }
        } else {
            self.blocks(table, top)?;
        }
        check_tiles(&mut self.handles, self.file.len())?;
        self.agrees(table)?;
        Ok(VerifyCount {
            bytes: self.file.len(),
            blocks: self.handles.len() as u64,
            entries: self.entries,
            range_tombstones: table.tombstones().pairs(),
        })
    }

    fn partition(&mut self, table: &Table, partition: PartitionHandle) -> Result<()> {
        if partition.filter.is_none() != (table.filter() == FilterKind::None) {
            return Err(wrong("a partition with and one without a filter", partition.index.offset));
        }
        self.filter = match partition.filter {
            Some(handle) => {
                self.handles.push(handle);
                Some(read_block(self.file, self.uid, handle, BlockKind::Filter)?)
            }
            None => None,
        };
        self.handles.push(partition.index);
        let index = read_block(self.file, self.uid, partition.index, BlockKind::Index)?;
        self.blocks(table, IndexIter::new(Arc::new(index), self.order.clone())?)
    }

    fn blocks(&mut self, table: &Table, mut index: IndexIter) -> Result<()> {
        let mut previous = Vec::new();
        index.seek_first();
        while let Locate::Block(handle) = index.place() {
            let key = index.last_key().to_vec();
            split_key(&key, handle.offset)?;
            if !previous.is_empty() && !compare_internal(&self.order, &previous, &key).is_lt() {
                return Err(wrong("index keys out of order", handle.offset));
            }
            self.block(table, handle)?;
            self.bounded_by(&key, handle.offset)?;
            previous = key;
            index.next();
        }
        if index.valid() {
            return Err(wrong("an index partition leads to partitions", 0));
        }
        Ok(())
    }

    /// Checks that the last entry is at or before the index key of its block.
    fn bounded_by(&self, index_key: &[u8], offset: u64) -> Result<()> {
        if self.last_key.is_empty()
            || compare_internal(&self.order, &self.last_key, index_key).is_gt()
        {
            return Err(wrong("an entry lies beyond its index key", offset));
        }
        Ok(())
    }

    fn block(&mut self, table: &Table, handle: BlockHandle) -> Result<()> {
        let block = Arc::new(read_block(self.file, self.uid, handle, BlockKind::Data)?);
        self.handles.push(handle);
        let mut iter = BlockIter::new(Arc::clone(&block), self.order.clone());
        iter.seek_first();
        while iter.valid() {
            let (user_key, trailer) = split_key(iter.key(), handle.offset)?;
            if self.entries > 0
                && !compare_internal(&self.order, &self.last_key, iter.key()).is_lt()
            {
                return Err(wrong("entries out of order", handle.offset));
            }
            let hash = filter::hash(user_key);
            let known = match &self.filter {
                Some(partition) => partition.may_contain(hash),
                None => table.may_contain(hash),
            };
            if !known {
                return Err(wrong("the filter does not know a key of its table", handle.offset));
            }
            // The hash index and the searches must lead to the scan's entry.
            let found = block.get_hashed(&self.order, user_key, hash, trailer)?;
            if found != (BlockGet::Found { trailer, value: iter.value_range() }) {
                return Err(wrong("a get misses an entry of its block", handle.offset));
            }
            let seq = trailer >> 8;
            self.seq = (self.seq.0.min(seq), self.seq.1.max(seq));
            let kind = Kind::from_u8(trailer_kind(trailer))?;
            self.point_tombstones += u64::from(kind.is_point_tombstone());
            self.entries += 1;
            self.last_key.clear();
            self.last_key.extend_from_slice(iter.key());
            iter.next();
        }
        iter.status().map_err(|e| e.with_offset(handle.offset))
    }

    /// Checks that counts, sequence numbers and bounds are those of the properties.
    fn agrees(&mut self, table: &Table) -> Result<()> {
        let p = table.properties();
        for fragment in table.tombstones().fragments() {
            for &seq in fragment.seqs {
                self.seq = (self.seq.0.min(seq), self.seq.1.max(seq));
            }
        }
        let counted = (self.entries, self.point_tombstones, self.seq);
        if counted != (p.entries, p.point_tombstones, (p.seq_min, p.seq_max)) {
            return Err(wrong("counts differ from the properties", table.footer.properties.offset));
        }
        if let Some((_, last)) = &p.point_bounds
            && !self.order.equal(last, split(&self.last_key).0)
        {
            return Err(wrong(
                "the last key differs from the properties",
                table.footer.properties.offset,
            ));
        }
        Ok(())
    }
}

fn split_key(internal: &[u8], offset: u64) -> Result<(&[u8], u64)> {
    let (user_key, _, _) = match split_checked(internal) {
        Ok(parts) => parts,
        Err(e) => return Err(e.with_offset(offset)),
    };
    if user_key.len() > KEY_BYTES_MAX {
        return Err(wrong("a key beyond its limit", offset));
    }
    Ok((user_key, split(internal).1))
}

#[cold]
fn wrong(what: &str, offset: u64) -> Error {
    Error::corruption(what.to_string()).with_offset(offset)
}
