//! Operations at a fixed rate, whether or not the store keeps up.
//!
//! Each operation has an intended start, and its latency counts from there:
//! a client that waits for the store before it sends the next request hides
//! the very pauses that are to be measured (coordinated omission). Threads
//! take operations in order from one counter, which is a queue without bound
//! that they serve.
//!
//! Never does: know what an operation is, or what time it really is.

use crate::latency::Latencies;
use crate::store::Result;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::env::Clock;

/// Length of the slots of time in which something should have been done.
const SLOT_NS: u64 = 10_000_000;

/// A run is given up once it has taken this many times its length: the queue
/// then grows without end, and its latencies would only say for how long.
const OVERRUN: u64 = 3;

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Get,
}

/// Does operations, one at a time; each thread has its own.
pub(crate) trait Worker: Send {
    /// Does operation `number` (from 0; all threads together do each once).
    fn run(&mut self, number: u64) -> Result<Kind>;
}

/// A load in the open loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Operations per second, by all threads together.
    pub(crate) rate_per_s: f64,
    /// How long operations are sent.
    pub(crate) length_ns: u64,
}

/// What came of a load.
pub(crate) struct Outcome {
    pub(crate) puts: Latencies,
    pub(crate) gets: Latencies,
    /// Operations done; fewer than were due if the run was given up.
    pub(crate) done: u64,
    /// Operations due.
    pub(crate) due: u64,
    /// From the first intended start to the last completion.
    pub(crate) elapsed_ns: u64,
    /// Time in slots of 10 ms in which operations were due and none completed.
    pub(crate) stalled_ns: u64,
}

/// What one thread saw.
struct Seen {
    puts: Latencies,
    gets: Latencies,
    done: u64,
    last_ns: u64,
}

struct Shared<'a> {
    clock: &'a dyn Clock,
    load: Load,
    begin_ns: u64,
    due: u64,
    next: AtomicU64,
    /// Slots in which something completed.
    slots: Vec<AtomicBool>,
}

/// Runs a load on as many threads as there are workers.
pub(crate) fn drive<W: Worker>(
    clock: &dyn Clock,
    load: Load,
    workers: &mut [W],
) -> Result<Outcome> {
    let due = (load.rate_per_s * load.length_ns as f64 / 1e9) as u64;
    let slots = (load.length_ns * OVERRUN).div_ceil(SLOT_NS) + 1;
    let shared = Shared {
        clock,
        load,
        begin_ns: clock.monotonic_ns(),
        due,
        next: AtomicU64::new(0),
        slots: (0..slots).map(|_| AtomicBool::new(false)).collect(),
    };
    let seen: Vec<Result<Seen>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            workers.iter_mut().map(|worker| scope.spawn(|| shared.serve(worker))).collect();
        let panicked = || Err("a client thread panicked".into());
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| panicked())).collect()
    });
    let mut outcome = Outcome {
        puts: Latencies::new()?,
        gets: Latencies::new()?,
        done: 0,
        due,
        elapsed_ns: 0,
        stalled_ns: 0,
    };
    for seen in seen {
        let seen = seen?;
        outcome.puts.add(&seen.puts)?;
        outcome.gets.add(&seen.gets)?;
        outcome.done += seen.done;
        outcome.elapsed_ns = outcome.elapsed_ns.max(seen.last_ns);
    }
    let begun = &shared.slots[..(outcome.elapsed_ns / SLOT_NS) as usize];
    let still = begun.iter().filter(|slot| !slot.load(Ordering::Relaxed)).count();
    outcome.stalled_ns = still as u64 * SLOT_NS;
    Ok(outcome)
}

impl Shared<'_> {
    fn now_ns(&self) -> u64 {
        self.clock.monotonic_ns() - self.begin_ns
    }

    fn serve<W: Worker>(&self, worker: &mut W) -> Result<Seen> {
        let (puts, gets) = (Latencies::new()?, Latencies::new()?);
        let mut seen = Seen { puts, gets, done: 0, last_ns: 0 };
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.due {
                return Ok(seen);
            }
            let intended_ns = (number as f64 * 1e9 / self.load.rate_per_s) as u64;
            let early_ns = intended_ns.saturating_sub(self.now_ns());
            if early_ns > 0 {
                // Not spun: the store's own threads need the processors.
                self.clock.sleep_ns(early_ns);
            }
            let kind = worker.run(number)?;
            let end_ns = self.now_ns();
            if end_ns >= self.load.length_ns * OVERRUN {
                return Ok(seen);
            }
            let latencies = if kind == Kind::Put { &mut seen.puts } else { &mut seen.gets };
            latencies.record_ns(end_ns.saturating_sub(intended_ns));
            seen.done += 1;
            seen.last_ns = end_ns;
            self.slots[(end_ns / SLOT_NS) as usize].store(true, Ordering::Relaxed);
        }
    }
}

