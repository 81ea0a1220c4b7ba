//! Snapshots.
//!
//! Owns: the class. Never does: read.

use crate::handle::Handle;
use pyo3::prelude::*;

/// One moment of all keyspaces.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Snapshot(pub(crate) Handle<windrow::Snapshot>);
