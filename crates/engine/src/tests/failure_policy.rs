//! Tests of `store/src/jobs/failure_policy.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Keyspace, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_env::sync::atomic::{AtomicU32, Ordering};
use windrow_env::testing::{CrashFs, Fault, FaultKind, Handles, Ops, When, env};
use windrow_env::{Clock, Env};
use windrow_format::names;

const STOP: u32 = 9;

fn options(env: &Env) -> Options {
    let mut options = Options::default();
    options.components.env = Some(env.clone());
    let settings = [
        ("preset", "leveled level0=tiered(k=2)"),
        ("level0_slowdown_files", "4"),
        ("level0_stop_files", "9"),
    ];
    for (name, value) in settings {
        options.settings.set(name, value).unwrap();
    }
    options
}

/// A database with keyspaces `sick` and `sound`.
fn open() -> (Db, [Keyspace; 2], Env, Handles) {
    let (env, handles) = env(1);
    let db = Db::open_with("db", options(&env)).unwrap();
    let spaces = ["sick", "sound"].map(|name| db.keyspace(name).unwrap());
    (db, spaces, env, handles)
}

/// Adds tables to level 0 that overlap from one key to another.
fn deepen(space: &Keyspace, (from, to): (&str, &str), tables: u32) {
    for _ in 0..tables {
        space.put(from, "value").unwrap();
        space.put(to, "value").unwrap();
        space.flush().unwrap();
    }
}

fn newest_table(space: &Keyspace) -> PathBuf {
    let version = space.tree.version();
    let newest = version.files().map(|(_, _, file)| file.number).max().unwrap();
    Path::new("db").join(names::table(newest))
}

fn depth(space: &Keyspace) -> u32 {
    space.tree.version().level(0).map_or(0, |level| level.sst_log_depth())
}

/// Whether writers are stopped while all threads are taken, so that they would wait for a merge.
fn is_stopped(db: &Db, deepen: impl FnOnce()) -> bool {
    let database = db.database();
    database.workers.merges_running.fetch_add(database.workers.merges_max(), Ordering::AcqRel);
    deepen();
    let stopped = database.pipeline.pace.is_stopped();
    database.workers.merges_running.fetch_sub(database.workers.merges_max(), Ordering::AcqRel);
    stopped
}

fn check_brakes(db: &Db, [sick, sound]: &[Keyspace; 2]) {
    assert!(db.write_error().is_none());
    assert!(sick.tree.work.lock().damaged().is_some());
    assert!(sound.tree.work.lock().damaged().is_none());
    // A keyspace that cannot be merged stops no writer, however deep it gets.
    assert!(!is_stopped(db, || deepen(sick, ("a", "c"), 2 * STOP)));
    // A sound keyspace stops writers, and recovers.
    assert!(is_stopped(db, || deepen(sound, ("a", "z"), STOP)));
    db.wait_idle().unwrap();
    assert!(depth(sound) < 4, "{}", depth(sound));
    // The damaged keyspace stops writers too where the damage is not in the way.
    assert!(is_stopped(db, || deepen(sick, ("x", "z"), STOP)));
    db.wait_idle().unwrap();
    assert!(!db.database().pipeline.pace.is_stopped());
    assert_eq!(sick.get("x").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(sound.get("a").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(db.write_error().is_none());
}

#[test]
fn a_damaged_block_takes_the_brakes_off_what_it_bars_alone() {
    let (db, spaces, _env, handles) = open();
    deepen(&spaces[0], ("a", "c"), 1);
    handles.fs.flip(&newest_table(&spaces[0]), 70, 1);
    deepen(&spaces[0], ("a", "c"), 1);
    db.wait_idle().unwrap();
    check_brakes(&db, &spaces);
    assert!(spaces[0].compact().is_err());
    spaces[1].compact().unwrap();
}

#[test]
fn an_input_that_cannot_be_read_is_left_out_and_nothing_is_turned_off() {
    let (db, spaces, env, handles) = open();
    deepen(&spaces[0], ("a", "c"), 1);
    let table = newest_table(&spaces[0]);
    let fault = Fault::new(FaultKind::Io, Ops::READ, When::MatchingFrom(0));
    handles.fs.inject(fault.on_path(&table.display().to_string()));
    deepen(&spaces[0], ("a", "c"), 1);
    db.wait_idle().unwrap();
    check_brakes(&db, &spaces);
    // The fault was the device's: all entries are there once it is over.
    handles.fs.clear_faults();
    db.close().unwrap();
    let db = Db::open_with("db", options(&env)).unwrap();
    db.wait_idle().unwrap();
    db.verify().unwrap().into_result().unwrap();
    let sick = db.keyspace("sick").unwrap();
    assert!(sick.tree.work.lock().damaged().is_none());
    assert_eq!(sick.get("a").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Ends a shortage of descriptors after a number of sleeps.
struct Patience {
    clock: Arc<dyn Clock>,
    fs: CrashFs,
    sleeps: AtomicU32,
}

impl Clock for Patience {
    fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    fn monotonic_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    fn sleep_ns(&self, ns: u64) {
        self.clock.sleep_ns(ns);
        if self.sleeps.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.fs.set_descriptors_max(None);
        }
    }
}

#[test]
fn a_second_without_descriptors_is_survived() {
    for merge_first in [false, true] {
        let (mut env, handles) = env(1);
        let patience = Arc::new(Patience {
            clock: env.clock.clone(),
            fs: handles.fs.clone(),
            sleeps: AtomicU32::new(100),
        });
        env.clock = patience.clone();
        let db = Db::open_with("db", options(&env)).unwrap();
        let space = db.keyspace("space").unwrap();
        deepen(&space, ("a", "z"), if merge_first { 2 } else { 1 });
        handles.fs.set_descriptors_max(Some(handles.fs.descriptors()));
        let begin_ns = env.clock.monotonic_ns();
        db.put("key", "value").unwrap();
        if merge_first {
            db.wait_idle().unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert!(env.clock.monotonic_ns() - begin_ns >= 1_000_000_000);
        assert!(patience.sleeps.load(Ordering::Relaxed) > u32::MAX / 2, "none was waited for");
        assert!(db.write_error().is_none());
        db.put("later", "value").unwrap();
        db.close().unwrap();
        let db = Db::open_with("db", options(&env)).unwrap();
        for key in ["key", "later"] {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(&b"value"[..]));
        }
        let space = db.keyspace("space").unwrap();
        assert_eq!(space.get("z").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
