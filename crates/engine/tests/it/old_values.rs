//! The feed of changes with the values before: compared with a map of the writes.

use crate::changes::open;
use crate::simulated_database::{DIR, make, options};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use windrow::changes::{ChangeOptions, Changes, OldValue, Operation};
use windrow::{Batch, Db, ErrorKind, Follower, InKeyspace, SeqNo, Snapshot, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, Rng, When, env};

/// A value, and when it expires.
type Entry = (Vec<u8>, Option<u64>);
type Map = BTreeMap<Vec<u8>, Entry>;

fn behind(snapshot: &Snapshot) -> ChangeOptions {
    let mut options = ChangeOptions::default();
    options.old_values = Some(snapshot.clone());
    options
}

/// The changes from now on.
fn from_now(db: &Db) -> Changes {
    let snapshot = db.snapshot();
    db.changes(snapshot.seq() + 1, behind(&snapshot)).unwrap()
}

fn old_of(operation: &Operation) -> Option<(&[u8], &OldValue)> {
    match operation {
        Operation::Put { key, old, .. }
        | Operation::Delete { key, old, .. }
        | Operation::SingleDelete { key, old, .. }
        | Operation::Merge { key, old, .. } => Some((key, old)),
        _ => None,
    }
}

/// The old values of the changes that are there now.
fn olds(changes: &mut Changes) -> Vec<OldValue> {
    let operations = changes.flat_map(|change| change.unwrap().operations);
    operations.filter_map(|operation| old_of(&operation).map(|(_, old)| old.clone())).collect()
}

fn value(value: &str) -> OldValue {
    OldValue::Value(value.into())
}

// ---- the model

#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Writer,
    Follower,
}

/// An operation on a key, as it was written.
struct Expected {
    keyspace: u32,
    key: Vec<u8>,
    before: Option<Entry>,
    now_ms: u64,
}

struct World {
    handles: Handles,
    rng: Rng,
    writer: Db,
    follower: Option<Follower>,
    changes: Changes,
    spaces: BTreeMap<String, Map>,
    made: u32,
    expected: BTreeMap<SeqNo, Vec<Expected>>,
    dropped: BTreeSet<u32>,
    /// Keyspaces with an ingestion that the follower has not seen.
    ingested: BTreeSet<u32>,
    values: u64,
    unknown: u64,
}

impl World {
    fn new(seed: u64, reader: Reader) -> World {
        let (_, handles) = env(seed);
        let writer = open(&handles, 1 << 30);
        let follower = (reader == Reader::Follower)
            .then(|| Follower::open_with(DIR, options(&handles)).unwrap());
        World {
            changes: begin(&writer, follower.as_ref()),
            handles,
            rng: Rng::new(seed),
            writer,
            follower,
            spaces: [("default".to_owned(), Map::new())].into(),
            made: 0,
            expected: BTreeMap::new(),
            dropped: BTreeSet::new(),
            ingested: BTreeSet::new(),
            values: 0,
            unknown: 0,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:03}", self.rng.below(150)).into_bytes()
    }

