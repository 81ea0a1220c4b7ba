//! A fault at every operation index of a workload, once and for ever, and
//! every size of a disk that is too small.

use windrow_env::testing::{Fault, FaultKind, Ops, When};
use windrow_testkit::faults::{check, check_full, measure};
use windrow_testkit::sweep;
use windrow_testkit::variant::VARIANTS;

fn every(what: &str, count: u64, case: impl Fn(u64) -> Result<(), String> + Sync) {
    sweep::run(0..count, case, |(), ()| ()).unwrap_or_else(|(index, why)| {
        panic!("{what} at operation {index} of {count}: {why}");
    });
}

#[test]
fn every_operation_fails_once() {
    let extent = measure(&VARIANTS[0]).expect("the workload runs");
    assert!(extent.mutating > 100 && extent.reading > 20, "{extent:?}");
    for kind in [FaultKind::Io, FaultKind::NoSpace] {
        every(&format!("{kind:?} once"), extent.mutating, |index| {
            let fault = Fault::new(kind, Ops::MUTATING, When::Operation(index));
            check(&VARIANTS[0], &fault)
        });
    }
}

#[test]
fn every_operation_fails_and_so_do_all_after_it() {
    let extent = measure(&VARIANTS[0]).expect("the workload runs");
    for kind in [FaultKind::Io, FaultKind::NoSpace] {
        every(&format!("{kind:?} for ever"), extent.mutating, |index| {
            let fault = Fault::new(kind, Ops::MUTATING, When::OperationFrom(index));
            check(&VARIANTS[0], &fault)
        });
    }
}

#[test]
fn every_read_fails() {
    let extent = measure(&VARIANTS[0]).expect("the workload runs");
    for kind in [FaultKind::Io, FaultKind::TooManyFiles] {
        for forever in [false, true] {
            every(&format!("{kind:?} of reads, for ever: {forever}"), extent.reading, |index| {
                let when =
                    if forever { When::OperationFrom(index) } else { When::Operation(index) };
                check(&VARIANTS[0], &Fault::new(kind, Ops::READING, when))
            });
        }
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    // From no room at all to enough, in steps smaller than a block.
    every("a full disk", 400, |step| check_full(&VARIANTS[0], step * 1_000));
}
