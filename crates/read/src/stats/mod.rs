//! The statistics of a database: counters that threads add to, and the snapshot of them that users
//! read.
//!
//! Counters that reads touch are in stripes, one per thread as far as they go: a shared cache line
//! would cost a cached get more than its block search.
//!
//! Owns: every counter, the reasons for which a writer pauses, the table and the JSON that show
//! them (`stats/show.rs`). Never does: decide anything; counters are relaxed, exact when nothing
//! runs, and otherwise not consistent with each other.

pub mod chain;
mod latency;
mod show;

pub use latency::{Latencies, Latency};

use crate::stats::chain::{ChainStats, Chains};
use latency::AllTimings;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Levels that are counted apart; deeper ones count as the last.
pub(crate) const LEVELS_COUNTED: usize = 16;

const STRIPES: usize = 16;

/// A relaxed counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One list makes the counters of a stripe, the fields of [`Stats`], and their JSON.
macro_rules! tickers {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// The counters of some threads. Get it by [`Counters::here`].
        #[derive(Debug, Default)]
        #[repr(align(128))] // two lines: the prefetcher fetches them in pairs
        pub struct Stripe {
            $($(#[doc = $doc])+ pub $name: Counter,)*
            level_hits: [Counter; LEVELS_COUNTED],
        }

        /// The counts of the database since it was opened, and its files and memory of this moment.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)*
            /// Levels from 0 on, over all keyspaces.
            pub levels: Vec<LevelStats>,
            /// Pauses of writers, one row per [`PauseReason`].
            pub pauses: Vec<PauseStats>,
            /// How long operations took.
            pub latencies: Latencies,
            /// Chains of merges.
            pub chains: ChainStats,
            /// Each keyspace's tree.
            pub keyspaces: Vec<KeyspaceStats>,
            /// Memory in use, by share of the budget.
            pub memory: MemoryStats,
            /// Bytes of all write-ahead logs on disk.
            pub wal_live_bytes: u64,
            /// Bytes of the logs that are kept for the feed of changes alone (`changes_bytes`).
            pub changes_bytes: u64,
            /// The first sequence number from which the feed of changes can begin.
            pub changes_begin: u64,
            /// Snapshots alive, those that iterators took while memory was short included.
            pub readers_open: u64,
            /// Files that are not needed and not removed yet: [`Follower`](struct.Follower.html)s
            /// read them, as a rule.
            pub files_waiting: u64,
            /// Events that the listener panicked on.
            pub listener_panics: u64,
            /// Microseconds since the database was opened.
            pub uptime_us: u64,
        }

        impl Stats {
            fn add_stripe(&mut self, stripe: &Stripe) {
                $(self.$name += stripe.$name.get();)*
                for (level, hits) in self.levels.iter_mut().zip(&stripe.level_hits) {
                    level.get_hits += hits.get();
                }
            }

            fn tickers(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

tickers! {
    /// Keys looked up (each key of a `multi_get` counts).
    gets,
    /// Keys that were there.
    gets_found,
    /// Keys answered by the memtable that was being filled.
    get_hits_memtable,
    /// Keys answered by a frozen memtable.
    get_hits_frozen,
    /// Positionings of cursors and iterators.
    seeks,
    /// Entries that cursors and iterators returned.
    entries_scanned,
    /// Entries that scans and gets passed over: old versions, tombstones, expired.
    entries_skipped,
    /// Deleted keys that cursors and iterators walked over, each a tombstone at least.
    tombstones_walked,
    /// Ranges of deleted keys that they went over at once, since a scan before had walked them.
    gaps_skipped,
    /// Reads of blocks from files by gets and scans. A scan may read several blocks at once.
    blocks_read,
    /// Bytes of those blocks as they are on disk.
    blocks_read_bytes,
    /// Reads of blocks from files by scans, seeks included.
    scan_blocks_read,
    /// Bytes of those blocks as they are on disk.
    scan_blocks_read_bytes,
    /// Blocks found in the block cache.
    cache_hits,
    /// Blocks that were not.
    cache_misses,
    /// Filters asked.
    filter_checks,
    /// Filters that said no, each a table not searched.
    filter_negatives,
    /// Filters that said maybe where the key was not.
    filter_false_positives,
    /// Tables opened: footer and properties were read, and index and filter, or the top level
    /// over their partitions.
    tables_opened,
    /// Bytes read for that.
    tables_opened_bytes,
    /// Partitions of indexes and filters read from files by gets and scans.
    partitions_read,
    /// Bytes of those as they are on disk.
    partitions_read_bytes,
    /// Batches committed.
    batches,
    /// Operations in them.
    operations,
    /// Bytes of keys and values in them.
    user_bytes,
    /// Bytes appended to write-ahead logs.
    wal_bytes,
    /// Times a write-ahead log was made durable.
    wal_syncs,
    /// Memtables flushed.
    flushes,
    /// Times writing was turned on again after a failure
    /// ([`Db::resume`](struct.Db.html#method.resume)).
    resumes,
    /// Entries that merges and flushes read.
    merge_entries_in,
    /// Entries that they wrote.
    merge_entries_out,
    /// Merges that were done again, without the compaction filter, for a snapshot that was taken
    /// while they ran. Their first reads and writes count as another merge.
    merges_repeated,
    /// Bytes appended to manifests.
    manifest_bytes,
    /// Tables deleted.
    tables_deleted,
}

/// The reason for which a writer paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PauseReason {
    /// All memtables were full: flushes are behind.
    MemtablesFull,
    /// Level 0 was too deep: merges out of it are behind.
    Level0Deep,
    /// Levels were over their capacity: merges are behind.
    Debt,
    /// The next write-ahead log was not ready.
    WalPrepare,
    /// The writer asked for durability and waited for the device.
    SyncWait,
}

impl PauseReason {
    /// Every reason, in the order of [`Stats::pauses`].
    pub const ALL: [PauseReason; 5] = [
        PauseReason::MemtablesFull,
        PauseReason::Level0Deep,
        PauseReason::Debt,
        PauseReason::WalPrepare,
        PauseReason::SyncWait,
    ];

    /// The reason's name in tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            PauseReason::MemtablesFull => "memtables_full",
            PauseReason::Level0Deep => "level0_deep",
            PauseReason::Debt => "debt",
            PauseReason::WalPrepare => "wal_prepare",
            PauseReason::SyncWait => "sync_wait",
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PauseReason::MemtablesFull => "all memtables are full",
            PauseReason::Level0Deep => "level 0 is too deep",
            PauseReason::Debt => "merges are behind",
            PauseReason::WalPrepare => "the next log is not ready",
            PauseReason::SyncWait => "waiting for the device",
        })
    }
}

