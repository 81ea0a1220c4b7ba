//! Tests of `store/src/merge/carried_blocks.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};
use windrow_env::testing::env;

const KEYS: u64 = 12_000;

fn key(n: u64) -> String {
    format!("key{:08}", n * 7919 % KEYS)
}

/// A database with some tables of random keys. All of them fit into its cache.
fn written(preset: &str, compression: &str, memory: &str) -> Db {
    let mut options = Options::default();
    options.components.env = Some(env(1).0);
    let settings = [
        ("preset", preset),
        ("compression", compression),
        ("memory_bytes", memory),
        ("memtable_bytes", "256KiB"),
        ("file_bytes", "128KiB"),
    ];
    settings.iter().for_each(|(name, value)| options.settings.set(name, value).unwrap());
    let db = Db::open_with("db", options).unwrap();
    (0..KEYS).for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db
}

fn read(db: &Db, keys: impl Iterator<Item = u64>) {
    keys.for_each(|n| assert_eq!(db.get(key(n)).unwrap().unwrap(), [n as u8; 100], "{n}"));
}

/// Blocks that gets read from the device, and bytes in the cache.
fn read_and_cached(db: &Db) -> (u64, u64) {
    let stats = db.stats();
    (stats.blocks_read, stats.memory.cache_bytes)
}

#[test]
fn a_merge_of_cached_tables_leaves_their_blocks_cached() {
    // With the least memory no block waits for the end of its merge.
    let cases =
        [("windrow", "none", "64MiB"), ("leveled", "lz4", "64MiB"), ("windrow", "lz4", "8MiB")];
    for (preset, compression, memory) in cases {
        let db = written(preset, compression, memory);
        read(&db, 0..KEYS);
        let (before, cached) = read_and_cached(&db);
        assert!(before > 300, "{before} blocks");
        db.compact().unwrap();
        let merged = db.stats().merge_entries_in;
        assert!(merged >= KEYS, "{merged} entries were merged");
        let (_, carried) = read_and_cached(&db);
        read(&db, 0..KEYS);
        let (after, _) = read_and_cached(&db);
        // A merge cuts at other keys: a block may be made of parts of blocks that it does not fill.
        assert!(after <= before + 2, "{preset}: {after} blocks read, {before} before the merge");
        assert!(
            carried < cached + cached / 8,
            "{preset}: {cached} bytes cached, and {carried} after the merge"
        );
        db.verify().unwrap().into_result().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_merge_brings_no_block_into_the_cache_that_was_not_read() {
    let db = written("leveled", "none", "64MiB");
    let (_, cold) = read_and_cached(&db);
    db.compact().unwrap();
    assert_eq!(read_and_cached(&db), (0, cold));
    // One key in a hundred is in most blocks of 36 keys, and few keys are in few of them.
    read(&db, (0..KEYS).filter(|n| n * 7919 % KEYS < KEYS / 100));
    let (_, few) = read_and_cached(&db);
    db.compact().unwrap();
    let (_, carried) = read_and_cached(&db);
    assert!(cold < few && carried <= 2 * few, "{cold} cold, {few} read, {carried} carried");
    db.close().unwrap();
}
