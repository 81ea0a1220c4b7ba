//! The classes `Db` and `Follower`, and the functions of the module.
//!
//! Owns: the two classes, and the functions that open, follow, repair and destroy. Never does: read or write a key.

use crate::batch::Batch;
use crate::errors::{call, raised};
use crate::handle::Handle;
use crate::keyspace::Keyspace;
use crate::options::{keyspace_options, options};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::time::Duration;
use windrow::{TransactionMode, TransactionOptions};

/// A database, and its default keyspace. Any number of threads may use it at once.
#[pyclass(extends = Keyspace, subclass, frozen, module = "windrow")]
pub(crate) struct Db {
    pub(crate) db: Handle<windrow::Db>,
}

impl Db {
    fn with_keyspace(db: windrow::Db) -> (Db, Keyspace) {
        let keyspace = Keyspace::new(db.default_keyspace());
        (Db { db: Handle::new(db) }, keyspace)
    }
}

/// Opens the database in a directory, which is created if it does not exist. Options are keywords:
/// `memory_bytes="64MiB"`.
#[pyfunction]
#[pyo3(signature = (path, **words))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    words: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Db>> {
    let options = options(py, words)?;
    let db = call(py, || windrow::Db::open_with(&path, options))?;
    Py::new(py, Db::with_keyspace(db))
}

/// Follows a database that another process has open.
#[pyfunction]
#[pyo3(signature = (path, **words))]
pub(crate) fn follow(
    py: Python<'_>,
    path: PathBuf,
    words: Option<&Bound<'_, PyDict>>,
) -> PyResult<Follower> {
    let options = options(py, words)?;
    let follower = call(py, || windrow::Follower::open_with(&path, options))?;
    Ok(Follower(Handle::new(follower)))
}

/// Makes a damaged database openable again. Returns a dict that reports the repair.
#[pyfunction]
#[pyo3(signature = (path, **words))]
pub(crate) fn repair<'py>(
    py: Python<'py>,
    path: PathBuf,
    words: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(py, words)?;
    let report = call(py, || windrow::repair(&path, options))?;
    let told = PyDict::new(py);
    told.set_item("lost_something", report.lost_something())?;
    told.set_item("tables_kept", report.tables_kept)?;
    told.set_item("tables_salvaged", report.tables_salvaged)?;
    told.set_item("tables_lost", report.tables_lost)?;
    told.set_item("entries_salvaged", report.entries_salvaged)?;
    told.set_item("batches_replayed", report.batches_replayed)?;
    told.set_item("manifest_rebuilt", report.manifest_rebuilt)?;
    told.set_item("keyspaces_renamed", report.keyspaces_renamed)?;
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    told.set_item("problems", problems)?;
    Ok(told)
}

/// Removes a database's files, and its directory if nothing else is in it.
#[pyfunction]
pub(crate) fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    call(py, || windrow::Db::destroy(&path))
}

