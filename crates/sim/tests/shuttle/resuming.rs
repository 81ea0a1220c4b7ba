//! Scenarios in which a failing device turns writing off, and `resume` turns it on again, called by
//! two threads while others write and read.

use crate::machine::{self, DIR, Machine, WRITERS, draw, spaces};
use crate::runner::check;
use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::{Db, Error, ErrorKind, Keyspace, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Ops, When};
use windrow_sim::together::resume_for_good;
use windrow_testkit::ledger::{Counts, Ledger, within};

/// Batches that each writer tries to write.
const BATCHES: u64 = 4;

/// The ledger of the writers; and a bit for each batch that failed for good, and for each that was
/// seen. The atomics are the standard library's, as those of the ledger are.
struct History {
    ledger: Arc<Ledger>,
    refused: [AtomicU64; WRITERS],
    seen: [AtomicU64; WRITERS],
}

impl History {
    fn new() -> Arc<History> {
        let (refused, seen) = Default::default();
        Arc::new(History { ledger: machine::ledger(), refused, seen })
    }

    /// Notes that a writer was told that its last batch is absent, and always will be.
    fn refused(&self, writer: usize) {
        let number = self.ledger.attempted()[writer];
        self.refused[writer].fetch_or(1 << number, Ordering::SeqCst);
    }

    /// Observes a database, and notes the batches that were seen.
    fn look(&self, db: &Db) -> Counts {
        let counts = machine::observe(db, &self.ledger);
        for (seen, number) in self.seen.iter().zip(&counts) {
            seen.fetch_or(1 << number, Ordering::SeqCst);
        }
        counts
    }

    /// Asserts that no look has ever found a refused batch.
    fn assert_nothing_refused_was_seen(&self) {
        for (writer, (refused, seen)) in self.refused.iter().zip(&self.seen).enumerate() {
            let bad = refused.load(Ordering::SeqCst) & seen.load(Ordering::SeqCst);
            assert_eq!(bad, 0, "writer {writer}: batches (by bit) were refused, and seen");
        }
    }
}

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
        match history.ledger.write(db, spaces, writer, sync) {
            Ok(()) => history.ledger.read_own(spaces, writer).expect("read"),
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
fn resume_and_read(db: &Db, history: &History) {
    let mut last = vec![0; WRITERS];
    for _ in 0..2 {
        for _ in 0..draw(30) {
            thread::yield_now();
        }
        if let Err(error) = db.resume() {
            assert!(is_of_the_device(&error), "resume: {error}");
        }
        let acknowledged = history.ledger.acknowledged();
        let seen = history.look(db);
        within("during a resume", &acknowledged, &seen, &history.ledger.attempted());
        within("later", &last, &seen, &history.ledger.attempted());
        last = seen;
    }
}

fn start(db: &Db, spaces: &[Keyspace; 2], history: &Arc<History>) -> Vec<JoinHandle<()>> {
    let spawn = |what: fn(&Db, &[Keyspace; 2], &History, usize), number| {
        let (db, spaces, history) = (db.clone(), spaces.clone(), history.clone());
        thread::spawn(move || what(&db, &spaces, &history, number))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(|writer| spawn(write, writer)).collect();
    threads.push(spawn(|db, _, history, _| resume_and_read(db, history), 0));
    threads
}

/// Fails once more, resumes, and loses the power at once.
fn fail_resume_and_crash(machine: &Machine, db: &Db, spaces: &[Keyspace; 2], history: &History) {
    machine.fs.inject(Fault::new(FaultKind::Io, Ops::WRITE, When::Matching(0)).on_path(".wal"));
    history.ledger.write(db, spaces, 0, WriteSync::No).expect_err("a write to a broken log");
    history.refused(0);
    let seen = history.look(db);
    db.resume().expect("resume");
    let after = machine.fs.fork();
    after.crash(draw(u64::MAX));
    let after = machine.with_files(after);
    let (db, _jobs) = after.open(DIR);
    assert_eq!(history.look(&db), seen, "after power loss");
    db.close().expect("close");
}

/// Checks that writing is on: new writes and all earlier ones are present after a clean close.
fn write_and_reopen(machine: &Machine, db: Db, spaces: [Keyspace; 2], history: &History) {
    (0..WRITERS).for_each(|w| history.ledger.write(&db, &spaces, w, WriteSync::No).expect("write"));
    db.verify().and_then(|report| report.into_result()).expect("verify");
    db.close().expect("close");
    drop((db, spaces));
    let (db, _jobs) = machine.open(DIR);
    assert_eq!(history.look(&db), history.ledger.acknowledged(), "after a clean close");
}

#[test]
fn resuming_loses_nothing_and_brings_nothing_back() {
    check("resuming_loses_nothing_and_brings_nothing_back", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, history) = (spaces(&db), History::new());
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
        let (seen, ledger) = (history.look(&db), &history.ledger);
        within("after the failure", &ledger.acknowledged(), &seen, &ledger.attempted());
        match draw(2) {
            0 => fail_resume_and_crash(&machine, &db, &spaces, &history),
            _ => write_and_reopen(&machine, db, spaces, &history),
        }
        history.assert_nothing_refused_was_seen();
    });
}
