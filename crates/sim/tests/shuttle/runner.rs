//! The runner of schedules by seed: their number, how they are drawn, and how one is repeated.
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
/// Schedules of one seed. PCT places its few forced switches by the length of earlier schedules, so
/// a batch cannot be cut into single ones.
const BATCH: u64 = 50;
/// Batches that once found a fault. 100406: a writer that made the next log itself recorded it in
/// the manifest concurrently with the close; refused flushes were begun again at once. 94: a
/// refused write was present after a resume.
const FOUND: [u64; 2] = [100_406, 94];
/// Bytes of a simulated thread's stack.
const STACK_BYTES: usize = 1 << 20;
/// No scenario takes a tenth of this: beyond it threads run in circles.
const STEPS_MAX: usize = 1_000_000;

/// The way in which the next thread is drawn.
#[derive(Clone, Copy)]
enum Kind {
    /// Any, drawn each time: many switches.
    Random,
    /// Random priorities with `depth - 1` changes of them: few switches, each
    /// bug of that depth with a known probability (Burckhardt et al., "A
    /// randomized scheduler with probabilistic guarantees of finding bugs").
    Pct(usize),
    /// Weighted by the remaining steps of each thread: all interleavings are about equally likely.
    Weighted,
}

/// A batch of schedules.
#[derive(Clone, Copy)]
struct Batch {
    kind: Kind,
    seed: u64,
}

impl Batch {
    /// Returns the batch of a seed; the kinds alternate.
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
    // A schedule has thousands of steps: its seed repeats it.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(scenario);
}

/// Runs a scenario, the test `name`, under the requested number of schedules, and those that once
/// found a fault.
///
/// # Panics
/// If one fails, after printing how to repeat it.
pub(crate) fn check(name: &str, scenario: fn()) {
    run(name, scenario, FOUND.into_iter().chain(batches(SCHEDULES)));
}

/// Runs a scenario under the requested number of schedules, or `schedules` without a request.
pub(crate) fn check_few(name: &str, schedules: u64, scenario: fn()) {
    run(name, scenario, batches(schedules));
}

/// Returns the numbers of the batches that have `schedules` schedules.
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

/// The canary of lock ranks, which every schedule also checks.
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
