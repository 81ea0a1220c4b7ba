//! Tests of `store/src/jobs/schedule.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Keyspace, Options};
use windrow_env::sync::atomic::Ordering;
use windrow_env::testing::{Handles, env};
use windrow_plan::tree::File;

const NAMES: [&str; 3] = ["default", "second", "third"];

/// A database whose threads all seem to merge already.
fn open() -> (Db, [Keyspace; 3], Handles) {
    let (env, handles) = env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let settings = [
        ("preset", "leveled level0=tiered(k=2)"),
        ("level0_slowdown_files", "4"),
        ("level0_stop_files", "9"),
    ];
    for (name, value) in settings {
        options.settings.set(name, value).unwrap();
    }
    let db = Db::open_with("db", options).unwrap();
    let spaces = NAMES.map(|name| db.keyspace(name).unwrap());
    let database = db.database();
    database.workers.merges_running.fetch_add(database.workers.merges_max(), Ordering::AcqRel);
    (db, spaces, handles)
}

/// Makes level 0 `depth` tables deep.
fn deepen(space: &Keyspace, depth: u32) {
    for _ in 0..depth {
        space.put("a", "1").unwrap();
        space.put("z", "1").unwrap();
        space.flush().unwrap();
    }
}

/// Frees a thread. Returns the number of merges that each keyspace has now.
fn free_one(db: &Db, spaces: &[Keyspace; 3]) -> [u32; 3] {
    db.database().workers.merges_running.fetch_sub(1, Ordering::AcqRel);
    db.database().scheduler.schedule_merges();
    spaces.each_ref().map(|space| space.tree.work.lock().merging)
}

fn finish(db: &Db) {
    db.wait_idle().unwrap();
    assert_eq!(db.database().workers.merges_running.load(Ordering::Acquire), 0);
    db.close().unwrap();
}

#[test]
fn the_deepest_level_0_goes_first_and_then_whoever_waited_longest() {
    let (db, spaces, _handles) = open();
    deepen(&spaces[0], 4);
    deepen(&spaces[1], 3);
    deepen(&spaces[2], 5);
    assert_eq!(free_one(&db, &spaces), [0, 0, 1], "it slows writers most");
    assert_eq!(free_one(&db, &spaces), [1, 0, 1], "it slows writers, too");
    finish(&db);
}

/// A device was full for a merge and has room again, while all threads have other work.
#[test]
fn what_waited_for_room_does_not_keep_waiters_from_waiting() {
    let (db, spaces, _handles) = open();
    deepen(&spaces[0], 4);
    let work = &spaces[0].tree.work;
    work.lock().notes().attempt = windrow_store::host::shortage::OversizedMerge::held();
    assert!(db.database().scheduler.stuck_work().is_some());
    db.wait_idle().unwrap();
    let running = &db.database().workers.merges_running;
    running.fetch_sub(db.database().workers.merges_max(), Ordering::AcqRel);
    finish(&db);
}

/// An ingestion beyond all keys has reserved the place of its table, and has not installed it yet.
#[test]
fn a_merge_ends_while_a_place_is_reserved() {
    for preset in ["windrow", "leveled", "l2sm", "vlsm"] {
        let (env, _handles) = env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.settings.set("preset", preset).unwrap();
        let db = Db::open_with("db", options).unwrap();
        let tree = db.default_keyspace().tree.clone();
        let (smallest, largest) = (b"zy"[..].into(), b"zz"[..].into());
        let file = File { number: 1 << 20, smallest, largest, ..File::default() };
        tree.work.lock().busy.reserve(&file, 3);
        deepen(&db.default_keyspace(), 6);
        db.compact().unwrap();
        deepen(&db.default_keyspace(), 12);
        db.wait_idle().unwrap();
        db.put("k", "writing is on").unwrap_or_else(|error| panic!("{preset}: {error}"));
        tree.work.lock().busy.give_back(file.number);
        drop(tree);
        db.close().unwrap();
    }
}

#[test]
fn keyspaces_take_turns() {
    let (db, spaces, handles) = open();
    spaces.iter().for_each(|space| deepen(space, 2));
    assert_eq!(free_one(&db, &spaces), [1, 0, 0]);
    assert_eq!(free_one(&db, &spaces), [1, 1, 0]);
    // Those merges end, and no thread is free.
    let running = &db.database().workers.merges_running;
    running.fetch_add(db.database().workers.merges_max(), Ordering::AcqRel);
    handles.jobs.run_until_idle();
    spaces[..2].iter().for_each(|space| deepen(space, 2));
    assert_eq!(free_one(&db, &spaces), [0, 0, 1]);
    assert_eq!(free_one(&db, &spaces), [1, 0, 1]);
    finish(&db);
}
