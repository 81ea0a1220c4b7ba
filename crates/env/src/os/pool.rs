//! The pool of background threads.
//!
//! Each of N threads takes the most urgent job. A flush does not wait for a merge to end: merges
//! run urgent jobs between their steps (`run_urgent`). Rejected: a thread reserved for flushes. Of
//! two threads it was idle for nine tenths of a load that the other thread's merges held back. A
//! job's panic is contained and counted; the job's owner detects it by its own means. If the system
//! gives no thread at all, the pool runs its jobs in `step`, on the threads that wait for them.
//!
//! Owns: the threads, the queue and the timers. Never does: know the work of a job.

use super::job_queue::JobQueue;
use super::timer::Timers;
use crate::NotInherited;
use crate::jobs::{Job, Jobs, Urgency};
use crate::sync::Arc;
use crate::sync::thread::{self, Builder, JoinHandle};
use crate::sys::sched;

/// [`Jobs`] on threads of its own. Dropping it waits for running jobs and discards queued ones. A
/// forked child has none of the threads: it must make its own pool, and dropping its copy of this
/// one does nothing.
pub struct ThreadPool {
    inner: NotInherited<Pool>,
}

struct Pool {
    queue: Arc<JobQueue>,
    timers: Arc<Timers>,
    threads: Vec<JoinHandle<()>>,
}

impl ThreadPool {
    /// A pool of `threads` threads, at lower priority than the caller. Fewer
    /// if the system refuses some; [`Jobs::parallelism`] tells.
    pub fn new(threads: usize) -> ThreadPool {
        let queue = Arc::new(JobQueue::default());
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let shared = queue.clone();
            let spawned = Builder::new().name(format!("windrow-bg-{index}")).spawn(move || {
                // All threads of a model checker are the thread that runs the test.
                if cfg!(not(any(loom, shuttle))) {
                    sched::lower_priority_of_this_thread();
                }
                shared.serve();
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(_) => break,
            }
        }
        let timers = Arc::new(Timers::new(queue.clone()));
        ThreadPool { inner: NotInherited::new(Pool { queue, timers, threads: handles }) }
    }

    /// The number of jobs that have panicked.
    pub fn panics(&self) -> u64 {
        self.inner.queue.panics()
    }
}

impl Jobs for ThreadPool {
    fn submit(&self, urgency: Urgency, job: Job) {
        self.inner.queue.push(urgency, job);
    }

    fn run_apart(&self, job: Job) {
        let _ = Builder::new().name("windrow-apart".to_owned()).spawn(job);
    }

    fn parallelism(&self) -> usize {
        self.inner.threads.len().max(1)
    }

    fn is_of_this_process(&self) -> bool {
        self.inner.process().is_this()
    }

    fn step(&self) -> bool {
        if !self.inner.threads.is_empty() {
            return false;
        }
        self.inner.queue.run_next()
    }

    #[inline]
    fn run_urgent(&self) -> bool {
        self.inner.queue.run_urgent()
    }

