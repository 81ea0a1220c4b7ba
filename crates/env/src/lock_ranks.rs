//! The locks of this crate, in the order in which they are taken.
//!
//! Owns: their ranks, which are greater than those of all locks outside: a caller of files, jobs or
//! random numbers may hold any of these. Never does: check them (`sync::Rank`).

use crate::sync::Rank;

const fn rank(offset: u16, name: &'static str) -> Rank {
    Rank::new(Rank::ENVIRONMENT + offset, name)
}

/// Shared by threads that finish files together.
pub(crate) const FILES_LEFT: Rank = rank(10, "the files that are left to finish");
/// Likewise shared by these threads.
pub(crate) const FILES_FAILED: Rank = rank(11, "the first failure of files that are finished");
/// Held while space is reserved.
pub(crate) const LOG_GROWING: Rank = rank(20, "the growth of a log file");
/// Held while a part of a log is mapped.
pub(crate) const LOG_MAPPING: Rank = rank(30, "the mapping of a log file's window");

/// The timers, which start their thread under it.
pub(crate) const TIMERS: Rank = rank(40, "the timers");
/// The queue that threads serve, or a test's queue in its place.
pub(crate) const JOBS: Rank = rank(50, "the queue of jobs");
/// The register of locked files, which a fork takes too, whatever locks its thread holds.
pub(crate) const LOCKED_FILES: Rank = rank(55, "the register of locked files");

/// In tests, all of a file system except the contents of files.
#[cfg(any(test, feature = "testing"))]
pub(crate) const CRASH_FS: Rank = rank(60, "the crash file system");
/// In tests, one file's contents: one file at a time.
#[cfg(any(test, feature = "testing"))]
pub(crate) const CRASH_FILE: Rank = rank(70, "a file of the crash file system");
/// In tests, the seeded random numbers.
#[cfg(any(test, feature = "testing"))]
pub(crate) const RANDOM: Rank = rank(80, "the random numbers");
