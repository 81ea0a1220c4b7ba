//! The closed loop: each client sends its next operation when its last is done.
//!
//! A number of operations is shared out by turns, not taken from a counter: a client then does the
//! same operations in every run and on every store.
//!
//! Owns: these shares, and concurrent clients that keep a store busy meanwhile. Never does: correct
//! latencies for operations that it did not send.

use super::observations::{RunClock, Stop, ThreadRecord, each};
use super::open_loop::wake_promptly;
use super::{Outcome, Worker};
use crate::store::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use windrow::env::Clock;

/// The interval at which a concurrent client that waits for its turn checks whether the main ones
/// are done.
const LOOK_NS: u64 = 10_000_000;

/// A client that works until the main ones are done.
pub(crate) struct ConcurrentClient<W> {
    /// Its work. Client b of B concurrent ones does operations b, b + B, b + 2 B ...
    pub(crate) worker: W,
    /// This client's operations per second, in the open loop; `None` is flat out.
    pub(crate) rate_per_s: Option<f64>,
}

/// Does `ops` operations: client w of T does w, w + T, w + 2 T ... below `ops`. Concurrent clients
/// work until these are done, and have an outcome of their own. The stalls of clients with a rate
/// count only where an operation was due.
///
/// # Errors
/// A worker's; one of the main ones' if both kinds failed.
pub(crate) fn closed<W: Worker, B: Worker>(
    clock: &dyn Clock,
    ops: u64,
    workers: &mut [W],
    concurrent: &mut [ConcurrentClient<B>],
) -> Result<Outcome> {
    let (stop, clients, others) = (Stop::default(), workers.len(), concurrent.len());
    // All must have a rate, or something is always due.
    let rate_per_s: Option<f64> = concurrent.iter().map(|b| b.rate_per_s).sum();
    let watch = RunClock::start(clock);
    let serve = |place: u64, worker: &mut W| {
        let numbers = (place..ops).step_by(clients);
        back_to_back(watch, numbers, u64::MAX, worker, &stop)
    };
    let accompany =
        |place: u64, ConcurrentClient { worker, rate_per_s }: &mut ConcurrentClient<B>| {
            let numbers = (place..).step_by(others);
            match rate_per_s {
                None => back_to_back(watch, numbers, u64::MAX, worker, &stop),
                // The clients' starts are spread over an interval.
                Some(rate_per_s) => {
                    let lag = place as f64 / others as f64;
                    let due = numbers.enumerate().map(|(turn, number)| {
                        (number, ((turn as f64 + lag) * 1e9 / *rate_per_s) as u64)
                    });
                    paced(watch, due, worker, &stop)
                }
            }
        };
    let (main, others_done) = std::thread::scope(|scope| {
        let others_done = each(scope, concurrent, &stop, &accompany);
        let main = each(scope, workers, &stop, &serve).join();
        stop.now();
        (main, others_done.join())
    });
    let (main, others_done) = (main?, others_done?);
    let mut outcome = ThreadRecord::outcome(main, None, |_| 0)?;
    if others > 0 {
        let due = rate_per_s.map(|rate| (rate * outcome.elapsed_ns as f64 / 1e9) as u64);
        let due_ns = |n: u64| rate_per_s.map_or(0, |rate| (n as f64 * 1e9 / rate) as u64);
        outcome.concurrent = Some(Box::new(ThreadRecord::outcome(others_done, due, due_ns)?));
    }
    Ok(outcome)
}

/// Runs operations back to back for `length_ns`; each client completes its current operation. The
/// numbers have no holes, however much each client does.
///
/// # Errors
/// A worker's, the first worker's if several failed.
pub(crate) fn saturate<W: Worker>(
    clock: &dyn Clock,
    length_ns: u64,
    workers: &mut [W],
) -> Result<Outcome> {
    let (next, stop) = (AtomicU64::new(0), Stop::default());
    let watch = RunClock::start(clock);
    let serve = |_: u64, worker: &mut W| {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        back_to_back(watch, numbers, length_ns, worker, &stop)
    };
    let threads = std::thread::scope(|scope| each(scope, workers, &stop, &serve).join())?;
    ThreadRecord::outcome(threads, None, |_| 0)
}

/// Runs one client's operations, one after the other; none starts after `length_ns`.
fn back_to_back<W: Worker>(
    watch: RunClock<'_>,
    mut numbers: impl Iterator<Item = u64>,
    length_ns: u64,
    worker: &mut W,
    stop: &Stop,
) -> Result<ThreadRecord> {
    let (mut seen, mut now_ns) = (ThreadRecord::default(), watch.now_ns());
    while now_ns < length_ns && !stop.is_set() {
        // The number is taken only now: a number that is taken is done.
        let Some(number) = numbers.next() else { break };
        let kind = worker.run(number)?;
        let end_ns = watch.now_ns();
        seen.record(kind, end_ns.saturating_sub(now_ns), end_ns)?;
        now_ns = if worker.rest()? { watch.now_ns() } else { end_ns };
    }
    Ok(seen)
}

/// Runs one client's operations, each with its intended start.
fn paced<W: Worker>(
    watch: RunClock<'_>,
    due: impl Iterator<Item = (u64, u64)>,
    worker: &mut W,
    stop: &Stop,
) -> Result<ThreadRecord> {
    wake_promptly();
    let (mut seen, mut now_ns) = (ThreadRecord::default(), watch.now_ns());
    for (number, intended_ns) in due {
        while now_ns < intended_ns && !stop.is_set() {
            watch.clock.sleep_ns((intended_ns - now_ns).min(LOOK_NS));
            now_ns = watch.now_ns();
        }
        if stop.is_set() {
            break;
        }
        let kind = worker.run(number)?;
        now_ns = watch.now_ns();
        seen.record(kind, now_ns.saturating_sub(intended_ns), now_ns)?;
        if worker.rest()? {
            now_ns = watch.now_ns();
        }
    }
    Ok(seen)
}
