//! The feed of changes: compared with a map of the writes, and applied to a second database.

use crate::simulated_database::{DIR, make, options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use windrow::changes::{Change, Changes, Operation};
use windrow::{Batch, Db, ErrorKind, Follower, Options, Result, SeqNo, WriteSync};
use windrow_env::testing::{
    Fault, FaultKind, FileDamage, Handles, NameDamage, Ops, PowerLoss, Rng, When, env,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Spaces = BTreeMap<String, Map>;

/// Options that keep this much for the feed.
fn keeping(handles: &Handles, changes_bytes: u64) -> Options {
    let mut options = options(handles);
    options.settings.changes_bytes = changes_bytes;
    options
}

pub(crate) fn open(handles: &Handles, changes_bytes: u64) -> Db {
    Db::open_with(DIR, keeping(handles, changes_bytes)).unwrap()
}

pub(crate) fn from(db: &Db, seq: SeqNo) -> Result<Changes> {
    db.changes(seq, Default::default())
}

/// The changes that are there now.
fn now(changes: &mut Changes) -> Vec<Change> {
    changes.collect::<Result<_>>().unwrap()
}

/// The keys that a feed from `seq` on puts, in order.
fn keys(db: &Db, seq: SeqNo) -> Vec<String> {
    let changes = now(&mut from(db, seq).unwrap());
    let operations = changes.into_iter().flat_map(|change| change.operations);
    let key = |operation| match operation {
        Operation::Put { key, .. } => Some(String::from_utf8(key).unwrap()),
        _ => None,
    };
    operations.filter_map(key).collect()
}

fn kept_files(handles: &Handles) -> usize {
    handles.fs.files(DIR.as_ref()).iter().filter(|name| name.ends_with(".changes")).count()
}

/// Flushes, and goes on in another log.
fn flush(db: &Db, handles: &Handles) {
    // The next log is made ahead.
    handles.jobs.run_until_idle();
    db.flush().unwrap();
    handles.jobs.run_until_idle();
}

fn fill(db: &Db, keys: std::ops::Range<u32>) {
    for key in keys {
        db.put(format!("{key:06}"), vec![key as u8; 400]).unwrap();
    }
}

/// Reopens after a loss of power, which keeps nothing that was not synced, or after a kill.
fn reopened(db: Db, handles: &Handles, power_loss: bool, changes_bytes: u64) -> (Db, Handles) {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    match power_loss {
        true => handles.fs.crash_with(PowerLoss {
            seed: 1,
            files: Some(FileDamage::DropAll),
            names: Some(NameDamage::DropAll),
        }),
        false => handles.fs.kill(1),
    }
    let handles = handles.reborn(2);
    (open(&handles, changes_bytes), handles)
}

// ---- the model

/// The process in which the feed is read.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Writer,
    Follower,
}

/// A writer, a map of its writes at every sequence number, and a mirror that the feed is applied to.
struct World {
    handles: Handles,
    rng: Rng,
    writer: Db,
    spaces: Spaces,
    history: BTreeMap<SeqNo, Spaces>,
    made: u32,
    reader: Reader,
    changes: Option<Changes>,
    mirror: Db,
    next_seq: SeqNo,
    applied: u64,
}

impl World {
    fn new(seed: u64, reader: Reader) -> World {
        let (_, handles) = env(seed);
        let writer = open(&handles, 1 << 30);
        let mirror = Db::open_with("/mirror", options(&handles)).unwrap();
        World {
            handles,
            rng: Rng::new(seed),
            writer,
            spaces: [("default".to_owned(), Map::new())].into(),
            history: BTreeMap::new(),
            made: 0,
            reader,
            changes: None,
            mirror,
            next_seq: 1,
            applied: 0,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:03}", self.rng.below(200)).into_bytes()
    }

    fn batch(&mut self) {
        let names: Vec<String> = self.spaces.keys().cloned().collect();
        let mut batch = Batch::new();
        for _ in 0..=self.rng.below(12) {
            let name = &names[self.rng.below(names.len() as u64) as usize];
            let space = self.writer.keyspace(name).unwrap();
            let key = self.key();
            let to = self.key();
            let map = self.spaces.get_mut(name).unwrap();
            match self.rng.below(10) {
                0 => {
                    batch.delete_range(&space, &key, &to);
                    map.retain(|k, _| !(key <= *k && *k < to));
                }
                1 | 2 => {
                    batch.delete(&space, &key);
                    map.remove(&key);
                }
                3 | 4 if name.starts_with("sums") => {
                    batch.merge(&space, &key, 3u64.to_le_bytes());
                    let sum = map.get(&key);
                    let sum = sum.map_or(0, |sum| u64::from_le_bytes(sum[..].try_into().unwrap()));
                    map.insert(key, (sum + 3).to_le_bytes().to_vec());
                }
                _ if name.starts_with("sums") => {
                    batch.put(&space, &key, 1u64.to_le_bytes());
                    map.insert(key, 1u64.to_le_bytes().to_vec());
                }
                _ => {
                    let value = vec![self.rng.below(256) as u8; 1 + self.rng.below(900) as usize];
                    batch.put(&space, &key, &value);
                    map.insert(key, value);
                }
            }
        }
        let sync = if self.rng.chance(0.1) { WriteSync::Yes } else { WriteSync::No };
        self.writer.write(batch, sync).unwrap();
    }

    fn transaction(&mut self) {
        let key = self.key();
        let value = self
            .writer
            .transact(|tx| {
                let value = tx.get(&self.writer, &key)?.map_or(1, |value| value.len() % 50 + 1);
                tx.put(&self.writer, &key, vec![7; value])?;
                tx.put(&self.writer, "transacted", &key)?;
                Ok::<_, windrow::Error>(vec![7; value])
            })
            .unwrap();
        let map = self.spaces.get_mut("default").unwrap();
        map.insert(b"transacted".to_vec(), key.clone());
        map.insert(key, value);
    }

    fn make_or_drop(&mut self) {
        if self.rng.chance(0.5) && self.spaces.len() < 5 {
            // A name may come again.
            self.made = (self.made + 1) % 4;
            let sums = self.made.is_multiple_of(2);
            let name = format!("{}{}", if sums { "sums" } else { "plain" }, self.made);
            make(&self.writer, &name);
            self.spaces.entry(name).or_default();
        } else if let Some(name) = self.spaces.keys().find(|name| *name != "default").cloned() {
            self.writer.drop_keyspace(&name).unwrap();
            self.spaces.remove(&name);
        }
    }

    fn step(&mut self) {
        match self.rng.below(60) {
            0 => self.writer.flush().unwrap(),
            1 => self.writer.compact().unwrap(),
            2 | 3 => self.make_or_drop(),
            4 if self.rng.chance(0.3) => self.reopen(),
            5..=15 => _ = self.handles.jobs.run_until_idle(),
            16..=20 => self.transaction(),
            _ => self.batch(),
        }
        self.history.insert(self.writer.snapshot().seq(), self.spaces.clone());
    }

    /// Closes the writer, or kills it, and opens the database again.
    fn reopen(&mut self) {
        self.changes = None;
        if self.rng.chance(0.5) {
            self.writer.close().unwrap();
            self.writer = open(&self.handles, 1 << 30);
            return;
        }
        self.mirror.close().unwrap();
        self.handles.fs.halt();
        // Another one in its place, since its last handle must go before the kill.
        self.writer = Db::open_with("/none", options(&env(1).1)).unwrap();
        self.handles.jobs.discard();
        self.handles.fs.kill(self.applied);
        self.handles = self.handles.reborn(self.applied);
        self.writer = open(&self.handles, 1 << 30);
        self.mirror = Db::open_with("/mirror", options(&self.handles)).unwrap();
    }

    fn feed(&mut self) -> Changes {
        match self.reader {
            Reader::Writer => from(&self.writer, self.next_seq).unwrap(),
            Reader::Follower => {
                let follower = Follower::open_with(DIR, options(&self.handles)).unwrap();
                follower.changes(self.next_seq, Default::default()).unwrap()
            }
        }
    }

    /// Applies what is there to the mirror, and compares it after each batch.
    fn apply(&mut self, what: &str) {
        let mut changes = self.changes.take().unwrap_or_else(|| self.feed());
        let found = now(&mut changes);
        self.next_seq = changes.next_seq();
        self.changes = Some(changes);
        let mut last = found.iter().map(|change| change.seq).skip(1).chain([0]);
        for change in &found {
            for operation in &change.operations {
                if !matches!(operation, Operation::KeyspaceDropped { .. }) {
                    make(&self.mirror, operation.keyspace());
                }
            }
            change.apply(&self.mirror).unwrap();
            self.applied += 1;
            if last.next() != Some(change.seq) {
                let expected = &self.history[&change.seq];
                compare(&self.mirror, expected, &format!("{what}, change {}", change.seq));
            }
        }
        assert_eq!(self.next_seq, self.writer.snapshot().seq() + 1, "{what}");
    }
}

/// Compares all keyspaces that have entries.
fn compare(db: &Db, spaces: &Spaces, what: &str) {
    let mut found = Spaces::new();
    for name in db.keyspaces() {
        let space = db.open_keyspace(&name).unwrap().unwrap();
        let entries = space.iter().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
        let map: Map = entries.collect::<Result<_>>().unwrap();
        if !map.is_empty() {
            found.insert(name, map);
        }
    }
    let mut expected = spaces.clone();
    expected.retain(|_, map| !map.is_empty());
    for (name, map) in &expected {
        let there = found.get(name);
        let differs = |key: &&Vec<u8>| there.and_then(|there| there.get(*key)) != map.get(*key);
        let keys = map.keys().chain(there.into_iter().flatten().map(|(key, _)| key));
        let key = keys.clone().find(differs).map(|key| key.escape_ascii().to_string());
        assert_eq!(key, None, "{what}: the mirror's `{name}` differs");
    }
    assert!(found.keys().eq(expected.keys()), "{what}: {:?}", found.keys());
}

fn check_model(reader: Reader) {
    for seed in 0..6 {
        let mut world = World::new(seed, reader);
        for step in 0..400 {
            world.step();
            if world.rng.chance(0.15) {
                world.apply(&format!("seed {seed}, step {step}"));
            }
        }
        world.apply(&format!("seed {seed}, at the end"));
        assert!(world.applied > 200, "seed {seed}: {} changes", world.applied);
        // All of it is there from the start, by files that were kept.
        assert!(kept_files(&world.handles) > 0, "seed {seed}");
        let all = now(&mut from(&world.writer, 1).unwrap());
        let mut next_seq = 1;
        for change in &all {
            assert!(next_seq <= change.seq + 1, "seed {seed}: {} after {next_seq}", change.seq);
            next_seq = change.seq + 1;
        }
        assert_eq!(next_seq, world.writer.snapshot().seq() + 1, "seed {seed}");
        world.writer.verify().and_then(|report| report.into_result()).unwrap();
    }
}

#[test]
fn a_mirror_of_the_feed_is_equal_after_each_batch() {
    check_model(Reader::Writer);
}

#[test]
fn a_mirror_of_a_followers_feed_is_equal_after_each_batch() {
    check_model(Reader::Follower);
}

// ---- what is kept

#[test]
fn nothing_is_kept_unless_it_is_asked_for() {
    let (_, handles) = env(1);
    let db = open(&handles, 0);
    fill(&db, 0..100);
    let mut early = from(&db, 1).unwrap();
    assert_eq!(now(&mut early).len(), 100, "the log in use has them");
    flush(&db, &handles);
    fill(&db, 100..200);
    flush(&db, &handles);
    assert_eq!(kept_files(&handles), 0);
    let stats = db.stats();
    assert_eq!((stats.changes_bytes, stats.changes_begin), (0, 201));
    for error in [from(&db, 200).unwrap_err(), early.try_next().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("nothing before sequence number 201"), "{error}");
        assert!(error.message().contains("go on with S + 1"), "{error}");
    }
    assert!(keys(&db, 201).is_empty());
    let error = from(&db, 202).unwrap_err();
    assert!(error.message().contains("goes on with 201"), "{error}");
}

