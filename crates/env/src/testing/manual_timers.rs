//! The production thread pool with timers that fire only by hand: real concurrency, but nothing
//! depends on the time. Under a model checker its threads are the checker's.
//!
//! Owns: the timers. Never does: fire one by itself.

use crate::ThreadPool;
use crate::jobs::{Job, Jobs, Urgency};
use crate::lock_ranks;
use crate::sync::{Arc, Mutex};

type Work = Arc<dyn Fn() -> bool + Send + Sync>;

/// [`Jobs`] on the threads of a [`ThreadPool`].
pub struct ManualTimers {
    pool: ThreadPool,
    timers: Mutex<Vec<Work>>,
}

impl ManualTimers {
    /// A pool of `threads` threads.
    pub fn new(threads: usize) -> ManualTimers {
        ManualTimers {
            pool: ThreadPool::new(threads),
            timers: Mutex::new(lock_ranks::TIMERS, Vec::new()),
        }
    }

    /// Runs every timer's work once, on the calling thread, and drops the timers that are done.
    pub fn fire(&self) {
        let mut timers = std::mem::take(&mut *self.timers.lock());
        timers.retain(|work| work());
        self.timers.lock().append(&mut timers);
    }

    /// The number of jobs that have panicked.
    pub fn panics(&self) -> u64 {
        self.pool.panics()
    }
}

impl Jobs for ManualTimers {
    fn submit(&self, urgency: Urgency, job: Job) {
        self.pool.submit(urgency, job);
    }

    fn run_apart(&self, job: Job) {
        self.pool.run_apart(job);
    }

    fn parallelism(&self) -> usize {
        self.pool.parallelism()
    }

    fn step(&self) -> bool {
        self.pool.step()
    }

    fn run_urgent(&self) -> bool {
        self.pool.run_urgent()
    }

    fn every(&self, _interval_ms: u64, work: Work) {
        self.timers.lock().push(work);
    }
}
