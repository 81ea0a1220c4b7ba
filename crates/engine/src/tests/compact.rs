//! Tests of `store/src/jobs/compact.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{CompactionFilter, Db, FilterDecision, Options};
use std::sync::Arc;
use std::sync::OnceLock;
use windrow_env::sync::atomic::Ordering;
use windrow_env::sync::{Mutex, Rank};
use windrow_env::testing::{Handles, env};
use windrow_store::jobs::compact::*;
use windrow_store::tree::Tree;

const SLOWDOWN: u32 = 4;
const STOP: u32 = 6;

/// Runs an action once, in the middle of a merge into `level`.
struct Hook {
    level: OnceLock<u32>,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl CompactionFilter for Hook {
    fn name(&self) -> &str {
        "hook"
    }

    fn filter(&self, level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        if self.level.get() == Some(&level) {
            let act = self.act.lock().take();
            act.into_iter().for_each(|act| act());
        }
        FilterDecision::Keep
    }
}

fn open() -> (Db, Arc<Hook>, Handles) {
    let (env, handles) = env(1);
    let hook = Arc::new(Hook { level: OnceLock::new(), act: Mutex::new(Rank::INNERMOST, None) });
    let mut options = Options::default();
    options.components.env = Some(env);
    options.components.compaction_filters.push(("default".to_owned(), hook.clone()));
    let (slowdown, stop) = (SLOWDOWN.to_string(), STOP.to_string());
    let settings = [
        ("preset", "leveled shape=leveling(t=4) level0=tiered(k=2)"),
        ("memtable_bytes", "64KiB"),
        ("file_bytes", "64KiB"),
        ("level_base_bytes", "4KiB"),
        ("level0_slowdown_files", &slowdown),
        ("level0_stop_files", &stop),
    ];
    for (name, value) in settings {
        options.settings.set(name, value).unwrap();
    }
    (Db::open_with("db", options).unwrap(), hook, handles)
}

fn tree(db: &Db) -> Arc<Tree> {
    db.default_keyspace().tree.clone()
}

fn depth(db: &Db) -> u32 {
    tree(db).version().level(0).map_or(0, |level| level.sst_log_depth())
}

/// Adds a table to level 0, over all keys.
fn deepen(db: &Db) {
    ["a", "key5", "z"].iter().for_each(|key| db.put(key, "again").unwrap());
    db.flush().unwrap();
}

/// Puts all entries into the last level, which a compaction would rewrite. Returns that level.
fn load(db: &Db) -> u32 {
    let snapshot = db.snapshot();
    for n in 0..200 {
        db.put(format!("key{n}"), vec![7; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.compact().unwrap();
    drop(snapshot);
    let deepest = tree(db).version().deepest().unwrap();
    assert!(deepest >= 2, "{deepest}");
    deepest
}

#[test]
fn level_0_goes_down_during_a_compaction() {
    let (db, hook, handles) = open();
    let deepest = load(&db);
    hook.level.set(deepest).unwrap();
    let last_seq = db.database().pipeline.visible();
    let deepest_level0 = Arc::new(Mutex::new(Rank::INNERMOST, 0));
    let (other, seen, jobs) = (db.clone(), deepest_level0.clone(), handles.jobs.clone());
    *hook.act.lock() = Some(Box::new(move || {
        for _ in 0..4 * STOP {
            if other.database().pipeline.pace.is_stopped() {
                jobs.run_until_idle();
                assert!(!other.database().pipeline.pace.is_stopped(), "writers wait for nothing");
            }
            deepen(&other);
            let depth = depth(&other);
            let mut seen = seen.lock();
            *seen = depth.max(*seen);
        }
    }));
    db.compact().unwrap();
    let seen = *deepest_level0.lock();
    assert!((SLOWDOWN..=STOP).contains(&seen), "level 0 became {seen} deep");
    let version = tree(&db).version();
    let above = version.files().filter(|(level, _, _)| *level < deepest);
    let old: Vec<_> = above.filter(|(_, _, file)| file.seq_min <= last_seq).collect();
    assert!(old.is_empty(), "not in the last level: {old:?}");
    db.wait_idle().unwrap();
    db.verify().unwrap().into_result().unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"again"[..]));
    db.close().unwrap();
}

#[test]
fn writers_wait_for_a_compaction_that_is_in_level_0s_way_and_no_longer() {
    let (db, hook, _handles) = open();
    load(&db);
    // Level 0 is not merged within itself either at the depths of this test.
    db.set_policy("leveled shape=leveling(t=4) level0=tiered(k=4)").unwrap();
    hook.level.set(1).unwrap();
    deepen(&db);
    db.put("b", "1").unwrap();
    let depth_stopped = Arc::new(OnceLock::new());
    let (other, stopped) = (db.clone(), depth_stopped.clone());
    *hook.act.lock() = Some(Box::new(move || {
        let mut rounds = 0..4 * STOP;
        while !other.database().pipeline.pace.is_stopped() && rounds.next().is_some() {
            deepen(&other);
        }
        stopped.set(depth(&other)).unwrap();
    }));
    db.compact().unwrap();
    assert_eq!(depth_stopped.get(), Some(&STOP));
    assert!(!db.database().pipeline.pace.is_stopped(), "nothing is under way any more");
    deepen(&db);
    db.wait_idle().unwrap();
    db.close().unwrap();
}

#[test]
fn a_step_that_waits_is_next() {
    let (db, _hook, handles) = open();
    load(&db);
    let (database, tree) = (db.database(), tree(&db));
    let merging = || tree.work.lock().merging;
    let mut manual = Manual::begin(&database.jobs, &tree, (None, None));
    while depth(&db) < SLOWDOWN {
        deepen(&db);
    }
    assert_eq!(merging(), 1, "level 0 is deep");
    assert!(manual.next_step().is_none(), "a merge is in the way");
    // That merge ends, and level 0 was deepened meanwhile.
    database.workers.merges_running.fetch_add(database.workers.merges_max(), Ordering::AcqRel);
    handles.jobs.run_until_idle();
    while depth(&db) < SLOWDOWN {
        deepen(&db);
    }
    database.workers.merges_running.fetch_sub(database.workers.merges_max(), Ordering::AcqRel);
    database.scheduler.schedule_merges();
    assert_eq!(merging(), 0, "the compaction goes first");
    assert!(matches!(manual.next_step(), Some(Ok(()))));
    manual.end_step(&Ok(()));
    database.jobs.note_due(&tree);
    database.scheduler.schedule_merges();
    assert_eq!(merging(), 1, "and then level 0 again");
    drop(manual);
    assert_eq!(tree.work.lock().hold, 0);
    db.wait_idle().unwrap();
    db.close().unwrap();
}
