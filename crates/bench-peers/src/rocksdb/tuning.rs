//! RocksDB's options for a memory budget, as its own documentation recommends them (the wiki's
//! "Setup Options and Basic Tuning", "RocksDB Tuning Guide", "Memory usage in RocksDB", "Write
//! Buffer Manager", "Block Cache", "Direct IO"). Each choice has its reason next to it; an option
//! that is not named keeps its default.
//!
//! Owns: its options, by name where experiments change them. Never does: open a database.

use crate::settings::Settings;
use rocksdb::statistics::StatsLevel;
use rocksdb::{
    BlockBasedOptions, BlockBasedTablePinningTier, Cache, CompactionPri, DBCompressionType,
    DataBlockIndexType, Options, WriteBufferManager,
};
use windrow_bench::store::{Codec, Common, Engine, Result};

/// The text of the report.
pub(super) const TEXT: &str = "Leveled compaction with dynamic level sizes. One block cache \
    (HyperClockCache) of 70 % of the budget holds blocks, indexes and filters, and memtables \
    are charged to it (write buffer manager); the rest is for what RocksDB does not charge. Two \
    memtables of a third of the budget each, 64 MiB at most (the variant quarter: of a quarter, \
    however much that is); level 1 of four memtables, files of one. Full Bloom filters of ten bits per key, blocks of 4 KiB with a hash index, files synced \
    by the megabyte. Statistics off, as by default: tickers cost a get of an absent key about a \
    quarter (the variant counted has them on). Key spaces are column families. Built as its crate \
    builds it. No expiry by key.";

/// The variants, in this order: with tickers, for runs that are counted rather than timed; with the
/// writers of the log and of the memtable in turn; with memtables and files of 8 MiB; with
/// memtables of a quarter of the budget, so that no engine gains by their share; with three
/// background jobs, however few threads others have; with indexes and filters of every level pinned
/// in the cache; with transactions that lock nothing (those of the others lock).
/// the others lock).
pub(super) const VARIANTS: &[&str] =
    &["counted", "pipelined", "small", "quarter", "three_jobs", "pinned", "optimistic"];

const NAMES: &[&str] = &[
    "block_bytes",
    "bytes_per_sync",
    "cache",
    "cache_bytes",
    "dynamic_levels",
    "file_bytes",
    "filter_bits",
    "hash_index",
    "level0_files",
    "level0_slowdown",
    "level0_stop",
    "level_base_bytes",
    "memtable_bytes",
    "memtables",
    "multiplier",
    "pick",
    "pin",
    "statistics",
    "subcompactions",
];

const MIB: u64 = 1 << 20;

/// The percentage of the budget that the cache, with the memtables charged to it, may take. The
/// rest is for memory that it does not count: buffers of compactions, open files, and above all the
/// allocator's share of a cache full of 4 KiB blocks. (With 168 of 192 MiB a read-only run held 235
/// MiB resident.)
const CACHE_PERCENT: u64 = 70;

/// Returns the engine's options for `common`.
///
/// # Errors
/// If a setting, its value or the variant is unknown.
pub(super) fn options(engine: &Engine, common: &Common) -> Result<Options> {
    let settings = Settings::new(engine, NAMES, common)?;
    let cache = cache(&settings)?;
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&table(&settings, cache.as_ref())?);
    memtables(&settings, &mut options, cache.as_ref())?;
    levels(&settings, &mut options)?;
    options.set_compression_type(match common.codec {
        Codec::None => DBCompressionType::None,
        Codec::Lz4 => DBCompressionType::Lz4,
    });
    let jobs = match common.variant.as_str() {
        "three_jobs" => 3,
        _ => i32::try_from(common.background_threads)?,
    };
    options.set_max_background_jobs(jobs);
    options.set_use_direct_reads(common.direct_io);
    options.set_use_direct_io_for_flush_and_compaction(common.direct_io);
    // Recommended: the page cache then writes tables out evenly.
    options.set_bytes_per_sync(settings.bytes("bytes_per_sync", MIB)?);
    // Off by default: it helps several writers and costs a single one.
    options.set_enable_pipelined_write(common.variant == "pipelined");
    // Six pairs of runs, medians: a get of an absent key 0.42 us with tickers
    // and 0.31 without, one that finds its key 2.9 and 2.8, a put 3.9 us of
    // the processor and 3.8.
    if settings.on("statistics", common.variant == "counted")? {
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    Ok(options)
}

