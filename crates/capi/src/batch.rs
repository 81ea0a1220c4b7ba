//! Batches: operations in any keyspaces of a database, written all or none.
//!
//! Owns: the handle. Never does: write.

use crate::bytes::windrow_slice;
use crate::database::windrow_db;
use crate::edge::{done, given};
use crate::error::windrow_error;
use crate::keyspace::windrow_keyspace;
use engine::{Batch, Result, WriteSync};
use std::time::Duration;

/// A batch. Used by one thread at a time. It holds copies of keys and values.
pub struct windrow_batch(Batch);

/// An empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_new() -> Box<windrow_batch> {
    Box::new(windrow_batch(Batch::new()))
}

/// Frees a batch. Its writes stay.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_free(batch: Option<Box<windrow_batch>>) {
    drop(batch);
}

/// Empties a batch, and keeps its memory.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_clear(batch: Option<&mut windrow_batch>) {
    if let Some(batch) = batch {
        batch.0.clear();
    }
}

/// The number of operations in a batch.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_len(batch: Option<&windrow_batch>) -> usize {
    batch.map_or(0, |batch| batch.0.len())
}

/// Adds the operations of another batch.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_append(
    batch: Option<&mut windrow_batch>,
    other: Option<&windrow_batch>,
) {
    if let (Some(batch), Some(other)) = (batch, other) {
        batch.0.append(&other.0);
    }
}

/// Adds an operation. The write reports an invalid operation; adding fails only where an argument cannot be read.
fn add(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    error: *mut *mut windrow_error,
    add: impl FnOnce(&mut Batch, &windrow_keyspace) -> Result<()>,
) -> bool {
    done(error, || add(&mut given(batch, "batch")?.0, given(keyspace, "keyspace")?))
}

/// Adds a put.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_put(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    value: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    add(batch, keyspace, error, |batch, of| {
        batch.put(&of.keyspace, key.bytes()?, value.bytes()?);
        Ok(())
    })
}

/// Adds a put of a value that expires `ttl_ms` milliseconds from now.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_put_with_ttl(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    value: windrow_slice,
    ttl_ms: u64,
    error: *mut *mut windrow_error,
) -> bool {
    add(batch, keyspace, error, |batch, of| {
        batch.put_with_ttl(
            &of.keyspace,
            key.bytes()?,
            value.bytes()?,
            Duration::from_millis(ttl_ms),
        );
        Ok(())
    })
}

/// Adds a delete.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_delete(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    add(batch, keyspace, error, |batch, of| {
        batch.delete(&of.keyspace, key.bytes()?);
        Ok(())
    })
}

/// Adds a single delete (windrow_single_delete).
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_single_delete(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    add(batch, keyspace, error, |batch, of| {
        batch.single_delete(&of.keyspace, key.bytes()?);
        Ok(())
    })
}

/// Adds a delete of all keys in `from..to`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_delete_range(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    from: windrow_slice,
    to: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    add(batch, keyspace, error, |batch, of| {
        batch.delete_range(&of.keyspace, from.bytes()?, to.bytes()?);
        Ok(())
    })
}

/// Adds a merge.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_batch_merge(
    batch: Option<&mut windrow_batch>,
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    operand: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    add(batch, keyspace, error, |batch, of| {
        batch.merge(&of.keyspace, key.bytes()?, operand.bytes()?);
        Ok(())
    })
}

/// Writes all of the batch or nothing of it. `sync`: it is on the device when the call returns. The batch keeps its
/// operations, and may be written again or cleared.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_write(
    db: Option<&windrow_db>,
    batch: Option<&mut windrow_batch>,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let sync = if sync { WriteSync::Yes } else { WriteSync::No };
        let batch = &mut given(batch, "batch")?.0;
        given(db, "database")?.0.write(batch, sync).map(|_| ())
    })
}