#[test]
fn the_oldest_logs_go_beyond_the_bytes_that_are_kept() {
    let (_, handles) = env(1);
    let db = open(&handles, 256 << 10);
    for round in 0..20 {
        fill(&db, round * 100..round * 100 + 100);
        flush(&db, &handles);
        let stats = db.stats();
        assert!(stats.changes_bytes <= 256 << 10, "{} bytes are kept", stats.changes_bytes);
        assert!(stats.changes_bytes > 100 << 10 || round < 3);
        let begin = stats.changes_begin;
        let found = keys(&db, begin);
        assert_eq!(found.len() as u64, u64::from(round) * 100 + 101 - begin);
        assert_eq!(found[0], format!("{:06}", begin - 1));
        assert!(begin == 1 || from(&db, begin - 1).is_err());
    }
    assert!(db.stats().changes_begin > 1);
    let before = kept_files(&handles);
    assert!((2..8).contains(&before), "{before} files");
    db.close().unwrap();
    // Less is kept from now on, and then nothing.
    let db = open(&handles, 100 << 10);
    handles.jobs.run_until_idle();
    assert!(kept_files(&handles) < before);
    assert!(!keys(&db, db.stats().changes_begin).is_empty());
    db.close().unwrap();
    let db = open(&handles, 0);
    handles.jobs.run_until_idle();
    assert_eq!((kept_files(&handles), db.stats().changes_begin), (0, 2001));
}

