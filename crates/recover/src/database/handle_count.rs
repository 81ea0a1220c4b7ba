//! How many handles keep a database open, and the lock on its directory.
//!
//! Owns: both. Never does: close, or know what a handle is for (`handle.rs`).

use windrow_env::fs::FileLock;
use windrow_env::sync::atomic::{AtomicUsize, Ordering};
use windrow_env::sync::{Mutex, MutexGuard};
use windrow_read::lock_ranks;

/// The count of open handles, and the lock on the directory.
pub struct HandleCount {
    count: AtomicUsize,
    lock: Mutex<Option<Box<dyn FileLock>>>,
}

impl Default for HandleCount {
    fn default() -> HandleCount {
        HandleCount { count: AtomicUsize::new(0), lock: Mutex::new(lock_ranks::CLOSING, None) }
    }
}

impl HandleCount {
    /// Sets the count to one, for a database whose directory is locked.
    pub fn begin(&self, lock: Box<dyn FileLock>) {
        self.count.store(1, Ordering::Relaxed);
        *self.lock.lock() = Some(lock);
    }

    /// Counts one more handle.
    #[inline]
    pub fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one handle less. Returns whether it was the last.
    #[inline]
    pub fn remove(&self) -> bool {
        self.count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The lock on the directory; `None` once it is free.
    pub fn directory(&self) -> MutexGuard<'_, Option<Box<dyn FileLock>>> {
        self.lock.lock()
    }
}
