//! What one command reads and writes.
//!
//! Outside of `MULTI` a command reads the database as it is, under the locks of its keys, and its
//! writes are one batch: all or none. Within `EXEC` the commands share a transaction of the
//! engine: each sees what those before it wrote, and all of it is one batch in the end.
//!
//! Owns: the two ways, and rows by space. Never does: know what rows mean (`value.rs`).

use super::element;
use super::space::Space;
use super::store::Store;
use crate::clock;
use std::collections::HashMap;
use std::ops::Bound;
use windrow::{Batch, Iter, Result, Slice, Transaction, TransactionIter, WriteSync};

/// What a command itself has written.
#[derive(Debug, Default)]
struct Own {
    rows: HashMap<(Space, Vec<u8>), Option<Vec<u8>>>,
    /// Beginnings of rows that were deleted, before any that `rows` has.
    gone: Vec<(Space, Vec<u8>)>,
}

/// The reads and writes of one command.
pub(crate) struct View<'a> {
    pub(crate) store: &'a Store,
    transaction: Option<&'a mut Transaction>,
    batch: Batch,
    /// What the batch has, for a command that may meet it again.
    own: Option<Own>,
    /// Keys of lists and sorted sets that have got elements.
    fresh: Vec<Vec<u8>>,
    /// The moment by which deadlines are judged.
    pub(crate) now_ms: u64,
    has_written: bool,
}

impl<'a> View<'a> {
    /// Of a command by itself.
    pub(crate) fn new(store: &'a Store, batch: Batch) -> View<'a> {
        debug_assert!(batch.is_empty(), "a batch that was not written");
        let now_ms = clock::wall_ms();
        View {
            store,
            transaction: None,
            batch,
            own: None,
            fresh: Vec::new(),
            now_ms,
            has_written: false,
        }
    }

    /// Of a command within `EXEC`.
    pub(crate) fn within(
        store: &'a Store,
        transaction: &'a mut Transaction,
        now_ms: u64,
    ) -> View<'a> {
        View {
            store,
            transaction: Some(transaction),
            batch: Batch::new(),
            own: None,
            fresh: Vec::new(),
            now_ms,
            has_written: false,
        }
    }

    /// From here on reads of single rows see what the command itself has written. (Ranges do not.)
    pub(crate) fn see_own_rows(&mut self) {
        if self.transaction.is_none() {
            self.own.get_or_insert_default();
        }
    }

