//! A scene, and how it ended.
//!
//! Owns: the form of a scene. Never does: play one.

use super::stage::Stage;

/// How a scene ended, when nothing was found.
pub(super) enum Ending {
    /// All held; what was seen.
    Held(String),
    /// It cannot be played here, and why.
    Skipped(String),
}

/// What is said of a scene; an error is a finding.
pub(super) type Verdict = Result<Ending, String>;
/// Its name, and what happens.
pub(super) type Scene = (&'static str, fn(&Stage) -> Verdict);

pub(super) fn held(seen: impl Into<String>) -> Verdict {
    Ok(Ending::Held(seen.into()))
}

pub(super) fn skipped(why: String) -> Verdict {
    Ok(Ending::Skipped(why))
}

/// Why a scene of mounts cannot be played, if it cannot.
pub(super) fn needs_root() -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| "needs root: mounts".to_owned())
}
