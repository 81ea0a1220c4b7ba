//! The program `torture`: see [`windrow_sim::torture`].

use clap::Parser;
use std::process::ExitCode;
use windrow_sim::torture::{self, Cli};

fn main() -> ExitCode {
    torture::run(Cli::parse())
}
