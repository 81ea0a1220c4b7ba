//! fjall behind the `Store` trait.
//!
//! A write is acknowledged when the kernel has it: fjall then hands its
//! journal's buffer over after every insert, remove and batch, which is its
//! default and RocksDB's; `tests/conformance.rs` looks at the journal's file.
//!
//! Owns: its settings for a memory budget, and the test of whether it is quiet.
//! Never does: reach past fjall into the tree that it is built on, but to count
//! files.

use crate::settings::Settings;
use crate::wait;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase,
    PersistMode, Readable,
};
use std::path::Path;
use std::sync::Arc;
use windrow_bench::store::{Abilities, Change, Codec, Common, Counters, Engine, OnEntry, OnValue};
use windrow_bench::store::{Result, Store, Sync, Tree, Write};

/// fjall.
pub(crate) const ENGINE: Engine = Engine {
    name: "fjall",
    version: || env!("FJALL_VERSION").to_owned(),
    abilities: Abilities { direct_io: false, expiry: false, lz4: true, transactions: true },
    tuning: "Leveled compaction. Block cache of a quarter of the budget, as its documentation \
             recommends; memtables of a fifteenth of it for each key space that is used, but no \
             less than 1 MiB and no more than 64: up to five wait before writers do. Filters of ten bits \
             per key in every level, blocks of 4 KiB. Worker threads as asked. No direct I/O, no expiry by \
             key, several gets a loop. It has no wait for compactions: after a flush its workers \
             do what they find due, and it counts as quiet when they have been idle for a fifth of a second. Key \
             spaces are its keyspaces.",
    variants: &[],
    open,
};

const NAMES: &[&str] = &[
    "block_bytes",
    "cache_bytes",
    "file_bytes",
    "filter_bits",
    "level0_files",
    "memtable_bytes",
    "multiplier",
];

/// Levels of fjall's trees.
const LEVELS: usize = 7;

/// A memtable's part of the budget. A keyspace has five: one active, and four
/// that wait, at which number writers wait too. With the cache's quarter they
/// come to the budget's 5/15 + 1/4. The rest is for memory that no setting
/// bounds: pinned indexes and filters, merges, and the skip list's nodes, which
/// a memtable's size does not count.
const MEMTABLE_PART: u64 = 15;

/// The number of looks at idle workers after which they count as idle.
const IDLE_LOOKS: u32 = 20;

struct Fjall {
    db: Database,
    spaces: Vec<Keyspace>,
    /// The handle of the same database, if it was opened for transactions.
    transactions: Option<OptimisticTxDatabase>,
}

fn open(dir: &Path, common: &Common) -> Result<Box<dyn Store>> {
    let settings = Settings::new(&ENGINE, NAMES, common)?;
    let cache_bytes = settings.bytes("cache_bytes", common.memory_bytes / 4)?;
    let threads = common.background_threads.max(1) as usize;
    let transactions = match common.transactions {
        false => None,
        true => Some(
            OptimisticTxDatabase::builder(dir)
                .cache_size(cache_bytes)
                .worker_threads(threads)
                .journal_compression(CompressionType::None)
                .open()?,
        ),
    };
    let db = match &transactions {
        Some(db) => db.inner().clone(),
        None => Database::builder(dir)
            .cache_size(cache_bytes)
            .worker_threads(threads)
            .journal_compression(CompressionType::None)
            .open()?,
    };
    let options = keyspace_options(&settings)?;
    let space = |i| db.keyspace(&format!("space{i}"), || options.clone());
    let spaces = (0..common.spaces.max(1)).map(space).collect::<fjall::Result<_>>()?;
    Ok(Box::new(Fjall { db, spaces, transactions }))
}

/// Returns the options of a new keyspace; one that exists keeps its own.
fn keyspace_options(settings: &Settings<'_>) -> Result<KeyspaceCreateOptions> {
    let common = settings.common();
    let spaces = u64::from(common.spaces.max(1));
    let memtable = (common.memory_bytes / MEMTABLE_PART / spaces).clamp(1 << 20, 64 << 20);
    let filter = match settings.number("filter_bits", 10.0)? {
        0.0 => FilterPolicyEntry::None,
        bits => FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits)),
    };
    let codec = match common.codec {
        Codec::None => CompressionType::None,
        Codec::Lz4 => CompressionType::Lz4,
    };
    let compaction = fjall::compaction::Leveled::default()
        .with_table_target_size(settings.bytes("file_bytes", 64 << 20)?)
        .with_l0_threshold(settings.number("level0_files", 4)?)
        .with_level_ratio_policy(vec![settings.number("multiplier", 10.0)?]);
    let block_bytes = u32::try_from(settings.bytes("block_bytes", 4096)?)?;
    Ok(KeyspaceCreateOptions::default()
        .max_memtable_size(settings.bytes("memtable_bytes", memtable)?)
        // The default gives level 0 more bits, and the other levels ten.
        .filter_policy(FilterPolicy::all(filter))
        .data_block_size_policy(BlockSizePolicy::all(block_bytes))
        .data_block_compression_policy(CompressionPolicy::all(codec))
        .compaction_strategy(Arc::new(compaction)))
}

