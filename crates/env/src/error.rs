//! Conversion of the system's error numbers to Windrow's one error type.
//!
//! Every error names the action that was tried and the path, and carries the `io::Error` as its
//! source.
//!
//! Owns: the numbers that mean a full device. Never does: decide what to do about a failure.

use std::io;
use std::path::Path;
use windrow_base::{Error, ErrorKind};

/// The error for a failure to `action` (a verb and its object: "open the file") on `path`.
#[cold]
pub(crate) fn io_error(action: &str, path: &Path, cause: impl Into<io::Error>) -> Error {
    let cause = cause.into();
    let kind = match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("cannot {action}: {cause}"))
        .with_file(path.display().to_string())
        .with_source(cause)
}

/// The error for a file that is shorter than its reader was told.
#[cold]
pub(crate) fn ends_early(path: &Path, offset: u64, wanted: usize, got: usize) -> Error {
    Error::corruption(format!("the file ends {got} bytes into a read of {wanted}"))
        .with_file(path.display().to_string())
        .with_offset(offset)
}
