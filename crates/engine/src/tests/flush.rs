//! Tests of `store/src/jobs/flush.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};

/// Each open left one table, which stayed for ever.
#[test]
fn runs_that_write_a_key_each_leave_few_tables() {
    for preset in ["windrow", "leveled", "vlsm", "l2sm"] {
        let (env, _handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.settings.set("preset", preset).unwrap();
        options.settings.set("memtable_bytes", "1MiB").unwrap();
        for n in 0..400 {
            let db = Db::open_with("db", options.clone()).unwrap();
            db.put(format!("key{n:03}"), "value").unwrap();
            db.close().unwrap();
        }
        let db = Db::open_with("db", options).unwrap();
        db.wait_idle().unwrap();
        let tables: usize =
            crate::inspect::trees(&db).iter().map(|(_, tree)| tree.files().count()).sum();
        // At most seven tables of each size, where a size is eight times the one before.
        assert!(tables <= 3 * 7, "{preset}: {tables} tables");
        for n in 0..400 {
            assert!(db.get(format!("key{n:03}")).unwrap().is_some(), "{preset}: {n}");
        }
        db.verify().unwrap().into_result().unwrap();
    }
}

#[test]
fn a_flushed_memtable_counts_while_an_iterator_holds_it() {
    let (env, _handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with("db", options).unwrap();
    let fill = || (0..100).for_each(|n| db.put(format!("key{n}"), [7; 100]).unwrap());
    let blocks = db.default_keyspace().database.caches.blocks.clone();
    let held = || blocks.held_bytes() - blocks.bytes_used();
    fill();
    db.flush().unwrap();
    assert_eq!(held(), 0, "nobody holds the first one");
    fill();
    let iter = db.iter();
    assert_eq!(held(), 0, "its memtable is active and has its own share");
    db.flush().unwrap();
    assert!(held() >= 100 * 100, "{}", held());
    drop(iter);
    assert_eq!(held(), 0);
    db.close().unwrap();
}
