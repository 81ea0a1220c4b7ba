//! Clients at work: in the closed loop, in the open loop, flat out for a time.
//!
//! In the closed loop a client sends its next operation when the last is done,
//! which measures what the store can do. It is blind to stalls: while the store
//! stalls nothing is sent, and the requests that users would have made
//! meanwhile are missing from the percentiles (coordinated omission). In the
//! open loop operations arrive at a fixed rate whatever the store does, and a
//! latency counts from the intended start. `tests.rs` has both on one store
//! whose stalls are known.
//!
//! The time in which a client makes its keys and values is in its latencies,
//! for any store alike: one look at the clock ends an operation and begins the
//! next, since two would cost as much as a cached read.
//!
//! Owns: threads, order and pace of operations, and the results of a run. Never
//! does: know what an operation does, or read the real clock.

mod closed_loop;
#[cfg(test)]
mod cost;
mod observations;
mod open_loop;
mod sustainable_rate;
#[cfg(test)]
mod tests;
mod timeline;

pub(crate) use closed_loop::{ConcurrentClient, closed, saturate};
pub(crate) use open_loop::{OpenLoad, open};
pub(crate) use sustainable_rate::{Attempt, sustainable};

use crate::latency::ByKind;
use crate::op::Kind;
use crate::record;
use crate::store::Result;

/// Does operations, one at a time; each thread has its own.
pub(crate) trait Worker: Send {
    /// Does operation `number` (from 0; all threads together do each once).
    ///
    /// # Errors
    /// The store's; the run ends.
    fn run(&mut self, number: u64) -> Result<Kind>;

    /// Does the work that must follow an operation and is not part of it.
    /// Returns whether time has passed with it, which the closed loop then
    /// leaves out of latencies; in the open loop operations that fall due
    /// meanwhile wait. Gaps and stalls include that time: they are then the
    /// run's, not the store's.
    ///
    /// # Errors
    /// The run ends.
    /// The run ends.
    fn rest(&mut self) -> Result<bool> {
        Ok(false)
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Latencies; in the open loop from the intended start.
    pub(crate) latencies: ByKind,
    /// Operations done; in the open loop fewer than were due if it was given up.
    pub(crate) done: u64,
    /// Operations due; in a closed loop those done.
    pub(crate) due: u64,
    /// The time from the start, or the first intended start, to the last
    /// completion, or to the moment when the run was given up.
    pub(crate) elapsed_ns: u64,
    /// Time in slots of 10 ms throughout which an operation waited or was
    /// under way and none completed.
    pub(crate) stalled_ns: u64,
    /// The longest time in which an operation was due and none completed;
    /// exact from 10 ms on, too short below.
    pub(crate) longest_gap_ns: u64,
    /// Operations that completed in each step of `step_ns` from the start;
    /// the last one may be cut short.
    pub(crate) steps: Vec<u64>,
    /// A second, or 0.1 s where the run took less than ten seconds.
    pub(crate) step_ns: u64,
    /// The result of the concurrent workers, while the main ones were at work.
    pub(crate) concurrent: Option<Box<Outcome>>,
}

impl Outcome {
    /// Returns the mean time in seconds that each of `clients` clients was busy
    /// with operations.
    pub(crate) fn busy_s(&self, clients: u32) -> f64 {
        self.latencies.iter().map(|(_, l)| l.sum_s()).sum::<f64>() / f64::from(clients.max(1))
    }

    /// Returns the timeline as run files keep it.
    pub(crate) fn timeline(&self) -> record::Timeline {
        record::Timeline {
            step_s: self.step_ns as f64 / 1e9,
            ops: self.steps.clone(),
            longest_gap_ms: self.longest_gap_ns as f64 / 1e6,
        }
    }
}
