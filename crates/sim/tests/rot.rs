//! Damage to databases at rest: closed ones (P5a), crashed ones (P5b), every file and kind of
//! damage, with `verify` and `repair` judged by the same damages. This is the part of every change;
//! `cargo run --release -p windrow-sim --bin rot` does all of it. `WINDROW_ROT=n` runs only one of
//! n of the part.

use windrow_sim::rot::{
    self, CLOSED, CRASHES, Case, Damage, Density, Outcome, Plan, Repaired, Script, Specimen,
};
use windrow_testkit::sweep;
use windrow_testkit::variant::Variant;

/// One pair of sectors in this number changes places.
const PAIRS_STEP: u64 = 101;

/// Returns a step between cases, `WINDROW_ROT` times as long. Every second case cuts a file and the
/// one after it flips a bit of it: an even step would run only one of the two.
fn thinned(step: u64) -> u64 {
    match sweep::number("WINDROW_ROT", 1) {
        1 => step,
        times => (step * times) | 1,
    }
}

fn specimen(name: &str, script: &Script) -> Specimen {
    Specimen::new(Variant::named(name), script)
        .unwrap_or_else(|why| panic!("{name}, {}: {why}", script.name))
}

/// Checks every `step`-th damage from `first` on.
fn check(name: &str, script: &Script, (first, step): (u64, u64)) -> Outcome {
    let (specimen, step) = (specimen(name, script), thinned(step));
    let plan = Plan::new(&specimen, Density::Thin { pairs_step: PAIRS_STEP });
    let place = |index: u64| plan.case(first + index * step);
    let one = |index: u64| {
        let case = place(index);
        rot::check(&specimen, &case).map_err(|why| format!("{case}: {why}"))
    };
    let count = plan.len().saturating_sub(first).div_ceil(step);
    let outcome = sweep::run(0..count, one, Outcome::plus)
        .unwrap_or_else(|(_, why)| panic!("{name}, {}: {why}", script.name))
        .unwrap_or_default();
    eprintln!("{name}, {}: {outcome:?}", script.name);
    // A sweep that finds almost nothing has damaged nothing.
    assert!(outcome.refused > count / 100 && outcome.found > count / 100, "{outcome:?}");
    outcome
}

#[test]
fn every_byte_of_a_closed_database_is_guarded() {
    let outcome = check("small", &CLOSED, (0, 1));
    assert_eq!(outcome.lost_silent + outcome.lost_reported, 0, "{outcome:?}");
}

#[test]
fn every_byte_is_guarded_with_compression() {
    check("lz4", &CLOSED, (0, 3));
}

#[test]
fn every_byte_is_guarded_with_partitions() {
    check("partitioned index", &CLOSED.enlarged(), (0, 3));
}

/// The bytes that a preset adds: level-0 partitions, SST-logs with epochs, statistics. A part of
/// the cases for each, not the same part for all.
#[test]
fn the_trees_of_every_preset_are_guarded() {
    for (i, (preset, _)) in windrow_plan::preset::PRESETS.iter().enumerate() {
        check(preset, &CLOSED, (i as u64, 5));
        let crash = &CRASHES[i % CRASHES.len()];
        check(preset, crash, (i as u64, 11));
    }
}

#[test]
fn crashed_databases_lose_the_last_sync_group_at_most() {
    for script in CRASHES {
        check("small", script, (0, 3));
    }
}

/// Misplaced writes: within files, between them, from earlier images and from
/// another database (P6, P12).
#[test]
fn misplaced_writes_are_noticed() {
    for script in CRASHES.iter().chain([&CLOSED]) {
        let specimen = specimen("tiny blocks", script);
        let one = |seed: u64| {
            let case = rot::misplaced(&specimen, seed);
            rot::check(&specimen, &case).map_err(|why| format!("{case}: {why}"))
        };
        let count = 2_000 / thinned(1);
        let outcome = sweep::run(0..count, one, Outcome::plus)
            .unwrap_or_else(|(seed, why)| panic!("{}, seed {seed}: {why}", script.name));
        let outcome = outcome.unwrap_or_default();
        eprintln!("{}: {outcome:?}", script.name);
        assert!(outcome.refused + outcome.found > count / 4, "{outcome:?}");
    }
}

#[test]
fn repair_opens_everything_and_invents_nothing() {
    for (i, script) in CRASHES.iter().chain([&CLOSED]).enumerate() {
        let specimen = specimen("small", script);
        let plan = Plan::new(&specimen, Density::Thin { pairs_step: PAIRS_STEP * 7 });
        let step = thinned(23);
        let one = |index: u64| {
            let case = plan.case(i as u64 + index * step);
            rot::check_repair(&specimen, &case).map_err(|why| format!("{case}: {why}"))
        };
        let repaired = sweep::run(0..(plan.len() - i as u64) / step, one, Repaired::plus)
            .unwrap_or_else(|(_, why)| panic!("{}: {why}", script.name));
        let repaired = repaired.unwrap_or_default();
        eprintln!("{}: {repaired:?}", script.name);
        assert!(repaired.whole > 0 && repaired.rebuilt > 0 && repaired.missing > 0, "{repaired:?}");
    }
}

/// Also where a power loss brings back logs whose unlink was not durable.
#[test]
fn a_repair_without_a_manifest_keeps_what_the_logs_hold() {
    for name in ["small", "tiny blocks", "lz4", "partitioned index"] {
        for script in CRASHES {
            let specimen = specimen(name, script);
            let logs = specimen.files().filter(|(file, _)| file.ends_with(".wal")).count();
            assert!(logs > 1, "{name}, {}: the log did not go on in another", script.name);
            let manifests: Vec<String> = specimen
                .files()
                .filter(|(file, _)| file.starts_with("MANIFEST"))
                .map(|(file, _)| file.to_owned())
                .collect();
            for file in manifests {
                let case = Case { file, damage: Damage::Gone };
                if let Err(why) = rot::check_repair(&specimen, &case) {
                    panic!("{name}, {}: {case}: {why}", script.name);
                }
            }
        }
    }
}
