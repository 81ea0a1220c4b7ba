//! Transactions: reads and writes over all keyspaces that take effect as if
//! they happened at one moment, or not at all.
//!
//! Optimistic: a transaction reads a snapshot, with its own writes over it, and keeps the set of
//! its reads. Its commit is admitted if nothing in that set was written since
//! (`write/recent_writes.rs`). Else it is a `Conflict`, and nothing of it is written. So a
//! transaction that commits is equal to one that ran alone at the moment of its commit. The check
//! sees writes without a transaction as well.
//!
//! Where a key is locked (`operations.rs`), others that lock it wait instead of conflicting;
//! commits are decided in the same way. `conditional_writes.rs` has the transactions of a single
//! step, which are not registered (`light_transaction.rs`).
//!
//! Owns: the writes (`own_writes.rs`, and the batch that they become), and the set of reads. Never
//! does: commit what would not be serialisable.

mod attempt;
mod conditional_writes;
mod light_transaction;
mod locks;
mod operations;
mod options;
pub(crate) mod own_writes;
mod retry;
mod scan;
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "plain threads wait for each other")]
mod tests;

pub use conditional_writes::Conditions;
pub use options::{TransactionMode, TransactionOptions};
pub use scan::TransactionIter;

use crate::keyspace::Keyspace;
use crate::snapshot::Snapshot;
use locks::TransactionLocks;
use own_writes::{Own, OwnWrites};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, KeyspaceId, Kind, Result, SeqNo};
use windrow_read::options::WriteSync;
use windrow_read::read::{is_there, split_expiry};
use windrow_read::slice::Slice;
use windrow_recover::handle::Handle;
use windrow_store::tree::Tree;
use windrow_store::write::batch::{Batch, BatchMark, InKeyspace};
use windrow_store::write::read_set::{ReadRange, ReadSet};
use windrow_store::write::recent_writes::Verdict;

/// The part of the memory budget that a transaction may keep for its reads: one byte in eight.
const READS_PART: u64 = 8;

/// Reads and writes that take effect together, as if at one moment, or not at all.
///
/// Made by [`crate::Db::transaction`]. Reads see the database as it was when the transaction began,
/// and its own writes; nobody else sees those before [`Transaction::commit`]. Dropping it forgets
/// them. Serialisable: a transaction that commits read nothing that was written by others between
/// its beginning and its commit. (Expiry is judged at its beginning.) A keyspace is named as in a
/// [`Batch`]: by a [`crate::Db`] or a [`Keyspace`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// # db.put("alice", "10")?;
/// # db.put("bob", "10")?;
/// let amount = |value: Option<windrow::Slice>| -> i64 {
///     value.and_then(|v| std::str::from_utf8(&v).ok()?.parse().ok()).unwrap_or(0)
/// };
/// db.transact(|tx| {
///     let (alice, bob) = (amount(tx.get(&db, "alice")?), amount(tx.get(&db, "bob")?));
///     tx.put(&db, "alice", (alice - 3).to_string())?;
///     tx.put(&db, "bob", (bob + 3).to_string())
/// })?;
/// assert_eq!(db.get("bob")?.as_deref(), Some(&b"13"[..]));
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Transaction {
    database: Handle,
    snapshot: Snapshot,
    /// The sequence number at which it counts as a reader of the record of writes; `None` where
    /// nothing can be written.
    recorded_from: Option<SeqNo>,
    batch: Batch,
    own: BTreeMap<KeyspaceId, OwnWrites>,
    reads: RefCell<ReadSet>,
    options: TransactionOptions,
    locks: TransactionLocks,
    /// Whether its reads have changed since, or it met a deadlock: it cannot commit.
    is_lost: bool,
}

/// A moment of a transaction that it can return to: see [`Transaction::savepoint`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// let mut tx = db.transaction()?;
/// tx.put(&db, "a", "1")?;
/// let before = tx.savepoint();
/// tx.put(&db, "a", "2")?;
/// tx.put(&db, "b", "2")?;
/// tx.rollback_to(&before)?;
/// tx.commit()?;
/// assert_eq!(db.get("a")?.as_deref(), Some(&b"1"[..]));
/// assert!(!db.contains_key("b")?);
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Savepoint(BatchMark);

