//! The exhaustive loops over every feature: a share of their cases at every
//! change, all of them with `WINDROW_EXHAUSTIVE=1` (or by the program
//! `fault --exhaustive`).

use windrow_sim::features::FEATURES;
use windrow_sim::{exhaustive, killed_backups, killed_repairs};
use windrow_testkit::sweep;

/// One in this number of cases is run at every change. It shares no factor with the number of
/// damages, so that each is used at some operation.
const STEP: u64 = 7;

#[test]
fn no_crash_or_fault_at_any_operation_loses_anything() {
    for feature in FEATURES {
        run(feature.name);
    }
}

#[test]
fn a_killed_repair_that_is_run_again_saves_what_one_run_saves() {
    run(killed_repairs::NAME);
}

#[test]
fn a_killed_backup_that_is_run_again_survives_a_power_loss() {
    run(killed_backups::NAME);
}

fn run(name: &str) {
    let step = sweep::number("WINDROW_EXHAUSTIVE", STEP);
    let done = exhaustive::all(step, Some(name), &|line| eprintln!("{line}"));
    done.unwrap_or_else(|why| panic!("{why}"));
}
