//! Scenarios in which a failing device turns writing off, and `resume` turns it on again, called by
//! two threads while others write and read.

use crate::history::{History, WRITERS, within};
use crate::machine::{DIR, Machine, draw, spaces};
use crate::runner::check;
use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
use windrow::{Db, Error, ErrorKind, Keyspace, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Ops, When};

/// Batches that each writer tries to write.
const BATCHES: u64 = 4;
/// The number of background failures that may have happened before the device worked again.
const FAILURES_MAX: usize = 16;

/// Makes some operations fail from now on, as on a full device or a broken one.
fn fail_some(machine: &Machine) {
    let ops = [
        (Ops::WRITE, ".wal"),
        (Ops::SYNC, ".wal"),
        (Ops::SYNC, ""),
        (Ops::RESERVE | Ops::CREATE, ""),
        (Ops::WRITE | Ops::SYNC | Ops::CREATE | Ops::SYNC_DIR | Ops::RENAME, ""),
    ];
    let (on, path) = ops[draw(ops.len() as u64) as usize];
    let kind = if draw(2) == 0 { FaultKind::NoSpace } else { FaultKind::Io };
    let when = if draw(3) == 0 { When::Matching(draw(12)) } else { When::MatchingFrom(draw(12)) };
    machine.fs.inject(Fault::new(kind, on, when).on_path(path));
}

/// Whether the device's failure explains the error.
fn is_of_the_device(error: &Error) -> bool {
    matches!(error.first_failure().kind(), ErrorKind::NoSpace | ErrorKind::Io)
}

/// Writes all batches, refused or not.
fn write(db: &Db, spaces: &[Keyspace; 2], history: &History, writer: usize) {
    for _ in 0..BATCHES {
        let sync = if draw(3) == 0 { WriteSync::Yes } else { WriteSync::No };
        match history.write(db, spaces, writer, sync) {
            Ok(()) => history.read_own(spaces, writer).expect("read"),
            Err(error) => {
                let off = error.kind() == ErrorKind::ReadOnly;
                assert!(off || is_of_the_device(&error), "write: {error}");
                // A batch whose sync failed may be seen already, and its error says so.
                if !sync.is_yes() || error.kind() != ErrorKind::OutcomeUnknown {
                    history.refused(writer);
                }
                thread::yield_now();
            }
        }
    }
}

/// Resumes, perhaps in vain, and reads.
fn resume_and_read(db: &Db, spaces: &[Keyspace; 2], history: &History) {
    let mut last = [0; WRITERS];
    for _ in 0..2 {
        for _ in 0..draw(30) {
            thread::yield_now();
        }
        if let Err(error) = db.resume() {
            assert!(is_of_the_device(&error), "resume: {error}");
        }
        let acknowledged = history.acknowledged();
        let seen = history.look(spaces, &db.snapshot());
        within("during a resume", acknowledged, seen, history.attempted());
        within("later", last, seen, history.attempted());
        last = seen;
    }
}

fn start(db: &Db, spaces: &[Keyspace; 2], history: &Arc<History>) -> Vec<JoinHandle<()>> {
    let spawn = |what: fn(&Db, &[Keyspace; 2], &History, usize), number| {
        let (db, spaces, history) = (db.clone(), spaces.clone(), history.clone());
        thread::spawn(move || what(&db, &spaces, &history, number))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(|writer| spawn(write, writer)).collect();
    threads.push(spawn(|db, spaces, history, _| resume_and_read(db, spaces, history), 0));
    threads
}

/// Resumes on a working device until writing stays on, although earlier failures may still come.
fn resume_for_good(db: &Db) {
    for _ in 0..FAILURES_MAX {
        db.resume().expect("resume");
        if db.wait_idle().is_ok() {
            return;
        }
    }
    panic!("writing is turned off again and again: {:?}", db.write_error());
}

/// Fails once more, resumes, and loses the power at once.
fn fail_resume_and_crash(machine: &Machine, db: &Db, spaces: &[Keyspace; 2], history: &History) {
    machine.fs.inject(Fault::new(FaultKind::Io, Ops::WRITE, When::Matching(0)).on_path(".wal"));
    history.write(db, spaces, 0, WriteSync::No).expect_err("a write to a broken log");
    history.refused(0);
    let seen = history.look(spaces, &db.snapshot());
    db.resume().expect("resume");
    let after = machine.fs.fork();
    after.crash(draw(u64::MAX));
    let after = machine.with_files(after);
    let (db, _jobs) = after.open(DIR);
    assert_eq!(history.look(&self::spaces(&db), &db.snapshot()), seen, "after power loss");
    db.close().expect("close");
}

/// Checks that writing is on: new writes and all earlier ones are present after a clean close.
fn write_and_reopen(machine: &Machine, db: Db, spaces: [Keyspace; 2], history: &History) {
    (0..WRITERS).for_each(|w| history.write(&db, &spaces, w, WriteSync::No).expect("write"));
    db.verify().and_then(|report| report.into_result()).expect("verify");
    db.close().expect("close");
    drop((db, spaces));
    let (db, _jobs) = machine.open(DIR);
    let seen = history.look(&self::spaces(&db), &db.snapshot());
    assert_eq!(seen, history.acknowledged(), "after a clean close");
}

#[test]
fn resuming_loses_nothing_and_brings_nothing_back() {
    check("resuming_loses_nothing_and_brings_nothing_back", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, history) = (spaces(&db), Arc::new(History::default()));
        fail_some(&machine);
        let threads = start(&db, &spaces, &history);
        if draw(2) == 0 {
            let _ = spaces[draw(2) as usize].flush();
        }
        for _ in 0..draw(60) {
            thread::yield_now();
        }
        machine.fs.clear_faults();
        db.resume().expect("resume");
        threads.into_iter().for_each(|thread| thread.join().expect("a thread of the scenario"));
        resume_for_good(&db);
        let seen = history.look(&spaces, &db.snapshot());
        within("after the failure", history.acknowledged(), seen, history.attempted());
        match draw(2) {
            0 => fail_resume_and_crash(&machine, &db, &spaces, &history),
            _ => write_and_reopen(&machine, db, spaces, &history),
        }
        history.assert_nothing_refused_was_seen();
    });
}
