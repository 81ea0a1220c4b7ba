//! Why a native method fails.
//!
//! Owns: the cases. Never does: throw.

use std::borrow::Cow;
use windrow::{Error, ErrorKind};

/// Why a native method returns nothing.
pub(crate) enum Failure {
    /// The engine's error.
    Windrow(Error),
    /// An argument is null.
    Null(&'static str),
    /// The JVM has thrown something already.
    Pending,
}

/// What a native method comes to.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Windrow(error)
    }
}

impl Failure {
    /// A defect.
    pub(crate) fn internal(text: impl Into<Cow<'static, str>>) -> Failure {
        Failure::Windrow(Error::new(ErrorKind::Internal, text))
    }

    /// More bytes than an array of Java's has.
    pub(crate) fn too_long(bytes: usize) -> Failure {
        let text =
            format!("{bytes} bytes are more than an array of Java's holds: read less at once");
        Failure::Windrow(Error::invalid(text))
    }
}
