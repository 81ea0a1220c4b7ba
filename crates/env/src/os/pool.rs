//! Background threads.
//!
//! Each of N threads takes the most urgent job there is; with two or more,
//! one of them takes urgent jobs only, so that a flush never waits behind
//! merges. A job's panic is contained and counted; whoever owns the job
//! notices by its own means. Should the system give no thread at all, the
//! pool runs its jobs in `step`, on threads that wait for them.

use super::timer::Timers;
use crate::jobs::{Job, Jobs, Urgency};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::thread::{self, Builder, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex};
use crate::sys::sched;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// [`Jobs`] on threads of its own. Dropping it waits for running jobs and
/// discards queued ones.
pub struct ThreadPool {
    queue: Arc<JobQueue>,
    timers: Arc<Timers>,
    threads: Vec<JoinHandle<()>>,
}

/// What threads, timers and the pool share.
pub(super) struct JobQueue {
    state: Mutex<State>,
    /// Wakes threads that take any job.
    any: Condvar,
    /// Wakes the thread that takes urgent jobs only.
    urgent: Condvar,
    panics: AtomicU64,
}

#[derive(Default)]
struct State {
    high: VecDeque<Job>,
    normal: VecDeque<Job>,
    low: VecDeque<Job>,
    shut_down: bool,
}

impl State {
    fn take(&mut self, urgent_only: bool) -> Option<Job> {
        let job = self.high.pop_front();
        if urgent_only {
            return job;
        }
        job.or_else(|| self.normal.pop_front()).or_else(|| self.low.pop_front())
    }
}

impl JobQueue {
    pub(super) fn push(&self, urgency: Urgency, job: Job) {
        let mut state = self.state.lock();
        if state.shut_down {
            // Dropped outside the lock: what it holds may come back here.
            drop(state);
            drop(job);
            return;
        }
        match urgency {
            Urgency::High => state.high.push_back(job),
            Urgency::Normal => state.normal.push_back(job),
            Urgency::Low => state.low.push_back(job),
        }
        drop(state);
        if urgency == Urgency::High {
            self.urgent.notify_one();
        }
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

    fn serve(&self, urgent_only: bool) {
        let mut state = self.state.lock();
        loop {
            if state.shut_down {
                return;
            }
            if let Some(job) = state.take(urgent_only) {
                drop(state);
                self.run(job);
                state = self.state.lock();
            } else if urgent_only {
                self.urgent.wait(&mut state);
            } else {
                self.any.wait(&mut state);
            }
        }
    }
}

impl ThreadPool {
    /// A pool of `threads` threads, at lower priority than the caller. Fewer
    /// if the system refuses some; [`Jobs::parallelism`] tells.
    pub fn new(threads: usize) -> ThreadPool {
        let queue = Arc::new(JobQueue {
            state: Mutex::new(State::default()),
            any: Condvar::new(),
            urgent: Condvar::new(),
            panics: AtomicU64::new(0),
        });
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            // The last one, so that whoever got a single thread has one for all jobs.
            let urgent_only = index > 0 && index + 1 == threads;
            let shared = queue.clone();
            let spawned = Builder::new().name(format!("windrow-bg-{index}")).spawn(move || {
                // A model checker's threads all are the one that runs the test.
                if cfg!(not(any(loom, shuttle))) {
                    sched::lower_priority_of_this_thread(!urgent_only);
                }
                shared.serve(urgent_only);
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(_) => break,
            }
        }
        let timers = Arc::new(Timers::new(queue.clone()));
        ThreadPool { queue, timers, threads: handles }
    }

    /// How many jobs have panicked.
    pub fn panics(&self) -> u64 {
        self.queue.panics.load(Ordering::Relaxed)
    }
}

impl Jobs for ThreadPool {
    fn submit(&self, urgency: Urgency, job: Job) {
        self.queue.push(urgency, job);
    }

    fn parallelism(&self) -> usize {
        self.threads.len().max(1)
    }

    fn step(&self) -> bool {
        if !self.threads.is_empty() {
            return false;
        }
        let job = self.queue.state.lock().take(false);
        match job {
            Some(job) => {
                self.queue.run(job);
                true
            }
            None => false,
        }
    }

