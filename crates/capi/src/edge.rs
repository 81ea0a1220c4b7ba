//! The edge between C and the engine, which no panic passes.
//!
//! Owns: the conversion of an error or a panic for the caller. Never does: word an error.

use crate::error::{clear, set, windrow_error};
use engine::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The handle, which must not be NULL.
pub(crate) fn given<T>(handle: Option<T>, what: &str) -> Result<T> {
    handle.ok_or_else(|| Error::invalid(format!("the {what} is NULL")))
}

/// Runs the body of an exported function. An error, or a panic as one, goes to the caller's `error`; without one, that
/// becomes NULL.
pub(crate) fn caught<T>(
    error: *mut *mut windrow_error,
    run: impl FnOnce() -> Result<T>,
) -> Option<T> {
    match contained(run) {
        Ok(value) => {
            clear(error);
            Some(value)
        }
        Err(failure) => {
            set(error, &failure);
            None
        }
    }
}

/// As [`caught`], for functions that return only whether they succeeded.
pub(crate) fn done(error: *mut *mut windrow_error, run: impl FnOnce() -> Result<()>) -> bool {
    caught(error, run).is_some()
}

/// Runs `run`, and turns a panic into an error.
pub(crate) fn contained<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety is the engine's concern: it turns writing off after a panic.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text =
            text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text");
        Err(Error::new(ErrorKind::Internal, format!("a panic: {text}")))
    })
}
