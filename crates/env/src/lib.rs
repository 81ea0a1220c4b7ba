//! The outside world behind traits: files, clock, jobs, checksums, locks.
//!
//! Owns: every system call, every thread, every reading of a clock, and the in-memory versions of
//! them that crash and fail by seed (feature `testing`). Never does: decide anything about keys,
//! files' contents or the time of work.

pub mod checksum;
pub mod clock;
mod error;
pub mod fs;
pub mod jobs;
mod lock_ranks;
mod os;
mod random;
mod space;
pub mod sync;
mod sys;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use clock::Clock;
pub use fs::{FileSystem, LogFile, ReadFile, WriteFile};
pub use jobs::Jobs;
pub use os::{OsClock, OsFs, OsRandom, ThreadPool};
pub use random::Random;
pub use sys::buffer::Buffer;
pub use sys::prefetch::prefetch;
pub use sys::process::{NotInherited, Process};

use std::sync::Arc;

/// The environment of a database: its files, clock, background jobs and random numbers.
#[derive(Clone)]
pub struct Env {
    /// The files.
    pub fs: Arc<dyn FileSystem>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The runner of background jobs.
    pub jobs: Arc<dyn Jobs>,
    /// The source of random numbers (file uids, jitter).
    pub random: Arc<dyn Random>,
}

impl Env {
    /// The operating system's files, clock and random numbers, and
    /// `background_threads` threads for background work.
    pub fn os(background_threads: usize) -> Env {
        Env {
            fs: Arc::new(OsFs::new()),
            clock: Arc::new(OsClock),
            jobs: Arc::new(ThreadPool::new(background_threads)),
            random: Arc::new(OsRandom),
        }
    }
}
