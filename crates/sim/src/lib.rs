//! The proof that nothing is lost: the engine on a simulated machine that crashes, fails, fills up
//! and rots, by seed, judged by a history of acknowledged operations; and the same tests on real
//! file systems.
//!
//! Owns: the harnesses and their programs (`fault`, `rot`, `metamorphic`,
//! `torture`). Never does: hold the model or the operations (`testkit`);
//! nothing depends on this crate.

pub mod crash;
pub mod exhaustive;
pub mod faults;
pub mod features;
pub mod feed;
pub mod fuzz;
pub mod judge;
pub mod killed_backups;
pub mod killed_repairs;
pub mod metamorphic;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod probes;
pub mod rot;
pub mod scans;
pub mod scenario;
pub mod set;
pub mod settle;
mod share;
pub mod shrink;
pub mod targets;
pub mod together;
pub mod torture;
pub mod traces;
pub mod trial;
mod watched_files;
