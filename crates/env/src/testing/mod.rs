//! The outside world in memory, by seed: a file system that loses unsynced changes and fails on
//! demand, a clock that moves only by calls, random numbers that repeat, and background jobs that
//! run only when stepped.
//!
//! Owns: nothing that production code links (feature `testing`). Never does: sleep, read a real
//! clock, or, except for [`ManualTimers`], leave the order of anything to the system. One seed
//! gives one trace ([`CrashFs::trace_hash`]).

mod clock;
mod crash_files;
mod crash_fs;
mod crash_state;
#[cfg(test)]
mod crash_tests;
mod directory;
mod fault;
mod image;
mod inode;
mod interleaver;
mod manual_timers;
mod power_loss;
mod random;
mod stepper;

pub use clock::ManualClock;
pub use crash_fs::CrashFs;
pub use fault::{Fault, FaultId, FaultKind, Ops, When};
pub use interleaver::Interleaver;
pub use manual_timers::ManualTimers;
pub use power_loss::{FileDamage, NameDamage, PowerLoss};
pub use random::{Rng, SeededRandom};
pub use stepper::Stepper;

pub use crate::sync::locks::forbidden::without_locks;
pub use crate::sys::fork::{ForkedChild, in_child};
pub use crate::sys::heap::CountingHeap;
pub use crate::sys::shutdown::{Shutdown, shut_down_file_system};

use crate::Env;
use std::sync::Arc;

/// The test's side of an [`Env`] made by [`env()`].
#[derive(Clone)]
pub struct Handles {
    /// The files.
    pub fs: CrashFs,
    /// The clock, at 2030-01-01.
    pub clock: Arc<ManualClock>,
    /// The background jobs; they run in `step`.
    pub jobs: Arc<Stepper>,
    /// The random numbers.
    pub random: Arc<SeededRandom>,
}

impl Handles {
    /// Returns an environment over these handles; several environments share everything.
    pub fn env(&self) -> Env {
        Env {
            fs: Arc::new(self.fs.clone()),
            clock: self.clock.clone(),
            jobs: self.jobs.clone(),
            random: self.random.clone(),
        }
    }

    /// Returns the handles of the same world without queued background jobs, as after the death of
    /// the process.
    #[must_use]
    pub fn reborn(&self, seed: u64) -> Handles {
        Handles { jobs: Arc::new(Stepper::new(seed)), ..self.clone() }
    }
}

/// Makes a whole environment in memory, with every choice drawn from `seed`.
pub fn env(seed: u64) -> (Env, Handles) {
    let mut rng = Rng::new(seed);
    let handles = Handles {
        fs: CrashFs::new(rng.next_u64()),
        clock: Arc::new(ManualClock::new()),
        jobs: Arc::new(Stepper::new(rng.next_u64())),
        random: Arc::new(SeededRandom::new(rng.next_u64())),
    };
    (handles.env(), handles)
}
