//! Snapshots: a state of the database that stays readable.
//!
//! Its reads of the default keyspace are in `snapshot_reads.rs`, as keyspaces know snapshots and
//! not the other way round. The list of live snapshots, which merges follow, is in
//! `snapshot_list.rs`.
//!
//! Owns: the handle. Never does: keep a file itself.

use std::sync::Arc;
use windrow_base::{Error, Result, SeqNo};
use windrow_recover::handle::Handle;

/// A state of all keyspaces at one moment. It is readable for as long as it is held, also after
/// [`crate::Db::close`]; a keyspace that was dropped since is readable through a handle of it that
/// is kept. It keeps the database open, as a clone of [`crate::Db`] does. (Once another process
/// opens the closed database, files that the snapshot reads may be removed, which is an error.)
///
/// Owned, cheap to clone, `Send`. Entries that only it can see are kept on disk until the last
/// clone drops. Expiry is judged at the time it was taken.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// db.put("a", "1")?;
/// let then = db.snapshot();
/// db.put("a", "2")?;
/// db.put("b", "1")?;
/// assert_eq!(then.get("a")?.as_deref(), Some(&b"1"[..]));
/// assert_eq!(then.iter().count(), 1);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) inner: Arc<SnapshotInner>,
}

pub(crate) struct SnapshotInner {
    pub(crate) database: Handle,
    pub(crate) seq: SeqNo,
    pub(crate) now_ms: u64,
    pub(crate) id: u64,
    /// Whether it was taken before the database was closed.
    was_open: bool,
}

impl Drop for SnapshotInner {
    fn drop(&mut self) {
        // The copy in a forked child is not on the list.
        if self.database.write_state.is_of_this_process() {
            self.database.snapshots.release(self.seq, self.id);
        }
    }
}

impl Snapshot {
    pub(crate) fn take(database: &Handle) -> Snapshot {
        let moment = || (database.pipeline.visible(), database.now_ms());
        let (seq, now_ms, id) = match database.write_state.is_of_this_process() {
            true => database.snapshots.register(moment),
            // Nothing will be read of it.
            false => (0, 0, 0),
        };
        let was_open = database.write_state.check_read().is_ok();
        let database = database.clone();
        Snapshot { inner: Arc::new(SnapshotInner { database, seq, now_ms, id, was_open }) }
    }

    /// Checks that it shows a state of this open database.
    ///
    /// # Errors
    /// `InvalidArgument` if it is of another one; `Closed` if it was taken after the database was
    /// closed.
    pub(crate) fn check_of(&self, database: &Handle) -> Result<()> {
        if !self.inner.database.is_of(database) {
            return Err(Error::invalid("the snapshot is of another open database"));
        }
        if self.inner.was_open {
            database.write_state.check_process()
        } else {
            database.write_state.check_read()
        }
    }

    /// The sequence number of the last write that it sees.
    pub fn seq(&self) -> SeqNo {
        self.inner.seq
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot(seq {})", self.seq())
    }
}
