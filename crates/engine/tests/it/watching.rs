//! A database that is observed while it works: trees of its manifest, capacities, memory of the
//! program.

#![allow(clippy::disallowed_methods, reason = "a writer works meanwhile")]

use std::sync::atomic::{AtomicBool, Ordering};
use windrow::{Db, KeyspaceStats, Options};

fn small() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 256 << 10;
    options
}

fn numbers(
    trees: &[(String, std::sync::Arc<windrow::inspect::Version>)],
) -> Vec<(String, Vec<u64>)> {
    let of = |(name, tree): &(String, std::sync::Arc<windrow::inspect::Version>)| {
        (name.clone(), tree.files().map(|(_, _, file)| file.number).collect())
    };
    let mut all: Vec<_> = trees.iter().map(of).collect();
    all.sort();
    all
}

#[test]
fn the_trees_of_the_manifest_end_in_the_one_that_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), small()).unwrap();
    let other = db.keyspace("other").unwrap();
    for n in 0..20 {
        db.put(format!("a{n}"), "x").unwrap();
        other.put(format!("b{n}"), "x").unwrap();
        db.flush().unwrap();
    }
    db.compact().unwrap();
    let mut last = Vec::new();
    let mut count = 0;
    windrow::inspect::dump::trees(dir.path(), &mut |trees| {
        (last, count) = (trees, count + 1);
        Ok(())
    })
    .unwrap();
    assert!(count > 20, "{count} moments");
    assert_eq!(numbers(&last), numbers(&windrow::inspect::trees(&db)));
    let stopped =
        windrow::inspect::dump::trees(dir.path(), &mut |_| Err(windrow::Error::invalid("enough")));
    assert!(stopped.unwrap_err().to_string().contains("enough"));
}

/// Manifests come and go under the reader. It never reports one as missing.
#[test]
fn trees_are_read_while_a_writer_begins_manifest_after_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.settings.manifest_bytes = 1 << 10;
    let db = Db::open_with(dir.path(), options).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..400 {
                let name = format!("space{}", n % 3);
                db.keyspace(&name).unwrap().put("a", "x").unwrap();
                db.flush().unwrap();
                db.drop_keyspace(&name).unwrap();
                db.set_outside_memory(n << 10);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            windrow::inspect::dump::trees(dir.path(), &mut |_| Ok(())).unwrap();
        }
    });
    db.close().unwrap();
}

#[test]
fn levels_between_the_first_and_the_last_have_capacities() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.settings.set("preset", "leveled").unwrap();
    let db = Db::open_with(dir.path(), options).unwrap();
    for n in 0..40_000 {
        db.put(format!("key{:08}", n * 7919 % 40_000), "x".repeat(200)).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let of_default = db.stats().keyspaces.remove(0);
    assert_eq!(of_default.capacities.len(), of_default.levels.len());
    assert_eq!(of_default.capacities[0], 0, "level 0 is counted by its depth");
    let bounded: Vec<u64> = of_default.capacities.into_iter().filter(|bytes| *bytes > 0).collect();
    assert!(!bounded.is_empty() && bounded.is_sorted(), "{bounded:?}");
    // All merges that are due have run.
    for (level, capacity) in of_default.levels[1..].iter().zip(&bounded) {
        assert!(level.bytes <= *capacity, "{level:?} may hold {capacity}");
    }
}

#[test]
fn the_dial_says_what_logs_may_hold() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = small();
    options.settings.set("compression", "none").unwrap();
    let db = Db::open_with(dir.path(), options).unwrap();
    let load = |db: &Db| {
        for n in 0..60_000 {
            db.put(format!("key{:08}", n * 7919 % 60_000), "x".repeat(200)).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        db.stats().keyspaces.remove(0)
    };
    let balanced = load(&db);
    assert_eq!(balanced.file_price_percent, 100);
    assert_eq!(balanced.log_capacities.len(), balanced.levels.len());
    assert!(balanced.levels.len() > 2, "{:?}", balanced.levels);
    assert_eq!(balanced.log_capacities.last(), Some(&0), "the last level has no SST-log");
    // All merges that are due have run.
    assert!(balanced.levels[0].bytes <= balanced.log_capacities[0], "{balanced:?}");
    let above = balanced.log_capacities[1..].iter().any(|bytes| *bytes > 0);
    assert!(above, "{:?}", balanced.log_capacities);

    // For the same tree: the capacity depends on its shape, too, which changes with each load.
    db.default_keyspace().set_policy("windrow use=writes").unwrap();
    let writes = db.stats().keyspaces.remove(0);
    assert_eq!(writes.file_price_percent, 20);
    // Level 0 has a bound of its own, which both may have reached.
    assert!(writes.log_capacities[0] >= balanced.log_capacities[0], "{writes:?} of {balanced:?}");
    let below_level0 = |stats: &KeyspaceStats| stats.log_capacities[1..].iter().sum::<u64>();
    assert!(below_level0(&writes) > below_level0(&balanced), "{writes:?} of {balanced:?}");
    db.default_keyspace().set_policy("leveled").unwrap();
    let leveled = load(&db);
    assert_eq!(leveled.file_price_percent, 0, "it asks for no price");
    assert!(leveled.log_capacities[1..].iter().all(|bytes| *bytes == 0), "{leveled:?}");
}
