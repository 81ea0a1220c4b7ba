//! Serialisable transactions over all keyspaces.
//!
//! Owns: the handle, which is empty once the transaction has ended. Never does: run anything again.

use crate::bytes::{windrow_slice, windrow_value};
use crate::database::windrow_db;
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::keyspace::{bounds, windrow_keyspace};
use engine::{
    Error, ErrorKind, Result, Savepoint, Transaction, TransactionMode, TransactionOptions,
    WriteSync,
};
use std::ffi::c_void;
use std::time::Duration;

/// A transaction: it reads one snapshot and its own writes, and its writes take effect all at once, or not at all. Used
/// by one thread at a time.
pub struct windrow_transaction {
    transaction: Option<Transaction>,
    savepoints: Vec<Savepoint>,
}

impl windrow_transaction {
    fn going(&mut self) -> Result<&mut Transaction> {
        self.transaction.as_mut().ok_or_else(ended)
    }
}

#[cold]
fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction has ended: begin another one")
}

/// Begins a transaction. `pessimistic`: it locks each key that it writes, and waits up to `lock_timeout_ms` for the
/// locks of others; else its commit detects conflicts, and fails with WINDROW_ERROR_KIND_CONFLICT.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_begin(
    db: Option<&windrow_db>,
    pessimistic: bool,
    lock_timeout_ms: u64,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_transaction>> {
    caught(error, || {
        let options = TransactionOptions {
            mode: match pessimistic {
                true => TransactionMode::Pessimistic,
                false => TransactionMode::Optimistic,
            },
            lock_timeout: Duration::from_millis(lock_timeout_ms),
            ..TransactionOptions::default()
        };
        let transaction = given(db, "database")?.0.transaction_with(&options)?;
        Ok(Box::new(windrow_transaction { transaction: Some(transaction), savepoints: Vec::new() }))
    })
}

/// Frees a transaction. One that was not committed writes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_free(transaction: Option<Box<windrow_transaction>>) {
    drop(transaction);
}

/// Writes all, or fails and writes nothing: after WINDROW_ERROR_KIND_CONFLICT begin another transaction and do the same
/// again. The transaction has ended in either case, and must be freed. `sync`: it is on the device when the call
/// returns.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_commit(
    transaction: Option<&mut windrow_transaction>,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?;
        let sync = if sync { WriteSync::Yes } else { WriteSync::No };
        transaction.transaction.take().ok_or_else(ended)?.commit_with(sync).map(|_| ())
    })
}

/// Undoes the transaction's writes, and releases its locks. The transaction goes on.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_rollback(
    transaction: Option<&mut windrow_transaction>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?;
        transaction.savepoints.clear();
        transaction.going()?.rollback();
        Ok(())
    })
}

/// Sets a savepoint, to which windrow_rollback_to_savepoint goes back. Savepoints nest.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_savepoint(
    transaction: Option<&mut windrow_transaction>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?;
        let savepoint = transaction.going()?.savepoint();
        transaction.savepoints.push(savepoint);
        Ok(())
    })
}

/// Undoes the writes since the last savepoint, and removes the savepoint.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_rollback_to_savepoint(
    transaction: Option<&mut windrow_transaction>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?;
        let savepoint = transaction.savepoints.pop();
        let savepoint =
            savepoint.ok_or_else(|| Error::invalid("there is no savepoint to go back to"))?;
        transaction.going()?.rollback_to(&savepoint)
    })
}

/// A key's value, as windrow_get. `for_update`: the key is locked, so that no other transaction writes it before the
/// end.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_get(
    transaction: Option<&mut windrow_transaction>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    for_update: bool,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_value>> {
    let read = || {
        let transaction = given(transaction, "transaction")?.going()?;
        let (keyspace, key) = (&given(keyspace, "keyspace")?.keyspace, key.bytes()?);
        match for_update {
            true => transaction.get_for_update(keyspace, key),
            false => transaction.get(keyspace, key),
        }
    };
    caught(error, read).flatten().map(windrow_value::boxed)
}

/// Adds a put.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_put(
    transaction: Option<&mut windrow_transaction>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    value: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?.going()?;
        transaction.put(&given(keyspace, "keyspace")?.keyspace, key.bytes()?, value.bytes()?)
    })
}

/// Adds a delete.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_delete(
    transaction: Option<&mut windrow_transaction>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?.going()?;
        transaction.delete(&given(keyspace, "keyspace")?.keyspace, key.bytes()?)
    })
}

/// Adds a delete of all keys in `from..to`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_delete_range(
    transaction: Option<&mut windrow_transaction>,
    keyspace: Option<&windrow_keyspace>,
    from: windrow_slice,
    to: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?.going()?;
        transaction.delete_range(&given(keyspace, "keyspace")?.keyspace, from.bytes()?, to.bytes()?)
    })
}

/// Adds a merge.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_merge(
    transaction: Option<&mut windrow_transaction>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    operand: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?.going()?;
        transaction.merge(&given(keyspace, "keyspace")?.keyspace, key.bytes()?, operand.bytes()?)
    })
}

/// Calls `each` with the entries of `from..to` (NULL: to the end) as the transaction sees them, in the order of keys
/// or, `reverse`, from the last one, until it returns false. `each` must not use the transaction.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_scan(
    transaction: Option<&mut windrow_transaction>,
    keyspace: Option<&windrow_keyspace>,
    from: Option<&windrow_slice>,
    to: Option<&windrow_slice>,
    reverse: bool,
    state: *mut c_void,
    each: Option<
        extern "C" fn(state: *mut c_void, key: windrow_slice, value: windrow_slice) -> bool,
    >,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let transaction = given(transaction, "transaction")?.going()?;
        let each = given(each, "function")?;
        let mut entries =
            transaction.range(&given(keyspace, "keyspace")?.keyspace, bounds(from, to)?)?;
        loop {
            let entry = if reverse { entries.next_back() } else { entries.next() };
            let Some(entry) = entry else { return Ok(()) };
            let (key, value) = entry?;
            if !each(state, windrow_slice::of(&key), windrow_slice::of(&value)) {
                return Ok(());
            }
        }
    })
}
