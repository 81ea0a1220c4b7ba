//! What tables cost reads, in bytes of merging that would take as long.
//!
//! A get asks every table over its key, a seek searches each. Of those of SST-logs, level 0's
//! included, each keeps what it has cost (`TableHandle::read_cost`), so that the policy can merge
//! those that reads have paid for (`windrow_plan::pick::for_reads`). The sum over all
//! tables says what one more over every point would cost.
//!
//! One read in [`SAMPLE`] is counted, for as many. Only policies that ask for it switch this on;
//! otherwise a seek reads one flag. What was counted is lost at a close.
//!
//! Owns: what a read costs, and the counts. Never does: decide.

use super::access::{SAMPLE, is_sampled};
use super::scan_length::ScanLength;
use super::view::{ReadFile, ReadView};
use crate::stats::Counters;
use std::sync::OnceLock;
use windrow_env::Clock;
use windrow_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a thread takes to merge a byte.
const NS_PER_BYTE: u64 = 10;
/// To ask a filter that is in memory, some 40 ns.
const FILTER_BYTES: u32 = 4;
/// To search a table whose blocks are in memory, a microsecond.
const SEARCH_BYTES: u32 = 96;
/// To read a block from a device, 80 us at most.
const DEVICE_BYTES: u32 = 8 << 10;

/// How often reads have paid for a merge before it is made. What is written, and the blocks that leave
/// the cache, are no less of a price than the time; and writes come over the tables before long, which merge
/// them anyway. So where reads soon end, or writes go on, a third is lost and not the half.
const PATIENCE: u64 = 3;

/// How many bytes of merging a table's reads have paid for, of what those that were counted cost.
pub fn worth_of(read_cost: u32) -> u64 {
    u64::from(read_cost) * SAMPLE / PATIENCE
}

/// A read that is counted, or a part of it: what the clock said when it began, and the blocks that
/// the thread had read by then.
#[derive(Clone, Copy)]
pub struct Counted {
    begin_ns: u64,
    blocks: u64,
}

/// What reads of a keyspace have cost.
#[derive(Debug, Default)]
pub struct ReadCost {
    on: AtomicBool,
    /// A table has cost as much as its size since this was last asked.
    is_due: AtomicBool,
    /// Counted always; next to flags, where it takes no room.
    pub(crate) scan_length: ScanLength,
    /// Made by the first read that is counted.
    sums: OnceLock<Box<Sums>>,
}

/// Of the reads that are counted.
#[derive(Debug, Default)]
struct Sums {
    reads: AtomicU64,
    /// Tables that they asked in vain, or searched.
    tables: AtomicU64,
    /// What those cost.
    bytes: AtomicU64,
}

impl ReadCost {
    /// What reads cost from now on, counted or not.
    pub fn new(on: bool) -> ReadCost {
        ReadCost { on: AtomicBool::new(on), ..ReadCost::default() }
    }

    /// Begins or ends counting: the policy has changed.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// A seek begins. `None` where it is not counted.
    #[inline]
    pub(crate) fn begin_seek(&self, counters: &Counters, clock: &dyn Clock) -> Option<Counted> {
        if !self.on.load(Ordering::Relaxed) || !is_sampled(counters.here().seeks.get()) {
            return None;
        }
        Some(self.begin(counters, clock))
    }

    /// A get that is recorded goes past the memtables. `None` where it is not counted.
    #[cold]
    pub(crate) fn begin_get(&self, counters: &Counters, clock: &dyn Clock) -> Option<Counted> {
        self.on.load(Ordering::Relaxed).then(|| {
            self.sums().reads.fetch_add(1, Ordering::Relaxed);
            self.begin(counters, clock)
        })
    }

    /// A part of a read begins.
    #[inline]
    pub fn begin(&self, counters: &Counters, clock: &dyn Clock) -> Counted {
        Counted { begin_ns: clock.monotonic_ns(), blocks: counters.here().blocks_read.get() }
    }

    /// A counted seek came to this key, or was for it.
    #[cold]
    pub(crate) fn end_seek(&self, view: &ReadView, key: &[u8], of_blocks: u32) {
        self.sums().reads.fetch_add(1, Ordering::Relaxed);
        let over = || view.runs.iter().filter_map(|run| Some((run.is_sst_log, run.file_of(key)?)));
        let tables = over().count().max(1) as u32;
        for (is_sst_log, file) in over() {
            self.add(file, is_sst_log, SEARCH_BYTES + of_blocks / tables);
        }
    }

    /// A counted get asked a table that did not have the last word. `is_searched`: its filter
    /// did not rule the key out.
    #[cold]
    pub fn asked(&self, file: &ReadFile, is_sst_log: bool, is_searched: bool, of_blocks: u32) {
        let memory = if is_searched { SEARCH_BYTES } else { FILTER_BYTES };
        self.add(file, is_sst_log, of_blocks.saturating_add(memory));
    }

    fn sums(&self) -> &Sums {
        self.sums.get_or_init(Box::default)
    }

    fn add(&self, file: &ReadFile, is_sst_log: bool, bytes: u32) {
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

    /// Whether a table has cost as much as its size since this was last asked.
    pub fn take_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::Relaxed)
    }

    /// What one more table over every point would have cost all reads so far, in bytes.
    pub fn of_one_table(&self) -> u64 {
        let Some(sums) = self.sums.get() else { return 0 };
        let [reads, tables, bytes] =
            [&sums.reads, &sums.tables, &sums.bytes].map(|n| n.load(Ordering::Relaxed));
        let each = bytes as f64 / tables.max(1) as f64;
        (reads.saturating_mul(SAMPLE) as f64 * each) as u64
    }
}

impl Counted {
    /// What blocks have cost that were read since then, and `more` that another thread read: the time
    /// that has passed, as far as it takes a device so long. A system that has the blocks in memory
    /// supplies them many times faster than the device; a thread may wait for other things.
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
