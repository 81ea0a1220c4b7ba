//! Windrow behind the `Store` trait: the defaults, except for the settings that every store gets
//! alike (memory, threads, direct I/O, codec).
//!
//! Owns: which of its calls answer the trait's, and its counts as the benchmark's. Never does:
//! reach past the public interface.

use super::{Abilities, Change, Codec, Common, Counters, Engine, OnEntry, OnValue, Result};
use super::{Store, Sync, Tree, Write};
use std::path::Path;
use windrow::settings::Settings;
use windrow::{Batch, Db, ErrorKind, InKeyspace, Keyspace, Options, ReadOptions, Stats, inspect};
use windrow::{Transaction, TransactionMode, TransactionOptions};

/// Windrow.
pub const ENGINE: Engine = Engine {
    name: "windrow",
    version: || env!("CARGO_PKG_VERSION").to_owned(),
    abilities: Abilities { direct_io: true, expiry: true, lz4: true, transactions: true },
    tuning: "Defaults: the preset windrow (or the one after the colon), one memory budget for \
             memtables, block cache, filters, indexes and merge buffers, ten filter bits per key.",
    variants: &[],
    open,
};

/// The default variant but for its write-ahead logs, which are mapped.
const MAPPED: &str = "map_logs";

/// The default variant but for its transactions, which lock the keys that they read.
const PESSIMISTIC: &str = "pessimistic";

/// An open database and its keyspaces by number.
struct Windrow {
    db: Db,
    spaces: Vec<Keyspace>,
    transactions: TransactionMode,
}

/// Opens a database. Settings without a dot are Windrow's. The variant is a preset or a policy, as
/// the setting `preset` takes it, or `map_logs` or `pessimistic`.
fn open(dir: &Path, common: &Common) -> Result<Box<dyn Store>> {
    let transactions = match common.variant.as_str() {
        PESSIMISTIC => TransactionMode::Pessimistic,
        _ => TransactionMode::Optimistic,
    };
    let store = behind(Db::open_with(dir, options(common)?)?, common.spaces)?;
    Ok(Box::new(Windrow { transactions, ..store }))
}

/// Wraps an open database, with `spaces` key spaces, in the trait.
pub(crate) fn over(db: Db, spaces: u32) -> Result<Box<dyn Store>> {
    Ok(Box::new(behind(db, spaces)?))
}

fn behind(db: Db, spaces: u32) -> Result<Windrow> {
    let spaces = match spaces {
        0 | 1 => vec![db.default_keyspace()],
        n => (0..n).map(|i| db.keyspace(&format!("space{i}"))).collect::<windrow::Result<_>>()?,
    };
    Ok(Windrow { db, spaces, transactions: TransactionMode::default() })
}

/// Returns the options for `common`.
pub(crate) fn options(common: &Common) -> Result<Options> {
    let codec = match common.codec {
        Codec::None => "none",
        Codec::Lz4 => "lz4",
    };
    let mut settings = Settings {
        memory_bytes: common.memory_bytes,
        background_threads: common.background_threads,
        direct_io: common.direct_io,
        compression: codec.to_owned(),
        ..Settings::default()
    };
    match common.variant.as_str() {
        "" | PESSIMISTIC => {}
        MAPPED => settings.map_logs = true,
        preset => settings.set("preset", preset)?,
    }
    for (name, value) in common.settings.iter().filter(|(name, _)| !name.contains('.')) {
        settings.set(name, value)?;
    }
    Ok(Options { settings, ..Options::default() })
}

fn durability(sync: Sync) -> windrow::WriteSync {
    match sync {
        Sync::No => windrow::WriteSync::No,
        Sync::Yes => windrow::WriteSync::Yes,
    }
}

impl Windrow {
    fn space(&self, number: u32) -> &Keyspace {
        &self.spaces[number as usize]
    }

    /// Reads a key that the transaction will write.
    fn read(
        &self,
        tx: &mut Transaction,
        ks: &impl InKeyspace,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> windrow::Result<()> {
        let found = match self.transactions {
            TransactionMode::Optimistic => tx.get(ks, key)?,
            TransactionMode::Pessimistic => tx.get_for_update(ks, key)?,
        };
        value.clear();
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(())
    }
}

impl Store for Windrow {
    fn put(&self, space: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
        Ok(self.space(space).put_with(key, value, durability(sync))?)
    }

    fn put_for(&self, space: u32, key: &[u8], value: &[u8], seconds: u64) -> Result<()> {
        let ttl = std::time::Duration::from_secs(seconds);
        Ok(self.space(space).put_with_ttl(key, value, ttl)?)
    }

    fn delete(&self, space: u32, key: &[u8], sync: Sync) -> Result<()> {
        match sync {
            Sync::No => Ok(self.space(space).delete(key)?),
            Sync::Yes => self.write(&[Write::Delete { space, key }], sync),
        }
    }

    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
        let mut batch = Batch::new();
        for write in writes {
            match *write {
                Write::Put { space, key, value } => batch.put(self.space(space), key, value),
                Write::Delete { space, key } => batch.delete(self.space(space), key),
            }
        }
        self.db.write(batch, durability(sync))?;
        Ok(())
    }

    fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.space(space).get(key)?;
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
        for (i, found) in self.space(space).multi_get(keys).into_iter().enumerate() {
            each(i, found?.as_deref());
        }
        Ok(())
    }

    fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
        let mut cursor = self.space(space).cursor(ReadOptions::default());
        let mut met = 0;
        let mut valid = cursor.seek(from)?;
        while valid && met < entries {
            each(cursor.key(), cursor.value());
            met += 1;
            // One step past the last entry asked for would cost time and show nowhere.
            valid = met < entries && cursor.next()?;
        }
        Ok(met)
    }

    fn transact(
        &self,
        keys: &[(u32, &[u8])],
        change: Change<'_>,
        more: &[Write<'_>],
        sync: Sync,
    ) -> Result<u64> {
        let mut values = vec![Vec::new(); keys.len()];
        let mut times = 0;
        let options = TransactionOptions {
            mode: self.transactions,
            sync: durability(sync),
            ..TransactionOptions::default()
        };
        let mut work = |tx: &mut Transaction| {
            times += 1;
            for ((space, key), value) in keys.iter().zip(&mut values) {
                self.read(tx, self.space(*space), key, value)?;
            }
            change(&mut values);
            for ((space, key), value) in keys.iter().zip(&values) {
                tx.put(self.space(*space), key, value)?;
            }
            more.iter().try_for_each(|write| match *write {
                Write::Put { space, key, value } => tx.put(self.space(space), key, value),
                Write::Delete { space, key } => tx.delete(self.space(space), key),
            })
        };
        loop {
            match self.db.transact_with(&options, &mut work) {
                Ok(()) => return Ok(times),
                // The call has tried a hundred times.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.sync()?)
    }

    fn drain(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_idle()?)
    }

    fn counters(&self) -> Counters {
        counters(&self.db.stats())
    }

    fn tree(&self) -> Tree {
        tree(&self.db)
    }

    fn statistics(&self) -> String {
        self.db.stats().to_string()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

/// Returns statistics as the benchmark's counters.
pub(crate) fn counters(stats: &Stats) -> Counters {
    Counters {
        gets: Some(stats.gets),
        gets_of_tables: Some(stats.levels.iter().map(|level| level.get_hits).sum()),
        level1_hits: stats.levels.get(1).map(|level| level.get_hits),
        blocks: Some(stats.cache_hits + stats.cache_misses),
        blocks_read: Some(stats.blocks_read),
        filter_false_positives: Some(stats.filter_false_positives),
        user_bytes: Some(stats.user_bytes),
        wal_bytes: Some(stats.wal_bytes),
        tables_written_bytes: Some(stats.tables_written_bytes()),
        // Merges into level 0 are flushes.
        merges: Some(stats.levels.iter().skip(1).map(|level| level.merges).sum()),
        merged_files: Some(stats.levels.iter().map(|level| level.read_files).sum()),
        level_written_bytes: Some(std::array::from_fn(|n| {
            stats.levels.get(n).map_or(0, |level| level.written_bytes)
        })),
        moves: Some(stats.levels.iter().map(|level| level.moves).sum()),
        paused_us: Some(stats.pauses.iter().map(|pause| pause.total_us).sum()),
        pauses: Some(stats.pauses.iter().map(|pause| pause.count).sum()),
    }
}

/// Returns the current shape of the tree.
pub(crate) fn tree(db: &Db) -> Tree {
    let stats = db.stats();
    let trees = stats.keyspaces.iter().filter(|k| !k.levels.iter().all(|l| l.bytes == 0));
    let (mut levels, mut runs, mut files, mut log_files, mut count) = (0, 0, 0, 0, 0u32);
    for tree in trees {
        count += 1;
        // Level 0 counts as runs only: its tables have not reached a level yet.
        levels += tree.levels.iter().skip(1).filter(|level| level.bytes > 0).count();
        runs += tree.levels.iter().filter(|level| level.run_files > 0).count();
        files += tree.levels.iter().map(|level| level.run_files + level.log_files).sum::<u64>();
        log_files += tree.levels.iter().map(|level| level.log_files).sum::<u64>();
    }
    let (mut filter_bytes, mut entries) = (0, 0);
    for (_, version) in inspect::trees(db) {
        for (_, _, file) in version.files() {
            filter_bytes += file.filter_bytes;
            entries += file.entries;
        }
    }
    let mean = |sum: usize| Some(sum as f64 / f64::from(count.max(1)));
    Tree {
        levels: mean(levels),
        runs: mean(runs),
        files: Some(files),
        log_files: Some(log_files),
        bytes: Some(stats.tree_bytes()),
        chain_bytes: Some((stats.chains.bytes_p50, stats.chains.bytes_p99)),
        chain_levels: Some(stats.chains.length_max),
        filter_bits_per_key: Some(filter_bytes as f64 * 8.0 / entries.max(1) as f64),
        open_tables_bytes: Some(stats.memory.tables_bytes),
    }
}
