//! libFuzzer on target `operations` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("operations");
