//! How a command ends when it does not end well: what to say, what to do
//! next, and the exit code.
//!
//! Owns: the wording of errors on stderr. A failure to print is not reported:
//! there is nowhere left to report it.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use windrow::{Error, ErrorKind};

/// What the commands return.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command stopped before its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong in a way the parser cannot see. Exit code 2.
    Usage(String),
    /// It could not be done, or what was asked for is not there. Exit code 1.
    Failed {
        /// What happened, one sentence without a full stop.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// Tells failures apart for a caller that goes on after some.
        kind: Kind,
    },
    /// Whoever read our output has had enough. Exit code 0, nothing said: only
    /// where the output was all that was asked for.
    ClosedPipe,
    /// Somebody else has said what there is to say. This exit code.
    Said(u8),
    /// Ctrl-C. Exit code 130, as a shell reports it.
    Interrupted,
}

/// What a command may do about a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    #[default]
    Plain,
    /// Another process has what it needs.
    Busy,
    /// A line of the input is no good; the next one may be.
    BadLine,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage(message.into())
    }

    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed { message: message.into(), hint: None, kind: Kind::Plain }
    }

    /// Whether another process has what it needs.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Failure::Failed { kind: Kind::Busy, .. })
    }

    /// Whether a line of the input is no good, and the next one can be read.
    pub(crate) fn is_bad_line(&self) -> bool {
        matches!(self, Failure::Failed { kind: Kind::BadLine, .. })
    }

    /// Of this kind, if it is [`Failure::Failed`].
    #[must_use]
    pub(crate) fn of_kind(mut self, is: Kind) -> Failure {
        if let Failure::Failed { kind, .. } = &mut self {
            *kind = is;
        }
        self
    }

    /// Says what to do. Keeps a hint that is there: the innermost knows best.
    #[must_use]
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Failure {
        if let Failure::Failed { hint: hint @ None, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// What happened.
    pub(crate) fn message(&self) -> &str {
        match self {
            Failure::Usage(message) | Failure::Failed { message, .. } => message,
            Failure::ClosedPipe | Failure::Said(_) | Failure::Interrupted => "",
        }
    }

    /// Puts `; ` and more after the message.
    #[must_use]
    pub(crate) fn and(mut self, more: impl Display) -> Failure {
        if let Failure::Failed { message, .. } = &mut self {
            *message = format!("{message}; {more}");
        }
        self
    }

    /// A failure to read or write a named file of the user's.
    pub(crate) fn file(doing: &str, name: impl Display, error: &io::Error) -> Failure {
        let what_to_do = match error.kind() {
            io::ErrorKind::StorageFull => "make room on the device and run the command again",
            _ => "check that the path is right and may be used, and run the command again",
        };
        Failure::failed(format!("cannot {doing} {name}: {error}")).hint(what_to_do)
    }

    /// Prints the failure and gives the exit code.
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

/// What to do about an error of the engine, where its message does not say.
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

/// Whether the engine failed because our own output, which it was given to
/// write to, was closed.
fn broken_pipe(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

/// Only writes to standard output convert by `?`; errors of other files are
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
