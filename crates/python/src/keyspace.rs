//! The classes `Keyspace` and `Ingest`: reads, writes, scans and ingestions.
//!
//! Owns: the two classes. Never does: keep an entry that it reads.

use crate::bytes::Bytes;
use crate::cursor::{Cursor, Entries, Part};
use crate::errors::call;
use crate::handle::{Alone, Handle};
use crate::options::ttl;
use crate::snapshot::Snapshot;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use windrow::{ReadOptions, Ttl};

/// An ordered map from keys to values. Keys and values are bytes-like.
#[pyclass(subclass, frozen, module = "windrow")]
pub(crate) struct Keyspace {
    pub(crate) keyspace: Handle<windrow::Keyspace>,
    synced: Handle<windrow::Keyspace>,
}

impl Keyspace {
    pub(crate) fn new(keyspace: windrow::Keyspace) -> Keyspace {
        Keyspace { synced: Handle::new(keyspace.synced()), keyspace: Handle::new(keyspace) }
    }

    fn writing(&self, sync: bool) -> &windrow::Keyspace {
        if sync { &self.synced } else { &self.keyspace }
    }

    /// Returns an iterator over the entries of a range.
    fn entries(
        &self,
        py: Python<'_>,
        part: Part,
        snapshot: Option<&Snapshot>,
        fill_cache: bool,
    ) -> PyResult<windrow::Iter> {
        let keyspace = &*self.keyspace;
        let snapshot = snapshot.map(|snapshot| snapshot.0.clone());
        call(py, move || {
            let (lower, upper) = part.bounds();
            Ok(keyspace.iter_with(ReadOptions {
                lower,
                upper,
                fill_cache,
                snapshot,
                ..ReadOptions::default()
            }))
        })
    }
}

#[pymethods]
impl Keyspace {
    /// The keyspace's name.
    #[getter]
    fn name(&self) -> &str {
        self.keyspace.name()
    }

    /// The merge policy of its tree, in full.
    #[getter]
    fn policy(&self, py: Python<'_>) -> PyResult<String> {
        let keyspace = &*self.keyspace;
        call(py, || Ok(keyspace.policy()))
    }

    /// Exchanges the merge policy of the open database.
    fn set_policy(&self, py: Python<'_>, policy: &str) -> PyResult<()> {
        let keyspace = &*self.keyspace;
        call(py, || keyspace.set_policy(policy))
    }

    /// Returns the value of a key, or `default`.
    #[pyo3(signature = (key, default=None, *, snapshot=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = Bytes::of(key)?;
        let (keyspace, key) = (&*self.keyspace, &*key);
        let value = match snapshot {
            Some(snapshot) => {
                let snapshot = &*snapshot.0;
                call(py, || keyspace.get_at(snapshot, key))?
            }
            None => call(py, || keyspace.get(key))?,
        };
        Ok(match value {
            Some(value) => Some(PyBytes::new(py, &value).into_any()),
            None => default,
        })
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.get(py, key, None, None)? {
            Some(value) => Ok(value),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Returns the values of many keys, None for each absent one.
    #[pyo3(signature = (keys, *, snapshot=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Bound<'py, PyAny>>,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let keys: Vec<Bytes<'_>> = keys.iter().map(Bytes::of).collect::<PyResult<_>>()?;
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let (keyspace, snapshot) = (&*self.keyspace, snapshot.map(|snapshot| &*snapshot.0));
        let values: Vec<Option<windrow::Slice>> = call(py, || {
            let values = match snapshot {
                Some(snapshot) => keyspace.multi_get_at(snapshot, &keys),
                None => keyspace.multi_get(&keys),
            };
            values.into_iter().collect()
        })?;
        Ok(values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Bytes::of(key)?;
        let (keyspace, key) = (&*self.keyspace, &*key);
        call(py, || keyspace.contains_key(key))
    }

    /// Returns the seconds until a key expires; None if it never does. Raises KeyError if the key is absent.
    fn ttl(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let bytes = Bytes::of(key)?;
        let (keyspace, bytes) = (&*self.keyspace, &*bytes);
        match call(py, || keyspace.ttl(bytes))? {
            Ttl::Left(left) => Ok(Some(left.as_secs_f64())),
            Ttl::Forever => Ok(None),
            Ttl::NoKey => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Puts a value. `ttl`: seconds after which it expires; `sync`: it is on the device when the call returns.
    #[pyo3(signature = (key, value, *, ttl=None, sync=false))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<f64>,
        sync: bool,
    ) -> PyResult<()> {
        let (key, value) = (Bytes::of(key)?, Bytes::of(value)?);
        let (keyspace, key, value) = (self.writing(sync), &*key, &*value);
        match self::ttl(ttl)? {
            Some(ttl) => call(py, || keyspace.put_with_ttl(key, value, ttl)),
            None => call(py, || keyspace.put(key, value)),
        }
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.put(py, key, value, None, false)
    }

    /// Deletes a key. An absent key is no error.
    #[pyo3(signature = (key, *, sync=false))]
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>, sync: bool) -> PyResult<()> {
        let key = Bytes::of(key)?;
        let (keyspace, key) = (self.writing(sync), &*key);
        call(py, || keyspace.delete(key))
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = Bytes::of(key)?;
        let (keyspace, bytes) = (&*self.keyspace, &*bytes);
        match call(py, || keyspace.remove(bytes))? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Deletes all keys from `start` to before `stop`, any number of them.
    #[pyo3(signature = (start, stop, *, sync=false))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
        sync: bool,
    ) -> PyResult<()> {
        let (start, stop) = (Bytes::of(start)?, Bytes::of(stop)?);
        let (keyspace, start, stop) = (self.writing(sync), &*start, &*stop);
        call(py, || keyspace.delete_range(start, stop))
    }

    /// Deletes all entries.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let keyspace = &*self.keyspace;
        call(py, || keyspace.clear())
    }

