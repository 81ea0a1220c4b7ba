//! All memory is counted, and bounded, for any writes: many nested range deletes, batches at their
//! limit, and logs with batches that are over it.

use windrow::{Batch, Db, ErrorKind, Options, WriteSync};
use windrow_env::testing::Handles;

const MIB: u64 = 1 << 20;

/// Options over the files of `handles`.
fn options(handles: &Handles, memory_bytes: u64) -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = memory_bytes;
    options.components.env = Some(handles.reborn(1).env());
    options
}

fn world() -> Handles {
    windrow_env::testing::env(1).1
}

fn key(i: u64) -> String {
    format!("key{i:08}")
}

/// Each range encloses those before it, and snapshots keep them apart. Split into fragments, with
/// the sequence numbers over each, they would be the product of both numbers.
#[test]
fn nested_range_deletes_with_a_snapshot_each_stay_within_the_memtables() {
    const N: u64 = 8_000;
    let db = Db::open_with("db", options(&world(), 64 * MIB)).unwrap();
    let put = |i: u64| db.put(key(i), "before").unwrap();
    (0..2 * N).step_by(10).for_each(put);
    let mut snapshots = vec![db.snapshot()];
    for i in 1..=N {
        db.delete_range(key(N - i), key(N + i)).unwrap();
        snapshots.push(db.snapshot());
        if i % 1000 == 0 {
            assert!(db.get(key(N)).unwrap().is_none());
            let memory = db.stats().memory;
            assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?}");
        }
    }
    let check = || {
        for at in [0, 1, 2, 63, 64, 65, 500, 4_001, N - 1, N] {
            let snapshot = &snapshots[at as usize];
            let hidden = |i: u64| (N - at..N + at).contains(&i);
            for i in (0..2 * N).step_by(370) {
                let found = snapshot.get(key(i)).unwrap().is_some();
                assert_eq!(found, !hidden(i), "{i} at {at}");
            }
            let left = (0..2 * N).step_by(10).filter(|&i| !hidden(i));
            let left = Vec::from_iter(left.map(|i| key(i).into_bytes()));
            let forward = snapshot.range(..).map(|pair| pair.unwrap().0.to_vec());
            assert!(forward.eq(left.iter().cloned()), "at {at}");
            let backward = snapshot.range(..).rev().map(|pair| pair.unwrap().0.to_vec());
            assert!(backward.eq(left.into_iter().rev()), "at {at}");
        }
    };
    check();
    db.flush().unwrap();
    let memory = db.stats().memory;
    assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?}");
    check();
    db.compact().unwrap();
    check();
    let memory = db.stats().memory;
    assert!(memory.tables_bytes < 16 * MIB, "{memory:?}");
    assert!(db.stats().tree_bytes() < 16 * MIB, "{}", db.stats());
}

/// Checks the memory of memtables, which comes by the mebibyte, and all memory together.
fn within_budget(db: &Db, what: &str) {
    let memory = db.stats().memory;
    assert!(memory.memtables_bytes <= memory.budget_bytes / 2 + 4 * MIB, "{what}: {memory:?}");
    assert!(memory.used_bytes() <= memory.budget_bytes / 10 * 11, "{what}: {memory:?}");
}

fn deletes(db: &Db, count: u64) -> Batch {
    let mut batch = Batch::new();
    (0..count).for_each(|i| batch.delete(db, [i as u8]));
    batch
}

fn short_ranges(db: &Db, count: u64) -> Batch {
    let mut batch = Batch::new();
    (0..count).for_each(|i| batch.delete_range(db, [i as u8], [i as u8, 0]));
    batch
}