/// Pauses of writers, by reason.
#[derive(Debug, Default)]
pub struct Pauses([PauseCounters; PauseReason::ALL.len()]);

#[derive(Debug, Default)]
struct PauseCounters {
    count: Counter,
    total_us: Counter,
    max_us: AtomicU64,
}

#[derive(Debug, Default)]
struct LevelCounters {
    read_files: Counter,
    read_bytes: Counter,
    written_bytes: Counter,
    merges: Counter,
    moves: Counter,
    drops: Counter,
}

/// The input of a merge; a flush and an ingestion read no table.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeInput {
    pub files: u64,
    pub bytes: u64,
}

/// All counters of one database.
#[derive(Debug, Default)]
pub struct Counters {
    stripes: Box<[Stripe; STRIPES]>,
    levels: [LevelCounters; LEVELS_COUNTED],
    /// Pauses of writers.
    pub pauses: Pauses,
    /// How long operations take.
    pub timings: AllTimings,
    /// Chains of merges that ended.
    pub chains: Chains,
}

/// A counter by its name is the calling thread's: `counters.gets.add(1)`. To add to several,
/// [`Counters::here`] finds them once.
impl std::ops::Deref for Counters {
    type Target = Stripe;

    #[inline]
    fn deref(&self) -> &Stripe {
        self.here()
    }
}

static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);
thread_local!(static STRIPE: usize = NEXT_STRIPE.fetch_add(1, Ordering::Relaxed) % STRIPES);

/// The calling thread's stripe: threads take turns, so up to `STRIPES` share none.
fn stripe_index() -> usize {
    // A thread that counts while it ends has lost its own: any stripe serves.
    STRIPE.try_with(|index| *index).unwrap_or(0)
}

fn counted(level: u32) -> usize {
    (level as usize).min(LEVELS_COUNTED - 1)
}

impl Counters {
    /// The calling thread's counters.
    #[inline]
    pub fn here(&self) -> &Stripe {
        &self.stripes[stripe_index()]
    }

    /// Counts a merge into `level`, or a flush to level 0, with its reads and writes.
    pub fn merged(&self, level: u32, read: MergeInput, written_bytes: u64) {
        let counters = &self.levels[counted(level)];
        counters.read_files.add(read.files);
        counters.read_bytes.add(read.bytes);
        counters.written_bytes.add(written_bytes);
        counters.merges.add(1);
    }

    /// Counts a table that moved to `level` without being rewritten.
    pub fn moved(&self, level: u32) {
        self.levels[counted(level)].moves.add(1);
    }

    /// Counts a table that was dropped from `level` without being read.
    pub fn dropped(&self, level: u32) {
        self.levels[counted(level)].drops.add(1);
    }

