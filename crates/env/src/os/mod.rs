//! The operating system's environment: files by system calls, the system's clocks, threads.
//!
//! Owns: the calls of Linux. Never does: retry a failed sync (rule R13), or interpret a file's
//! contents.

mod anchors;
mod clock;
mod directory;
mod file_lock;
mod file_system;
mod job_queue;
mod lease;
mod lock_register;
mod log_file;
mod name_at;
#[cfg(test)]
mod name_at_tests;
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