/// A batch is refused by the memory that it takes, however few bytes it has in the log, and a batch
/// that was accepted can be opened again.
#[test]
fn a_batch_is_refused_by_the_memory_it_takes() {
    type Make = fn(&Db, u64) -> Batch;
    let kinds: [(&str, Make); 2] = [("deletes", deletes), ("short ranges", short_ranges)];
    for (what, make) in kinds {
        let handles = world();
        let db = Db::open_with("db", options(&handles, 32 * MIB)).unwrap();
        db.put("before", "1").unwrap();
        let one = make(&db, 1).memory_bytes() as u64;
        let most = 16 * MIB / one;
        assert!((make(&db, most + 1).byte_len() as u64) < 8 * MIB, "{what}: under the other limit");
        let operations = handles.fs.operations();
        let error = db.write(make(&db, most + 1), WriteSync::Yes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
        let told =
            [format!("{}", (most + 1) * one), format!("{}", 16 * MIB), "split it".to_owned()];
        assert!(told.iter().all(|part| error.message().contains(part)), "{what}: {error}");
        assert_eq!(handles.fs.operations(), operations, "{what}: refused after a write");
        // Some of the largest, one after the other, alternating with small writes.
        for round in 0..3 {
            db.write(make(&db, most), WriteSync::Yes).unwrap();
            within_budget(&db, what);
            db.put(format!("after{round}"), [7; 1000]).unwrap();
            within_budget(&db, what);
        }
        drop(db);
        let db = Db::open_with("db", options(&handles, 32 * MIB)).unwrap();
        within_budget(&db, what);
        assert!((0..3).all(|round| db.get(format!("after{round}")).unwrap().is_some()), "{what}");
        db.close().unwrap();
    }
}

/// The largest batch next to a memtable with a small size set: reads give memory back.
#[test]
fn a_batch_beyond_the_memtables_share_takes_the_memory_of_reads() {
    let handles = world();
    let mut options = options(&handles, 32 * MIB);
    options.settings.memtable_bytes = 64 << 10;
    let db = Db::open_with("db", options).unwrap();
    for i in 0..20_000 {
        db.put(key(i), [i as u8; 1000]).unwrap();
    }
    db.compact().unwrap();
    assert_eq!(db.iter().count(), 20_000);
    let cached = db.stats().memory.cache_bytes;
    assert!(cached > 12 * MIB, "the cache is full: {cached}");
    let mut batch = Batch::new();
    (0..240_000).for_each(|i: u32| batch.put(&db, i.to_be_bytes(), b"value"));
    assert!(batch.memory_bytes() as u64 > 12 * MIB);
    db.write(batch, WriteSync::No).unwrap();
    within_budget(&db, "with a large batch");
    assert!(db.stats().memory.cache_bytes < cached);
    db.put("small", "1").unwrap();
    within_budget(&db, "after it");
}

/// Reads had borrowed the memory that memtables left, and kept it while one batch filled all of the
/// memtables' share at once.
#[test]
fn the_largest_batch_takes_back_what_reads_were_lent() {
    let db = Db::open_with("db", options(&world(), 32 * MIB)).unwrap();
    (0..24_000).for_each(|i| db.put(key(i), [i as u8; 1000]).unwrap());
    db.compact().unwrap();
    (0..3).for_each(|_| assert_eq!(db.iter().count(), 24_000));
    let before = db.stats().memory;
    assert!(before.cache_bytes > 14 * MIB, "the cache has what was lent: {before:?}");
    let mut batch = Batch::new();
    let mut i = 0u32;
    while batch.memory_bytes() as u64 <= 16 * MIB - (16 << 10) {
        batch.put(&db, i.to_be_bytes(), b"value");
        i += 1;
    }
    db.write(batch, WriteSync::No).unwrap();
    let memory = db.stats().memory;
    assert!(memory.memtables_bytes > 14 * MIB, "{memory:?}");
    assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?}");
    assert_eq!(db.iter().count(), 24_000 + i as usize);
    let memory = db.stats().memory;
    assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?}");
    db.close().unwrap();
}

/// A log of an older version, or of a larger budget, has a batch that this budget cannot hold: it
/// is replayed in parts, and whole.
#[test]
fn a_batch_over_the_limit_is_replayed_within_the_budget() {
    let handles = world();
    let large = Db::open_with("db", options(&handles, 256 * MIB)).unwrap();
    large.put("before", "1").unwrap();
    let mut batch = Batch::new();
    (0..300_000).for_each(|i: u32| batch.put(&large, i.to_be_bytes(), b"v"));
    batch.delete_range(&large, 7u32.to_be_bytes(), 100u32.to_be_bytes());
    assert!(batch.memory_bytes() as u64 > 8 * MIB);
    large.write(batch, WriteSync::Yes).unwrap();
    large.put_with("after", "1", WriteSync::Yes).unwrap();
    handles.fs.kill(1);
    drop(large);
    let small = Db::open_with("db", options(&handles, 8 * MIB)).unwrap();
    within_budget(&small, "after a replay");
    // Level 0 has the parts: no memtable was larger than its share.
    let tables: u64 =
        small.stats().levels.iter().map(|l| l.shape.log_files + l.shape.run_files).sum();
    assert!(tables >= 300_000 * 45 / (2 * MIB), "{tables} tables");
    assert_eq!(small.iter().count(), 300_000 - 93 + 2);
    assert!(small.get(7u32.to_be_bytes()).unwrap().is_none());
    assert!(small.get("after").unwrap().is_some());
    small.close().unwrap();
}

/// Bounds of tables are keys. With 64 KiB each they took a quarter of all data, in memory and in
/// every edit of the manifest, and were not counted.
#[test]
fn bounds_of_the_longest_keys_are_few_and_counted() {
    let handles = world();
    let mut options = options(&handles, 16 * MIB);
    options.settings.set("memtable_bytes", "2MiB").unwrap();
    options.settings.set("compression", "none").unwrap();
    let db = Db::open_with("db", options.clone()).unwrap();
    let long = |i: u64| [key(i * 7919 % 1000).into_bytes(), vec![i as u8; 65_535 - 11]].concat();
    (0..1000).for_each(|i| db.put(long(i), "value").unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let check = |db: &Db| {
        let tree = windrow::inspect::trees(db);
        let files = || tree.iter().flat_map(|(_, version)| version.files());
        let bytes: u64 = files().map(|(_, _, file)| file.bytes).sum();
        let known: u64 = files().map(|(_, _, file)| file.memory_bytes() as u64).sum();
        assert!(files().count() > 2 && bytes > 60_000_000);
        assert!(known < bytes / 16, "{known} bytes are known of {bytes}");
        let memory = db.stats().memory;
        assert!(known < memory.tables_bytes, "{memory:?}");
        assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?}");
    };
    check(&db);
    (0..1000).for_each(|i| assert!(db.get(long(i)).unwrap().is_some()));
    db.close().unwrap();
    let db = Db::open_with("db", options).unwrap();
    check(&db);
    db.verify().unwrap().into_result().unwrap();
    db.close().unwrap();
}

