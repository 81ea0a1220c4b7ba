//! Followers, compared with a writer and with a map of its writes.

use crate::simulated_database::{DIR, options};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use windrow::{
    Batch, Db, ErrorKind, Follower, Iter, Keyspace, KeyspaceOptions, Options, Snapshot, WriteSync,
};
use windrow_env::fs::{FileSystem as _, WriteOptions};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, Rng, When, env};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Spaces = BTreeMap<String, Map>;

/// The writer, and a map of its writes.
struct World {
    handles: Handles,
    rng: Rng,
    writer: Db,
    spaces: Spaces,
    made: u32,
}

/// A state of a follower, and the entries that it must show.
struct Kept {
    db: Db,
    spaces: Spaces,
    /// Made with the state, and read later.
    iter: Iter,
    snapshot: Snapshot,
}

fn open(handles: &Handles) -> Db {
    Db::open_with(DIR, options(handles)).unwrap()
}

impl World {
    fn new(seed: u64) -> World {
        let (_, handles) = env(seed);
        let writer = open(&handles);
        let spaces = [("default".to_owned(), Map::new())].into();
        World { handles, rng: Rng::new(seed), writer, spaces, made: 0 }
    }

    fn follow(&self) -> Follower {
        Follower::open_with(DIR, options(&self.handles)).unwrap()
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:03}", self.rng.below(300)).into_bytes()
    }

    fn batch(&mut self) {
        let names: Vec<String> = self.spaces.keys().cloned().collect();
        let (mut batch, mut spaces) = (Batch::new(), self.spaces.clone());
        for _ in 0..=self.rng.below(20) {
            let name = &names[self.rng.below(names.len() as u64) as usize];
            let space = self.writer.keyspace(name).unwrap();
            let map = spaces.get_mut(name).unwrap();
            let key = self.key();
            match self.rng.below(10) {
                0 => {
                    let to = self.key();
                    batch.delete_range(&space, &key, &to);
                    map.retain(|k, _| !(key <= *k && *k < to));
                }
                1 | 2 => {
                    batch.delete(&space, &key);
                    map.remove(&key);
                }
                3 | 4 if name.starts_with("sums") => {
                    batch.merge(&space, &key, 3u64.to_le_bytes());
                    let sum = map
                        .get(&key)
                        .map_or(0, |sum| u64::from_le_bytes(sum.as_slice().try_into().unwrap()));
                    map.insert(key, (sum + 3).to_le_bytes().to_vec());
                }
                _ if name.starts_with("sums") => {
                    batch.put(&space, &key, 1u64.to_le_bytes());
                    map.insert(key, 1u64.to_le_bytes().to_vec());
                }
                _ => {
                    let value = vec![self.rng.below(256) as u8; 1 + self.rng.below(700) as usize];
                    batch.put(&space, &key, &value);
                    map.insert(key, value);
                }
            }
        }
        let sync = if self.rng.chance(0.1) { WriteSync::Yes } else { WriteSync::No };
        self.writer.write(batch, sync).unwrap();
        self.spaces = spaces;
    }

    fn step(&mut self) {
        match self.rng.below(60) {
            0 => self.writer.flush().unwrap(),
            1 => self.writer.compact().unwrap(),
            2 if self.spaces.len() < 5 => {
                self.made += 1;
                let sums = self.rng.chance(0.5);
                let name = format!("{}{}", if sums { "sums" } else { "plain" }, self.made);
                let merge_operator = sums.then(|| "add".to_owned());
                let asked = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
                self.writer.keyspace_with(&name, asked).unwrap();
                self.spaces.insert(name, Map::new());
            }
            3 => {
                let name = self.spaces.keys().find(|name| *name != "default").cloned();
                if let Some(name) = name.filter(|_| self.rng.chance(0.3)) {
                    self.writer.drop_keyspace(&name).unwrap();
                    self.spaces.remove(&name);
                }
            }
            4 if self.rng.chance(0.3) => {
                self.writer.close().unwrap();
                self.writer = open(&self.handles);
            }
            5..=15 => _ = self.handles.jobs.run_until_idle(),
            _ => self.batch(),
        }
    }
}