#[test]
fn a_log_that_is_old_goes_though_nothing_is_written() {
    let (_, handles) = env(1);
    let mut options = keeping(&handles, 1 << 30);
    options.settings.changes_seconds = 60;
    let db = Db::open_with(DIR, options).unwrap();
    fill(&db, 0..100);
    flush(&db, &handles);
    handles.clock.advance_ms(40_000);
    fill(&db, 100..200);
    flush(&db, &handles);
    handles.jobs.fire_timers();
    assert_eq!(db.stats().changes_begin, 1);
    handles.clock.advance_ms(21_000);
    handles.jobs.fire_timers();
    handles.jobs.run_until_idle();
    let begin = db.stats().changes_begin;
    assert!(1 < begin && begin <= 101, "the feed begins with {begin}");
    assert_eq!(keys(&db, 101).len(), 100);
    handles.clock.advance_ms(60_000);
    handles.jobs.fire_timers();
    handles.jobs.run_until_idle();
    assert_eq!((kept_files(&handles), db.stats().changes_begin), (0, 201));
}

#[test]
fn the_feed_goes_on_over_closes_kills_and_losses_of_power() {
    for power_loss in [false, true] {
        let (_, handles) = env(3);
        let (mut db, mut handles) = (open(&handles, 1 << 30), handles);
        for round in 0..6 {
            fill(&db, round * 300..round * 300 + 250);
            if round % 2 == 0 {
                flush(&db, &handles);
            }
            fill(&db, round * 300 + 250..round * 300 + 300);
            db.sync().unwrap();
            if round == 3 {
                db.close().unwrap();
                db = open(&handles, 1 << 30);
            } else {
                (db, handles) = reopened(db, &handles, power_loss, 1 << 30);
            }
            let expected = (round + 1) * 300;
            assert_eq!(db.snapshot().seq(), u64::from(expected));
            let found = keys(&db, 1);
            assert!(found.iter().cloned().eq((0..expected).map(|key| format!("{key:06}"))));
            db.verify().and_then(|report| report.into_result()).unwrap();
        }
    }
}

