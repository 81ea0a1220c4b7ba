//! How many entries the scans of a keyspace return, so that the first device read of the next one
//! takes about as many bytes as it will need.
//!
//! A moving average over forward scans, one in [`SAMPLE`]: each moves it by a sixteenth. Lost at a
//! close.
//!
//! Owns: the average. Never does: decide how much is read (`readahead` does).

use crate::stats::Counters;
use windrow_env::sync::atomic::{AtomicU32, Ordering};

/// One scan in this many counts: all threads write the average's cache line.
const SAMPLE: u64 = 8;

/// Longer scans count as this many entries: one export says little of the next scan, and soon reads
/// ahead by itself.
const ENTRIES_MAX: u64 = 1000;

/// The average before any scan has counted.
const ENTRIES_USUAL: u32 = 10;

/// The average is kept in parts of an entry, this many to one, and moves by one in this many.
const PARTS: u32 = 16;

/// Entries per scan, on average.
#[derive(Debug)]
pub struct ScanLength(AtomicU32);

impl Default for ScanLength {
    fn default() -> ScanLength {
        ScanLength(AtomicU32::new(ENTRIES_USUAL * PARTS))
    }
}

impl ScanLength {
    /// Notes that a scan that returned `entries` entries ends, or seeks again.
    #[inline]
    pub fn record(&self, counters: &Counters, entries: u64) {
        if counters.here().seeks.get().is_multiple_of(SAMPLE) {
            self.take_in(entries);
        }
    }

    /// Takes one scan into the average. Threads may overwrite each other's part: it is an average.
    fn take_in(&self, entries: u64) {
        let average = self.0.load(Ordering::Relaxed);
        let entries = entries.min(ENTRIES_MAX) as u32;
        // Rounded up, else it would stay fifteen parts too high.
        self.0.store(average - average.div_ceil(PARTS) + entries, Ordering::Relaxed);
    }

    /// The number of entries that the next scan presumably returns.
    #[inline]
    pub fn entries(&self) -> u64 {
        u64::from(self.0.load(Ordering::Relaxed) / PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::readahead::Readahead;
    use crate::read::scan::Scan;
    use crate::read::scan_options::ScanOptions;
    use crate::read::testing::{HistoryOp, TableWorld, everything};
    use std::sync::Arc;
    use windrow_base::KeyOrder;
    use windrow_base::key::Kind;

    /// Once scans took a hundred entries, one device read gives about as many; once they took one,
    /// it gives a block.
    #[test]
    fn a_seek_reads_as_much_as_scans_before_it_took() {
        let mut world = TableWorld::new(4, KeyOrder::Bytewise);
        world.block_bytes = 1024;
        let keys = (0..5000).map(|i| format!("key{i:06}"));
        let ops: Vec<HistoryOp> =
            keys.map(|key| HistoryOp::new(1, Kind::Put, &key, "a value of some bytes")).collect();
        let table = world.table(&ops);
        let view = world.view(&[], vec![(vec![], vec![table])]);
        let owner = &world.owner;
        let auto = Readahead::Auto { max_bytes: 256 << 10 };
        let read_by_a_scan_of = |entries: usize| {
            let before = owner.counters.snapshot();
            let options = ScanOptions { fill_cache: false, readahead: auto, ..everything() };
            let mut scan = Scan::new(Arc::clone(owner), Arc::clone(&view), 9, 0, options);
            assert!(scan.seek(b"key002000").unwrap());
            for _ in 1..entries {
                assert!(scan.next().unwrap());
            }
            drop(scan);
            let now = owner.counters.snapshot();
            let bytes = now.blocks_read_bytes - before.blocks_read_bytes;
            (now.blocks_read - before.blocks_read, bytes)
        };
        let learnt = |entries: usize| {
            (0..8 * 64).for_each(|_| _ = read_by_a_scan_of(entries));
            read_by_a_scan_of(entries)
        };
        read_by_a_scan_of(1); // reads the index
        assert_eq!(read_by_a_scan_of(100).0, 2, "a block or two, and what follows");
        let (reads, bytes) = learnt(100);
        assert!(reads == 1 && (3000..7000).contains(&bytes), "{reads} reads of {bytes} bytes");
        let (reads, bytes) = learnt(1);
        assert!(reads == 1 && bytes < 1200, "{reads} reads of {bytes} bytes");
    }

    #[test]
    fn it_follows_what_scans_return() {
        let length = ScanLength::default();
        assert_eq!(length.entries(), 10);
        for (entries, expected) in [(1, 1..=1), (100, 93..=100), (u64::MAX, 940..=1000), (0, 0..=0)]
        {
            for _ in 0..200 {
                length.take_in(entries);
            }
            assert!(expected.contains(&length.entries()), "{entries}: {}", length.entries());
        }
        let counters = Counters::default();
        for _ in 0..8 * 50 {
            counters.here().seeks.add(1);
            length.record(&counters, 50);
        }
        assert!((40..=50).contains(&length.entries()), "{}", length.entries());
    }
}
