//! Completion scripts and manual pages, from the same table of arguments that
//! parses the command line.
//!
//! Owns: their output. Never does: know an argument.

use crate::args::Cli;
use crate::failure::{Failure, Result};
use clap::CommandFactory;
use std::io::{self, Write};

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<()> {
    // The script is generated in memory first: the generator panics where a
    // pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "windrow", &mut script);
    print(&script)
}

pub(crate) fn man(command: Option<&str>) -> Result<()> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root,
        Some(name) => root
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::usage(format!("there is no command `{name}`")))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    print(&text)
}

fn print(text: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    Ok(out.flush()?)
}
