//! Tests of `store/src/merge/writer.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::db::Db;
use std::sync::Arc;
use windrow_base::ErrorKind;
use windrow_base::Result;
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When};
use windrow_format::tombstone::Tombstones;
use windrow_plan::Cutter;
use windrow_read::options::Options;
use windrow_store::merge::dropper::Sink;
use windrow_store::merge::filters::OutputFilters;
use windrow_store::merge::writer::*;
use windrow_store::tree::Tree;

/// Outputs that are cut before each of `keys` but the first.
fn outputs<'a>(db: &'a Db, tree: &'a Tree, keys: &[String]) -> Outputs<'a> {
    let boundaries: Vec<Vec<u8>> = keys[1..].iter().map(|key| key.clone().into()).collect();
    let spec = OutputSpec {
        level: 1,
        cutter: Cutter::at(boundaries.into()),
        filters: Arc::new(OutputFilters::of_repair(tree)),
        tombstones: Tombstones::default(),
    };
    Outputs::new(&db.database().host, tree, spec)
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("key{n:03}")).collect()
}

fn fill(outputs: &mut Outputs<'_>, keys: &[String]) -> Result<()> {
    keys.iter().try_for_each(|key| outputs.keep(key.as_bytes(), 1 << 8, b"value", true))
}

fn tables(db: &Db, handles: &Handles) -> usize {
    let names = handles.fs.files(db.path());
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

#[test]
fn tables_are_synced_when_the_job_ends() {
    let (db, handles) = Db::in_memory();
    let keys = keys(UNSYNCED_MAX - 1);
    let before = handles.fs.syncs();
    let tree = db.default_keyspace().tree.clone();
    let mut outputs = outputs(&db, &tree, &keys);
    fill(&mut outputs, &keys).unwrap();
    assert_eq!(tables(&db, &handles), keys.len());
    assert_eq!(handles.fs.syncs(), before, "a table was synced by itself");
    assert_eq!(outputs.finish(0).unwrap().len(), keys.len());
    // A sync of each table, and one of the directory.
    assert_eq!(handles.fs.syncs() - before, keys.len() as u64 + 1);
}

#[test]
fn few_tables_wait_for_a_sync() {
    let (db, handles) = Db::in_memory();
    let keys = keys(UNSYNCED_MAX * 3);
    let tree = db.default_keyspace().tree.clone();
    let mut outputs = outputs(&db, &tree, &keys);
    for key in &keys {
        fill(&mut outputs, std::slice::from_ref(key)).unwrap();
        let (_, unfinished) = outputs.counts();
        assert!(unfinished < UNSYNCED_MAX, "{unfinished}");
    }
    assert!(handles.fs.syncs() >= (UNSYNCED_MAX * 2) as u64);
    assert_eq!(outputs.finish(0).unwrap().len(), keys.len());
}

#[test]
fn a_failed_sync_leaves_no_table() {
    let (db, handles) = Db::in_memory();
    let keys = keys(5);
    let tree = db.default_keyspace().tree.clone();
    let mut outputs = outputs(&db, &tree, &keys);
    fill(&mut outputs, &keys).unwrap();
    let fault = Fault::new(FaultKind::Io, Ops::SYNC, When::Matching(3));
    handles.fs.inject(fault.on_path(".sst"));
    assert_eq!(outputs.finish(0).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(tables(&db, &handles), 0);
}

#[test]
fn tables_that_wait_for_a_sync_give_their_descriptors_back() {
    let (db, handles) = Db::in_memory();
    let keys = keys(UNSYNCED_MAX - 1);
    handles.fs.set_descriptors_max(Some(handles.fs.descriptors() + 4));
    let tree = db.default_keyspace().tree.clone();
    let mut outputs = outputs(&db, &tree, &keys);
    fill(&mut outputs, &keys).unwrap();
    assert_eq!(outputs.finish(0).unwrap().len(), keys.len());
}

#[test]
fn room_is_reserved_for_large_tables_past_the_cache_alone() {
    for direct_io in [false, true] {
        let (env, _handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.settings.direct_io = direct_io;
        let db = Db::open_with("db", options).unwrap();
        let tree = db.default_keyspace().tree.clone();
        let keys = keys(2);
        let mut outputs = outputs(&db, &tree, &keys);
        let file_bytes = tree.sizes.load().file_bytes;
        let due = if direct_io { file_bytes + file_bytes / 8 } else { 0 };
        assert_eq!(outputs.preallocate_bytes(), due);
        fill(&mut outputs, &keys).unwrap();
        assert_eq!(outputs.counts().0, 1);
        assert_eq!(outputs.preallocate_bytes(), 0, "the table before was small");
    }
}