/// The unsynced part of a log that was flushed is in tables; a loss of power must not take it out of
/// the feed alone.
#[test]
fn a_log_is_durable_before_it_is_kept() {
    let (_, handles) = env(4);
    let db = open(&handles, 1 << 30);
    fill(&db, 0..100);
    flush(&db, &handles);
    assert_eq!(kept_files(&handles), 1);
    let (db, _handles) = reopened(db, &handles, true, 1 << 30);
    assert_eq!(db.snapshot().seq(), 100);
    assert_eq!(keys(&db, 1).len(), 100);
}

/// A crash comes between the record that keeps a log and its new name.
#[test]
fn a_kept_log_under_its_old_name_is_found() {
    let (_, handles) = env(5);
    let db = open(&handles, 1 << 30);
    fill(&db, 0..100);
    flush(&db, &handles);
    let files = handles.fs.files(DIR.as_ref());
    let kept = files.iter().find(|name| name.ends_with(".changes")).unwrap();
    let (kept, dir) = (Path::new(kept), Path::new(DIR));
    let fs = handles.env().fs;
    fs.rename(&dir.join(kept), &dir.join(kept.with_extension("wal"))).unwrap();
    assert_eq!(keys(&db, 1).len(), 100, "it is read by its old name");
    let (db, handles) = reopened(db, &handles, false, 1 << 30);
    assert_eq!(kept_files(&handles), 1);
    assert_eq!(keys(&db, 1).len(), 100);
}

