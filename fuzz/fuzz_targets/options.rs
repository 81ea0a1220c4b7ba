//! libFuzzer on target `options` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("options");
