//! Walks a range as a transaction sees it: the snapshot's entries with the
//! transaction's own writes over them, from both ends.
//!
//! The part that was passed counts as read: from the lower bound to the key of the front, and from
//! the key of the back to the upper bound; all of it once the two have met.
//!
//! Owns: the two ends. Never does: return a key twice.

use super::Transaction;
use super::own_writes::Own;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;
use windrow_base::Result;
use windrow_read::read::cursor::Iter;
use windrow_read::read::is_refused_merge;
use windrow_read::slice::Slice;
use windrow_store::tree::Tree;
use windrow_store::write::ordered_key::OrderedKey;
use windrow_store::write::read_set::{RangeEnd, ReadRange};

type Item = Result<(Slice, Slice)>;

/// A key of the snapshot, with its value or the merge operator's refusal, which matters only
/// where the transaction has not put or deleted the key.
type ScanEntry = (Slice, Result<Slice>);

/// A range of keys.
type ScanRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// An iterator over a range as a [`Transaction`] sees it. After an error it ends,
/// as an [`Iter`](crate::Iter) does.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// db.put("a", "1")?;
/// db.put("b", "1")?;
/// let mut tx = db.transaction()?;
/// tx.delete(&db, "a")?;
/// tx.put(&db, "c", "1")?;
/// let mut keys = Vec::new();
/// for item in tx.range(&db, ..)?.rev() {
///     keys.push(item?.0);
/// }
/// assert_eq!(keys, ["c", "b"]);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct TransactionIter<'t> {
    transaction: &'t Transaction,
    tree: Arc<Tree>,
    range: ScanRange,
    base: Iter,
    /// Entries that the base has given and that were not returned yet.
    base_front: Option<ScanEntry>,
    base_back: Option<ScanEntry>,
    base_is_done: bool,
    own: VecDeque<(OrderedKey, Own)>,
    /// The positions of the ranges that each end has read.
    front_read: Option<usize>,
    back_read: Option<usize>,
    is_done: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

impl<'t> TransactionIter<'t> {
    pub(super) fn new(
        transaction: &'t Transaction,
        tree: Arc<Tree>,
        range: ScanRange,
    ) -> Result<TransactionIter<'t>> {
        let base = transaction.keyspace(&tree).range_at(&transaction.snapshot, range.clone());
        let bounds = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
        let own = transaction.own.get(&tree.id);
        let own = own.map(|own| own.in_range(bounds.0, bounds.1)).unwrap_or_default();
        Ok(TransactionIter {
            transaction,
            tree,
            range,
            base,
            base_front: None,
            base_back: None,
            base_is_done: false,
            own: own.into(),
            front_read: None,
            back_read: None,
            is_done: false,
        })
    }

    /// The next entry of the snapshot from one end, which is not taken. Entries in ranges that the
    /// transaction removed are passed over.
    fn peek_base(&mut self, end: End) -> Result<Option<&ScanEntry>> {
        let own = self.transaction.own.get(&self.tree.id);
        let is_removed = |key: &[u8]| own.is_some_and(|own| own.is_removed(key));
        let (kept, other) = match end {
            End::Front => (&mut self.base_front, &mut self.base_back),
            End::Back => (&mut self.base_back, &mut self.base_front),
        };
        while kept.is_none() && !self.base_is_done {
            match self.base.next_keyed(end == End::Front).transpose()? {
                Some((key, _)) if is_removed(&key) => {}
                Some(entry) => *kept = Some(entry),
                None => self.base_is_done = true,
            }
        }
        // The other end may hold the last one.
        if kept.is_none() {
            *kept = other.take();
        }
        Ok(kept.as_ref())
    }

    /// The next entry from one end, `None` if there is none.
    fn advance(&mut self, end: End) -> Result<Option<(Slice, Slice)>> {
        loop {
            let own = if end == End::Front { self.own.front() } else { self.own.back() };
            let own_key = own.map(|(key, _)| key.key.clone());
            let order = self.tree.reads.order.clone();
            let base_key = self.peek_base(end)?.map(|(key, _)| key.clone());
            let nearer = match (&own_key, &base_key) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(own), Some(base)) => match end {
                    End::Front => order.compare(own, base),
                    End::Back => order.compare(base, own),
                },
            };
            let base = match nearer {
                Ordering::Less => None,
                _ if end == End::Front => self.base_front.take(),
                _ => self.base_back.take(),
            };
            if nearer == Ordering::Greater {
                let Some((key, value)) = base else { return Ok(None) };
                self.note(end, &key)?;
                return value.map(|value| Some((key, value)));
            }
            let own = if end == End::Front { self.own.pop_front() } else { self.own.pop_back() };
            let Some((key, own)) = own else { return Ok(None) };
            self.note(end, &key.key)?;
            if let Some(value) = self.transaction.value(&self.tree, &key.key, Some(own))? {
                return Ok(Some((Slice::copy_from(&key.key), value)));
            }
        }
    }

    /// Notes that one end has come to a key: all keys before it were read.
    fn note(&mut self, end: End, key: &[u8]) -> Result<()> {
        let mut reads = self.transaction.reads.borrow_mut();
        let (at, edge) = match end {
            End::Front => (&mut self.front_read, RangeEnd::Upper),
            End::Back => (&mut self.back_read, RangeEnd::Lower),
        };
        if let Some(at) = *at {
            return reads.extend((self.tree.id, at), edge, Bound::Included(key));
        }
        let to = Bound::Included(key.to_vec());
        let (lower, upper) = self.range.clone();
        let (lower, upper) = if end == End::Front { (lower, to) } else { (to, upper) };
        let range = ReadRange { lower, upper, seq: self.transaction.snapshot.seq() };
        *at = Some(reads.range(self.tree.id, range)?);
        Ok(())
    }

    /// Notes that the ends have met, or an error came: the whole range counts as read.
    fn note_all(&mut self) -> Result<()> {
        let (lower, upper) = self.range.clone();
        let mut reads = self.transaction.reads.borrow_mut();
        // The range of one end, if there is one, becomes that of both.
        if let Some(at) = self.front_read {
            return reads.extend(
                (self.tree.id, at),
                RangeEnd::Upper,
                upper.as_ref().map(Vec::as_slice),
            );
        }
        if let Some(at) = self.back_read {
            return reads.extend(
                (self.tree.id, at),
                RangeEnd::Lower,
                lower.as_ref().map(Vec::as_slice),
            );
        }
        let range = ReadRange { lower, upper, seq: self.transaction.snapshot.seq() };
        reads.range(self.tree.id, range).map(|_| ())
    }

    fn take(&mut self, end: End) -> Option<Item> {
        if self.is_done {
            return None;
        }
        let item = self.advance(end).transpose();
        self.is_done = match &item {
            Some(Ok(_)) => false,
            Some(Err(error)) => !is_refused_merge(error),
            None => true,
        };
        if !self.is_done {
            return item;
        }
        let noted = self.note_all();
        // The end of the range counts as read, or is not returned.
        item.or(noted.err().map(Err))
    }
}

impl Iterator for TransactionIter<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.take(End::Front)
    }
}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Item> {
        self.take(End::Back)
    }
}

impl FusedIterator for TransactionIter<'_> {}
