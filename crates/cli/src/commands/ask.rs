//! A question before what has no way back.
//!
//! Owns: when it is asked. Never does: what it asks about.

use crate::failure::{Failure, Result};
use std::io::{self, IsTerminal, Write};

/// Asks on a terminal, unless told `yes`; a script has decided. `what` is left as it is without it.
///
/// # Errors
/// `Failed` if the answer is not yes.
pub(super) fn ask(yes: bool, question: &str, what: &str) -> Result<()> {
    if yes || !io::stdin().is_terminal() {
        return Ok(());
    }
    // Not locked while it waits: Ctrl-C has something to say, too.
    let _ = write!(io::stderr(), "{question} Type yes: ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::file("read", "the answer", &error))?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::failed(format!("{what} is left as it is")).hint("type yes, or say --yes"))
}
