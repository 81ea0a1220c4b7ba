//! The open loop: operations at a fixed rate, whether or not the store keeps up.
//!
//! Threads take operations in order from one counter, which is a queue without bound that they
//! serve. A thread that is early sleeps: it may not spin, since the store's own threads need the
//! processors. Nor may it sleep once for every operation: a sleep and its wake-up cost some 20 us
//! of a virtual processor. 85,000 a second, 12 us apart, took 1.8 of two processors with a store
//! that needs 0.3. At high rates operations therefore arrive in groups, one each millisecond, as
//! requests off a network do.
//!
//! Owns: intended starts. Never does: search for a rate (`sustainable_rate.rs` does).

use super::observations::{RunClock, Stop, ThreadRecord, each};
use super::{Outcome, Worker};
use crate::store::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::env::Clock;

/// A run is given up once it has taken this many times its length: the queue then grows without
/// end, and its latencies would only measure its age.
const OVERRUN: u64 = 3;

/// The time from one group of arrivals to the next, where more than one operation is due in that
/// time.
const GROUP_NS: f64 = 1e6;

/// A load in the open loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLoad {
    /// Operations per second, by all threads together.
    pub(crate) rate_per_s: f64,
    /// The time during which operations are sent.
    pub(crate) length_ns: u64,
}

impl OpenLoad {
    /// Returns the load of `ops` operations at a rate.
    pub(crate) fn of_ops(ops: u64, rate_per_s: f64) -> OpenLoad {
        OpenLoad { rate_per_s, length_ns: (ops as f64 * 1e9 / rate_per_s).round() as u64 }
    }

    /// Returns the time at which operation `number` should start, from the start of the run: with
    /// the first of its group.
    pub(super) fn intended_ns(&self, number: u64) -> u64 {
        let group = ((self.rate_per_s * GROUP_NS / 1e9) as u64).max(1);
        ((number - number % group) as f64 * 1e9 / self.rate_per_s) as u64
    }

    fn due(&self) -> u64 {
        (self.rate_per_s * self.length_ns as f64 / 1e9).round() as u64
    }
}

/// Runs a load on as many threads as there are workers. Latencies count from
/// the intended starts.
///
/// # Errors
/// A worker's, the first worker's if several failed.
pub(crate) fn open<W: Worker>(
    clock: &dyn Clock,
    load: OpenLoad,
    workers: &mut [W],
) -> Result<Outcome> {
    let (due, next, stop) = (load.due(), AtomicU64::new(0), Stop::default());
    let watch = RunClock::start(clock);
    let serve = |_: u64, worker: &mut W| -> Result<ThreadRecord> {
        wake_promptly();
        let (mut seen, mut now_ns) = (ThreadRecord::default(), watch.now_ns());
        while !stop.is_set() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if due <= number {
                break;
            }
            let intended_ns = load.intended_ns(number);
            if now_ns < intended_ns {
                clock.sleep_ns(intended_ns - now_ns);
            }
            let kind = worker.run(number)?;
            now_ns = watch.now_ns();
            if load.length_ns * OVERRUN <= now_ns {
                seen.give_up(now_ns);
                break;
            }
            seen.record(kind, now_ns.saturating_sub(intended_ns), now_ns)?;
            // Operations that fall due meanwhile wait: the rate must leave room for it.
            if worker.rest()? {
                now_ns = watch.now_ns();
            }
        }
        Ok(seen)
    };
    let threads = std::thread::scope(|scope| each(scope, workers, &stop, &serve).join())?;
    ThreadRecord::outcome(threads, Some(due), |number| load.intended_ns(number))
}

/// Asks the kernel to wake this thread on time, not up to 50 us later to save power. The rest of
/// the delay is the way from the timer to the processor. On two virtual cores with other work at
/// the same time, 2,000 sleeps of 1 ms each were late by 92 us at the median without this and by 42
/// with it (`cost.rs`). No store causes that delay, but any store's latencies have it.
pub(super) fn wake_promptly() {
    // Where the kernel refuses, the slack stays as it was.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