    fn batch(&mut self) {
        let names: Vec<String> = self.spaces.keys().cloned().collect();
        let (mut batch, mut all) = (Batch::new(), Vec::new());
        let now_ms = self.writer.now_ms();
        for _ in 0..=self.rng.below(12) {
            let name = &names[self.rng.below(names.len() as u64) as usize];
            let space = self.writer.keyspace(name).unwrap();
            let (key, to) = (self.key(), self.key());
            let map = self.spaces.get_mut(name).unwrap();
            let before = map.get(&key).cloned();
            let kind = self.rng.below(10);
            if kind == 0 {
                batch.delete_range(&space, &key, &to);
                map.retain(|k, _| !(key <= *k && *k < to));
                continue;
            }
            let keyspace = space.id().0;
            all.push(Expected { keyspace, key: key.clone(), before: before.clone(), now_ms });
            match kind {
                1 | 2 => {
                    batch.delete(&space, &key);
                    map.remove(&key);
                }
                3..=5 if name.starts_with("sums") => {
                    batch.merge(&space, &key, 3u64.to_le_bytes());
                    let sum = before
                        .map_or(0, |(sum, _)| u64::from_le_bytes(sum[..].try_into().unwrap()));
                    map.insert(key, ((sum + 3).to_le_bytes().to_vec(), None));
                }
                _ if name.starts_with("sums") => {
                    batch.put(&space, &key, 1u64.to_le_bytes());
                    map.insert(key, (1u64.to_le_bytes().to_vec(), None));
                }
                3 => {
                    let at_ms = now_ms + 1 + self.rng.below(4000);
                    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
                    batch.put_until(&space, &key, "passing", at);
                    map.insert(key, (b"passing".to_vec(), Some(at_ms)));
                }
                _ => {
                    let value = vec![self.rng.below(256) as u8; 1 + self.rng.below(900) as usize];
                    batch.put(&space, &key, &value);
                    map.insert(key, (value, None));
                }
            }
        }
        let seq = self.writer.write(batch, WriteSync::No).unwrap();
        self.expected.insert(seq, all);
    }

    fn ingest(&mut self) {
        let keys: BTreeSet<_> = (0..self.rng.below(20)).map(|_| self.key()).collect();
        let map = self.spaces.get_mut("default").unwrap();
        let mut ingest = self.writer.ingest().unwrap();
        for key in keys {
            let value = vec![self.rng.below(256) as u8; 20];
            ingest.put(&key, &value).unwrap();
            map.insert(key, (value, None));
        }
        ingest.finish().unwrap();
        self.ingested.insert(self.writer.id().0);
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
            self.dropped.insert(self.writer.keyspace(&name).unwrap().id().0);
            self.writer.drop_keyspace(&name).unwrap();
            self.spaces.remove(&name);
        }
    }

    fn step(&mut self) {
        match self.rng.below(60) {
            0 => self.writer.flush().unwrap(),
            1 => self.writer.compact().unwrap(),
            2 | 3 => self.make_or_drop(),
            4 => self.ingest(),
            5 | 6 => self.handles.clock.advance_ms(self.rng.below(2000)),
            7..=15 => _ = self.handles.jobs.run_until_idle(),
            _ => self.batch(),
        }
    }

    /// Compares the old values that are there.
    fn check(&mut self, what: &str) {
        for change in &mut self.changes {
            let change = change.unwrap();
            let keyed = change.operations.iter().filter_map(old_of);
            let Some(expected) = self.expected.get(&change.seq) else { continue };
            if matches!(change.operations[..], [Operation::KeyspaceDropped { .. }]) {
                continue;
            }
            let what = format!("{what}, change {}", change.seq);
            assert_eq!(keyed.clone().count(), expected.len(), "{what}");
            for ((key, old), expected) in keyed.zip(expected) {
                let Expected { keyspace, before, now_ms, .. } = expected;
                assert_eq!(key, expected.key, "{what}");
                let key = key.escape_ascii();
                match (old, before) {
                    (OldValue::Unknown, _) => {
                        let is_told = self.dropped.contains(keyspace)
                            || self.follower.is_some() && self.ingested.contains(keyspace);
                        assert!(is_told, "{what}: the value of {key} is not known");
                        self.unknown += 1;
                    }
                    (OldValue::Value(old), Some((before, _))) => {
                        assert!(old == before, "{what}: {old:?} of {key} was {before:?}");
                        self.values += 1;
                    }
                    (OldValue::Absent, None) => self.values += 1,
                    (OldValue::Absent, Some((_, Some(at_ms)))) if at_ms <= now_ms => {}
                    (old, before) => panic!("{what}: {old:?} of {key} was {before:?}"),
                }
            }
        }
        assert_eq!(self.changes.next_seq(), self.writer.snapshot().seq() + 1, "{what}");
        self.ingested.clear();
    }

    /// A feed does not outlive the process: the next one begins with a snapshot.
    fn reopen(&mut self) {
        self.changes = begin(&self.writer, None);
        self.writer.close().unwrap();
        self.writer = open(&self.handles, 1 << 30);
        if let Some(follower) = &self.follower {
            follower.refresh().unwrap();
        }
        self.changes = begin(&self.writer, self.follower.as_ref());
    }
}

