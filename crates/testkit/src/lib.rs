//! What proves the engine: a model that is right by reading, scripts and
//! random operations that model and engine must answer alike, and harnesses
//! that crash it, fail it, fill its disk and flip its bits.
//!
//! Owns: the corpus (`corpus/*.txt`), the model, the harnesses. Runs under
//! `cargo test -p windrow-testkit`; every failure prints a line that repeats it.
//! Never does: anything in a released program; nothing depends on this crate.

pub mod cases;
pub mod compose;
pub mod crash;
pub mod faults;
pub mod flip;
pub mod model;
pub mod op;
pub mod oracle;
pub mod script;
pub mod settle;
pub mod subject;
pub mod sweep;
pub mod text;
pub mod variant;
pub mod world;
