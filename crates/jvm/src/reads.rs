//! Reads of one key or of several.
//!
//! Owns: the native methods. Never does: keep a value.

use crate::bytes::Direct;
use crate::database::SNAPSHOTS;
use crate::edge::native;
use crate::keyspace::KEYSPACES;
use jni_sys::{jbyteArray, jint, jlong, jobject, jobjectArray};
use std::ptr::null_mut;
use windrow::{Slice, Ttl};

/// The result of `getDirect` for an absent key.
const NO_KEY: jint = -1;

/// The results of `ttl` for an absent key, and for one that never expires.
const TTL_NO_KEY: jlong = -2;
const TTL_FOREVER: jlong = -1;

native! {
    Java_org_windrow_Native_get(env, _owner: jobject, keyspace: jlong, key: jbyteArray) -> jbyteArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| env.new_bytes_or_null(keyspace.get(key)?))
    }
}

native! {
    Java_org_windrow_Native_getAt(
        env, _owner: jobject, keyspace: jlong, snapshot: jlong, key: jbyteArray
    ) -> jbyteArray {
        let (keyspace, snapshot) = (KEYSPACES.get(keyspace)?, SNAPSHOTS.get(snapshot)?);
        let value = env.with_bytes("the key", key, |key| Ok(keyspace.get_at(&snapshot, key)?))?;
        env.new_bytes_or_null(value)
    }
}

native! {
    /// Writes the value to the buffer as far as it fits. Returns its full length, or [`NO_KEY`].
    Java_org_windrow_Native_getDirect(
        env, _owner: jobject, keyspace: jlong,
        key: jobject, key_at: jint, key_len: jint, value: jobject, value_at: jint, value_len: jint
    ) -> jint {
        let keyspace = KEYSPACES.get(keyspace)?;
        let key = Direct::new(env, "key", key, key_at, key_len)?;
        let mut room = Direct::new(env, "buffer for the value", value, value_at, value_len)?;
        let Some(value) = keyspace.get(key.bytes())? else { return Ok(NO_KEY) };
        room.fill(&value);
        Ok(value.len() as jint)
    }
}

native! {
    Java_org_windrow_Native_contains(env, _owner: jobject, keyspace: jlong, key: jbyteArray) -> bool {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the key", key, |key| Ok(keyspace.contains_key(key)?))
    }
}

native! {
    /// Returns the values of several keys, null for each absent one; as of a snapshot, if it is not
    /// 0.
    Java_org_windrow_Native_getAll(
        env, _owner: jobject, keyspace: jlong, snapshot: jlong, keys: jobjectArray
    ) -> jobjectArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        let mut bytes = Vec::new();
        for key in env.objects(keys) {
            bytes.push(env.bytes(key).ok_or(crate::failure::Failure::Null("a key"))?);
            env.delete(key);
        }
        let values = match snapshot {
            0 => keyspace.multi_get(&bytes),
            snapshot => keyspace.multi_get_at(&*SNAPSHOTS.get(snapshot)?, &bytes),
        };
        let values: Vec<Option<Slice>> = values.into_iter().collect::<windrow::Result<_>>()?;
        env.new_byte_arrays(&values)
    }
}

native! {
    /// Returns the key and value of the first entry, or of the last one; null if there is none.
    Java_org_windrow_Native_end(
        env, _owner: jobject, keyspace: jlong, last: bool, pop: bool
    ) -> jobjectArray {
        let keyspace = KEYSPACES.get(keyspace)?;
        let entry = match (last, pop) {
            (false, false) => keyspace.first(),
            (true, false) => keyspace.last(),
            (false, true) => keyspace.pop_first(),
            (true, true) => keyspace.pop_last(),
        };
        let Some((key, value)) = entry? else { return Ok(null_mut()) };
        env.new_byte_arrays(&[Some(key), Some(value)])
    }
}

native! {
    /// Milliseconds that a key has left; [`TTL_NO_KEY`], [`TTL_FOREVER`].
    Java_org_windrow_Native_ttl(env, _owner: jobject, keyspace: jlong, key: jbyteArray) -> jlong {
        let keyspace = KEYSPACES.get(keyspace)?;
        let ttl = env.with_bytes("the key", key, |key| Ok(keyspace.ttl(key)?))?;
        Ok(match ttl {
            Ttl::NoKey => TTL_NO_KEY,
            Ttl::Forever => TTL_FOREVER,
            Ttl::Left(left) => jlong::try_from(left.as_millis()).unwrap_or(jlong::MAX),
        })
    }
}
