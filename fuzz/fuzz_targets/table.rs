//! libFuzzer on target `table` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("table");
