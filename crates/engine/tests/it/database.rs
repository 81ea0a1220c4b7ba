//! The database as a user calls it, on the operating system's files.

use std::sync::Arc;
use std::time::Duration;
use windrow::env::sync::{Mutex, Rank};
use windrow::env::{Env, testing::ManualClock};
use windrow::{
    Batch, Db, ErrorKind, Event, Keyspace, KeyspaceOptions, Options, ReadOptions, WriteSync,
};

fn small() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 256 << 10;
    options.settings.file_bytes = 128 << 10;
    options
}

fn key(i: u64) -> String {
    format!("key{i:08}")
}

#[test]
fn what_is_written_is_read_back_after_flush_merge_and_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let count = 50_000u64;
    {
        let db = Db::open_with(dir.path(), small()).unwrap();
        for i in 0..count {
            let i = i * 7919 % count;
            db.put(key(i), format!("value{i}")).unwrap();
        }
        for i in (0..count).step_by(3) {
            db.delete(key(i)).unwrap();
        }
        db.delete_range(key(1000), key(2000)).unwrap();
        check(&db, count);
        db.wait_idle().unwrap();
        check(&db, count);
        db.close().unwrap();
        assert_eq!(db.get("x").unwrap_err().kind(), ErrorKind::Closed);
    }
    let db = Db::open_with(dir.path(), small()).unwrap();
    check(&db, count);
    db.compact().unwrap();
    check(&db, count);
    assert!(db.verify().unwrap().is_ok());
    let stats = db.stats();
    assert!(stats.tree_bytes() > 0, "{stats}");
}

fn check(db: &Db, count: u64) {
    let alive = |i: u64| !i.is_multiple_of(3) && !(1000..2000).contains(&i);
    for i in (0..count).step_by(97) {
        let value = db.get(key(i)).unwrap();
        assert_eq!(value.is_some(), alive(i), "{i}");
        if let Some(value) = value {
            assert_eq!(&*value, format!("value{i}").as_bytes());
        }
    }
    let expect: Vec<u64> = (0..count).filter(|&i| alive(i)).collect();
    let forward: Vec<_> = db.iter().map(|item| item.unwrap().0).collect();
    assert_eq!(forward.len(), expect.len());
    assert!(forward.iter().zip(&expect).all(|(k, &i)| **k == *key(i).as_bytes()));
    let backward: Vec<_> = db.iter().rev().map(|item| item.unwrap().0).collect();
    assert!(backward.iter().rev().eq(forward.iter()));
}

#[test]
fn a_batch_spans_keyspaces_and_snapshots_stay() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    let counters = KeyspaceOptions { merge_operator: Some("add".into()), ..Default::default() };
    let counters = db.keyspace_with("counters", counters).unwrap();
    let snapshot = db.snapshot();
    let mut batch = Batch::new();
    batch.put(&db, "a", "1");
    batch.merge(&counters, "n", 5i64.to_le_bytes());
    batch.merge(&counters, "n", 7i64.to_le_bytes());
    db.write(batch, WriteSync::Yes).unwrap();
    assert_eq!(snapshot.get("a").unwrap(), None);
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    for _ in 0..3 {
        assert_eq!(counters.get("n").unwrap().as_deref(), Some(&12i64.to_le_bytes()[..]));
        db.flush().unwrap();
        db.compact().unwrap();
    }
    assert_eq!(counters.get_at(&snapshot, "n").unwrap(), None);
    drop(snapshot);
    db.drop_keyspace("counters").unwrap();
    assert_eq!(counters.get("n").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.keyspaces(), ["default"]);
}

#[test]
fn expired_values_are_absent_and_a_cursor_refreshes() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    let clock = Arc::new(ManualClock::new());
    options.components.env = Some(Env { clock, ..Env::os(2) });
    let db = Db::open_with(dir.path(), options).unwrap();
    db.put("a", "old").unwrap();
    db.put_with_ttl("a", "short", Duration::from_millis(0)).unwrap();
    db.put_with_ttl("b", "long", Duration::from_secs(1000)).unwrap();
    assert_eq!(db.get("a").unwrap(), None);
    let mut cursor = db.cursor(ReadOptions::default());
    assert!(cursor.seek_first().unwrap());
    assert_eq!(cursor.key(), b"b");
    db.put("c", "new").unwrap();
    assert!(!cursor.next().unwrap());
    cursor.refresh().unwrap();
    assert!(cursor.seek("c").unwrap());
    db.compact().unwrap();
    assert_eq!(db.get("a").unwrap(), None);
    assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"long"[..]));
}

#[test]
fn what_was_not_closed_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    let other = db.keyspace("other").unwrap();
    for i in 0..5000 {
        db.put(key(i), "x").unwrap();
        other.put(key(i), vec![b'y'; 100]).unwrap();
    }
    // The files that a killed process leaves: as the kernel has them.
    #[allow(clippy::disallowed_methods, reason = "a test copies a directory")]
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let again = Db::open_with(copy.path(), small()).unwrap();
    assert_eq!(again.iter().count(), 5000);
    assert_eq!(again.keyspace("other").unwrap().iter().count(), 5000);
}

