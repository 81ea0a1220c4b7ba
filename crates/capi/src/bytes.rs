//! Bytes and texts that pass between C and Rust.
//!
//! Owns: the conversion of every pointer from C to a reference. Never does: call the engine.

use engine::{Error, Result, Slice};
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes: a key, a value, a bound. `data` may be NULL if `len` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct windrow_slice {
    /// The address of the first byte.
    pub data: *const c_void,
    /// The number of bytes.
    pub len: usize,
}

impl windrow_slice {
    /// No bytes.
    pub(crate) const EMPTY: windrow_slice = windrow_slice { data: std::ptr::null(), len: 0 };

    /// A slice of these bytes, valid as long as they are.
    pub(crate) fn of(bytes: &[u8]) -> windrow_slice {
        windrow_slice { data: bytes.as_ptr().cast(), len: bytes.len() }
    }

    /// The caller's bytes.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        bytes_in(self.data, self.len)
    }
}

/// The caller's `len` bytes at an address.
pub(crate) fn bytes_in<'a>(data: *const c_void, len: usize) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || len > isize::MAX as usize {
        return Err(Error::invalid(format!(
            "there can be no {len} bytes at {data:p}: give the address and the length of bytes"
        )));
    }
    // SAFETY: the caller promises that they are there until the call returns; they are used no longer.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// A value that was read, without a copy of its bytes.
pub struct windrow_value(Slice);

impl windrow_value {
    pub(crate) fn boxed(slice: Slice) -> Box<windrow_value> {
        Box::new(windrow_value(slice))
    }
}

/// The bytes of a value, valid until the value is freed. For NULL: no bytes.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_value_bytes(value: Option<&windrow_value>) -> windrow_slice {
    value.map_or(windrow_slice::EMPTY, |value| windrow_slice::of(&value.0))
}

/// Frees a value.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_value_free(value: Option<Box<windrow_value>>) {
    drop(value);
}

/// Frees a text that a function of this library returned.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller has it from `text_out`, and gives it back once.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Gives the caller a text, which it frees by `windrow_string_free`.
pub(crate) fn text_out(text: impl Into<Vec<u8>>) -> *mut c_char {
    c_string(text).into_raw()
}

/// A C string of the text without its zero bytes, which would end it.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes = text.into();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// The caller's text that ends with a zero byte.
pub(crate) fn c_bytes<'a>(text: *const c_char, what: &str) -> Result<&'a [u8]> {
    if text.is_null() {
        return Err(Error::invalid(format!("{what} is NULL")));
    }
    // SAFETY: the caller promises a text that ends with a zero byte and stays until the call returns; it
    // is used no longer.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The caller's text as UTF-8.
pub(crate) fn text_in<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    let bytes = c_bytes(text, what)?;
    std::str::from_utf8(bytes).map_err(|_| Error::invalid(format!("{what} is not UTF-8")))
}

/// The caller's text, if it is not NULL.
pub(crate) fn optional_text_in(text: *const c_char, what: &str) -> Result<Option<String>> {
    if text.is_null() {
        return Ok(None);
    }
    text_in(text, what).map(|text| Some(text.to_owned()))
}

/// The caller's path: bytes, as the operating system has them.
pub(crate) fn path_in<'a>(path: *const c_char) -> Result<&'a Path> {
    Ok(Path::new(OsStr::from_bytes(c_bytes(path, "the directory's path")?)))
}

/// The caller's array.
pub(crate) fn array<'a, T>(first: *const T, len: usize, what: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if first.is_null() || len > isize::MAX as usize / size_of::<T>() {
        return Err(Error::invalid(format!("there can be no {len} {what} at {first:p}")));
    }
    // SAFETY: the caller promises `len` of them until the call returns, and they are used no longer.
    Ok(unsafe { std::slice::from_raw_parts(first, len) })
}

/// Writes `value` to the caller's place for a result, unless that is NULL.
pub(crate) fn put_out<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller promises room for one; the old content may be uninitialised, and is not dropped.
        unsafe { place.write(value) };
    }
}
