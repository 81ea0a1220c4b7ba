//! Walks the entries of a sorted run, opening its tables as it reaches them.
//!
//! Owns: one table iterator at a time. Never does: open a table whose bounds cannot contain the
//! target.

use super::ReadOwner;
use super::readahead::PendingRead;
use super::table_iter::{TableIter, TableIterOptions, Target};
use super::view::{SortedRun, VersionFile};
use crate::cache::BlockKey;
use crate::slice::Slice;
use std::sync::Arc;
use windrow_base::Result;
use windrow_base::key;

/// An iterator over the point entries of a sorted run.
pub struct LevelIter {
    run: Arc<SortedRun>,
    owner: Arc<ReadOwner>,
    options: Arc<TableIterOptions>,
    /// Index of the file at hand; `files.len()` if there is none.
    at: usize,
    /// Over the file at hand. Kept when the iterator runs out, for the next seek.
    iter: Option<Box<TableIter>>,
    /// Whether the file at hand was reached by walking, not by the target's key.
    stepped: bool,
    is_forward: bool,
    valid: bool,
    /// Bytes that a scan presumably takes from the run.
    expected_bytes: u64,
    /// The cached blocks of the files that were left, if those are noted.
    cached: Vec<BlockKey>,
}

impl LevelIter {
    /// An iterator at no entry yet. Opens nothing.
    pub fn new(
        run: Arc<SortedRun>,
        owner: Arc<ReadOwner>,
        options: impl Into<Arc<TableIterOptions>>,
    ) -> LevelIter {
        LevelIter {
            at: run.files.len(),
            run,
            owner,
            options: options.into(),
            iter: None,
            stepped: false,
            is_forward: true,
            valid: false,
            expected_bytes: 0,
            cached: Vec::new(),
        }
    }

    /// For scans that presumably take `bytes` from the run.
    pub(crate) fn expecting(self, bytes: u64) -> LevelIter {
        LevelIter { expected_bytes: bytes, ..self }
    }

    /// Starts a positioning; `step` goes on with it.
    ///
    /// # Errors
    /// As [`crate::cache::TableCache::open`].
    pub fn begin(&mut self, target: Target<'_>) -> Result<()> {
        self.valid = false;
        self.stepped = false;
        self.is_forward = target.is_forward();
        let last = self.run.files.len().checked_sub(1);
        let start = match target {
            Target::First => Some(0),
            Target::Last => last,
            Target::AtOrAfter(internal) => Some(self.run.find(key::split(internal).0)),
            Target::Before(internal) => {
                let (user_key, _) = key::split(internal);
                let found = self.run.find(user_key);
                let holds = |at: &VersionFile| at.covers(&self.owner.order, user_key);
                if self.run.files.get(found).is_some_and(holds) {
                    Some(found)
                } else {
                    // All keys of the file before are before the key.
                    self.stepped = true;
                    found.checked_sub(1)
                }
            }
        };
        match start.and_then(|start| self.nearest_with_points(start)) {
            Some(start) => {
                self.stepped |= start.is_moved;
                self.enter(start.index, target)
            }
            None => {
                self.leave();
                Ok(())
            }
        }
    }

    /// Returns the first file from `start` on, in the direction at hand, that has point entries
    /// within the bounds.
    fn nearest_with_points(&self, start: usize) -> Option<Nearest> {
        let mut index = start;
        loop {
            let file = &self.run.files.get(index)?.file;
            let order = &self.owner.order;
            let bounds = &self.options.bounds;
            let is_beyond = match self.is_forward {
                true => bounds.is_above(order, &file.smallest),
                false => bounds.is_below(order, &file.largest),
            };
            if is_beyond {
                return None;
            }
            if file.point_bounds.is_some() {
                return Some(Nearest { index, is_moved: index != start });
            }
            index = if self.is_forward { index + 1 } else { index.checked_sub(1)? };
        }
    }

