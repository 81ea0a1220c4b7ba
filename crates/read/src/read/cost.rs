//! The cost of tables to reads, in bytes of merging that would take as long.
//!
//! A get asks every table over its key, a seek searches each. Each table of an SST-log, level 0's
//! included, keeps its cost (`TableHandle::read_cost`), so that the policy can merge those that
//! reads have paid for (`windrow_plan::pick::read_triggered_merges`). The sum over all tables says
//! how much one more over every point would cost.
//!
//! One read in [`SAMPLE`] is counted, for that many. Only policies that ask for it switch this on;
//! otherwise a seek reads one flag. Counts are lost at a close.
//!
//! Owns: the cost of a read, and the counts. Never does: decide.

use super::access::{SAMPLE, is_sampled};
use super::scan_length::ScanLength;
use super::view::{ReadView, VersionFile};
use crate::stats::Counters;
use std::sync::OnceLock;
use windrow_env::Clock;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The time that a thread takes to merge a byte.
const NS_PER_BYTE: u64 = 10;
/// The least cost of asking a filter that is in memory, some 40 ns.
const FILTER_BYTES: u32 = 4;
/// The cost of searching a table whose blocks are in memory, a microsecond.
const SEARCH_BYTES: u32 = 96;
/// The cost of reading a block from a device, 80 us at most.
const DEVICE_BYTES: u32 = 8 << 10;

/// How often reads have paid for a merge before it is made. The bytes that it writes, and the
/// blocks that leave the cache, are no less of a price than the time; and later writes come over
/// the tables before long, which merge them anyway. So if reads soon end, or writes go on, a third
/// is lost and not the half.
const PATIENCE: u64 = 3;

/// Returns the bytes of merging that a table's reads have paid for, from the cost of the counted
/// ones.
pub fn worth_of(read_cost: u32) -> u64 {
    u64::from(read_cost) * SAMPLE / PATIENCE
}

/// A read that is counted, or a part of it: the time at which it began, and the blocks that the
/// thread had read by then.
#[derive(Clone, Copy)]
pub struct CountedRead {
    begin_ns: u64,
    blocks: u64,
}

/// The cost of a keyspace's reads.
#[derive(Debug, Default)]
pub struct ReadCost {
    on: AtomicBool,
    /// Whether a table has cost as much as its size since the last check.
    is_due: AtomicBool,
    /// Counted always. It is next to flags, where it takes no room.
    pub(crate) scan_length: ScanLength,
    /// Made by the first read that is counted.
    sums: OnceLock<Box<ReadSums>>,
}

/// The sums over the counted reads.
#[derive(Debug, Default)]
struct ReadSums {
    reads: AtomicU64,
    /// Tables that they asked in vain, or searched.
    tables: AtomicU64,
    /// The cost of those.
    bytes: AtomicU64,
}

impl ReadCost {
    /// Makes empty counts. `on`: whether reads are counted.
    pub fn new(on: bool) -> ReadCost {
        ReadCost { on: AtomicBool::new(on), ..ReadCost::default() }
    }

    /// Begins or ends counting: the policy has changed.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Notes that a seek begins. `None` if it is not counted.
    #[inline]
    pub(crate) fn begin_seek(&self, counters: &Counters, clock: &dyn Clock) -> Option<CountedRead> {
        if !self.on.load(Ordering::Relaxed) || !is_sampled(counters.here().seeks.get()) {
            return None;
        }
        Some(self.begin(counters, clock))
    }

    /// Notes that a recorded get goes past the memtables. `None` if it is not counted.
    #[cold]
    pub(crate) fn begin_get(&self, counters: &Counters, clock: &dyn Clock) -> Option<CountedRead> {
        self.on.load(Ordering::Relaxed).then(|| {
            self.sums().reads.fetch_add(1, Ordering::Relaxed);
            self.begin(counters, clock)
        })
    }

    /// Begins a part of a read.
    #[inline]
    pub fn begin(&self, counters: &Counters, clock: &dyn Clock) -> CountedRead {
        CountedRead { begin_ns: clock.monotonic_ns(), blocks: counters.here().blocks_read.get() }
    }

    /// Notes that a counted seek came to this key, or was for it.
    #[cold]
    pub(crate) fn end_seek(&self, view: &ReadView, key: &[u8], of_blocks: u32) {
        self.sums().reads.fetch_add(1, Ordering::Relaxed);
        let over = || view.runs.iter().filter_map(|run| Some((run.is_sst_log, run.file_of(key)?)));
        let tables = over().count().max(1) as u32;
        for (is_sst_log, file) in over() {
            self.add(file, is_sst_log, SEARCH_BYTES + of_blocks / tables);
        }
    }

