//! libFuzzer on target `directory` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("directory");
