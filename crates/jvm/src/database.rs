//! Databases and snapshots.
//!
//! Owns: their tables, and the native methods. Never does: read or write a key.

use crate::edge::{exception_of, native};
use crate::kept::Kept;
use crate::options::Given;
use crate::table::Table;
use crate::work::Work;
use jni_sys::{jint, jlong, jobject, jobjectArray, jstring};
use std::ptr::null_mut;
use std::sync::Arc;

pub(crate) static DATABASES: Table<Database> = Table::new("database");
pub(crate) static SNAPSHOTS: Table<windrow::Snapshot> = Table::new("snapshot");

pub(crate) struct Database {
    pub(crate) db: windrow::Db,
    /// The exceptions that its callbacks in Java threw.
    pub(crate) kept: Arc<Kept>,
    /// The counts of its background work.
    pub(crate) work: Arc<Work>,
}

native! {
    Java_org_windrow_Native_open(
        env, path: jstring, flags: jint, settings: jobjectArray, keyspace: jobjectArray,
        names: jobjectArray, components: jobjectArray
    ) -> jlong {
        let (kept, work) = (Arc::new(Kept::default()), Arc::new(Work::default()));
        let given = Given { flags, settings, keyspace, names, components };
        let options = given.options(env, &kept, &work)?;
        let db = windrow::Db::open_with(env.string(path).unwrap_or_default(), options)?;
        DATABASES.add(Database { db, kept, work })
    }
}

native! {
    /// Repairs a database. Returns the report: its numbers in the order of `RepairReport`, then the
    /// problems.
    Java_org_windrow_Native_repair(
        env, path: jstring, flags: jint, settings: jobjectArray, keyspace: jobjectArray,
        names: jobjectArray, components: jobjectArray
    ) -> jobjectArray {
        let (kept, work) = (Arc::new(Kept::default()), Arc::new(Work::default()));
        let given = Given { flags, settings, keyspace, names, components };
        let options = given.options(env, &kept, &work)?;
        let report = windrow::repair(env.string(path).unwrap_or_default(), options)?;
        let mut told = vec![
            u64::from(report.lost_something()).to_string(),
            report.tables_kept.to_string(),
            report.tables_salvaged.to_string(),
            report.tables_lost.to_string(),
            report.entries_salvaged.to_string(),
            report.batches_replayed.to_string(),
        ];
        told.extend(report.problems.iter().map(ToString::to_string));
        env.new_strings(&told)
    }
}

native! {
    Java_org_windrow_Native_destroy(env, path: jstring) -> () {
        Ok(windrow::Db::destroy(env.string(path).unwrap_or_default())?)
    }
}

native! {
    /// Closes the database for all handles, and ends this handle.
    Java_org_windrow_Native_close(_env, _owner: jobject, database: jlong) -> () {
        // A second close finds nothing.
        let Some(database) = DATABASES.remove(database) else { return Ok(()) };
        Ok(database.db.close()?)
    }
}

native! {
    /// Ends a handle that Java no longer refers to. The last handle closes the database.
    Java_org_windrow_Native_freeDatabase(_env, database: jlong) -> () {
        DATABASES.end(database)
    }
}

native! {
    Java_org_windrow_Native_snapshot(_env, _owner: jobject, database: jlong) -> jlong {
        SNAPSHOTS.add(DATABASES.get(database)?.db.snapshot())
    }
}

native! {
    Java_org_windrow_Native_freeSnapshot(_env, snapshot: jlong) -> () {
        SNAPSHOTS.end(snapshot)
    }
}

native! {
    Java_org_windrow_Native_sync(_env, _owner: jobject, database: jlong) -> () {
        Ok(DATABASES.get(database)?.db.sync()?)
    }
}

native! {
    Java_org_windrow_Native_flush(_env, _owner: jobject, database: jlong) -> () {
        Ok(DATABASES.get(database)?.db.flush()?)
    }
}

native! {
    Java_org_windrow_Native_compactAll(_env, _owner: jobject, database: jlong) -> () {
        Ok(DATABASES.get(database)?.db.compact()?)
    }
}

native! {
    Java_org_windrow_Native_waitIdle(_env, _owner: jobject, database: jlong) -> () {
        Ok(DATABASES.get(database)?.db.wait_idle()?)
    }
}

native! {
    Java_org_windrow_Native_checkpoint(env, _owner: jobject, database: jlong, path: jstring) -> () {
        let database = DATABASES.get(database)?;
        Ok(database.db.checkpoint(env.string(path).unwrap_or_default())?)
    }
}

native! {
    /// Checks every checksum. Returns the problems.
    Java_org_windrow_Native_verify(env, _owner: jobject, database: jlong) -> jobjectArray {
        let report = DATABASES.get(database)?.db.verify()?;
        let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        env.new_strings(&problems)
    }
}

native! {
    Java_org_windrow_Native_resume(_env, _owner: jobject, database: jlong) -> () {
        Ok(DATABASES.get(database)?.db.resume()?)
    }
}

native! {
    /// Returns the exception that turned writing off; null while it is on.
    Java_org_windrow_Native_writeError(env, _owner: jobject, database: jlong) -> jobject {
        let database = DATABASES.get(database)?;
        let Some(error) = database.db.write_error() else { return Ok(null_mut()) };
        exception_of(env, &error, database.kept.last().as_deref())
    }
}

native! {
    /// Panics, to test that no panic passes the edge.
    Java_org_windrow_Native_panic(_env, _owner: jobject, database: jlong) -> () {
        let _database = DATABASES.get(database)?;
        panic!("it was asked for")
    }
}