/// Closes a database of 300 entries that keeps three logs; returns their paths, oldest first.
fn three_kept_logs(handles: &Handles) -> [PathBuf; 3] {
    let db = open(handles, 1 << 30);
    for round in 0..3 {
        fill(&db, round * 100..round * 100 + 100);
        flush(&db, handles);
    }
    db.close().unwrap();
    let mut kept = handles.fs.files(DIR.as_ref());
    kept.retain(|name| name.ends_with(".changes"));
    kept.sort();
    let paths: Vec<PathBuf> = kept.iter().map(|name| Path::new(DIR).join(name)).collect();
    paths.try_into().expect("three logs")
}

#[test]
fn a_kept_log_that_is_missing_or_damaged_is_no_harm_to_the_database() {
    let (_, handles) = env(6);
    let kept = three_kept_logs(&handles);
    handles.fs.remove_file(&kept[0]);
    handles.fs.flip(&kept[1], 5000, 0x10);
    let db = open(&handles, 1 << 30);
    let begin = db.stats().changes_begin;
    assert_eq!(begin, 101);
    let mut changes = from(&db, begin).unwrap();
    let error = changes.by_ref().find_map(Result::err).unwrap();
    assert!(error.is_corruption() && error.to_string().contains(".changes"), "{error}");
    assert_eq!(db.iter().count(), 300);
}

/// An open removes one on a full device; if it is killed then, the manifest still names it.
#[test]
fn an_open_that_verifies_passes_over_a_kept_log_that_is_missing() {
    let (_, handles) = env(6);
    handles.fs.remove_file(&three_kept_logs(&handles)[0]);
    let mut verifying = keeping(&handles, 1 << 30);
    verifying.settings.verify_on_open = true;
    let db = Db::open_with(DIR, verifying).unwrap();
    assert_eq!((db.stats().changes_begin, db.iter().count()), (101, 300));
    db.verify().unwrap().into_result().unwrap();
}

// ---- what is in the feed

#[test]
fn an_ingestion_has_its_place() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    db.put("a", "1").unwrap();
    let mut ingest = db.keyspace("bulk").unwrap().ingest().unwrap();
    ingest.put("b", "2").unwrap();
    ingest.finish().unwrap();
    db.put("c", "3").unwrap();
    let changes = now(&mut from(&db, 1).unwrap());
    assert_eq!(changes.iter().map(|change| change.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(changes[1].operations, [Operation::Ingested { keyspace: "bulk".into() }]);
    let mirror = Db::open_with("/mirror", options(&handles)).unwrap();
    assert_eq!(changes[1].apply(&mirror).unwrap_err().kind(), ErrorKind::NotSupported);
}

#[test]
fn a_dropped_keyspace_keeps_its_name_and_its_drop_comes_in_order() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let mut live = from(&db, 1).unwrap();
    db.keyspace("users").unwrap().put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(now(&mut live).len(), 2);
    db.drop_keyspace("users").unwrap();
    let users: Arc<str> = "users".into();
    let dropped = [Operation::KeyspaceDropped { keyspace: users.clone() }];
    let drop = live.try_next().unwrap().unwrap();
    assert_eq!((drop.seq, &drop.operations[..]), (2, &dropped[..]));
    assert!(now(&mut live).is_empty());
    // One of the same name is another one.
    db.keyspace("users").unwrap().put("c", "3").unwrap();
    assert_eq!(live.try_next().unwrap().unwrap().seq, 3);
    let check = |db: &Db| {
        let all = now(&mut from(db, 1).unwrap());
        assert_eq!(all.iter().map(|change| change.seq).collect::<Vec<_>>(), [1, 2, 2, 3]);
        assert_eq!(all[0].operations[0].keyspace(), "users");
        assert_eq!(all[2].operations, dropped);
        // A consumer that has read up to 2 may have missed the drop; one that has read 3 has not.
        assert_eq!(now(&mut from(db, 3).unwrap())[0].operations, dropped);
        assert!(now(&mut from(db, 4).unwrap()).is_empty());
    };
    check(&db);
    flush(&db, &handles);
    check(&db);
    let (db, handles) = reopened(db, &handles, false, 1 << 30);
    check(&db);
    db.close().unwrap();
    check(&open(&handles, 1 << 30));
}

