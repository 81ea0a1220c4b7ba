//! Moments between two backups: the changes since an earlier backup, which a later one has with it.
//!
//! A backup copies the batches that the database has logged since the newest backup of the target,
//! if its logs have all of them (setting `changes_bytes`). A restore to a moment takes the last
//! backup before it, and puts these batches into the log of the copy, which the next open replays.
//! So no operator and no comparator is needed to restore, all sequence numbers are those of the
//! source, and a copy that is cut short is none.
//!
//! Changes may only follow the backup that they go on from. A crash takes back writes that were not
//! synced, and gives their numbers out again; a restored copy does so too. So a record names the
//! session of the database in which it was made, and the next backup goes on from it only if the
//! manifest says that nothing up to there was taken back since (`ManifestState::goes_on_from`).
//!
//! Rejected: copies of the kept logs, file by file. They end where a flush ended them, and not where
//! a backup does.
//!
//! Owns: nothing. Never does: store or restore a table.

mod archive;
mod plan;
mod reached;

pub(super) use archive::{Archive, ChangeLog, Earlier};
pub(super) use plan::RestorePlan;
pub use reached::Moment;
