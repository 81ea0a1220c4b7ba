//! RocksDB behind the `Store` trait, through the crate `rocksdb`.
//!
//! Owns: which of its calls answer the trait's. `tuning.rs` says how it is set
//! up and why, `figures.rs` reads its statistics. Never does: use a path that
//! its users would not.

mod figures;
mod transactions;
mod tuning;
mod walk;

use rocksdb::{ColumnFamily, DB};
use rocksdb::{Options, ReadOptions, WaitForCompactOptions};
use rocksdb::{WriteBatch, WriteOptions};
use std::path::Path;
use walk::walk;
use windrow_bench::store::{Abilities, Common, Counters, Engine, OnEntry, OnValue, Result};
use windrow_bench::store::{Store, Sync, Tree, Write};

/// RocksDB.
pub(crate) const ENGINE: Engine = Engine {
    name: "rocksdb",
    version: || env!("ROCKSDB_VERSION").to_owned(),
    // RocksDB's time to live is one for a whole database, and expired keys show
    // until a compaction meets them. `put_for` promises more.
    abilities: Abilities {
        direct_io: true,
        expiry: false,
        lz4: cfg!(feature = "lz4"),
        transactions: true,
    },
    tuning: tuning::TEXT,
    variants: tuning::VARIANTS,
    open,
};

/// An open database.
struct RocksDb {
    db: DB,
    /// Column families by number; empty where only the default one exists.
    families: Vec<String>,
    /// Kept for the statistics, which belong to them.
    options: Options,
    read: ReadOptions,
    /// The options of a write without a sync, and with one.
    write: [WriteOptions; 2],
}

fn open(dir: &Path, common: &Common) -> Result<Box<dyn Store>> {
    let options = tuning::options(&ENGINE, common)?;
    if common.transactions {
        return transactions::open(dir, common, &options);
    }
    let families: Vec<String> = match common.spaces {
        0 | 1 => Vec::new(),
        n => (0..n).map(|i| format!("space{i}")).collect(),
    };
    let names = std::iter::once("default").chain(families.iter().map(String::as_str));
    let db = DB::open_cf_with_opts(&options, dir, names.map(|name| (name, options.clone())))?;
    let write = [false, true].map(|sync| {
        let mut write = WriteOptions::default();
        write.set_sync(sync);
        write
    });
    Ok(Box::new(RocksDb { db, families, options, read: ReadOptions::default(), write }))
}

impl RocksDb {
    /// Returns the column family of a space, `None` for the default one. It is
    /// a look-up by name, some tens of nanoseconds: the crate lends no handle
    /// that could be kept next to the database.
    fn family(&self, space: u32) -> Result<Option<&ColumnFamily>> {
        if self.families.is_empty() {
            return Ok(None);
        }
        let family = self.families.get(space as usize).and_then(|name| self.db.cf_handle(name));
        family.map(Some).ok_or_else(|| format!("no key space {space}").into())
    }

    /// Returns all column families that are written to.
    fn all_families(&self) -> impl Iterator<Item = &ColumnFamily> {
        let names = self.families.iter().map(String::as_str);
        let default = self.families.is_empty().then_some("default");
        names.chain(default).filter_map(|name| self.db.cf_handle(name))
    }

    fn durability(&self, sync: Sync) -> &WriteOptions {
        &self.write[usize::from(sync == Sync::Yes)]
    }
}

impl Store for RocksDb {
    fn put(&self, space: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
        let write = self.durability(sync);
        match self.family(space)? {
            None => self.db.put_opt(key, value, write)?,
            Some(family) => self.db.put_cf_opt(family, key, value, write)?,
        }
        Ok(())
    }

    fn put_for(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<()> {
        Err("this adapter has no expiry".into())
    }

    fn delete(&self, space: u32, key: &[u8], sync: Sync) -> Result<()> {
        let write = self.durability(sync);
        match self.family(space)? {
            None => self.db.delete_opt(key, write)?,
            Some(family) => self.db.delete_cf_opt(family, key, write)?,
        }
        Ok(())
    }

    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
        let mut batch = WriteBatch::default();
        for write in writes {
            match *write {
                Write::Put { space, key, value } => match self.family(space)? {
                    None => batch.put(key, value),
                    Some(family) => batch.put_cf(family, key, value),
                },
                Write::Delete { space, key } => match self.family(space)? {
                    None => batch.delete(key),
                    Some(family) => batch.delete_cf(family, key),
                },
            }
        }
        Ok(self.db.write_opt(batch, self.durability(sync))?)
    }

    fn get(&self, space: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = match self.family(space)? {
            None => self.db.get_pinned_opt(key, &self.read)?,
            Some(family) => self.db.get_pinned_cf_opt(family, key, &self.read)?,
        };
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
        // The batched call, which searches a table for all keys at once.
        let family = match self.family(space)? {
            None => self.db.cf_handle("default").ok_or("no default column family")?,
            Some(family) => family,
        };
        let keys = keys.iter().copied();
        let found = self.db.batched_multi_get_cf_opt(family, keys, false, &self.read);
        for (i, value) in found.into_iter().enumerate() {
            each(i, value?.as_deref());
        }
        Ok(())
    }

    fn scan(&self, space: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
        let read = ReadOptions::default();
        let cursor = match self.family(space)? {
            None => self.db.raw_iterator_opt(read),
            Some(family) => self.db.raw_iterator_cf_opt(family, read),
        };
        walk(cursor, from, entries, each)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.db.flush_wal(true)?)
    }

    fn drain(&self) -> Result<()> {
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        Ok(self.db.wait_for_compact(&wait)?)
    }

    fn counters(&self) -> Counters {
        figures::counters(&self.db, &self.options, self.all_families())
    }

    fn tree(&self) -> Tree {
        figures::tree(&self.db, self.all_families())
    }

    fn statistics(&self) -> String {
        let name = rocksdb::properties::STATS;
        self.db.property_value(name).ok().flatten().unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}
