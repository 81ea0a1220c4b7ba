//! Tests of `recover/src/measure/stats_file.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use windrow_env::testing::{Handles, env};
use windrow_recover::measure::stats_file::*;

const DIR: &str = "/db";

fn open(handles: &Handles) -> Db {
    let mut options = Options::default();
    options.components.env = Some(handles.env());
    Db::open_with(DIR, options).unwrap()
}

fn posted(handles: &Handles) -> Option<RunningStats> {
    read(&handles.env(), Path::new(DIR)).unwrap()
}

#[test]
fn others_read_what_a_running_database_counts() {
    let (_, handles) = env(1);
    let db = open(&handles);
    let written = AtomicU64::new(0);
    db.put("k", "v").unwrap();
    post_if_changed(db.database(), &written);
    let first = posted(&handles).unwrap();
    assert_eq!(first.process, std::process::id());
    assert!(first.json.contains("\"batches\":1"), "{}", first.json);
    assert!(first.table.starts_with("writes   1 batches"), "{}", first.table);
    // Nothing has changed.
    handles.clock.advance_ms(5_000);
    post_if_changed(db.database(), &written);
    assert_eq!(posted(&handles), Some(first.clone()));
    db.put("k", "w").unwrap();
    post_if_changed(db.database(), &written);
    let second = posted(&handles).unwrap();
    assert!(second.written_ms >= first.written_ms + 5_000);
    assert!(second.json.contains("\"batches\":2"));
    db.close().unwrap();
    assert_eq!(posted(&handles), None);
    assert!(!handles.fs.files(Path::new(DIR)).iter().any(|name| name.ends_with(".tmp")));
}

#[test]
fn what_a_crash_leaves_and_what_is_not_ours_do_no_harm() {
    let (_, handles) = env(1);
    let db = open(&handles);
    write(db.database(), &db.stats()).unwrap();
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.kill(1);
    let handles = handles.reborn(1);
    let db = open(&handles);
    assert_eq!(posted(&handles), None, "it was of another process");
    handles.fs.write_file(&Path::new(DIR).join("STATS"), b"a stranger's");
    write(db.database(), &db.stats()).unwrap();
    assert_eq!(posted(&handles), None);
    db.close().unwrap();
    let path = Path::new(DIR).join("STATS");
    assert_eq!(handles.fs.read_file(&path).as_deref(), Some(&b"a stranger's"[..]));
    windrow_recover::destroy::destroy(&handles.env(), Path::new(DIR)).unwrap();
    assert_eq!(handles.fs.files(Path::new(DIR)), ["STATS"]);
}
