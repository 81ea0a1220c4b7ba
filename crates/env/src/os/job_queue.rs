//! The jobs that wait for a thread, the most urgent first.
//!
//! Owns: the order, and the count of panics. Never does: make threads.

use crate::jobs::{Job, Urgency};
use crate::lock_ranks;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The queue that threads, timers and the pool share.
pub(super) struct JobQueue {
    state: Mutex<JobQueueState>,
    /// Wakes a thread that has nothing to do.
    any: Condvar,
    /// The number of urgent jobs in the queue, for a check without the lock.
    urgent: AtomicU64,
    panics: AtomicU64,
}

#[derive(Default)]
struct JobQueueState {
    high: VecDeque<Job>,
    normal: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
    shut_down: bool,
}

impl Default for JobQueue {
    fn default() -> JobQueue {
        JobQueue {
            state: Mutex::new(lock_ranks::JOBS, JobQueueState::default()),
            any: Condvar::new(),
            urgent: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }
}

impl JobQueue {
    pub(super) fn push(&self, urgency: Urgency, job: Job) {
        let mut state = self.state.lock();
        if state.shut_down {
            // Dropped outside the lock: its drop may call this queue.
            drop(state);
            drop(job);
            return;
        }
        match urgency {
            Urgency::High => {
                state.high.push_back(job);
                self.urgent.fetch_add(1, Ordering::Relaxed);
            }
            Urgency::Normal => state.normal.push_back(job),
        }
        drop(state);
        self.any.notify_one();
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.state.lock().shut_down
    }

    fn run(&self, job: Job) {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_urgent(&self, state: &mut JobQueueState) -> Option<Job> {
        let job = state.high.pop_front()?;
        self.urgent.fetch_sub(1, Ordering::Relaxed);
        Some(job)
    }

    fn take(&self, state: &mut JobQueueState) -> Option<Job> {
        self.take_urgent(state).or_else(|| state.normal.pop_front())
    }

    /// Runs jobs until the queue is shut down.
    pub(super) fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if state.shut_down {
                return;
            }
            if let Some(job) = self.take(&mut state) {
                drop(state);
                self.run(job);
                state = self.state.lock();
            } else {
                state.idle += 1;
                self.any.wait(&mut state);
                state.idle -= 1;
            }
        }
    }

    /// Runs the most urgent job, if there is one.
    pub(super) fn run_next(&self) -> bool {
        let job = self.take(&mut self.state.lock());
        job.map(|job| self.run(job)).is_some()
    }

    /// Runs an urgent job, if there is one and no thread is free for it.
    #[inline]
    pub(super) fn run_urgent(&self) -> bool {
        if self.urgent.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut state = self.state.lock();
        if state.idle > 0 {
            return false;
        }
        let job = self.take_urgent(&mut state);
        drop(state);
        job.map(|job| self.run(job)).is_some()
    }

    /// The number of jobs that have panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Threads that wait for a job.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.state.lock().idle
    }

    /// Lets the threads end after their current jobs. Returns the jobs that will not run; the
    /// caller must drop them without holding a lock, since their drop may call this queue.
    pub(super) fn shut_down(&self) -> Vec<Job> {
        let mut state = self.state.lock();
        state.shut_down = true;
        let (high, normal) = (std::mem::take(&mut state.high), std::mem::take(&mut state.normal));
        drop(state);
        self.any.notify_all();
        high.into_iter().chain(normal).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Arc;
    use crate::sync::thread::Builder;
    use std::sync::mpsc;

    #[test]
    fn who_is_free_takes_what_is_urgent() {
        let queue = Arc::new(JobQueue::default());
        let serve = |queue: Arc<JobQueue>| Builder::new().spawn(move || queue.serve()).unwrap();
        let threads = [serve(queue.clone()), serve(queue.clone())];
        let (report, done) = mpsc::channel();
        while queue.idle() < 2 {
            std::thread::yield_now();
        }
        let mut state = queue.state.lock();
        state.high.push_back(Box::new(move || report.send(()).unwrap()));
        queue.urgent.fetch_add(1, Ordering::Relaxed);
        drop(state);
        assert!(!queue.run_urgent(), "two threads are free");
        queue.any.notify_one();
        assert_eq!(done.recv(), Ok(()));
        assert!(!queue.run_urgent(), "nothing is left");
        drop(queue.shut_down());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
