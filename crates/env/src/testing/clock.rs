//! A clock that moves only by calls.
//!
//! Owns: the two times. Never does: read a real clock, or wait.

use crate::Clock;
use crate::sync::real::atomic::{AtomicU64, Ordering};

/// 2030-01-01, so that tests do not depend on today.
const START_WALL_MS: u64 = 1_893_456_000_000;

/// A [`Clock`] that is set by hand. Sleeping advances both times and returns at once.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    monotonic_ns: AtomicU64,
    /// The remainder of slept nanoseconds, below a millisecond of wall time.
    slept_ns: AtomicU64,
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        ManualClock::new()
    }
}

impl ManualClock {
    /// A clock at 2030-01-01 whose monotonic time is one second.
    pub fn new() -> ManualClock {
        ManualClock {
            wall_ms: AtomicU64::new(START_WALL_MS),
            monotonic_ns: AtomicU64::new(1_000_000_000),
            slept_ns: AtomicU64::new(0),
        }
    }

    /// Sets the wall clock, to any time: it may jump back.
    pub fn set_wall_ms(&self, wall_ms: u64) {
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }

    /// Sets the monotonic clock.
    ///
    /// # Panics
    /// If that would move it back.
    pub fn set_monotonic_ns(&self, monotonic_ns: u64) {
        let before = self.monotonic_ns.swap(monotonic_ns, Ordering::SeqCst);
        assert!(before <= monotonic_ns, "monotonic time never runs backwards");
    }

    /// Advances both times.
    pub fn advance_ms(&self, ms: u64) {
        self.sleep_ns(ms * 1_000_000);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::SeqCst)
    }

    fn sleep_ns(&self, ns: u64) {
        self.monotonic_ns.fetch_add(ns, Ordering::SeqCst);
        let before = self.slept_ns.fetch_add(ns, Ordering::SeqCst);
        let passed_ms = (before + ns) / 1_000_000 - before / 1_000_000;
        self.wall_ms.fetch_add(passed_ms, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_by_sleeping_only() {
        let clock = ManualClock::new();
        let (wall_ms, monotonic_ns) = (clock.wall_ms(), clock.monotonic_ns());
        for _ in 0..10 {
            clock.sleep_ns(300_000);
        }
        assert_eq!(clock.wall_ms(), wall_ms + 3);
        assert_eq!(clock.monotonic_ns(), monotonic_ns + 3_000_000);
        clock.set_wall_ms(5);
        assert_eq!(clock.wall_ms(), 5);
        assert_eq!(clock.monotonic_ns(), monotonic_ns + 3_000_000);
    }
}
