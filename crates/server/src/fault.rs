//! The error replies of commands.
//!
//! Owns: the sentences that many commands share. Never does: print.

use std::borrow::Cow;
use windrow::ErrorKind;

/// An error reply: its first word names its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) Cow<'static, str>);

/// The outcome of a command.
pub(crate) type Outcome<T = ()> = Result<T, Fault>;

pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
pub(crate) const NOT_FLOAT: &str = "ERR value is not a valid float";
pub(crate) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(crate) const NO_KEY: &str = "ERR no such key";
pub(crate) const OUT_OF_RANGE: &str = "ERR value is out of range";

/// Fails with a sentence.
pub(crate) fn fail<T>(text: impl Into<Cow<'static, str>>) -> Outcome<T> {
    Err(Fault(text.into()))
}

impl From<windrow::Error> for Fault {
    fn from(error: windrow::Error) -> Fault {
        let kind = match error.kind() {
            ErrorKind::NoSpace | ErrorKind::ReadOnly => "MISCONF",
            ErrorKind::Closed => "LOADING",
            _ => "ERR",
        };
        Fault(format!("{kind} {error}").into())
    }
}