    /// The counts so far. The caller adds the files and memory of this moment:
    /// [`Stats::push_keyspace`] and the plain fields.
    pub fn snapshot(&self) -> Stats {
        let mut stats = Stats {
            levels: (0..).zip(&self.levels).map(|(level, c)| c.snapshot(level)).collect(),
            pauses: self.pauses.snapshot(),
            latencies: self.timings.snapshot(),
            chains: self.chains.snapshot(),
            ..Stats::default()
        };
        self.stripes.iter().for_each(|stripe| stats.add_stripe(stripe));
        let unused = stats.levels.iter().rev().take_while(|level| level.is_unused()).count();
        stats.levels.truncate(LEVELS_COUNTED - unused);
        stats
    }
}

impl Stripe {
    /// Counts a block that was in the cache.
    #[inline]
    pub(crate) fn cache_hit(&self) {
        self.cache_hits.add(1);
    }

    /// Counts a block that was not in the cache and is read from its file, `bytes` there.
    pub(crate) fn block_read(&self, bytes: u64) {
        self.cache_misses.add(1);
        self.blocks_read.add(1);
        self.blocks_read_bytes.add(bytes);
    }

    /// Counts a table that was opened, for which `bytes` of its file were read.
    pub(crate) fn table_opened(&self, bytes: u64) {
        self.tables_opened.add(1);
        self.tables_opened_bytes.add(bytes);
    }

    /// Counts a partition of an index or filter that is read from its file, `bytes` there.
    pub(crate) fn partition_read(&self, bytes: u64) {
        self.partitions_read.add(1);
        self.partitions_read_bytes.add(bytes);
    }

    /// Counts a block that a scan reads from its file, `bytes` there.
    pub(crate) fn scan_block_read(&self, bytes: u64) {
        self.block_read(bytes);
        self.scan_blocks_read.add(1);
        self.scan_blocks_read_bytes.add(bytes);
    }

    /// Counts a get that was answered by a table of `level`.
    #[inline]
    pub(crate) fn hit_level(&self, level: u32) {
        self.level_hits[counted(level)].add(1);
    }
}

impl Pauses {
    /// Counts a pause of a writer for `us` microseconds.
    #[inline]
    pub fn record(&self, reason: PauseReason, us: u64) {
        let counters = &self.0[reason as usize];
        counters.count.add(1);
        counters.total_us.add(us);
        counters.max_us.fetch_max(us, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Vec<PauseStats> {
        let row = |(&reason, counters): (&PauseReason, &PauseCounters)| PauseStats {
            reason,
            count: counters.count.get(),
            total_us: counters.total_us.get(),
            max_us: counters.max_us.load(Ordering::Relaxed),
        };
        PauseReason::ALL.iter().zip(&self.0).map(row).collect()
    }
}

impl LevelCounters {
    fn snapshot(&self, level: u32) -> LevelStats {
        LevelStats {
            level,
            read_files: self.read_files.get(),
            read_bytes: self.read_bytes.get(),
            written_bytes: self.written_bytes.get(),
            merges: self.merges.get(),
            moves: self.moves.get(),
            drops: self.drops.get(),
            ..LevelStats::default()
        }
    }
}

/// One level over all keyspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Its number, from 0.
    pub level: u32,
    /// Its files now.
    pub shape: LevelShape,
    /// Tables that merges into it read.
    pub read_files: u64,
    /// Bytes that merges into it read.
    pub read_bytes: u64,
    /// Bytes that merges (flushes, for level 0) wrote to it.
    pub written_bytes: u64,
    /// Merges (flushes, for level 0) into it.
    pub merges: u64,
    /// Tables moved to it without being rewritten.
    pub moves: u64,
    /// Tables dropped from it without being read: deletes hid all their entries, or all their
    /// entries were deletes and nothing older was below.
    pub drops: u64,
    /// Gets that one of its tables answered.
    pub get_hits: u64,
}

impl LevelStats {
    fn is_unused(&self) -> bool {
        *self == LevelStats { level: self.level, ..LevelStats::default() }
    }
}

/// The files of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelShape {
    /// Tables in its sorted run.
    pub run_files: u64,
    /// Tables in its log.
    pub log_files: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// One keyspace's tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Its policy, one value per axis.
    pub policy: String,
    /// With `use=measured`, the use that was measured, and why; else empty.
    pub measured_use: String,
    /// Bytes of its memtables, frozen ones included.
    pub memtables_bytes: u64,
    /// Its levels from 0 on.
    pub levels: Vec<LevelShape>,
    /// Bytes that each of them may hold before tables are merged away from it, as the policy's
    /// shape says; 0 if nothing bounds it: level 0, which is counted by its depth, and the last
    /// level.
    pub capacities: Vec<u64>,
    /// Bytes that the SST-log of each of them may hold before it is merged down. Level 0 is a log
    /// as a whole: its number is the bytes that it gathers.
    pub log_capacities: Vec<u64>,
    /// The price of a table over a point, in hundredths of a byte rewritten per byte put, if the
    /// policy goes by its use (the dial of docs/policies/composition.md); 0 if it does not.
    pub file_price_percent: u64,
}

