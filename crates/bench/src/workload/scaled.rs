//! How much of a workload is run, and numbers that depend on it.

use serde::Deserialize;

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
    /// As it is called in commands and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Reduced => "reduced",
            Scale::Full => "full",
        }
    }

    /// The scale of this name.
    pub(crate) fn named(name: &str) -> Option<Scale> {
        [Scale::Quick, Scale::Reduced, Scale::Full].into_iter().find(|scale| scale.name() == name)
    }
}

/// A number for each scale. In a file: the number, or a table with `quick` and
/// `full` and, if it is neither, `reduced`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Scaled<T> {
    Same(T),
    Each(Each<T>),
}

/// The table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Each<T> {
    quick: T,
    reduced: Option<T>,
    full: T,
}

impl<T: Copy> Scaled<T> {
    /// One number for all scales.
    pub(crate) fn same(value: T) -> Scaled<T> {
        Scaled::Same(value)
    }

    /// The number at a scale.
    pub(crate) fn at(&self, scale: Scale) -> T {
        match (self, scale) {
            (Scaled::Same(value), _) => *value,
            (Scaled::Each(each), Scale::Quick) => each.quick,
            (Scaled::Each(each), Scale::Reduced) => each.reduced.unwrap_or(each.full),
            (Scaled::Each(each), Scale::Full) => each.full,
        }
    }
}
