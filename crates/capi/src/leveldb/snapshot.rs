//! Snapshots.
//!
//! Owns: the handle. Never does: read.

use engine::Snapshot;

/// A database as of one moment.
pub struct leveldb_snapshot_t(pub(super) Snapshot);
