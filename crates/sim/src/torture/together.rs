//! `torture together`: see [`crate::together`].
//!
//! Owns: its arguments and its report. Never does: any of the work.

use super::ledger::Ledger;
use super::plan::{Failure, Outcome, scratch};
use crate::together::{processes, threads};
use clap::Args;
use std::time::{Duration, Instant};

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub(super) struct Plan {
    #[command(flatten)]
    processes: processes::Rounds,
    /// On threads over the simulated file system, with this number of databases, a dozen sessions
    /// each.
    #[arg(long, conflicts_with_all = ["kills", "followers", "dir"])]
    threads: Option<u64>,
}

/// Runs the plan.
///
/// # Errors
/// The write that was lost, or the rule that was broken.
pub(super) fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let (begin, seed, seconds) = (Instant::now(), plan.processes.seed, plan.processes.seconds);
    if let Some(databases) = plan.threads {
        let ran = threads::run(seed, databases, Duration::from_secs(seconds));
        let failure = |seed| Failure { why: "see above".to_owned(), seed, kept: None };
        let threads::Figures { sessions, acts, images } = ran.map_err(failure)?;
        return Ok(Outcome::Passed(format!(
            "{acts} acts in {sessions} sessions, {images} images on the way, in {:.0} s",
            begin.elapsed().as_secs_f64()
        )));
    }
    let parent = plan.processes.dir.clone().unwrap_or_else(|| Ledger::directory().to_owned());
    let scratch = scratch(parent, seed)?;
    match processes::run(&plan.processes, scratch.path()) {
        Ok((kills, writes)) => Ok(Outcome::Passed(format!(
            "{kills} kills, {writes} writes were acknowledged, none is lost; in {:.0} s",
            begin.elapsed().as_secs_f64()
        ))),
        Err(why) => Err(Failure { why, seed, kept: Some(scratch.keep()) }),
    }
}