impl Transaction {
    /// Begins a transaction.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn begin(database: &Handle, options: TransactionOptions) -> Result<Transaction> {
        database.write_state.check_read()?;
        let (snapshot, recorded_from) = match database.write_state.check() {
            Ok(()) => {
                let snapshot = begin_recorded(database)?;
                let seq = snapshot.seq();
                (snapshot, Some(seq))
            }
            // It may read, and its commit reports why nothing can be written.
            Err(_) => (Snapshot::take(database), None),
        };
        Ok(Transaction {
            database: database.clone(),
            snapshot,
            recorded_from,
            batch: Batch::new(),
            own: BTreeMap::new(),
            reads: RefCell::new(ReadSet::within(database.settings.memory_bytes / READS_PART)),
            options,
            locks: TransactionLocks {
                owner: database.pipeline.key_locks.new_owner(),
                held: Vec::new(),
                is_behind: false,
            },
            is_lost: false,
        })
    }

    fn tree(&self, ks: &impl InKeyspace) -> Result<Arc<Tree>> {
        if ks.database_id() != self.database.instance_id {
            return Err(Error::invalid("the transaction is of another open database"));
        }
        self.database.tree(ks.keyspace_id())
    }

    fn keyspace(&self, tree: &Arc<Tree>) -> Keyspace {
        Keyspace::new(self.database.clone(), tree.clone())
    }

    // ---- reading

    /// The value of `key`: the transaction's own write, or the value when the transaction began.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; `InvalidArgument` if the keys that the transaction has read and
    /// locked, including this one, take more than an eighth of `memory_bytes`. It may go on without
    /// this read.
    pub fn get(&self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let tree = self.tree(ks)?;
        self.value(&tree, key.as_ref(), self.own_of(tree.id, key.as_ref()))
    }

    /// Whether `key` is there, even with a value that the merge operator does not accept.
    ///
    /// # Errors
    /// As [`Transaction::get`], but for `MergeRefused`.
    pub fn contains_key(&self, ks: &impl InKeyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        is_there(self.get(ks, key))
    }

    fn own_of(&self, id: KeyspaceId, key: &[u8]) -> Option<Own> {
        self.own.get(&id)?.get(key)
    }

    /// The value of a key, given the transaction's own writes to it.
    fn value(&self, tree: &Arc<Tree>, key: &[u8], own: Option<Own>) -> Result<Option<Slice>> {
        let own = own.unwrap_or_default().at(self.snapshot.inner.now_ms);
        own.value((&tree.reads, key), || {
            self.note_key(tree, key)?;
            self.keyspace(tree).get_at(&self.snapshot, key)
        })
    }

    fn note_key(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        let mut reads = self.reads.borrow_mut();
        reads.key(tree.id, &tree.reads.order, key, self.snapshot.seq())
    }

    // ---- going back

    /// Returns the present moment, before the next write: [`Transaction::rollback_to`] forgets the
    /// writes since. Cheap.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.batch.mark())
    }

    /// Forgets the writes since a savepoint of this transaction. Its reads still count, and locks
    /// are kept.
    ///
    /// # Errors
    /// `InvalidArgument` if it was rolled back to an earlier savepoint since.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        if !self.batch.holds(&savepoint.0) {
            return Err(Error::invalid(
                "the savepoint is gone: the transaction went back to one before it",
            ));
        }
        self.batch.truncate_to(savepoint.0.clone());
        let orders: BTreeMap<KeyspaceId, _> =
            self.own.iter().map(|(id, own)| (*id, own.order().clone())).collect();
        self.own.clear();
        let all = Batch::new().mark();
        note_writes(&mut self.own, &self.batch, &all, |id| orders[&id].clone())
    }

    /// Forgets all writes. Its reads still count.
    pub fn rollback(&mut self) {
        self.batch.clear();
        self.own.clear();
    }

    /// The number of operations that a commit would write.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    // ---- the end

    /// Writes the operations of the transaction, if others wrote nothing that it read since, as
    /// durably as its options say. A transaction that wrote nothing never conflicts, unless a call
    /// of it returned `Conflict`. A lock that was not free in time (`Busy`) is no conflict: the
    /// write of that call is not made, the others are.
    ///
    /// # Errors
    /// `Conflict`, naming a key: nothing is written; run it again. As [`crate::Db::write`]: after
    /// `OutcomeUnknown` it may have been committed.
    pub fn commit(self) -> Result<SeqNo> {
        let sync = self.options.sync;
        self.commit_with(sync)
    }

    /// As [`Transaction::commit`]; returns once it is on the device if `sync` asks for that.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_with(mut self, sync: WriteSync) -> Result<SeqNo> {
        if self.is_lost {
            return Err(Error::new(
                ErrorKind::Conflict,
                "what the transaction read has changed since, or waiting for a lock would have been \
                 a deadlock: run it again",
            ));
        }
        let pipeline = &self.database.pipeline;
        if self.batch.is_empty() && !sync.is_yes() {
            return Ok(self.snapshot.seq());
        }
        if self.batch.is_empty() {
            return pipeline.write_batch(&mut self.batch, sync);
        }
        if self.recorded_from.is_none() {
            self.database.write_state.check()?;
            return Err(Error::new(
                ErrorKind::Conflict,
                "writing was off when the transaction began: run it again",
            ));
        }
        let recent = &pipeline.observers.recent;
        let mut known: Option<Snapshot> = None;
        let written = loop {
            let reads = self.reads.get_mut();
            let written = pipeline.write_batch_after(&mut self.batch, sync, Some(reads));
            match written {
                Err(error) if error.kind() == ErrorKind::Conflict && !recent.knows(reads) => {
                    // It was open for long, and there were many writes meanwhile.
                    let now = begin_recorded(&self.database)?;
                    if let Some(before) = known.replace(now.clone()) {
                        recent.end(before.seq());
                    }
                    if let Err(error) = self.compare_with(&now) {
                        break Err(error);
                    }
                    self.reads.get_mut().raise_to(now.seq());
                }
                written => break written,
            }
        };
        if let Some(known) = known {
            recent.end(known.seq());
        }
        written
    }

    fn conflict(&self, keyspace: KeyspaceId, key: &[u8]) -> Error {
        self.database.pipeline.conflict(Verdict::Changed { keyspace, key: key.to_vec() })
    }

    /// Compares all reads with a later state.
    ///
    /// # Errors
    /// `Conflict` where it differs.
    fn compare_with(&self, now: &Snapshot) -> Result<()> {
        let reads = self.reads.borrow();
        for (&id, reads) in &reads.spaces {
            let keyspace = self.keyspace(&self.database.tree(id)?);
            for key in reads.keys.keys() {
                let then = keyspace.get_at(&self.snapshot, &key.key)?;
                if then.as_deref() != keyspace.get_at(now, &key.key)?.as_deref() {
                    return Err(self.conflict(id, &key.key));
                }
            }
            for range in &reads.ranges {
                if let Some(key) = differing(&keyspace, (&self.snapshot, now), range)? {
                    return Err(self.conflict(id, &key));
                }
            }
        }
        Ok(())
    }
}

