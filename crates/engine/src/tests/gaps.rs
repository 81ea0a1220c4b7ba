//! Tests of `read/src/gaps/mod.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{
    Batch, CompactionFilter, Db, FilterDecision, Keyspace, KeyspaceOptions, Options, ReadOptions,
    Snapshot, WriteSync,
};
use std::sync::Arc;
use std::time::Duration;
use windrow_env::Clock;
use windrow_env::testing::{Handles, Rng, env};
use windrow_read::read::cursor::Cursor;

const KEYS: u64 = 30;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn name(key: u64) -> Vec<u8> {
    format!("{key:02}").into_bytes()
}

/// Removes values that begin with `f`.
struct TakesSome;

impl CompactionFilter for TakesSome {
    fn name(&self) -> &str {
        "takes some"
    }

    fn filter(&self, _level: u32, _key: &[u8], value: &[u8]) -> FilterDecision {
        if value.starts_with(b"f") { FilterDecision::Remove } else { FilterDecision::Keep }
    }
}

/// A cursor and all entries that it must see.
struct KeptCursor {
    cursor: Cursor,
    expected: Entries,
}

impl KeptCursor {
    /// Walks at random, and compares every position with the expected one.
    fn walk(&mut self, rng: &mut Rng, steps: u64, label: &str) {
        let KeptCursor { cursor, expected } = self;
        let mut at: Option<usize> = None;
        for step in 0..steps {
            let key = name(rng.below(KEYS + 1));
            // The first step must set a position.
            let what = if step == 0 { rng.below(4) } else { rng.below(12) };
            let (moved, to) = match what {
                0 => (cursor.seek_first(), (!expected.is_empty()).then_some(0)),
                1 => (cursor.seek_last(), expected.len().checked_sub(1)),
                2 => (cursor.seek(&key), expected.iter().position(|(k, _)| *k >= key)),
                3 => (cursor.seek_before(&key), expected.iter().rposition(|(k, _)| *k < key)),
                4..8 => (cursor.next(), at.map(|i| i + 1).filter(|&i| i < expected.len())),
                _ => (cursor.prev(), at.and_then(|i| i.checked_sub(1))),
            };
            at = to;
            let got = moved.unwrap().then(|| (cursor.key().to_vec(), cursor.value().to_vec()));
            assert_eq!(got.as_ref(), at.map(|i| &expected[i]), "{label} step {step}: {what}");
        }
    }
}

struct GapWorld {
    handles: Handles,
    db: Db,
    spaces: [Keyspace; 2],
    snapshots: Vec<(Snapshot, Entries)>,
    kept: Vec<KeptCursor>,
}

impl GapWorld {
    fn new(seed: u64) -> GapWorld {
        let (env, handles) = env(seed);
        let mut options = Options::default();
        options.components.env = Some(env);
        options.components.compaction_filters.push(("b".to_owned(), Arc::new(TakesSome)));
        let db = Db::open_with("db", options).unwrap();
        let spaces = ["a", "b"].map(|name| {
            let append = Some("append".to_owned());
            let options = KeyspaceOptions { merge_operator: append, ..Default::default() };
            db.keyspace_with(name, options).unwrap()
        });
        GapWorld { handles, db, spaces, snapshots: Vec::new(), kept: Vec::new() }
    }

    /// The entries that gets find now, or in a snapshot.
    fn found(&self, space: usize, snapshot: Option<&Snapshot>) -> Entries {
        let get = |key: &Vec<u8>| match snapshot {
            Some(snapshot) => self.spaces[space].get_at(snapshot, key).unwrap(),
            None => self.spaces[space].get(key).unwrap(),
        };
        (0..KEYS).map(name).filter_map(|key| Some((get(&key)?.to_vec(), key))).map(swap).collect()
    }

