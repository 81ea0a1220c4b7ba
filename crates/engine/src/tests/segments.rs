//! Tests of `store/src/write/segments.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::db::Db;
use windrow_base::FileNumber;

#[test]
fn a_log_that_a_memtable_needs_stays() {
    let db = Db::in_memory().0;
    db.put("a", "b").unwrap();
    let segments = &db.database().pipeline.segments;
    let error = segments.retire_below(FileNumber::MAX, &Default::default()).unwrap_err();
    assert!(error.message().contains("(R7): logs before"), "{error}");
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"b"[..]));
}

/// A flush has logged that the log's records are in tables, and has not removed the log yet.
#[test]
fn an_ingestion_says_nothing_of_a_log_that_the_manifest_let_go() {
    let (db, handles) = Db::in_memory();
    let other = db.keyspace("other").unwrap();
    let segments = &db.database().pipeline.segments;
    assert!(segments.prepare().unwrap());
    assert!(segments.rotate(&mut segments.queue.lock()));
    segments.sync().unwrap();
    let mut catalog = db.database().catalog.lock_to_change().unwrap();
    let fields = segments.log_begin(&[], catalog.state()).unwrap();
    catalog.append(fields).unwrap();
    let (begin, oldest) = (catalog.state().log_number, segments.in_use()[0].number);
    assert!(oldest < begin, "log {oldest} is in use, and the manifest begins with {begin}");
    drop(catalog);
    let mut ingest = other.ingest().unwrap();
    ingest.put("a", "1").unwrap();
    ingest.finish().unwrap();
    drop((other, db));
    handles.jobs.discard();
    let mut options = crate::Options::default();
    options.components.env = Some(handles.reborn(1).env());
    let db = Db::open_with("db", options).unwrap();
    let other = db.open_keyspace("other").unwrap().unwrap();
    assert_eq!(other.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}