fn compare(db: &Db, spaces: &Spaces, what: &str) {
    let names: BTreeSet<String> = db.keyspaces().into_iter().collect();
    assert!(names.iter().eq(spaces.keys()), "{what}: {names:?}");
    for (name, map) in spaces {
        let space = db.open_keyspace(name).unwrap().unwrap();
        let found: Map = space.iter().map(|entry| own(entry.unwrap())).collect();
        assert!(found == *map, "{what}: `{name}` has {} entries, not {}", found.len(), map.len());
        let backwards = space.iter().rev().map(|entry| own(entry.unwrap()));
        assert!(backwards.eq(map.iter().rev().map(|(k, v)| (k.clone(), v.clone()))), "{what}");
        for (key, value) in map.iter().step_by(7) {
            assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]), "{what}: {key:?}");
        }
        assert_eq!(space.get("key").unwrap(), None);
    }
}

fn own((key, value): (windrow::Slice, windrow::Slice)) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

fn files(handles: &Handles) -> BTreeSet<String> {
    handles.fs.files(DIR.as_ref()).into_iter().filter(|name| !name.starts_with("READER")).collect()
}

#[test]
fn what_was_written_is_seen_and_what_was_seen_stays() {
    for seed in 0..12 {
        let mut world = World::new(seed);
        let mut followers = vec![world.follow()];
        let mut kept: VecDeque<Kept> = VecDeque::new();
        let mut copies: Vec<(String, Spaces)> = Vec::new();
        for step in 0..600 {
            world.step();
            if world.rng.chance(0.02) {
                followers.push(world.follow());
            }
            if followers.len() > 1 && world.rng.chance(0.02) {
                followers.swap_remove(world.rng.below(followers.len() as u64) as usize);
            }
            if !world.rng.chance(0.1) {
                continue;
            }
            let follower = &followers[world.rng.below(followers.len() as u64) as usize];
            follower.refresh().unwrap();
            let db = follower.db();
            compare(&db, &world.spaces, &format!("seed {seed}, step {step}"));
            assert!(!follower.refresh().unwrap(), "seed {seed}, step {step}: nothing was written");
            if world.rng.chance(0.1) {
                let target = format!("/copy{step}");
                follower.checkpoint(&target).unwrap();
                copies.push((target, world.spaces.clone()));
            }
            if world.rng.chance(0.3) {
                let (iter, snapshot) = (db.iter(), db.snapshot());
                kept.push_back(Kept { db, spaces: world.spaces.clone(), iter, snapshot });
            }
            if kept.len() > 3 {
                let Kept { db, spaces, iter, snapshot } = kept.pop_front().unwrap();
                compare(&db, &spaces, &format!("seed {seed}, step {step}, kept"));
                let found: Map = iter.map(|entry| own(entry.unwrap())).collect();
                assert!(found == spaces["default"], "seed {seed}, step {step}: iterator");
                let found: Map = snapshot.iter().map(|e| own(e.unwrap())).collect();
                assert!(found == spaces["default"], "seed {seed}, step {step}: snapshot");
            }
        }
        drop((followers, kept));
        assert!(!copies.is_empty(), "seed {seed}");
        for (dir, spaces) in copies {
            // As the copy was found, and as the first open for writing leaves it.
            let read_only = Options { read_only: true, ..options(&world.handles) };
            for options in [read_only, options(&world.handles), options(&world.handles)] {
                let db = Db::open_with(&dir, options).unwrap();
                compare(&db, &spaces, &format!("seed {seed}, {dir}"));
                db.verify().and_then(|report| report.into_result()).unwrap();
                db.close().unwrap();
            }
        }
        // The files that they held are removed when no follower holds them.
        world.writer.compact().unwrap();
        world.handles.jobs.fire_timers();
        world.handles.jobs.run_until_idle();
        assert_eq!(world.writer.stats().files_waiting, 0, "seed {seed}");
        world.writer.close().unwrap();
        let trees = windrow::inspect::trees(&open(&world.handles));
        let live: usize = trees.iter().map(|(_, version)| version.file_count()).sum();
        let tables = files(&world.handles).iter().filter(|name| name.ends_with(".sst")).count();
        assert_eq!(tables, live, "seed {seed}");
    }
}

