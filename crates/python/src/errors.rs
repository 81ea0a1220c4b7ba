//! Errors of the engine as exceptions of `windrow.errors`.
//!
//! Owns: the table of kinds and exceptions. Never does: word a message.

use pyo3::prelude::*;
use pyo3::types::PyType;
use std::panic::{AssertUnwindSafe, catch_unwind};
use windrow::{Error, ErrorKind};

fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Corruption => "CorruptionError",
        ErrorKind::Io => "IoError",
        ErrorKind::NoSpace => "NoSpaceError",
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::NotSupported => "NotSupportedError",
        ErrorKind::Closed => "ClosedError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Busy => "BusyError",
        ErrorKind::OutcomeUnknown => "OutcomeUnknownError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::MergeRefused => "MergeRefusedError",
        _ => "InternalError",
    }
}

/// Returns the exception for an error.
#[cold]
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let class = py.import("windrow.errors").and_then(|module| module.getattr(name(error.kind())));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, error.to_string()),
        Err(missing) => missing,
    }
}

/// Calls the engine without the interpreter's lock. A panic becomes an `InternalError`, as in the other bindings.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    run: impl FnOnce() -> windrow::Result<T> + Send,
) -> PyResult<T> {
    // Unwind safety is the engine's concern: it turns writing off after a panic.
    let caught = py.detach(|| catch_unwind(AssertUnwindSafe(run)));
    let result = caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map_or("", String::as_str);
        Err(Error::new(ErrorKind::Internal, format!("a panic: {text}")))
    });
    result.map_err(|error| raised(py, &error))
}