#[pymethods]
impl Db {
    /// The database's directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.db.path().to_owned()
    }

    /// Returns the keyspace of that name, which is created if it does not exist.
    #[pyo3(signature = (name, **words))]
    fn keyspace(
        &self,
        py: Python<'_>,
        name: &str,
        words: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Keyspace> {
        let (db, options) = (&*self.db, keyspace_options(words)?);
        call(py, || db.keyspace_with(name, options)).map(Keyspace::new)
    }

    /// Returns the keyspace of that name; None if it does not exist.
    fn find_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<Option<Keyspace>> {
        let db = &*self.db;
        Ok(call(py, || db.open_keyspace(name))?.map(Keyspace::new))
    }

    /// Returns the names of all keyspaces.
    fn keyspaces(&self, py: Python<'_>) -> Vec<String> {
        let db = &*self.db;
        py.detach(|| db.keyspaces())
    }

    /// Drops a keyspace with all its entries.
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.drop_keyspace(name))
    }

    /// Returns an empty batch; `sync`: it is on the device when its write returns.
    #[pyo3(signature = (*, sync=false))]
    fn batch(&self, sync: bool) -> Batch {
        Batch::new(self.db.clone(), sync)
    }

    /// Begins a transaction. `pessimistic`: it locks the keys that it writes, and waits `lock_timeout` seconds at most
    /// for the locks of others.
    #[pyo3(signature = (*, pessimistic=false, lock_timeout=1.0, sync=false))]
    fn transaction(
        &self,
        py: Python<'_>,
        pessimistic: bool,
        lock_timeout: f64,
        sync: bool,
    ) -> PyResult<Transaction> {
        let options = TransactionOptions {
            mode: match pessimistic {
                true => TransactionMode::Pessimistic,
                false => TransactionMode::Optimistic,
            },
            lock_timeout: crate::options::ttl(Some(lock_timeout))?.unwrap_or_default(),
            ..TransactionOptions::default()
        };
        let db = &*self.db;
        Ok(Transaction::new(call(py, || db.transaction_with(&options))?, sync))
    }

    /// Calls `run(transaction)` and commits. On a conflict it tries again, `attempts` times at most (100). The other
    /// keywords are those of `transaction`.
    #[pyo3(signature = (run, **words))]
    fn transact<'py>(
        this: Bound<'py, Self>,
        run: Bound<'py, PyAny>,
        words: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let transact = this.py().import("windrow._transact")?.getattr("transact")?;
        transact.call((this, run), words)
    }

    /// Returns the database as it is now, for `get` and scans of every keyspace.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let db = &*self.db;
        Ok(Snapshot(Handle::new(call(py, || Ok(db.snapshot()))?)))
    }

    /// Makes everything that was written durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.sync())
    }

    /// Writes all memtables to tables.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.flush())
    }

    /// Merges all keyspaces down to their last levels, and waits for it.
    fn compact_all(&self, py: Python<'_>) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.compact())
    }

    /// Waits until nothing is left to be flushed or merged.
    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.wait_idle())
    }

    /// Makes a copy of the database as it is now in a directory that is empty or does not exist.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.checkpoint(&path))
    }

    /// Checks every checksum. Returns a list of the problems.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let db = &*self.db;
        let report = call(py, || db.verify())?;
        Ok(report.problems.iter().map(ToString::to_string).collect())
    }

    /// Turns writing on again after a failure, once its cause is gone.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.resume())
    }

    /// The exception that turned writing off; None while it is on.
    #[getter]
    fn write_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.db.write_error().map(|error| raised(py, &error))
    }

    /// Returns all counters and sizes as a dict.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let db = &*self.db;
        let text = py.detach(|| db.stats().to_json());
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Returns all counters and sizes as a table for people.
    fn stats_text(&self, py: Python<'_>) -> String {
        let db = &*self.db;
        py.detach(|| db.stats().to_string())
    }

    /// Closes the database: the directory is free, and calls raise ClosedError. A second close does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let db = &*self.db;
        call(py, || db.close())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<windrow.Db {:?}>", self.db.path())
    }
}

/// A database that another process has open, as of the last refresh.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Follower(Handle<windrow::Follower>);

#[pymethods]
impl Follower {
    /// The database as of the last refresh, read-only. Later refreshes do not change it.
    #[getter]
    fn db(&self, py: Python<'_>) -> PyResult<Py<Db>> {
        Py::new(py, Db::with_keyspace(self.0.db()))
    }

    /// Reads the writes since the last refresh. Returns whether there were any.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let follower = &*self.0;
        call(py, || follower.refresh())
    }

    /// Refreshes in the background every `seconds`; 0 ends that.
    fn refresh_every(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let interval = crate::options::ttl(Some(seconds))?.unwrap_or(Duration::ZERO);
        let follower = &*self.0;
        py.detach(|| follower.refresh_every(interval));
        Ok(())
    }

    /// Makes a copy of the database as of the last refresh.
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let follower = &*self.0;
        call(py, || follower.checkpoint(&path))
    }
}