/// Each operation on the target fails in turn, although it may have been done.
#[test]
fn a_checkpoint_that_fails_leaves_nothing_and_can_be_tried_again() {
    for case in 0.. {
        let mut world = World::new(case);
        (0..40).for_each(|_| world.batch());
        world.writer.flush().unwrap();
        (0..10).for_each(|_| world.batch());
        let follower = world.follow();
        let fault = Fault::new(FaultKind::Io, Ops::MUTATING, When::Matching(case)).on_path("/copy");
        let fault = world.handles.fs.inject(fault);
        let made = follower.checkpoint("/copy");
        world.handles.fs.remove_fault(fault);
        if made.is_err() {
            assert_eq!(world.handles.fs.files("/copy".as_ref()), [""; 0], "case {case}: {made:?}");
            follower.checkpoint("/copy").expect("nothing is in the way");
        }
        assert_eq!(follower.checkpoint("/copy").unwrap_err().kind(), ErrorKind::InvalidArgument);
        let copy = Db::open_with("/copy", options(&world.handles)).unwrap();
        compare(&copy, &world.spaces, &format!("case {case}"));
        drop(copy);
        compare(&follower.db(), &world.spaces, &format!("the source of case {case}"));
        if made.is_ok() {
            assert!(case > 8, "{case}");
            return;
        }
    }
}

/// A follower that does not refresh keeps its files, over closes and opens of the database.
#[test]
fn files_wait_for_those_who_read_them() {
    let mut world = World::new(1);
    (0..400).for_each(|_| world.batch());
    world.writer.flush().unwrap();
    let follower = world.follow();
    let then = world.spaces.clone();
    for _ in 0..3 {
        (0..200).for_each(|_| world.batch());
        world.writer.compact().unwrap();
        world.handles.jobs.fire_timers();
        world.handles.jobs.run_until_idle();
        assert!(world.writer.stats().files_waiting > 0);
        compare(&follower.db(), &then, "before a close");
        world.writer.close().unwrap();
        compare(&follower.db(), &then, "after a close");
        world.writer = open(&world.handles);
        compare(&follower.db(), &then, "after an open");
    }
    let waiting = world.writer.stats().files_waiting;
    assert!(waiting > 0);
    assert!(follower.refresh().unwrap());
    compare(&follower.db(), &world.spaces, "refreshed");
    world.handles.jobs.fire_timers();
    world.handles.jobs.run_until_idle();
    assert_eq!(world.writer.stats().files_waiting, 0, "{waiting} before");
}

#[test]
fn a_database_that_nobody_writes_is_followed() {
    let mut world = World::new(2);
    (0..50).for_each(|_| world.batch());
    // As a process that dies leaves it, and then as one that closes it.
    let image = world.handles.fs.fork();
    world.writer.close().unwrap();
    for fs in [image, world.handles.fs.clone()] {
        let mut options = options(&world.handles);
        let mut env = world.handles.env();
        env.fs = Arc::new(fs.clone());
        options.components.env = Some(env);
        let before = fs.files(DIR.as_ref());
        let follower = Follower::open_with(DIR, options).unwrap();
        compare(&follower.db(), &world.spaces, "nobody writes");
        assert!(!follower.refresh().unwrap());
        let mut after = fs.files(DIR.as_ref());
        after.retain(|name| name != "READER-000000");
        assert_eq!(before, after);
        let refused = follower.db().put("a", "b").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    }
}

