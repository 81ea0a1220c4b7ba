//! Databases in lockstep under different options: CI's share of the seeds.

use windrow_sim::metamorphic::{self, Count};
use windrow_testkit::sweep;

/// Operations of each seed.
const OPERATIONS: u64 = 1_500;

#[test]
fn databases_in_lockstep_agree() {
    let start = sweep::number("WINDROW_SEED", 0);
    let seeds = sweep::number("WINDROW_CASES", 48);
    let run = |seed| metamorphic::run(seed, OPERATIONS);
    let count = sweep::run(start..start + seeds, run, Count::plus).unwrap_or_else(|(seed, why)| {
        panic!(
            "{why}\ncargo run --release -p windrow-sim --bin metamorphic -- --seeds 1 \
             --start {seed} --operations {OPERATIONS}"
        );
    });
    let count = count.unwrap_or_default();
    eprintln!("{count:?}");
    // The reads are compared: a workload that reads nothing proves nothing.
    assert!(count.iterator_steps > 1_000 * seeds && count.switches > 6 * seeds, "{count:?}");
}
