//! Waiting for a store that has no call to wait for its compactions.
//!
//! Owns: the interval of the looks. Never does: decide when a store is quiet.

#![allow(clippy::disallowed_methods, reason = "the peers' threads know no clock but the machine's")]

use std::time::Duration;
use windrow_bench::store::Result;

/// The time between two looks: short compared with a compaction, long compared
/// with a look.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until `quiet` has returned true `times` times in a row.
///
/// # Errors
/// The error of `quiet`.
pub(crate) fn until(times: u32, mut quiet: impl FnMut() -> Result<bool>) -> Result<()> {
    let mut seen = 0;
    loop {
        seen = if quiet()? { seen + 1 } else { 0 };
        if times <= seen {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
