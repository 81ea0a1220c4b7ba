//! Background jobs that overlap, in an order drawn from a seed.
//!
//! A [`Stepper`](super::Stepper) runs each job to its end before the next one begins. Here jobs are
//! coroutines: each has a thread of its own, but only one thread in all runs at a time. A thread
//! that steps hands its turn to a job, new or begun, and gets it back when that job asks for urgent
//! work (`run_urgent`) or ends. So jobs run while others are half done, as on a pool, and a seed
//! gives one run.
//!
//! Owns: those threads and the turn. Never does: let two threads run at once, or read a clock.

use crate::jobs::{Job, Jobs, Urgency};
use crate::lock_ranks;
use crate::sync::thread::Builder;
use crate::sync::{Arc, Condvar, Mutex};
use crate::testing::random::Rng;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The probability that a job that asks for urgent work has to wait.
const YIELD_CHANCE: f64 = 0.5;

/// The number of the thread that runs no job.
const FOREGROUND: u64 = 0;

thread_local! {
    /// The number of this thread.
    static ME: Cell<u64> = const { Cell::new(FOREGROUND) };
}

/// [`Jobs`] that take turns. All its other users are one thread.
pub struct Interleaver {
    shared: Arc<SharedTurns>,
    parallelism: usize,
}

struct SharedTurns {
    state: Mutex<InterleaverState>,
    /// Notified when the turn has changed.
    turned: Condvar,
}

struct InterleaverState {
    queue: Vec<Job>,
    /// Jobs that have begun and wait to be stepped.
    parked: Vec<u64>,
    /// The number of jobs that have begun and not ended.
    under_way: usize,
    /// The number of the thread whose turn it is.
    turn: u64,
    /// For each stepped job, the thread that stepped it and waits for it.
    steppers: BTreeMap<u64, u64>,
    last: u64,
    rng: Rng,
    overlaps: u64,
    panics: u64,
}

impl Interleaver {
    /// At most `parallelism` begun jobs at a time, in an order drawn from `seed`.
    pub fn new(seed: u64, parallelism: usize) -> Interleaver {
        let state = InterleaverState {
            queue: Vec::new(),
            parked: Vec::new(),
            under_way: 0,
            turn: FOREGROUND,
            steppers: BTreeMap::new(),
            last: FOREGROUND,
            rng: Rng::new(seed),
            overlaps: 0,
            panics: 0,
        };
        let shared =
            SharedTurns { state: Mutex::new(lock_ranks::JOBS, state), turned: Condvar::new() };
        Interleaver { shared: Arc::new(shared), parallelism }
    }

    /// Runs jobs until none is left, those that jobs queue included.
    pub fn run_until_idle(&self) {
        while self.step() {}
    }

    /// The number of jobs that began while another had begun and not ended.
    pub fn overlaps(&self) -> u64 {
        self.shared.state.lock().overlaps
    }

    /// The number of jobs that have panicked.
    pub fn panics(&self) -> u64 {
        self.shared.state.lock().panics
    }
}

impl InterleaverState {
    /// Draws the job to step. A new job gets a thread, which waits for its turn.
    fn draw(&mut self, shared: &Arc<SharedTurns>, parallelism: usize) -> Option<u64> {
        let new = if self.under_way < parallelism { self.queue.len() } else { 0 };
        let drawn = self.rng.below((new + self.parked.len()) as u64) as usize;
        if new + self.parked.len() == 0 {
            return None;
        }
        if new <= drawn {
            return Some(self.parked.remove(drawn - new));
        }
        let job = self.queue.remove(drawn);
        self.overlaps += u64::from(self.under_way > 0);
        self.under_way += 1;
        self.last += 1;
        let (shared, me) = (shared.clone(), self.last);
        let body = move || shared.run(me, job);
        Builder::new().spawn(body).expect("a thread for a job");
        Some(me)
    }
}

impl SharedTurns {
    fn await_turn(&self, me: u64) {
        let mut state = self.state.lock();
        while state.turn != me {
            self.turned.wait(&mut state);
        }
    }

