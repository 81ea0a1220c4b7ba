//! The trait of background work. A job is a boxed closure of the engine.
//!
//! In production a pool of threads at a lower scheduling priority runs jobs. In simulation one
//! seeded stepper holds them in a queue, and a writer that would block steps the queue instead, so
//! that a seed reproduces a whole run.
//!
//! Owns: the trait. Never does: run a job (`os`, `testing`), or know its work.

use std::sync::Arc;

/// The urgency of a job. Long jobs of less urgency let urgent ones run in between
/// ([`Jobs::run_urgent`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Writers may be waiting for it: flush, log sync, preparing a log.
    High,
    /// Merges, and the removal of obsolete files.
    Normal,
}

/// A piece of background work.
pub type Job = Box<dyn FnOnce() + Send + 'static>;

/// Runs jobs in the background.
pub trait Jobs: Send + Sync + 'static {
    /// Queues a job. A panic of a job is contained; the job's owner detects it by its own means (in
    /// the engine, a panic of a job is a background error).
    fn submit(&self, urgency: Urgency, job: Job);

    /// Runs a job on its own thread, which is never joined: for a job that waits for other jobs,
    /// and is started by one. If the system gives no thread, the job is not run. (A stepper queues
    /// it with the others.)
    fn run_apart(&self, job: Job) {
        self.submit(Urgency::Normal, job);
    }

    /// The number of jobs that can run at the same time.
    fn parallelism(&self) -> usize;

    /// Whether jobs of the running process are ever run: a child made by `fork` has a copy of its
    /// parent's pool, and none of the threads.
    fn is_of_this_process(&self) -> bool {
        true
    }

    /// Called by a thread that is about to wait for background work, before
    /// each wait. A stepper runs one queued job on the calling thread and
    /// returns whether it did (the caller then checks its condition again
    /// instead of waiting); a pool does nothing and returns `false`.
    ///
    /// The caller must hold no locks.
    fn step(&self) -> bool {
        false
    }

    /// Called by a long job between two of its steps. If an urgent job waits and no thread is free
    /// to take it, runs it on the calling thread and returns `true`.
    ///
    /// The caller must hold no locks.
    fn run_urgent(&self) -> bool {
        false
    }

    /// Runs `work` every `interval_ms` until it returns `false`. A stepper never calls it by
    /// itself.
    fn every(&self, interval_ms: u64, work: Arc<dyn Fn() -> bool + Send + Sync>);
}