/// The first write to each keyspace took 20 KiB, for which no memtable was frozen.
#[test]
fn thousands_of_keyspaces_with_a_key_each_stay_within_the_budget() {
    const SPACES: u64 = 1_500;
    let db = Db::open_with("db", options(&world(), 8 * MIB)).unwrap();
    let names = Vec::from_iter((0..SPACES).map(key));
    let spaces = db.create_keyspaces(&Vec::from_iter(names.iter().map(String::as_str))).unwrap();
    for (i, space) in spaces.iter().enumerate() {
        space.put("key", i.to_le_bytes()).unwrap();
        if i % 100 == 0 {
            within_budget(&db, "one by one");
        }
    }
    within_budget(&db, "one by one");
    db.flush().unwrap();
    for round in 0..3u64 {
        let mut batch = Batch::new();
        spaces.iter().for_each(|space| batch.put(space, "key", round.to_le_bytes()));
        db.write(batch, WriteSync::No).unwrap();
        within_budget(&db, "in a batch");
    }
    for space in &spaces {
        assert_eq!(space.get("key").unwrap().as_deref(), Some(&2u64.to_le_bytes()[..]));
    }
    db.close().unwrap();
}

/// A flushed memtable counted twice for a moment, as a memtable and as its readers': with each
/// flush the cache was emptied down to its floor.
#[test]
fn a_flush_leaves_the_cache_what_memtables_left_it() {
    let handles = world();
    let db = Db::open_with("db", options(&handles, 32 * MIB)).unwrap();
    for i in 0..40_000 {
        db.put(key(i), [i as u8; 1000]).unwrap();
    }
    db.compact().unwrap();
    db.wait_idle().unwrap();
    (0..2).for_each(|_| assert_eq!(db.iter().count(), 40_000));
    (0..40_000).for_each(|i| assert!(db.get(key(i)).unwrap().is_some()));
    let cached = db.stats().memory.cache_bytes;
    assert!(cached > 10 * MIB, "the cache is full: {cached}");
    let (flushes, mut least) = (db.stats().flushes, cached);
    for i in 0..20_000 {
        db.put(key(i), [7; 1000]).unwrap();
        if i % 100 == 0 {
            least = least.min(db.stats().memory.cache_bytes);
            within_budget(&db, "while it is written to");
        }
    }
    db.wait_idle().unwrap();
    least = least.min(db.stats().memory.cache_bytes);
    assert!(db.stats().flushes >= flushes + 2);
    // Reads keep their own part. Open tables take some of it.
    assert!(least >= 6 * MIB, "of {cached} bytes the cache kept {least}");
}

/// Iterators that go on during many writes each hold the memtables from their beginning.
#[test]
fn memtables_are_smaller_while_readers_hold_flushed_ones() {
    let db = Db::open_with("db", options(&world(), 32 * MIB)).unwrap();
    let mut iters = Vec::new();
    let mut keys = 0..;
    for _ in 0..8 {
        for n in keys.by_ref().take(600) {
            db.put(key(n), vec![7; 8 << 10]).unwrap();
        }
        iters.push(db.iter());
        db.flush().unwrap();
        let memory = db.stats().memory;
        assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?}");
    }
    for (n, iter) in iters.into_iter().enumerate() {
        assert_eq!(iter.count(), 600 * (n + 1));
    }
    assert_eq!(db.stats().memory.readers_bytes, 0);
}

/// Memory that memtables and merges do not use at the moment caches blocks, also while a writer
/// writes a little all the time.
#[test]
fn a_slow_writer_leaves_reads_the_memory_it_does_not_use() {
    let (env, handles) = windrow_env::testing::env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    options.settings.memory_bytes = 32 << 20;
    options.settings.compression = "none".into();
    let db = Db::open_with("db", options).unwrap();
    let key = |n: u64| format!("{:016}", n * 7_919 % 120_000);
    (0..120_000).for_each(|n| db.put(key(n), [7; 100]).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        key((state >> 33) % 120_000)
    };
    let mut work = |gets: u64| {
        let before = db.stats();
        for n in 0..gets {
            assert!(db.get(draw()).unwrap().is_some());
            if n % 5 == 0 {
                db.put(draw(), [8; 100]).unwrap();
            }
            // 25,000 gets a second, and 600 KB written.
            if n % 50 == 0 {
                handles.clock.advance_ms(2);
            }
        }
        let after = db.stats();
        (after.cache_misses - before.cache_misses) as f64 / gets as f64
    };
    work(200_000);
    let missed = work(400_000);
    println!("{missed:.4} blocks a get are not cached");
    assert!(missed < 0.13, "{missed} blocks a get are not cached");
}
