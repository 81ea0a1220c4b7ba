//! Many keyspaces and few descriptors: the number of files that a group of flushes holds open
//! follows the limit of the process.

use windrow::{Db, Keyspace, Options, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When, env};

const DIR: &str = "/db";
const KEYSPACES: usize = 200;
/// The number of descriptors that exist.
const DESCRIPTORS: usize = 64;

fn options(handles: &Handles) -> Options {
    let mut options = Options::default();
    options.components.env = Some(handles.env());
    options.settings.set("memory_bytes", "16MiB").unwrap();
    // Reads leave room for writes.
    options.settings.set("open_files_max", "16").unwrap();
    options
}

/// The limit that the process reports: the true one, or one from before others opened files.
fn limits(handles: &Handles, told: usize) {
    handles.fs.set_open_files_max(told);
    handles.fs.set_descriptors_max(Some(DESCRIPTORS));
}

fn keyspaces(db: &Db) -> Vec<Keyspace> {
    (0..KEYSPACES).map(|n| db.keyspace(&format!("{n}")).unwrap()).collect()
}

fn put_in_each(db: &Db, key: &str) {
    keyspaces(db).iter().for_each(|keyspace| keyspace.put_with(key, "1", WriteSync::Yes).unwrap());
}

#[track_caller]
fn must_hold(db: &Db, key: &str) {
    for keyspace in keyspaces(db) {
        assert!(keyspace.get(key).unwrap().is_some(), "{}", keyspace.name());
    }
}

#[test]
fn a_replay_of_many_keyspaces_needs_few_descriptors() {
    for told in [32, 1_000] {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        put_in_each(&db, "a");
        let fs = handles.fs.fork();
        fs.kill(1);
        let left = Handles { fs, ..handles.reborn(1) };
        limits(&left, told);
        let db = Db::open_with(DIR, options(&left)).unwrap_or_else(|e| panic!("{told}: {e}"));
        must_hold(&db, "a");
        db.close().unwrap();
    }
}

#[test]
fn a_resume_of_many_keyspaces_needs_few_descriptors() {
    for told in [32, 1_000] {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        put_in_each(&db, "a");
        let fault = Fault::new(FaultKind::Io, Ops::WRITE, When::Matching(0)).on_path(".wal");
        handles.fs.inject(fault);
        db.put("failed", "1").unwrap_err();
        limits(&handles, told);
        db.resume().unwrap_or_else(|e| panic!("{told}: {e}"));
        must_hold(&db, "a");
        db.close().unwrap();
    }
}

#[test]
fn a_flush_and_a_close_of_many_keyspaces_need_few_descriptors() {
    for told in [32, 1_000] {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        limits(&handles, told);
        put_in_each(&db, "a");
        db.flush().unwrap_or_else(|e| panic!("{told}: {e}"));
        assert!(db.write_error().is_none(), "{told}");
        put_in_each(&db, "b");
        db.close().unwrap_or_else(|e| panic!("{told}: {e}"));
        let logs = handles.fs.files(DIR.as_ref()).iter().filter(|n| n.ends_with(".wal")).count();
        assert_eq!(logs, 1, "{told}: not a clean close");
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        must_hold(&db, "a");
        must_hold(&db, "b");
    }
}
