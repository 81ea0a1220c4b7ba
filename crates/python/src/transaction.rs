//! The class `Transaction`.
//!
//! Owns: the class, which is empty once the transaction has ended. Never does: run anything again; `Db.transact` in
//! Python does.

use crate::bytes::Bytes;
use crate::cursor::Part;
use crate::errors::call;
use crate::handle::{Alone, Handle};
use crate::keyspace::Keyspace;
use crate::options::ttl;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use windrow::{Error, ErrorKind, Savepoint, WriteSync};

/// A transaction. `with db.transaction() as tx:` commits it at the end of the block, or drops it where the block
/// raises.
#[pyclass(module = "windrow")]
pub(crate) struct Transaction {
    transaction: Handle<Alone<Option<windrow::Transaction>>>,
    savepoints: Vec<Savepoint>,
    sync: bool,
}

impl Transaction {
    pub(crate) fn new(transaction: windrow::Transaction, sync: bool) -> Transaction {
        Transaction {
            transaction: Handle::new(Alone::new(Some(transaction))),
            savepoints: Vec::new(),
            sync,
        }
    }

    fn going<T: Send>(
        &mut self,
        py: Python<'_>,
        run: impl FnOnce(&mut windrow::Transaction) -> windrow::Result<T> + Send,
    ) -> PyResult<T> {
        let transaction = self.transaction.get();
        call(py, || run(transaction.as_mut().ok_or_else(ended)?))
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction has ended: begin another one")
}

#[pymethods]
impl Transaction {
    /// Returns the value of a key as the transaction sees it, or `default`. `for_update`: the key is locked until it
    /// ends.
    #[pyo3(signature = (keyspace, key, default=None, *, for_update=false))]
    fn get<'py>(
        &mut self,
        py: Python<'py>,
        keyspace: &Keyspace,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
        for_update: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = Bytes::of(key)?;
        let (keyspace, key) = (&*keyspace.keyspace, &*key);
        let value = self.going(py, |transaction| match for_update {
            true => transaction.get_for_update(keyspace, key),
            false => transaction.get(keyspace, key),
        })?;
        Ok(match value {
            Some(value) => Some(PyBytes::new(py, &value).into_any()),
            None => default,
        })
    }

    /// Adds a put.
    #[pyo3(signature = (keyspace, key, value, *, ttl=None))]
    fn put(
        &mut self,
        py: Python<'_>,
        keyspace: &Keyspace,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<f64>,
    ) -> PyResult<()> {
        let (key, value, ttl) = (Bytes::of(key)?, Bytes::of(value)?, self::ttl(ttl)?);
        let (keyspace, key, value) = (&*keyspace.keyspace, &*key, &*value);
        self.going(py, |transaction| match ttl {
            Some(ttl) => transaction.put_with_ttl(keyspace, key, value, ttl),
            None => transaction.put(keyspace, key, value),
        })
    }

    /// Adds a delete.
    fn delete(
        &mut self,
        py: Python<'_>,
        keyspace: &Keyspace,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let key = Bytes::of(key)?;
        let (keyspace, key) = (&*keyspace.keyspace, &*key);
        self.going(py, |transaction| transaction.delete(keyspace, key))
    }

    /// Adds a delete of all keys from `start` to before `stop`.
    fn delete_range(
        &mut self,
        py: Python<'_>,
        keyspace: &Keyspace,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (start, stop) = (Bytes::of(start)?, Bytes::of(stop)?);
        let (keyspace, start, stop) = (&*keyspace.keyspace, &*start, &*stop);
        self.going(py, |transaction| transaction.delete_range(keyspace, start, stop))
    }

    /// Adds a merge.
    fn merge(
        &mut self,
        py: Python<'_>,
        keyspace: &Keyspace,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (key, operand) = (Bytes::of(key)?, Bytes::of(operand)?);
        let (keyspace, key, operand) = (&*keyspace.keyspace, &*key, &*operand);
        self.going(py, |transaction| transaction.merge(keyspace, key, operand))
    }

    /// Returns a list of the entries of a range as the transaction sees them, `limit` at most.
    #[pyo3(signature = (keyspace, start=None, stop=None, *, prefix=None, reverse=false, limit=None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn items<'py>(
        &mut self,
        py: Python<'py>,
        keyspace: &Keyspace,
        start: Option<&Bound<'py, PyAny>>,
        stop: Option<&Bound<'py, PyAny>>,
        prefix: Option<&Bound<'py, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let part = Part::new(start, stop, prefix)?;
        let keyspace = &*keyspace.keyspace;
        let entries = self.going(py, |transaction| {
            let range = transaction.range(keyspace, part.range())?;
            let limit = limit.unwrap_or(usize::MAX);
            match reverse {
                true => range.rev().take(limit).collect::<windrow::Result<Vec<_>>>(),
                false => range.take(limit).collect(),
            }
        })?;
        let pair = |(key, value): &(windrow::Slice, windrow::Slice)| {
            (PyBytes::new(py, key), PyBytes::new(py, value))
        };
        PyList::new(py, entries.iter().map(pair))
    }

    /// Sets a savepoint, to which `rollback_to_savepoint` goes back. Savepoints nest.
    fn savepoint(&mut self, py: Python<'_>) -> PyResult<()> {
        let savepoint = self.going(py, |transaction| Ok(transaction.savepoint()))?;
        self.savepoints.push(savepoint);
        Ok(())
    }

    /// Undoes the writes since the last savepoint, and removes the savepoint.
    fn rollback_to_savepoint(&mut self, py: Python<'_>) -> PyResult<()> {
        let savepoint = self.savepoints.pop();
        self.going(py, |transaction| match &savepoint {
            Some(savepoint) => transaction.rollback_to(savepoint),
            None => Err(Error::invalid("there is no savepoint to go back to")),
        })
    }

    /// Undoes all writes, and ends the transaction.
    fn rollback(&mut self, py: Python<'_>) {
        let transaction = self.transaction.get().take();
        py.detach(|| drop(transaction));
    }

    /// Writes all, or raises and writes nothing (ConflictError: run the transaction again). It has ended in either
    /// case.
    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        let (transaction, sync) = (self.transaction.get().take(), self.sync);
        let sync = if sync { WriteSync::Yes } else { WriteSync::No };
        call(py, || transaction.ok_or_else(ended)?.commit_with(sync).map(|_| ()))
    }

    /// Whether the transaction has been committed or rolled back.
    #[getter]
    fn ended(&mut self) -> bool {
        self.transaction.get().is_none()
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
            None if !self.ended() => self.commit(py),
            _ => {
                self.rollback(py);
                Ok(())
            }
        }
    }
}
