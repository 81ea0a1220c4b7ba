//! The real world: files by system calls, the system's clocks, threads.
//!
//! Owns: what Linux is asked for. Never does: retry a failed sync (rule R13),
//! or look at what is in a file.

mod anchors;
mod clock;
mod directory;
mod file_lock;
mod file_system;
mod job_queue;
mod lease;
mod lock_register;
mod log_file;
mod place;
#[cfg(test)]
mod place_tests;
mod pool;
mod random;
mod read_file;
mod read_many;
mod retry;
#[cfg(test)]
mod tests;
mod timer;
mod write_file;

pub use clock::OsClock;
pub use file_system::OsFs;
pub use pool::ThreadPool;
pub use random::OsRandom;
