//! Benchmarks: the same workloads on any store behind one trait, each run in
//! a process of its own, engines in turn.
//!
//! `bench` compares stores, `paper` repeats the experiments of the papers on
//! Windrow alone.
//!
//! Owns: the generator, the workloads, the measuring of a process, the report.
//! Never does: tune a store (its adapter does, and says how), or judge a
//! figure from one run: rounds are interleaved, and ratios are taken per round.

mod args;
mod basic;
mod data;
mod latency;
mod paper;
mod phase;
mod process;
mod report;
pub mod store;

pub use args::Args;
use store::Engine;

/// What `windrow bench --help` prints.
pub use args::USAGE;
pub use paper::cli as paper;

/// `windrow bench ...`: runs a benchmark of Windrow alone. `args` are what
/// follows `bench`. Returns the exit code: 0, 1 after an error, 2 for wrong arguments.
pub fn cli(args: &[String]) -> i32 {
    run(&[store::windrow::ENGINE], &["bench"], args)
}

/// Runs a benchmark of several engines in turn. `prefix` is what stands
/// between the program's name and `args`, for the processes that it starts.
pub fn run(engines: &[Engine], prefix: &[&str], args: &[String]) -> i32 {
    if args.is_empty() || args.iter().any(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return if args.is_empty() { 2 } else { 0 };
    }
    let parsed = match Args::parse(args, engines) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("bench: {problem}\n\n{USAGE}");
            return 2;
        }
    };
    let done = match &parsed.child {
        Some(child) => phase::run(&parsed, child, engines),
        None => basic::run(&parsed, engines, prefix, args),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("bench: {error}");
            1
        }
    }
}