    /// Gives the turn to a job until it parks or ends.
    fn pass(&self, me: u64, to: u64) {
        let mut state = self.state.lock();
        state.steppers.insert(to, me);
        state.turn = to;
        drop(state);
        self.turned.notify_all();
        self.await_turn(me);
    }

    /// Gives the turn back to the thread that stepped this job.
    fn give_back(&self, me: u64, state: &mut InterleaverState) {
        state.turn = state.steppers.remove(&me).unwrap_or(FOREGROUND);
        self.turned.notify_all();
    }

    /// Runs a job on its thread, from its first turn to its last.
    fn run(&self, me: u64, job: Job) {
        self.await_turn(me);
        ME.set(me);
        let panicked = catch_unwind(AssertUnwindSafe(job)).is_err();
        let mut state = self.state.lock();
        state.panics += u64::from(panicked);
        state.under_way -= 1;
        self.give_back(me, &mut state);
    }
}

impl Jobs for Interleaver {
    fn submit(&self, _urgency: Urgency, job: Job) {
        self.shared.state.lock().queue.push(job);
    }

    fn parallelism(&self) -> usize {
        self.parallelism
    }

    fn step(&self) -> bool {
        let drawn = self.shared.state.lock().draw(&self.shared, self.parallelism);
        drawn.inspect(|&to| self.shared.pass(ME.get(), to)).is_some()
    }

    /// A job parks now and then. The foreground, which also merges in a manual compaction, steps a
    /// job instead.
    fn run_urgent(&self) -> bool {
        let me = ME.get();
        let mut state = self.shared.state.lock();
        if !state.rng.chance(YIELD_CHANCE) {
            return false;
        }
        if me == FOREGROUND {
            drop(state);
            return self.step();
        }
        state.parked.push(me);
        self.shared.give_back(me, &mut state);
        drop(state);
        self.shared.await_turn(me);
        false
    }

    /// No timer ever fires.
    fn every(&self, _interval_ms: u64, _work: Arc<dyn Fn() -> bool + Send + Sync>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Rank;

    /// The order in which the parts of three jobs of four parts each ran.
    fn order(seed: u64) -> (Vec<u32>, u64) {
        let jobs = Arc::new(Interleaver::new(seed, 2));
        let seen = Arc::new(Mutex::new(Rank::INNERMOST, Vec::new()));
        for number in 0..3 {
            let (seen, inner) = (seen.clone(), jobs.clone());
            let job = move || {
                for part in 0..4 {
                    seen.lock().push(10 * number + part);
                    inner.run_urgent();
                }
            };
            jobs.submit(Urgency::Normal, Box::new(job));
        }
        jobs.run_until_idle();
        let seen = std::mem::take(&mut *seen.lock());
        (seen, jobs.overlaps())
    }

    #[test]
    fn a_seed_gives_an_order_in_which_jobs_overlap() {
        assert_eq!(order(1), order(1));
        let orders: Vec<_> = (0..20).map(order).collect();
        assert!(orders.iter().any(|order| order != &orders[0]));
        for (seen, _) in &orders {
            for number in 0..3 {
                let parts: Vec<u32> =
                    seen.iter().filter(|part| *part / 10 == number).map(|part| part % 10).collect();
                assert_eq!(parts, [0, 1, 2, 3], "each goes on where it was");
            }
        }
        assert!(orders.iter().filter(|(_, overlaps)| 0 < *overlaps).count() > 10);
    }

    #[test]
    fn a_job_may_step_others_and_panics_are_contained() {
        let jobs = Arc::new(Interleaver::new(0, 2));
        let inner = jobs.clone();
        let outer = move || {
            inner.submit(Urgency::High, Box::new(|| panic!("on purpose")));
            assert!(inner.step());
            assert_eq!(inner.panics(), 1);
        };
        jobs.submit(Urgency::Normal, Box::new(outer));
        jobs.run_until_idle();
        assert_eq!((jobs.panics(), jobs.overlaps()), (1, 1));
        assert!(!jobs.step());
    }
}
