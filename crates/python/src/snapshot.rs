//! The class `Snapshot`.
//!
//! Owns: the class. Never does: read.

use crate::handle::Handle;
use pyo3::prelude::*;

/// All keyspaces as of one moment.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Snapshot(pub(crate) Handle<windrow::Snapshot>);
