//! The operations of a transaction beyond a plain read: it walks ranges, writes, and locks keys, so
//! that others wait for it instead of conflicting.
//!
//! A key that was waited for has been written, most likely. With its lock a transaction goes on to
//! the present state, if nothing that it read before has changed.
//!
//! Owns: the steps. Never does: decide who gets a lock (`write/key_locks.rs`), or which transaction
//! commits.

use super::scan::TransactionIter;
use super::{Transaction, TransactionMode, begin_recorded, note_writes};
use crate::key_range::{self, KeyRange};
use std::ops::Bound;
use std::time::{Duration, SystemTime};
use windrow_base::{Error, ErrorKind, Result};
use windrow_read::slice::Slice;
use windrow_store::tree::Tree;
use windrow_store::write::batch::{Batch, InKeyspace};
use windrow_store::write::key_locks::{KeyLockMode, LockKey, LockOwner, LockRefusal};
use windrow_store::write::ordered_key::OrderedKey;
use windrow_store::write::recent_writes::Verdict;

impl Transaction {
    // ---- ranges

    /// The entries of a keyspace, in key order from either end.
    ///
    /// # Errors
    /// As [`Transaction::range`].
    pub fn iter(&self, ks: &impl InKeyspace) -> Result<TransactionIter<'_>> {
        self.range(ks, ..)
    }

    /// The entries of a range of keys, including the transaction's own writes. The part that the
    /// iterator has passed, from either end, counts as read.
    ///
    /// # Errors
    /// `Closed`; `InvalidArgument` for a keyspace of another database.
    pub fn range(&self, ks: &impl InKeyspace, range: impl KeyRange) -> Result<TransactionIter<'_>> {
        TransactionIter::new(self, self.tree(ks)?, key_range::owned(&range))
    }

    /// The entries whose keys start with `prefix`, of a keyspace in bytewise order.
    ///
    /// # Errors
    /// As [`Transaction::range`]; `NotSupported` for a keyspace of another order.
    pub fn prefix(
        &self,
        ks: &impl InKeyspace,
        prefix: impl AsRef<[u8]>,
    ) -> Result<TransactionIter<'_>> {
        let tree = self.tree(ks)?;
        tree.check_prefix()?;
        let prefix = prefix.as_ref();
        let end = windrow_base::key::prefix_end(prefix);
        let range =
            (Bound::Included(prefix.to_vec()), end.map_or(Bound::Unbounded, Bound::Excluded));
        TransactionIter::new(self, tree, range)
    }

    // ---- writing

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `InvalidArgument` for a broken limit, here and below: of keys and values, and of a batch
    /// ([`crate::Db::write`]), which holds all writes of the transaction. Its earlier writes stay
    /// as they are. `Closed`; of a pessimistic transaction as [`Transaction::get_for_update`].
    pub fn put(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write_key(ks, key.as_ref(), |batch| batch.put(ks, &key, value))
    }

    /// Sets `key` to `value` until `ttl` from now has passed.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_with_ttl(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.write_key(ks, key.as_ref(), |batch| batch.put_with_ttl(ks, &key, value, ttl))
    }

    /// Sets `key` to `value` until the clock shows `at`: see [`Batch::put_until`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_until(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: SystemTime,
    ) -> Result<()> {
        self.write_key(ks, key.as_ref(), |batch| batch.put_until(ks, &key, value, at))
    }

    /// Removes `key`, which need not exist.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_key(ks, key.as_ref(), |batch| batch.delete(ks, &key))
    }

    /// Adds an operand for the keyspace's merge operator. It reads nothing, so two transactions
    /// that merge into a key do not conflict.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn merge(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write_key(ks, key.as_ref(), |batch| batch.merge(ks, &key, operand))
    }

    /// Adds an operand for the merge operator until `ttl` from now has passed: see
    /// [`Batch::merge_with_ttl`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn merge_with_ttl(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.write_key(ks, key.as_ref(), |batch| batch.merge_with_ttl(ks, &key, operand, ttl))
    }

    /// Removes every key in `from..to` (the end is exclusive). It locks nothing.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_range(
        &mut self,
        ks: &impl InKeyspace,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write(ks, |batch| batch.delete_range(ks, from, to))
    }

    /// Removes every key that starts with `prefix`, of a keyspace in bytewise order: see
    /// [`Batch::delete_prefix`]. It locks nothing.
    ///
    /// # Errors
    /// As [`Transaction::put`]; `NotSupported` for a keyspace of another order.
    pub fn delete_prefix(&mut self, ks: &impl InKeyspace, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.tree(ks)?.check_prefix()?;
        self.write(ks, |batch| batch.delete_prefix(ks, prefix))
    }

    /// Adds a write of one key, which is locked before where the transaction is pessimistic.
    fn write_key(
        &mut self,
        ks: &impl InKeyspace,
        key: &[u8],
        push: impl FnOnce(&mut Batch),
    ) -> Result<()> {
        if self.options.mode == TransactionMode::Pessimistic {
            let tree = self.tree(ks)?;
            self.lock(&tree, key, KeyLockMode::Exclusive)?;
        }
        self.write(ks, push)
    }

    fn write(&mut self, ks: &impl InKeyspace, push: impl FnOnce(&mut Batch)) -> Result<()> {
        let tree = self.tree(ks)?;
        let mark = self.batch.mark();
        push(&mut self.batch);
        let pushed = self.batch.error.take().map_or(Ok(()), Err);
        // Here and not at the commit, since its memory is taken now.
        let fits = pushed.and_then(|()| self.database.pipeline.check_size(&self.batch));
        if let Err(error) = fits {
            self.batch.truncate_to(mark);
            return Err(error);
        }
        note_writes(&mut self.own, &self.batch, &mark, |_| tree.reads.order.clone())
    }

    // ---- locks

    /// Locks `key` until the transaction ends, and returns its present value. Other transactions
    /// that ask for its lock wait meanwhile. Later reads see the state of this moment. Transactions
    /// that lock every key that they read do not conflict with each other. Writes without a
    /// transaction, and transactions that do not lock, do not wait, and conflict with it.
    ///
    /// # Errors
    /// As [`Transaction::get`]; `Busy` if others hold the lock for longer than `lock_timeout`: the
    /// transaction is as it was before the call, may try again, and may commit without the lock;
    /// `Conflict` if waiting would be a deadlock, or if others wrote since what it read before: it
    /// cannot commit any more then, run it again.
    pub fn get_for_update(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>> {
        self.lock_and_get(ks, key.as_ref(), KeyLockMode::Exclusive)
    }

    /// As [`Transaction::get_for_update`], with a lock that others may share: no transaction that
    /// locks the key writes it until this one ends.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn get_for_share(
        &mut self,
        ks: &impl InKeyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Slice>> {
        self.lock_and_get(ks, key.as_ref(), KeyLockMode::Shared)
    }

    fn lock_and_get(
        &mut self,
        ks: &impl InKeyspace,
        key: &[u8],
        mode: KeyLockMode,
    ) -> Result<Option<Slice>> {
        let tree = self.tree(ks)?;
        self.lock(&tree, key, mode)?;
        if self.locks.is_behind {
            self.go_on_to_the_present()?;
            self.locks.is_behind = false;
        }
        self.get(ks, key)
    }

    fn lock(&mut self, tree: &Tree, key: &[u8], mode: KeyLockMode) -> Result<()> {
        self.database.write_state.check()?;
        let at = LockKey { keyspace: tree.id, key: OrderedKey::new(key, &tree.reads.order) };
        let timeout = self.options.lock_timeout;
        let wait_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let key_locks = &self.database.pipeline.key_locks;
        match key_locks.acquire(self.locks.owner, &at, mode, wait_ns) {
            Ok(true) => {
                if let Err(error) = self.reads.get_mut().grow(at.memory_bytes()) {
                    key_locks.release(self.locks.owner, &[at]);
                    return Err(error);
                }
                self.locks.held.push(at);
                self.locks.is_behind = true;
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(LockRefusal::TimedOut) => Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "the lock of key \"{}\" of keyspace `{}` was held by other transactions for the \
                     {timeout:?} of lock_timeout: end those, or wait longer",
                    key.escape_ascii(),
                    tree.name
                ),
            )),
            Err(LockRefusal::Deadlock(circle)) => {
                self.is_lost = true;
                Err(deadlock(&tree.name, key, &circle))
            }
        }
    }

    /// Reads the present state from here on.
    ///
    /// # Errors
    /// `Conflict` if an earlier read has changed since.
    fn go_on_to_the_present(&mut self) -> Result<()> {
        let Some(before) = self.recorded_from else { return Ok(()) };
        let recent = &self.database.pipeline.observers.recent;
        let now = begin_recorded(&self.database)?;
        if now.seq() == before {
            recent.end(now.seq());
            return Ok(());
        }
        // All writes that `now` sees are recorded, so reads that are found unchanged are unchanged
        // in it.
        let unchanged = match recent.check(self.reads.get_mut()) {
            Verdict::Unchanged => Ok(()),
            Verdict::Unknown => self.compare_with(&now),
            changed => Err(self.database.pipeline.conflict(changed)),
        };
        if let Err(error) = unchanged {
            self.database.pipeline.observers.recent.end(now.seq());
            self.is_lost |= error.kind() == ErrorKind::Conflict;
            return Err(error);
        }
        self.reads.get_mut().raise_to(now.seq());
        self.recorded_from = Some(now.seq());
        self.snapshot = now;
        self.database.pipeline.observers.recent.end(before);
        Ok(())
    }
}

fn deadlock(keyspace: &str, key: &[u8], circle: &[(LockOwner, LockKey)]) -> Error {
    let step = |(owner, at): &(LockOwner, LockKey)| {
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
