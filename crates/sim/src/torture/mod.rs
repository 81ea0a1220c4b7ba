//! Torture: the engine as a real program on real file systems, killed, cut off, filled up and
//! starved, and judged each time by its acknowledgements.
//!
//! A *worker* is this program started once more ([`worker`]); it writes batches that follow from a
//! seed ([`workload`]) and notes every acknowledgement in a [`ledger`] outside the file system
//! under test. The parent ends it, reads the ledger, opens the database and judges ([`judge`]).
//! Owns: the arguments, and the text of the reports. Never does: decide whether a state is right;
//! the moment of a kill is chance, so that a seed repeats the options and the operations, not the
//! failure itself.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is about the real system: its processes, mounts, limits and clock"
)]

pub mod backups;
mod changes;
pub mod child;
pub mod cut;
pub mod failing_reads;
pub mod follow;
pub mod follower;
pub mod full;
mod history;
pub mod judge;
pub mod kill;
pub mod ledger;
pub mod limits;
mod memory;
pub mod partial;
pub mod partial_load;
mod plan;
mod program;
pub mod setup;
pub mod small;
pub mod starve;
pub mod starve_cases;
pub mod starved_process;
pub mod stop;
pub mod surroundings;
mod together;
pub mod trace;
pub mod volume;
pub mod worker;
pub mod workload;

pub use plan::{Failure, Outcome, Plan};

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Torments the database on the real system.
#[derive(Debug, Parser)]
#[command(name = "torture")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kills the program with SIGKILL at random moments, again and again.
    Kill(Plan),
    /// Shuts a loop-mounted file system down under a writer (needs root).
    Cut(Plan),
    /// Fills a small loop-mounted file system, then makes room (needs root).
    Full(Plan),
    /// Few descriptors, little memory, a second process, a read-only open.
    Limits(Plan),
    /// Largest batches, nested range deletes, longest keys and many keyspaces under
    /// an address-space limit, with aborts at the n-th allocation.
    Memory(Plan),
    /// Damage in one keyspace under a full load of two others, whose reads and writes a
    /// second are compared with runs without it; then a second without descriptors.
    Partial(partial::Plan),
    /// Forks, moved directories, foreign files, links, rights, mounts, clocks: scenario by scenario.
    Surroundings {
        #[command(flatten)]
        plan: Plan,
        /// Only the scenarios whose names contain this.
        #[arg(long, default_value = "")]
        scenario: String,
    },
    /// Fills devices of a few MiB, then makes room (needs root, or user namespaces).
    Small(small::Plan),
    /// Followers next to a writer, in processes that are killed, and what they cost it.
    Follow(follow::Plan),
    /// Every operation of a database, at the same time: in a process that is killed, next to
    /// followers; or, with --threads, on threads over a simulated file system.
    Together(together::Plan),
    /// Kills the program `windrow` while it backs up, restores and prunes, next to a writer.
    Backups(backups::Plan),
    /// Kills the pipe `windrow changes --follow | windrow apply` at either end, and the writer.
    Changes(changes::Plan),
    /// Backups under full writes, each compared with the commits up to its sequence number.
    Moments(backups::moments::Plan),
    #[command(hide = true)]
    TogetherActor(crate::together::processes::Task),
    #[command(hide = true)]
    Follower(follower::Task),
    #[command(hide = true)]
    Actor,
    #[command(hide = true)]
    Worker(worker::Task),
    #[command(hide = true)]
    Starved(starved_process::Task),
}

type Campaign = Box<dyn FnOnce() -> Result<Outcome, Failure>>;

/// Runs the command line. 0: passed or skipped, 1: a failure was found.
pub fn run(cli: Cli) -> ExitCode {
    let (name, campaign): (&str, Campaign) = match cli.command {
        Command::Worker(task) => return worker::run(&task),
        Command::Follower(task) => return follower::run(&task),
        Command::TogetherActor(task) => {
            crate::together::processes::act(&task);
            return ExitCode::SUCCESS;
        }
        Command::Starved(task) => return starved_process::run(&task),
        Command::Actor => return surroundings::actor::run(),
        Command::Kill(plan) => ("kill", Box::new(move || kill::run(&plan))),
        Command::Cut(plan) => ("cut", Box::new(move || cut::run(&plan))),
        Command::Full(plan) => ("full", Box::new(move || full::run(&plan))),
        Command::Limits(plan) => ("limits", Box::new(move || limits::run(&plan))),
        Command::Memory(plan) => ("memory", Box::new(move || starve::run(&plan))),
        Command::Partial(plan) => ("partial", Box::new(move || partial::run(&plan))),
        Command::Surroundings { plan, scenario } => {
            ("surroundings", Box::new(move || surroundings::run(&plan, &scenario)))
        }
        Command::Small(plan) => ("small", Box::new(move || small::run(&plan))),
        Command::Follow(plan) => ("follow", Box::new(move || follow::run(&plan))),
        Command::Together(plan) => ("together", Box::new(move || together::run(&plan))),
        Command::Backups(plan) => ("backups", Box::new(move || backups::run(&plan))),
        Command::Changes(plan) => ("changes", Box::new(move || changes::run(&plan))),
        Command::Moments(plan) => ("moments", Box::new(move || backups::moments::run(&plan))),
    };
    stop::install();
    match campaign() {
        Ok(Outcome::Passed(figures)) => println!("{name}: {figures}"),
        Ok(Outcome::Skipped(why)) => println!("{name}: SKIPPED: {why}"),
        Err(failure) => {
            eprintln!("{name}: FAILED: {}", failure.why);
            if let Some(kept) = &failure.kept {
                eprintln!("kept: {}", kept.display());
            }
            let arguments = repeat(std::env::args().skip(1), failure.seed);
            eprintln!("repeat: cargo run --release -p windrow-sim --bin torture -- {arguments}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Returns the arguments that repeat a run of these ones from a seed on.
fn repeat(arguments: impl Iterator<Item = String>, seed: u64) -> String {
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == "--seed" {
            arguments.next();
        } else if !argument.starts_with("--seed=") {
            let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,".contains(c));
            kept.push(if plain { argument } else { format!("'{argument}'") });
        }
    }
    format!("{} --seed {seed}", kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::repeat;

    #[test]
    fn a_run_is_repeated_from_the_seed_that_failed() {
        let words = ["kill", "--seed", "1", "--preset", "l2sm shape=leveling(t=2)", "--seed=3"];
        let repeated = repeat(words.map(str::to_owned).into_iter(), 7);
        assert_eq!(repeated, "kill --preset 'l2sm shape=leveling(t=2)' --seed 7");
    }
}
