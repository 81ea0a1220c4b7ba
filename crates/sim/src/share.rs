//! Numbered cases, all of them or a share, on all processors.
//!
//! Owns: the share of the cases that is run where time is short. Never does: know what a case is.

use windrow_testkit::sweep;

/// The cases that are run: every `step`-th from `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// The first case.
    pub(crate) first: u64,
    /// The distance from one to the next.
    pub(crate) step: u64,
}

impl Share {
    /// Whether this case is one of them.
    pub(crate) fn has(self, case: u64) -> bool {
        case % self.step == self.first % self.step
    }
}

/// Runs the cases `0..count` on all processors, and sums their counts.
pub(crate) fn each(
    what: &str,
    count: u64,
    case: impl Fn(u64) -> Result<u64, String> + Sync,
) -> Result<u64, String> {
    let done = sweep::run(0..count, case, |a, b| a + b);
    done.map(Option::unwrap_or_default)
        .map_err(|(index, why)| format!("{what} at operation {index} of {count}: {why}"))
}
