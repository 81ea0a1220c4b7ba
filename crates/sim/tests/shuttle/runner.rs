//! Schedules by seed: how many, drawn how, and how one is repeated.
//!
//! Owns: batches of schedules, each named by a scheduler and a seed. Never
//! does: know what a scenario is about.

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler, UrwRandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::str::FromStr;
use windrow_env::sync::{Mutex, Rank};
use windrow_testkit::sweep;

/// Schedules of each scenario in a usual run.
const SCHEDULES: u64 = 2_000;
/// Schedules of one seed. PCT places its few forced switches by the length of
/// the schedules before, so a batch cannot be cut into single ones.
const BATCH: u64 = 50;
/// Batches that once found something. 100406: a writer that made the next log
/// itself told the manifest of it concurrently with the close; flushes that were refused were
/// begun again at once. 94: a write that was refused was there after a resume.
const FOUND: [u64; 2] = [100_406, 94];
/// Bytes of a simulated thread's stack.
const STACK_BYTES: usize = 1 << 20;
/// No scenario takes a tenth of this: beyond it threads run in circles.
const STEPS_MAX: usize = 1_000_000;

/// Who draws the next thread to run.
#[derive(Clone, Copy)]
enum Kind {
    /// Any, drawn each time: many switches.
    Random,
    /// Random priorities with `depth - 1` changes of them: few switches, each
    /// bug of that depth with a known probability (Burckhardt et al., "A
    /// randomized scheduler with probabilistic guarantees of finding bugs").
    Pct(usize),
    /// Weighted by how much each thread has left to do: interleavings alike.
    Weighted,
}

/// A batch of schedules.
#[derive(Clone, Copy)]
struct Batch {
    kind: Kind,
    seed: u64,
}

impl Batch {
    /// The kinds in turn.
    fn of(seed: u64) -> Batch {
        let kind = match seed % 4 {
            0 => Kind::Random,
            1 => Kind::Pct(2),
            2 => Kind::Pct(4),
            _ => Kind::Weighted,
        };
        Batch { kind, seed }
    }

    fn run(self, scenario: fn()) {
        let count = BATCH as usize;
        match self.kind {
            Kind::Random => drive(RandomScheduler::new_from_seed(self.seed, count), scenario),
            Kind::Pct(depth) => {
                drive(PctScheduler::new_from_seed(self.seed, depth, count), scenario)
            }
            Kind::Weighted => drive(UrwRandomScheduler::new_from_seed(self.seed, count), scenario),
        }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)
    }
}

impl FromStr for Batch {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Batch, Self::Err> {
        text.parse().map(Batch::of)
    }
}

fn drive(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    // A schedule has thousands of steps: the seed is what repeats it.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(scenario);
}

/// Runs a scenario, the test `name`, under as many schedules as are asked for, and those that
/// once found something.
///
/// # Panics
/// If one fails, after printing how to repeat it.
pub(crate) fn check(name: &str, scenario: fn()) {
    run(name, scenario, FOUND.into_iter().chain(batches(SCHEDULES)));
}

/// The same, with so many schedules where no number is asked for.
pub(crate) fn check_few(name: &str, schedules: u64, scenario: fn()) {
    run(name, scenario, batches(schedules));
}

/// The numbers of batches of so many schedules.
fn batches(schedules: u64) -> std::ops::Range<u64> {
    let first = sweep::number("WINDROW_SEED_FIRST", 0);
    first..first + sweep::number("WINDROW_SCHEDULES", schedules).div_ceil(BATCH)
}

fn run(name: &str, scenario: fn(), seeds: impl Iterator<Item = u64>) {
    if let Ok(text) = std::env::var("WINDROW_SCHEDULE") {
        let batch: Batch = text.parse().expect("WINDROW_SCHEDULE is the number of a batch");
        return batch.run(scenario);
    }
    for seed in seeds {
        let batch = Batch::of(seed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| batch.run(scenario))) {
            eprintln!(
                "repeat: WINDROW_SCHEDULE={batch} RUSTFLAGS=\"--cfg shuttle\" cargo test \
                 -p windrow-sim --test shuttle --target-dir target/shuttle {name} -- --nocapture"
            );
            resume_unwind(panic);
        }
    }
}

/// The canary of lock ranks, which every schedule checks as well.
#[test]
#[should_panic(expected = "takes the first (rank 1) while this thread holds the second (rank 2)")]
fn locks_that_are_taken_out_of_order_are_noticed() {
    let scenario = || {
        let first = Mutex::new(Rank::new(1, "the first"), ());
        let second = Mutex::new(Rank::new(2, "the second"), ());
        let _second = second.lock();
        let _first = first.lock();
    };
    shuttle::check_random(scenario, 1);
}
