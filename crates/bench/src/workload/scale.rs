//! How much of a workload is run.

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Seconds: shows that it runs; its figures say little.
    Quick,
    /// Minutes.
    Reduced,
    /// What is published.
    Full,
}

impl Scale {
    /// All of them.
    pub(crate) const ALL: [Scale; 3] = [Scale::Quick, Scale::Reduced, Scale::Full];

    /// As it is called in commands, files and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Reduced => "reduced",
            Scale::Full => "full",
        }
    }

    /// The scale of this name.
    pub(crate) fn named(name: &str) -> Option<Scale> {
        Scale::ALL.into_iter().find(|scale| scale.name() == name)
    }
}
