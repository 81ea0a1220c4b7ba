//! The failures of a native method.
//!
//! Owns: the cases. Never does: throw.

use std::borrow::Cow;
use windrow::{Error, ErrorKind};

/// The reason why a native method returns no value.
pub(crate) enum Failure {
    /// The engine's error.
    Windrow(Error),
    /// An argument is null.
    Null(&'static str),
    /// The JVM has thrown something already.
    Pending,
}

/// The result of a native method.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Windrow(error)
    }
}

impl Failure {
    /// A defect of this crate.
    pub(crate) fn internal(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure::Windrow(Error::new(ErrorKind::Internal, text))
    }

    /// A value of more bytes than a Java array can hold.
    pub(crate) fn too_long(bytes: usize) -> Failure {
        let text =
            format!("{bytes} bytes are more than an array of Java's holds: read less at once");
        Failure::Windrow(Error::invalid(text))
    }
}
