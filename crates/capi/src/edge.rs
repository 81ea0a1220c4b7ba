//! The edge that no panic passes.
//!
//! Owns: what becomes of an error. Never does: word one.

use crate::error::{clear, set, windrow_error};
use engine::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The handle, which must not be NULL.
pub(crate) fn given<T>(handle: Option<T>, what: &str) -> Result<T> {
    handle.ok_or_else(|| Error::invalid(format!("the {what} is NULL")))
}

/// Runs what a function does. An error, or a panic as one, goes to the caller's `error`; without any, that
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

/// As [`caught`], for what returns only whether it was done.
pub(crate) fn done(error: *mut *mut windrow_error, run: impl FnOnce() -> Result<()>) -> bool {
    caught(error, run).is_some()
}

/// Returns as `run` does; of a panic, an error.
pub(crate) fn contained<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    // The engine judges what a panic leaves behind: it turns writing off.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text =
            text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text");
        Err(Error::new(ErrorKind::Internal, format!("a panic: {text}")))
    })
}