#[test]
fn a_batch_is_whole_wherever_a_feed_begins() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    for batches in 0..3 {
        let mut batch = Batch::new();
        for key in 0..4 {
            batch.put(&db, format!("{batches}{key}"), "");
        }
        db.write(batch, WriteSync::No).unwrap();
    }
    for seq in 5..=8 {
        let changes = now(&mut from(&db, seq).unwrap());
        assert_eq!(changes.iter().map(|change| change.seq).collect::<Vec<_>>(), [8, 12]);
        assert_eq!(changes[0].operations.len(), 4);
    }
}

#[test]
fn a_write_that_failed_is_not_in_the_feed() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let mut changes = from(&db, 1).unwrap();
    fill(&db, 0..3);
    assert_eq!(now(&mut changes).len(), 3);
    let fault = Fault::new(FaultKind::Io, Ops::WRITE, When::MatchingFrom(0)).on_path(".wal");
    handles.fs.inject(fault);
    db.put("failed", "").unwrap_err();
    assert!(now(&mut changes).is_empty());
    handles.fs.clear_faults();
    db.resume().unwrap();
    db.put("later", "").unwrap();
    assert_eq!(changes.try_next().unwrap().unwrap().seq, 4);
    assert_eq!(keys(&db, 1), ["000000", "000001", "000002", "later"]);
    let (db, _handles) = reopened(db, &handles, false, 1 << 30);
    assert_eq!(keys(&db, 1), ["000000", "000001", "000002", "later"]);
}

#[test]
fn durable_changes_come_with_the_sync() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let mut options = windrow::changes::ChangeOptions::default();
    options.durable_only = true;
    let mut changes = db.changes(1, options.clone()).unwrap();
    db.put("a", "1").unwrap();
    assert_eq!(changes.try_next().unwrap(), None);
    db.put_with("b", "2", WriteSync::Yes).unwrap();
    assert_eq!(now(&mut changes).len(), 2);
    fill(&db, 0..100);
    assert!(now(&mut changes).is_empty());
    flush(&db, &handles);
    assert_eq!(now(&mut changes).len(), 100, "a log is durable before it is kept");
    fill(&db, 100..110);
    assert!(now(&mut changes).is_empty());
    db.sync().unwrap();
    assert_eq!(now(&mut changes).len(), 10);
    let follower = Follower::open_with(DIR, crate::simulated_database::options(&handles)).unwrap();
    let error = follower.changes(1, options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn copies_begin_a_feed_of_their_own() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    fill(&db, 0..100);
    flush(&db, &handles);
    db.checkpoint("/copy").unwrap();
    fill(&db, 100..110);
    let copy = Db::open_with("/copy", keeping(&handles, 1 << 30)).unwrap();
    let seq = copy.snapshot().seq();
    assert_eq!((seq, copy.stats().changes_begin), (100, 101));
    for change in now(&mut from(&db, seq + 1).unwrap()) {
        change.apply(&copy).unwrap();
    }
    assert_eq!(copy.iter().count(), 110);
    assert_eq!(copy.snapshot().seq(), 110);
    copy.close().unwrap();
    db.close().unwrap();
    windrow::repair(DIR, keeping(&handles, 1 << 30)).unwrap();
    let db = open(&handles, 1 << 30);
    assert!(from(&db, 1).is_err(), "a repair begins from scratch");
    assert_eq!(db.iter().count(), 110);
    assert_eq!(kept_files(&handles), 0);
}

