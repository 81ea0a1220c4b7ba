//! The locks that a transaction holds.
//!
//! Owns: the list of them. Never does: ask for one, or give one back.

use windrow_store::write::key_locks::{LockKey, LockOwner};

/// The locks of a transaction.
#[derive(Debug)]
pub(super) struct TransactionLocks {
    pub(super) owner: LockOwner,
    pub(super) held: Vec<LockKey>,
    /// Whether a lock was taken since the snapshot that is read: the locked key may have been
    /// written after the snapshot.
    pub(super) is_behind: bool,
}
