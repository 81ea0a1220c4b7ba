//! libFuzzer on target `log` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("log");
