//! Waiting for background work: one counter of changes, for everything that a thread may wait for.
//!
//! Changes are few and waits rare, so a waiting thread looks again at every change.
//!
//! Owns: the counter. Never does: know what is waited for.

use windrow_env::sync::{Condvar, Mutex};
use windrow_read::lock_ranks;

/// Counts the changes that threads wait for.
pub struct Progress {
    generation: Mutex<u64>,
    changed: Condvar,
}

impl Default for Progress {
    fn default() -> Progress {
        let generation = Mutex::new(lock_ranks::PROGRESS, 0);
        Progress { generation, changed: Condvar::new() }
    }
}

impl Progress {
    /// Tells the waiting threads that something changed.
    pub fn note(&self) {
        *self.generation.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits until `done` answers. If `step` did some of the work itself, `done` is asked again
    /// instead.
    pub fn wait_until<T>(&self, step: impl Fn() -> bool, mut done: impl FnMut() -> Option<T>) -> T {
        loop {
            let seen = *self.generation.lock();
            if let Some(answer) = done() {
                return answer;
            }
            if step() {
                continue;
            }
            let mut generation = self.generation.lock();
            while *generation == seen {
                self.changed.wait(&mut generation);
            }
        }
    }
}
