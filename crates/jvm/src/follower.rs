//! Followers of databases that another process has open.
//!
//! Owns: their table, and the native methods. Never does: write.

use crate::database::{DATABASES, Database};
use crate::edge::native;
use crate::kept::Kept;
use crate::options::{Given, ttl};
use crate::table::Table;
use crate::work::Work;
use jni_sys::{jint, jlong, jobject, jobjectArray, jstring};
use std::sync::Arc;

static FOLLOWERS: Table<Following> = Table::new("follower");

struct Following {
    follower: windrow::Follower,
    kept: Arc<Kept>,
    work: Arc<Work>,
}

native! {
    Java_org_windrow_Native_follow(
        env, path: jstring, flags: jint, settings: jobjectArray, keyspace: jobjectArray,
        names: jobjectArray, components: jobjectArray
    ) -> jlong {
        let (kept, work) = (Arc::new(Kept::default()), Arc::new(Work::default()));
        let given = Given { flags, settings, keyspace, names, components };
        let options = given.options(env, &kept, &work)?;
        let follower = windrow::Follower::open_with(env.string(path).unwrap_or_default(), options)?;
        FOLLOWERS.add(Following { follower, kept, work })
    }
}

native! {
    /// Returns the database as of the last refresh. Later refreshes do not change it.
    Java_org_windrow_Native_followed(_env, _owner: jobject, follower: jlong) -> jlong {
        let following = FOLLOWERS.get(follower)?;
        let (kept, work) = (following.kept.clone(), following.work.clone());
        DATABASES.add(Database { db: following.follower.db(), kept, work })
    }
}

native! {
    Java_org_windrow_Native_refresh(_env, _owner: jobject, follower: jlong) -> bool {
        Ok(FOLLOWERS.get(follower)?.follower.refresh()?)
    }
}

native! {
    Java_org_windrow_Native_refreshEvery(_env, _owner: jobject, follower: jlong, ms: jlong) -> () {
        FOLLOWERS.get(follower)?.follower.refresh_every(ttl(ms)?);
        Ok(())
    }
}

native! {
    Java_org_windrow_Native_freeFollower(_env, follower: jlong) -> () {
        FOLLOWERS.end(follower)
    }
}
