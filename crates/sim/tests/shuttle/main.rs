//! Scenarios of the whole database under every order of its threads that random schedules can find:
//! `RUSTFLAGS="--cfg shuttle" cargo test --profile test -p windrow-sim --test shuttle --target-dir
//! target/shuttle`.
//!
//! Each test is a scenario of few threads on a real database over the simulated file system,
//! background jobs on the production pool. Every lock, wait and atomic is a point at which the
//! checker may go on with another thread; [`windrow_testkit::ledger`] judges the states that threads see.
//! `WINDROW_SCHEDULES=n` runs n schedules of each scenario; a failure prints the line that repeats
//! it.
#![cfg(shuttle)]

mod closing;
mod crashing;
mod keyspaces;
mod machine;
mod pairs;
mod reading;
mod resuming;
mod runner;
mod transactions;
