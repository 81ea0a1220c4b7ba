//! The time.
//!
//! Owns: the clocks, and waiting on a thread. Never does: know what a time is
//! for.

#![allow(
    clippy::disallowed_methods,
    reason = "the server is a program, and its clock the machine's"
)]

use std::time::{Duration, Instant, SystemTime};

/// Returns the milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Returns a moment to measure from.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the moment `ms` milliseconds after 1970.
pub(crate) fn at_ms(ms: u64) -> SystemTime {
    // The bound is far beyond the time of any clock, and still a valid moment.
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms.min(1 << 52))
}

/// Waits on this thread.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}
