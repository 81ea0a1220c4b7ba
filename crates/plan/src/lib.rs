//! Decisions about the tree: which files to merge, move or drop, where output
//! files end, how many filter bits they get.
//!
//! Owns: the tree as metadata (`tree`), and the policies that look at it. A
//! policy is one value on each of six axes (`axes`), its only state is its
//! options, and it answers with a [`Decision`] that carries its reason.
//! Never does: I/O, clocks, randomness, threads (`no_std` + `alloc`, so that
//! they do not compile), errors from deciding.
//!
//! The invariants I1 to I10 are stated where they are kept: I1, I2, I4 in
//! `tree/apply.rs` and `tree/level.rs`, I5 in `tree/closure.rs`, I6 in
//! `tree/older_files.rs`, I7 in `decision.rs`, I9 in `busy.rs`, I10 in `pick/`.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod axes;
pub mod busy;
pub mod cost;
pub mod cut;
pub mod decision;
mod dial;
pub mod filter_memory;
pub mod hotness;
pub mod ingestion;
pub mod level0;
pub mod pick;
pub mod preset;
pub mod shape;
pub mod sizes;
mod soundness;
pub mod tree;
pub mod usage;
pub mod use_measure;
pub mod view;

pub use axes::{Debt, Policy};
pub use busy::Busy;
pub use cut::Cutter;
pub use decision::{Decision, Drop, Input, Merge, Move, Reason, Reshape};
pub use pick::hidden_tables::{self, Covered, Covers, TableTombstone};
pub use pick::manual::ManualState;
pub use pick::read_triggered_merges::ReadCosts;
pub use view::{PlanSettings, View};
