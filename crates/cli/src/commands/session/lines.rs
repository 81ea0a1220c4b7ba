//! The execution of a session's lines.
//!
//! Owns: the parser, the dispatch of a line, and scripts. Never does: edit a line (`prompt.rs`
//! does).

use super::table::{OUTSIDE, OWN_COMMANDS, help, help_of, parser, shown};
use super::words;
use crate::args::{Cli, Command};
use crate::failure::{Failure, Result};
use crate::human;
use crate::input::{Line, Lines, Source};
use crate::session::Session;
use crate::stop::{self, OnStop};
use crate::store;
use clap::FromArgMatches;
use clap::parser::ValueSource;
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The step after a line.
pub(super) enum Then {
    Next,
    Exit,
}

/// The state that lines are run with.
pub(super) struct Commands {
    pub(super) session: Arc<Session>,
    /// Runs a command of the program.
    pub(super) run: fn(Cli) -> Result<()>,
    pub(super) quiet: bool,
    parser: RefCell<clap::Command>,
    /// The depth of `source`: the number of files that are being run, each by a line of the one
    /// before.
    sources: Cell<u32>,
}

/// The most files that run each other: more is a file that runs itself.
const SOURCES_MAX: u32 = 16;

impl Commands {
    pub(super) fn new(session: Arc<Session>, run: fn(Cli) -> Result<()>, quiet: bool) -> Commands {
        Commands { session, run, quiet, parser: RefCell::new(parser()), sources: Cell::new(0) }
    }

    /// Runs a line.
    pub(super) fn run_line(&self, line: &[u8]) -> Result<Then> {
        let session = &self.session;
        let words = words::split(line).map_err(|why| {
            Failure::failed(why).hint("put what holds blanks, quotes or backslashes in '...'")
        })?;
        let Some(first) = words.first() else { return Ok(Then::Next) };
        match (first.to_str(), &words[1..]) {
            (Some("exit" | "quit"), []) => return Ok(Then::Exit),
            (Some("help"), []) => help()?,
            (Some("help"), [name]) => help_of(name)?,
            (Some("use"), []) => writeln!(io::stdout(), "{}", session.keyspace())?,
            (Some("use"), [name]) => use_keyspace(session, &name.to_string_lossy())?,
            (Some("source"), [file]) => return self.source(Path::new(file)),
            (Some("refresh"), []) => session.refresh()?,
            (Some(name), _) if OWN_COMMANDS.contains(&name) => {
                return Err(Failure::failed(format!("`{name}` was given too many words"))
                    .hint("`help` lists the commands, each with what it takes"));
            }
            (Some(name), _) if OUTSIDE.contains(&name) => {
                return Err(Failure::failed(format!("`{name}` has no place in a session"))
                    .hint(format!("leave with `exit`, and run `windrow {name}`")));
            }
            _ => {
                session.refresh()?;
                return self.run_command(words).map(|()| Then::Next);
            }
        }
        Ok(Then::Next)
    }

    /// Runs the lines of a script, to its end or `exit`. A failed line is reported, and the next
    /// one is run.
    ///
    /// # Errors
    /// `Failed` if a line failed; `Interrupted`, `ClosedPipe`.
    pub(super) fn run_lines(&self, source: Source) -> Result<Then> {
        let of_file = match source.name() {
            "standard input" => String::new(),
            name => format!(" of {name}"),
        };
        let mut lines = Lines::new(source);
        let (mut run, mut failed, mut then) = (0u64, 0u64, Then::Next);
        while matches!(then, Then::Next) {
            let number = lines.number() + 1;
            let line = match lines.next(false)? {
                Line::Text(line) => line.to_vec(),
                Line::Idle => continue,
                Line::End => break,
            };
            run += 1;
            match self.run_line(&line) {
                Ok(next) => then = next,
                Err(failure @ (Failure::ClosedPipe | Failure::Interrupted)) => return Err(failure),
                Err(failure) => {
                    failed += 1;
                    store::warn(format_args!("line {number}{of_file}:"));
                    failure.report();
                }
            }
            stop::check()?;
        }
        if failed == 0 {
            return Ok(then);
        }
        Err(Failure::failed(format!("{failed} of {} failed", human::plural(run, "line")))
            .hint("each says above what was wrong; what the others did stays done"))
    }

    /// Runs the lines of a file, as a script: an error ends its line.
    fn source(&self, path: &Path) -> Result<Then> {
        if self.sources.get() == SOURCES_MAX {
            let what = format!("`source` runs {SOURCES_MAX} files within each other");
            return Err(Failure::failed(what).hint("does a file run itself?"));
        }
        self.sources.set(self.sources.get() + 1);
        let run = Source::open(Some(path)).and_then(|source| self.run_lines(source));
        self.sources.set(self.sources.get() - 1);
        run
    }

    fn run_command(&self, words: Vec<OsString>) -> Result<()> {
        let session = &self.session;
        let parsed = parse(&mut self.parser.borrow_mut(), session, words)?;
        let Some(mut matches) = parsed else { return Ok(()) };
        let named = matches.subcommand().is_some_and(|(_, of)| {
            matches!(of.try_contains_id("keyspace"), Ok(true))
                && of.value_source("keyspace") != Some(ValueSource::DefaultValue)
        });
        let mut cli = Cli::from_arg_matches_mut(&mut matches)
            .map_err(|error| Failure::failed(shown(&error.to_string())))?;
        cli.quiet |= self.quiet;
        let leaves = cli.command.on_stop() == OnStop::Leaves;
        cli.command.put_into(session, (!named).then(|| session.keyspace()));
        if matches!(&cli.command, Command::Put(put) if put.value.is_none())
            || matches!(&cli.command, Command::Load(load) if load.reads_stdin())
            || matches!(&cli.command, Command::Apply(apply) if apply.reads_stdin())
        {
            return Err(Failure::failed("standard input is the session's")
                .hint("name a value, or a file to load; or run the command outside of a session"));
        }
        match (self.run)(cli) {
            // A command in the engine is ended by a close of the database, which ends the session.
            Err(Failure::Interrupted) if leaves => Err(Failure::Said(130)),
            outcome => outcome,
        }
    }
}

fn use_keyspace(session: &Session, name: &str) -> Result<()> {
    store::keyspace(&session.db(), name)?;
    session.set_keyspace(name);
    Ok(())
}

/// Parses the words as the program would have them: the path of the database follows the name of a
/// command. `None` for `get --help`, which is printed.
fn parse(
    parser: &mut clap::Command,
    session: &Session,
    mut words: Vec<OsString>,
) -> Result<Option<clap::ArgMatches>> {
    let takes_path = parser
        .find_subcommand(&words[0])
        .is_some_and(|command| command.get_arguments().any(|of| of.get_id() == "path"));
    if takes_path {
        words.insert(1, session.path().as_os_str().to_owned());
    }
    let error = match parser.try_get_matches_from_mut(words) {
        Ok(matches) => return Ok(Some(matches)),
        Err(error) => error,
    };
    let text = shown(&error.render().to_string());
    if error.use_stderr() {
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        return Err(Failure::failed(text.to_owned()));
    }
    // The text is the help that was asked for.
    io::stdout().write_all(text.as_bytes())?;
    Ok(None)
}
