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
mod key_filter;
mod log_list;
mod moments;
mod of_db;
mod of_follower;
mod old_values;
mod reader;

pub use change::{Change, OldValue, Operation};
pub use feed::{ChangeOptions, Changes};

pub(crate) use of_follower::FollowedLogs;

use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use key_filter::KeyFilter;
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

/// The changes from now on that touch keys with a prefix: for a program that reacts to a part of a
/// keyspace. A change has those operations only: of keys with the prefix, range deletes that overlap
/// it, ingestions into the keyspace (whose keys are not known), and its drop, which ends it. `&db`
/// will do for the default keyspace.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// let mut users = windrow::changes::watch_prefix(&db, "user/")?;
/// db.put("word/ada", "1")?;
/// db.put("user/ada", "London")?;
/// assert_eq!(users.try_next()?.unwrap().seq, 2);
/// assert!(users.try_next()?.is_none());
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `NotSupported` for a keyspace of another order than the bytewise one; `ReadOnly` where nothing is
/// ever written: a [`Follower`](crate::Follower) has [`changes`](crate::Follower::changes); `Closed`.
/// One that is taken from too late ends with `InvalidArgument`, as any feed does.
pub fn watch_prefix(keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<Changes> {
    let Keyspace { database, tree, .. } = keyspace;
    database.write_state.check_read()?;
    tree.check_prefix()?;
    // While writing is off after a failure, it may be resumed.
    if database.catalog.lock().log().is_none() {
        database.write_state.check()?;
    }
    let filter = KeyFilter::new(tree.id, prefix.as_ref());
    let watch = Changes::watch(Box::new(OfDb::new(database.clone(), false)), filter)?;
    if tree.is_dropped() { Err(tree.gone()) } else { Ok(watch) }
}
