//! Random operations against the model: 10,000 cases, each under an option set
//! of its own and with about half of the kinds of operation left out. A
//! failing case is shrunk and printed as a script for the corpus.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use windrow_testkit::cases::{self, Switching};
use windrow_testkit::compose::Raw;
use windrow_testkit::sweep;
use windrow_testkit::variant::Variant;

#[derive(Clone)]
struct Case {
    variant: usize,
    omitted: u32,
    seed: u64,
    raws: Vec<Raw>,
}

/// The script in the failure says more.
impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "(seed {}, {} numbers)", self.seed, self.raws.len())
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    let raw = (any::<u16>(), any::<[u8; 4]>()).prop_map(|(kind, operands)| Raw { kind, operands });
    let raws = prop::collection::vec(raw, 1..200);
    (any::<usize>(), any::<u32>(), any::<u64>(), raws)
        .prop_map(|(variant, omitted, seed, raws)| Case { variant, omitted, seed, raws })
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let variants: Vec<&Variant> = Variant::simulated().collect();
    let variant = variants[case.variant % variants.len()];
    cases::check(variant, case.seed, case.omitted, &case.raws, Switching::No)
        .map_err(TestCaseError::fail)
}

/// Cases run in parts, each with a generator of its own, on all processors.
#[test]
fn ten_thousand_random_cases() {
    const PARTS: u64 = 20;
    let cases_per_part = sweep::number("WINDROW_CASES", 10_000).div_ceil(PARTS) as u32;
    let part = |index: u64| {
        let config = Config {
            cases: cases_per_part,
            failure_persistence: None,
            max_shrink_iters: 20_000,
            ..Config::default()
        };
        let seed = sweep::number("WINDROW_SEED", 0) + index;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = proptest::test_runner::TestRng::from_seed(
            proptest::test_runner::RngAlgorithm::ChaCha,
            &bytes,
        );
        let mut runner = TestRunner::new_with_rng(config, rng);
        runner.run(&any_case(), |case| check(&case)).map_err(|e| e.to_string())
    };
    sweep::run(0..PARTS, part, |(), ()| ()).unwrap_or_else(|(part, why)| {
        panic!("part {part}: {why}");
    });
}
