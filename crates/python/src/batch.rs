//! The class `Batch`: operations that are written together.
//!
//! Owns: the class. Never does: judge an operation; the write does.

use crate::bytes::Bytes;
use crate::errors::call;
use crate::handle::Handle;
use crate::keyspace::Keyspace;
use crate::options::ttl;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use windrow::WriteSync;

/// Operations in any keyspaces, written all or none. `with db.batch() as batch:` writes the batch at the end of the
/// block, or drops it where the block raises.
#[pyclass(module = "windrow")]
pub(crate) struct Batch {
    db: Handle<windrow::Db>,
    batch: windrow::Batch,
    sync: bool,
}

impl Batch {
    pub(crate) fn new(db: windrow::Db, sync: bool) -> Batch {
        Batch { db: Handle::new(db), batch: windrow::Batch::new(), sync }
    }

    fn added(&self) -> PyResult<()> {
        match self.batch.error() {
            Some(error) => Err(PyRuntimeError::new_err(error.to_string())),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl Batch {
    /// Adds a put.
    #[pyo3(signature = (keyspace, key, value, *, ttl=None))]
    fn put(
        &mut self,
        keyspace: &Keyspace,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<f64>,
    ) -> PyResult<()> {
        let (key, value) = (Bytes::of(key)?, Bytes::of(value)?);
        match self::ttl(ttl)? {
            Some(ttl) => self.batch.put_with_ttl(&*keyspace.keyspace, &*key, &*value, ttl),
            None => self.batch.put(&*keyspace.keyspace, &*key, &*value),
        }
        Ok(())
    }

    /// Adds a delete.
    fn delete(&mut self, keyspace: &Keyspace, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.batch.delete(&*keyspace.keyspace, &*Bytes::of(key)?);
        Ok(())
    }

    /// Adds a delete of all keys from `start` to before `stop`.
    fn delete_range(
        &mut self,
        keyspace: &Keyspace,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.batch.delete_range(&*keyspace.keyspace, &*Bytes::of(start)?, &*Bytes::of(stop)?);
        Ok(())
    }

    /// Adds a merge.
    fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.batch.merge(&*keyspace.keyspace, &*Bytes::of(key)?, &*Bytes::of(operand)?);
        Ok(())
    }

    /// Adds the operations of another batch.
    fn append(&mut self, other: &Bound<'_, Batch>) -> PyResult<()> {
        // The batch itself is borrowed mutably already, so that it is refused as its own source.
        self.batch.append(&other.try_borrow()?.batch);
        self.added()
    }

    /// Empties the batch.
    fn clear(&mut self) {
        self.batch.clear();
    }

    /// Writes all of the batch or nothing, and empties it unless `keep` is set.
    #[pyo3(signature = (*, keep=false))]
    fn write(&mut self, py: Python<'_>, keep: bool) -> PyResult<()> {
        let sync = if self.sync { WriteSync::Yes } else { WriteSync::No };
        let (db, batch) = (&*self.db, &mut self.batch);
        call(py, || db.write(batch, sync).map(|_| ()))?;
        if !keep {
            self.batch.clear();
        }
        Ok(())
    }

    /// The bytes of its operations.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batch.byte_len()
    }

    fn __len__(&self) -> usize {
        self.batch.len()
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
        match kind {
            None => self.write(py, false),
            Some(_) => {
                self.batch.clear();
                Ok(())
            }
        }
    }
}