    fn every(&self, interval_ms: u64, work: Arc<dyn Fn() -> bool + Send + Sync>) {
        Timers::add(&self.inner.timers, interval_ms, work);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let discarded = self.queue.shut_down();
        let timer = self.timers.shut_down();
        drop(discarded);
        // A job may have held the last handle to the pool: its thread cannot join itself, and ends
        // when the job returns.
        let me = thread::current().id();
        for handle in self.threads.drain(..).filter(|handle| handle.thread().id() != me) {
            let _ = handle.join();
        }
        if let Some(timer) = timer {
            let _ = timer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    #[test]
    fn urgent_jobs_do_not_wait_for_long_ones_to_end() {
        let pool = Arc::new(ThreadPool::new(2));
        let (report, done) = mpsc::channel();
        let (started, running) = mpsc::channel();
        let over = Arc::new(AtomicU64::new(0));
        for _ in 0..2 {
            let (mine, over, started) = (Arc::downgrade(&pool), over.clone(), started.clone());
            let merge = move || {
                started.send(()).unwrap();
                while over.load(Ordering::Relaxed) == 0 {
                    mine.upgrade().map(|pool| pool.run_urgent());
                    std::thread::yield_now();
                }
            };
            pool.submit(Urgency::Normal, Box::new(merge));
        }
        (0..2).for_each(|_| running.recv().unwrap());
        let tell = report.clone();
        pool.submit(Urgency::Normal, Box::new(move || tell.send("third merge").unwrap()));
        pool.submit(Urgency::High, Box::new(move || report.send("flush").unwrap()));
        // Both threads are in a merge: one runs the flush, neither runs a merge, however often it
        // asks.
        assert_eq!(done.recv(), Ok("flush"));
        (0..1_000).for_each(|_| assert!(!pool.run_urgent()));
        assert!(done.try_recv().is_err());
        over.store(1, Ordering::Relaxed);
        assert_eq!(done.recv(), Ok("third merge"));
    }

    #[test]
    fn one_thread_runs_by_urgency() {
        let pool = ThreadPool::new(1);
        let (release, gate) = mpsc::channel::<()>();
        let (report, done) = mpsc::channel();
        let (started, running) = mpsc::channel();
        pool.submit(
            Urgency::Normal,
            Box::new(move || {
                started.send(()).unwrap();
                gate.recv().unwrap();
            }),
        );
        running.recv().unwrap();
        for (urgency, name) in [
            (Urgency::Normal, 'n'),
            (Urgency::Normal, 'o'),
            (Urgency::High, 'h'),
            (Urgency::High, 'i'),
        ] {
            let tell = report.clone();
            pool.submit(urgency, Box::new(move || tell.send(name).unwrap()));
        }
        release.send(()).unwrap();
        let order: String = (0..4).map(|_| done.recv().unwrap()).collect();
        assert_eq!(order, "hino");
    }

    #[test]
    fn a_panic_is_contained_and_counted() {
        let pool = ThreadPool::new(1);
        let (report, done) = mpsc::channel();
        pool.submit(Urgency::High, Box::new(|| panic!("a job fails on purpose")));
        pool.submit(Urgency::High, Box::new(move || report.send(()).unwrap()));
        assert_eq!(done.recv(), Ok(()));
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
        assert_eq!(done.recv(), Ok(()));
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
        running.recv().unwrap();
        pool.submit(Urgency::Normal, Box::new(move || report.send("queued").unwrap()));
        release.send(()).unwrap();
        drop(pool);
        let seen: Vec<_> = done.try_iter().collect();
        // The queued job may have been taken before the drop, never after it.
        assert_eq!(seen[0], "ran");
        assert!(done.recv().is_err(), "both senders are gone");
    }

    /// A child that makes threads must not find its parent's waiting threads in a library's tables.
    #[test]
    fn a_forked_child_makes_a_pool_of_its_own() {
        let pool = ThreadPool::new(8);
        while pool.inner.queue.idle() < 8 {
            std::thread::yield_now();
        }
        for _ in 0..5 {
            assert!(crate::sys::fork::in_child(|| {
                (0..10).all(|_| {
                    let own = ThreadPool::new(8);
                    let (report, done) = mpsc::channel();
                    for number in 0..100 {
                        let tell = report.clone();
                        own.submit(Urgency::Normal, Box::new(move || tell.send(number).unwrap()));
                    }
                    (0..100).map(|_| done.recv().unwrap()).sum::<u32>() == 4950
                })
            }));
        }
    }

    /// The child has none of the threads: it would wait for them for ever.
    #[test]
    fn a_forked_child_may_drop_its_copy() {
        let mut pool = Some(ThreadPool::new(2));
        pool.as_ref().unwrap().every(60_000, Arc::new(|| true));
        assert!(crate::sys::fork::in_child(|| {
            drop(pool.take());
            true
        }));
        drop(pool);
    }

    #[test]
    fn without_threads_the_waiter_runs_the_jobs() {
        let pool = ThreadPool::new(0);
        let (report, done) = mpsc::channel();
        pool.submit(Urgency::Normal, Box::new(move || report.send(()).unwrap()));
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
        assert_eq!(done.recv(), Ok(()));
        drop(pool);
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }
}
