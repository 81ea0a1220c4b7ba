//! Snapshots.
//!
//! Owns: the handle. Never does: read.

use engine::Snapshot;

/// One moment of a database.
pub struct leveldb_snapshot_t(pub(super) Snapshot);
