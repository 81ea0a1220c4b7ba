//! A file system that notices syncs and renames, and can let the process die shortly after one:
//! mistakes of ordering show there.
//!
//! Owns: counting the operations that make data durable. Everything else, dying included, is done
//! by the crash file system inside. Never does: change a result.

use crate::watched_files::{WatchedFs, Watcher};
use std::sync::Arc;
use windrow_env::FileSystem;
use windrow_env::sync::{Mutex, Rank};
use windrow_env::testing::CrashFs;

/// A thread that writes a file may hold any lock of the engine.
const PLAN: Rank = Rank::new(Rank::ENVIRONMENT - 1, "the plan of a crash");

/// Counts syncs and renames, and sets the crash.
struct Watch {
    fs: CrashFs,
    /// The number of syncs and renames that are left, and of operations after them until the crash.
    plan: Mutex<Option<(u64, u64)>>,
}

impl Watcher for Watch {
    fn settled(&self) {
        let mut plan = self.plan.lock();
        match &mut *plan {
            Some((0, then)) => {
                self.fs.crash_at(self.fs.operations() + *then);
                *plan = None;
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
    }
}

/// The plan of a crash.
pub struct Settle(Arc<Watch>);

impl Settle {
    /// Plans crashes of these files.
    pub fn new(fs: CrashFs) -> Settle {
        Settle(Arc::new(Watch { fs, plan: Mutex::new(PLAN, None) }))
    }

    /// Returns the file system on which they happen.
    pub fn files(&self) -> Arc<dyn FileSystem> {
        Arc::new(WatchedFs::new(Arc::new(self.0.fs.clone()), self.0.clone()))
    }

    /// Lets the process die at the `then`-th operation (from 0) after the `count`-th sync or rename
    /// (from 0) from now.
    pub fn crash_after(&self, count: u64, then: u64) {
        *self.0.plan.lock() = Some((count, then));
    }

    /// Forgets a crash that has not been reached.
    pub fn forget(&self) {
        *self.0.plan.lock() = None;
    }
}
