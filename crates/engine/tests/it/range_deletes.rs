//! Range deletes, and the tables that they hide whole: those are dropped without being read, at
//! once, and every reader that may still see entries of them finds these.

use crate::simulated_database::{DIR, options};
use std::collections::{BTreeMap, VecDeque};
use windrow::{Db, Iter, KeyspaceOptions, Options, Snapshot};
use windrow_env::testing::{Handles, Rng, env};

const WINDOW: u64 = 4_000;
const VALUE: [u8; 100] = [7; 100];

fn small(handles: &Handles, preset: &str) -> Options {
    let mut options = options(handles);
    let settings = [
        ("preset", preset),
        ("compression", "none"),
        ("memtable_bytes", "64KiB"),
        ("file_bytes", "64KiB"),
        ("level_base_bytes", "64KiB"),
    ];
    settings.iter().for_each(|(name, value)| options.settings.set(name, value).unwrap());
    options
}

fn key(n: u64) -> String {
    format!("key{n:08}")
}

/// Fills windows of keys. Then the memtable is empty and no merge is due.
fn fill(db: &Db, windows: std::ops::Range<u64>) {
    let keys = windows.start * WINDOW..windows.end * WINDOW;
    keys.for_each(|n| db.put(key(n), VALUE).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn delete(db: &Db, windows: std::ops::Range<u64>) {
    db.delete_range(key(windows.start * WINDOW), key(windows.end * WINDOW)).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

/// Bytes that merges have read, tables dropped, and bytes of all tables.
fn figures(db: &Db) -> (u64, u64, u64) {
    let stats = db.stats();
    let read = stats.levels.iter().map(|level| level.read_bytes).sum();
    let drops = stats.levels.iter().map(|level| level.drops).sum();
    (read, drops, stats.levels.iter().map(|level| level.shape.bytes).sum())
}

fn count(iter: Iter) -> u64 {
    iter.fold(0, |count, entry| entry.map(|_| count + 1).unwrap())
}

#[test]
fn tables_that_a_range_delete_hides_go_without_being_read() {
    for preset in ["windrow", "leveled", "l2sm", "vlsm"] {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, small(&handles, preset)).unwrap();
        fill(&db, 0..10);
        let (read, drops, bytes) = figures(&db);
        delete(&db, 0..9);
        let (read_after, drops_after, bytes_after) = figures(&db);
        assert!(drops_after > drops + 20, "{preset}: {drops_after} tables dropped");
        assert!(bytes_after < bytes / 5, "{preset}: {bytes_after} of {bytes} bytes");
        // At most the tables that the delete covers in part, and its own table.
        assert!(read_after - read < bytes / 5, "{preset}: {} bytes read", read_after - read);
        assert_eq!(count(db.iter()), WINDOW, "{preset}");
        db.verify().unwrap().into_result().unwrap();
        db.close().unwrap();
        let db = Db::open_with(DIR, small(&handles, preset)).unwrap();
        assert_eq!(count(db.iter()), WINDOW, "{preset}, reopened");
        assert_eq!(db.get(key(WINDOW)).unwrap(), None);
        db.close().unwrap();
    }
}

#[test]
fn deletes_that_meet_hide_tables_together() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, small(&handles, "leveled")).unwrap();
    fill(&db, 0..4);
    let (_, _, bytes) = figures(&db);
    for n in 0..3 * WINDOW / 10 {
        db.delete_range(key(n * 10), key((n + 1) * 10)).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let (_, drops, bytes_after) = figures(&db);
    assert!(drops > 10 && bytes_after < bytes / 2, "{drops} dropped, {bytes_after} of {bytes}");
    assert_eq!(count(db.iter()), WINDOW);
    db.close().unwrap();
}

#[test]
fn a_snapshot_keeps_tables_and_its_end_lets_them_go() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, small(&handles, "windrow")).unwrap();
    fill(&db, 0..5);
    let snapshot = db.snapshot();
    fill(&db, 5..10);
    let (_, drops, bytes) = figures(&db);
    delete(&db, 0..9);
    let (_, drops_after, bytes_after) = figures(&db);
    // Tables from after the snapshot are dropped, and those that it sees stay.
    assert!(drops_after > drops + 10, "{drops_after} tables dropped");
    assert!(bytes_after > bytes / 2, "{bytes_after} of {bytes} bytes");
    let space = db.default_keyspace();
    assert_eq!(count(space.range_at(&snapshot, ..)), 5 * WINDOW);
    assert_eq!(&*space.get_at(&snapshot, key(WINDOW)).unwrap().unwrap(), VALUE);
    assert_eq!(count(db.iter()), WINDOW);
    drop(snapshot);
    db.wait_idle().unwrap();
    let (_, drops_last, bytes_last) = figures(&db);
    assert!(drops_last > drops_after + 10, "{drops_last} tables dropped");
    assert!(bytes_last < bytes / 5, "{bytes_last} of {bytes} bytes");
    assert_eq!(count(db.iter()), WINDOW);
    db.close().unwrap();
}