#[test]
fn whoever_would_ruin_what_is_read_is_refused() {
    let world = World::new(3);
    let follower = world.follow();
    world.writer.close().unwrap();
    let refused = windrow::repair(DIR, options(&world.handles)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    let db = follower.db();
    drop(follower);
    assert!(windrow::repair(DIR, options(&world.handles)).is_err(), "a moment is open");
    drop(db);
    windrow::repair(DIR, options(&world.handles)).unwrap();
}

#[test]
fn what_cannot_be_followed_says_why() {
    let (_, handles) = env(1);
    let missing = Follower::open_with(DIR, options(&handles)).unwrap_err();
    assert!(missing.message().contains("there is no database in"), "{missing}");
    let writer = open(&handles);
    writer.put("a", "1").unwrap();
    let follower = Follower::open_with(DIR, options(&handles)).unwrap();
    writer.put("a", "2").unwrap();
    // A refresh that fails leaves the shown state, and the next one goes on.
    for nth in 0..12 {
        handles.fs.inject(Fault::new(FaultKind::Io, Ops::READING, When::Matching(nth)));
        if follower.refresh().is_err() {
            assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"1"[..]));
        }
        handles.fs.clear_faults();
    }
    follower.refresh().unwrap();
    assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"2"[..]));
    // Without a lease nothing is read.
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::LOCK, When::MatchingFrom(0)));
    let refused = Follower::open_with(DIR, options(&handles)).unwrap_err();
    assert!(refused.to_string().contains("needs a lease"), "{refused}");
}

/// On real files, with threads: a batch is seen whole, a write that was acknowledged before a
/// refresh is seen after it, and no state is older than one before it.
#[test]
fn threads_see_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = Options::default();
    small.settings.memory_bytes = 8 << 20;
    small.settings.memtable_bytes = 256 << 10;
    let writer = Db::open_with(dir.path(), small.clone()).unwrap();
    let other = writer.keyspace("other").unwrap();
    let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    writer.put("count", 0u64.to_le_bytes()).unwrap();
    other.put("count", 0u64.to_le_bytes()).unwrap();
    let count = |db: &Db, name: &str| {
        let space = db.open_keyspace(name).unwrap().unwrap();
        u64::from_le_bytes(space.get("count").unwrap().unwrap()[..].try_into().unwrap())
    };
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (over, done, small) = (&over, &done, small.clone());
            let dir = dir.path();
            scope.spawn(move || {
                let mut follower = Follower::open_with(dir, small.clone()).unwrap();
                let (mut last, mut rounds) = (0, 0u64);
                while !over.load(Ordering::Acquire) || rounds == 0 {
                    let acknowledged = done.load(Ordering::Acquire);
                    if reader == 1 && rounds % 10 == 9 {
                        follower = Follower::open_with(dir, small.clone()).unwrap();
                    } else {
                        follower.refresh().unwrap();
                    }
                    let db = follower.db();
                    let seen = count(&db, "default");
                    assert_eq!(seen, count(&db, "other"), "half a batch");
                    assert!(acknowledged <= seen, "{acknowledged} were written, {seen} seen");
                    assert!(last <= seen, "{last} were seen, and then {seen}");
                    let n = db.count("entry".."entrz").unwrap();
                    assert_eq!(n, seen.min(5000), "entries of {seen} batches");
                    (last, rounds) = (seen, rounds + 1);
                }
            });
        }
        for n in 1..=30_000u64 {
            let mut batch = Batch::new();
            batch.put(&writer, "count", n.to_le_bytes());
            batch.put(&writer, format!("entry{:04}", n % 5000), vec![n as u8; 100]);
            batch.put(&other, "count", n.to_le_bytes());
            writer.write(batch, WriteSync::No).unwrap();
            done.store(n, Ordering::Release);
        }
        over.store(true, Ordering::Release);
    });
}

