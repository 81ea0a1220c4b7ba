//! Tests of `store/src/jobs/read_triggered_merges.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options, ReadOptions};
use windrow_env::testing::{Handles, env};
use windrow_plan::tree::Part;

const KEYS: u64 = 12_000;

fn key(n: u64) -> String {
    format!("key{:08}", n * 7919 % KEYS)
}

/// A database with random keys, written many times, after all merges that are due.
fn written(preset: &str) -> (Db, Handles) {
    let (env, handles) = env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let settings = [
        ("preset", preset),
        ("compression", "none"),
        ("memtable_bytes", "64KiB"),
        // Tables that are small for the data, and room for many of them above the last level.
        ("file_bytes", "64KiB"),
        ("space_max_percent", "200"),
    ];
    settings.iter().for_each(|(name, value)| options.settings.set(name, value).unwrap());
    let db = Db::open_with("db", options).unwrap();
    (0..5 * KEYS).for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    (db, handles)
}

/// The number of tables in SST-logs, and their depth.
fn over(db: &Db) -> (usize, u32) {
    let version = db.default_keyspace().tree.version();
    let count = version.files().filter(|(_, part, _)| *part == Part::SstLog).count();
    (count, version.levels.iter().map(|level| level.sst_log_depth()).sum())
}

/// Reads, and runs the timer now and then, until no table lies over others, or up to `rounds`.
fn read(db: &Db, handles: &Handles, rounds: u64, read: impl Fn(u64)) {
    for n in 0..rounds * KEYS {
        read(n);
        if n.is_multiple_of(KEYS / 8) {
            handles.jobs.fire_timers();
            db.wait_idle().unwrap();
            if over(db) == (0, 0) {
                break;
            }
        }
    }
}

#[test]
fn reads_merge_tables_that_they_have_paid_for_and_stop_there() {
    for use_seeks in [true, false] {
        // With few bits, gets search tables in vain.
        let (db, handles) = written("windrow filters=mnemosyne(bits=1)");
        let (before, depth) = over(&db);
        assert!(before > 4 && depth > 1, "{before} tables over others, {depth} deep");
        // Gets of absent keys ask every table.
        let step = |n: u64| match use_seeks {
            true => assert!(db.cursor(ReadOptions::default()).seek(key(n)).unwrap()),
            false => assert!(db.get(key(n) + "x").unwrap().is_none()),
        };
        read(&db, &handles, 200, step);
        assert_eq!(over(&db), (0, 0), "seeks: {use_seeks}");
        let merged = db.stats().merge_entries_in;
        (0..KEYS).for_each(step);
        handles.jobs.fire_timers();
        db.wait_idle().unwrap();
        assert_eq!(db.stats().merge_entries_in, merged, "nothing is left to merge");
        for n in 4 * KEYS..5 * KEYS {
            assert_eq!(db.get(key(n)).unwrap().unwrap(), [n as u8; 100], "{n}");
        }
        db.verify().unwrap().into_result().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_fixed_k_is_left_as_somebody_asked_for() {
    let (db, handles) =
        written("windrow level0=partitioned(lanes=16,k=4) pick=sst_log(closed,share=0.5,levels=1)");
    let before = over(&db);
    assert!(before.0 > 0, "{before:?}");
    read(&db, &handles, 40, |n| assert!(db.cursor(ReadOptions::default()).seek(key(n)).unwrap()));
    assert_eq!(over(&db), before);
    db.close().unwrap();
}

#[test]
fn the_measured_use_follows_what_is_done_and_says_why() {
    let (db, handles) = written("windrow use=measured");
    let measured = |db: &Db| db.stats().keyspaces[0].measured_use.clone();
    assert!(measured(&db).starts_with("writes: "), "{}", measured(&db));
    let mut cursor = db.cursor(ReadOptions::default());
    for n in 0..20 * KEYS {
        // Ten seeks for each put, and a minute every few flushes.
        db.put(key(n), [1; 100]).unwrap();
        for seek in 0..10 {
            cursor.seek(key(n * 10 + seek)).unwrap();
        }
        if n.is_multiple_of(KEYS / 8) {
            handles.clock.advance_ms(60_000);
        }
    }
    assert!(measured(&db).starts_with("reads: "), "{}", measured(&db));
    db.set_policy("windrow use=writes").unwrap();
    assert_eq!(measured(&db), "");
    db.close().unwrap();
}
