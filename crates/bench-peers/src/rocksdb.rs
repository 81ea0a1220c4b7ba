//! RocksDB behind the `Store` trait, tuned for a memory budget as its own
//! documentation recommends (the wiki's "Setup Options and Basic Tuning",
//! "Memory usage in RocksDB", "Write Buffer Manager", "Block Cache",
//! "Direct IO"). Each choice says why; what is not said is the default.
//!
//! `--set rocksdb.NAME=VALUE` changes one of: `cache` (`hyper`, `lru`),
//! `cache_percent` (of the budget), `pin` (`level0`, `all`), `hash_index` (`on`, `off`), `memtable_mib`.

use rocksdb::{
    BlockBasedOptions, BlockBasedTablePinningTier, Cache, DB, DBCompressionType,
    DataBlockIndexType, Options, ReadOptions, WaitForCompactOptions, WriteBufferManager,
    WriteOptions,
};
use std::path::Path;
use windrow_bench::store::{Common, Engine, Result, Store};

/// RocksDB.
pub(crate) const ENGINE: Engine = Engine { name: "rocksdb", open };

const MIB: u64 = 1 << 20;

/// Percent of the budget that the cache, which the memtables are charged to,
/// may take. The rest is for what it does not count: buffers of compactions,
/// open files, and above all the allocator's share of a cache full of 4 KiB
/// blocks. (With 168 of 192 MiB a read-only run held 235 MiB resident.)
const CACHE_PERCENT: u64 = 70;

struct RocksDb {
    db: DB,
    write: WriteOptions,
}

struct Tuning<'a>(&'a Common);

impl Tuning<'_> {
    fn value(&self, name: &str, default: &'static str) -> String {
        let named = |(n, _): &&(String, String)| n.strip_prefix("rocksdb.") == Some(name);
        self.0.settings.iter().rfind(named).map_or(default.to_owned(), |(_, v)| v.clone())
    }

    /// One cache for everything, memtables included, so that the budget holds:
    /// HyperClockCache, "generally recommended over LRUCache".
    fn cache(&self) -> Cache {
        let percent: u64 = self.value("cache_percent", "").parse().unwrap_or(CACHE_PERCENT);
        let bytes = (self.0.memory_bytes * percent / 100) as usize;
        match self.value("cache", "hyper").as_str() {
            "lru" => Cache::new_lru_cache(bytes),
            _ => Cache::new_hyper_clock_cache(bytes, 0),
        }
    }

    fn table(&self, cache: &Cache) -> BlockBasedOptions {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(cache);
        table.set_block_size(4096);
        // Full filters of ten bits per key.
        table.set_bloom_filter(10.0, false);
        // Indexes and filters are charged to the cache, or the budget would
        // not hold; those of level 0 stay in it.
        table.set_cache_index_and_filter_blocks(true);
        table.set_cache_index_and_filter_blocks_with_high_priority(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        if self.value("pin", "level0") == "all" {
            table.set_unpartitioned_pinning_tier(BlockBasedTablePinningTier::All);
        }
        // "Data Block Hash Index": fewer comparisons in point reads.
        if self.value("hash_index", "on") == "on" {
            table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
            table.set_data_block_hash_ratio(0.75);
        }
        table
    }

    fn options(&self, cache: &Cache) -> Result<Options> {
        let memtable_mib: u64 = self.value("memtable_mib", "64").parse()?;
        // The default size and number, less where the budget is small.
        let memtable_bytes = (memtable_mib * MIB).min(self.0.memory_bytes / 3);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&self.table(cache));
        options.set_write_buffer_size(memtable_bytes as usize);
        options.set_max_write_buffer_number(2);
        // Charges the memtables to the cache; stalling is left to the
        // ordinary rules, which know the compactions' state.
        let memtables = WriteBufferManager::new_write_buffer_manager_with_cache(
            (2 * memtable_bytes) as usize,
            false,
            cache.clone(),
        );
        options.set_write_buffer_manager(&memtables);
        options.set_compression_type(DBCompressionType::None);
        options.set_max_background_jobs(self.0.background_threads as i32);
        // The default since 8.4; said here because it decides space amplification.
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_use_direct_reads(self.0.direct_io);
        options.set_use_direct_io_for_flush_and_compaction(self.0.direct_io);
        // One thread writes, so neither pipelined nor unordered writes would help.
        options.set_enable_pipelined_write(false);
        Ok(options)
    }
}

fn open(dir: &Path, common: &Common) -> Result<Box<dyn Store>> {
    let tuning = Tuning(common);
    let options = tuning.options(&tuning.cache())?;
    let mut write = WriteOptions::default();
    write.disable_wal(false);
    write.set_sync(false);
    Ok(Box::new(RocksDb { db: DB::open(&options, dir)?, write }))
}

impl Store for RocksDb {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put_opt(key, value, &self.write)?)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get_pinned(key)?;
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    fn scan(&mut self, from: &[u8], nexts: u32) -> Result<(u32, u64)> {
        let mut cursor = self.db.raw_iterator_opt(ReadOptions::default());
        let (mut entries, mut bytes) = (0, 0);
        cursor.seek(from);
        while let (Some(key), Some(value)) = (cursor.key(), cursor.value()) {
            entries += 1;
            bytes += (key.len() + value.len()) as u64;
            if entries > nexts {
                break;
            }
            cursor.next();
        }
        cursor.status()?;
        Ok((entries, bytes))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        Ok(self.db.delete_opt(key, &self.write)?)
    }

    fn drain(&mut self) -> Result<()> {
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        Ok(self.db.wait_for_compact(&wait)?)
    }

    fn statistics(&self) -> String {
        let property = |name| self.db.property_value(name).ok().flatten().unwrap_or_default();
        property("rocksdb.stats")
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}
