//! Every operation of a database, at the same time.
//!
//! One list of acts ([`ACTS`]), one ledger of their writes, and one judge. Every state that a
//! writer, a reader, a follower, a copy or an image of the directory shows is a prefix of the order
//! of commits, with everything acknowledged before the look. Three drivers: pairs of acts under
//! shuttle (`tests/shuttle/pairs.rs`), all of them on threads over the simulated file system with
//! kills, power losses, full devices and failures (`threads.rs`), and on the real system in
//! processes that are killed (`processes.rs`).
//!
//! Owns: nothing. Never does: know the machine that acts run on ([`Ground`]).

mod acts;
pub mod processes;
mod stage;
pub mod threads;

pub use acts::{ACTS, Act, Kind};
pub use stage::{Excuses, Ground, Stage, judge, resume_for_good, shown, verify_backups};
