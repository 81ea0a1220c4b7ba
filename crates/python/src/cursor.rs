//! Iterators and cursors, and the range of keys that they go over.
//!
//! Owns: the number of entries that are read ahead with the interpreter's lock released. Never
//! does: write.

use crate::bytes::Bytes;
use crate::errors::{call, raised};
use crate::handle::Handle;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::VecDeque;
use std::ops::Bound as KeyBound;
use windrow::Slice;

/// A range of keys: from one key to before another.
pub(crate) struct Part {
    start: Option<Vec<u8>>,
    stop: Option<Vec<u8>>,
}

impl Part {
    pub(crate) fn new(
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Part> {
        let owned = |of: Option<&Bound<'_, PyAny>>| -> PyResult<Option<Vec<u8>>> {
            Ok(Bytes::optional(of)?.map(|bytes| bytes.to_vec()))
        };
        let Some(prefix) = owned(prefix)? else {
            return Ok(Part { start: owned(start)?, stop: owned(stop)? });
        };
        if start.is_some() || stop.is_some() {
            return Err(PyTypeError::new_err(
                "a prefix says where a scan starts and stops already",
            ));
        }
        Ok(Part { stop: behind(&prefix), start: Some(prefix) })
    }

    /// Returns the range as the two bounds of a read.
    pub(crate) fn bounds(self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (self.start, self.stop)
    }

    /// Returns the range as bounds of the standard library.
    pub(crate) fn range(&self) -> (KeyBound<&[u8]>, KeyBound<&[u8]>) {
        let start = self.start.as_deref().map_or(KeyBound::Unbounded, KeyBound::Included);
        (start, self.stop.as_deref().map_or(KeyBound::Unbounded, KeyBound::Excluded))
    }
}

/// Returns the first key after all that begin with the prefix.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

/// The most entries, and the most bytes of them, that are read each time the interpreter's lock is
/// released.
const AHEAD: usize = 128;
const AHEAD_BYTES: usize = 64 << 10;

/// An iterator over entries.
#[pyclass(module = "windrow")]
pub(crate) struct Entries {
    iter: Handle<Option<windrow::Iter>>,
    ahead: VecDeque<(Slice, Slice)>,
    /// The number of entries to read next: few at first, so that a caller who wants only the first
    /// entry waits for that one alone.
    next: usize,
    failed: Option<windrow::Error>,
    reverse: bool,
    keys: bool,
    values: bool,
}

impl Entries {
    pub(crate) fn new(iter: windrow::Iter, reverse: bool, keys: bool, values: bool) -> Entries {
        let iter = Handle::new(Some(iter));
        Entries { iter, ahead: VecDeque::new(), next: 1, failed: None, reverse, keys, values }
    }

    fn read(&mut self, py: Python<'_>) {
        let Some(iter) = self.iter.as_mut() else { return };
        let (count, reverse, ahead) = (self.next, self.reverse, &mut self.ahead);
        self.next = (count * 4).min(AHEAD);
        self.failed = py.detach(|| {
            let mut bytes = 0;
            while ahead.len() < count && bytes < AHEAD_BYTES {
                let entry = if reverse { iter.next_back() } else { iter.next() };
                match entry {
                    Some(Ok(entry)) => {
                        bytes += entry.0.len() + entry.1.len();
                        ahead.push_back(entry);
                    }
                    Some(Err(error)) => return Some(error),
                    None => break,
                }
            }
            None
        });
    }
}

#[pymethods]
impl Entries {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.ahead.is_empty() {
            if let Some(error) = self.failed.take() {
                return Err(raised(py, &error));
            }
            self.read(py);
        }
        let Some((key, value)) = self.ahead.pop_front() else {
            return match self.failed.take() {
                Some(error) => Err(raised(py, &error)),
                None => Ok(None),
            };
        };
        Ok(Some(match (self.keys, self.values) {
            (true, true) => {
                (PyBytes::new(py, &key), PyBytes::new(py, &value)).into_pyobject(py)?.into_any()
            }
            (true, false) => PyBytes::new(py, &key).into_any(),
            (false, _) => PyBytes::new(py, &value).into_any(),
        }))
    }

    /// Ends the iterator, and frees all that it holds.
    fn close(&mut self, py: Python<'_>) {
        self.ahead.clear();
        let iter = self.iter.take();
        py.detach(|| drop(iter));
    }
}

/// A place among entries. It shows the entries as of the moment at which it was made.
#[pyclass(module = "windrow")]
pub(crate) struct Cursor(pub(crate) Handle<windrow::Cursor>);

impl Cursor {
    fn moved(
        &mut self,
        py: Python<'_>,
        go: impl FnOnce(&mut windrow::Cursor) -> windrow::Result<bool> + Send,
    ) -> PyResult<bool> {
        let cursor = &mut *self.0;
        call(py, || go(cursor))
    }
}

#[pymethods]
impl Cursor {
    /// Goes to the first entry; returns whether there is one.
    fn first(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, windrow::Cursor::seek_first)
    }

    /// Goes to the last entry.
    fn last(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, windrow::Cursor::seek_last)
    }

    /// Goes to the first entry whose key is this one or after it.
    fn seek(&mut self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Bytes::of(key)?;
        let key = &*key;
        self.moved(py, |cursor| cursor.seek(key))
    }

    /// Goes to the last entry whose key is before this one.
    fn seek_before(&mut self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Bytes::of(key)?;
        let key = &*key;
        self.moved(py, |cursor| cursor.seek_before(key))
    }

    /// Goes to the next entry.
    fn next(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, |cursor| if cursor.valid() { cursor.next() } else { Ok(false) })
    }

    /// Goes to the entry before.
    fn prev(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, |cursor| if cursor.valid() { cursor.prev() } else { Ok(false) })
    }

    /// Shows the newest state from now on.
    fn refresh(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, windrow::Cursor::refresh)
    }

    /// Whether the cursor is at an entry.
    #[getter]
    fn valid(&self) -> bool {
        self.0.valid()
    }

    /// The key of the entry; None where the cursor is at none.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.valid().then(|| PyBytes::new(py, self.0.key()))
    }

    /// The value of the entry; None where the cursor is at none.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.valid().then(|| PyBytes::new(py, self.0.value()))
    }
}
