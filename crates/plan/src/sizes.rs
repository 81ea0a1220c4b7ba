//! The sizes that a policy wants where the user set none.
//!
//! A preset is more than its axes: vLSM's memtable is one small file, and a level 0 in partitions
//! needs a level 1 of enough files to take boundaries from.
//!
//! Owns: the arithmetic. Never does: keep options that the user set; the caller does.

use crate::cut::Cut;
use crate::level0::Level0;
use crate::shape::Shape;

const MIB: u64 = 1 << 20;

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Size at which output files are cut.
    pub file_bytes: u64,
    /// Capacity of level 1.
    pub level_base_bytes: u64,
}

/// Files are no larger than this unless asked for: a job reads and writes
/// whole files, and its length is a reader's wait.
const FILE_BYTES: u64 = 8 * MIB;

/// Files of level 1 per partition: boundaries can follow the data, and a partition's job
/// takes its files and no others.
const FILES_PER_PARTITION: u64 = 2;

/// Below this, files cost more in metadata than their small jobs save.
const FILE_BYTES_MIN: u64 = MIB;

/// Memtables in a file at most: level 1, of seventeen, has several files.
const FILE_MEMTABLES_MAX: u64 = 4;

/// Memtables in level 1 before a level is inserted above it.
const LEVEL1_MEMTABLES: u64 = 17;

/// Returns the largest memtable that suits a level 0; `u64::MAX` if any does. vLSM ties the
/// memtable to its file size, S_M.
pub(crate) fn memtable_bytes_max(level0: &Level0) -> u64 {
    match level0 {
        Level0::Fifo(_) => FILE_BYTES,
        Level0::Tiered(_) | Level0::Partitioned(_) => u64::MAX,
    }
}

impl Sizes {
    /// The sizes that go with a memtable of `memtable_bytes`.
    ///
    /// Level 1 holds one and a half memtables: its blocks, and many of level 2's, then stay in the
    /// cache. A cold seek reads about two blocks from the device and not three. Measured with data
    /// 20 times the memory: 2.3 times RocksDB's speed, against 1.5 with four memtables, for a sixth
    /// more writes. In vLSM level 1 holds f files.
    pub(crate) fn of(shape: &Shape, level0: &Level0, cut: &Cut, memtable_bytes: u64) -> Sizes {
        if shape.is_from_last() {
            return Sizes::from_last(memtable_bytes);
        }
        debug_assert!(memtable_bytes > 0, "a memtable without room");
        let base = memtable_bytes / 2 * 3;
        match level0 {
            Level0::Tiered(_) => Sizes { file_bytes: FILE_BYTES, level_base_bytes: base },
            Level0::Fifo(_) => {
                let file_bytes = memtable_bytes.min(FILE_BYTES);
                let f = match cut {
                    Cut::Overlap(overlap) => overlap.f,
                    Cut::BySize(_) => 8.0,
                };
                Sizes { file_bytes, level_base_bytes: (file_bytes as f64 * f) as u64 }
            }
            Level0::Partitioned(partitioned) => {
                let files = FILES_PER_PARTITION * u64::from(partitioned.partitions);
                debug_assert!(files > 0, "a level 0 of no partitions");
                let file_bytes = (base / files).clamp(FILE_BYTES_MIN, FILE_BYTES);
                Sizes { file_bytes, level_base_bytes: base }
            }
        }
    }

    /// Level 1 may grow to seventeen memtables: where the level above the last is a ratio of 6.5
    /// smaller, two levels are enough for data of a hundred memtables.
    ///
    /// Files are as large with small memtables as with large ones: a file costs the system's time
    /// to make and sync, whatever its size. With 8, 16 and 32 MiB of memory (memtables of 2, 4 and
    /// 8 MiB, 2 million records of 656 B), files of 1 MiB were loaded at 81, 94 and 94 thousand
    /// records a second, files of 8 MiB at 151, 163 and 203. With memtables that the user set
    /// smaller than those, a level 1 of such files would have no boundaries for partitions.
    fn from_last(memtable_bytes: u64) -> Sizes {
        let most = memtable_bytes.saturating_mul(FILE_MEMTABLES_MAX);
        let level_base_bytes = memtable_bytes.saturating_mul(LEVEL1_MEMTABLES);
        Sizes { file_bytes: most.clamp(FILE_BYTES_MIN, FILE_BYTES), level_base_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    #[test]
    fn sizes_follow_the_memtable() {
        let sizes = |preset: &str, mib: u64| {
            let policy = Policy::parse(preset).unwrap();
            let sizes = policy.sizes(mib * MIB);
            (sizes.file_bytes / MIB, sizes.level_base_bytes / MIB)
        };
        assert_eq!(sizes("leveled", 64), (8, 96));
        assert_eq!(sizes("vlsm", 64), (8, 64));
        assert_eq!(sizes("vlsm", 4), (4, 32));
        assert_eq!(sizes("leveled level0=partitioned(lanes=16)", 64), (3, 96));
        assert_eq!(sizes("leveled level0=partitioned(lanes=16)", 4), (1, 6));
        assert_eq!(sizes("windrow", 64), (8, 1088));
        assert_eq!(sizes("windrow", 4), (8, 68));
        assert_eq!(sizes("windrow", 1), (4, 17));
        assert_eq!(Policy::preset("vlsm").unwrap().memtable_bytes_max(), 8 * MIB);
    }
}
