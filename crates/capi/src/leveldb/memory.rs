//! Buffers from `malloc`, which programs free by `free`, and errors in such buffers.
//!
//! Owns: the pointers that LevelDB's interface takes and returns. Never does: call the engine.

use crate::bytes::{bytes_in, put_out};
use crate::edge::contained;
use engine::{Error, Result};
use libc::{c_char, c_int, c_void};

/// A copy of the bytes, followed by a zero byte, for the caller to free by `free`. NULL if there is no memory.
pub(super) fn allocated(bytes: &[u8]) -> *mut c_char {
    // SAFETY: a length that is not 0.
    let buffer = unsafe { libc::malloc(bytes.len() + 1) }.cast::<u8>();
    if !buffer.is_null() {
        // SAFETY: the buffer is new, and has room for the bytes and one more.
        unsafe {
            buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            buffer.add(bytes.len()).write(0);
        }
    }
    buffer.cast()
}

/// Runs the body of an exported function. An error becomes the caller's text, which replaces and frees an older one;
/// without an error the text stays as it is, as in LevelDB.
pub(super) fn saving<T>(errptr: *mut *mut c_char, run: impl FnOnce() -> Result<T>) -> Option<T> {
    let error = match contained(run) {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    if !errptr.is_null() {
        let text = error.to_string().replace('\0', "\\0");
        // SAFETY: the caller promises a pointer that is NULL or was allocated by `malloc`.
        unsafe {
            libc::free((*errptr).cast());
            *errptr = allocated(text.as_bytes());
        }
    }
    None
}

/// The caller's bytes.
pub(super) fn bytes<'a>(data: *const c_char, len: usize) -> Result<&'a [u8]> {
    bytes_in(data.cast(), len)
}

/// Lends the bytes to the caller: returns their address, and writes their length to `len`.
pub(super) fn lent(bytes: &[u8], len: *mut usize) -> *const c_char {
    put_out(len, bytes.len());
    bytes.as_ptr().cast()
}

/// The error for an argument that is missing.
pub(super) fn null(what: &str) -> Error {
    Error::invalid(format!("the {what} is NULL"))
}

/// Frees a buffer that a function of this interface returned.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_free(ptr: *mut c_void) {
    // SAFETY: the caller has it from this interface, so from `malloc`, or it is NULL.
    unsafe { libc::free(ptr) };
}

/// The major version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// The minor version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}
