//! Reading a partition's blocks, its filter with its index: they are next to each other, and a
//! second read would cost a whole device latency.
//!
//! Owns: which blocks are read together. Never does: keep them (`cache/partitions.rs`), or search
//! them.

use super::ReadOwner;
use crate::cache::{OpenTable, PartitionBlock};
use std::ops::Range;
use std::sync::Arc;
use windrow_base::Result;
use windrow_env::Buffer;
use windrow_format::block::Block;
use windrow_format::table::PartitionHandle;

/// A block of a partition that is not in memory, and the block that is read with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartitionRead {
    pub(super) wanted: PartitionBlock,
    /// The index behind a filter that is wanted, if it is not in memory either.
    also: Option<PartitionBlock>,
}

impl PartitionRead {
    /// Makes the read of a partition's index.
    pub(super) fn index(partition: &PartitionHandle) -> PartitionRead {
        PartitionRead { wanted: PartitionBlock::index(partition), also: None }
    }

    /// Makes the read of its filter, and of its index if that is not in memory.
    pub(super) fn filter(
        open: &OpenTable,
        partition: &PartitionHandle,
        filter: PartitionBlock,
    ) -> PartitionRead {
        let index = PartitionBlock::index(partition);
        let follows = index.handle.offset == filter.handle.end();
        let also = Some(index).filter(|_| follows && !open.partitions.has(index));
        PartitionRead { wanted: filter, also }
    }

    /// The range of the file that is read.
    pub(super) fn range(&self) -> Range<u64> {
        let last = self.also.unwrap_or(self.wanted);
        self.wanted.handle.offset..last.handle.end()
    }

    /// Takes the bytes that were read: decodes and keeps the blocks. Returns the wanted one.
    ///
    /// # Errors
    /// `Corruption` naming file and offset of a damaged block.
    pub(super) fn finish(
        &self,
        owner: &ReadOwner,
        open: &OpenTable,
        raw: Buffer,
    ) -> Result<Arc<Block>> {
        let keep = |block: PartitionBlock, raw: Buffer| -> Result<Arc<Block>> {
            let decoded = open.decode_block(raw, block.handle, block.kind)?;
            Ok(owner.tables.keep(open, block, decoded))
        };
        let Some(also) = self.also else {
            return keep(self.wanted, raw);
        };
        let (first, second) = raw.split_at((self.wanted.handle.bytes as usize).min(raw.len()));
        // A damaged index fails the reads that search it, not one that asks the filter.
        _ = keep(also, Buffer::copy_of(second));
        keep(self.wanted, Buffer::copy_of(first))
    }

