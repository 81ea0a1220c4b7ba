//! The program `torture`: see [`windrow_sim::torture`].

use clap::Parser;
use std::process::ExitCode;
use windrow_env::testing::CountingHeap;
use windrow_sim::torture::{self, Cli};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

fn main() -> ExitCode {
    torture::run(Cli::parse())
}