#[test]
fn a_follower_refreshes_by_itself() {
    let (_, handles) = env(1);
    let writer = open(&handles);
    let follower = Follower::open_with(DIR, options(&handles)).unwrap();
    follower.refresh_every(Duration::from_millis(50));
    writer.put("a", "1").unwrap();
    assert_eq!(follower.db().get("a").unwrap(), None);
    handles.jobs.fire_timers();
    assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(follower.refresh_error().is_none());
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::READING, When::MatchingFrom(0)));
    handles.jobs.fire_timers();
    assert!(follower.refresh_error().is_some());
    handles.fs.clear_faults();
    follower.refresh_every(Duration::ZERO);
    writer.put("a", "2").unwrap();
    handles.jobs.fire_timers();
    assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Lets the writer go on after a follower has read the manifest and before it opens the log.
#[allow(clippy::disallowed_methods, reason = "another process is another thread here")]
fn between_manifest_and_log(handles: &Handles, act: impl FnOnce() + Send + 'static) {
    // The thread holds none of the follower's locks.
    handles.fs.before_open(".wal", 0, || std::thread::spawn(act).join().unwrap());
}

fn keys_of(db: &Db) -> Vec<String> {
    let keys = db.iter().keys().map(|key| String::from_utf8(key.unwrap().to_vec()).unwrap());
    keys.collect()
}

fn ingest(space: &Keyspace, key: &str) {
    let mut ingest = space.ingest().unwrap();
    ingest.put(key, "ingested").unwrap();
    ingest.finish().unwrap();
}

/// A write after a change of the manifest is neither shown nor copied without that change.
#[test]
fn nothing_is_shown_without_what_the_manifest_says_before_it() {
    for (case, is_new) in (0..4).flat_map(|case| [(case, true), (case, false)]) {
        let (_, handles) = env(1);
        let writer = open(&handles);
        let (space, mut all) = (writer.keyspace("space").unwrap(), vec!["a", "b", "d"]);
        writer.put("a", "1").unwrap();
        // In the log an ingestion looks like this range delete, which is none.
        writer.delete_range("x", "x").unwrap();
        writer.put("b", "2").unwrap();
        let follower = (!is_new).then(|| Follower::open_with(DIR, options(&handles)).unwrap());
        writer.put("b", "3").unwrap();
        let goes_on = writer.clone();
        between_manifest_and_log(&handles, move || {
            match case {
                0 => ingest(&space, "c"),
                1 => ingest(&goes_on, "c"),
                2 => goes_on.drop_keyspace("space").unwrap(),
                _ => _ = goes_on.keyspace("another").unwrap(),
            }
            goes_on.put("d", "4").unwrap();
        });
        let follower = follower.map_or_else(
            || Follower::open_with(DIR, options(&handles)).unwrap(),
            |follower| {
                follower.refresh().unwrap();
                follower
            },
        );
        let shown = follower.db();
        let (keys, spaces) = (keys_of(&shown), shown.keyspaces());
        if case == 1 {
            all.insert(2, "c");
        }
        match keys.contains(&"d".to_owned()) {
            false => assert_eq!(keys, ["a", "b"], "case {case}"),
            true => {
                assert_eq!(keys, all, "case {case}");
                let in_space = || shown.open_keyspace("space").unwrap().unwrap().get("c").unwrap();
                assert!(case != 0 || in_space().is_some());
                assert_eq!(spaces.contains(&"space".to_owned()), case != 2);
                assert_eq!(spaces.contains(&"another".to_owned()), case == 3);
            }
        }
        follower.checkpoint("/copy").unwrap();
        let copy = Db::open_with("/copy", options(&handles)).unwrap();
        assert_eq!((keys_of(&copy), copy.keyspaces()), (keys, spaces), "case {case}");
        // A refresh sees every write that was acknowledged before it begins.
        follower.refresh().unwrap();
        assert_eq!(keys_of(&follower.db()), all, "case {case}");
    }
}

