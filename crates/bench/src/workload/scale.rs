//! The scales of a workload.
//!
//! Owns: their names. Never does: know a workload.

/// The scale of a run: how much of a workload it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Seconds: shows that it runs; its figures say little.
    Quick,
    /// Minutes.
    Reduced,
    /// The scale of published figures.
    Full,
}

impl Scale {
    /// All scales.
    pub(crate) const ALL: [Scale; 3] = [Scale::Quick, Scale::Reduced, Scale::Full];

    /// Returns its name in commands, files and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Reduced => "reduced",
            Scale::Full => "full",
        }
    }

    /// Returns the scale of this name.
    pub(crate) fn named(name: &str) -> Option<Scale> {
        Scale::ALL.into_iter().find(|scale| scale.name() == name)
    }
}
