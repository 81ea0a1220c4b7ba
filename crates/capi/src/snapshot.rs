//! Snapshots.
//!
//! Owns: the handle. Never does: read.

use engine::Snapshot;

/// All keyspaces as of one moment. Any number of threads may use it at once.
pub struct windrow_snapshot(pub(crate) Snapshot);

/// Frees a snapshot, so that merges may drop the versions that only it could see.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_free(snapshot: Option<Box<windrow_snapshot>>) {
    drop(snapshot);
}