/// Runs operations back to back for `length_ns`; how many were done.
pub(crate) fn saturate<W: Worker>(
    clock: &dyn Clock,
    length_ns: u64,
    workers: &mut [W],
) -> Result<u64> {
    let begin_ns = clock.monotonic_ns();
    let next = AtomicU64::new(0);
    let serve = |worker: &mut W| -> Result<u64> {
        let mut done = 0;
        while clock.monotonic_ns() - begin_ns < length_ns {
            worker.run(next.fetch_add(1, Ordering::Relaxed))?;
            done += 1;
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|w| scope.spawn(|| serve(w))).collect();
        let panicked = || Err("a client thread panicked".into());
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| panicked())).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const MS: u64 = 1_000_000;

    /// A clock that only sleeping and work move.
    #[derive(Clone, Default)]
    struct Virtual(Arc<AtomicU64>);

    impl Clock for Virtual {
        fn wall_ms(&self) -> u64 {
            self.monotonic_ns() / MS
        }
        fn monotonic_ns(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
        fn sleep_ns(&self, ns: u64) {
            self.0.fetch_add(ns, Ordering::Relaxed);
        }
    }

    /// Takes 1 ms, but for one operation that takes `pause_ms`.
    struct Stub {
        clock: Virtual,
        pause_at: u64,
        pause_ms: u64,
    }

    impl Worker for Stub {
        fn run(&mut self, number: u64) -> Result<Kind> {
            let ms = if number == self.pause_at { self.pause_ms } else { 1 };
            self.clock.sleep_ns(ms * MS);
            Ok(if number.is_multiple_of(2) { Kind::Put } else { Kind::Get })
        }
    }

    fn run(rate_per_s: f64, length_ms: u64, pause_at: u64, pause_ms: u64) -> Outcome {
        let clock = Virtual::default();
        // Not zero: intended starts count from where the run begins.
        clock.sleep_ns(5 * MS);
        let mut workers = [Stub { clock: clock.clone(), pause_at, pause_ms }];
        drive(&clock, Load { rate_per_s, length_ns: length_ms * MS }, &mut workers).unwrap()
    }

    #[test]
    fn what_keeps_up_has_its_service_time() {
        let outcome = run(100.0, 1000, u64::MAX, 0);
        assert_eq!((outcome.done, outcome.due), (100, 100));
        assert_eq!((outcome.puts.count(), outcome.gets.count()), (50, 50));
        assert_eq!(outcome.puts.max_us().round(), 1000.0);
        // The last begins at 990 ms.
        assert_eq!(outcome.elapsed_ns, 991 * MS);
        assert_eq!(outcome.stalled_ns, 0);
    }

    #[test]
    fn a_pause_is_felt_by_all_that_were_due_in_it() {
        // 500 a second, 1 ms each; operation 10 (due at 20 ms) takes 101 ms.
        // The others were due every 2 ms and go at 1 ms apiece: operation
        // 10 + i completes 101 + i ms after 20 ms, due 2 i after: 101 - i late.
        let outcome = run(500.0, 1000, 10, 101);
        assert_eq!(outcome.puts.max_us().round(), 101_000.0);
        assert_eq!(outcome.gets.max_us().round(), 100_000.0);
        // i = 1..=100 more were late: 110 of 500, with 101 above 1 ms.
        let late = outcome.puts.above_us(1500.0) + outcome.gets.above_us(1500.0);
        assert_eq!(late, 100);
        // Nothing completed from 19 to 121 ms: slots 2 to 11 had nothing.
        assert_eq!(outcome.stalled_ns, 100 * MS);
    }

    #[test]
    fn what_cannot_keep_up_is_given_up() {
        // 4,000 a second of 1 ms each on one thread: a quarter gets through.
        let outcome = run(4000.0, 100, u64::MAX, 0);
        assert_eq!(outcome.due, 400);
        assert!((290..=300).contains(&outcome.done), "{}", outcome.done);
        assert!(outcome.puts.max_us() > 200_000.0);
    }

    #[test]
    fn saturation_counts_what_fits() {
        let clock = Virtual::default();
        let mut workers = [Stub { clock: clock.clone(), pause_at: 3, pause_ms: 51 }];
        assert_eq!(saturate(&clock, 100 * MS, &mut workers).unwrap(), 50);
    }
}
