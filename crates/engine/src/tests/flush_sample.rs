//! Tests of `store/src/tree/flush_sample.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Event, Options};
use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_base::key::Kind;
use windrow_env::sync::atomic::{AtomicU64, Ordering};
use windrow_plan::axes::Sample;
use windrow_plan::tree::Edit;
use windrow_plan::tree::Version;
use windrow_plan::{PlanSettings, Policy};
use windrow_read::memtable::Memtable;
use windrow_skiplist::ChunkPool;
use windrow_store::tree::flush_sample::*;

fn memtable(keys: impl Iterator<Item = u32>) -> Memtable {
    let memtable = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
    for (seq, key) in (1..).zip(keys) {
        memtable.insert(Kind::Put, seq, &key.to_be_bytes(), &[7; 100]);
    }
    memtable
}

fn sizes() -> PlanSettings {
    PlanSettings { memtable_bytes: 100 << 10, file_bytes: 12 << 10, ..PlanSettings::default() }
}

/// Two memtables with different keys, flushed at once, were cut at different places.
#[test]
fn flushes_of_one_version_are_cut_at_the_same_places() {
    let policy = Policy::preset("windrow").unwrap();
    let empty = Version::empty(KeyOrder::Bytewise);
    let (sizes, shared) = (sizes(), FlushSample::default());
    let of = |version: &Version, memtable: &Memtable| {
        shared.boundaries(&policy, version, &sizes, memtable)
    };
    let (even, odd) = (memtable((0..1000).map(|n| n * 2)), memtable((0..1000).map(|n| n * 3)));
    let first = of(&empty, &even).unwrap();
    assert!(first.len() > 32, "{}", first.len());
    assert_eq!(of(&empty, &odd), Some(first.clone()));
    // A memtable that is flushed alone is cut by its own keys.
    let alone = FlushSample::default().boundaries(&policy, &empty, &sizes, &odd);
    assert!(alone.is_some() && alone != Some(first.clone()));
    // Once they are part of the tree, nothing changes, and nothing is kept.
    let edit = Edit { boundaries: Some(first), ..Edit::default() };
    let version = empty.apply(&edit).unwrap();
    assert_eq!(of(&version, &odd), None);
    assert!(shared.is_empty());
}

/// No reader will see them: their writes have failed.
#[test]
fn what_was_never_published_is_no_part_of_a_sample() {
    let memtable = memtable(0..1000);
    memtable.cut(500);
    assert_eq!(sample_of(&memtable).bytes(), 500 * (4 + 100 + 8));
    let few = Memtable::new(KeyOrder::Bytewise, Arc::new(ChunkPool::new(0)));
    few.insert(Kind::RangeDelete, 1, b"a", b"z");
    assert_eq!(sample_of(&few), Sample::default());
}

/// The first flushes were not cut, and connected all partitions until they had been merged: the
/// first job read five memtables.
#[test]
fn a_load_has_partitions_from_its_first_flush_on() {
    let (env, _handles) = windrow_env::testing::env(1);
    let largest = Arc::new(AtomicU64::new(0));
    let seen = largest.clone();
    let mut options = Options::default();
    options.components.env = Some(env);
    options.components.listener = Some(Arc::new(move |event: &Event| {
        if let Event::MergeBegin { input_bytes, .. } = event {
            seen.fetch_max(*input_bytes, Ordering::Relaxed);
        }
    }));
    options.settings.set("memtable_bytes", "256KiB").unwrap();
    options.settings.set("file_bytes", "64KiB").unwrap();
    let db = Db::open_with("db", options).unwrap();
    let mut key = 1u64;
    for flush in 0..8 {
        for _ in 0..200 {
            key = key.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let value: Vec<u8> = (0..1000).map(|n| (key >> (n % 57)) as u8 ^ n as u8).collect();
            db.put(key.to_be_bytes(), value).unwrap();
        }
        db.delete_range(key.to_be_bytes(), (key.saturating_add(1 << 40)).to_be_bytes()).unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let (_, tree) = crate::inspect::trees(&db).into_iter().next().unwrap();
        assert!(tree.boundaries.len() > 16, "{flush}: {}", tree.boundaries.len());
    }
    db.verify().unwrap().into_result().unwrap();
    let largest = largest.load(Ordering::Relaxed);
    assert!(0 < largest && largest < 128 << 10, "a job of {largest} bytes");
    db.close().unwrap();
}
