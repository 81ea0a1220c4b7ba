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

/// Runs the command line. 0: passed or skipped, 1: a failure was found.
pub fn run(cli: Cli) -> ExitCode {
    let mut wanted = String::new();
    let (name, plan) = match cli.command {
        Command::Worker(task) => return worker::run(&task),
        Command::Small(plan) => return run_small(&plan),
        Command::Partial(plan) => return run_partial(&plan),
        Command::Follow(plan) => return run_follow(&plan),
        Command::Follower(task) => return follower::run(&task),
        Command::Together(plan) => return run_together(&plan),
        Command::Backups(plan) => return run_backups(&plan),
        Command::Moments(plan) => return run_moments(&plan),
        Command::TogetherActor(task) => {
            crate::together::processes::act(&task);
            return ExitCode::SUCCESS;
        }
        Command::Starved(task) => return starved_process::run(&task),
        Command::Memory(plan) => ("memory", plan),
        Command::Actor => return surroundings::actor::run(),
        Command::Surroundings { plan, scenario } => {
            wanted = scenario;
            ("surroundings", plan)
        }
        Command::Kill(plan) => ("kill", plan),
        Command::Cut(plan) => ("cut", plan),
        Command::Full(plan) => ("full", plan),
        Command::Limits(plan) => ("limits", plan),
    };
    stop::install();
    let outcome = match name {
        "kill" => kill::run(&plan),
        "cut" => cut::run(&plan),
        "full" => full::run(&plan),
        "memory" => starve::run(&plan),
        "surroundings" => surroundings::run(&plan, &wanted),
        _ => limits::run(&plan),
    };
    let repeat = |seed| {
        format!(
            "{name} --seed {seed} --rounds {} --preset '{}' --fs {}",
            plan.rounds, plan.preset, plan.fs
        )
    };
    report(name, outcome, repeat)
}

fn run_small(plan: &small::Plan) -> ExitCode {
    stop::install();
    report("small", small::run(plan), |seed| format!("small --seed {seed}"))
}

fn run_follow(plan: &follow::Plan) -> ExitCode {
    stop::install();
    let follow::Plan { seconds, rounds, followers, .. } = plan;
    report("follow", follow::run(plan), |seed| {
        format!(
            "follow --seed {seed} --rounds {rounds} --seconds {seconds} --followers {followers}"
        )
    })
}

fn run_together(plan: &together::Plan) -> ExitCode {
    stop::install();
    report("together", together::run(plan), |seed| plan.repeat(seed))
}

fn run_backups(plan: &backups::Plan) -> ExitCode {
    stop::install();
    let backups::Plan { kills, preset, .. } = plan;
    report("backups", backups::run(plan), |seed| {
        format!("backups --seed {seed} --kills {kills} --preset '{preset}'")
    })
}

fn run_moments(plan: &backups::moments::Plan) -> ExitCode {
    stop::install();
    let backups::moments::Plan { minutes, preset, slots, .. } = plan;
    report("moments", backups::moments::run(plan), |seed| {
        format!("moments --seed {seed} --minutes {minutes} --preset '{preset}' --slots {slots}")
    })
}

fn run_partial(plan: &partial::Plan) -> ExitCode {
    stop::install();
    let (rounds, seconds) = (plan.rounds, plan.seconds);
    let cases: Vec<String> = plan.case.iter().map(ToString::to_string).collect();
    let cases = cases.join(",");
    report("partial", partial::run(plan), |seed| {
        format!("partial --seed {seed} --rounds {rounds} --seconds {seconds} --case {cases}")
    })
}

/// Reports how a run ended. `repeat`: the arguments that repeat it, by its seed.
fn report(
    name: &str,
    outcome: Result<Outcome, Failure>,
    repeat: impl Fn(u64) -> String,
) -> ExitCode {
    match outcome {
        Ok(Outcome::Passed(figures)) => println!("{name}: {figures}"),
        Ok(Outcome::Skipped(why)) => println!("{name}: SKIPPED: {why}"),
        Err(failure) => {
            eprintln!("{name}: FAILED: {}", failure.why);
            if let Some(kept) = &failure.kept {
                eprintln!("kept: {}", kept.display());
            }
            eprintln!(
                "repeat: cargo run --release -p windrow-sim --bin torture -- {}",
                repeat(failure.seed)
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
