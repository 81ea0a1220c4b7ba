//! Seeds of the crash harness. `WINDROW_SEEDS=n` runs more of them than the
//! 2,000 of every change; a failure prints the line that repeats it.

use windrow_env::testing::{Fault, FaultKind, Ops, When};
use windrow_testkit::crash::{self, Summary};
use windrow_testkit::sweep;

#[test]
fn no_crash_loses_or_invents_anything() {
    let (first, count) =
        (sweep::number("WINDROW_SEED_FIRST", 0), sweep::number("WINDROW_SEEDS", 2_000));
    let total = sweep::run(first..first + count, |seed| crash::run(seed, None), Summary::plus)
        .unwrap_or_else(|(seed, why)| {
            panic!(
                "seed {seed}: {why}\nrepeat: WINDROW_SEED={seed} cargo test -p windrow-testkit \
                 --test crash crash_one -- --nocapture"
            )
        });
    let total = total.unwrap_or_default();
    eprintln!("{count} seeds: {total:?}");
    // A harness that crashes nothing proves nothing.
    assert!(total.power_losses > count && total.in_recovery > count / 10, "{total:?}");
    assert!(total.batches > 20 * count, "{total:?}");
}

/// One seed, with every operation printed: `WINDROW_SEED=n cargo test -p
/// windrow-testkit --test crash crash_one -- --nocapture`.
#[test]
fn crash_one() {
    let Ok(seed) = std::env::var("WINDROW_SEED") else { return };
    // SAFETY is not at stake: the variable only turns printing on.
    let seed: u64 = seed.parse().expect("WINDROW_SEED is a number");
    let summary = crash::run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    eprintln!("{summary:?}");
}

/// Seeds beyond the usual ones that have found something.
#[test]
fn seeds_that_once_failed() {
    // An old log's bytes stood, whole and valid, in a new log's unsynced header.
    const SEEDS: &[u64] = &[102_550];
    for &seed in SEEDS {
        crash::run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn a_seed_repeats() {
    for seed in 0..20 {
        assert_eq!(crash::run(seed, None), crash::run(seed, None), "seed {seed}");
    }
}

/// The canary: a file system whose syncs do nothing must be found out, whichever
/// files it lies about.
#[test]
fn a_lying_file_system_is_caught() {
    let lies = [
        ("the log", Ops::SYNC, ".wal"),
        ("tables", Ops::SYNC, ".sst"),
        ("the manifest", Ops::SYNC, "MANIFEST"),
        ("directories", Ops::SYNC_DIR, ""),
    ];
    for (what, on, path) in lies {
        let lie = Fault::new(FaultKind::LostSync, on, When::MatchingFrom(0)).on_path(path);
        let found = sweep::run(0..400, |seed| crash::run(seed, Some(&lie)), Summary::plus);
        match found {
            Ok(_) => panic!("a file system that never syncs {what} goes unnoticed"),
            Err((seed, why)) => eprintln!("{what}: caught by seed {seed}: {why}"),
        }
    }
}
