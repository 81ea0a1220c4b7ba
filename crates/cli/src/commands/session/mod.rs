//! `shell`: the commands of the program on one open database, line after line, at a prompt or from
//! a script.
//!
//! A line is parsed by the table of arguments that parses the command line, with the database put
//! in its place, and a command finds the session where it would open a database (`store.rs`). An
//! error ends its command and not the session.
//!
//! Owns: opening the session. Never does: run a command (`commands/mod.rs` does).

mod complete;
mod lines;
mod prompt;
mod table;
mod words;

use crate::args::{Cli, ShellArgs};
use crate::failure::{Failure, Result};
use crate::input::Source;
use crate::session::{How, Session};
use crate::store::{self, Access};
use lines::Commands;
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// Runs a session. `run` runs a command of the program.
///
/// # Errors
/// Those of opening and of the terminal; `Failed` if a line of a script failed.
pub(crate) fn run(args: &ShellArgs, quiet: bool, run: fn(Cli) -> Result<()>) -> Result<()> {
    let session = Arc::new(open(args, quiet)?);
    let commands = Commands::new(session.clone(), run, quiet);
    let outcome = match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => prompt::run(&commands),
        false => Source::open(None).and_then(|source| commands.run_lines(source)).map(drop),
    };
    let closed = session.db().close().map_err(Failure::from);
    outcome.and(closed)
}

/// Opens the session for writing, unless another process has the database open for writing; then as
/// a follower.
fn open(args: &ShellArgs, quiet: bool) -> Result<Session> {
    let path = &args.open.path;
    if args.read_only {
        return Ok(Session::new(path, How::Follows(store::follow(&args.open)?)));
    }
    let access = if args.create { Access::Create } else { Access::Change };
    match store::opened(&args.open, access) {
        Ok(opened) => Ok(Session::new(path, How::Open(opened.db))),
        Err(failure) if failure.is_busy() => {
            let follower = store::follow(&args.open)?;
            if !quiet {
                store::warn("another process has the database open: this session only reads");
            }
            Ok(Session::new(path, How::Follows(follower)))
        }
        Err(failure) => Err(failure),
    }
}