    fn enter(&mut self, index: usize, target: Target<'_>) -> Result<()> {
        if self.at != index || self.iter.is_none() {
            self.leave();
            let handle = &self.run.files[index].table;
            let options = Arc::clone(&self.options);
            let iter = TableIter::new(handle, Arc::clone(&self.owner), options)?;
            self.iter = Some(Box::new(iter.expecting(self.expected_bytes)));
            self.at = index;
        }
        if let Some(iter) = &mut self.iter {
            iter.begin(if self.stepped { target.edge() } else { target });
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.at = self.run.files.len();
        if let Some(mut iter) = self.iter.take() {
            self.cached.append(&mut iter.take_cached());
        }
    }

    /// Hands over the names of the cached blocks that it met, for iterators that note them.
    pub(crate) fn take_cached(&mut self) -> Vec<BlockKey> {
        let mut cached = std::mem::take(&mut self.cached);
        if let Some(iter) = &mut self.iter {
            cached.append(&mut iter.take_cached());
        }
        cached
    }

    /// Goes on with a positioning, as [`TableIter::step`].
    ///
    /// # Errors
    /// `Corruption` naming file and offset, `Io` from opening a table.
    pub fn step(&mut self, target: Target<'_>) -> Result<Option<PendingRead>> {
        loop {
            let Some(iter) = &mut self.iter else {
                return Ok(None);
            };
            if let Some(read) = iter.step(if self.stepped { target.edge() } else { target })? {
                return Ok(Some(read));
            }
            if iter.valid() {
                self.valid = true;
                return Ok(None);
            }
            if !self.enter_neighbour()? {
                return Ok(None);
            }
        }
    }

    /// Begins at the near edge of the next file in the direction at hand.
    fn enter_neighbour(&mut self) -> Result<bool> {
        self.stepped = true;
        let next = if self.is_forward { Some(self.at + 1) } else { self.at.checked_sub(1) };
        match next.and_then(|next| self.nearest_with_points(next)) {
            Some(next) => {
                self.enter(next.index, if self.is_forward { Target::First } else { Target::Last })?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// As [`TableIter::seek_in_block`]. Only while valid.
    ///
    /// # Errors
    /// `Corruption` naming file and offset of a damaged block.
    pub(crate) fn seek_in_block(&mut self, internal: &[u8]) -> Result<bool> {
        self.valid = false;
        if let Some(iter) = &mut self.iter {
            self.valid = iter.seek_in_block(internal)?;
        }
        self.is_forward |= self.valid;
        Ok(self.valid)
    }

    /// Supplies the bytes of the read that `step` asked for.
    ///
    /// # Errors
    /// The error of the read.
    pub(crate) fn supply(&mut self, read: PendingRead) -> Result<()> {
        match &mut self.iter {
            Some(iter) => iter.supply(read),
            None => Ok(()),
        }
    }

    fn run(&mut self, target: Target<'_>) -> Result<()> {
        while let Some(mut read) = self.step(target)? {
            read.run();
            self.supply(read)?;
        }
        Ok(())
    }

    /// Positions the iterator.
    ///
    /// # Errors
    /// As [`LevelIter::step`], `Io`.
    pub fn seek(&mut self, target: Target<'_>) -> Result<()> {
        self.begin(target)?;
        self.run(target)
    }

    #[cold]
    fn leave_file(&mut self, forward: bool) -> Result<()> {
        self.valid = false;
        self.is_forward = forward;
        if !self.enter_neighbour()? {
            return Ok(());
        }
        self.run(if forward { Target::First } else { Target::Last })
    }

    /// Moves to the next entry. Only while valid.
    ///
    /// # Errors
    /// As [`LevelIter::seek`].
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        if let Some(iter) = &mut self.iter {
            self.valid = false;
            iter.next()?;
            if iter.valid() {
                self.valid = true;
                return Ok(());
            }
        }
        self.leave_file(true)
    }

    /// Moves to the entry before. Only while valid.
    ///
    /// # Errors
    /// As [`LevelIter::seek`].
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if let Some(iter) = &mut self.iter {
            self.valid = false;
            iter.prev()?;
            if iter.valid() {
                self.valid = true;
                return Ok(());
            }
        }
        self.leave_file(false)
    }

    /// Whether it is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn at(&self) -> &TableIter {
        self.iter.as_ref().expect("the iterator is at an entry")
    }

    /// As [`TableIter::is_cached`].
    #[inline]
    pub(crate) fn is_cached(&self) -> bool {
        self.at().is_cached()
    }

    /// The internal key of the entry. Only while valid, as `value` and `value_slice`.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.at().key()
    }

    /// The stored value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.at().value()
    }

    /// The stored value, pinning its block.
    #[inline]
    pub fn value_slice(&self) -> Slice {
        self.at().value_slice()
    }
}

struct Nearest {
    index: usize,
    /// Whether files were passed over: the target is at this one's edge.
    is_moved: bool,
}
