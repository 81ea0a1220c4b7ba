//! The time.
//!
//! Owns: the clocks, and waiting on a thread. Never does: know why.

#![allow(
    clippy::disallowed_methods,
    reason = "the server is a program, and its clock the machine's"
)]

use std::time::{Duration, Instant, SystemTime};

/// Milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

/// The time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A moment to measure from.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The moment `ms` milliseconds after 1970.
pub(crate) fn at_ms(ms: u64) -> SystemTime {
    // Far beyond what any clock shows, and still a moment that can be counted.
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms.min(1 << 52))
}

/// Waits on this thread.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}