    fn add_write(&self, rng: &mut Rng, batch: &mut Batch) {
        let (space, from) = (&self.spaces[rng.below(2) as usize], rng.below(KEYS));
        let key = name(from);
        let value = format!("{}{}", ["f", "v"][rng.below(2) as usize], rng.below(1000));
        match rng.below(16) {
            0..=2 => batch.put(space, key, value),
            3 => {
                let ttl = Duration::from_millis(1 + rng.below(2_000));
                batch.put_with_ttl(space, key, value, ttl);
            }
            4 => batch.merge(space, key, value),
            5 => batch.delete_range(space, key, name(from + rng.below(12))),
            _ => {
                let to = KEYS.min(from + 1 + rng.below(20));
                (from..to).for_each(|key| batch.delete(space, name(key)));
            }
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        match rng.below(40) {
            0..=19 => {
                let mut batch = Batch::new();
                (0..=rng.below(3)).for_each(|_| self.add_write(rng, &mut batch));
                self.db.write(batch, WriteSync::No).unwrap();
            }
            20 => self.db.flush().unwrap(),
            21 => self.db.compact().unwrap(),
            22 => self.handles.clock.advance_ms(rng.below(1_500)),
            23 => {
                let clock = &self.handles.clock;
                clock.set_wall_ms(clock.wall_ms().saturating_sub(rng.below(1_500)));
            }
            24 => {
                let snapshot = self.db.snapshot();
                let expected = self.found(0, Some(&snapshot));
                self.snapshots.push((snapshot, expected));
                if self.snapshots.len() > 2 {
                    self.snapshots.remove(rng.below(3) as usize);
                }
            }
            25..=27 => {
                let space = rng.below(2) as usize;
                let expected = self.found(space, None);
                let cursor = self.spaces[space].cursor(ReadOptions::default());
                self.kept.push(KeptCursor { cursor, expected });
                if self.kept.len() > 3 {
                    self.kept.remove(rng.below(4) as usize);
                }
            }
            _ => {}
        }
    }

    fn check(&mut self, rng: &mut Rng, label: &str) {
        match rng.below(3) {
            0 if !self.snapshots.is_empty() => {
                let (snapshot, expected) = &self.snapshots[0];
                let cursor = self.spaces[0].cursor_at(snapshot);
                let expected = expected.clone();
                KeptCursor { cursor, expected }.walk(rng, 8, &format!("{label}, a snapshot"));
            }
            1 if !self.kept.is_empty() => {
                let at = rng.below(self.kept.len() as u64) as usize;
                self.kept[at].walk(rng, 8, &format!("{label}, kept"));
            }
            _ => {
                let space = rng.below(2) as usize;
                let mut bound = || (rng.below(3) == 0).then(|| name(rng.below(KEYS)));
                let (lower, upper) = (bound(), bound());
                let mut expected = self.found(space, None);
                expected.retain(|(key, _)| lower.as_ref().is_none_or(|lower| lower <= key));
                expected.retain(|(key, _)| upper.as_ref().is_none_or(|upper| key < upper));
                let options = ReadOptions { lower, upper, ..ReadOptions::default() };
                let cursor = self.spaces[space].cursor(options);
                KeptCursor { cursor, expected }.walk(rng, 8, &format!("{label}, now"));
            }
        }
    }
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

#[test]
fn scans_with_gaps_find_what_gets_find() {
    let mut skipped = 0;
    for seed in 0..40 {
        let (mut rng, mut world) = (Rng::new(seed), GapWorld::new(seed));
        for step in 0..400 {
            world.step(&mut rng);
            world.check(&mut rng, &format!("seed {seed}, step {step}"));
            if rng.below(3) == 0 {
                world.check(&mut rng, &format!("seed {seed}, step {step} again"));
            }
        }
        let stats = world.db.stats();
        skipped += stats.gaps_skipped;
        assert!(stats.tombstones_walked > 0);
    }
    assert!(skipped > 10_000, "{skipped} gaps were skipped");
}

fn database() -> (Handles, Db) {
    let (env, handles) = env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    options.components.compaction_filters.push(("default".to_owned(), Arc::new(TakesSome)));
    let db = Db::open_with("db", options).unwrap();
    (handles, db)
}

fn keys(db: &Db) -> Vec<Vec<u8>> {
    db.iter().map(|item| item.unwrap().0.to_vec()).collect()
}

#[test]
fn a_queue_is_not_walked_again() {
    let (_handles, db) = database();
    (0..1000).for_each(|key| db.put(format!("{key:04}"), "v").unwrap());
    (0..900).for_each(|key| db.delete(format!("{key:04}")).unwrap());
    assert_eq!(keys(&db).len(), 100);
    let walked = db.stats().tombstones_walked;
    assert_eq!(walked, 900);
    db.put("2000", "the tail").unwrap();
    assert_eq!(keys(&db).len(), 101);
    // In the tests of this crate already a few deleted keys make a gap.
    let mut cursor = db.cursor(ReadOptions::default());
    assert!(!cursor.seek_before("0900").unwrap());
    assert!(cursor.seek("0450").unwrap());
    assert_eq!(cursor.key(), b"0900");
    let stats = db.stats();
    assert_eq!((stats.tombstones_walked, stats.gaps_skipped), (walked, 3));
    // A key that was put before the gap was known, and one that is put into it.
    db.put("0450", "again").unwrap();
    assert_eq!(keys(&db)[0], b"0450");
    assert!(cursor.seek_first().unwrap());
    assert_eq!(cursor.key(), b"0900", "a cursor sees what was there when it was made");
}

/// A merge removes an entry that an earlier cursor sees. A later scan finds the range deleted, at
/// the same sequence number.
#[test]
fn a_gap_is_none_for_a_view_of_before_a_merge() {
    let (_handles, db) = database();
    let others = || (0..10).filter(|&key| key != 5).map(|key| format!("{key:02}"));
    others().for_each(|key| db.put(key, "v").unwrap());
    db.flush().unwrap();
    // The snapshot keeps the tombstones.
    let _snapshot = db.snapshot();
    others().for_each(|key| db.delete(key).unwrap());
    db.put("05", "f").unwrap();
    let mut before = db.cursor(ReadOptions::default());
    assert!(before.seek_first().unwrap());
    db.compact().unwrap();
    assert!(keys(&db).is_empty(), "the filter took it");
    assert!(keys(&db).is_empty());
    assert!(db.stats().gaps_skipped > 0, "there is no gap");
    assert!(before.seek_first().unwrap(), "the cursor's view has it still");
    assert_eq!(before.key(), b"05");
}

/// Likewise by time: a merge drops expired entries, and the clock goes back.
#[test]
fn what_has_expired_is_in_no_gap() {
    let (handles, db) = database();
    (0..10).for_each(|key| db.put(format!("{key:02}"), "v").unwrap());
    db.put_with_ttl("05", "v", Duration::from_millis(1_000)).unwrap();
    (0..10).filter(|key| *key != 5).for_each(|key| db.delete(format!("{key:02}")).unwrap());
    let at_once = db.cursor(ReadOptions::default());
    handles.clock.advance_ms(2_000);
    for _ in 0..2 {
        assert!(keys(&db).is_empty());
        assert!(!db.cursor(ReadOptions::default()).seek_before("99").unwrap());
    }
    let mut cursor = at_once;
    assert!(cursor.seek_first().unwrap() && cursor.key() == b"05");
    assert!(cursor.seek_last().unwrap() && cursor.key() == b"05");
    handles.clock.set_wall_ms(handles.clock.wall_ms() - 2_000);
    assert_eq!(keys(&db), [b"05"]);
}

/// A put into a gap splits it in two, with keys of their own.
#[test]
fn what_gaps_take_is_charged() {
    let (_handles, db) = database();
    let name = |key: u32| format!("{key:0400}");
    (0..100).for_each(|key| db.put(name(key), "v").unwrap());
    (0..100).for_each(|key| db.delete(name(key)).unwrap());
    let held = || db.database().caches.blocks.held_bytes();
    let before = held();
    assert!(keys(&db).is_empty());
    let one = held();
    assert!(before + 400 <= one, "{before} before and {one} with a gap");
    db.put(name(50), "v").unwrap();
    assert_eq!(keys(&db).len(), 1);
    let two = held();
    assert!(one + 400 <= two, "{one} with a gap, and {two} with two");
}
