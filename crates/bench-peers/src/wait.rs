//! Waiting for a store that has no call to wait for its compactions.
//!
//! Owns: how often it is asked. Never does: decide what quiet means.

#![allow(clippy::disallowed_methods, reason = "the peers' threads know no clock but the machine's")]

use std::time::Duration;
use windrow_bench::store::Result;

/// Between two looks: short compared with a compaction, long compared with a look.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until `quiet` has said yes so many times in a row.
///
/// # Errors
/// What `quiet` returns.
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
