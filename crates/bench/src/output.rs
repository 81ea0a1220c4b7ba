//! Standard output, which results are printed to, and standard error, for
//! notes: either may be closed or full.
//!
//! Owns: the outcome of a failed write. A reader that has closed the pipe is no
//! failure; a full device is one, and says so. Never does: panic where a stream
//! is closed or full.

use crate::store::Result;
use std::fmt::{self, Display};
use std::io::{self, Write};

/// The error of a standard output that its reader has closed.
#[derive(Debug)]
struct Closed;

impl Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for Closed {}

/// Prints text as it is.
///
/// # Errors
/// The system's; [`exit_code`] tells a closed reader apart.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        Err(error) => Err(format!("cannot write to standard output: {error}").into()),
    }
}

/// Prints a line to standard error. A failure is not reported: there is nowhere
/// left to report it.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns the exit code of a command of this name; its error goes to standard
/// error.
pub(crate) fn exit_code(name: &str, done: Result<()>) -> i32 {
    match done {
        Ok(()) => 0,
        Err(error) if error.is::<Closed>() => 0,
        Err(error) => {
            note(format_args!("{name}: {error}"));
            1
        }
    }
}
