//! The program `torture`: see [`windrow_sim::torture`].
//!
//! Owns: the allocator that counts the heap, and the entry point. Never does: run a torture itself.

use clap::Parser;
use std::process::ExitCode;
use windrow_env::testing::CountingHeap;
use windrow_sim::torture::{self, Cli};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

fn main() -> ExitCode {
    torture::run(Cli::parse())
}
