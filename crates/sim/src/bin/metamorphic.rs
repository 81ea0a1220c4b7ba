//! Databases in lockstep under different options, for any number of seeds: `cargo run --release -p
//! windrow-sim --bin metamorphic -- --seeds N [--start S] [--operations K]`.
//!
//! Prints the counts of the comparison; exits non-zero on the first difference, with the line that
//! repeats it.
//!
//! Owns: the command line and the report. Never does: compare answers itself.

use clap::Parser;
use std::process::ExitCode;
use windrow_env::{Clock, OsClock};
use windrow_sim::metamorphic::{self, Count};
use windrow_testkit::sweep;

/// Compares databases under different options, operation by operation.
#[derive(Parser)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Operations of each.
    #[arg(long, default_value_t = 2_000)]
    operations: u64,
}

fn main() -> ExitCode {
    let Arguments { seeds, start, operations } = Arguments::parse();
    let clock = OsClock;
    let begin = clock.monotonic_ns();
    let outcome = sweep::run(
        start..start.saturating_add(seeds),
        |seed| metamorphic::run(seed, operations),
        Count::plus,
    );
    let seconds = (clock.monotonic_ns() - begin) as f64 / 1e9;
    match outcome {
        Ok(count) => {
            let Count { operations, iterator_steps, switches } = count.unwrap_or_default();
            println!(
                "{seeds} seeds, {operations} operations, {iterator_steps} iterator steps, \
                 {switches} changes of options, {seconds:.1} s: no difference"
            );
            ExitCode::SUCCESS
        }
        Err((seed, why)) => {
            eprintln!("{why}");
            eprintln!(
                "cargo run --release -p windrow-sim --bin metamorphic -- --seeds 1 \
                 --start {seed} --operations {operations}"
            );
            ExitCode::FAILURE
        }
    }
}