fn begin(writer: &Db, follower: Option<&Follower>) -> Changes {
    let Some(follower) = follower else { return from_now(writer) };
    let snapshot = follower.db().snapshot();
    follower.changes(snapshot.seq() + 1, behind(&snapshot)).unwrap()
}

fn check_model(reader: Reader) {
    let (mut values, mut unknown) = (0, 0);
    for seed in 0..8 {
        let mut world = World::new(seed, reader);
        for step in 0..400 {
            world.step();
            if world.rng.chance(0.08) {
                world.check(&format!("seed {seed}, step {step}"));
            }
            if step % 150 == 149 {
                world.check(&format!("seed {seed}, before a close"));
                world.reopen();
            }
        }
        world.check(&format!("seed {seed}, at the end"));
        (values, unknown) = (values + world.values, unknown + world.unknown);
    }
    assert!(values > 5000 && unknown * 10 < values, "{values} values, and {unknown} unknown");
}

#[test]
fn old_values_are_those_of_the_moment_before() {
    check_model(Reader::Writer);
}

#[test]
fn old_values_of_a_followers_feed_are_those_of_the_moment_before() {
    check_model(Reader::Follower);
}

// ---- one thing at a time

#[test]
fn operations_before_it_in_the_batch_count() {
    let (_, handles) = env(1);
    let db = open(&handles, 0);
    make(&db, "sums");
    let sums = db.keyspace("sums").unwrap();
    db.put("a", "1").unwrap();
    let mut changes = from_now(&db);
    let mut batch = Batch::new();
    batch.put(&db, "a", "2");
    batch.delete(&db, "a");
    batch.put(&db, "a", "3");
    batch.delete_range(&db, "a", "b");
    batch.single_delete(&db, "a");
    batch.merge(&sums, "n", 2u64.to_le_bytes());
    batch.merge(&sums, "n", 3u64.to_le_bytes());
    batch.delete(&sums, "n");
    db.write(batch, WriteSync::No).unwrap();
    let sum = |n: u64| OldValue::Value(n.to_le_bytes().to_vec());
    let found = olds(&mut changes);
    let absent = || OldValue::Absent;
    let expected = [value("1"), value("2"), absent(), absent(), absent(), sum(2), sum(5)];
    assert_eq!(found, expected);
    // Without them, nothing is said.
    let mut plain = db.changes(2, Default::default()).unwrap();
    assert!(olds(&mut plain).iter().all(|old| *old == OldValue::Unknown));
}

#[test]
fn a_snapshot_of_another_number_or_database_is_refused() {
    let (_, handles) = env(1);
    let db = open(&handles, 0);
    db.put("a", "1").unwrap();
    let snapshot = db.snapshot();
    for from in [1, 3] {
        let error = db.changes(from, behind(&snapshot)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("ask for the changes from 2 on"), "{error}");
    }
    let other = Db::open_with("/other", options(&handles)).unwrap();
    let error = other.changes(2, behind(&snapshot)).unwrap_err();
    assert!(error.message().contains("another open database"), "{error}");
    let follower = Follower::open_with("/other", options(&handles)).unwrap();
    let error = follower.changes(2, behind(&snapshot)).unwrap_err();
    assert!(error.message().contains("another database"), "{error}");
}

#[test]
fn a_feed_that_was_made_too_late_is_told() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let snapshot = db.snapshot();
    for key in 0..8000u32 {
        db.put(key.to_be_bytes(), vec![1; 600]).unwrap();
    }
    let mut changes = db.changes(1, behind(&snapshot)).unwrap();
    let error = changes.find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("make the feed as soon as its snapshot"), "{error}");
    let at = changes.next_seq();
    assert_eq!(changes.next().unwrap().unwrap_err().message(), error.message());
    assert!(1000 < at && at == changes.next_seq(), "{at} comes next");
}

