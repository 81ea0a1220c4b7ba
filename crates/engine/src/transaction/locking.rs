//! How a transaction locks keys, so that others wait for it instead of conflicting.
//!
//! A key that was waited for has been written, most likely: with its lock a
//! transaction goes on to the present state, if nothing that it read before has changed.
//!
//! Owns: the steps. Never does: decide who gets a lock (`write/key_locks.rs`).

use super::{Transaction, TransactionMode, begin_recorded};
use crate::slice::Slice;
use crate::tree::Tree;
use crate::write::batch::InKeyspace;
use crate::write::key_locks::{LockKey, LockMode, Owner, Refused};
use crate::write::ordered_key::OrderedKey;
use crate::write::recent::Verdict;
use windrow_base::{Error, ErrorKind, Result};

/// The locks of a transaction.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) owner: Owner,
    pub(super) held: Vec<LockKey>,
    pub(super) bytes: usize,
    /// One was taken since the state that is read: what it locks may have been written
    /// after that.
    pub(super) is_behind: bool,
}

impl Transaction {
    /// Locks `key` until the transaction ends, and returns its present value: other
    /// transactions that ask for its lock wait meanwhile. What is read from here on is the state
    /// of this moment. Transactions that lock every key that they read do not conflict with each
    /// other; writes without a transaction, and transactions that do not lock, do not
    /// wait, and conflict with it.
    ///
    /// # Errors
    /// As [`Transaction::get`]; `Busy` if others hold the lock for longer than `lock_timeout`;
    /// `Conflict` if waiting would be a deadlock, or if what was read before was
    /// written by others since: the transaction cannot commit any more then, run it again.
    pub fn get_for_update(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>> {
        self.lock_and_get(ks, key.as_ref(), LockMode::Exclusive)
    }

    /// As [`Transaction::get_for_update`], with a lock that others may share: nobody who
    /// locks the key writes it until the transaction ends.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn get_for_share(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>> {
        self.lock_and_get(ks, key.as_ref(), LockMode::Shared)
    }

    fn lock_and_get(
        &mut self,
        ks: &impl InKeyspace,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<Slice>> {
        let tree = self.tree(ks)?;
        self.lock(&tree, key, mode)?;
        if self.locks.is_behind {
            self.go_on_to_the_present()?;
            self.locks.is_behind = false;
        }
        self.get(ks, key)
    }

    /// Locks a key that is to be written, where the transaction is pessimistic.
    pub(super) fn lock_to_write(&mut self, ks: &impl InKeyspace, key: &[u8]) -> Result<()> {
        if self.options.mode == TransactionMode::Pessimistic {
            let tree = self.tree(ks)?;
            self.lock(&tree, key, LockMode::Exclusive)?;
        }
        Ok(())
    }

    fn lock(&mut self, tree: &Tree, key: &[u8], mode: LockMode) -> Result<()> {
        self.database.write_state.check()?;
        let at = LockKey { keyspace: tree.id, key: OrderedKey::new(key, &tree.reads.order) };
        let timeout = self.options.lock_timeout;
        let wait_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let key_locks = &self.database.pipeline.key_locks;
        match key_locks.acquire(self.locks.owner, &at, mode, wait_ns) {
            Ok(true) => {
                self.locks.bytes += at.memory_bytes();
                self.locks.held.push(at);
                self.locks.is_behind = true;
                self.check_memory(&self.reads.borrow())
            }
            Ok(false) => Ok(()),
            Err(Refused::TimedOut) => Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "the lock of key \"{}\" of keyspace `{}` was held by other transactions for the \
                     {timeout:?} of lock_timeout: end those, or wait longer",
                    key.escape_ascii(),
                    tree.name
                ),
            )),
            Err(Refused::Deadlock(circle)) => {
                self.is_lost = true;
                Err(deadlock(&tree.name, key, &circle))
            }
        }
    }

    /// Reads the present state from here on.
    ///
    /// # Errors
    /// `Conflict` if what was read before has changed since.
    fn go_on_to_the_present(&mut self) -> Result<()> {
        let Some(before) = self.recorded_from else { return Ok(()) };
        let recent = &self.database.pipeline.recent;
        let now = begin_recorded(&self.database)?;
        if now.seq() == before {
            recent.end(now.seq());
            return Ok(());
        }
        // All that `now` sees is recorded, so what is found unchanged is so in it.
        let unchanged = match recent.check(self.reads.get_mut()) {
            Verdict::Unchanged => Ok(()),
            Verdict::Changed { keyspace, key } => Err(self.conflict(keyspace, &key)),
            Verdict::Unknown => self.compare_with(&now),
        };
        if let Err(error) = unchanged {
            self.database.pipeline.recent.end(now.seq());
            self.is_lost |= error.kind() == ErrorKind::Conflict;
            return Err(error);
        }
        self.reads.get_mut().raise_to(now.seq());
        self.recorded_from = Some(now.seq());
        self.snapshot = now;
        self.database.pipeline.recent.end(before);
        Ok(())
    }
}

fn deadlock(keyspace: &str, key: &[u8], circle: &[(Owner, LockKey)]) -> Error {
    let step = |(owner, at): &(Owner, LockKey)| {
        format!("transaction {owner} waits for key \"{}\"", at.key.key.escape_ascii())
    };
    let steps: Vec<String> = circle.iter().map(step).collect();
    Error::new(
        ErrorKind::Conflict,
        format!(
            "waiting for the lock of key \"{}\" of keyspace `{keyspace}` would be a deadlock: {}, \
             which this transaction holds: run the transaction again",
            key.escape_ascii(),
            steps.join(", ")
        ),
    )
}
