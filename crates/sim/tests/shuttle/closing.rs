//! Closing and dropping a database with everything else under way (P14): no hang, nothing
//! acknowledged lost, and the directory is free when the call has returned.

use crate::machine::{DIR, Machine, WRITERS, draw, ledger, observe, spaces, unless_closed};
use crate::runner::check;
use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
use windrow::{Db, ErrorKind, Keyspace, Result, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Ops, When};
use windrow_testkit::ledger::{Ledger, within};

/// More than any schedule lets a writer write before the close.
const BATCHES: u64 = 8;

/// Starts writers, and one thread for each other use of a database; each goes on until it is told
/// that the database is closed.
fn everything(db: &Db, spaces: &[Keyspace; 2], ledger: &Arc<Ledger>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
        threads.push(thread::spawn(move || {
            for _ in 0..BATCHES {
                let sync = if draw(3) == 0 { WriteSync::Yes } else { WriteSync::No };
                let written = ledger.write(&db, &spaces, writer, sync);
                if unless_closed("write", written).is_none() {
                    return;
                }
            }
        }));
    }
    let (other_db, other_spaces) = (db.clone(), spaces.clone());
    let ledger = ledger.clone();
    threads.push(thread::spawn(move || meddle(&other_db, &other_spaces, &ledger)));
    threads
}

/// Runs one of the long operations.
fn meddle(db: &Db, spaces: &[Keyspace; 2], ledger: &Ledger) {
    let (what, result) = match draw(8) {
        0 => ("flush", db.flush()),
        1 => ("compact", db.compact()),
        2 => ("checkpoint", db.checkpoint("/scenario/copy")),
        3 => ("sync", db.sync()),
        4 => ("wait_idle", db.wait_idle()),
        5 => ("drop_keyspace", make_and_drop(db)),
        6 => ("set_policy", db.set_policy("leveled")),
        _ => ("observe", observe_twice(db, spaces, ledger)),
    };
    unless_closed(what, result);
}

/// Makes, fills and drops a keyspace, which a flush or the close may meet.
fn make_and_drop(db: &Db) -> Result<()> {
    db.keyspace("third")?.put("key", "value")?;
    db.drop_keyspace("third")
}

fn observe_twice(db: &Db, spaces: &[Keyspace; 2], ledger: &Ledger) -> Result<()> {
    let snapshot = db.snapshot();
    let first = ledger.observe(spaces, &snapshot)?;
    assert_eq!(first, ledger.observe(spaces, &snapshot)?, "a snapshot changed");
    Ok(())
}

/// Opens again, at once, and compares with the acknowledged batches.
fn reopen(machine: &Machine, ledger: &Ledger, exact: bool) {
    let acknowledged = ledger.acknowledged();
    let (db, _jobs) = machine.open(DIR);
    let seen = observe(&db, ledger);
    within("after the close", &acknowledged, &seen, &ledger.attempted());
    if exact {
        assert_eq!(seen, acknowledged, "a write that was refused is there");
    }
    db.verify().and_then(|report| report.into_result()).expect("verify");
    db.close().expect("close");
}