/// Makes one cache for everything, memtables included, so that the budget holds: HyperClockCache,
/// "generally recommended over LRUCache". `None` for 0 bytes.
fn cache(settings: &Settings<'_>) -> Result<Option<Cache>> {
    let share = settings.common().memory_bytes / 100 * CACHE_PERCENT;
    let bytes = settings.bytes("cache_bytes", share)? as usize;
    let lru = settings.one_of("cache", [("hyper", false), ("lru", true)])?;
    Ok(match (bytes, lru) {
        (0, _) => None,
        (_, true) => Some(Cache::new_lru_cache(bytes)),
        (_, false) => Some(Cache::new_hyper_clock_cache(bytes, 0)),
    })
}

fn table(settings: &Settings<'_>, cache: Option<&Cache>) -> Result<BlockBasedOptions> {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(settings.bytes("block_bytes", 4096)? as usize);
    let filter_bits = settings.number("filter_bits", 10.0)?;
    if filter_bits > 0.0 {
        // A full filter; the argument that chooses one by block has no effect.
        table.set_bloom_filter(filter_bits, false);
    }
    match cache {
        None => table.disable_cache(),
        Some(cache) => {
            table.set_block_cache(cache);
            // Indexes and filters are charged to the cache, or the budget would not hold. Those of
            // level 0 stay in it.
            table.set_cache_index_and_filter_blocks(true);
            table.set_cache_index_and_filter_blocks_with_high_priority(true);
            table.set_pin_l0_filter_and_index_blocks_in_cache(true);
            let pins = [("level0", false), ("all", true)];
            if settings.one_of("pin", pins)? || settings.common().variant == "pinned" {
                table.set_unpartitioned_pinning_tier(BlockBasedTablePinningTier::All);
            }
        }
    }
    // "Data Block Hash Index": fewer comparisons in point reads.
    if settings.on("hash_index", true)? {
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        table.set_data_block_hash_ratio(0.75);
    }
    Ok(table)
}

/// Returns the bytes of a memtable: the default size, less where the budget is small.
fn memtable_bytes(settings: &Settings<'_>) -> Result<u64> {
    let common = settings.common();
    let default = match common.variant.as_str() {
        "quarter" => common.memory_bytes / 4,
        "small" => (8 * MIB).min(common.memory_bytes / 3),
        _ => (64 * MIB).min(common.memory_bytes / 3),
    };
    settings.bytes("memtable_bytes", default)
}

fn memtables(settings: &Settings<'_>, options: &mut Options, cache: Option<&Cache>) -> Result<()> {
    let bytes = memtable_bytes(settings)? as usize;
    let count = settings.number("memtables", 2)?;
    options.set_write_buffer_size(bytes);
    options.set_max_write_buffer_number(count);
    // The manager bounds the memtables of all column families together, and charges them to the
    // cache. Stalls are left to the ordinary rules, which know the compactions' state.
    let all = bytes * usize::try_from(count)?;
    let manager = match cache {
        None => WriteBufferManager::new_write_buffer_manager(all, false),
        Some(cache) => {
            WriteBufferManager::new_write_buffer_manager_with_cache(all, false, cache.clone())
        }
    };
    options.set_write_buffer_manager(&manager);
    Ok(())
}

fn levels(settings: &Settings<'_>, options: &mut Options) -> Result<()> {
    // The tuning guide's rule: level 1 about as large as level 0 when it is compacted, which is
    // four memtables. With memtables of 64 MiB these are the defaults.
    let memtable = memtable_bytes(settings)?;
    options.set_max_bytes_for_level_base(settings.bytes("level_base_bytes", 4 * memtable)?);
    options.set_target_file_size_base(settings.bytes("file_bytes", memtable)?);
    options.set_max_bytes_for_level_multiplier(settings.number("multiplier", 10.0)?);
    // The default since 8.4; said here because it decides space amplification.
    options.set_level_compaction_dynamic_level_bytes(settings.on("dynamic_levels", true)?);
    options.set_level_zero_file_num_compaction_trigger(settings.number("level0_files", 4)?);
    options.set_level_zero_slowdown_writes_trigger(settings.number("level0_slowdown", 20)?);
    options.set_level_zero_stop_writes_trigger(settings.number("level0_stop", 36)?);
    options.set_max_subcompactions(settings.number("subcompactions", 1)?);
    let picks = [
        ("overlap", CompactionPri::MinOverlappingRatio),
        ("size", CompactionPri::ByCompensatedSize),
        ("oldest_largest", CompactionPri::OldestLargestSeqFirst),
        ("oldest_smallest", CompactionPri::OldestSmallestSeqFirst),
        ("round_robin", CompactionPri::RoundRobin),
    ];
    options.set_compaction_pri(settings.one_of("pick", picks)?);
    Ok(())
}
