//! The feed of changes: all committed batches, in the order of their commits.
//!
//! The source is the write-ahead log, which holds every batch whole and in order. Logs whose records
//! are in tables are kept within the settings `changes_bytes` and `changes_seconds`
//! (`write/kept_logs.rs` of store). A consumer reads files and takes locks only for a moment: no
//! writer ever waits for one, and no file is kept for it. One that is too late gets an error that
//! says from where it must copy.
//!
//! The feed shows what readers see: published batches, synced or not, as a follower does. A power
//! loss may take such a batch, and then its numbers are given out again. A consumer whose own state
//! outlives the machine asks for durable batches only ([`ChangeOptions::durable_only`]).
//!
//! Two things are not in the log. An ingestion has only its number there ([`Operation::Ingested`]),
//! and the drop of a keyspace is in the manifest, with the number behind which it came.
//!
//! Rejected: a queue in memory that writers fill. A slow consumer would hold them up, or lose
//! batches that are on the device anyway.
//!
//! A mirror takes a copy of one moment, and goes on behind it:
//!
//! ```
//! # let dir = tempfile::tempdir().unwrap();
//! # let (dir, copy) = (dir.path().join("db"), dir.path().join("copy"));
//! let mut options = windrow::Options::default();
//! options.settings.changes_bytes = 64 << 20;
//! let db = windrow::Db::open_with(dir, options)?;
//! db.put("apple", "red")?;
//! db.checkpoint(&copy)?;
//! let mirror = windrow::Db::open(&copy)?;
//!
//! db.put("pear", "green")?;
//! db.delete("apple")?;
//! for change in db.changes(mirror.snapshot().seq() + 1, Default::default())? {
//!     change?.apply(&mirror)?;
//! }
//! assert!(mirror.contains_key("pear")? && !mirror.contains_key("apple")?);
//! # Ok::<(), windrow::Error>(())
//! ```
//!
//! The feed keeps the database open, as a clone of its handle does. The repository's
//! `docs/guide/changes.md` says more.
//!
//! Owns: nothing. Never does: change the database.

mod apply;
mod change;
mod feed;
mod log_list;
mod moments;
mod of_db;
mod of_follower;
mod old_values;
mod reader;

pub use change::{Change, OldValue, Operation};
pub use feed::{ChangeOptions, Changes};

pub(crate) use of_follower::FollowedLogs;

use crate::snapshot::Snapshot;
use of_db::OfDb;
use of_follower::OfFollower;
use std::path::PathBuf;
use windrow_base::{Result, SeqNo};
use windrow_env::Env;
use windrow_recover::handle::Handle;

/// The changes of an open database from a number on.
pub(crate) fn of_db(database: Handle, from: SeqNo, options: ChangeOptions) -> Result<Changes> {
    let ChangeOptions { durable_only, old_values } = options;
    Changes::new(Box::new(OfDb::new(database, durable_only)), from, old_values)
}

/// The changes that a follower reads, from a number on.
pub(crate) fn of_follower(
    follower: Box<dyn FollowedLogs>,
    (env, dir): (Env, PathBuf),
    from: SeqNo,
    old_values: Option<Snapshot>,
) -> Result<Changes> {
    Changes::new(Box::new(OfFollower::new(follower, env, dir)), from, old_values)
}
