//! The library as its users call it, in one program: a test binary costs a link of the whole
//! engine. `cargo test -p windrow --test it place` runs one module.
//!
//! Tests that need a process of their own are the files next to this directory.

mod abuse;
mod calls;
mod change_wakers;
mod changes;
mod cross_checks;
mod database;
mod descriptors;
mod filter_memory;
mod follower;
mod handles;
mod hermitage;
mod ingest;
mod kept_logs;
mod log_space;
mod memory;
mod moments;
mod names;
mod old_values;
mod own_settings;
mod place;
mod prefix_watches;
mod range_deletes;
mod records_left_out;
mod refused_merges;
mod repair;
mod resume;
mod shifts;
mod simulated_database;
mod slow_followers;
mod small_devices;
mod small_flushes;
mod syncs;
mod unregistered_operators;
mod watching;
