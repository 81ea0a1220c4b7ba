//! Scenarios in which the machine fails while several threads write: the power is lost at any
//! moment (P1 to P3), or the log's device fails (P7).

use crate::machine::{DIR, Machine, WRITERS, draw, ledger, observe, spaces};
use crate::runner::check;
use shuttle::thread;
use windrow::{ErrorKind, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Ops, When};
use windrow_testkit::ledger::within;

/// Batches of each writer.
const BATCHES: u64 = 5;

#[test]
fn power_loss_leaves_a_prefix() {
    check("power_loss_leaves_a_prefix", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let writer = |writer| {
            let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
            thread::spawn(move || {
                for _ in 0..BATCHES {
                    let sync = if draw(2) == 0 { WriteSync::Yes } else { WriteSync::No };
                    ledger.write(&db, &spaces, writer, sync).expect("write");
                }
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        if draw(2) == 0 {
            spaces[draw(2) as usize].flush().expect("flush");
        }
        for _ in 0..draw(200) {
            thread::yield_now();
        }
        let durable = ledger.durable();
        let after = machine.fs.fork();
        let attempted = ledger.attempted();
        after.crash(draw(u64::MAX));
        let after = machine.with_files(after);
        let (reopened, _reopened_jobs) = after.open(DIR);
        within("after power loss", &durable, &observe(&reopened, &ledger), &attempted);
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
    });
}

#[test]
fn a_failure_stops_every_writer_and_loses_nothing() {
    check("a_failure_stops_every_writer_and_loses_nothing", || {
        let machine = Machine::new();
        let (db, _jobs) = machine.open(DIR);
        let (spaces, ledger) = (spaces(&db), ledger());
        let ops = [Ops::WRITE, Ops::SYNC, Ops::WRITE | Ops::SYNC | Ops::CREATE | Ops::SYNC_DIR];
        let on = ops[draw(3) as usize];
        machine.fs.inject(Fault::new(FaultKind::Io, on, When::MatchingFrom(draw(12))));
        let writer = |writer| {
            let (db, spaces, ledger) = (db.clone(), spaces.clone(), ledger.clone());
            thread::spawn(move || {
                for _ in 0..BATCHES {
                    let sync = if draw(2) == 0 { WriteSync::Yes } else { WriteSync::No };
                    if let Err(error) = ledger.write(&db, &spaces, writer, sync) {
                        let again = ledger.write(&db, &spaces, writer, sync);
                        let again = again.expect_err("a write after the failure of a write");
                        assert_eq!(again.kind(), ErrorKind::ReadOnly, "{error}, then {again}");
                        return;
                    }
                }
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        let _ = spaces[draw(2) as usize].flush();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        let (durable, attempted) = (ledger.durable(), ledger.attempted());
        // A close may fail by itself; after a failed write it must report the failure.
        let failed = db.write_error().is_some();
        assert!(db.close().is_err() || !failed, "a close that hides a failure");
        drop((db, spaces));
        machine.fs.clear_faults();
        machine.fs.crash(draw(u64::MAX));
        let (db, _jobs) = machine.open(DIR);
        within("after the failure", &durable, &observe(&db, &ledger), &attempted);
    });
}
