//! Reads and writes of a keyspace's keys, and operations on its ranges.
//!
//! Owns: the handle. Never does: keep a value.

use crate::bytes::{array, put_out, text_in, text_out, windrow_slice, windrow_value};
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::snapshot::windrow_snapshot;
use engine::{Keyspace, Result, Slice, Ttl};
use std::ffi::{c_char, c_int};
use std::ops::Bound;
use std::time::Duration;

/// An ordered map from keys to values. The handle keeps its database open until it is freed or the database is closed.
/// Any number of threads may use it at once.
pub struct windrow_keyspace {
    pub(crate) keyspace: Keyspace,
    synced: Keyspace,
}

impl windrow_keyspace {
    pub(crate) fn boxed(keyspace: Keyspace) -> Box<windrow_keyspace> {
        Box::new(windrow_keyspace { synced: keyspace.synced(), keyspace })
    }

    /// The engine's handle whose writes sync, or do not, as asked.
    fn writing(&self, sync: bool) -> &Keyspace {
        if sync { &self.synced } else { &self.keyspace }
    }
}

/// Frees the handle. The keyspace stays.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_free(keyspace: Option<Box<windrow_keyspace>>) {
    drop(keyspace);
}

/// The keyspace's name, to be freed by windrow_string_free; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_name(keyspace: Option<&windrow_keyspace>) -> *mut c_char {
    keyspace.map_or(std::ptr::null_mut(), |of| text_out(of.keyspace.name()))
}

fn read(
    keyspace: &windrow_keyspace,
    snapshot: Option<&windrow_snapshot>,
    key: &[u8],
) -> Result<Option<Slice>> {
    match snapshot {
        Some(snapshot) => keyspace.keyspace.get_at(&snapshot.0, key),
        None => keyspace.keyspace.get(key),
    }
}

/// The value of `key`, as of `snapshot` (NULL: now); to be freed by windrow_value_free. NULL, without an error, if the
/// key is absent.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_get(
    keyspace: Option<&windrow_keyspace>,
    snapshot: Option<&windrow_snapshot>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_value>> {
    caught(error, || read(given(keyspace, "keyspace")?, snapshot, key.bytes()?))
        .flatten()
        .map(windrow_value::boxed)
}

/// Whether `key` has a value, as of `snapshot` (NULL: now). False on an error, too.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_contains(
    keyspace: Option<&windrow_keyspace>,
    snapshot: Option<&windrow_snapshot>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> bool {
    let contains = || {
        let keyspace = given(keyspace, "keyspace")?;
        match snapshot {
            Some(_) => read(keyspace, snapshot, key.bytes()?).map(|value| value.is_some()),
            None => keyspace.keyspace.contains_key(key.bytes()?),
        }
    };
    caught(error, contains).unwrap_or(false)
}

/// Reads the values of `count` keys at once, which waits for the device less often than one by one. `values` has room
/// for `count` pointers; each becomes a value to be freed, or NULL. If the call fails, all are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_multi_get(
    keyspace: Option<&windrow_keyspace>,
    snapshot: Option<&windrow_snapshot>,
    keys: *const windrow_slice,
    count: usize,
    values: *mut *mut windrow_value,
    error: *mut *mut windrow_error,
) -> bool {
    // Each element of `values` is a result of its own.
    let place = |at: usize| values.wrapping_add(at);
    (0..if values.is_null() { 0 } else { count })
        .for_each(|at| put_out(place(at), std::ptr::null_mut()));
    done(error, || {
        let keyspace = &given(keyspace, "keyspace")?.keyspace;
        let keys = array(keys, count, "keys")?;
        given((!values.is_null() || count == 0).then_some(()), "room for values")?;
        let keys: Vec<&[u8]> = keys.iter().map(windrow_slice::bytes).collect::<Result<_>>()?;
        let found = match snapshot {
            Some(snapshot) => keyspace.multi_get_at(&snapshot.0, &keys),
            None => keyspace.multi_get(&keys),
        };
        let found: Vec<Option<Slice>> = found.into_iter().collect::<Result<_>>()?;
        for (at, value) in found.into_iter().enumerate() {
            let value =
                value.map_or(std::ptr::null_mut(), |of| Box::into_raw(windrow_value::boxed(of)));
            put_out(place(at), value);
        }
        Ok(())
    })
}

/// The number of milliseconds until `key` expires; -1 if it never does, -2 if it is absent, -3 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_ttl_ms(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    error: *mut *mut windrow_error,
) -> i64 {
    let ttl = caught(error, || given(keyspace, "keyspace")?.keyspace.ttl(key.bytes()?));
    match ttl {
        Some(Ttl::Left(left)) => i64::try_from(left.as_millis()).unwrap_or(i64::MAX),
        Some(Ttl::Forever) => -1,
        Some(Ttl::NoKey) => -2,
        None => -3,
    }
}

