//! The correctness kit of the engine: a model that is right by reading, and
//! scripts and random operations that model and engine must answer alike.
//!
//! Owns: the corpus (`corpus/*.txt`), the model, the oracle, the ledger of concurrent writers. Runs under
//! `cargo test -p windrow-testkit`; every failure prints a line that repeats it.
//! Never does: anything in a released program; harnesses that crash and damage
//! a database are `sim`'s.

pub mod cases;
pub mod compose;
pub mod ledger;
pub mod model;
pub mod op;
pub mod oracle;
pub mod script;
pub mod serial;
pub mod subject;
pub mod sweep;
pub mod text;
pub mod variant;
pub mod world;
