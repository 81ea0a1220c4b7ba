//! Snapshots.
//!
//! Owns: the handle. Never does: read.

use engine::Snapshot;

/// One moment of all keyspaces. Any number of threads may use it at once.
pub struct windrow_snapshot(pub(crate) Snapshot);

/// Frees a snapshot, so that merges may drop what only it could see.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_free(snapshot: Option<Box<windrow_snapshot>>) {
    drop(snapshot);
}
