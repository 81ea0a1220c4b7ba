//! Tests of `recover/src/keyspace_changes.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};

/// As `Db::flush` does when its list of keyspaces is older than the drop.
#[test]
fn a_flush_counts_nothing_of_a_keyspace_that_was_dropped() {
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    options.settings.set("memtable_bytes", "64KiB").unwrap();
    let db = Db::open_with("db", options).unwrap();
    db.put("kept", [7; 1000]).unwrap();
    let space = db.keyspace("gone").unwrap();
    space.put("key", vec![7; 30_000]).unwrap();
    let (database, tree) = (db.database(), space.tree.clone());
    let bytes = || database.pipeline.queue().lock().unflushed.active_bytes();
    let frozen = || database.pipeline.queue().lock().unflushed.frozen_bytes();
    db.drop_keyspace("gone").unwrap();
    let kept = bytes();
    assert!(kept >= 1000);
    database.pipeline.flush_tree(&tree).unwrap();
    assert_eq!((bytes(), frozen()), (kept, 0));
    // Memtables are frozen and flushed as before.
    (0..20).for_each(|n| db.put(format!("key{n}"), vec![7; 30_000]).unwrap());
    db.flush().unwrap();
    assert_eq!((bytes(), frozen()), (0, 0));
    db.close().unwrap();
}

/// Memtables of dropped keyspaces that a handle kept were not counted.
#[test]
fn memtables_of_a_dropped_keyspace_count_while_a_handle_is_kept() {
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    options.settings.set("memtable_bytes", "64KiB").unwrap();
    let db = Db::open_with("db", options).unwrap();
    let blocks = db.database().caches.blocks.clone();
    let held = || blocks.held_bytes() - blocks.bytes_used();
    let space = db.keyspace("gone").unwrap();
    // A frozen memtable and an active one.
    (0..3).for_each(|n| space.put(format!("key{n}"), vec![7; 30_000]).unwrap());
    assert_eq!(space.tree.view().frozen.len(), 1);
    assert_eq!(held(), 0);
    db.drop_keyspace("gone").unwrap();
    assert!(held() >= 90_000, "{}", held());
    assert!(db.stats().memory.readers_bytes >= 90_000, "{:?}", db.stats().memory);
    drop(space);
    db.wait_idle().unwrap();
    assert_eq!(held(), 0);
    db.close().unwrap();
}

/// The logs and the manifest grew without bound where nothing was written.
#[test]
fn making_and_dropping_keyspaces_leaves_a_bounded_directory() {
    for with_data in [false, true] {
        let (env, handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env.clone());
        options.settings.set("memtable_bytes", "64KiB").unwrap();
        options.settings.set("manifest_bytes", "64KiB").unwrap();
        let db = Db::open_with("db", options.clone()).unwrap();
        let kept = db.keyspace("kept").unwrap();
        kept.put("key", "value").unwrap();
        let mut most = 0;
        for n in 0..6000 {
            let space = db.keyspace("passing").unwrap();
            if with_data && n % 50 == 0 {
                space.put("key", "value").unwrap();
            }
            db.drop_keyspace("passing").unwrap();
            if n % 100 == 0 {
                handles.jobs.run_until_idle();
                let dir = std::path::Path::new("db");
                let files = env.fs.list(dir).unwrap();
                let bytes = files.iter().map(|name| env.fs.len(&dir.join(name)).unwrap());
                most = bytes.sum::<u64>().max(most);
            }
        }
        assert!(most < 768 << 10, "{most} bytes");
        db.close().unwrap();
        let db = Db::open_with("db", options).unwrap();
        assert_eq!(db.keyspaces(), ["default", "kept"]);
        let kept = db.keyspace("kept").unwrap();
        assert_eq!(kept.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn keyspaces_made_together_are_there_or_refused_together() {
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with("db", options).unwrap();
    let old = db.keyspace("b").unwrap();
    old.put("key", "old").unwrap();
    assert!(db.create_keyspaces(&["x", "y", ""]).is_err());
    assert_eq!(db.keyspaces(), ["default", "b"]);
    let made = db.create_keyspaces(&["a", "b", "c", "a"]).unwrap();
    assert_eq!(db.keyspaces(), ["default", "b", "a", "c"]);
    assert_eq!(made[1].get("key").unwrap().as_deref(), Some(&b"old"[..]));
    made[0].put("key", "new").unwrap();
    assert_eq!(made[3].get("key").unwrap().as_deref(), Some(&b"new"[..]));
}
