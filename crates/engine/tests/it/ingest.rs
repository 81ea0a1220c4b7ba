//! Ingestions: their entries are visible all at once or not at all, newer than earlier writes and
//! older than later ones, in any concurrent work.

use crate::simulated_database::{DIR, options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use windrow::settings::KeyspaceSettings;
use windrow::{Db, ErrorKind, Follower, Options, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, Rng, When, env};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn small(handles: &Handles, preset: &str) -> Options {
    let mut options = options(handles);
    let settings = [
        ("preset", preset),
        ("compression", "none"),
        ("file_bytes", "64KiB"),
        ("level_base_bytes", "64KiB"),
    ];
    settings.iter().for_each(|(name, value)| options.settings.set(name, value).unwrap());
    options
}

fn open(handles: &Handles) -> Db {
    Db::open_with(DIR, small(handles, "windrow")).unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

fn pairs(keys: impl Iterator<Item = u64>, value: &str) -> Map {
    keys.map(|n| (key(n), format!("{value}{n:0160}").into_bytes())).collect()
}

fn ingest(db: &Db, map: &Map) -> windrow::Result<windrow::inspect::Ingested> {
    let mut ingest = db.ingest()?;
    map.iter().try_for_each(|(key, value)| ingest.put(key, value))?;
    ingest.finish()
}

fn all(db: &Db) -> Map {
    db.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// Checks the state that a snapshot shows, by gets and by a scan.
fn assert_at(snapshot: &windrow::Snapshot, map: &Map) {
    let seen: Map =
        snapshot.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
    assert!(seen == *map, "{} keys instead of {}", seen.len(), map.len());
}

fn assert_is(db: &Db, map: &Map) {
    let seen = all(db);
    assert!(seen == *map, "{} keys instead of {}", seen.len(), map.len());
    for (key, value) in map.iter().step_by(7) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    db.verify().unwrap().into_result().unwrap();
}

fn tables(handles: &Handles) -> Vec<String> {
    let names = handles.fs.files(Path::new(DIR)).into_iter();
    names.filter(|name| name.ends_with(".sst")).collect()
}

/// Kills the process, or cuts the power, and opens the database again.
fn after_crash(db: Db, handles: &Handles, power_loss: bool, seed: u64) -> (Db, Handles) {
    std::mem::forget(db);
    handles.jobs.discard();
    handles.fs.clear_faults();
    if power_loss {
        handles.fs.crash(seed)
    } else {
        handles.fs.kill(seed)
    }
    let handles = Handles { fs: handles.fs.clone(), ..handles.reborn(seed) };
    (open(&handles), handles)
}

#[test]
fn sorted_entries_are_written_once_at_the_deepest_level() {
    for preset in ["windrow", "leveled", "l2sm", "vlsm"] {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, small(&handles, preset)).unwrap();
        let map = pairs(0..5_000, "a");
        let done = ingest(&db, &map).unwrap();
        assert_eq!(done.entries, 5_000);
        assert!(done.tables > 10, "{done:?}");
        db.wait_idle().unwrap();
        let stats = db.stats();
        let (read, written): (u64, u64) = stats
            .levels
            .iter()
            .map(|l| (l.read_bytes, l.written_bytes))
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert_eq!((read, written), (0, done.bytes), "{preset}: nothing is written again");
        assert_eq!(stats.levels[0].shape.bytes, 0, "{preset}");
        assert_is(&db, &map);
        db.close().unwrap();
        assert_is(&Db::open_with(DIR, small(&handles, preset)).unwrap(), &map);
    }
}

#[test]
fn an_ingestion_replaces_what_was_there_and_snapshots_keep_it() {
    for preset in ["windrow", "leveled", "l2sm", "vlsm"] {
        let (_, handles) = env(2);
        let db = Db::open_with(DIR, small(&handles, preset)).unwrap();
        let mut map = pairs((0..4_000).step_by(2), "old");
        map.iter().for_each(|(key, value)| db.put(key, value).unwrap());
        db.flush().unwrap();
        db.wait_idle().unwrap();
        // Some keys are in the memtable, some deleted there, and a range is deleted.
        for n in 1_000..1_100 {
            db.put(key(n), "memtable").unwrap();
            map.insert(key(n), b"memtable".to_vec());
        }
        db.delete(key(0)).unwrap();
        map.remove(&key(0));
        db.delete_range(key(2_000), key(2_500)).unwrap();
        map.retain(|k, _| !(key(2_000) <= *k && *k < key(2_500)));
        let (before, old) = (db.snapshot(), map.clone());
        let iter = db.iter();
        let new = pairs((0..4_000).step_by(3), "new");
        ingest(&db, &new).unwrap();
        assert_at(&before, &old);
        let scanned: Map =
            iter.map(|p| p.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
        assert_eq!(scanned, old);
        map.extend(new);
        assert_is(&db, &map);
        // Later writes hide it.
        let (between, middle) = (db.snapshot(), map.clone());
        db.delete_range(key(3_000), key(3_300)).unwrap();
        map.retain(|k, _| !(key(3_000) <= *k && *k < key(3_300)));
        db.put(key(3), "newest").unwrap();
        map.insert(key(3), b"newest".to_vec());
        assert_is(&db, &map);
        db.compact().unwrap();
        assert_is(&db, &map);
        assert_at(&before, &old);
        assert_at(&between, &middle);
        drop((before, between));
        db.compact().unwrap();
        assert_is(&db, &map);
        db.close().unwrap();
        assert_is(&Db::open_with(DIR, small(&handles, preset)).unwrap(), &map);
    }
}

#[test]
fn a_wrong_order_is_refused_and_the_rest_goes_in() {
    let (_, handles) = env(3);
    let db = open(&handles);
    let mut ingest = db.ingest().unwrap();
    ingest.put("b", "1").unwrap();
    for wrong in ["b", "a", ""] {
        let error = ingest.put(wrong, "2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("ascending"), "{error}");
    }
    let error = ingest.put(vec![b'c'; 70_000], "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    ingest.put("c", "3").unwrap();
    assert_eq!(ingest.finish().unwrap().entries, 2);
    assert_eq!(all(&db).len(), 2);
}

#[test]
fn what_was_ingested_expires() {
    let (_, handles) = env(10);
    let db = open(&handles);
    let space = db.keyspace("space").unwrap();
    let ttl = Some(Duration::from_secs(20));
    space.configure(KeyspaceSettings { ttl, ..space.settings() }).unwrap();
    let mut ingest = space.ingest().unwrap();
    ingest.put("a", "1").unwrap();
    ingest.put_with_ttl("b", "2", Duration::from_secs(5)).unwrap();
    ingest.finish().unwrap();
    let left = || space.iter().count();
    assert_eq!(space.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(left(), 2);
    handles.clock.advance_ms(10_000);
    assert_eq!((left(), space.get("b").unwrap()), (1, None));
    db.compact().unwrap();
    db.verify().unwrap().into_result().unwrap();
    assert_eq!(left(), 1);
    handles.clock.advance_ms(20_000);
    assert_eq!(left(), 0);
}

#[test]
fn nothing_is_left_of_one_that_is_not_finished() {
    let (_, handles) = env(4);
    let db = open(&handles);
    assert_eq!(db.ingest().unwrap().finish().unwrap(), windrow::inspect::Ingested::default());
    let mut ingest = db.ingest().unwrap();
    pairs(0..3_000, "a").iter().for_each(|(key, value)| ingest.put(key, value).unwrap());
    assert!(tables(&handles).len() > 3);
    drop(ingest);
    assert_eq!(tables(&handles), Vec::<String>::new());
    assert!(db.is_empty().unwrap());
    // Nor of an ingestion that a failed write ends, or whose keyspace is dropped.
    let mut ingest = db.ingest().unwrap();
    handles
        .fs
        .inject(Fault::new(FaultKind::NoSpace, Ops::WRITE, When::Matching(2)).on_path(".sst"));
    let failed = pairs(0..3_000, "a").iter().find_map(|(key, value)| ingest.put(key, value).err());
    assert_eq!(failed.unwrap().kind(), ErrorKind::NoSpace);
    assert!(ingest.put("z", "").unwrap_err().message().contains("begin another"));
    assert!(ingest.finish().is_err());
    assert_eq!(tables(&handles), Vec::<String>::new());
    let space = db.keyspace("space").unwrap();
    let mut ingest = space.ingest().unwrap();
    ingest.put("a", "1").unwrap();
    db.drop_keyspace("space").unwrap();
    assert_eq!(ingest.finish().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(space.ingest().unwrap_err().kind(), ErrorKind::Closed);
    db.wait_idle().unwrap();
    assert_eq!(tables(&handles), Vec::<String>::new());
    db.put("a", "1").unwrap();
    db.close().unwrap();
    let options = Options { read_only: true, ..small(&handles, "windrow") };
    let db = Db::open_with(DIR, options).unwrap();
    assert_eq!(db.ingest().unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// With a crash at any operation: all of the ingestion is there afterwards or nothing, and all
/// acknowledged writes.
#[test]
fn it_is_all_or_nothing_after_a_crash_at_any_operation() {
    let old = pairs(0..300, "old");
    let new = pairs((0..1_200).step_by(2), "new");
    let mut both = old.clone();
    both.extend(new.clone());
    let (mut before, mut after) = (0, 0);
    for power_loss in [false, true] {
        for operation in 0.. {
            let (_, handles) = env(operation);
            let db = open(&handles);
            old.iter().for_each(|(key, value)| db.put(key, value).unwrap());
            db.sync().unwrap();
            handles.fs.crash_at(handles.fs.operations() + operation);
            let done = ingest(&db, &new).is_ok();
            let through = !handles.fs.is_dead();
            let (db, _handles) = after_crash(db, &handles, power_loss, operation);
            let seen = all(&db);
            assert!(seen == both || !done && seen == old, "operation {operation}");
            if seen == both {
                after += 1
            } else {
                before += 1
            }
            assert_is(&db, &seen);
            db.put(key(0), "later").unwrap();
            assert_eq!(db.get(key(0)).unwrap().as_deref(), Some(&b"later"[..]));
            if through {
                break;
            }
        }
    }
    assert!(before > 10 && after > 1, "{before} without it, {after} with it");
}

#[test]
fn it_is_all_or_nothing_when_an_operation_fails() {
    let old = pairs(0..300, "old");
    let new = pairs((0..1_200).step_by(2), "new");
    let mut both = old.clone();
    both.extend(new.clone());
    for kind in [FaultKind::Io, FaultKind::NoSpace] {
        for at in 0.. {
            let (_, handles) = env(at);
            let db = open(&handles);
            old.iter().for_each(|(key, value)| db.put(key, value).unwrap());
            db.sync().unwrap();
            let all_ops = Ops::WRITE | Ops::SYNC | Ops::CREATE;
            let id = handles.fs.inject(Fault::new(kind, all_ops, When::Matching(at)));
            let done = ingest(&db, &new);
            handles.fs.remove_fault(id);
            let seen = all(&db);
            match &done {
                Ok(_) => assert!(seen == both, "{kind:?} at {at}"),
                Err(_) => assert!(seen == old, "{kind:?} at {at}"),
            }
            let (db, _handles) = after_crash(db, &handles, true, at);
            let found = all(&db);
            assert!(found == both || done.is_err() && found == old, "{kind:?} at {at}");
            assert_is(&db, &found);
            if done.is_ok() && at > 60 {
                break;
            }
        }
    }
}

/// Whether its record is in the manifest cannot be told, if the sync of the manifest has failed.
#[test]
fn one_that_the_manifest_may_have_says_so() {
    let (_, handles) = env(1);
    let db = open(&handles);
    let sync = Fault::new(FaultKind::NoSpace, Ops::SYNC, When::Matching(0)).on_path("MANIFEST");
    handles.fs.inject(sync);
    let error = ingest(&db, &pairs(0..10, "new")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(error.first_failure().kind(), ErrorKind::NoSpace, "{error}");
    db.resume().unwrap();
    assert_is(&db, &BTreeMap::new());
}

/// Random histories compared with a map, with snapshots and reopens.
#[test]
fn histories_with_ingestions_are_as_a_map_says() {
    for seed in 0..30 {
        let (_, mut handles) = env(seed);
        let preset = ["windrow", "leveled", "l2sm", "vlsm"][seed as usize % 4];
        let mut rng = Rng::new(seed);
        let mut db = Db::open_with(DIR, small(&handles, preset)).unwrap();
        let (mut map, mut kept) = (Map::new(), Vec::new());
        for step in 0..120 {
            let from = rng.below(1_000);
            let keys = from..from + 1 + rng.below(400);
            match rng.below(12) {
                0..=2 => {
                    let step = 1 + rng.below(5) as usize;
                    let new = pairs(keys.step_by(step), &format!("ingested at {step}"));
                    ingest(&db, &new).unwrap();
                    map.extend(new);
                }
                3 | 4 => {
                    let new = pairs(keys.step_by(3), &format!("put at {step}"));
                    new.iter().for_each(|(key, value)| db.put(key, value).unwrap());
                    map.extend(new);
                }
                5 => {
                    db.delete_range(key(keys.start), key(keys.end)).unwrap();
                    map.retain(|k, _| !(key(keys.start) <= *k && *k < key(keys.end)));
                }
                6 => kept.push((db.snapshot(), map.clone())),
                7 if !kept.is_empty() => {
                    let (snapshot, map) = kept.swap_remove(rng.below(kept.len() as u64) as usize);
                    assert_at(&snapshot, &map);
                }
                8 => db.compact().unwrap(),
                9 => db.flush().unwrap(),
                10 if rng.chance(0.3) => {
                    kept.clear();
                    db.close().unwrap();
                    db = Db::open_with(DIR, small(&handles, preset)).unwrap();
                }
                11 if rng.chance(0.3) => {
                    kept.clear();
                    db.sync().unwrap();
                    (db, handles) = after_crash(db, &handles, true, step);
                }
                _ => assert_eq!(all(&db), map, "seed {seed}, step {step}"),
            }
        }
        kept.iter().for_each(|(snapshot, map)| assert_at(snapshot, map));
        assert_is(&db, &map);
    }
}

/// Over a range that a scan found deleted, and keeps as a gap.
#[test]
fn scans_find_what_was_ingested_into_a_gap() {
    let (_, handles) = env(5);
    let db = open(&handles);
    let mut map = pairs(0..3_000, "old");
    map.iter().for_each(|(key, value)| db.put(key, value).unwrap());
    let hold = db.snapshot();
    for n in 10..2_990 {
        db.delete(key(n)).unwrap();
        map.remove(&key(n));
    }
    (0..3).for_each(|_| assert_eq!(all(&db), map));
    let new = pairs(500..520, "new");
    ingest(&db, &new).unwrap();
    map.extend(new);
    (0..3).for_each(|_| assert_eq!(all(&db), map));
    drop(hold);
}

#[test]
fn a_transaction_that_read_what_is_ingested_conflicts() {
    let (_, handles) = env(6);
    let db = open(&handles);
    db.put("b", "1").unwrap();
    let begin = |key: &str| {
        let mut tx = db.transaction().unwrap();
        tx.get(&db, key).unwrap();
        tx.put(&db, "z", key).unwrap();
        tx
    };
    let (inside, last, outside) = (begin("b"), begin("c"), begin("d"));
    let map: Map = [("a", "2"), ("c", "2")].map(|(k, v)| (k.into(), v.into())).into();
    ingest(&db, &map).unwrap();
    assert_eq!(inside.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(last.commit().unwrap_err().kind(), ErrorKind::Conflict);
    outside.commit().unwrap();
}

#[test]
fn checkpoints_and_followers_have_what_was_ingested() {
    let (_, handles) = env(7);
    let db = open(&handles);
    let mut map = pairs(0..500, "old");
    map.iter().for_each(|(key, value)| db.put(key, value).unwrap());
    let follower = Follower::open_with(DIR, small(&handles, "windrow")).unwrap();
    assert_is(&follower.db(), &map);
    for round in 0..4 {
        let (old, before) = (follower.db(), map.clone());
        let new = pairs((0..1_000).step_by(round + 2), &format!("new{round}"));
        ingest(&db, &new).unwrap();
        map.extend(new);
        assert!(follower.refresh().unwrap());
        assert_is(&follower.db(), &map);
        db.put(key(3), "put").unwrap();
        map.insert(key(3), b"put".to_vec());
        assert!(follower.refresh().unwrap());
        assert_is(&follower.db(), &map);
        assert_is(&Follower::open_with(DIR, small(&handles, "windrow")).unwrap().db(), &map);
        assert_is(&old, &before);
    }
    db.checkpoint("/copy").unwrap();
    ingest(&db, &pairs(0..10, "later")).unwrap();
    let copy = Db::open_with("/copy", small(&handles, "windrow")).unwrap();
    assert_is(&copy, &map);
}

/// Makes a database whose newest values are ingested, and puts over some of those.
fn ingested(handles: &Handles) -> Map {
    let db = open(handles);
    let mut map = pairs(0..600, "old");
    map.iter().for_each(|(key, value)| db.put(key, value).unwrap());
    db.flush().unwrap();
    let new = pairs((0..1_800).step_by(2), "new");
    ingest(&db, &new).unwrap();
    map.extend(new);
    for n in 100..120 {
        db.put(key(n), "newest").unwrap();
        map.insert(key(n), b"newest".to_vec());
    }
    db.flush().unwrap();
    db.close().unwrap();
    map
}

#[test]
fn a_repair_keeps_the_order_of_what_was_ingested() {
    for seed in 0..8 {
        let (_, handles) = env(seed);
        let map = ingested(&handles);
        if seed % 2 == 0 {
            handles.fs.remove_file(&Path::new(DIR).join("CURRENT"));
            for name in handles.fs.files(Path::new(DIR)) {
                if name.starts_with("MANIFEST") {
                    handles.fs.remove_file(&Path::new(DIR).join(name));
                }
            }
        }
        let report = windrow::repair(DIR, small(&handles, "windrow")).unwrap();
        assert!(!report.lost_something(), "{report:?}");
        assert_eq!(report.manifest_rebuilt, seed % 2 == 0);
        let db = open(&handles);
        assert_is(&db, &map);
        db.compact().unwrap();
        assert_is(&db, &map);
    }
}

/// A damaged table that was ingested: the entries saved from it stay as new as they were.
#[test]
fn what_is_saved_of_an_ingested_table_keeps_its_place() {
    for rebuild in [false, true] {
        let (_, handles) = env(9);
        let map = ingested(&handles);
        for name in tables(&handles) {
            let path = Path::new(DIR).join(name);
            if handles.fs.read_file(&path).unwrap().len() > 8_000 {
                handles.fs.flip(&path, 5_000, 0x10);
            }
        }
        if rebuild {
            handles.fs.remove_file(&Path::new(DIR).join("CURRENT"));
            for name in handles.fs.files(Path::new(DIR)) {
                if name.starts_with("MANIFEST") {
                    handles.fs.remove_file(&Path::new(DIR).join(name));
                }
            }
        }
        let report = windrow::repair(DIR, small(&handles, "windrow")).unwrap();
        assert!(report.lost_something());
        let db = open(&handles);
        db.verify().unwrap().into_result().unwrap();
        let found = all(&db);
        assert!(found.len() > 500, "{} are left", found.len());
        // A lost key shows an older value. Apart from that, nothing is older than it was.
        let older = found.iter().filter(|(key, value)| map.get(*key) != Some(*value)).count();
        assert!(older < 200, "{older} values are old ones");
        let new = found.values().filter(|value| value.starts_with(b"new")).count();
        assert!(new > 200, "{new} of the ingested ones are left");
    }
}

/// Each writer counts up a key of its own among those that are ingested, so that a value which an
/// ingestion set back would be seen.
#[test]
fn ingestions_next_to_writers_scans_and_merges() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = Options::default();
    let settings =
        [("memtable_bytes", "256KiB"), ("file_bytes", "64KiB"), ("memory_bytes", "8MiB")];
    settings.iter().for_each(|(name, value)| small.settings.set(name, value).unwrap());
    let db = Db::open_with(dir.path(), small.clone()).unwrap();
    let (over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let (db, over) = (&db, &over);
            scope.spawn(move || {
                let own = format!("key{:06}b", writer * 500);
                let mut n = 0u64;
                while !over.load(Ordering::Acquire) {
                    n += 1;
                    db.put(&own, n.to_le_bytes()).unwrap();
                    assert_eq!(db.get(&own).unwrap().as_deref(), Some(&n.to_le_bytes()[..]));
                    db.put(format!("other{:05}", n % 2_000), vec![writer as u8; 300]).unwrap();
                }
            });
        }
        let (db, over, rounds) = (&db, &over, &rounds);
        scope.spawn(move || {
            // All entries are of one ingestion, and never older than the last acknowledged one.
            while !over.load(Ordering::Acquire) {
                let least = rounds.load(Ordering::Acquire);
                let mut seen = None;
                for pair in db.range(key(0)..key(999_999)) {
                    let (key, value) = pair.unwrap();
                    if !key.ends_with(b"b") {
                        let round = u64::from_le_bytes(value[..8].try_into().unwrap());
                        assert_eq!(*seen.get_or_insert(round), round, "half an ingestion");
                    }
                }
                assert!(least <= seen.unwrap_or(0), "{seen:?} after {least}");
            }
        });
        for round in 1..=25u64 {
            let mut ingest = db.ingest().unwrap();
            for n in 0..1_000 {
                let mut value = round.to_le_bytes().to_vec();
                value.resize(200, 0);
                ingest.put(key(n), value).unwrap();
            }
            ingest.finish().unwrap();
            rounds.store(round, Ordering::Release);
        }
        over.store(true, Ordering::Release);
    });
    db.verify().unwrap().into_result().unwrap();
    db.put_with("end", "", WriteSync::Yes).unwrap();
    db.close().unwrap();
    let db = Db::open_with(dir.path(), small).unwrap();
    assert_eq!(db.range(key(0)..key(999_999)).count(), 1_002);
}

/// Flushes record in the manifest which logs are not needed any more; ingestions record how much of
/// the logs is durable. Every record of the two must fold, in whatever order they come.
#[test]
fn ingestions_next_to_flushes_leave_a_manifest_that_opens() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = Options::default();
    let settings = [("memtable_bytes", "64KiB"), ("memory_bytes", "8MiB")];
    settings.iter().for_each(|(name, value)| small.settings.set(name, value).unwrap());
    let (rounds, over) = (400u64, AtomicBool::new(false));
    for open in 0..3 {
        let db = Db::open_with(dir.path(), small.clone()).unwrap();
        let other = db.keyspace("other").unwrap();
        over.store(false, Ordering::Release);
        std::thread::scope(|scope| {
            let (db, over) = (&db, &over);
            scope.spawn(move || {
                for n in 0u64.. {
                    if over.load(Ordering::Acquire) {
                        return n;
                    }
                    db.put(key(n % 5_000), vec![0; 1_000]).unwrap();
                }
                unreachable!()
            });
            // The writer ends even if the ingestions fail.
            let ingested = (0..rounds).try_for_each(|round| {
                let mut ingest = other.ingest()?;
                (0..100).try_for_each(|n| ingest.put(key(n), round.to_le_bytes()))?;
                ingest.finish().map(drop)
            });
            over.store(true, Ordering::Release);
            ingested.unwrap();
        });
        // As another process would.
        let read_only = Options { read_only: true, ..small.clone() };
        for db in [db.clone(), Follower::open_with(dir.path(), read_only).unwrap().db()] {
            let other = db.open_keyspace("other").unwrap().unwrap();
            assert_eq!(other.count(..).unwrap(), 100, "open {open}");
            assert_eq!(
                other.get(key(7)).unwrap().as_deref(),
                Some(&(rounds - 1).to_le_bytes()[..])
            );
        }
        db.close().unwrap();
    }
}