#[test]
fn close_with_everything_alive() {
    check("close_with_everything_alive", || {
        let machine = Machine::new();
        let (db, jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let threads = everything(&db, &spaces, &ledger);
        let second = {
            let db = db.clone();
            thread::spawn(move || db.close().expect("the second close"))
        };
        for _ in 0..draw(40) {
            thread::yield_now();
        }
        jobs.fire();
        db.close().expect("close");
        // The directory is free, even if other threads still have a handle.
        reopen(&machine, &ledger, false);
        for thread in threads.into_iter().chain([second]) {
            thread.join().expect("a thread of the scenario");
        }
        reopen(&machine, &ledger, true);
    });
}

/// A flush fails, which turns writing off while writers fill their slots of the log.
#[test]
fn close_with_writing_off_and_writers_alive() {
    check("close_with_writing_off_and_writers_alive", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let fault = Fault::new(FaultKind::Io, Ops::CREATE, When::MatchingFrom(0));
        machine.fs.inject(fault.on_path(".sst"));
        let writer = |writer| {
            let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
            thread::spawn(move || {
                let one_more = |_: &u64| ledger.write(&db, &spaces, writer, WriteSync::No).is_ok();
                (0..BATCHES).take_while(one_more).count()
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        let _ = spaces[0].flush();
        for _ in 0..draw(10) {
            thread::yield_now();
        }
        let _ = db.close();
        machine.fs.clear_faults();
        let (reopened, _reopened_jobs) = machine.open(DIR);
        let seen = observe(&reopened, &ledger);
        writers.into_iter().for_each(|writer| _ = writer.join().expect("a writer"));
        within("after the close", &ledger.acknowledged(), &seen, &ledger.attempted());
    });
}

#[test]
fn drop_with_an_iterator_and_a_keyspace_alive() {
    check("drop_with_an_iterator_and_a_keyspace_alive", || {
        let machine = Machine::new();
        let (db, jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        for writer in [0, 1, 0] {
            ledger.write(&db, &spaces, writer, WriteSync::No).expect("write");
        }
        let (flushed, compacted) = (spaces[0].clone(), spaces[1].clone());
        let threads = [
            thread::spawn(move || flushed.flush().expect("flush")),
            thread::spawn(move || compacted.compact().expect("compact")),
        ];
        let mut iter = db.iter();
        let first = iter.next().expect("an entry").expect("first");
        drop(jobs);
        drop(db);
        // The remaining handles keep it open, for all their operations.
        let rest: Vec<_> = iter.by_ref().map(|item| item.expect("item")).collect();
        assert_eq!(1 + rest.len(), 6, "after {first:?}");
        spaces[1].put("later", "value").expect("put");
        let refused = machine.try_open(DIR).err().expect("opened twice");
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        let join = || threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
        let let_go = move || match draw(2) {
            0 => drop((iter, spaces)),
            _ => drop((spaces, iter)),
        };
        // The last handle closes it, on any thread: after that the directory is free.
        match draw(2) {
            0 => (join(), let_go()),
            _ => (let_go(), join()),
        };
        reopen(&machine, &ledger, true);
        let (db, _jobs) = machine.open(DIR);
        let [_, other] = crate::machine::spaces(&db);
        assert!(other.get("later").expect("get").is_some());
    });
}

/// Bytes of a value: a memtable of two has room for two of them.
const VALUE_BYTES: usize = 900 << 10;

#[test]
fn drop_a_keyspace_while_all_are_flushed() {
    check("drop_a_keyspace_while_all_are_flushed", || {
        // With two memtables, unflushed bytes stop every writer.
        let machine = Machine::of("defaults");
        let (db, _jobs) = machine.open(DIR);
        for space in &spaces(&db) {
            space.put("key", "value").expect("put");
        }
        let flusher = {
            let db = db.clone();
            thread::spawn(move || match draw(2) {
                0 => db.flush().expect("flush"),
                _ => db.compact().expect("compact"),
            })
        };
        for _ in 0..draw(4) {
            thread::yield_now();
        }
        db.drop_keyspace("other").expect("drop");
        flusher.join().expect("the flusher");
        // The remaining keyspaces take as much as before, and no writer waits for a flush in vain.
        for n in 0..6 {
            db.put(format!("key{n}"), vec![7; VALUE_BYTES]).expect("put");
        }
        db.flush().expect("flush");
        db.close().expect("close");
    });
}

#[test]
fn close_during_the_drop_of_a_keyspace() {
    check("close_during_the_drop_of_a_keyspace", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let spaces = spaces(&db);
        for space in &spaces {
            space.put("key", "value").expect("put");
        }
        let dropper = {
            let db = db.clone();
            thread::spawn(move || unless_closed("drop_keyspace", db.drop_keyspace("other")))
        };
        for _ in 0..draw(30) {
            thread::yield_now();
        }
        db.close().expect("close");
        let dropped = dropper.join().expect("the dropper").is_some();
        let (db, _jobs) = machine.open(DIR);
        let names = db.keyspaces();
        assert_eq!(names.iter().any(|name| name == "other"), !dropped, "{names:?}");
        assert!(db.get("key").expect("get").is_some());
        db.close().expect("close");
    });
}
