//! Errors as programs in C see them.
//!
//! Owns: the numbers of the kinds, which never change. Never does: decide that a call failed.

use crate::bytes::c_string;
use engine::{Error, ErrorKind};
use std::ffi::{CString, c_char};

/// Kinds of errors, by the reaction that they call for. Numbers never change; later versions may have more.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum windrow_error_kind {
    /// Windrow contradicts itself, or code of yours that it called failed: a defect. Report it.
    Internal = 1,
    /// Bytes on disk differ from those that were written: windrow_verify, then windrow_repair or a backup.
    Corruption = 2,
    /// The operating system refused something.
    Io = 3,
    /// The device is full: make room and try again; windrow_resume if writing is off.
    NoSpace = 4,
    /// The call was wrong: change it.
    InvalidArgument = 5,
    /// The data needs something that this build does not have.
    NotSupported = 6,
    /// The database was closed or the keyspace dropped, or this is a forked child.
    Closed = 7,
    /// Writing is off: windrow_resume or opening again turns it on.
    ReadOnly = 8,
    /// Another process, thread or transaction holds it: try later.
    Busy = 9,
    /// Whether the write took effect is not known until writing is on again.
    OutcomeUnknown = 10,
    /// Another write changed a key that the transaction read: run the transaction again.
    Conflict = 11,
    /// The merge operator does not take the value: put or delete the key.
    MergeRefused = 12,
}

impl windrow_error_kind {
    fn of(kind: ErrorKind) -> windrow_error_kind {
        match kind {
            ErrorKind::Corruption => windrow_error_kind::Corruption,
            ErrorKind::Io => windrow_error_kind::Io,
            ErrorKind::NoSpace => windrow_error_kind::NoSpace,
            ErrorKind::InvalidArgument => windrow_error_kind::InvalidArgument,
            ErrorKind::NotSupported => windrow_error_kind::NotSupported,
            ErrorKind::Closed => windrow_error_kind::Closed,
            ErrorKind::ReadOnly => windrow_error_kind::ReadOnly,
            ErrorKind::Busy => windrow_error_kind::Busy,
            ErrorKind::OutcomeUnknown => windrow_error_kind::OutcomeUnknown,
            ErrorKind::Conflict => windrow_error_kind::Conflict,
            ErrorKind::MergeRefused => windrow_error_kind::MergeRefused,
            _ => windrow_error_kind::Internal,
        }
    }
}

/// An error: a kind, and a sentence that names the failure, its place and the remedy.
///
/// A function that can fail has `windrow_error **error` as its last argument, which may be NULL. The function sets it
/// to NULL on success, and else to an error that the caller frees.
pub struct windrow_error {
    kind: windrow_error_kind,
    message: CString,
}

/// The kind of an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_kind_of(error: Option<&windrow_error>) -> windrow_error_kind {
    error.map_or(windrow_error_kind::Internal, |error| error.kind)
}

/// The message (the failure, its place and the remedy) in UTF-8, valid until the error is freed. For NULL: "no error".
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_message(error: Option<&windrow_error>) -> *const c_char {
    error.map_or(c"no error".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_error_free(error: Option<Box<windrow_error>>) {
    drop(error);
}

/// Makes the caller's error NULL.
pub(crate) fn clear(place: *mut *mut windrow_error) {
    if !place.is_null() {
        // SAFETY: the caller promises room for one pointer, or gives NULL.
        unsafe { place.write(std::ptr::null_mut()) };
    }
}

/// Makes the caller's error this one.
#[cold]
pub(crate) fn set(place: *mut *mut windrow_error, error: &Error) {
    if !place.is_null() {
        let error = windrow_error {
            kind: windrow_error_kind::of(error.kind()),
            message: c_string(error.to_string()),
        };
        // SAFETY: as in `clear`.
        unsafe { place.write(Box::into_raw(Box::new(error))) };
    }
}
