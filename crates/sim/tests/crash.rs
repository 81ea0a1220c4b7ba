//! Seeds of the crash harness. `WINDROW_SEEDS=n` runs more than the 2,000 of every change; the
//! program `fault` runs any number, and shrinks a failing one.

use windrow_env::testing::{Fault, Ops, When};
use windrow_sim::crash::{self, Summary, repeat_line};
use windrow_sim::scenario::{LIES, Settings};
use windrow_testkit::sweep;

fn run(seed: u64, settings: &Settings) -> Result<Summary, String> {
    let failed = |failure| format!("{failure}\nrepeat: {}", repeat_line(seed, settings));
    crash::run(seed, settings).map_err(failed)
}

#[test]
fn no_crash_loses_or_invents_anything() {
    let (first, count) =
        (sweep::number("WINDROW_SEED_FIRST", 0), sweep::number("WINDROW_SEEDS", 2_000));
    let settings = Settings::default();
    let total = sweep::run(first..first + count, |seed| run(seed, &settings), Summary::plus)
        .unwrap_or_else(|(seed, why)| panic!("seed {seed}: {why}"));
    let total = total.unwrap_or_default();
    eprintln!("{count} seeds: {total:?}");
    // A harness that crashes nothing proves nothing.
    assert!(total.crashes() >= 10 * count && total.in_recovery > count / 4, "{total:?}");
    assert!(total.turns > 200 * count && total.failing > count / 4, "{total:?}");
    assert!(total.fed > count, "{total:?}");
}

/// Seeds beyond the usual ones that once found a fault.
#[test]
fn seeds_that_once_failed() {
    // 401: a link call that failed had made the link; the copy in its place truncated the source.
    // 3006198: a temporary file of a manifest that is gone; the open reused its number
    // and removed, with the leftover, what it had just renamed.
    const SEEDS: &[u64] = &[401, 3_006_198];
    for &seed in SEEDS {
        run(seed, &Settings::default()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn a_seed_repeats() {
    let settings = Settings::default();
    for seed in 0..40 {
        assert_eq!(crash::run(seed, &settings), crash::run(seed, &settings), "seed {seed}");
    }
}

/// The canary: a file system whose syncs do nothing must be detected, whichever files it lies
/// about.
#[test]
fn a_file_system_that_never_syncs_is_caught() {
    for &(kinds, on, path) in LIES.iter().filter(|(_, on, _)| !on.intersects(Ops::WRITE)) {
        for &kind in kinds {
            must_be_caught(Fault::new(kind, on, When::MatchingFrom(0)).on_path(path));
        }
    }
}

/// Each lie of the hazard `lies` must have an effect: if no damage is excused, it must be detected,
/// also when it happens only now and then.
#[test]
fn every_lie_is_caught_where_none_is_excused() {
    for &(kinds, on, path) in LIES {
        for &kind in kinds {
            must_be_caught(Fault::new(kind, on, When::Probability(0.1)).on_path(path));
        }
    }
}

fn must_be_caught(lie: Fault) {
    let settings = Settings { sabotage: Some(lie.clone()), ..Settings::default() };
    match sweep::run(0..400, |seed| run(seed, &settings), Summary::plus) {
        Ok(_) => panic!("it goes unnoticed: {lie:?}"),
        Err((seed, why)) => eprintln!("caught by seed {seed}: {lie:?}: {why}"),
    }
}
