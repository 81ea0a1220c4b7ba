//! RocksDB with transactions: its two databases that have them, with one key space.
//!
//! A key is read by `GetForUpdate` in both before it is written, as RocksDB's documentation has it
//! for read-modify-write. A transaction that could not commit, or did not get a lock, is done again
//! at once.
//!
//! Owns: which of their calls answer the trait's. Never does: tune them: options are those without
//! transactions, locks and deadlock detection as by default.

use super::walk::walk;
use crate::wait;
use rocksdb::properties::PropName;
use rocksdb::{ErrorKind, OptimisticTransactionDB, OptimisticTransactionOptions, Options};
use rocksdb::{ReadOptions, Transaction, TransactionDB, TransactionDBOptions, TransactionOptions};
use rocksdb::{WriteBatchWithTransaction, WriteOptions, properties};
use std::path::Path;
use windrow_bench::store::{Change, Common, Counters, OnEntry, OnValue, Result};
use windrow_bench::store::{Store, Sync, Tree, Write};

/// The variant that finds conflicts at a commit; the others lock.
pub(super) const OPTIMISTIC: &str = "optimistic";

/// The number of looks at idle compactions after which they count as idle.
const IDLE_LOOKS: u32 = 20;

enum Db {
    Optimistic(OptimisticTransactionDB),
    Pessimistic(TransactionDB),
}

/// Runs the same expression on either database.
macro_rules! with {
    ($db:expr, $name:ident => $work:expr) => {
        match $db {
            Db::Optimistic($name) => $work,
            Db::Pessimistic($name) => $work,
        }
    };
}

/// An open database.
struct Transactional {
    db: Db,
    read: ReadOptions,
    /// The options of a write without a sync, and with one.
    write: [WriteOptions; 2],
}

/// Opens a database with transactions, of the kind that the variant names.
pub(super) fn open(dir: &Path, common: &Common, options: &Options) -> Result<Box<dyn Store>> {
    if common.spaces > 1 {
        return Err("this adapter has transactions over one key space only".into());
    }
    let db = match common.variant == OPTIMISTIC {
        true => Db::Optimistic(OptimisticTransactionDB::open(options, dir)?),
        false => {
            Db::Pessimistic(TransactionDB::open(options, &TransactionDBOptions::default(), dir)?)
        }
    };
    let write = [false, true].map(|sync| {
        let mut write = WriteOptions::default();
        write.set_sync(sync);
        write
    });
    Ok(Box::new(Transactional { db, read: ReadOptions::default(), write }))
}

impl Transactional {
    fn durability(&self, sync: Sync) -> &WriteOptions {
        &self.write[usize::from(sync == Sync::Yes)]
    }

    /// Returns a property; through the crate a database that locks has none.
    fn number(&self, property: &'static PropName) -> Result<u64> {
        match &self.db {
            Db::Optimistic(db) => Ok(db.property_int_value(property)?.unwrap_or(0)),
            Db::Pessimistic(_) => Ok(0),
        }
    }
}

/// Makes one attempt at a transaction.
fn attempt<D>(
    transaction: Transaction<'_, D>,
    keys: &[(u32, &[u8])],
    change: Change<'_>,
    more: &[Write<'_>],
) -> std::result::Result<(), rocksdb::Error> {
    let mut values = Vec::with_capacity(keys.len());
    for (_, key) in keys {
        let found = transaction.get_pinned_for_update(key, true)?;
        values.push(found.map(|bytes| bytes.to_vec()).unwrap_or_default());
    }
    change(&mut values);
    for ((_, key), value) in keys.iter().zip(&values) {
        transaction.put(key, value)?;
    }
    for write in more {
        match *write {
            Write::Put { key, value, .. } => transaction.put(key, value)?,
            Write::Delete { key, .. } => transaction.delete(key)?,
        }
    }
    transaction.commit()
}

impl Store for Transactional {
    fn put(&self, _: u32, key: &[u8], value: &[u8], sync: Sync) -> Result<()> {
        let write = self.durability(sync);
        with!(&self.db, db => db.put_opt(key, value, write)?);
        Ok(())
    }

    fn put_for(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<()> {
        Err("this adapter has no expiry".into())
    }

    fn delete(&self, _: u32, key: &[u8], sync: Sync) -> Result<()> {
        let write = self.durability(sync);
        with!(&self.db, db => db.delete_opt(key, write)?);
        Ok(())
    }

    fn write(&self, writes: &[Write<'_>], sync: Sync) -> Result<()> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        for write in writes {
            match *write {
                Write::Put { key, value, .. } => batch.put(key, value),
                Write::Delete { key, .. } => batch.delete(key),
            }
        }
        let write = self.durability(sync);
        with!(&self.db, db => db.write_opt(batch, write)?);
        Ok(())
    }

    fn get(&self, _: u32, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = with!(&self.db, db => db.get_pinned_opt(key, &self.read)?);
        if let Some(bytes) = &found {
            value.extend_from_slice(bytes);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, space: u32, keys: &[&[u8]], each: OnValue<'_>) -> Result<()> {
        let mut value = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            let found = self.get(space, key, &mut value)?;
            each(i, found.then_some(value.as_slice()));
        }
        Ok(())
    }

    fn scan(&self, _: u32, from: &[u8], entries: u64, each: OnEntry<'_>) -> Result<u64> {
        with!(&self.db, db => {
            walk(db.raw_iterator_opt(ReadOptions::default()), from, entries, each)
        })
    }

    fn transact(
        &self,
        keys: &[(u32, &[u8])],
        change: Change<'_>,
        more: &[Write<'_>],
        sync: Sync,
    ) -> Result<u64> {
        let write = self.durability(sync);
        for times in 1.. {
            let done = match &self.db {
                Db::Optimistic(db) => {
                    let options = OptimisticTransactionOptions::default();
                    attempt(db.transaction_opt(write, &options), keys, change, more)
                }
                Db::Pessimistic(db) => {
                    let options = TransactionOptions::default();
                    attempt(db.transaction_opt(write, &options), keys, change, more)
                }
            };
            match done {
                Ok(()) => return Ok(times),
                Err(error) => match error.kind() {
                    ErrorKind::Busy | ErrorKind::TryAgain | ErrorKind::TimedOut => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Err("it was tried for ever".into())
    }

    fn sync(&self) -> Result<()> {
        with!(&self.db, db => db.flush_wal(true)?);
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        with!(&self.db, db => db.flush()?);
        wait::until(IDLE_LOOKS, || {
            let running = self.number(properties::NUM_RUNNING_COMPACTIONS)?;
            let flushing = self.number(properties::NUM_RUNNING_FLUSHES)?;
            let pending = self.number(properties::COMPACTION_PENDING)?;
            Ok(running + flushing + pending == 0)
        })
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn tree(&self) -> Tree {
        Tree::default()
    }

    fn statistics(&self) -> String {
        match &self.db {
            Db::Optimistic(db) => {
                db.property_value(properties::STATS).ok().flatten().unwrap_or_default()
            }
            Db::Pessimistic(_) => "the crate tells nothing of this database\n".to_owned(),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
