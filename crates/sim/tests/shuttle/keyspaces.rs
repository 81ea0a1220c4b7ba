//! Scenarios of keyspaces that are made and dropped while others are written to, flushed, merged
//! and copied.

use crate::machine::{DIR, Machine, WRITERS, draw, ledger, observe, spaces};
use crate::runner::check;
use shuttle::thread;
use windrow::changes::Operation;
use windrow::{Db, Result, WriteSync};

/// Batches that each writer writes.
const BATCHES: u64 = 3;

/// Makes a keyspace, writes to it, perhaps flushes or merges it, and drops it.
fn come_and_go(db: &Db, name: &str) -> Result<()> {
    let space = db.keyspace(name)?;
    space.put("key", "value")?;
    match draw(3) {
        0 => space.flush()?,
        1 => space.compact()?,
        _ => {}
    }
    assert_eq!(space.get("key")?.as_deref(), Some(&b"value"[..]), "{name}");
    db.drop_keyspace(name)
}

#[test]
fn keyspaces_come_and_go_next_to_a_compaction() {
    check("keyspaces_come_and_go_next_to_a_compaction", || {
        let machine = Machine::new();
        let (db, jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
            threads.push(thread::spawn(move || {
                let one_more = |_| ledger.write(&db, &spaces, writer, WriteSync::No);
                (0..BATCHES).try_for_each(one_more)
            }));
        }
        let (dropped, compacted) = (db.clone(), db.clone());
        threads.push(thread::spawn(move || come_and_go(&dropped, "third")));
        threads.push(thread::spawn(move || compacted.compact()));
        db.flush().expect("flush");
        jobs.fire();
        come_and_go(&db, "fourth").expect("the fourth keyspace");
        for thread in threads {
            thread.join().expect("a thread of the scenario").expect("what it does");
        }
        let names = db.keyspaces();
        assert_eq!(names.len(), spaces.len(), "{names:?}");
        db.verify().and_then(|report| report.into_result()).expect("verify");
        db.close().expect("close");
        let (db, _jobs) = machine.open(DIR);
        assert_eq!(observe(&db, &ledger), ledger.acknowledged(), "after the close");
        assert_eq!(db.keyspaces(), names);
    });
}

#[test]
fn a_copy_next_to_a_keyspace_that_is_made_or_dropped() {
    check("a_copy_next_to_a_keyspace_that_is_made_or_dropped", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        for space in &spaces(&db) {
            space.put("key", "value").expect("put");
        }
        let is_made = draw(2) == 0;
        let changer = {
            let db = db.clone();
            thread::spawn(move || match is_made {
                true => db.keyspace("third").and_then(|third| third.put("key", "value")),
                false => db.drop_keyspace("other"),
            })
        };
        for _ in 0..draw(20) {
            thread::yield_now();
        }
        db.checkpoint("/scenario/copy").expect("checkpoint");
        changer.join().expect("the changer").expect("its change");
        let (copy, _copy_jobs) = machine.open("/scenario/copy");
        copy.verify().and_then(|report| report.into_result()).expect("verify");
        let mut names = copy.keyspaces();
        names.retain(|name| name != "third");
        // A keyspace that was dropped meanwhile is present as a whole, or not at all.
        assert!(names.len() == 2 || !is_made && names.len() == 1, "{names:?}");
        for name in names {
            let space = copy.keyspace(&name).expect("keyspace");
            assert!(space.get("key").expect("get").is_some(), "{name} has lost what was written");
        }
    });
}

#[test]
fn a_write_is_in_the_feed_while_a_keyspace_is_dropped() {
    check("a_write_is_in_the_feed_while_a_keyspace_is_dropped", || {
        let machine = Machine::new().with_setting("changes_bytes", "1MiB");
        let (db, _jobs) = machine.open(DIR);
        let [_, other] = spaces(&db);
        let mut changes = db.changes(1, Default::default()).expect("the feed");
        let dropper = {
            let db = db.clone();
            thread::spawn(move || db.drop_keyspace("other"))
        };
        let mut drops = 0;
        let mut read_on = || {
            let mut seq = 0;
            while let Some(change) = changes.try_next().expect("a change") {
                let is_drop = |op: &Operation| matches!(op, Operation::KeyspaceDropped { .. });
                let to_other =
                    |op: &Operation| matches!(op, Operation::Put { key, .. } if **key == *b"other");
                assert!(drops == 0 || !change.operations.iter().any(to_other), "{change:?}");
                drops += change.operations.iter().filter(|&op| is_drop(op)).count();
                seq = change.seq;
            }
            (seq, drops)
        };
        for _ in 0..BATCHES {
            let _ = other.put("other", "value");
            db.put("key", "value").expect("put");
            let (seq, _) = read_on();
            assert_eq!(seq, db.snapshot().seq(), "a write was acknowledged and is not in the feed");
        }
        dropper.join().expect("the dropper").expect("the drop");
        assert_eq!(read_on().1, 1, "drops in the feed");
    });
}