    /// Merges an operand into a key's value by the keyspace's merge operator.
    #[pyo3(signature = (key, operand, *, sync=false))]
    fn merge(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        sync: bool,
    ) -> PyResult<()> {
        let (key, operand) = (Bytes::of(key)?, Bytes::of(operand)?);
        let (keyspace, key, operand) = (self.writing(sync), &*key, &*operand);
        call(py, || keyspace.merge(key, operand))
    }

    /// Makes the value `new` if it is `old` (None: absent). Returns whether it was.
    #[pyo3(signature = (key, old, new, *, sync=false))]
    fn compare_exchange(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        old: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
        sync: bool,
    ) -> PyResult<bool> {
        let (key, old, new) = (Bytes::of(key)?, Bytes::optional(old)?, Bytes::optional(new)?);
        let (keyspace, key, old, new) = (self.writing(sync), &*key, old.as_deref(), new.as_deref());
        call(py, || keyspace.compare_exchange(key, old, new).map(|done| done.is_ok()))
    }

    /// Removes the first entry and returns it; None if there is none.
    fn pop_first<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let keyspace = &*self.keyspace;
        let popped = call(py, || keyspace.pop_first())?;
        Ok(popped.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }

    /// Returns an iterator over the entries from `start` to before `stop`, or those whose keys begin with `prefix`, as
    /// pairs, in the order of keys or in reverse. It shows the entries as of the call, or as of a snapshot.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, snapshot=None, fill_cache=true))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn items<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
        prefix: Option<&Bound<'py, PyAny>>,
        reverse: bool,
        snapshot: Option<&Snapshot>,
        fill_cache: bool,
    ) -> PyResult<Entries> {
        let part = Part::new(start, stop, prefix)?;
        let iter = self.entries(py, part, snapshot, fill_cache)?;
        Ok(Entries::new(iter, reverse, true, true))
    }

    /// Returns an iterator over the keys of the entries that `items` returns.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, snapshot=None, fill_cache=true))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn keys<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
        prefix: Option<&Bound<'py, PyAny>>,
        reverse: bool,
        snapshot: Option<&Snapshot>,
        fill_cache: bool,
    ) -> PyResult<Entries> {
        let part = Part::new(start, stop, prefix)?;
        let iter = self.entries(py, part, snapshot, fill_cache)?;
        Ok(Entries::new(iter, reverse, true, false))
    }

    /// Returns an iterator over the values of the entries that `items` returns.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, snapshot=None, fill_cache=true))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn values<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
        prefix: Option<&Bound<'py, PyAny>>,
        reverse: bool,
        snapshot: Option<&Snapshot>,
        fill_cache: bool,
    ) -> PyResult<Entries> {
        let part = Part::new(start, stop, prefix)?;
        let iter = self.entries(py, part, snapshot, fill_cache)?;
        Ok(Entries::new(iter, reverse, false, true))
    }

    /// Returns a cursor over the entries, at no entry yet.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, snapshot=None, fill_cache=true))]
    fn cursor<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
        prefix: Option<&Bound<'py, PyAny>>,
        snapshot: Option<&Snapshot>,
        fill_cache: bool,
    ) -> PyResult<Cursor> {
        let part = Part::new(start, stop, prefix)?;
        let (keyspace, snapshot) = (&*self.keyspace, snapshot.map(|snapshot| snapshot.0.clone()));
        let cursor = call(py, move || {
            let (lower, upper) = part.bounds();
            let options =
                ReadOptions { lower, upper, fill_cache, snapshot, ..ReadOptions::default() };
            let cursor = keyspace.cursor(options);
            cursor.status()?;
            Ok(cursor)
        })?;
        Ok(Cursor(Handle::new(cursor)))
    }

    /// Returns the number of keys in a range, by reading them.
    #[pyo3(signature = (start=None, stop=None))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let part = Part::new(start, stop, None)?;
        let keyspace = &*self.keyspace;
        call(py, || keyspace.count(part.range()))
    }

    /// Returns about the number of keys, without reading them.
    fn approximate_len(&self, py: Python<'_>) -> PyResult<u64> {
        let keyspace = &*self.keyspace;
        call(py, || keyspace.approximate_len())
    }

    /// Returns about the number of bytes that a range takes.
    fn approximate_bytes(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (start, stop) = (Bytes::of(start)?, Bytes::of(stop)?);
        let (keyspace, start, stop) = (&*self.keyspace, &*start, &*stop);
        call(py, || keyspace.approximate_bytes(start, stop))
    }

    /// Merges a range down to the last level, and waits for it.
    #[pyo3(signature = (start=None, stop=None))]
    fn compact(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let part = Part::new(start, stop, None)?;
        let keyspace = &*self.keyspace;
        call(py, || keyspace.compact_range(part.range()))
    }

    /// Begins an ingestion of sorted entries, which become visible at one moment when it is finished.
    fn ingest(&self, py: Python<'_>) -> PyResult<Ingest> {
        let keyspace = &*self.keyspace;
        let ingest = call(py, || keyspace.ingest())?;
        Ok(Ingest(Handle::new(Alone::new(Some(ingest)))))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Entries> {
        self.keys(py, None, None, None, false, None, true)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.count(py, None, None).map(|count| count as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("<windrow.Keyspace {:?}>", self.keyspace.name())
    }
}

/// Sorted entries on their way into a keyspace. `with keyspace.ingest() as ingest:` finishes the ingestion at the end
/// of the block, or drops it where the block raises.
#[pyclass(module = "windrow")]
pub(crate) struct Ingest(Handle<Alone<Option<windrow::Ingest>>>);

#[pymethods]
impl Ingest {
    /// Adds an entry. Its key must be after those added before.
    fn put(
        &mut self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (key, value) = (Bytes::of(key)?, Bytes::of(value)?);
        let (ingest, key, value) = (self.0.get(), &*key, &*value);
        call(py, || match ingest {
            Some(ingest) => ingest.put(key, value),
            None => Err(ended()),
        })
    }

    /// Makes all entries visible, durably.
    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let ingest = self.0.get().take();
        call(py, || ingest.ok_or_else(ended)?.finish().map(|_| ()))
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __exit__(
        &mut self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ingest = self.0.get().take();
        match kind {
            None => call(py, || ingest.map_or(Ok(()), |ingest| ingest.finish().map(|_| ()))),
            Some(_) => {
                py.detach(|| drop(ingest));
                Ok(())
            }
        }
    }
}

fn ended() -> windrow::Error {
    windrow::Error::new(windrow::ErrorKind::Closed, "the ingestion has ended: begin another one")
}
