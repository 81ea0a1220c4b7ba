//! The system's clocks.
//!
//! Owns: the choice of the system's clocks. Never does: correct a jump of the wall clock.

use crate::Clock;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// [`Clock`] of the operating system: `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsClock;

impl Clock for OsClock {
    fn wall_ms(&self) -> u64 {
        let now = clock_gettime(ClockId::Realtime);
        // A clock set before 1970 reads as 1970.
        u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 + now.tv_nsec as u64 / 1_000_000
    }

    fn monotonic_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    #[allow(clippy::disallowed_methods)] // this is where waiting comes from
    fn sleep_ns(&self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_passes_and_wall_time_is_this_century() {
        let clock = OsClock;
        let before_ns = clock.monotonic_ns();
        clock.sleep_ns(2_000_000);
        assert!(clock.monotonic_ns() - before_ns >= 2_000_000);
        assert!(clock.wall_ms() > 1_700_000_000_000);
    }
}
