//! Pacing: how long a writer waits so that flushes and merges keep up.
//!
//! A pure function turns debt into nanoseconds per byte. It starts at zero at the slowdown limit
//! and grows from there, so that there is no cliff.
//!
//! Owns: the current rate, and the sleep that writers owe (sleeps shorter than a fraction of a
//! millisecond are gathered). Never does: sleep, or measure the debt.

use windrow_env::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The debt by which writers are paced; the scheduler sets it at every change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Level-0 epochs over the fullest point.
    pub(crate) level0_depth: u32,
    /// Depth from which writers are slowed.
    pub(crate) level0_slowdown: u32,
    /// Depth at which writers wait.
    pub(crate) level0_stop: u32,
    /// Bytes that merges must move to bring every level within its capacity.
    pub(crate) debt_bytes: u64,
    /// Debt from which writers are slowed.
    pub(crate) debt_slowdown_bytes: u64,
    /// Debt at which writers are slowed most.
    pub(crate) debt_stop_bytes: u64,
}

/// The slowest pace, at full pressure: 2 MB/s per writer.
const NS_PER_BYTE_MAX: u64 = 500;

/// Sleeps shorter than this are gathered: the kernel rounds them up anyway.
const SLEEP_NS_MIN: u64 = 500_000;

/// Share of the way from `from` to `to` that `value` has gone, 0 to 1.
fn share(value: f64, from: f64, to: f64) -> f64 {
    // First, so that no pressure is none whatever the limits are.
    if value <= from {
        return 0.0;
    }
    if to <= from { 1.0 } else { ((value - from) / (to - from)).min(1.0) }
}

/// Pressure as a number from 0 (none) to 1 (as slow as it gets).
pub(crate) fn pressure_ratio(p: &Pressure) -> f64 {
    let depth = share(p.level0_depth as f64, p.level0_slowdown as f64, p.level0_stop as f64);
    let debt = share(p.debt_bytes as f64, p.debt_slowdown_bytes as f64, p.debt_stop_bytes as f64);
    depth.max(debt)
}

/// Delay per written byte for a pressure. Squared, so that the first steps
/// above the threshold cost little and the curve has no jump.
pub(crate) fn delay_ns_per_kib(p: &Pressure) -> u64 {
    let ratio = pressure_ratio(p);
    (ratio * ratio * (NS_PER_BYTE_MAX * 1024) as f64) as u64
}

/// The pace in force.
pub struct Pace {
    ns_per_kib: AtomicU64,
    owed_ns: AtomicU64,
    stopped: AtomicBool,
    /// The number of callers that have all writers wait until memtables are flushed.
    held: AtomicUsize,
    /// Longest sleep of one write, in ns.
    sleep_ns_max: u64,
}

impl Pace {
    /// No pressure yet; one write never sleeps longer than `delay_us_max`.
    pub fn new(delay_us_max: u64) -> Pace {
        Pace {
            ns_per_kib: AtomicU64::new(0),
            owed_ns: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            sleep_ns_max: delay_us_max * 1000,
        }
    }

    /// Takes over a new pressure.
    pub fn set(&self, pressure: &Pressure) {
        self.ns_per_kib.store(delay_ns_per_kib(pressure), Ordering::Relaxed);
        self.stopped.store(pressure.level0_depth >= pressure.level0_stop, Ordering::Relaxed);
    }

    /// Whether level 0 is so deep that writers must wait for a merge.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Makes all writers that come from here on wait, until [`Pace::let_go`].
    pub fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes [`Pace::hold`].
    pub fn let_go(&self) {
        let before = self.held.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "writers are let go, and nobody held them");
    }

    /// Whether no writer need wait for the debt of the tree.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        self.ns_per_kib.load(Ordering::Relaxed) == 0
    }

    /// Whether a caller has writers wait.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    /// The sleep that a writer of `bytes` owes now, in ns; 0 in calm times.
    #[inline]
    pub(crate) fn owe(&self, bytes: usize) -> u64 {
        let rate = self.ns_per_kib.load(Ordering::Relaxed);
        if rate == 0 {
            return 0;
        }
        let cost = rate * bytes as u64 / 1024;
        let owed = self.owed_ns.fetch_add(cost, Ordering::Relaxed) + cost;
        if owed < SLEEP_NS_MIN.min(self.sleep_ns_max) {
            return 0;
        }
        // The writer that takes the sum sleeps it; others start from zero.
        self.owed_ns.swap(0, Ordering::Relaxed).min(self.sleep_ns_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(level0_depth: u32, debt_bytes: u64) -> Pressure {
        Pressure {
            level0_depth,
            level0_slowdown: 8,
            level0_stop: 24,
            debt_bytes,
            debt_slowdown_bytes: 1000,
            debt_stop_bytes: 2000,
        }
    }

    #[test]
    fn delay_starts_at_zero_and_never_jumps() {
        assert_eq!(delay_ns_per_kib(&at(8, 1000)), 0);
        let delays: Vec<u64> = (1000..=2000).map(|debt| delay_ns_per_kib(&at(0, debt))).collect();
        let step_max = delays.windows(2).map(|w| w[1] - w[0]).max().unwrap();
        assert!(delays.windows(2).all(|w| w[0] <= w[1]));
        assert!(step_max <= NS_PER_BYTE_MAX * 1024 / 400, "a cliff of {step_max} ns");
        assert_eq!(delay_ns_per_kib(&at(24, 0)), NS_PER_BYTE_MAX * 1024);
    }

    #[test]
    fn no_pressure_is_no_delay() {
        assert_eq!(delay_ns_per_kib(&Pressure::default()), 0);
        let idle = Pressure { level0_stop: u32::MAX, ..Pressure::default() };
        assert_eq!(delay_ns_per_kib(&idle), 0);
        assert_eq!(delay_ns_per_kib(&at(24, 5000)), NS_PER_BYTE_MAX * 1024);
    }

    #[test]
    fn short_delays_are_gathered_and_then_slept_once() {
        let pace = Pace::new(1000);
        pace.set(&at(16, 0));
        let slept: u64 = (0..10_000).map(|_| pace.owe(128)).sum();
        let owed = delay_ns_per_kib(&at(16, 0)) * 128 / 1024 * 10_000;
        assert!(slept <= owed && owed - slept <= SLEEP_NS_MIN, "{slept} of {owed}");
        pace.set(&at(0, 0));
        assert_eq!(pace.owe(1 << 20), 0);
    }
}
