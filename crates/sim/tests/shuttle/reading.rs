//! Scenes in which nothing goes wrong: reads while everything else goes on
//! (P4), and copies (P20).

use crate::history::{History, WRITERS, observe, within};
use crate::machine::{DIR, Machine, draw, spaces};
use crate::runner::check;
use shuttle::thread;
use std::sync::Arc;
use windrow::{Db, Keyspace, Sync};

/// Batches of each writer: their values overflow the memtable about twice.
const BATCHES: u64 = 6;

fn maybe_sync() -> Sync {
    if draw(4) == 0 { Sync::Yes } else { Sync::No }
}

/// Starts the writers.
fn write(db: &Db, spaces: &[Keyspace; 2], history: &Arc<History>) -> Vec<thread::JoinHandle<()>> {
    let writer = |writer| {
        let (db, spaces, history) = (db.clone(), spaces.clone(), history.clone());
        thread::spawn(move || {
            for _ in 0..BATCHES {
                history.write(&db, &spaces, writer, maybe_sync()).expect("write");
                history.read_own(&spaces, writer).expect("read");
            }
        })
    };
    (0..WRITERS).map(writer).collect()
}

/// Snapshots, each observed twice, and an iterator that is carried along.
fn read(db: &Db, spaces: &[Keyspace; 2], history: &History, rounds: u32) {
    let mut last = [0; WRITERS];
    for _ in 0..rounds {
        let acknowledged = history.acknowledged();
        let snapshot = db.snapshot();
        let mut iter = spaces[0].prefix_at(&snapshot, "").peekable();
        let first = iter.peek().is_some();
        let seen = observe(spaces, &snapshot).expect("observe");
        within("a snapshot", acknowledged, seen, history.attempted());
        within("a later snapshot", last, seen, history.attempted());
        last = seen;
        let again = observe(spaces, &snapshot).expect("observe");
        assert_eq!(seen, again, "a snapshot changed");
        let rest = iter.map(|item| item.expect("item")).count();
        assert_eq!(first, rest > 0);
    }
}

fn close_and_compare(machine: &Machine, db: Db, history: &History) {
    db.verify().and_then(|report| report.into_result()).expect("verify");
    db.close().expect("close");
    let (db, _jobs) = machine.open(DIR);
    let seen = observe(&spaces(&db), &db.snapshot()).expect("observe");
    assert_eq!(seen, history.acknowledged(), "after a clean close");
}

#[test]
fn reads_stand_still_while_the_tree_moves() {
    check("reads_stand_still_while_the_tree_moves", || {
        let machine = Machine::new();
        let (db, jobs) = machine.open(DIR);
        let (spaces, history) = (spaces(&db), Arc::new(History::default()));
        let writers = write(&db, &spaces, &history);
        let reader = {
            let (db, spaces, history) = (db.clone(), spaces.clone(), history.clone());
            thread::spawn(move || read(&db, &spaces, &history, 4))
        };
        db.flush().expect("flush");
        jobs.fire();
        db.compact().expect("compact");
        read(&db, &spaces, &history, 1);
        for thread in writers.into_iter().chain([reader]) {
            thread.join().expect("a thread of the scene");
        }
        drop(jobs);
        drop(spaces);
        close_and_compare(&machine, db, &history);
    });
}

#[test]
fn a_copy_is_one_moment() {
    check("a_copy_is_one_moment", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, history) = (spaces(&db), Arc::new(History::default()));
        let writers = write(&db, &spaces, &history);
        for _ in 0..draw(3) {
            read(&db, &spaces, &history, 1);
        }
        let before = history.acknowledged();
        db.checkpoint("/scene/copy").expect("checkpoint");
        let after = history.attempted();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        let (copy, _copy_jobs) = machine.open("/scene/copy");
        let seen = observe(&crate::machine::spaces(&copy), &copy.snapshot()).expect("observe");
        within("a copy", before, seen, after);
        drop(copy);
        drop(spaces);
        close_and_compare(&machine, db, &history);
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
                    History::default().write(&db, half, 0, Sync::No).expect("write");
                }
            })
        };
        observe(&spaces, &db.snapshot()).expect("observe");
        writer.join().expect("the writer");
    };
    let caught = std::panic::catch_unwind(|| check("the_oracle_tells_a_torn_batch", torn));
    assert!(caught.is_err(), "a torn batch goes unnoticed");
}
