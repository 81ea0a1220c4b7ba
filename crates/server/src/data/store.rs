//! The database as the server uses it.
//!
//! Owns: the keyspaces, the locks of keys, the clients that watch or wait for each; writing staged
//! rows. Never does: know a client's connection.

use super::key_locks::KeyLocks;
use super::space::Spaces;
use super::staged_writes::StagedWrites;
use super::waiting_clients::{Served, WaitingClients};
use super::watched_keys::WatchedKeys;
use windrow::{Batch, Db, Result, WriteSync};

/// The database, and all that commands share of it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) db: Db,
    pub(crate) spaces: Spaces,
    pub(crate) locks: KeyLocks,
    pub(crate) watched: WatchedKeys,
    pub(crate) waiting: WaitingClients,
    /// The bytes that one command may gather, and write: as many as the engine takes in a batch.
    pub(crate) command_bytes_max: usize,
}

impl Store {
    /// Opens the values of `db`.
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
            watched: WatchedKeys::default(),
            waiting: WaitingClients::default(),
        })
    }

    /// Wakes the clients that wait for `keys`, which have something now. They keep a clone of
    /// `served` until they have looked: a writer that was woken itself passes on the clones of
    /// those who woke it.
    pub(crate) fn wake(&self, keys: &[Vec<u8>], served: &mut Vec<Served>) {
        if keys.is_empty() || self.waiting.is_empty() {
            return;
        }
        if served.is_empty() {
            served.push(Served::new());
        }
        keys.iter().for_each(|key| self.waiting.wake(key, served));
    }

    /// Writes the staged rows as one batch: all or nothing. No row is staged afterwards. `batch` is
    /// empty before and after.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn write(&self, staged: &mut StagedWrites, batch: &mut Batch) -> Result<()> {
        if staged.is_empty() {
            return Ok(());
        }
        debug_assert!(batch.is_empty(), "a batch that was not written");
        staged.move_into(&self.spaces, batch);
        let written = self.db.write(&mut *batch, WriteSync::No);
        batch.clear();
        written.map(drop)
    }
}
