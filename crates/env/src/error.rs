//! From the system's error numbers to Windrow's one error type.
//!
//! Owns: which numbers mean a full device. Every error names what was tried
//! and the path, and carries the `io::Error` as its source.

use std::io;
use std::path::Path;
use windrow_base::{Error, ErrorKind};

/// What failed while trying to `action` (a verb and its object: "open the
/// file") on `path`.
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

/// The file is shorter than whoever reads it was told.
#[cold]
pub(crate) fn ends_early(path: &Path, offset: u64, wanted: usize, got: usize) -> Error {
    Error::corruption(format!("the file ends {got} bytes into a read of {wanted}"))
        .with_file(path.display().to_string())
        .with_offset(offset)
}
