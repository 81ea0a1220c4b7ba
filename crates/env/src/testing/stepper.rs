//! Background work that runs only when it is stepped, in an order drawn from a seed, which makes a
//! whole run of a database reproducible.
//!
//! Owns: the queue, the timers and the order. Never does: start a thread, or fire a timer by
//! itself.

use crate::jobs::{Job, Jobs, Urgency};
use crate::lock_ranks;
use crate::sync::{Arc, Mutex};
use crate::testing::random::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Work = Arc<dyn Fn() -> bool + Send + Sync>;

/// The number of concurrent jobs that the engine is told.
const PARALLELISM: usize = 2;
/// The probability that a job that asks for an urgent one gets one.
const URGENT_CHANCE: f64 = 0.25;
/// The number of steps after which jobs count as queueing each other without end.
const STEPS_MAX: usize = 10_000_000;

/// [`Jobs`] in a queue. Steps draw among all queued jobs of any urgency: that gives more orders
/// than any pool would.
pub struct Stepper {
    state: Mutex<StepperState>,
}

struct StepperState {
    queue: Vec<(Urgency, Job)>,
    timers: Vec<(u64, Work)>,
    rng: Rng,
    steps: u64,
    panics: u64,
}

impl Stepper {
    /// An empty queue whose order is drawn from `seed`.
    pub fn new(seed: u64) -> Stepper {
        Stepper {
            state: Mutex::new(
                lock_ranks::JOBS,
                StepperState {
                    queue: Vec::new(),
                    timers: Vec::new(),
                    rng: Rng::new(seed),
                    steps: 0,
                    panics: 0,
                },
            ),
        }
    }

    /// Runs jobs until none is left, those that jobs queue included. Returns how many ran.
    ///
    /// # Panics
    /// If jobs queue each other without end.
    pub fn run_until_idle(&self) -> usize {
        let mut ran = 0;
        while self.step() {
            ran += 1;
            assert!(ran < STEPS_MAX, "jobs queue each other without end");
        }
        ran
    }

    /// Runs every timer's work once on the calling thread, and drops those that are done.
    pub fn fire_timers(&self) {
        let timers = std::mem::take(&mut self.state.lock().timers);
        for (interval_ms, work) in timers {
            if self.contain(|| work()) == Some(true) {
                self.state.lock().timers.push((interval_ms, work));
            }
        }
    }

    /// The number of queued jobs.
    pub fn queued(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// The number of queued jobs of an urgency.
    pub fn queued_of(&self, urgency: Urgency) -> usize {
        self.state.lock().queue.iter().filter(|(of, _)| *of == urgency).count()
    }

    /// The intervals of the timers, in milliseconds.
    pub fn timers(&self) -> Vec<u64> {
        self.state.lock().timers.iter().map(|(interval_ms, _)| *interval_ms).collect()
    }

    /// The number of jobs run so far.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// The number of jobs and timers that have panicked.
    pub fn panics(&self) -> u64 {
        self.state.lock().panics
    }

    /// Drops queued jobs and timers without running them, as a dying process does.
    pub fn discard(&self) {
        let mut state = self.state.lock();
        let dropped = (std::mem::take(&mut state.queue), std::mem::take(&mut state.timers));
        // Dropped outside the lock: their drop may call this stepper.
        drop(state);
        drop(dropped);
    }

    fn contain<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let result = catch_unwind(AssertUnwindSafe(work)).ok();
        if result.is_none() {
            self.state.lock().panics += 1;
        }
        result
    }
}

impl Jobs for Stepper {
    fn submit(&self, urgency: Urgency, job: Job) {
        self.state.lock().queue.push((urgency, job));
    }

    fn parallelism(&self) -> usize {
        PARALLELISM
    }

    fn step(&self) -> bool {
        let mut state = self.state.lock();
        if state.queue.is_empty() {
            return false;
        }
        let queued = state.queue.len() as u64;
        let chosen = state.rng.below(queued) as usize;
        let (_, job) = state.queue.remove(chosen);
        state.steps += 1;
        drop(state);
        self.contain(job);
        true
    }

    /// Runs an urgent job now and then, so that urgent jobs begin in the middle of others.
    fn run_urgent(&self) -> bool {
        let mut state = self.state.lock();
        let is_urgent = |(urgency, _): &(Urgency, Job)| *urgency == Urgency::High;
        let Some(at) = state.queue.iter().position(is_urgent) else {
            return false;
        };
        if !state.rng.chance(URGENT_CHANCE) {
            return false;
        }
        let (_, job) = state.queue.remove(at);
        state.steps += 1;
        drop(state);
        self.contain(job);
        true
    }

    fn every(&self, interval_ms: u64, work: Work) {
        self.state.lock().timers.push((interval_ms, work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Rank;

    fn order(seed: u64) -> Vec<u32> {
        let stepper = Stepper::new(seed);
        let seen = Arc::new(Mutex::new(Rank::INNERMOST, Vec::new()));
        for number in 0..20 {
            let seen = seen.clone();
            stepper.submit(Urgency::Normal, Box::new(move || seen.lock().push(number)));
        }
        assert_eq!(stepper.run_until_idle(), 20);
        std::mem::take(&mut *seen.lock())
    }

    #[test]
    fn a_seed_gives_an_order() {
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_runs_by_itself_and_panics_are_contained() {
        let stepper = Arc::new(Stepper::new(0));
        let inner = stepper.clone();
        stepper.submit(
            Urgency::High,
            Box::new(move || inner.submit(Urgency::Normal, Box::new(|| panic!("on purpose")))),
        );
        assert_eq!((stepper.queued_of(Urgency::High), stepper.queued()), (1, 1));
        assert_eq!(stepper.run_until_idle(), 2);
        assert_eq!((stepper.panics(), stepper.steps()), (1, 2));
        assert!(!stepper.step());
    }

    #[test]
    fn timers_fire_by_hand_until_they_are_done() {
        let stepper = Stepper::new(0);
        let count = Arc::new(Mutex::new(Rank::INNERMOST, 0));
        let counted = count.clone();
        stepper.every(
            50,
            Arc::new(move || {
                *counted.lock() += 1;
                *counted.lock() < 2
            }),
        );
        assert_eq!(stepper.timers(), [50]);
        for _ in 0..5 {
            stepper.fire_timers();
        }
        assert_eq!(*count.lock(), 2);
        assert!(stepper.timers().is_empty());
    }
}
