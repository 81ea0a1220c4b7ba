//! Whether a timer looks for jobs that wait to be tried again.
//!
//! One timer runs as long as any job waits: a thread that makes a job wait begins it, and it ends
//! itself once it finds none. Both at once must not leave a job that no timer looks for: a thread
//! that finds the timer running relies on it, so a timer that has marked its end looks once more.
//!
//! Owns: the mark that one runs. Never does: start a timer, or know the jobs that wait.

use windrow_env::sync::atomic::{AtomicBool, Ordering};

/// Whether a timer runs.
#[derive(Default)]
pub struct RetryTimer {
    runs: AtomicBool,
}

impl RetryTimer {
    /// Notes that a job waits from now on. Returns whether the caller must start a timer for it.
    pub fn begin(&self) -> bool {
        !self.runs.swap(true, Ordering::AcqRel)
    }

    /// Asked by the timer: whether it goes on. `waits` says whether a job waits.
    pub fn goes_on(&self, mut waits: impl FnMut() -> bool) -> bool {
        if waits() {
            return true;
        }
        // Acquires the waiting jobs of threads that found the timer running until now.
        self.runs.swap(false, Ordering::AcqRel);
        waits() && self.begin()
    }
}

#[cfg(test)]
mod tests {
    use super::RetryTimer;

    #[test]
    fn a_timer_runs_while_a_job_waits() {
        let timer = RetryTimer::default();
        assert!(timer.begin() && !timer.begin(), "one is enough");
        assert!(timer.goes_on(|| true) && !timer.begin());
        assert!(!timer.goes_on(|| false));
        assert!(timer.begin(), "the next job has its own");
    }

    /// A job's retry waited until something else was scheduled.
    #[test]
    fn a_job_that_comes_as_the_timer_ends_is_looked_for() {
        let timer = RetryTimer::default();
        assert!(timer.begin());
        let mut waits = false;
        let goes_on = timer.goes_on(|| {
            let found = waits;
            if !found {
                waits = true;
                assert!(!timer.begin(), "the timer still runs");
            }
            found
        });
        assert!(goes_on, "a job waits, and no timer looks for it");
        assert!(!timer.begin(), "there would be two");
    }
}
