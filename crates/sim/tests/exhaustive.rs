//! The exhaustive loops over every feature: a share of their cases at every
//! change, all of them with `WINDROW_EXHAUSTIVE=1` (or by the program
//! `fault --exhaustive`).

use windrow_sim::exhaustive;
use windrow_testkit::sweep;

/// Of how many cases one is run at every change; it shares no factor with the
/// damages, so that each comes up at some operation.
const STEP: u64 = 5;

#[test]
fn no_crash_or_fault_at_any_operation_loses_anything() {
    let step = sweep::number("WINDROW_EXHAUSTIVE", STEP);
    exhaustive::all(step, None, &|line| eprintln!("{line}")).unwrap_or_else(|why| panic!("{why}"));
}
