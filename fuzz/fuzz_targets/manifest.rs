//! libFuzzer on target `manifest` of `windrow_sim::fuzz`.
#![no_main]

windrow_fuzz::fuzz!("manifest");