    /// Writes what the command wrote, and gives back the batch; whether there was anything.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn commit(mut self) -> (Result<bool>, Batch) {
        let mut written = Ok(self.has_written);
        if !self.batch.is_empty() {
            let result = self.store.db.write_reusing(&mut self.batch, WriteSync::No);
            written = result.map(|_| true);
        }
        self.batch.clear();
        (written, self.batch)
    }

    /// Forgets what the command wrote, and gives back the batch.
    pub(crate) fn discard(mut self) -> Batch {
        self.batch.clear();
        self.batch
    }

    /// Whether the command is one of several that `EXEC` runs.
    pub(crate) fn is_within(&self) -> bool {
        self.transaction.is_some()
    }

    /// A list or a sorted set has got elements: whoever waits for some is to be woken.
    pub(crate) fn note_fresh(&mut self, key: &[u8]) {
        if !self.store.waiting.is_empty() {
            self.fresh.push(key.to_vec());
        }
    }

    /// The keys for which somebody is to be woken, once what was written can be read.
    pub(crate) fn take_fresh(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.fresh)
    }

    /// Whether the command has written anything.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    // ---- rows

    /// The value of a row.
    ///
    /// # Errors
    /// Those of a read, here and below.
    pub(crate) fn row(&self, space: Space, key: &[u8]) -> Result<Option<Slice>> {
        if let Some(own) = &self.own {
            if let Some(row) = own.rows.get(&(space, key.to_vec())) {
                return Ok(row.as_deref().map(Slice::copy_from));
            }
            if own.gone.iter().any(|(of, prefix)| *of == space && key.starts_with(prefix)) {
                return Ok(None);
            }
        }
        let keyspace = self.store.spaces.get(space);
        match &self.transaction {
            Some(transaction) => transaction.get(keyspace, key),
            None => keyspace.get(key),
        }
    }

    /// Whether a row is there.
    pub(crate) fn has_row(&self, space: Space, key: &[u8]) -> Result<bool> {
        Ok(self.row(space, key)?.is_some())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// Those of a write, here and below: at the latest from [`View::commit`].
    pub(crate) fn put_row(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        self.has_written = true;
        self.note(space, key, Some(value));
        let keyspace = self.store.spaces.get(space);
        match &mut self.transaction {
            Some(transaction) => transaction.put(keyspace, key, value),
            None => {
                self.batch.put(keyspace, key, value);
                Ok(())
            }
        }
    }

    /// Writes a row that expires.
    pub(crate) fn put_row_until(
        &mut self,
        space: Space,
        key: &[u8],
        value: &[u8],
        deadline_ms: u64,
    ) -> Result<()> {
        self.has_written = true;
        self.note(space, key, Some(value));
        let (keyspace, at) = (self.store.spaces.get(space), clock::at_ms(deadline_ms));
        match &mut self.transaction {
            Some(transaction) => transaction.put_until(keyspace, key, value, at),
            None => {
                self.batch.put_until(keyspace, key, value, at);
                Ok(())
            }
        }
    }

    /// Deletes a row, which need not be there.
    pub(crate) fn delete_row(&mut self, space: Space, key: &[u8]) -> Result<()> {
        self.has_written = true;
        self.note(space, key, None);
        let keyspace = self.store.spaces.get(space);
        match &mut self.transaction {
            Some(transaction) => transaction.delete(keyspace, key),
            None => {
                self.batch.delete(keyspace, key);
                Ok(())
            }
        }
    }

    /// Deletes all rows that begin with `prefix`.
    pub(crate) fn delete_rows(&mut self, space: Space, prefix: &[u8]) -> Result<()> {
        self.has_written = true;
        if let Some(own) = &mut self.own {
            own.rows.retain(|(of, key), _| *of != space || !key.starts_with(prefix));
            own.gone.push((space, prefix.to_vec()));
        }
        let (keyspace, end) = (self.store.spaces.get(space), element::end_of(prefix));
        match &mut self.transaction {
            Some(transaction) => transaction.delete_range(keyspace, prefix, end),
            None => {
                self.batch.delete_range(keyspace, prefix, end);
                Ok(())
            }
        }
    }

    /// Deletes all rows there are.
    pub(crate) fn delete_all_rows(&mut self, space: Space) -> Result<()> {
        self.has_written = true;
        let keyspace = self.store.spaces.get(space);
        match &mut self.transaction {
            Some(transaction) => transaction.delete_prefix(keyspace, b""),
            None => {
                self.batch.delete_prefix(keyspace, b"");
                Ok(())
            }
        }
    }

    fn note(&mut self, space: Space, key: &[u8], value: Option<&[u8]>) {
        if let Some(own) = &mut self.own {
            own.rows.insert((space, key.to_vec()), value.map(<[u8]>::to_vec));
        }
    }

    /// The rows of a range, from both ends.
    pub(crate) fn rows(
        &self,
        space: Space,
        from: Bound<Vec<u8>>,
        to: Bound<Vec<u8>>,
    ) -> Result<Rows<'_>> {
        let keyspace = self.store.spaces.get(space);
        Ok(match &self.transaction {
            Some(transaction) => {
                Rows::Transaction(Box::new(transaction.range(keyspace, (from, to))?))
            }
            None => Rows::Database(keyspace.range((from, to))),
        })
    }

    /// All rows that begin with `prefix`.
    pub(crate) fn rows_of(&self, space: Space, prefix: &[u8]) -> Result<Rows<'_>> {
        self.rows(space, Bound::Included(prefix.to_vec()), Bound::Excluded(element::end_of(prefix)))
    }
}

/// Rows in their order, from either end.
pub(crate) enum Rows<'a> {
    Database(Iter),
    Transaction(Box<TransactionIter<'a>>),
}

impl Iterator for Rows<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Rows::Database(rows) => rows.next(),
            Rows::Transaction(rows) => rows.next(),
        }
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Rows::Database(rows) => rows.next_back(),
            Rows::Transaction(rows) => rows.next_back(),
        }
    }
}
