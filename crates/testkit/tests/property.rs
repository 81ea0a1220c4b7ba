//! Random operations against the model: 10,000 cases, each under an option set
//! of its own and with about half of the kinds of operation left out. A
//! failing case is shrunk and printed as a script for the corpus.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use windrow_testkit::compose::{Composer, Raw};
use windrow_testkit::op::{Op, Subject};
use windrow_testkit::script;
use windrow_testkit::subject::Database;
use windrow_testkit::sweep;
use windrow_testkit::text;
use windrow_testkit::variant::{Ground, Variant};
use windrow_testkit::world::World;

#[derive(Clone)]
struct Case {
    variant: usize,
    omitted: u32,
    seed: u64,
    raws: Vec<Raw>,
}

/// The script in the failure says it better.
impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "(seed {}, {} numbers)", self.seed, self.raws.len())
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let raw = (any::<u16>(), any::<[u8; 4]>()).prop_map(|(kind, operands)| Raw { kind, operands });
    let raws = prop::collection::vec(raw, 1..200);
    (any::<usize>(), any::<u32>(), any::<u64>(), raws)
        .prop_map(|(variant, omitted, seed, raws)| Case { variant, omitted, seed, raws })
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let variants: Vec<&Variant> = Variant::simulated().collect();
    let variant = variants[case.variant % variants.len()];
    let mut model = script::model();
    let mut done: Vec<Op> = Vec::new();
    let fail = |done: &[Op], why: String| {
        TestCaseError::fail(format!("{}\n{}{why}", variant.name, text::script_text(done)))
    };
    let options = variant.options().map_err(|e| fail(&done, e.to_string()))?;
    let world = World::new(Ground::Simulated, case.seed);
    let mut database = Database::open(world, options).map_err(|e| fail(&done, e.to_string()))?;
    let mut composer = Composer::new(case.omitted);
    let mut step = |op: Op, model: &mut windrow_testkit::model::Model| {
        let want = text::answer_text(&model.apply(&op));
        done.push(op);
        let answer = database.apply(&done[done.len() - 1]);
        let got = text::answer_text(&answer);
        if got == want {
            return Ok(());
        }
        let error = database.last_error().map(ToString::to_string).unwrap_or_default();
        Err(fail(&done, format!("answered\n{got}{error}\ninstead of\n{want}")))
    };
    for op in Composer::setup() {
        step(op, &mut model)?;
    }
    for raw in &case.raws {
        if let Some(op) = composer.compose(*raw, &model) {
            step(op, &mut model)?;
        }
    }
    step(Op::Dump, &mut model)?;
    step(Op::Reopen, &mut model)?;
    step(Op::Dump, &mut model)
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
        runner.run(&cases(), |case| check(&case)).map_err(|e| e.to_string())
    };
    sweep::run(0..PARTS, part, |(), ()| ()).unwrap_or_else(|(part, why)| {
        panic!("part {part}: {why}");
    });
}