    fn every(&self, interval_ms: u64, work: Arc<dyn Fn() -> bool + Send + Sync>) {
        Timers::add(&self.timers, interval_ms, work);
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        let discarded =
            std::mem::replace(&mut *state, State { shut_down: true, ..State::default() });
        drop(state);
        self.queue.any.notify_all();
        self.queue.urgent.notify_all();
        let timer = self.timers.shut_down();
        drop(discarded);
        // A job may have held the last handle to the pool: its own thread
        // cannot wait for itself, and ends when the job returns.
        let me = thread::current().id();
        for handle in self.threads.drain(..).filter(|handle| handle.thread().id() != me) {
            let _ = handle.join();
        }
        let me = std::thread::current().id();
        if let Some(timer) = timer.filter(|timer| timer.thread().id() != me) {
            let _ = timer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn urgent_jobs_go_first_and_have_a_thread_kept_for_them() {
        let pool = ThreadPool::new(2);
        let (release, gate) = mpsc::channel::<()>();
        let (report, done) = mpsc::channel();
        let tell = report.clone();
        pool.submit(
            Urgency::Normal,
            Box::new(move || {
                tell.send("merge starts").unwrap();
                gate.recv().unwrap();
            }),
        );
        assert_eq!(done.recv_timeout(SOON), Ok("merge starts"));
        let tell = report.clone();
        pool.submit(Urgency::Normal, Box::new(move || tell.send("second merge").unwrap()));
        let tell = report.clone();
        pool.submit(Urgency::High, Box::new(move || tell.send("flush").unwrap()));
        // The flush overtakes the queued merge although a merge is running,
        // and that merge does not take the thread kept for flushes.
        assert_eq!(done.recv_timeout(SOON), Ok("flush"));
        assert!(done.recv_timeout(Duration::from_millis(50)).is_err());
        release.send(()).unwrap();
        assert_eq!(done.recv_timeout(SOON), Ok("second merge"));
    }

    #[test]
    fn one_thread_runs_by_urgency() {
        let pool = ThreadPool::new(1);
        let (release, gate) = mpsc::channel::<()>();
        let (report, done) = mpsc::channel();
        let (started, running) = mpsc::channel();
        pool.submit(
            Urgency::Low,
            Box::new(move || {
                started.send(()).unwrap();
                gate.recv().unwrap();
            }),
        );
        running.recv_timeout(SOON).unwrap();
        for (urgency, name) in [
            (Urgency::Low, 'l'),
            (Urgency::Normal, 'n'),
            (Urgency::High, 'h'),
            (Urgency::High, 'i'),
        ] {
            let tell = report.clone();
            pool.submit(urgency, Box::new(move || tell.send(name).unwrap()));
        }
        release.send(()).unwrap();
        let order: String = (0..4).map(|_| done.recv_timeout(SOON).unwrap()).collect();
        assert_eq!(order, "hinl");
    }

    #[test]
    fn a_panic_is_contained_and_counted() {
        let pool = ThreadPool::new(1);
        let (report, done) = mpsc::channel();
        pool.submit(Urgency::High, Box::new(|| panic!("a job fails on purpose")));
        pool.submit(Urgency::High, Box::new(move || report.send(()).unwrap()));
        assert_eq!(done.recv_timeout(SOON), Ok(()));
        assert_eq!(pool.panics(), 1);
    }

    #[test]
    fn the_last_handle_may_drop_in_a_job() {
        let pool = Arc::new(ThreadPool::new(2));
        let (report, done) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let mine = pool.clone();
        pool.submit(
            Urgency::High,
            Box::new(move || {
                gate.recv().unwrap();
                drop(mine);
                report.send(()).unwrap();
            }),
        );
        drop(pool);
        release.send(()).unwrap();
        assert_eq!(done.recv_timeout(SOON), Ok(()));
    }

    #[test]
    fn drop_waits_for_what_runs_and_discards_the_rest() {
        let pool = ThreadPool::new(1);
        let (report, done) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let (started, running) = mpsc::channel();
        let tell = report.clone();
        pool.submit(
            Urgency::Normal,
            Box::new(move || {
                started.send(()).unwrap();
                gate.recv().unwrap();
                tell.send("ran").unwrap();
            }),
        );
        running.recv_timeout(SOON).unwrap();
        pool.submit(Urgency::Normal, Box::new(move || report.send("queued").unwrap()));
        release.send(()).unwrap();
        drop(pool);
        let seen: Vec<_> = done.try_iter().collect();
        // The queued job may have been taken before the drop, never after it.
        assert_eq!(seen[0], "ran");
        assert!(done.recv().is_err(), "both senders are gone");
    }

    #[test]
    fn without_threads_the_waiter_runs_the_jobs() {
        let pool = ThreadPool::new(0);
        let (report, done) = mpsc::channel();
        pool.submit(Urgency::Low, Box::new(move || report.send(()).unwrap()));
        assert!(done.try_recv().is_err());
        assert!(pool.step());
        assert_eq!(done.try_recv(), Ok(()));
        assert!(!pool.step());
    }

    #[test]
    fn timers_repeat_until_told_to_stop() {
        let pool = ThreadPool::new(1);
        let count = Arc::new(AtomicU64::new(0));
        let (report, done) = mpsc::channel();
        let counted = count.clone();
        pool.every(
            1,
            Arc::new(move || {
                let now = counted.fetch_add(1, Ordering::Relaxed) + 1;
                if now == 3 {
                    report.send(()).unwrap();
                }
                now < 3
            }),
        );
        assert_eq!(done.recv_timeout(SOON), Ok(()));
        drop(pool);
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }
}
