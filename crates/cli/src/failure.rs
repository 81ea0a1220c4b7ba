//! The failure of a command: its message, the advice, and the exit code.
//!
//! Owns: the wording of errors on stderr. A failure to print is not reported:
//! there is nowhere left to report it. Never does: end the program (`main.rs`
//! does).

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use windrow::{Error, ErrorKind};

/// The result of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The reason why a command stopped before its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong in a way the parser cannot see. Exit code 2.
    Usage(String),
    /// The command failed, or the requested thing does not exist. Exit code 1.
    Failed {
        /// The cause, one sentence without a full stop.
        message: String,
        /// The advice to the user.
        hint: Option<String>,
        /// The kind, for a caller that goes on after some failures.
        kind: Kind,
    },
    /// The reader of our output has closed it. Exit code 0, and no message:
    /// only where the output was the whole purpose of the command.
    ClosedPipe,
    /// The messages are printed already. This exit code.
    Said(u8),
    /// Ctrl-C. Exit code 130, as a shell reports it.
    Interrupted,
}

/// The kinds of failure that a command treats differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any other.
    #[default]
    Plain,
    /// Another process holds the database or file.
    Busy,
    /// A line of the input is bad; the next one may be good.
    BadLine,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed { message: message.into(), hint: None, kind: Kind::Plain }
    }

    /// Returns whether another process holds the database or file.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Failure::Failed { kind: Kind::Busy, .. })
    }

    /// Returns whether a line of the input is bad, and the next one can be
    /// read.
    pub(crate) fn is_bad_line(&self) -> bool {
        matches!(self, Failure::Failed { kind: Kind::BadLine, .. })
    }

    /// Sets the kind, if it is [`Failure::Failed`].
    #[must_use]
    pub(crate) fn of_kind(mut self, is: Kind) -> Failure {
        if let Failure::Failed { kind, .. } = &mut self {
            *kind = is;
        }
        self
    }

    /// Adds advice. An earlier hint is kept: the innermost caller knows most.
    #[must_use]
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Failure {
        if let Failure::Failed { hint: hint @ None, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// Returns the cause.
    pub(crate) fn message(&self) -> &str {
        match self {
            Failure::Usage(message) | Failure::Failed { message, .. } => message,
            Failure::ClosedPipe | Failure::Said(_) | Failure::Interrupted => "",
        }
    }

    /// Appends `; ` and more to the message.
    #[must_use]
    pub(crate) fn and(mut self, more: impl Display) -> Failure {
        if let Failure::Failed { message, .. } = &mut self {
            *message = format!("{message}; {more}");
        }
        self
    }

    /// Makes the failure to read or write one of the user's files.
    pub(crate) fn file(doing: &str, name: impl Display, error: &io::Error) -> Failure {
        let what_to_do = match error.kind() {
            io::ErrorKind::StorageFull => "make room on the device and run the command again",
            _ => "check that the path is right and may be used, and run the command again",
        };
        Failure::failed(format!("cannot {doing} {name}: {error}")).hint(what_to_do)
    }

    /// Prints the failure and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let mut err = io::stderr().lock();
        match self {
            Failure::ClosedPipe => ExitCode::SUCCESS,
            Failure::Said(code) => ExitCode::from(code),
            Failure::Interrupted => ExitCode::from(130),
            Failure::Usage(message) => {
                let _ = writeln!(err, "windrow: {message}");
                let _ = writeln!(err, "  see `windrow --help`");
                ExitCode::from(2)
            }
            Failure::Failed { message, hint, .. } => {
                let _ = writeln!(err, "windrow: {message}");
                if let Some(hint) = hint {
                    let _ = writeln!(err, "  {hint}");
                }
                ExitCode::from(1)
            }
        }
    }
}

/// Returns advice about an error of the engine, where its message has none.
fn advice(error: &Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::Corruption => {
            "`windrow verify` lists all that is damaged; then restore a checkpoint, or save what is left with `windrow repair`"
        }
        ErrorKind::NoSpace => {
            "make room on the device and run the command again; nothing acknowledged is lost"
        }
        ErrorKind::OutcomeUnknown => {
            "`windrow get` says whether the write is there; only then run the command again"
        }
        ErrorKind::Busy => {
            "close the program that has the database open, and try again; `--wait 10` waits for it"
        }
        ErrorKind::NotSupported => {
            "a newer build of windrow, or one with the feature named, can read it"
        }
        ErrorKind::MergeRefused => {
            "`windrow put` or `windrow delete` of that key; every other key is read as ever"
        }
        ErrorKind::Internal => {
            "`windrow verify` says whether the data is whole; a copy of the directory helps whoever looks for the defect"
        }
        ErrorKind::Io => "the system refused: check the path, its permissions, and the device",
        _ => return None,
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if broken_pipe(&error) {
            return Failure::ClosedPipe;
        }
        let hint = advice(&error).map(str::to_owned);
        let kind = if error.kind() == ErrorKind::Busy { Kind::Busy } else { Kind::Plain };
        Failure::Failed { message: error.to_string(), hint, kind }
    }
}

/// Returns whether the engine failed because our own output, which it was given
/// to write to, was closed.
fn broken_pipe(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

/// Only errors of standard output convert by `?`; errors of other files are
/// made by [`Failure::file`], which names them.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Failure::file("write to", "standard output", &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_seen_through_an_engine_error() {
        let pipe = Error::new(ErrorKind::Io, "dump")
            .with_source(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(Failure::from(pipe), Failure::ClosedPipe));
        let full = Error::new(ErrorKind::Io, "dump")
            .with_source(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(Failure::from(full), Failure::Failed { hint: Some(_), .. }));
    }

    #[test]
    fn the_innermost_hint_stays() {
        let failure = Failure::failed("a").hint("first").hint("second").and("b");
        let Failure::Failed { message, hint, .. } = failure else { panic!() };
        assert_eq!((message.as_str(), hint.as_deref()), ("a; b", Some("first")));
    }
}
