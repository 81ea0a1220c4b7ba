//! The database as the server uses it.
//!
//! Owns: the keyspaces, the locks of keys, who watches and who waits for which; writing what is staged.
//! Never does: know a client.

use super::key_locks::KeyLocks;
use super::space::Spaces;
use super::staged::Staged;
use super::waiting::{Served, Waiting};
use super::watched::Watched;
use windrow::{Batch, Db, Result, WriteSync};

/// The database, and all that commands share of it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) db: Db,
    pub(crate) spaces: Spaces,
    pub(crate) locks: KeyLocks,
    pub(crate) watched: Watched,
    pub(crate) waiting: Waiting,
    /// Bytes that one command may gather, and write: as many as the engine takes in a batch.
    pub(crate) command_bytes_max: usize,
}

impl Store {
    /// The values of `db`.
    ///
    /// # Errors
    /// Those of making the keyspaces that it needs.
    pub(crate) fn new(db: Db) -> Result<Store> {
        let of_batch = db.stats().memory.budget_bytes / 4;
        Ok(Store {
            command_bytes_max: usize::try_from(of_batch).unwrap_or(usize::MAX),
            spaces: Spaces::of(&db)?,
            db,
            locks: KeyLocks::new(),
            watched: Watched::default(),
            waiting: Waiting::default(),
        })
    }

    /// Has those look who wait for `keys`, in which there is something now. `served` learns when they have:
    /// a writer that was woken itself passes on those who woke it.
    pub(crate) fn wake(&self, keys: &[Vec<u8>], served: &mut Vec<Served>) {
        if keys.is_empty() || self.waiting.is_empty() {
            return;
        }
        if served.is_empty() {
            served.push(Served::new());
        }
        keys.iter().for_each(|key| self.waiting.wake(key, served));
    }

    /// Writes what is staged, as one batch: all of it or nothing; nothing is staged then. `batch` is empty
    /// before and after.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn write(&self, staged: &mut Staged, batch: &mut Batch) -> Result<()> {
        if staged.is_empty() {
            return Ok(());
        }
        debug_assert!(batch.is_empty(), "a batch that was not written");
        staged.move_into(&self.spaces, batch);
        let written = self.db.write_reusing(batch, WriteSync::No);
        batch.clear();
        written.map(drop)
    }
}