impl Fjall {
    fn space(&self, space: u32) -> Result<&Keyspace> {
        self.spaces.get(space as usize).ok_or_else(|| format!("no key space {space}").into())
    }

    /// Makes a write durable that the kernel has.
    fn durable(&self, sync: Sync) -> Result<()> {
        match sync {
            Sync::No => Ok(()),
            Sync::Yes => Ok(self.db.persist(PersistMode::SyncData)?),
        }
    }
}

impl Store for Fjall {
    fn put(&self, space: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
        self.space(space)?.insert(key, value)?;
        self.durable(sync)
    }

    fn put_for(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<()> {
        Err("fjall has no expiry by key".into())
    }

    fn delete(&self, space: u32, key: &[u8], sync: Sync) -> Result<()> {
        self.space(space)?.remove(key)?;
        self.durable(sync)
    }

    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(match sync {
            Sync::No => PersistMode::Buffer,
            Sync::Yes => PersistMode::SyncData,
        }));
        for write in writes {
            match *write {
                Write::Put { space, key, value } => batch.insert(self.space(space)?, key, value),
                Write::Delete { space, key } => batch.remove(self.space(space)?, key),
            }
        }
        Ok(batch.commit()?)
    }

    fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.space(space)?.get(key)?;
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
        let space = self.space(space)?;
        for (i, key) in keys.iter().enumerate() {
            each(i, space.get(key)?.as_deref());
        }
        Ok(())
    }

    fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
        let mut met = 0;
        let take = usize::try_from(entries)?;
        for entry in self.space(space)?.range(from..).take(take) {
            let (key, value) = entry.into_inner()?;
            each(&key, &value);
            met += 1;
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
        let db = self.transactions.as_ref().ok_or("it was opened without transactions")?;
        for times in 1.. {
            let mut tx = db.write_tx()?;
            if sync == Sync::Yes {
                tx = tx.durability(Some(PersistMode::SyncData));
            }
            let mut values = Vec::with_capacity(keys.len());
            for (space, key) in keys {
                let found = tx.get(self.space(*space)?, key)?;
                values.push(found.map(|bytes| bytes.to_vec()).unwrap_or_default());
            }
            change(&mut values);
            for ((space, key), value) in keys.iter().zip(&values) {
                tx.insert(self.space(*space)?, *key, value.as_slice());
            }
            for write in more {
                match *write {
                    Write::Put { space, key, value } => tx.insert(self.space(space)?, key, value),
                    Write::Delete { space, key } => tx.remove(self.space(space)?, key),
                }
            }
            if tx.commit()?.is_ok() {
                return Ok(times);
            }
        }
        Err("it was tried for ever".into())
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncData)?)
    }

    fn drain(&self) -> Result<()> {
        for space in &self.spaces {
            space.rotate_memtable_and_wait()?;
        }
        let mut compactions = None;
        wait::until(IDLE_LOOKS, || {
            let completed = Some(self.db.compactions_completed());
            let changed = std::mem::replace(&mut compactions, completed) != completed;
            let flushing = self.db.outstanding_flushes() > 0
                || self.spaces.iter().any(|space| space.sealed_memtable_count() > 0);
            Ok(!changed && !flushing && self.db.active_compactions() == 0)
        })
    }

    fn counters(&self) -> Counters {
        // fjall's metrics are a feature of the crate that is off by default.
        Counters::default()
    }

    fn tree(&self) -> Tree {
        let held = |space: &Keyspace| {
            let files = |level| space.tree.level_table_count(level).unwrap_or(0);
            (1..LEVELS).filter(|&level| files(level) > 0).count()
        };
        let used = self.spaces.iter().filter(|space| space.table_count() > 0);
        let (trees, levels) =
            used.fold((0usize, 0), |(trees, levels), space| (trees + 1, levels + held(space)));
        let levels = levels as f64 / trees.max(1) as f64;
        Tree {
            levels: Some(levels),
            // Level 0's tables overlap.
            runs: Some(levels),
            files: Some(self.spaces.iter().map(|space| space.table_count() as u64).sum()),
            bytes: Some(self.spaces.iter().map(|space| space.disk_space()).sum()),
            ..Tree::default()
        }
    }

    fn statistics(&self) -> String {
        let mut text = format!(
            "{} compactions looked for in {:.1} s, {} journals, {} of {} bytes of cache\n",
            self.db.compactions_completed(),
            self.db.time_compacting().as_secs_f64(),
            self.db.journal_count(),
            self.db.cache_size(),
            self.db.cache_capacity(),
        );
        for space in &self.spaces {
            let files = (0..LEVELS).map(|level| space.tree.level_table_count(level).unwrap_or(0));
            let files: Vec<usize> = files.collect();
            text += &format!("{}: tables by level {files:?}\n", &**space.name());
        }
        text
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