/// A resume releases all logs at once.
#[test]
fn logs_stay_for_a_follower_when_writing_is_resumed() {
    let (_, handles) = env(1);
    let writer = open(&handles);
    writer.put("a", "1").unwrap();
    let follower = Follower::open_with(DIR, options(&handles)).unwrap();
    writer.put("b", "2").unwrap();
    let (goes_on, files) = (writer.clone(), handles.fs.clone());
    between_manifest_and_log(&handles, move || {
        let fault = Fault::new(FaultKind::NoSpace, Ops::WRITE, When::Matching(0)).on_path(".wal");
        files.inject(fault);
        assert_eq!(goes_on.put("c", "3").unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        goes_on.resume().unwrap();
        goes_on.put("d", "4").unwrap();
    });
    assert!(follower.refresh().unwrap());
    assert_eq!(keys_of(&follower.db())[..2], ["a", "b"]);
    follower.refresh().unwrap();
    assert_eq!(keys_of(&follower.db()), ["a", "b", "d"]);
    // No follower needs them now.
    handles.jobs.fire_timers();
    handles.jobs.run_until_idle();
    assert_eq!(writer.stats().files_waiting, 0);
}

/// A write that failed may still have reached the log: a follower shows it until writing is
/// resumed, and then shows the state of the database.
#[test]
fn what_failed_and_was_shown_is_gone_after_a_resume() {
    let mut shown = 0;
    for seed in 0..20 {
        let (_, handles) = env(seed);
        let writer = open(&handles);
        writer.put("a", "1").unwrap();
        let follower = Follower::open_with(DIR, options(&handles)).unwrap();
        let fault = Fault::new(FaultKind::Io, Ops::WRITE, When::Matching(0)).on_path(".wal");
        handles.fs.inject(fault);
        // A part of the record is all of it, since the reserved part of a log reads as zeros.
        let failed = writer.put("b", vec![0; 4000]).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown);
        follower.refresh().unwrap();
        let then = follower.db();
        shown += u32::from(keys_of(&then) == ["a", "b"]);
        let before = keys_of(&then);
        writer.resume().unwrap();
        follower.refresh().unwrap();
        assert_eq!(keys_of(&follower.db()), ["a"], "seed {seed}");
        assert_eq!(keys_of(&then), before, "seed {seed}: a moment has changed");
        // A refresh reports another write as well as the one that failed.
        writer.put("c", "3").unwrap();
        assert!(follower.refresh().unwrap(), "seed {seed}");
        assert_eq!(keys_of(&follower.db()), ["a", "c"], "seed {seed}");
        follower.checkpoint(format!("/copy{seed}")).unwrap();
    }
    assert!(shown > 0, "no write that failed was whole in the log");
}

/// An ingestion whose record in the manifest was not made durable did not happen, even if a
/// follower has read the record.
#[test]
fn an_ingestion_that_failed_and_was_shown_is_gone_after_a_resume() {
    let mut shown = 0;
    for (seed, ops) in (0..20).flat_map(|seed| [(seed, Ops::SYNC), (seed, Ops::WRITE)]) {
        let (_, handles) = env(seed);
        let writer = open(&handles);
        writer.put("a", "1").unwrap();
        let follower = Follower::open_with(DIR, options(&handles)).unwrap();
        let fault = Fault::new(FaultKind::Io, ops, When::Matching(seed % 3)).on_path("db/MANIFEST");
        let fault = handles.fs.inject(fault);
        let mut ingest = writer.ingest().unwrap();
        ingest.put("b", "ingested").unwrap();
        let failed = ingest.finish().is_err();
        follower.refresh().unwrap();
        shown += u32::from(failed && keys_of(&follower.db()) == ["a", "b"]);
        handles.fs.remove_fault(fault);
        writer.resume().unwrap();
        follower.refresh().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(keys_of(&follower.db()), keys_of(&writer), "seed {seed}");
        writer.put("c", "3").unwrap();
        assert!(follower.refresh().unwrap(), "seed {seed}");
        assert_eq!(keys_of(&follower.db()), keys_of(&writer), "seed {seed}");
    }
    assert!(shown > 0, "no ingestion that failed was shown");
}