// ---- waiting

/// The longest prefix of 255s alone is the end of its own range.
#[test]
fn no_delete_of_a_prefix_is_taken_for_an_ingestion() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let longest = vec![0xff; windrow::KEY_BYTES_MAX];
    db.put(&longest, "1").unwrap();
    let mut batch = Batch::new();
    batch.delete_prefix(&db, &longest);
    db.write(batch, WriteSync::No).unwrap();
    assert!(db.is_empty().unwrap());
    let last = now(&mut from(&db, 2).unwrap()).pop().unwrap();
    assert!(matches!(&last.operations[..], [Operation::Delete { key, .. }] if *key == longest));
}

#[test]
fn consumers_keep_up_with_writers_of_several_threads() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 64 << 10;
    options.settings.changes_bytes = 1 << 30;
    let db = Db::open_with(dir.path(), options).unwrap();
    let (writers, batches, per_batch) = (4u64, 500u64, 3u64);
    let all = writers * batches * per_batch;
    let consume = |mut changes: Changes| {
        let (mut next_seq, mut last) = (1, BTreeMap::<Vec<u8>, u64>::new());
        while next_seq <= all {
            let change = changes.next_within(Duration::from_secs(60)).unwrap().unwrap();
            assert_eq!((change.operations.len() as u64, change.seq), (per_batch, next_seq + 2));
            next_seq = change.seq + 1;
            for operation in change.operations {
                let Operation::Put { key, value, .. } = operation else { panic!("no put") };
                let count = u64::from_le_bytes(value[..8].try_into().unwrap());
                let before = last.insert(key, count);
                assert_eq!(before.map_or(0, |before| before + 1), count, "one writer's order");
            }
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let db = &db;
            scope.spawn(move || {
                for count in 0..batches {
                    let mut batch = Batch::new();
                    for key in 0..per_batch {
                        let mut value = count.to_le_bytes().to_vec();
                        value.resize(100, 0);
                        batch.put(db, format!("{writer} {key}"), value);
                    }
                    db.write(batch, WriteSync::No).unwrap();
                }
            });
        }
        scope.spawn(|| consume(from(&db, 1).unwrap()));
        scope.spawn(|| consume(from(&db, 1).unwrap()));
        scope.spawn(|| {
            let follower = Follower::open(dir.path()).unwrap();
            consume(follower.changes(1, Default::default()).unwrap());
        });
    });
    let mut changes = from(&db, 1).unwrap();
    assert_eq!(changes.by_ref().count() as u64, writers * batches);
    assert_eq!(changes.next_within(Duration::from_millis(20)).unwrap(), None);
    db.close().unwrap();
    let is_kept = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().ends_with(".changes")
    };
    #[expect(clippy::disallowed_methods, reason = "which files there are")]
    let mut files = std::fs::read_dir(dir.path()).unwrap();
    assert!(files.any(is_kept));
    Db::destroy(dir.path()).unwrap();
    assert!(!dir.path().exists(), "a destroy leaves something");
}

#[test]
fn a_follower_that_is_too_late_is_told() {
    let (_, handles) = env(1);
    let db = open(&handles, 64 << 10);
    fill(&db, 0..10);
    let follower = Follower::open_with(DIR, options(&handles)).unwrap();
    let mut changes = follower.changes(1, Default::default()).unwrap();
    assert_eq!(now(&mut changes).len(), 10);
    for round in 0..8 {
        fill(&db, 1000 * round..1000 * round + 100);
        flush(&db, &handles);
    }
    let error = loop {
        match changes.try_next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was told nothing"),
            Err(error) => break error,
        }
    };
    assert!(error.message().contains("go on with S + 1"), "{error}");
    let begin = db.stats().changes_begin;
    let mut changes = follower.changes(begin, Default::default()).unwrap();
    assert_eq!(now(&mut changes).len() as u64, 811 - begin);
}