#[test]
fn a_second_open_is_busy_and_limits_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    let busy = Db::open(dir.path()).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.message().contains(&std::process::id().to_string()), "{busy}");
    let too_long = vec![0; 65_536];
    assert_eq!(db.put(&too_long, "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.put(&too_long[1..], "").unwrap();
    let mut batch = Batch::new();
    batch.put(&db, "k", vec![0; 3 << 20]);
    assert_eq!(db.write(batch, WriteSync::No).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.merge("k", "v").unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.put("k", vec![0; 1 << 20]).unwrap();
}

/// An earlier version flushed one keyspace after the other, which put the late batch into the
/// tables of the second and not into those of the first.
#[test]
fn a_checkpoint_is_one_moment_in_every_keyspace() {
    let dir = tempfile::tempdir().unwrap();
    let late: Arc<Mutex<Option<(Db, Keyspace)>>> = Arc::new(Mutex::new(Rank::INNERMOST, None));
    let pending = late.clone();
    let write_late = move |event: &Event| {
        let taken = matches!(event, Event::FlushBegin { .. }).then(|| pending.lock().take());
        if let Some((db, other)) = taken.flatten() {
            put_both(&db, &other, "late");
        }
    };
    let mut options = small();
    options.components.listener = Some(Arc::new(write_late));
    let db = Db::open_with(dir.path().join("db"), options).unwrap();
    let other = db.keyspace("other").unwrap();
    put_both(&db, &other, "early");
    *late.lock() = Some((db.clone(), other.clone()));
    let target = dir.path().join("copy");
    db.checkpoint(&target).unwrap();
    assert!(late.lock().is_none(), "the flush began without the late batch");
    assert!(other.get("late").unwrap().is_some());
    let copy = Db::open(&target).unwrap();
    let in_both = |key| {
        let found = (copy.get(key).unwrap(), copy.keyspace("other").unwrap().get(key).unwrap());
        assert_eq!(found.0.is_some(), found.1.is_some(), "half of the batch `{key}`");
        found.0.is_some()
    };
    assert!(in_both("early") && !in_both("late"));
    // The flushes that the checkpoint held back run after it.
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn put_both(db: &Db, other: &Keyspace, key: &str) {
    let mut batch = Batch::new();
    batch.put(db, key, "value");
    batch.put(other, key, "value");
    db.write(batch, WriteSync::No).unwrap();
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("copy");
    let db = Db::open_with(dir.path().join("db"), small()).unwrap();
    for i in 0..1000 {
        db.put(key(i), "x").unwrap();
    }
    db.checkpoint(&target).unwrap();
    db.delete_range(key(0), key(1000)).unwrap();
    db.compact().unwrap();
    let copy = Db::open_with(&target, small()).unwrap();
    assert_eq!(copy.iter().count(), 1000);
    assert_eq!(db.iter().count(), 0);
    assert_eq!(db.checkpoint(&target).unwrap_err().kind(), ErrorKind::InvalidArgument);
    copy.close().unwrap();
    let read_only = Options { read_only: true, create_if_missing: false, ..small() };
    let copy = Db::open_with(&target, read_only).unwrap();
    assert_eq!(copy.iter().count(), 1000);
    assert_eq!(copy.put("a", "b").unwrap_err().kind(), ErrorKind::ReadOnly);
    drop(copy);
    Db::destroy(&target).unwrap();
    assert!(!target.exists());
}

#[test]
fn a_dropped_database_lets_go_of_its_environment() {
    let (env, _handles) = windrow::env::testing::env(1);
    let before = Arc::strong_count(&env.fs);
    let options = || {
        let mut options = small();
        options.components.env = Some(env.clone());
        options
    };
    for round in 0..3 {
        let db = Db::open_with("/db", options()).unwrap();
        for i in 0..3000 {
            db.put(key(i), vec![round; 100]).unwrap();
        }
        let snapshot = db.snapshot();
        let mut iter = db.iter();
        iter.next().unwrap().unwrap();
        db.close().unwrap();
        drop((iter, snapshot, db));
        assert_eq!(Arc::strong_count(&env.fs), before, "round {round}");
    }
}

/// In tables, in frozen and active memtables, and across the bounds of tables.
#[test]
fn the_bytes_of_a_range_are_about_those_that_were_written() {
    const VALUE_BYTES: usize = 1000;
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.settings.compression = "none".to_owned();
    let db = Db::open_with(dir.path(), options).unwrap();
    let space = db.default_keyspace();
    let bytes = |from: u64, to: u64| space.approximate_bytes(key(from), key(to)).unwrap();
    let is_about = |found: u64, keys: u64| {
        let written = keys * (VALUE_BYTES as u64 + 11);
        assert!(written * 9 / 10 <= found && found <= written * 12 / 10, "{found} for {written}");
    };
    let value = vec![b'v'; VALUE_BYTES];
    let put = |i: u64| db.put(key(i), &value).unwrap();
    (0..2_000).for_each(put);
    space.compact().unwrap();
    is_about(bytes(0, 2_000), 2_000);
    is_about(bytes(333, 1_777), 1_444);
    is_about(bytes(1_000, 1_100), 100);
    (2_000..2_150).for_each(put);
    is_about(bytes(2_000, 2_150), 150);
    is_about(bytes(1_900, 2_100), 200);
    // A range without entries, and ranges that are empty.
    assert_eq!((bytes(5_000, 9_000), bytes(100, 100), bytes(200, 100)), (0, 0, 0));
    // Small entries are not all counted.
    (0..30_000).for_each(|i| db.put(format!("small{i:05}"), "").unwrap());
    let small = space.approximate_bytes("small", "smalm").unwrap();
    assert!((100_000..4_000_000).contains(&small), "{small}");
}

#[test]
fn a_keyspace_may_have_a_policy_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    let (one, other) = (db.keyspace("one").unwrap(), db.keyspace("other").unwrap());
    let before = other.policy();
    one.set_policy("leveled").unwrap();
    assert!(one.policy().contains("leveling(") && one.policy() != before, "{}", one.policy());
    assert_eq!(other.policy(), before);
    let error = one.set_policy("levelled").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("leveled"), "it lists what is valid: {error}");
    (0..20_000).for_each(|i| one.put(key(i), format!("value{i}")).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(one.iter().count(), 20_000);
}