/// A copy of the files, put back in place of later ones.
#[test]
fn an_older_copy_in_place_of_the_database_is_refused() {
    let (_, handles) = env(1);
    let (fs, dir) = (&handles.fs, Path::new(DIR));
    let writer = open(&handles);
    writer.put("a", "1").unwrap();
    writer.close().unwrap();
    drop(writer);
    let copied: Vec<(String, Vec<u8>)> = fs
        .files(dir)
        .into_iter()
        .map(|name| (name.clone(), fs.read_all(&dir.join(name)).unwrap()))
        .collect();
    let writer = open(&handles);
    let follower = Follower::open_with(DIR, options(&handles)).unwrap();
    for n in 0..10 {
        writer.put(format!("{n}"), "2").unwrap();
    }
    writer.flush().unwrap();
    follower.refresh().unwrap();
    assert_eq!(keys_of(&follower.db()).len(), 11);
    writer.close().unwrap();
    drop(writer);
    for name in fs.files(dir).into_iter().filter(|name| !name.starts_with("READER")) {
        fs.remove(&dir.join(name)).unwrap();
    }
    for (name, bytes) in copied {
        let mut file = fs.create(&dir.join(name), WriteOptions::default()).unwrap();
        file.append(&bytes).unwrap();
        file.finish().unwrap();
    }
    // Also once the copy was opened a few times, and its manifest is the later one.
    for opened in 0..6 {
        let error = follower.refresh().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "opened {opened} times: {error}");
        assert!(error.message().contains("it was replaced"), "{error}");
        open(&handles).close().unwrap();
    }
}

/// The log that was read has the length of a later manifest.
#[test]
fn a_copy_opens_though_the_writer_has_a_later_manifest() {
    for rolls in 0..6 {
        let (_, handles) = env(1);
        let mut settings = options(&handles);
        settings.settings.set("manifest_bytes", "1KiB").unwrap();
        let writer = Db::open_with(DIR, settings).unwrap();
        writer.put("a", "1").unwrap();
        writer.keyspace("kept").unwrap().put("k", "1").unwrap();
        writer.put("b", "2").unwrap();
        let (goes_on, files) = (writer.clone(), handles.fs.clone());
        between_manifest_and_log(&handles, move || {
            let manifests = |name: &String| name.starts_with("MANIFEST");
            let last = || files.files(Path::new(DIR)).into_iter().rfind(manifests).unwrap();
            let (mut rolled, mut n) = (0, 0);
            while rolled < rolls {
                let before = last();
                n += 1;
                goes_on.keyspace(&format!("keyspace{n}")).unwrap();
                goes_on.drop_keyspace(&format!("keyspace{n}")).unwrap();
                rolled += usize::from(last() != before);
            }
            goes_on.put("b", "3").unwrap();
            goes_on.sync().unwrap();
            goes_on.put("c", "4").unwrap();
        });
        let follower = Follower::open_with(DIR, options(&handles)).unwrap();
        let shown = keys_of(&follower.db());
        assert!(["a", "b"].iter().all(|key| shown.contains(&(*key).to_owned())), "{shown:?}");
        follower.checkpoint("/copy").unwrap();
        let copy = Db::open_with("/copy", options(&handles)).unwrap();
        assert_eq!(keys_of(&copy), shown);
        copy.put("d", "5").unwrap();
        copy.close().unwrap();
        let copy = Db::open_with("/copy", options(&handles)).unwrap();
        assert_eq!(copy.keyspace("kept").unwrap().get("k").unwrap().as_deref(), Some(&b"1"[..]));
        assert!(keys_of(&copy).contains(&"d".to_owned()));
    }
}
