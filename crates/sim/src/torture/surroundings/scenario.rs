//! A scenario, and how it ended.
//!
//! Owns: the form of a scenario. Never does: play one.

use super::stage::Stage;

/// How a scenario ended, when nothing was found.
pub(super) enum Ending {
    /// All passed; what was seen.
    Passed(String),
    /// It cannot be played here, and why.
    Skipped(String),
}

/// What is said of a scenario; an error is a finding.
pub(super) type Verdict = Result<Ending, String>;
/// Its name, and what happens.
pub(super) type Scenario = (&'static str, fn(&Stage) -> Verdict);

pub(super) fn passed(seen: impl Into<String>) -> Verdict {
    Ok(Ending::Passed(seen.into()))
}

pub(super) fn skipped(why: String) -> Verdict {
    Ok(Ending::Skipped(why))
}

/// Why a scenario of mounts cannot be played, if it cannot.
pub(super) fn needs_root() -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| "needs root: mounts".to_owned())
}
