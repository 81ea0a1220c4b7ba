//! The table of a session's commands, and their help.
//!
//! Owns: which commands a session has. Never does: run one.

use crate::args::Cli;
use crate::failure::{Failure, Result};
use clap::CommandFactory;
use std::ffi::OsString;
use std::io::{self, Write};

/// Commands that only a session has.
pub(super) const OWN_COMMANDS: [&str; 6] = ["exit", "help", "quit", "refresh", "source", "use"];

/// Commands that a session does not have.
pub(super) const OUTSIDE: [&str; 8] =
    ["completions", "demo", "destroy", "lab", "man", "repair", "shell", "top"];

/// Makes the parser of lines. It is made once for a session: that takes longer
/// than most lines do.
pub(super) fn parser() -> clap::Command {
    let root = Cli::command().no_binary_name(true).disable_help_subcommand(true);
    commands().fold(root, |root, of_session| {
        let name = of_session.get_name().to_owned();
        root.mut_subcommand(name, |_| of_session)
    })
}

/// Returns the commands of the program that a session has.
pub(super) fn commands() -> impl Iterator<Item = clap::Command> {
    let all: Vec<clap::Command> = Cli::command().get_subcommands().cloned().collect();
    // The arguments are changed in place: their order is that of words.
    let hides_path = |command: clap::Command| {
        let is_known = |name: &str| ["path", "preset", "options"].contains(&name);
        command.mut_args(|argument| match is_known(argument.get_id().as_str()) {
            true => argument.hide(true),
            false => argument,
        })
    };
    all.into_iter().filter(|command| !OUTSIDE.contains(&command.get_name())).map(hides_path)
}

/// Adapts a text of the parser to a session.
pub(super) fn shown(text: &str) -> String {
    let text = text.replace("Usage: windrow [OPTIONS] <COMMAND>\n\n", "");
    text.replace("Usage: windrow ", "Usage: ")
        .replace("<DB> ", "")
        .replace(" <DB>", "")
        .replace("try '--help'", "try `help`")
}

/// Prints the list of commands.
///
/// # Errors
/// Those of standard output.
pub(super) fn help() -> Result<()> {
    let mut out = io::stdout().lock();
    let own = [
        ("use [KEYSPACE]", "The keyspace that commands mean which name none"),
        ("source FILE", "Run the lines of a file"),
        ("refresh", "See what others have written; done before each command"),
        ("help [COMMAND]", "This list, or all about one command"),
        ("exit", "Leave; the end of the input does, too"),
    ];
    for command in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "  {:<18} {}", command.get_name(), about)?;
    }
    for (usage, about) in own {
        writeln!(out, "  {usage:<18} {about}")?;
    }
    writeln!(
        out,
        "\nWords with blanks go in '...' or \"...\"; \\n, \\t and \\xNN stand for bytes outside of \
         '...'. # begins a comment."
    )?;
    Ok(out.flush()?)
}

/// Prints the help of a command.
///
/// # Errors
/// `Failed` if there is no such command.
pub(super) fn help_of(name: &OsString) -> Result<()> {
    let Some(command) = commands().find(|command| {
        name == command.get_name() || command.get_all_aliases().any(|alias| name == alias)
    }) else {
        return Err(Failure::failed(format!("there is no command `{}`", name.to_string_lossy()))
            .hint("`help` lists them"));
    };
    let text = command.no_binary_name(true).render_long_help().to_string();
    let mut out = io::stdout().lock();
    out.write_all(shown(&text).as_bytes())?;
    Ok(out.flush()?)
}
