//! A scenario, and its outcome.
//!
//! Owns: the form of a scenario. Never does: run one.

use super::stage::Stage;

/// The outcome of a scenario without a finding.
pub(super) enum Ending {
    /// All passed; the observations.
    Passed(String),
    /// It cannot be run here, and why.
    Skipped(String),
}

/// The verdict on a scenario; an error is a finding.
pub(super) type Verdict = Result<Ending, String>;
/// A scenario's name and function.
pub(super) type Scenario = (&'static str, fn(&Stage) -> Verdict);

pub(super) fn passed(seen: impl Into<String>) -> Verdict {
    Ok(Ending::Passed(seen.into()))
}

pub(super) fn skipped(why: String) -> Verdict {
    Ok(Ending::Skipped(why))
}

/// Returns why a scenario of mounts cannot be run, if it cannot.
pub(super) fn needs_root() -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| "needs root: mounts".to_owned())
}
