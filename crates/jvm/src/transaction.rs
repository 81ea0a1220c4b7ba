//! Transactions.
//!
//! Owns: their table, and the native methods. Never does: run anything again; `Db.transact` in Java does.

use crate::database::DATABASES;
use crate::edge::native;
use crate::failure::{Failure, Outcome};
use crate::keyspace::{KEYSPACES, range};
use crate::options::ttl;
use crate::scan::put_entry;
use crate::table::{Alone, Table};
use jni_sys::{jbyteArray, jint, jlong, jobject};
use windrow::{
    Error, ErrorKind, Savepoint, Transaction, TransactionMode, TransactionOptions, WriteSync,
};

static TRANSACTIONS: Table<Alone<Running>> = Table::new("transaction");

struct Running {
    /// `None` once it has ended.
    transaction: Option<Transaction>,
    savepoints: Vec<Savepoint>,
}

/// Runs on a transaction that has not ended.
fn with<T>(number: jlong, run: impl FnOnce(&mut Transaction) -> Outcome<T>) -> Outcome<T> {
    TRANSACTIONS.get(number)?.with(|running| run(running.transaction.as_mut().ok_or_else(ended)?))
}

fn ended() -> Failure {
    Error::new(ErrorKind::Closed, "the transaction has ended: begin another one").into()
}

native! {
    Java_org_windrow_Native_transaction(
        _env, _owner: jobject, database: jlong, pessimistic: bool, lock_timeout_ms: jlong
    ) -> jlong {
        let options = TransactionOptions {
            mode: match pessimistic {
                true => TransactionMode::Pessimistic,
                false => TransactionMode::Optimistic,
            },
            lock_timeout: ttl(lock_timeout_ms)?,
            ..TransactionOptions::default()
        };
        let transaction = Some(DATABASES.get(database)?.db.transaction_with(&options)?);
        TRANSACTIONS.add(Alone::new(Running { transaction, savepoints: Vec::new() }))
    }
}

native! {
    /// Returns the value that the transaction sees; `lock`: 0 none, 1 for update, 2 for share.
    Java_org_windrow_Native_transactionGet(
        env, _owner: jobject, transaction: jlong, keyspace: jlong, key: jbyteArray, lock: jint
    ) -> jbyteArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        let value = env.with_bytes("the key", key, |key| {
            with(transaction, |transaction| Ok(match lock {
                1 => transaction.get_for_update(&*keyspace, key)?,
                2 => transaction.get_for_share(&*keyspace, key)?,
                _ => transaction.get(&*keyspace, key)?,
            }))
        })?;
        env.new_bytes_or_null(value)
    }
}

native! {
    /// Adds a write; `operation` is the number that `Batch` gives it.
    Java_org_windrow_Native_transactionWrite(
        env, _owner: jobject, transaction: jlong, operation: jint,
        keyspace: jlong, key: jbyteArray, value: jbyteArray, ttl_ms: jlong
    ) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        let keyspace = &*keyspace;
        let value = env.bytes(value).unwrap_or_default();
        env.with_bytes("the key", key, |key| with(transaction, |transaction| Ok(match operation {
            0 => transaction.put(keyspace, key, value),
            1 => transaction.delete(keyspace, key),
            3 => transaction.merge(keyspace, key, value),
            4 => transaction.delete_range(keyspace, key, value),
            5 => transaction.put_with_ttl(keyspace, key, value, ttl(ttl_ms)?),
            _ => Err(Error::new(ErrorKind::Internal, "no such operation")),
        }?)))
    }
}

native! {
    /// Returns the entries of a range, `limit` at most, in the form of a scan's last chunk.
    Java_org_windrow_Native_transactionScan(
        env, _owner: jobject, transaction: jlong, keyspace: jlong,
        from: jbyteArray, to: jbyteArray, reverse: bool, limit: jint
    ) -> jbyteArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        let (from, to) = (env.bytes(from), env.bytes(to));
        let mut chunk = vec![0; 8];
        with(transaction, |transaction| {
            let mut entries = transaction.range(&*keyspace, range(&from, &to))?;
            for _ in 0..limit {
                let entry = if reverse { entries.next_back() } else { entries.next() };
                let Some(entry) = entry else { break };
                let (key, value) = entry?;
                put_entry(&mut chunk, &key, &value);
            }
            Ok(())
        })?;
        env.new_bytes(&chunk)
    }
}

native! {
    Java_org_windrow_Native_savepoint(_env, _owner: jobject, transaction: jlong) -> () {
        TRANSACTIONS.get(transaction)?.with(|running| {
            let savepoint = running.transaction.as_ref().ok_or_else(ended)?.savepoint();
            running.savepoints.push(savepoint);
            Ok(())
        })
    }
}

native! {
    Java_org_windrow_Native_rollbackToSavepoint(_env, _owner: jobject, transaction: jlong) -> () {
        TRANSACTIONS.get(transaction)?.with(|running| {
            let transaction = running.transaction.as_mut().ok_or_else(ended)?;
            let none = || Error::invalid("there is no savepoint to go back to: set one first");
            Ok(transaction.rollback_to(&running.savepoints.pop().ok_or_else(none)?)?)
        })
    }
}

native! {
    Java_org_windrow_Native_commit(_env, _owner: jobject, transaction: jlong, sync: bool) -> () {
        let running = TRANSACTIONS.get(transaction)?;
        let transaction = running.with(|running| running.transaction.take().ok_or_else(ended))?;
        let sync = if sync { WriteSync::Yes } else { WriteSync::No };
        transaction.commit_with(sync)?;
        Ok(())
    }
}

native! {
    Java_org_windrow_Native_freeTransaction(_env, transaction: jlong) -> () {
        TRANSACTIONS.end(transaction)
    }
}
