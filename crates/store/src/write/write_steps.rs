//! The steps of writing: a step is taken whenever an eighth of a memtable was written, and those who
//! wait for one are told, by the writer that took it, once its write is visible.
//!
//! The feed of changes takes a snapshot at each step (`engine/src/changes/moments.rs`).
//!
//! Owns: the list of those who are told. Never does: keep one of them alive, or hold a lock while it
//! is told.

use std::sync::{Arc, Weak};
use windrow_base::unless_mutant;
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::{AtomicBool, Ordering};
use windrow_read::lock_ranks;

/// Is told of each step. The writer waits meanwhile, and holds no lock.
pub trait StepWatcher: Send + Sync {
    /// A step was taken, or entries came in that are in no log.
    fn step(&self);
}

/// Those who are told.
pub struct WriteSteps {
    /// Whether there may be any: else a writer takes no lock.
    are_watched: AtomicBool,
    watchers: Mutex<Vec<Weak<dyn StepWatcher>>>,
}

impl Default for WriteSteps {
    fn default() -> WriteSteps {
        let watchers = Mutex::new(lock_ranks::STEP_WATCHERS, Vec::new());
        WriteSteps { are_watched: AtomicBool::new(false), watchers }
    }
}

impl WriteSteps {
    /// Has `watcher` told of each step from here on, for as long as it is held elsewhere.
    pub fn watch(&self, watcher: Weak<dyn StepWatcher>) {
        let mut watchers = self.watchers.lock();
        watchers.push(watcher);
        self.are_watched.store(true, Ordering::Release);
    }

    /// Tells of a step.
    #[inline]
    pub fn note(&self) {
        if self.are_watched.load(Ordering::Acquire) {
            self.tell();
        }
    }

    #[cold]
    fn tell(&self) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| watcher.strong_count() > 0);
        self.are_watched.store(!watchers.is_empty(), Ordering::Release);
        let told: Vec<Arc<dyn StepWatcher>> = watchers.iter().filter_map(Weak::upgrade).collect();
        drop(watchers);
        unless_mutant!(StepUntold, told.iter().for_each(|watcher| watcher.step()));
    }
}
