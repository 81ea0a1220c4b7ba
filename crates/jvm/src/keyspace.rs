//! Operations on whole keyspaces.
//!
//! Owns: their table, and the native methods. Never does: read or write a key.

use crate::database::DATABASES;
use crate::edge::native;
use crate::options::keyspace_options;
use crate::table::Table;
use jni_sys::{jbyteArray, jlong, jobject, jobjectArray, jstring};
use std::ops::Bound;
use windrow::Keyspace;

pub(crate) static KEYSPACES: Table<Keyspace> = Table::new("keyspace");

native! {
    /// Returns the keyspace of a name, which is created if it does not exist.
    Java_org_windrow_Native_keyspace(
        env, _owner: jobject, database: jlong, name: jstring, options: jobjectArray
    ) -> jlong {
        let database = DATABASES.get(database)?;
        let name = env.string(name).unwrap_or_default();
        let options = keyspace_options(&env.strings(options))?;
        KEYSPACES.add(database.db.keyspace_with(&name, options)?)
    }
}

native! {
    /// Returns the keyspace of a name; 0 if it does not exist.
    Java_org_windrow_Native_findKeyspace(env, _owner: jobject, database: jlong, name: jstring) -> jlong {
        let database = DATABASES.get(database)?;
        let name = env.string(name).unwrap_or_default();
        database.db.open_keyspace(&name)?.map_or(Ok(0), |keyspace| KEYSPACES.add(keyspace))
    }
}

native! {
    Java_org_windrow_Native_defaultKeyspace(_env, _owner: jobject, database: jlong) -> jlong {
        KEYSPACES.add(DATABASES.get(database)?.db.default_keyspace())
    }
}

native! {
    Java_org_windrow_Native_keyspaces(env, _owner: jobject, database: jlong) -> jobjectArray {
        env.new_strings(&DATABASES.get(database)?.db.keyspaces())
    }
}

native! {
    Java_org_windrow_Native_dropKeyspace(env, _owner: jobject, database: jlong, name: jstring) -> () {
        let database = DATABASES.get(database)?;
        Ok(database.db.drop_keyspace(&env.string(name).unwrap_or_default())?)
    }
}

native! {
    /// Returns a second handle of the keyspace, whose writes are on the device when they return.
    Java_org_windrow_Native_synced(_env, _owner: jobject, keyspace: jlong) -> jlong {
        KEYSPACES.add(KEYSPACES.get(keyspace)?.synced())
    }
}

native! {
    Java_org_windrow_Native_name(env, _owner: jobject, keyspace: jlong) -> jstring {
        env.new_string(KEYSPACES.get(keyspace)?.name())
    }
}

native! {
    Java_org_windrow_Native_policy(env, _owner: jobject, keyspace: jlong) -> jstring {
        env.new_string(&KEYSPACES.get(keyspace)?.policy())
    }
}

native! {
    Java_org_windrow_Native_setPolicy(env, _owner: jobject, keyspace: jlong, policy: jstring) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        Ok(keyspace.set_policy(&env.string(policy).unwrap_or_default())?)
    }
}

native! {
    /// Stores settings with the keyspace. The given ones replace all that were stored before.
    Java_org_windrow_Native_configure(env, _owner: jobject, keyspace: jlong, options: jobjectArray) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        Ok(keyspace.configure(keyspace_options(&env.strings(options))?.settings)?)
    }
}

native! {
    Java_org_windrow_Native_count(
        env, _owner: jobject, keyspace: jlong, from: jbyteArray, to: jbyteArray
    ) -> jlong {
        let keyspace = KEYSPACES.get(keyspace)?;
        let (from, to) = (env.bytes(from), env.bytes(to));
        Ok(keyspace.count(range(&from, &to))? as jlong)
    }
}

native! {
    Java_org_windrow_Native_approximateCount(_env, _owner: jobject, keyspace: jlong) -> jlong {
        Ok(KEYSPACES.get(keyspace)?.approximate_len()? as jlong)
    }
}

native! {
    Java_org_windrow_Native_approximateBytes(
        env, _owner: jobject, keyspace: jlong, from: jbyteArray, to: jbyteArray
    ) -> jlong {
        let keyspace = KEYSPACES.get(keyspace)?;
        env.with_bytes("the first key", from, |from| {
            env.with_bytes("the end", to, |to| Ok(keyspace.approximate_bytes(from, to)? as jlong))
        })
    }
}

native! {
    Java_org_windrow_Native_flushKeyspace(_env, _owner: jobject, keyspace: jlong) -> () {
        Ok(KEYSPACES.get(keyspace)?.flush()?)
    }
}

native! {
    Java_org_windrow_Native_compactRange(
        env, _owner: jobject, keyspace: jlong, from: jbyteArray, to: jbyteArray
    ) -> () {
        let keyspace = KEYSPACES.get(keyspace)?;
        let (from, to) = (env.bytes(from), env.bytes(to));
        Ok(keyspace.compact_range(range(&from, &to))?)
    }
}

native! {
    Java_org_windrow_Native_freeKeyspace(_env, keyspace: jlong) -> () {
        KEYSPACES.end(keyspace)
    }
}

/// The range from a key to before another; either may be missing.
pub(crate) fn range<'a>(
    from: &'a Option<Vec<u8>>,
    to: &'a Option<Vec<u8>>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    let from = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
    (from, to.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
}