#[test]
fn nothing_is_known_of_an_ingestion_until_the_next_snapshot() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    let follower = Follower::open_with(DIR, options(&handles)).unwrap();
    let mut live = begin(&db, None);
    let mut followed = begin(&db, Some(&follower));
    let mut ingest = db.ingest().unwrap();
    ingest.put("b", "2").unwrap();
    ingest.finish().unwrap();
    db.put("b", "3").unwrap();
    db.put("b", "4").unwrap();
    assert_eq!(olds(&mut live), [value("2"), value("3")], "a snapshot is taken behind it");
    assert_eq!(olds(&mut followed), [OldValue::Unknown, value("3")]);
    db.delete("b").unwrap();
    db.delete("a").unwrap();
    assert_eq!(olds(&mut followed), [value("4"), value("1")]);
}

#[test]
fn a_value_that_expired_before_the_last_look_is_absent() {
    let (_, handles) = env(1);
    let db = open(&handles, 0);
    let mut changes = from_now(&db);
    db.put_with_ttl("a", "1", Duration::from_secs(10)).unwrap();
    db.put_with_ttl("b", "1", Duration::from_secs(30)).unwrap();
    assert_eq!(olds(&mut changes), [OldValue::Absent, OldValue::Absent]);
    handles.clock.advance_ms(20_000);
    db.put("c", "1").unwrap();
    assert_eq!(olds(&mut changes), [OldValue::Absent]);
    db.put("a", "2").unwrap();
    handles.clock.advance_ms(20_000);
    db.put("b", "2").unwrap();
    assert_eq!(olds(&mut changes), [OldValue::Absent, value("1")], "b expired since the last look");
}

#[test]
fn a_keyspace_that_was_dropped_has_its_old_values_for_a_feed_that_was_there() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    let users = db.keyspace("users").unwrap();
    users.put("ada", "London").unwrap();
    let snapshot = db.snapshot();
    let mut early = db.changes(snapshot.seq() + 1, behind(&snapshot)).unwrap();
    users.put("ada", "Paris").unwrap();
    drop(users);
    db.drop_keyspace("users").unwrap();
    db.keyspace("users").unwrap().put("ada", "Rome").unwrap();
    let mut late = db.changes(snapshot.seq() + 1, behind(&snapshot)).unwrap();
    assert_eq!(olds(&mut late), [OldValue::Unknown, OldValue::Absent]);
    handles.jobs.run_until_idle();
    assert_eq!(olds(&mut early), [value("London"), OldValue::Absent]);
}

#[test]
fn an_old_value_that_could_not_be_read_is_read_again() {
    let (_, handles) = env(1);
    let db = open(&handles, 1 << 30);
    make(&db, "sums");
    let sums = db.keyspace("sums").unwrap();
    sums.put("n", 1u64.to_le_bytes()).unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = open(&handles, 1 << 30);
    let sums = db.keyspace("sums").unwrap();
    let mut changes = from_now(&db);
    let mut batch = Batch::new();
    batch.put(&db, "c", "1");
    batch.merge(&sums, "m", 1u64.to_le_bytes());
    batch.merge(&sums, "n", 1u64.to_le_bytes());
    batch.put(&db, "c", "2");
    batch.merge(&sums, "m", 1u64.to_le_bytes());
    batch.delete(&db, "a");
    batch.delete(&sums, "m");
    db.write(batch, WriteSync::No).unwrap();
    handles.fs.inject(Fault::new(FaultKind::Io, Ops::READ, When::MatchingFrom(0)).on_path(".sst"));
    assert!(changes.try_next().is_err());
    handles.fs.clear_faults();
    let sum = |n: u64| OldValue::Value(n.to_le_bytes().to_vec());
    let expected =
        [OldValue::Absent, OldValue::Absent, sum(1), value("1"), sum(1), value("1"), sum(2)];
    assert_eq!(olds(&mut changes), expected);
}
