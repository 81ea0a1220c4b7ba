//! Workloads that change: the measured use and the number of levels follow, and do not change back
//! and forth. The clock is a virtual one: each flush takes some seconds.

use crate::simulated_database::{DIR, options};
use std::sync::Arc;
use windrow::{Db, Event, ReadOptions};
use windrow_env::sync::{Mutex, Rank};
use windrow_env::testing::{Handles, env};

/// The bytes of a record, including its key and its part of the log.
const RECORD_BYTES: u64 = 140;
/// The number of records that fill a memtable, about.
const MEMTABLE_RECORDS: u64 = (64 << 10) / RECORD_BYTES;
/// The ms in which a memtable's records are written.
const MEMTABLE_MS: u64 = 5_000;

/// A change that the database made by itself.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Use(String),
    Levels(u32),
}

type Changes = Arc<Mutex<Vec<Change>>>;

struct World {
    db: Db,
    handles: Handles,
    changes: Changes,
    ops: u64,
}

impl World {
    fn open(seed: u64) -> World {
        let (_, handles) = env(seed);
        let changes: Changes = Arc::new(Mutex::new(Rank::INNERMOST, Vec::new()));
        let noted = changes.clone();
        let mut options = options(&handles);
        options.settings.preset = "windrow use=measured".into();
        options.settings.compression = "none".into();
        options.components.listener = Some(Arc::new(move |event: &Event| {
            let change = match event {
                Event::UseMeasured { reason, .. } => {
                    Change::Use(reason.split(':').next().unwrap_or_default().to_owned())
                }
                Event::Reshaped { levels, .. } => Change::Levels(*levels),
                _ => return,
            };
            noted.lock().push(change);
        }));
        World { db: Db::open_with(DIR, options).unwrap(), handles, changes, ops: 0 }
    }

    /// Lets time pass with each operation.
    fn step(&mut self) {
        self.ops += 1;
        if self.ops.is_multiple_of(MEMTABLE_RECORDS / 4) {
            self.handles.clock.advance_ms(MEMTABLE_MS / 4);
            self.handles.jobs.fire_timers();
        }
    }

    fn put(&mut self, n: u64) {
        self.db.put(format!("key{n:016}"), [n as u8; 100]).unwrap();
        self.step();
    }

    fn delete(&mut self, n: u64) {
        self.db.delete(format!("key{n:016}")).unwrap();
        self.step();
    }

    fn seek(&mut self, n: u64) {
        let mut cursor = self.db.cursor(ReadOptions::default());
        cursor.seek(format!("key{n:016}")).unwrap();
        self.step();
    }

    /// Returns the changes since the last call.
    fn changes(&mut self) -> Vec<Change> {
        self.db.wait_idle().unwrap();
        std::mem::take(&mut *self.changes.lock())
    }
}

/// A number in 0..count. `count` calls give all of them.
fn scattered(n: u64, count: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9) % count
}

fn uses(changes: &[Change]) -> Vec<&str> {
    let uses = changes.iter().filter_map(|change| match change {
        Change::Use(name) => Some(name.as_str()),
        Change::Levels(_) => None,
    });
    uses.collect()
}

#[test]
fn the_use_changes_once_for_each_change_of_the_workload() {
    let mut world = World::open(1);
    let records = 20 * MEMTABLE_RECORDS;
    (0..2 * records).for_each(|n| world.put(scattered(n, records)));
    assert_eq!(uses(&world.changes()), ["writes"]);
    // Reads alone put nothing, so that nothing is measured.
    (0..2 * records).for_each(|n| world.seek(scattered(n, records)));
    assert_eq!(uses(&world.changes()), [""; 0]);
    // Mostly reads.
    for n in 0..20 * records {
        match n % 10 {
            0 => world.put(scattered(n, records)),
            _ => world.seek(scattered(n, records)),
        }
    }
    let changes = world.changes();
    assert_eq!(uses(&changes).last(), Some(&"reads"), "{changes:?}");
    assert!(uses(&changes).len() <= 2, "{changes:?}");
    (0..2 * records).for_each(|n| world.put(scattered(n, records)));
    let changes = world.changes();
    assert_eq!(uses(&changes).last(), Some(&"writes"), "{changes:?}");
    assert!(uses(&changes).len() <= 2, "{changes:?}");
    world.db.close().unwrap();
}

#[test]
fn levels_change_once_per_doubling_and_data_that_shrinks_loses_them_one_by_one() {
    let mut world = World::open(2);
    let mut records = MEMTABLE_RECORDS;
    (0..records).for_each(|n| world.put(n));
    let mut grown = 0;
    while records < 100 * MEMTABLE_RECORDS {
        // The data doubles, and is then overwritten once.
        (records..2 * records).for_each(|n| world.put(scattered(n, 2 * records)));
        records *= 2;
        (0..records).for_each(|n| world.put(scattered(n, records)));
        let changes = world.changes();
        let levels = changes.iter().filter(|change| matches!(change, Change::Levels(_))).count();
        assert!(levels <= 1, "{records} records: {changes:?}");
        grown += levels;
    }
    assert!(grown > 0, "data of a hundred memtables has the levels of one");
    // All but one record in a hundred is deleted.
    (0..records).filter(|n| !n.is_multiple_of(100)).for_each(|n| world.delete(n));
    for round in 0..20 {
        (0..records).step_by(100).for_each(|n| world.put(n + round % 2));
    }
    world.db.compact().unwrap();
    let changes = world.changes();
    let levels = changes.iter().filter_map(|change| match change {
        Change::Levels(levels) => Some(*levels),
        Change::Use(_) => None,
    });
    let levels: Vec<u32> = levels.collect();
    assert!(levels.windows(2).all(|pair| pair[1] < pair[0]), "{levels:?}");
    world.db.verify().unwrap().into_result().unwrap();
    world.db.close().unwrap();
}