    /// Notes that a counted get asked a table that did not end the search, and what that cost.
    #[cold]
    pub fn asked(&self, file: &VersionFile, is_sst_log: bool, bytes: u32) {
        self.add(file, is_sst_log, bytes);
    }

    fn sums(&self) -> &ReadSums {
        self.sums.get_or_init(Box::default)
    }

    fn add(&self, file: &VersionFile, is_sst_log: bool, bytes: u32) {
        let sums = self.sums();
        sums.tables.fetch_add(1, Ordering::Relaxed);
        sums.bytes.fetch_add(u64::from(bytes), Ordering::Relaxed);
        if !is_sst_log {
            return;
        }
        if worth_of(file.table.add_read_cost(bytes)) >= file.file.bytes {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a table has cost as much as its size since the last call.
    pub fn take_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::Relaxed)
    }

    /// Bytes that one more table over every point would have cost all reads so far.
    pub fn of_one_table(&self) -> u64 {
        let Some(sums) = self.sums.get() else { return 0 };
        let [reads, tables, bytes] =
            [&sums.reads, &sums.tables, &sums.bytes].map(|n| n.load(Ordering::Relaxed));
        let each = bytes as f64 / tables.max(1) as f64;
        (reads.saturating_mul(SAMPLE) as f64 * each) as u64
    }
}

impl CountedRead {
    /// Returns the cost of a table that was asked since then, in vain. `is_searched`: its filter did
    /// not rule the key out. A filter takes some 40 ns where the processor's caches have it, and
    /// several times as long where they do not: its time is measured, up to that of a search.
    pub(crate) fn of_table(
        self,
        counters: &Counters,
        clock: &dyn Clock,
        more: usize,
        is_searched: bool,
    ) -> u32 {
        let of_blocks = self.of_blocks(counters, clock, more);
        if is_searched {
            return of_blocks.saturating_add(SEARCH_BYTES);
        }
        let ns = clock.monotonic_ns().saturating_sub(self.begin_ns);
        let of_filter = (ns / NS_PER_BYTE).clamp(FILTER_BYTES.into(), SEARCH_BYTES.into()) as u32;
        of_blocks.max(of_filter)
    }

    /// Returns the cost of the blocks that were read since then, and of `more` that another thread
    /// read: the time that has passed, but at most the time that a device takes. A system that has
    /// the blocks in memory supplies them many times faster than the device; a thread may wait for
    /// other things.
    pub(crate) fn of_blocks(self, counters: &Counters, clock: &dyn Clock, more: usize) -> u32 {
        // Threads may share a counter.
        let blocks = counters.here().blocks_read.get().saturating_sub(self.blocks) + more as u64;
        if blocks == 0 {
            return 0;
        }
        let ns = clock.monotonic_ns().saturating_sub(self.begin_ns);
        let bytes = (ns / NS_PER_BYTE).min(blocks.saturating_mul(DEVICE_BYTES.into()));
        bytes.try_into().unwrap_or(u32::MAX)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_filter_costs_its_time_up_to_that_of_a_search() {
        let (env, handles) = windrow_env::testing::env(1);
        let (cost, counters) = (ReadCost::new(true), Counters::default());
        let mut now_ns = env.clock.monotonic_ns();
        for (ns, is_searched, bytes) in [
            (0, false, FILTER_BYTES),
            (39, false, FILTER_BYTES),
            (300, false, 30),
            // The thread was interrupted.
            (5_000_000, false, SEARCH_BYTES),
            (0, true, SEARCH_BYTES),
            (5_000_000, true, SEARCH_BYTES),
        ] {
            handles.clock.set_monotonic_ns(now_ns);
            let from = cost.begin(&counters, &*env.clock);
            now_ns += ns;
            handles.clock.set_monotonic_ns(now_ns);
            let found = from.of_table(&counters, &*env.clock, 0, is_searched);
            assert_eq!(found, bytes, "{ns} ns, searched: {is_searched}");
        }
        // A block that was read counts by its time, too.
        let from = cost.begin(&counters, &*env.clock);
        handles.clock.set_monotonic_ns(now_ns + 20_000);
        assert_eq!(from.of_table(&counters, &*env.clock, 1, true), 2000 + SEARCH_BYTES);
    }
}
