//! The conformance tests of the engine, in one program:
//! `cargo test -p windrow-testkit --test it limits` runs one module. `threads` has a program of its
//! own, which sanitizers run.

mod bounds;
mod conformance;
mod lifetimes;
mod limits;
mod property;
mod switching;
