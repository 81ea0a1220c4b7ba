//! `torture surroundings`: events around the process and its directory while a database is open:
//! forks, moved and replaced directories, other engines' files, links and pipes in place of files,
//! rights, mounts, clocks.
//!
//! Each scenario is a function in a table, with a directory and processes of its own ([`actor`]),
//! and ends the same way: nothing acknowledged is lost, no foreign bytes are touched, and an
//! operation that cannot be done fails with an error. A scenario that needs more than the system
//! has (root, mounts) is skipped, and reported as such. Owns: the table, and the printed report.
//! Never does: stop at the first failure.

pub mod actor;
mod clocks;
mod foreign;
mod forks;
mod odd;
mod places;
mod rights;
mod scenario;
mod stage;

use super::plan::{Failure, Outcome, Plan};
use super::stop;
use scenario::{Ending, Scenario};
use stage::Stage;

/// All scenarios, by group.
fn scenarios() -> Vec<Scenario> {
    let groups = [
        forks::SCENARIOS,
        places::SCENARIOS,
        foreign::SCENARIOS,
        odd::SCENARIOS,
        rights::SCENARIOS,
        clocks::SCENARIOS,
    ];
    groups.concat()
}

/// Runs the scenarios whose names contain `wanted`, and prints a line for each.
///
/// # Errors
/// If some failed; their directories are kept.
pub fn run(plan: &Plan, wanted: &str) -> Result<Outcome, Failure> {
    let chosen: Vec<Scenario> =
        scenarios().into_iter().filter(|(name, _)| name.contains(wanted)).collect();
    if chosen.is_empty() {
        return Err(plan.failure(plan.seed, format!("there is no scenario like `{wanted}`")));
    }
    let scratch = plan.scratch(std::env::temp_dir())?;
    let width = chosen.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    for (name, play) in chosen {
        let root = scratch.path().join(name);
        std::fs::create_dir(&root).map_err(|e| plan.failure(plan.seed, e.to_string()))?;
        let stage = Stage { root, sabotage: plan.sabotage };
        match play(&stage) {
            Ok(Ending::Passed(seen)) => {
                passed += 1;
                println!("{name:width$}  passed   {seen}");
                let _ = std::fs::remove_dir_all(&stage.root);
            }
            Ok(Ending::Skipped(why)) => {
                skipped += 1;
                println!("{name:width$}  SKIPPED  {why}");
            }
            Err(why) => {
                println!("{name:width$}  FAILED   {why}");
                println!("kept: {}", stage.root.display());
                println!(
                    "repeat: cargo run --release -p windrow-sim --bin torture -- surroundings \
                     --scenario {name}"
                );
                failed.push(name);
            }
        }
        if stop::requested() {
            break;
        }
    }
    let figures = format!("{passed} scenarios passed, {skipped} skipped, {} failed", failed.len());
    if failed.is_empty() {
        return Ok(Outcome::Passed(figures));
    }
    let kept = Some(scratch.keep());
    Err(Failure { why: format!("{figures}: {}", failed.join(" ")), seed: plan.seed, kept })
}
