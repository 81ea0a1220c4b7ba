//! A question before a command that cannot be undone.
//!
//! Owns: the condition under which it is asked. Never does: the command itself.

use crate::failure::{Failure, Result};
use std::io::{self, IsTerminal, Write};

/// Asks on a terminal, unless told `yes`; a script has decided already. Without a yes, `what` is
/// left as it is.
///
/// # Errors
/// `Failed` if the answer is not yes.
pub(super) fn ask(yes: bool, question: &str, what: &str) -> Result<()> {
    if yes || !io::stdin().is_terminal() {
        return Ok(());
    }
    // Standard error is not locked while it waits: Ctrl-C prints there, too.
    let _ = write!(io::stderr(), "{question} Type yes: ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::file("read", "the answer", &error))?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::failed(format!("{what} is left as it is")).hint("type yes, or say --yes"))
}