/// Pauses of writers for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStats {
    /// The reason.
    pub reason: PauseReason,
    /// The number of pauses.
    pub count: u64,
    /// Their sum, in microseconds.
    pub total_us: u64,
    /// The longest, in microseconds.
    pub max_us: u64,
}

/// Memory in use, in bytes, by share of the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// `memory_bytes`.
    pub budget_bytes: u64,
    /// Memtables, frozen ones included.
    pub memtables_bytes: u64,
    /// Blocks in the cache.
    pub cache_bytes: u64,
    /// Memory that only readers hold: iterators, the blocks that they and values are on, bytes read
    /// ahead, and memtables that were flushed under them.
    pub readers_bytes: u64,
    /// Indexes, filters and tombstones of open tables, and the facts known of all tables in use:
    /// their bounds, which are keys, and their counts.
    pub tables_bytes: u64,
    /// Buffers of merges and flushes.
    pub merge_bytes: u64,
    /// The record of recent writes, and the locks on keys, as far as open transactions need them.
    pub transactions_bytes: u64,
    /// Memory of the program itself, by its own account
    /// ([`Db::set_outside_memory`](struct.Db.html#method.set_outside_memory)).
    pub outside_bytes: u64,
}

impl MemoryStats {
    /// The sum of all.
    pub fn used_bytes(&self) -> u64 {
        self.memtables_bytes
            + self.cache_bytes
            + self.readers_bytes
            + self.tables_bytes
            + self.merge_bytes
            + self.transactions_bytes
            + self.outside_bytes
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Stats {
    /// Adds a keyspace, and its files to the levels.
    #[doc(hidden)]
    pub fn push_keyspace(&mut self, keyspace: KeyspaceStats) {
        for (level, shape) in keyspace.levels.iter().enumerate() {
            if level >= self.levels.len() {
                self.levels.push(LevelStats { level: level as u32, ..LevelStats::default() });
            }
            let total = &mut self.levels[level].shape;
            total.run_files += shape.run_files;
            total.log_files += shape.log_files;
            total.bytes += shape.bytes;
        }
        self.keyspaces.push(keyspace);
    }

    /// Bytes that flushes and merges wrote.
    pub fn tables_written_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.written_bytes).sum()
    }

    /// Bytes written to the device (logs, manifests, tables) per byte of keys
    /// and values that users wrote; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        let written = self.wal_bytes + self.manifest_bytes + self.tables_written_bytes();
        ratio(written, self.user_bytes)
    }

    /// A number that differs between two states of the counters that follow each other.
    #[doc(hidden)]
    pub fn changes(&self) -> u64 {
        self.tickers().map(|(_, value)| value).fold(1, u64::wrapping_add)
    }

    /// Reads of blocks from files, and their bytes, by get.
    pub fn reads_per_get(&self) -> (f64, f64) {
        let reads = self.blocks_read.saturating_sub(self.scan_blocks_read);
        let bytes = self.blocks_read_bytes.saturating_sub(self.scan_blocks_read_bytes);
        (ratio(reads, self.gets), ratio(bytes, self.gets))
    }

    /// Reads of blocks from files, and their bytes, by seek, with the reads of the scan after it.
    pub fn reads_per_seek(&self) -> (f64, f64) {
        (ratio(self.scan_blocks_read, self.seeks), ratio(self.scan_blocks_read_bytes, self.seeks))
    }

    /// Share of block look-ups that the block cache answered, 0 to 1.
    pub fn cache_hit_ratio(&self) -> f64 {
        ratio(self.cache_hits, self.cache_hits + self.cache_misses)
    }

    /// Share of the filters asked about an absent key that said maybe, 0 to 1.
    pub fn filter_false_positive_ratio(&self) -> f64 {
        ratio(self.filter_false_positives, self.filter_false_positives + self.filter_negatives)
    }

    /// Bytes of all tables in the tree.
    pub fn tree_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.shape.bytes).sum()
    }

    /// The pauses for one reason.
    pub fn pause(&self, reason: PauseReason) -> PauseStats {
        let none = PauseStats { reason, count: 0, total_us: 0, max_us: 0 };
        self.pauses.iter().copied().find(|pause| pause.reason == reason).unwrap_or(none)
    }
}

#[cfg(test)]
mod tests;
