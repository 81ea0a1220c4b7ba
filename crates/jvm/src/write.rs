//! Writes of one key, and of batches.
//!
//! Owns: the native methods, and the encoding of a batch by Java. Never does: keep a key or value.

use crate::bytes::Direct;
use crate::database::DATABASES;
use crate::edge::native;
use crate::failure::{Failure, Outcome};
use crate::keyspace::KEYSPACES;
use crate::options::ttl;
use jni_sys::{jbyteArray, jint, jlong, jlongArray, jobject};
use std::sync::Arc;
use windrow::{Batch, Error, Keyspace, WriteSync};

native! {
    /// Puts a value. A `ttl_ms` of -1 means the keyspace's default, or no expiry.
    Java_org_windrow_Native_put(
        env, _owner: jobject, keyspace: jlong, key: jbyteArray, value: jbyteArray, ttl_ms: jlong
    ) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| {
            env.with_bytes("the value", value, |value| match ttl_ms {
                -1 => Ok(keyspace.put(key, value)?),
                ms => Ok(keyspace.put_with_ttl(key, value, ttl(ms)?)?),
            })
        })
    }
}

native! {
    Java_org_windrow_Native_putDirect(
        env, _owner: jobject, keyspace: jlong,
        key: jobject, key_at: jint, key_len: jint, value: jobject, value_at: jint, value_len: jint
    ) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        let key = Direct::new(env, "key", key, key_at, key_len)?;
        let value = Direct::new(env, "value", value, value_at, value_len)?;
        Ok(keyspace.put(key.bytes(), value.bytes())?)
    }
}

native! {
    Java_org_windrow_Native_delete(env, _owner: jobject, keyspace: jlong, key: jbyteArray) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| Ok(keyspace.delete(key)?))
    }
}

native! {
    Java_org_windrow_Native_deleteRange(
        env, _owner: jobject, keyspace: jlong, from: jbyteArray, to: jbyteArray
    ) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the first key", from, |from| {
            env.with_bytes("the end", to, |to| Ok(keyspace.delete_range(from, to)?))
        })
    }
}

native! {
    Java_org_windrow_Native_merge(
        env, _owner: jobject, keyspace: jlong, key: jbyteArray, operand: jbyteArray
    ) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| {
            env.with_bytes("the operand", operand, |operand| Ok(keyspace.merge(key, operand)?))
        })
    }
}

native! {
    /// Replaces `old` by `new`, where null means absent. Returns whether the value was `old`.
    Java_org_windrow_Native_compareAndSet(
        env, _owner: jobject, keyspace: jlong, key: jbyteArray, old: jbyteArray, new: jbyteArray
    ) -> bool {
        let keyspace = KEYSPACES.get(keyspace)?;
        let (old, new) = (env.bytes(old), env.bytes(new));
        env.with_bytes("the key", key, |key| {
            Ok(keyspace.compare_exchange(key, old.as_deref(), new.as_deref())?.is_ok())
        })
    }
}

native! {
    /// Returns the value that was there; null where there was none, and the new one has been put.
    Java_org_windrow_Native_putIfAbsent(
        env, _owner: jobject, keyspace: jlong, key: jbyteArray, value: jbyteArray
    ) -> jbyteArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| {
            let before = env.with_bytes("the value", value, |value| {
                Ok(keyspace.put_if_absent(key, value)?)
            });
            env.new_bytes_or_null(before?)
        })
    }
}

native! {
    /// Deletes a key. Returns the value that was there.
    Java_org_windrow_Native_remove(env, _owner: jobject, keyspace: jlong, key: jbyteArray) -> jbyteArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| env.new_bytes_or_null(keyspace.remove(key)?))
    }
}

native! {
    Java_org_windrow_Native_clear(_env, _owner: jobject, keyspace: jlong) -> () {
        Ok(KEYSPACES.get(keyspace)?.clear()?)
    }
}

native! {
    /// Writes a batch: operations in the encoding of `Batch` in Java, on the given keyspaces. Returns the sequence
    /// number.
    Java_org_windrow_Native_write(
        env, _owner: jobject, database: jlong, operations: jbyteArray, len: jint, keyspaces: jlongArray, sync: bool
    ) -> jlong {
        let database = DATABASES.get(database)?;
        let keyspaces = env.longs(keyspaces).into_iter().map(|keyspace| KEYSPACES.get(keyspace));
        let keyspaces = keyspaces.collect::<Outcome<Vec<_>>>()?;
        let operations = env.first_bytes(operations, usize::try_from(len).unwrap_or(0));
        let batch = batch(&operations, &keyspaces)?;
        let sync = if sync { WriteSync::Yes } else { WriteSync::No };
        Ok(database.db.write(batch, sync)? as jlong)
    }
}

/// Decodes a batch of Java: for each operation its number, the keyspace's index, the lengths of key and value, for some
/// a time to live in milliseconds, the key and the value.
fn batch(operations: &[u8], keyspaces: &[Arc<Keyspace>]) -> Outcome<Batch> {
    let mut batch = Batch::new();
    let mut reader = Reader(operations);
    while let Some(operation) = reader.take(1) {
        let keyspace = reader.int().and_then(|place| keyspaces.get(place)).ok_or_else(cut)?;
        let (key, value) = reader.int().zip(reader.int()).ok_or_else(cut)?;
        let ttl_ms =
            if matches!(operation[0], 5 | 6) { reader.long().ok_or_else(cut)? } else { 0 };
        let (key, value) = reader.take(key).zip(reader.take(value)).ok_or_else(cut)?;
        let keyspace = &**keyspace;
        match operation[0] {
            0 => batch.put(keyspace, key, value),
            1 => batch.delete(keyspace, key),
            2 => batch.single_delete(keyspace, key),
            3 => batch.merge(keyspace, key, value),
            4 => batch.delete_range(keyspace, key, value),
            5 => batch.put_with_ttl(keyspace, key, value, ttl(ttl_ms)?),
            6 => batch.merge_with_ttl(keyspace, key, value, ttl(ttl_ms)?),
            7 => batch.delete_prefix(keyspace, key),
            _ => return Err(cut()),
        }
    }
    Ok(batch)
}

/// The class `Batch` writes whole operations: a partial one is a defect, or the batch was changed by another thread
/// meanwhile.
fn cut() -> Failure {
    Error::invalid(
        "the batch was changed by another thread while it was written: it is for one at a time",
    )
    .into()
}

/// A reader of Java's encoding, in little-endian order.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn int(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(i32::from_le_bytes(bytes)).ok()
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}
