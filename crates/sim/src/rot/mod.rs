//! Rot: bytes of a small database changed, cut off, zeroed, swapped, made old again or exchanged
//! for another database's, one damage at a time, on images that were closed cleanly (P5a) and on
//! images of crashes (P5b), with `verify` and `repair` judged by the same damages (P6, P12, P23).
//!
//! The rule: every read gives the written value or a `Corruption` that names a file. Only the last
//! sync group in a crashed database's logs may be lost, and then a prefix of the history is left.
//!
//! Owns: the images ([`Specimen`]), the damages ([`Damage`], [`Plan`]), the judgement ([`check`],
//! [`check_repair`]). Never does: damage the lock file, which is empty.

mod damage;
mod judge;
mod plan;
mod repair_check;
mod scripts;
mod specimen;

pub use damage::{Case, Damage, Donor, Source};
pub use judge::{Outcome, check};
pub use plan::{Density, Plan, misplaced};
pub use repair_check::{Repaired, check_repair};
pub use scripts::{CLOSED, CRASHES, Ending, Script};
pub use specimen::Specimen;
