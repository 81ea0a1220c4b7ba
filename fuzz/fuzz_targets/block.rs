//! libFuzzer on target `block` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("block");
