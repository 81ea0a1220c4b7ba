//! Windrow for Python: the module `windrow._windrow`, which the package `windrow` builds on.
//!
//! Every call of the engine releases the interpreter's lock, so that other threads run, and so that Python code that
//! the engine calls (comparators, merge operators) can take it. The drop of every handle releases it too, since the
//! last handle closes its database.
//!
//! Owns: the conversion of types and errors. Never does: anything that the library in Rust does not.

use pyo3::prelude::*;

mod batch;
mod bytes;
mod cursor;
mod database;
mod errors;
mod handle;
mod keyspace;
mod operators;
mod options;
mod snapshot;
mod transaction;

#[pymodule]
fn _windrow(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<keyspace::Keyspace>()?;
    module.add_class::<database::Db>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<database::Follower>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<cursor::Entries>()?;
    module.add_class::<keyspace::Ingest>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_function(wrap_pyfunction!(database::open, module)?)?;
    module.add_function(wrap_pyfunction!(database::follow, module)?)?;
    module.add_function(wrap_pyfunction!(database::repair, module)?)?;
    module.add_function(wrap_pyfunction!(database::destroy, module)?)?;
    Ok(())
}
