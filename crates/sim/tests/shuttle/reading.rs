//! Scenarios without faults: reads while everything else goes on (P4), and copies (P20).

use crate::machine::{DIR, Machine, WRITERS, draw, ledger, observe, spaces};
use crate::runner::check;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use std::sync::Arc;
use windrow::{Batch, CompactionFilter, Db, FilterDecision, Keyspace, ReadOptions, WriteSync};
use windrow_testkit::ledger::{Ledger, within};

/// Batches of each writer: their values overflow the memtable about twice.
const BATCHES: u64 = 6;

fn maybe_sync() -> WriteSync {
    if draw(4) == 0 { WriteSync::Yes } else { WriteSync::No }
}

/// Starts the writers.
fn write(db: &Db, spaces: &[Keyspace; 2], ledger: &Arc<Ledger>) -> Vec<thread::JoinHandle<()>> {
    let writer = |writer| {
        let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
        thread::spawn(move || {
            for _ in 0..BATCHES {
                ledger.write(&db, &spaces, writer, maybe_sync()).expect("write");
                ledger.read_own(&spaces, writer).expect("read");
            }
        })
    };
    (0..WRITERS).map(writer).collect()
}

/// Takes snapshots, observes each twice, and keeps an iterator open meanwhile.
fn read(db: &Db, spaces: &[Keyspace; 2], ledger: &Ledger, rounds: u32) {
    let mut last = vec![0; WRITERS];
    for _ in 0..rounds {
        let acknowledged = ledger.acknowledged();
        let snapshot = db.snapshot();
        let mut iter = spaces[0].prefix_at(&snapshot, "").peekable();
        let first = iter.peek().is_some();
        let seen = ledger.observe(spaces, &snapshot).expect("observe");
        within("a snapshot", &acknowledged, &seen, &ledger.attempted());
        within("a later snapshot", &last, &seen, &ledger.attempted());
        let again = ledger.observe(spaces, &snapshot).expect("observe");
        assert_eq!(seen, again, "a snapshot changed");
        last = seen;
        let rest = iter.inspect(|item| assert!(item.is_ok())).count();
        assert_eq!(first, rest > 0);
    }
}

fn close_and_compare(machine: &Machine, db: Db, ledger: &Ledger) {
    db.verify().and_then(|report| report.into_result()).expect("verify");
    db.close().expect("close");
    let (db, _jobs) = machine.open(DIR);
    assert_eq!(observe(&db, ledger), ledger.acknowledged(), "after a clean close");
}

#[test]
fn reads_do_not_change_while_the_tree_moves() {
    check("reads_do_not_change_while_the_tree_moves", || {
        let machine = Machine::new();
        let (db, jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let writers = write(&db, &spaces, &ledger);
        let reader = {
            let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
            thread::spawn(move || read(&db, &spaces, &ledger, 4))
        };
        db.flush().expect("flush");
        jobs.fire();
        db.compact().expect("compact");
        read(&db, &spaces, &ledger, 1);
        for thread in writers.into_iter().chain([reader]) {
            thread.join().expect("a thread of the scenario");
        }
        drop(jobs);
        drop(spaces);
        close_and_compare(&machine, db, &ledger);
    });
}

/// Removes every value.
struct TakesAll;

impl CompactionFilter for TakesAll {
    fn name(&self) -> &str {
        "takes all"
    }

    fn filter(&self, _level: u32, _key: &[u8], _value: &[u8]) -> FilterDecision {
        FilterDecision::Remove
    }
}

#[test]
fn a_filter_takes_nothing_from_a_snapshot() {
    check("a_filter_takes_nothing_from_a_snapshot", || {
        let machine = Machine::new().with_filter(Arc::new(TakesAll));
        let (db, _jobs) = machine.open(DIR);
        for key in ["a", "b", "c"] {
            db.put(key, key).expect("put");
        }
        let reader = {
            let db = db.clone();
            thread::spawn(move || {
                let mut there = 3;
                for _ in 0..4 {
                    let snapshot = db.snapshot();
                    let first = snapshot.range(..).inspect(|item| assert!(item.is_ok())).count();
                    let again = ["a", "b", "c"].map(|key| snapshot.get(key).expect("get"));
                    assert_eq!(again.iter().flatten().count(), first, "a snapshot changed");
                    assert!(first <= there, "what was taken came back");
                    there = first;
                }
            })
        };
        db.flush().expect("flush");
        db.compact().expect("compact");
        reader.join().expect("the reader");
        db.verify().and_then(|report| report.into_result()).expect("verify");
    });
}

#[test]
fn a_deleted_range_is_gone_as_a_whole() {
    check("a_deleted_range_is_gone_as_a_whole", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (written, read) = (db.clone(), db.clone());
        let writer = thread::spawn(move || {
            let space = written.default_keyspace();
            for _ in 0..2 {
                let mut batch = Batch::new();
                ["a", "b", "c"].iter().for_each(|key| batch.put(&space, key, key));
                written.write(batch, WriteSync::No).expect("write");
                written.delete_range("a", "d").expect("delete");
            }
        });
        let reader = thread::spawn(move || {
            for _ in 0..4 {
                let snapshot = read.snapshot();
                let there = snapshot.range(..).inspect(|item| assert!(item.is_ok())).count();
                assert!(there == 0 || there == 3, "{there} keys of a range that goes as a whole");
                let again = ["a", "b", "c"].map(|key| snapshot.get(key).expect("get"));
                assert_eq!(again.iter().flatten().count(), there, "a snapshot changed");
            }
        });
        db.flush().expect("flush");
        writer.join().expect("the writer");
        reader.join().expect("the reader");
        db.flush().expect("flush");
        assert_eq!(db.iter().count(), 0);
        db.verify().and_then(|report| report.into_result()).expect("verify");
    });
}