/// Puts a value. `sync`: it is on the device when the call returns; else it has reached the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_put(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    value: windrow_slice,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.writing(sync).put(key.bytes()?, value.bytes()?))
}

/// Puts a value that expires after `ttl_ms` milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_put_with_ttl(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    value: windrow_slice,
    ttl_ms: u64,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let keyspace = given(keyspace, "keyspace")?.writing(sync);
        keyspace.put_with_ttl(key.bytes()?, value.bytes()?, Duration::from_millis(ttl_ms))
    })
}

/// Deletes a key. An absent key is no error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_delete(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.writing(sync).delete(key.bytes()?))
}

/// Deletes a key that was put once since its last delete. It is cheaper than a delete, and wrong for any other key.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_single_delete(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.writing(sync).single_delete(key.bytes()?))
}

/// Deletes all keys in `from..to`, any number of them.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_delete_range(
    keyspace: Option<&windrow_keyspace>,
    from: windrow_slice,
    to: windrow_slice,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        given(keyspace, "keyspace")?.writing(sync).delete_range(from.bytes()?, to.bytes()?)
    })
}

/// Merges an operand into a key's value by the keyspace's merge operator, without reading the value.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_merge(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    operand: windrow_slice,
    sync: bool,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.writing(sync).merge(key.bytes()?, operand.bytes()?))
}

/// Makes the value `new_value` (NULL: absent) if it is `old_value` (NULL: absent). Returns 1 if it was, 0 if it was
/// another one, -1 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_compare_exchange(
    keyspace: Option<&windrow_keyspace>,
    key: windrow_slice,
    old_value: Option<&windrow_slice>,
    new_value: Option<&windrow_slice>,
    sync: bool,
    error: *mut *mut windrow_error,
) -> c_int {
    let exchanged = caught(error, || {
        let keyspace = given(keyspace, "keyspace")?.writing(sync);
        let old = old_value.map(windrow_slice::bytes).transpose()?;
        let new = new_value.map(windrow_slice::bytes).transpose()?;
        keyspace.compare_exchange(key.bytes()?, old, new).map(|done| done.is_ok())
    });
    exchanged.map_or(-1, c_int::from)
}

/// The bounds of a range.
type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The bounds `from..to`; NULL: to the end.
pub(crate) fn bounds<'a>(
    from: Option<&'a windrow_slice>,
    to: Option<&'a windrow_slice>,
) -> Result<Bounds<'a>> {
    let from = from.map(windrow_slice::bytes).transpose()?;
    let to = to.map(windrow_slice::bytes).transpose()?;
    let begin = from.map_or(Bound::Unbounded, Bound::Included);
    Ok((begin, to.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// The number of keys in `from..to` (NULL: to the end), by reading them. 0 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_count(
    keyspace: Option<&windrow_keyspace>,
    from: Option<&windrow_slice>,
    to: Option<&windrow_slice>,
    error: *mut *mut windrow_error,
) -> u64 {
    caught(error, || given(keyspace, "keyspace")?.keyspace.count(bounds(from, to)?)).unwrap_or(0)
}

/// About the number of keys, without reading them. 0 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_approximate_count(
    keyspace: Option<&windrow_keyspace>,
    error: *mut *mut windrow_error,
) -> u64 {
    caught(error, || given(keyspace, "keyspace")?.keyspace.approximate_len()).unwrap_or(0)
}

/// About the number of bytes that the keys in `from..to` take. 0 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_approximate_bytes(
    keyspace: Option<&windrow_keyspace>,
    from: windrow_slice,
    to: windrow_slice,
    error: *mut *mut windrow_error,
) -> u64 {
    let bytes =
        || given(keyspace, "keyspace")?.keyspace.approximate_bytes(from.bytes()?, to.bytes()?);
    caught(error, bytes).unwrap_or(0)
}

/// Writes the keyspace's memtable to tables.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_flush(
    keyspace: Option<&windrow_keyspace>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.keyspace.flush())
}

/// Merges the entries in `from..to` (NULL: to the end) down to the last level, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_compact(
    keyspace: Option<&windrow_keyspace>,
    from: Option<&windrow_slice>,
    to: Option<&windrow_slice>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.keyspace.compact_range(bounds(from, to)?))
}

/// Sets the merge policy of the tree from now on: a preset's name, or a policy in full.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_set_policy(
    keyspace: Option<&windrow_keyspace>,
    policy: *const c_char,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(keyspace, "keyspace")?.keyspace.set_policy(text_in(policy, "the policy")?))
}

/// The merge policy in full, to be freed by windrow_string_free; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_policy(keyspace: Option<&windrow_keyspace>) -> *mut c_char {
    keyspace.map_or(std::ptr::null_mut(), |of| text_out(of.keyspace.policy()))
}
