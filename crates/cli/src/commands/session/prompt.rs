//! The session at a terminal: a prompt, history, completion.
//!
//! Owns: the line editor. History is in `$WINDROW_HISTORY`, or `~/.windrow_history`, which only its
//! owner may read: lines hold values. Never does: run a command (`lines.rs` does).

use super::complete;
use super::lines::{Commands, Then};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::stop;
use crate::store;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The most lines that the history keeps.
const HISTORY_LINES: usize = 1000;

/// The helper that the editor calls while a line is typed.
struct Typing(Arc<Session>);

impl Completer for Typing {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete::complete(&self.0, &line[..at]))
    }
}

impl Hinter for Typing {
    type Hint = String;
}

impl Highlighter for Typing {}
impl Validator for Typing {}
impl Helper for Typing {}

/// Reads and runs lines of a terminal, until the user leaves.
pub(super) fn run(commands: &Commands) -> Result<()> {
    let mut editor = editor(&commands.session)?;
    let history = history_path();
    if let Some(path) = &history {
        // There is no history before the first session.
        let _ = editor.load_history(path);
    }
    let outcome = lines(&mut editor, commands);
    if let Some(path) = &history
        && let Err(error) = editor.save_history(path)
    {
        store::warn(format_args!("history is not kept in {}: {error}", path.display()));
    }
    outcome
}

fn editor(session: &Arc<Session>) -> Result<Editor<Typing, FileHistory>> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(true)
        .max_history_size(HISTORY_LINES)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(|error| terminal_failed(&error))?
        .history_ignore_space(true)
        .build();
    let mut editor = Editor::with_config(config).map_err(|error| terminal_failed(&error))?;
    editor.set_helper(Some(Typing(session.clone())));
    Ok(editor)
}

fn history_path() -> Option<PathBuf> {
    match std::env::var_os("WINDROW_HISTORY") {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(".windrow_history")),
    }
}

fn lines(editor: &mut Editor<Typing, FileHistory>, commands: &Commands) -> Result<()> {
    let session = &commands.session;
    if !commands.quiet {
        writeln!(io::stdout(), "`help` lists the commands, `exit` leaves")?;
    }
    loop {
        let read_only = if session.is_followed() { " (read only)" } else { "" };
        let line = match editor.readline(&format!("{}{read_only}> ", session.keyspace())) {
            Ok(line) => line,
            // Ctrl-C leaves the line, Ctrl-D the session.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(terminal_failed(&error)),
        };
        match commands.run_line(line.as_bytes()) {
            Ok(Then::Next) => {}
            Ok(Then::Exit) => return Ok(()),
            Err(failure @ (Failure::ClosedPipe | Failure::Said(130))) => return Err(failure),
            Err(failure) => _ = failure.report(),
        }
        stop::forget();
    }
}

fn terminal_failed(error: &ReadlineError) -> Failure {
    Failure::failed(format!("cannot read from the terminal: {error}"))
        .hint("give the commands as a script on standard input instead")
}