    /// Reads it alone.
    ///
    /// # Errors
    /// `Corruption` if it does not lie in the file, or is damaged; `Io`.
    #[cold]
    pub(super) fn run(&self, owner: &ReadOwner, open: &Arc<OpenTable>) -> Result<Arc<Block>> {
        let mut read = super::readahead::PendingRead::new(open, self.range(), Buffer::default())?;
        owner.counters.partition_read(self.range().end - self.range().start);
        read.run();
        self.finish(owner, open, read.finish()?.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::get::get;
    use super::super::multi_get::multi_get;
    use super::super::scan::Scan;
    use super::super::testing::{HistoryOp, TableWorld, everything};
    use super::super::view::ReadView;
    use super::*;
    use crate::cache::TableLimits;
    use windrow_base::{KeyOrder, Kind};

    /// Makes a table of four partitions and more. Returns a function of keys in it and between
    /// those.
    fn partitioned(world: &mut TableWorld) -> (Arc<ReadView>, fn(u64) -> String) {
        world.partition_bytes = 1 << 10;
        let key: fn(u64) -> String = |i| format!("key{i:05}");
        let put = |i: u64| HistoryOp::new(1, Kind::Put, &key(i), "value");
        let file = world.table(&(0..6000).step_by(2).map(put).collect::<Vec<_>>());
        (world.view(&[], vec![(Vec::new(), vec![file])]), key)
    }

    /// A partition is read once, its filter together with its index, and then asked in memory.
    #[test]
    fn a_partition_is_read_with_one_read() {
        let mut world = TableWorld::new(24, KeyOrder::Bytewise);
        let (view, key) = partitioned(&mut world);
        let owner = world.with_cold_caches(1 << 20, 10);
        let cold = world.view_for(&owner, &view);
        let read = |i: u64| {
            let before = owner.counters.snapshot();
            let found = get(&owner, &cold, key(i).as_ref(), 10, || 0).unwrap().is_some();
            assert_eq!(found, i.is_multiple_of(2));
            let after = owner.counters.snapshot();
            (after.partitions_read - before.partitions_read, after.blocks_read - before.blocks_read)
        };
        assert_eq!(read(0), (1, 1));
        assert_eq!((read(0), read(2)), ((0, 0), (0, 0)));
        let absent: Vec<_> = (1..6000).step_by(10).map(read).collect();
        let sum = absent.iter().fold((0, 0), |sum, got| (sum.0 + got.0, sum.1 + got.1));
        let stats = owner.counters.snapshot();
        assert!(sum.0 > 4 && sum.0 == stats.partitions_read - 1, "{sum:?}");
        assert!(sum.1 <= stats.filter_false_positives, "blocks are read where a filter is wrong");
        assert!(stats.partitions_read_bytes > 1 << 10 && stats.tables_opened == 1, "{stats:?}");
        // Others do not ask again for a block that is in memory already.
        let (owner, keys) = (world.with_cold_caches(1 << 20, 10), [key(0), key(1), key(2)]);
        let cold = world.view_for(&owner, &view);
        multi_get(&owner, &cold, &keys, 10, || 0).into_iter().for_each(|got| drop(got.unwrap()));
        let mut scan = Scan::new(owner.clone(), cold, 10, 0, everything());
        scan.seek(b"key00000").unwrap();
        assert_eq!(owner.counters.snapshot().partitions_read, 1);
    }

    /// If memory is short partitions go, those first that were not used lately; the table stays
    /// open.
    #[test]
    fn partitions_keep_to_the_memory_of_tables() {
        let mut world = TableWorld::new(25, KeyOrder::Bytewise);
        let (view, key) = partitioned(&mut world);
        let bytes_with = |limit: u64, check: bool| {
            let owner = world.with_limits(0, TableLimits::fixed(10, limit));
            let cold = world.view_for(&owner, &view);
            let opened = || owner.counters.snapshot().tables_opened;
            let mut most = 0;
            for i in (0..6000).step_by(2) {
                assert!(get(&owner, &cold, key(i).as_ref(), 10, || 0).unwrap().is_some());
                assert!(get(&owner, &cold, key(0).as_ref(), 10, || 0).unwrap().is_some());
                most = most.max(owner.tables.memory_bytes());
            }
            let read = owner.counters.snapshot().partitions_read;
            if check {
                // Walked in order each is read once, and the one in use is never let go of.
                assert!(opened() == 1 && read < 40, "{} opened, {read} partitions", opened());
                let mut scan = Scan::new(owner.clone(), cold.clone(), 10, 0, everything());
                let (mut more, mut entries) = (scan.seek_first().unwrap(), 0);
                while more {
                    (more, entries) = (scan.next().unwrap(), entries + 1);
                }
                assert_eq!(entries, 3000);
                assert!(owner.tables.memory_bytes() <= limit);
            }
            drop(cold);
            assert_eq!(owner.tables.memory_bytes(), 0, "all of it is given back");
            (most, read)
        };
        let (all, partitions) = bytes_with(u64::MAX, false);
        let (half, again) = bytes_with(all / 2, true);
        assert!(half <= all / 2 && again >= partitions, "{half} of {all}, {again} of {partitions}");
    }
}