#[test]
fn a_copy_is_one_moment() {
    check("a_copy_is_one_moment", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let writers = write(&db, &spaces, &ledger);
        for _ in 0..draw(3) {
            read(&db, &spaces, &ledger, 1);
        }
        let before = ledger.acknowledged();
        db.checkpoint("/scenario/copy").expect("checkpoint");
        let after = ledger.attempted();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        let (copy, _copy_jobs) = machine.open("/scenario/copy");
        within("a copy", &before, &observe(&copy, &ledger), &after);
        drop(copy);
        drop(spaces);
        close_and_compare(&machine, db, &ledger);
    });
}

#[test]
fn the_oracle_tells_a_torn_batch() {
    // The canary: two batches in place of one must be caught.
    let torn = || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, third) = (spaces(&db), db.keyspace("third").expect("keyspace"));
        let halves = spaces.clone().map(|space| [space, third.clone()]);
        let writer = {
            let db = db.clone();
            thread::spawn(move || {
                for half in &halves {
                    ledger().write(&db, half, 0, WriteSync::No).expect("write");
                }
            })
        };
        ledger().observe(&spaces, &db.snapshot()).expect("observe");
        writer.join().expect("the writer");
    };
    let caught = std::panic::catch_unwind(|| check("the_oracle_tells_a_torn_batch", torn));
    assert!(caught.is_err(), "a torn batch goes unnoticed");
}

/// Returns the keys, compared in both directions.
fn keys_seen(db: &Db) -> Vec<Vec<u8>> {
    let seen: Vec<Vec<u8>> = db.iter().map(|item| item.expect("a scan").0.to_vec()).collect();
    let mut cursor = db.cursor(ReadOptions::default());
    let mut there = cursor.seek_last().expect("a scan");
    while there {
        there = cursor.prev().expect("a scan");
    }
    seen
}

/// Scans skip deleted keys at once while writers put into them: every later scan sees an
/// acknowledged put.
#[test]
fn what_is_put_into_a_gap_is_seen() {
    check("what_is_put_into_a_gap_is_seen", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for key in keys {
            db.put(key, "").expect("put");
            db.delete(key).expect("delete");
        }
        let put = ["c", "f", "z"];
        let acknowledged: Arc<[AtomicUsize; 3]> = Arc::default();
        let writers: Vec<_> = (0..put.len())
            .map(|at| {
                let (db, acknowledged) = (db.clone(), acknowledged.clone());
                thread::spawn(move || {
                    for round in 1..=2 {
                        db.delete(put[at]).expect("delete");
                        db.put(put[at], "again").expect("put");
                        acknowledged[at].store(round, Ordering::SeqCst);
                        let seen = keys_seen(&db);
                        assert!(seen.contains(&put[at].into()), "{} is not there", put[at]);
                        acknowledged[at].store(0, Ordering::SeqCst);
                    }
                    acknowledged[at].store(3, Ordering::SeqCst);
                })
            })
            .collect();
        for _ in 0..3 {
            let before = [0, 1, 2].map(|at| acknowledged[at].load(Ordering::SeqCst));
            let seen = keys_seen(&db);
            for at in (0..put.len()).filter(|&at| before[at] == 3) {
                assert!(seen.contains(&put[at].into()), "{} was put for good", put[at]);
            }
        }
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        assert_eq!(keys_seen(&db), put.map(Vec::from));
    });
}
