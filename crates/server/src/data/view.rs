//! The reads and writes of one command.
//!
//! It reads the database as it is, under the locks of its keys, with the rows staged by the
//! client's commands just before it, and its own.
//!
//! Owns: rows by space. Never does: know the meaning of rows (`value.rs` does).

use super::element;
use super::head::Head;
use super::rows::Rows;
use super::space::Space;
use super::staged_writes::StagedWrites;
use super::store::Store;
use crate::clock;
use std::cell::Cell;
use std::ops::Bound;
use windrow::{Error, KEY_BYTES_MAX, Result, Slice};

/// The reads and writes of one command.
pub(crate) struct View<'a> {
    pub(crate) store: &'a Store,
    /// The rows that the commands before it have staged, and its own.
    staged: &'a mut StagedWrites,
    /// Keys of lists, sorted sets and streams that have something for waiting clients.
    fresh: Vec<Vec<u8>>,
    /// The moment by which deadlines are judged, once it was asked for.
    now_ms: Cell<Option<u64>>,
    /// Whether it is one of several that `EXEC` runs.
    pub(crate) is_within: bool,
    /// The bytes of rows that the command has gathered.
    gathered: Cell<usize>,
}

impl<'a> View<'a> {
    /// Makes the view of a command that begins now: after those that have `staged` rows.
    pub(crate) fn new(store: &'a Store, staged: &'a mut StagedWrites) -> View<'a> {
        staged.begin();
        View {
            store,
            staged,
            fresh: Vec::new(),
            now_ms: Cell::new(None),
            is_within: false,
            gathered: Cell::new(0),
        }
    }

    /// Judges deadlines by this moment.
    pub(crate) fn at(self, now_ms: u64) -> View<'a> {
        View { now_ms: Cell::new(Some(now_ms)), ..self }
    }

    /// Returns the moment by which deadlines are judged: the same for all of the command.
    pub(crate) fn now_ms(&self) -> u64 {
        let now_ms = self.now_ms.get().unwrap_or_else(clock::wall_ms);
        self.now_ms.set(Some(now_ms));
        now_ms
    }

    /// Returns whether a value's deadline has passed. Without one no clock is read.
    pub(crate) fn has_expired(&self, head: &Head) -> bool {
        head.deadline_ms.is_some() && head.is_expired(self.now_ms())
    }

    /// Returns the keys whose waiting clients must be woken, once all that was staged can be read.
    pub(crate) fn finish(self) -> Vec<Vec<u8>> {
        self.fresh
    }

    /// Notes a key that has got something: its waiting clients will be woken.
    pub(crate) fn note_fresh(&mut self, key: &[u8]) {
        if !self.store.waiting.is_empty() {
            self.fresh.push(key.to_vec());
        }
    }

    /// Returns whether the command writes more than one batch may have. It fails then, and its
    /// staged rows are incomplete.
    pub(crate) fn is_too_large(&self) -> bool {
        self.staged.own_bytes() > self.store.command_bytes_max
    }

    // ---- rows

    /// Returns the value of a row.
    ///
    /// # Errors
    /// Those of a read, here and below.
    pub(crate) fn row(&self, space: Space, key: &[u8]) -> Result<Option<Slice>> {
        match self.staged.get(space, key) {
            Some(row) => Ok(row.map(Slice::copy_from)),
            None => self.store.spaces.get(space).get(key),
        }
    }

    /// Gives `take` the value of a row.
    pub(crate) fn with_row<T>(
        &self,
        space: Space,
        key: &[u8],
        take: impl FnOnce(Option<&[u8]>) -> T,
    ) -> Result<T> {
        match self.staged.get(space, key) {
            Some(row) => Ok(take(row)),
            None => Ok(take(self.store.spaces.get(space).get(key)?.as_deref())),
        }
    }

    /// Returns whether a row exists.
    pub(crate) fn has_row(&self, space: Space, key: &[u8]) -> Result<bool> {
        self.with_row(space, key, |row| row.is_some())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// `InvalidArgument` for a key that is too long.
    pub(crate) fn put_row(
        &mut self,
        space: Space,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Result<()> {
        self.put(space, key.into(), value.into(), None)
    }

    /// Writes a row that commands before this one probably have staged.
    ///
    /// # Errors
    /// As [`View::put_row`].
    pub(crate) fn put_row_again(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.is_too_large() && self.staged.replace(space, key, value) {
            return Ok(());
        }
        self.put_row(space, key, value)
    }

    fn put(
        &mut self,
        space: Space,
        key: Vec<u8>,
        value: Vec<u8>,
        deadline_ms: Option<u64>,
    ) -> Result<()> {
        check_len(&key)?;
        if self.is_too_large() {
            return Err(self.too_large());
        }
        self.staged.put(space, key, value, deadline_ms);
        Ok(())
    }

    /// Writes a row that expires.
    ///
    /// # Errors
    /// As [`View::put_row`].
    pub(crate) fn put_row_until(
        &mut self,
        space: Space,
        key: &[u8],
        value: &[u8],
        deadline_ms: u64,
    ) -> Result<()> {
        self.put(space, key.to_vec(), value.to_vec(), Some(deadline_ms))
    }

    /// Deletes a row, which need not exist.
    pub(crate) fn delete_row(&mut self, space: Space, key: &[u8]) {
        // A row with a key that is too long was never written.
        if check_len(key).is_ok() && !self.is_too_large() {
            self.staged.delete(space, key.to_vec());
        }
    }

    /// Deletes all rows that begin with `prefix`.
    pub(crate) fn delete_rows(&mut self, space: Space, prefix: &[u8]) {
        self.staged.delete_prefix(space, prefix.to_vec());
    }

    /// Returns the rows of a range, from both ends, as they are now.
    pub(crate) fn rows(&self, space: Space, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>) -> Rows {
        let keyspace = self.store.spaces.get(space);
        Rows::new(keyspace, space, (from, to), self.staged)
    }

    /// Returns rows for a command that keeps all of them in memory: an error once they are too
    /// many.
    pub(crate) fn gather(&self, rows: Rows) -> Gather<'_> {
        Gather { rows, view: self }
    }

    /// Counts `bytes` more that the command keeps.
    ///
    /// # Errors
    /// More bytes than a command may keep.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        self.gathered.set(self.gathered.get() + bytes + 64);
        if self.gathered.get() > self.store.command_bytes_max {
            return Err(self.too_large());
        }
        Ok(())
    }

    /// Returns the error of a command that needs more memory than it may have.
    pub(crate) fn too_large(&self) -> Error {
        Error::invalid(format!(
            "the command gathers or writes more than {} bytes, what a batch may take (a quarter of memory_bytes): do it in parts",
            self.store.command_bytes_max
        ))
    }

    /// Returns all rows that begin with `prefix`.
    pub(crate) fn rows_of(&self, space: Space, prefix: &[u8]) -> Rows {
        let end = Bound::Excluded(element::end_of(prefix));
        self.rows(space, Bound::Included(prefix.to_vec()), end)
    }
}

fn check_len(key: &[u8]) -> Result<()> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a key, together with its field or member, has {} bytes of at most {KEY_BYTES_MAX}",
        key.len()
    )))
}

/// Rows that a command keeps.
pub(crate) struct Gather<'v> {
    rows: Rows,
    view: &'v View<'v>,
}

impl Gather<'_> {
    fn counted(&self, row: Result<(Slice, Slice)>) -> Result<(Slice, Slice)> {
        let (key, value) = row?;
        self.view.keep(key.len() + value.len())?;
        Ok((key, value))
    }
}

impl Iterator for Gather<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(self.counted(row))
    }
}

impl DoubleEndedIterator for Gather<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let row = self.rows.next_back()?;
        Some(self.counted(row))
    }
}
