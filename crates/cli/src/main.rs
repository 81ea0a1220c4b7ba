//! `windrow`, the program: the command line of a Windrow database.
//!
//! Owns: the arguments, the output, exit codes (0 done, 1 failed or not found, 2 bad usage, 3 done
//! with something lost or left out, 130 stopped by Ctrl-C). Never does: anything that a program
//! which uses the library could not do; it opens databases as any of them would.

mod args;
mod bytes;
mod change_line;
mod commands;
#[cfg(feature = "serve")]
mod durability;
mod failure;
mod formats;
mod human;
mod input;
mod json_path;
mod jsonl;
mod layout;
#[cfg(feature = "serve")]
mod log;
mod picture;
mod progress;
mod quotes;
mod session;
mod sorter;
mod stop;
mod store;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => return told(&said),
    };
    stop::install(cli.command.on_stop());
    match commands::run(cli) {
        Ok(()) if store::has_left_out() => ExitCode::from(args::EXIT_LOST),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help or the mistake in the arguments. Help that cannot be printed is a failure.
fn told(said: &clap::Error) -> ExitCode {
    let printed = said.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if !said.use_stderr() => failure::Failure::from(error).report(),
        _ => ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(2)),
    }
}
