//! A random walk through the policies: 5,000 cases that switch at every reopen
//! and every few operations while they run, with snapshots and cursors open,
//! against the model. Any tree that one policy leaves must suit every other.

use windrow_env::testing::Rng;
use windrow_testkit::cases::{self, Switching};
use windrow_testkit::compose::Raw;
use windrow_testkit::sweep;
use windrow_testkit::variant::{POLICIES, Variant};

/// One case, made from its seed: `WINDROW_SEED=n WINDROW_CASES=1` repeats it.
fn walk(seed: u64) -> Result<(), String> {
    let variants: Vec<&'static Variant> = Variant::simulated().collect();
    let mut rng = Rng::new(seed);
    let variant = variants[rng.next_u64() as usize % variants.len()];
    let omitted = rng.next_u64() as u32;
    let count = 20 + rng.next_u64() as usize % 180;
    let raws: Vec<Raw> = (0..count).map(|_| Raw::draw(&mut rng)).collect();
    cases::check(variant, seed, omitted, &raws, Switching::Always)
}

#[test]
fn five_thousand_walks_through_the_policies() {
    let first = sweep::number("WINDROW_SEED", 0);
    let count = sweep::number("WINDROW_CASES", 5_000);
    sweep::run(first..first + count, walk, |(), ()| ()).unwrap_or_else(|(seed, why)| {
        panic!("WINDROW_SEED={seed} WINDROW_CASES=1: {why}");
    });
}

#[test]
fn every_policy_of_the_walk_is_valid_and_prints_what_it_parses_to() {
    for text in POLICIES {
        let policy: windrow_plan::Policy = text.parse().unwrap();
        assert_eq!(policy.to_string().parse::<windrow_plan::Policy>().unwrap(), policy);
    }
}
