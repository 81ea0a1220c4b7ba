//! `shell`: the commands of the program on one open database, line after line, at a prompt
//! or from a script.
//!
//! A line is parsed by the table of arguments that parses the command line, with the
//! database put in its place, and a command finds the session where it would open one
//! (`store.rs`). An error ends its command and not the session.
//!
//! Owns: opening, and the loop over a script.

mod complete;
mod lines;
mod prompt;
mod table;
mod words;

use crate::args::{Cli, ShellArgs};
use crate::failure::{Failure, Result};
use crate::human;
use crate::input::{Line, Lines, Source};
use crate::session::{How, Session};
use crate::stop;
use crate::store::{self, Access};
use lines::{Commands, Then};
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// A session. `run` runs a command of the program.
///
/// # Errors
/// What keeps it from being opened or ends it; `Failed` if a line of a script failed.
pub(crate) fn run(args: &ShellArgs, quiet: bool, run: fn(Cli) -> Result<()>) -> Result<()> {
    let session = Arc::new(open(args, quiet)?);
    let commands = Commands::new(session.clone(), run, quiet);
    let outcome = match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => prompt::run(&commands),
        false => script(&commands),
    };
    let closed = session.db().close().map_err(Failure::from);
    outcome.and(closed)
}

/// For writing, if nobody else has it open so, and as a follower otherwise.
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

/// Lines of standard input, to its end. A failure of one is told and does not keep the next
/// from being run; the exit code says that there was one.
fn script(commands: &Commands) -> Result<()> {
    let mut lines = Lines::new(Source::open(None)?);
    let (mut run, mut failed) = (0u64, 0u64);
    loop {
        let number = lines.number() + 1;
        let line = match lines.next(false)? {
            Line::Text(line) => line.to_vec(),
            Line::Idle => continue,
            Line::End => break,
        };
        run += 1;
        match commands.run_line(&line) {
            Ok(Then::Next) => {}
            Ok(Then::Exit) => break,
            Err(failure @ (Failure::ClosedPipe | Failure::Interrupted)) => return Err(failure),
            Err(failure) => {
                failed += 1;
                store::warn(format_args!("line {number}:"));
                failure.report();
            }
        }
        stop::check()?;
    }
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::failed(format!("{failed} of {} failed", human::plural(run, "line")))
        .hint("each says above what was wrong; what the others did stays done"))
}