#[test]
fn what_reads_an_older_view_reads_on() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, small(&handles, "windrow")).unwrap();
    fill(&db, 0..6);
    let mut iter = db.iter();
    assert_eq!(&*iter.next().unwrap().unwrap().0, key(0).as_bytes());
    delete(&db, 0..5);
    assert!(figures(&db).1 > 10, "{:?}", figures(&db));
    assert_eq!(count(iter), 6 * WINDOW - 1);
    assert_eq!(count(db.iter()), WINDOW);
    db.close().unwrap();
}

#[test]
fn a_reopened_database_drops_what_a_snapshot_kept() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, small(&handles, "windrow")).unwrap();
    fill(&db, 0..6);
    let snapshot = db.snapshot();
    delete(&db, 0..5);
    let (_, drops, bytes) = figures(&db);
    assert_eq!(drops, 0);
    drop(snapshot);
    db.close().unwrap();
    let db = Db::open_with(DIR, small(&handles, "windrow")).unwrap();
    db.wait_idle().unwrap();
    let (read, drops, bytes_after) = figures(&db);
    assert!(drops > 10 && bytes_after < bytes / 3, "{drops} dropped, {bytes_after} of {bytes}");
    assert!(read < bytes / 5, "{read} bytes read");
    assert_eq!(count(db.iter()), WINDOW);
    db.close().unwrap();
}

type Model = BTreeMap<String, Vec<u8>>;

struct World {
    rng: Rng,
    handles: Handles,
    options: Options,
    db: Db,
    model: Model,
    held: VecDeque<(Snapshot, Model)>,
    drops: u64,
}

impl World {
    fn new(seed: u64, preset: &str) -> World {
        let (_, handles) = env(seed);
        let options = small(&handles, preset);
        let db = Db::open_with(DIR, options.clone()).unwrap();
        let operator =
            KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
        db.keyspace_with("words", operator).unwrap();
        let (model, held) = (Model::new(), VecDeque::new());
        World { rng: Rng::new(seed), handles, options, db, model, held, drops: 0 }
    }

    fn space(&self) -> windrow::Keyspace {
        self.db.keyspace("words").unwrap()
    }

    fn step(&mut self) {
        let (space, n) = (self.space(), self.rng.below(3_000));
        match self.rng.below(1_000) {
            0..700 => {
                // Some keys in order, as a time series writes them.
                for n in n..n + self.rng.below(20) {
                    let value = vec![b'a' + self.rng.below(26) as u8; self.rng.below(800) as usize];
                    space.put(key(n), &value).unwrap();
                    self.model.insert(key(n), value);
                }
            }
            700..780 => {
                space.merge(key(n), "+").unwrap();
                self.model.entry(key(n)).or_default().push(b'+');
            }
            780..860 => {
                space.delete(key(n)).unwrap();
                self.model.remove(&key(n));
            }
            860..920 => {
                let most = if self.rng.chance(0.5) { 30 } else { 1_500 };
                let to = n + 1 + self.rng.below(most);
                space.delete_range(key(n), key(to)).unwrap();
                self.model.retain(|k, _| *k < key(n) || key(to) <= *k);
            }
            920..950 => space.flush().unwrap(),
            950..965 => self.held.push_back((self.db.snapshot(), self.model.clone())),
            965..980 => _ = self.held.pop_front(),
            980..990 => self.db.wait_idle().unwrap(),
            990..993 => space.compact_range(key(n)..).unwrap(),
            993..996 => self.handles.jobs.fire_timers(),
            996..998 => self.reopen(),
            _ => self.check(),
        }
    }

    fn reopen(&mut self) {
        self.held.clear();
        self.drops += figures(&self.db).1;
        self.db.close().unwrap();
        self.db = Db::open_with(DIR, self.options.clone()).unwrap();
    }

    fn check(&mut self) {
        let space = self.space();
        let read = |iter: Iter| -> Model {
            let entry = |(key, value): (windrow::Slice, windrow::Slice)| {
                (String::from_utf8(key.to_vec()).unwrap(), value.to_vec())
            };
            iter.map(|e| entry(e.unwrap())).collect()
        };
        assert!(read(space.iter()) == self.model, "what is there now");
        for (snapshot, model) in &self.held {
            assert!(read(space.range_at(snapshot, ..)) == *model, "at {}", snapshot.seq());
        }
        for n in (0..3_000).step_by(37) {
            let value = space.get(key(n)).unwrap().map(|value| value.to_vec());
            assert_eq!(value.as_ref(), self.model.get(&key(n)), "{n}");
        }
    }
}

#[test]
fn random_range_deletes_agree_with_a_map() {
    for (seed, preset) in (1..).zip(["windrow", "leveled", "l2sm", "vlsm", "autumn", "windrow"]) {
        let mut world = World::new(seed, preset);
        (0..4_000).for_each(|_| world.step());
        world.check();
        world.held.clear();
        world.reopen();
        world.check();
        world.db.verify().unwrap().into_result().unwrap();
        world.db.close().unwrap();
        assert!(world.drops > 20, "{preset}: {} tables were dropped", world.drops);
    }
}
