//! Every byte of a closed database flipped, every file cut at every length (P5a).

use windrow_testkit::flip::{Outcome, Specimen};
use windrow_testkit::sweep;
use windrow_testkit::variant::{VARIANTS, Variant};

fn variant(name: &str) -> &'static Variant {
    VARIANTS.iter().find(|v| v.name == name).expect("a variant")
}

fn sweep(name: &str, specimen: &Specimen) {
    sweep_part(name, specimen, 0, 1);
}

/// Every `step`-th case from `first` on.
fn sweep_part(name: &str, specimen: &Specimen, first: usize, step: usize) {
    let cases: Vec<_> = specimen.cases().into_iter().skip(first).step_by(step).collect();
    let check = |index: u64| {
        let case = &cases[index as usize];
        specimen.check(case).map_err(|why| format!("{case}: {why}"))
    };
    let outcome = sweep::run(0..cases.len() as u64, check, Outcome::plus)
        .unwrap_or_else(|(_, why)| panic!("{name}: {why}"));
    let outcome = outcome.unwrap_or_default();
    eprintln!("{name}: {:?}: {} cases: {outcome:?}", specimen.files(), cases.len());
    // A sweep that finds next to nothing has damaged nothing.
    assert!(outcome.refused > 100 && outcome.found > 1_000, "{outcome:?}");
    // What no read meets, `verify` does.
    assert_eq!(outcome.unnoticed, 0, "{outcome:?}");
}

#[test]
fn every_byte_of_a_closed_database_is_guarded() {
    sweep("small", &Specimen::new(variant("small")).expect("a database to damage"));
}

#[test]
fn every_byte_is_guarded_with_compression() {
    sweep("lz4", &Specimen::new(variant("lz4")).expect("a database to damage"));
}

/// What a preset adds to the bytes: lanes, logs with epochs, statistics. A
/// fifth of the cases each, not the same ones for all.
#[test]
fn the_trees_of_every_preset_are_guarded() {
    for (i, (preset, _)) in windrow_plan::preset::PRESETS.iter().enumerate() {
        let specimen = Specimen::new(variant(preset)).expect("a database to damage");
        sweep_part(preset, &specimen, i, 5);
    }
}

#[test]
fn every_byte_is_guarded_with_partitions() {
    let name = "partitioned index";
    sweep(name, &Specimen::large(variant(name)).expect("a database to damage"));
}
