//! The cost of a policy: its decisions run on a tree of bare keys.
//!
//! Owns: a simulator in which every key is one unit of size, workloads drawn
//! from a seed, the figures that come out, and the design's own table of such
//! figures to compare with. Every decision is [`windrow_plan::Policy::pick`]'s,
//! asked as the engine asks: the policy sees the tree, and the lab merges.
//! Never does: I/O, time, threads. It says what a shape costs, not how fast
//! it runs: one job at a time, and writers that wait for every one of them.

pub mod ablation;
mod drawing;
pub mod evidence;
pub mod figures;
pub mod fit;
pub mod picture;
pub mod play;
pub mod random;
pub mod reads;
pub mod report;
pub mod search;
pub mod setup;
pub mod simulator;
pub mod strip;
pub mod workload;

pub use figures::Figures;
pub use setup::{Order, Setup, TreeSizes};
pub use simulator::simulate;
pub use workload::Workload;
