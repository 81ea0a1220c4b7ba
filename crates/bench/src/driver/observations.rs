//! The records of each thread and of all together, and the start and stop of
//! the threads.
//!
//! Owns: recording without sharing: threads' histograms and timelines are
//! merged when the threads have ended. Never does: decide when an operation
//! starts.

use super::Outcome;
use super::timeline::Completions;
use crate::latency::ByKind;
use crate::op::Kind;
use crate::store::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use windrow::env::Clock;

/// The record of one thread.
#[derive(Default)]
pub(super) struct ThreadRecord {
    latencies: ByKind,
    done: u64,
    last_ns: u64,
    timeline: Completions,
}

impl ThreadRecord {
    /// Records an operation that ended at `end_ns` of the run.
    pub(super) fn record(&mut self, kind: Kind, latency_ns: u64, end_ns: u64) -> Result<()> {
        self.latencies.record_ns(kind, latency_ns)?;
        self.done += 1;
        self.last_ns = end_ns;
        self.timeline.record(end_ns);
        Ok(())
    }

    /// Records that an operation had not ended by the time the run was given
    /// up.
    pub(super) fn give_up(&mut self, now_ns: u64) {
        self.last_ns = now_ns;
    }

    /// Merges the records of all threads. `due` operations were due, the `n`th
    /// at `due_ns(n)`; `None` is as many as were done.
    pub(super) fn outcome(
        threads: Vec<ThreadRecord>,
        due: Option<u64>,
        due_ns: impl Fn(u64) -> u64,
    ) -> Result<Outcome> {
        let mut all = ThreadRecord::default();
        for seen in threads {
            all.latencies.add(&seen.latencies)?;
            all.done += seen.done;
            all.last_ns = all.last_ns.max(seen.last_ns);
            all.timeline.add(&seen.timeline);
        }
        let gaps = all.timeline.gaps(all.last_ns, due_ns);
        let (steps, step_ns) = all.timeline.steps(all.last_ns);
        Ok(Outcome {
            latencies: all.latencies,
            done: all.done,
            due: due.unwrap_or(all.done),
            elapsed_ns: all.last_ns,
            stalled_ns: gaps.stalled_ns,
            longest_gap_ns: gaps.longest_ns,
            steps,
            step_ns,
            concurrent: None,
        })
    }
}

/// Time since the start of a run.
#[derive(Clone, Copy)]
pub(super) struct RunClock<'a> {
    pub(super) clock: &'a dyn Clock,
    begin_ns: u64,
}

impl RunClock<'_> {
    pub(super) fn start(clock: &dyn Clock) -> RunClock<'_> {
        RunClock { clock, begin_ns: clock.monotonic_ns() }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.clock.monotonic_ns() - self.begin_ns
    }
}

/// Tells all threads of a run to end.
#[derive(Default)]
pub(super) struct Stop(AtomicBool);

impl Stop {
    pub(super) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Stops the other threads unless it is disarmed: when one fails or panics,
/// those that accompany it must not go on for ever.
struct Alarm<'a>(Option<&'a Stop>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if let Some(stop) = self.0 {
            stop.now();
        }
    }
}

/// Runs `serve` for each worker, on a thread of its own. The first error
/// stops all, if `serve` looks at `stop`.
pub(super) fn each<'s, W: Send>(
    scope: &'s std::thread::Scope<'s, '_>,
    workers: &'s mut [W],
    stop: &'s Stop,
    serve: &'s (impl Fn(u64, &mut W) -> Result<ThreadRecord> + Sync),
) -> Threads<'s> {
    let run = move |(place, worker): (usize, &'s mut W)| {
        scope.spawn(move || {
            let mut alarm = Alarm(Some(stop));
            let seen = serve(place as u64, worker)?;
            alarm.0 = None;
            Ok(seen)
        })
    };
    Threads(workers.iter_mut().enumerate().map(run).collect())
}

/// The threads at work.
pub(super) struct Threads<'s>(Vec<std::thread::ScopedJoinHandle<'s, Result<ThreadRecord>>>);

impl Threads<'_> {
    /// Returns the record of each, when all have ended; the first one's error
    /// if any failed.
    pub(super) fn join(self) -> Result<Vec<ThreadRecord>> {
        let panicked = || Err("a client thread panicked".into());
        let ended: Vec<_> =
            self.0.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect();
        ended.into_iter().collect()
    }
}