/// The first key of a range whose value differs between two states.
fn differing(
    keyspace: &Keyspace,
    (then, now): (&Snapshot, &Snapshot),
    range: &ReadRange,
) -> Result<Option<Vec<u8>>> {
    let bounds = || (range.lower.clone(), range.upper.clone());
    let mut then = keyspace.range_at(then, bounds());
    let mut now = keyspace.range_at(now, bounds());
    loop {
        match (then.next().transpose()?, now.next().transpose()?) {
            (None, None) => return Ok(None),
            (Some(a), Some(b)) if a == b => {}
            (Some((key, _)), _) | (_, Some((key, _))) => return Ok(Some(key.to_vec())),
        }
    }
}

/// A snapshot since which all writes are recorded, as a reader of the record.
fn begin_recorded(database: &Handle) -> Result<Snapshot> {
    let recent = &database.pipeline.observers.recent;
    loop {
        let snapshot = Snapshot::take(database);
        match recent.begin(snapshot.seq()) {
            Ok(()) => return Ok(snapshot),
            Err(known_from) => database.pipeline.record_writes(known_from)?,
        }
    }
}

/// Adds the operations after `mark` of a batch to the transaction's own writes.
fn note_writes(
    own: &mut BTreeMap<KeyspaceId, OwnWrites>,
    batch: &Batch,
    mark: &BatchMark,
    order_of: impl Fn(KeyspaceId) -> windrow_base::KeyOrder,
) -> Result<()> {
    for op in batch.buf.ops_from(mark.buf) {
        let space =
            own.entry(op.keyspace).or_insert_with(|| OwnWrites::new(&order_of(op.keyspace)));
        let (value, expiry_ms) = match op.kind {
            Kind::PutExpiry | Kind::MergeExpiry => {
                let (expiry_ms, value) = split_expiry(op.value)?;
                (value, Some(expiry_ms))
            }
            _ => (op.value, None),
        };
        space.note(op.kind, op.key, value, expiry_ms);
    }
    Ok(())
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.database.write_state.is_of_this_process() {
            return;
        }
        let pipeline = &self.database.pipeline;
        if let Some(seq) = self.recorded_from {
            pipeline.observers.recent.end(seq);
        }
        // A transaction that began while writing was off has locks as well, if writing was resumed
        // since.
        pipeline.key_locks.release(self.locks.owner, &self.locks.held);
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction(reads at {}, {} operations)", self.snapshot.seq(), self.len())
    }
}
