//! Cursors, which Java moves step by step.
//!
//! Owns: their table, and the native methods. Never does: write.

use crate::edge::native;
use crate::keyspace::KEYSPACES;
use crate::scan::{put_entry, read_options};
use crate::table::{Alone, Table};
use jni_sys::{jbyteArray, jint, jlong, jobject};
use std::ptr::null_mut;
use windrow::{Cursor, Error};

static CURSORS: Table<Alone<Cursor>> = Table::new("cursor");

native! {
    Java_org_windrow_Native_cursor(
        env, _owner: jobject, keyspace: jlong, from: jbyteArray, to: jbyteArray, flags: jint, snapshot: jlong
    ) -> jlong {
        let keyspace = KEYSPACES.get(keyspace)?;
        CURSORS.add(Alone::new(keyspace.cursor(read_options(env, from, to, flags, snapshot)?)))
    }
}

native! {
    /// Moves the cursor, and returns the entry that it is at then, in the form of `scan.rs`; null
    /// where it is at none.
    Java_org_windrow_Native_move(
        env, _owner: jobject, cursor: jlong, how: jint, key: jbyteArray
    ) -> jbyteArray {
        let key = env.bytes(key).unwrap_or_default();
        let cursor = CURSORS.get(cursor)?;
        let mut entry = Vec::new();
        let is_at_one = cursor.with(|cursor| {
            let is_at_one = match how {
                0 => cursor.seek_first(),
                1 => cursor.seek_last(),
                2 => cursor.seek(&key),
                3 => cursor.seek_before(&key),
                4 | 5 if !cursor.valid() => Err(Error::invalid("the cursor is at no entry: seek first")),
                4 => cursor.next(),
                5 => cursor.prev(),
                _ => cursor.refresh(),
            }?;
            if is_at_one {
                put_entry(&mut entry, cursor.key(), cursor.value());
            }
            Ok(is_at_one)
        })?;
        if is_at_one { env.new_bytes(&entry) } else { Ok(null_mut()) }
    }
}

native! {
    Java_org_windrow_Native_freeCursor(_env, cursor: jlong) -> () {
        CURSORS.end(cursor)
    }
}
