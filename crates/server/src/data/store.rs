//! The database as the server uses it.
//!
//! Owns: the keyspaces, the locks of keys, who watches and who waits for which. Never does: know a client.

use super::key_locks::KeyLocks;
use super::space::Spaces;
use super::waiting::Waiting;
use super::watched::Watched;
use windrow::{Db, Result};

/// What all commands work on.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) db: Db,
    pub(crate) spaces: Spaces,
    pub(crate) locks: KeyLocks,
    pub(crate) watched: Watched,
    pub(crate) waiting: Waiting,
}

impl Store {
    /// The values of `db`.
    ///
    /// # Errors
    /// Those of making the keyspaces that it needs.
    pub(crate) fn new(db: Db) -> Result<Store> {
        Ok(Store {
            spaces: Spaces::of(&db)?,
            db,
            locks: KeyLocks::new(),
            watched: Watched::default(),
            waiting: Waiting::default(),
        })
    }
}
