//! The one error type: a kind by which the caller acts, a sentence that says what happened, and the
//! file and offset where it did.
//!
//! Owns: the kinds, and the form of a message. Never does: report absence; a key that is not there
//! is `Ok(None)`.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// `Result` with Windrow's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The kind of an error, by which a caller can act. A new kind exists only if a caller would act
/// differently on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Bytes on disk are not what was written: run `verify`, then `repair` or restore.
    Corruption,
    /// The operating system refused an operation.
    Io,
    /// The device is full: make room, and try again. Where writing was turned off
    /// ([`ErrorKind::ReadOnly`]), `Db::resume` turns it on again.
    NoSpace,
    /// The call was wrong (a limit, a name, an option): change the call.
    InvalidArgument,
    /// The data needs something this build does not have (a codec, a format version).
    NotSupported,
    /// The database, keyspace or iterator was closed or dropped.
    Closed,
    /// Writing is off: opened read-only, or a background error has turned it off. `Db::resume`
    /// or reopening turns it on again.
    ReadOnly,
    /// Another user holds the resource: try again later.
    Busy,
    /// A write failed half-way: whether it is there is not known, and may be known only once
    /// writing is on again (`Db::resume`, or reopening). Look then, before you write it again: a
    /// merge would count twice. The message says what failed ([`Error::first_failure`]).
    OutcomeUnknown,
    /// A transaction read a key that another write has changed since: nothing of it is written. Run
    /// it again.
    Conflict,
    /// The keyspace's merge operator does not take the value that a merge is applied to: nothing is
    /// damaged. `put` or `delete` of the key heals it. A cursor and an iterator go on past it.
    MergeRefused,
    /// Windrow contradicts itself: a defect of the program, not of the data. Report it
    /// with the message; where writing was turned off, reopen the database.
    Internal,
}

impl ErrorKind {
    /// The kind's name as messages print it.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Corruption => "corruption",
            ErrorKind::Io => "I/O error",
            ErrorKind::NoSpace => "no space left",
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::NotSupported => "not supported",
            ErrorKind::Closed => "closed",
            ErrorKind::ReadOnly => "read-only",
            ErrorKind::Busy => "busy",
            ErrorKind::OutcomeUnknown => "outcome unknown",
            ErrorKind::Conflict => "conflict",
            ErrorKind::MergeRefused => "merge refused",
            ErrorKind::Internal => "internal error",
        }
    }
}

type ErrorSource = Arc<dyn core::error::Error + Send + Sync + 'static>;

#[derive(Clone)]
struct ErrorInner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    file: Option<String>,
    offset: Option<u64>,
    source: Option<ErrorSource>,
}

/// Any failure of Windrow. One pointer wide, cheap to return, clonable.
#[derive(Clone)]
pub struct Error(Box<ErrorInner>);

impl Error {
    /// Makes an error of `kind` with a message.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(ErrorInner {
            kind,
            message: message.into(),
            file: None,
            offset: None,
            source: None,
        }))
    }

    /// Makes an [`ErrorKind::Corruption`] with a message.
    #[cold]
    pub fn corruption(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Corruption, message)
    }

    /// Makes an [`ErrorKind::InvalidArgument`] with a message.
    #[cold]
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// Makes an [`ErrorKind::NotSupported`] with a message.
    #[cold]
    pub fn not_supported(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::NotSupported, message)
    }

    /// The error of an operation that was not tried any more, since `first` had failed: of the same
    /// kind, with it as source. It reports no failure of its own ([`Error::first_failure`]).
    #[cold]
    #[must_use]
    pub fn after(first: &Error, why: &'static str) -> Error {
        let first = first.first_failure();
        Error::new(first.kind(), alloc::format!("{why}: {}", first.message()))
            .with_source(first.clone())
    }

    /// Names the file the error is about. The innermost name wins.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<String>) -> Error {
        if self.0.file.is_none() {
            self.0.file = Some(file.into());
        }
        self
    }

    /// Gives the byte offset in the file. The innermost offset wins.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Error {
        if self.0.offset.is_none() {
            self.0.offset = Some(offset);
        }
        self
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl core::error::Error + Send + Sync + 'static) -> Error {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Puts `context: ` before the message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.0.message = alloc::format!("{context}: {}", self.0.message).into();
        self
    }

    /// The kind, by which the caller can act.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the failure that this error reports: itself, or an earlier one for which an
    /// operation was not tried, or for which writing is off.
    pub fn first_failure(&self) -> &Error {
        let source = self.0.source.as_deref();
        source.and_then(|s| s.downcast_ref::<Error>()).map_or(self, Error::first_failure)
    }

    /// The sentence that says what happened, without kind, file and offset.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file it happened in, as its path was given to the environment.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`Error::file`].
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Whether this is [`ErrorKind::Corruption`].
    pub fn is_corruption(&self) -> bool {
        self.0.kind == ErrorKind::Corruption
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.as_str(), self.0.message)?;
        match (&self.0.file, self.0.offset) {
            (Some(file), Some(offset)) => write!(f, " (file {file}, offset {offset})"),
            (Some(file), None) => write!(f, " (file {file})"),
            (None, Some(offset)) => write!(f, " (offset {offset})"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| &**s as &(dyn core::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn display_names_kind_file_and_offset() {
        let e = Error::corruption("bad block checksum")
            .with_file("000007.sst")
            .with_offset(4096)
            .with_file("outer");
        assert_eq!(e.to_string(), "corruption: bad block checksum (file 000007.sst, offset 4096)");
        assert_eq!(e.kind(), ErrorKind::Corruption);
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn what_comes_after_a_failure_is_no_failure_of_its_own() {
        let full = Error::new(ErrorKind::NoSpace, "the device is full").with_file("7.wal");
        let later = Error::after(&full, "an earlier write failed").with_file("8.wal");
        let last = Error::after(&later, "an earlier sync failed").context("flush");
        for error in [&full, &later, &last] {
            assert_eq!(error.kind(), ErrorKind::NoSpace);
            assert_eq!(error.first_failure().to_string(), full.to_string());
        }
        let text = "no space left: flush: an earlier sync failed: the device is full";
        assert_eq!(last.to_string(), text);
    }

    #[test]
    fn context_goes_before_the_message() {
        let e = Error::invalid("too long").context("put");
        assert_eq!(e.message(), "put: too long");
    }
}
