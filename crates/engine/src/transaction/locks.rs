//! The locks that a transaction holds.
//!
//! Owns: which. Never does: ask for one, or give one back.

use windrow_store::write::key_locks::{LockKey, Owner};

/// The locks of a transaction.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) owner: Owner,
    pub(super) held: Vec<LockKey>,
    /// One was taken since the state that is read: what it locks may have been written
    /// after that.
    pub(super) is_behind: bool,
}
