//! Keys and values as arguments: `bytes` are borrowed, other objects with a buffer are copied.
//!
//! Owns: the types that count as bytes. Never does: encode text.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Deref;

/// Bytes of the caller, which do not change while a call runs.
pub(crate) enum Bytes<'py> {
    Given(Bound<'py, PyBytes>),
    Copied(Vec<u8>),
}

impl<'py> Bytes<'py> {
    pub(crate) fn of(given: &Bound<'py, PyAny>) -> PyResult<Bytes<'py>> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Bytes::Given(bytes.clone()));
        }
        match PyBuffer::<u8>::get(given) {
            Ok(buffer) => buffer.to_vec(given.py()).map(Bytes::Copied),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a bytes-like object is required, not {}: encode text first",
                given.get_type().name()?
            ))),
        }
    }

    /// The bytes of an argument that may be None.
    pub(crate) fn optional(given: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Bytes<'py>>> {
        given.map(Bytes::of).transpose()
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Given(bytes) => bytes.as_bytes(),
            Bytes::Copied(bytes) => bytes,
        }
    }
}
