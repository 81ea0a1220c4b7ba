//! The reads of a transaction, by which its commit is admitted.
//!
//! Owns: keys and ranges, each with the sequence number at which it was read, and the bound on
//! their memory: a read that would pass it is refused, and leaves all as it was. Never does: read,
//! or decide.

use super::ordered_key::{AsOrderedKey, OrderedKey};
use std::collections::BTreeMap;
use std::ops::Bound;
use windrow_base::{Error, KeyOrder, KeyspaceId, Result, SeqNo};

/// Memory that a key takes besides its bytes, about.
const KEY_ENTRY_BYTES: usize = 64;
/// Memory that a range takes besides the bytes of its bounds: in a list that doubles, and each
/// bound in an allocation of its own.
const RANGE_ENTRY_BYTES: usize = 160;

/// A range of keys that was scanned.
#[derive(Clone, Debug)]
pub struct ReadRange {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
    pub seq: SeqNo,
}

/// The reads of one keyspace.
#[derive(Clone, Debug, Default)]
pub struct SpaceReads {
    pub keys: BTreeMap<OrderedKey, SeqNo>,
    pub ranges: Vec<ReadRange>,
}

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RangeEnd {
    Lower,
    Upper,
}

/// All reads of a transaction.
#[derive(Clone, Debug, Default)]
pub struct ReadSet {
    pub spaces: BTreeMap<KeyspaceId, SpaceReads>,
    /// Memory that it takes, about.
    bytes: usize,
    /// Memory that it may take; `None`: the caller bounds it.
    bytes_max: Option<usize>,
    /// The first sequence number at which anything was read.
    oldest: Option<SeqNo>,
}

impl ReadSet {
    fn read_at(&mut self, seq: SeqNo) {
        self.oldest = Some(self.oldest.map_or(seq, |oldest| oldest.min(seq)));
    }

    /// Whether all of it was read at `seq` or later.
    pub(crate) fn is_as_of(&self, seq: SeqNo) -> bool {
        self.oldest.is_none_or(|oldest| oldest >= seq)
    }

    /// Makes an empty set that may take `most` bytes, those that [`ReadSet::grow`] counts included.
    pub fn within(most: u64) -> ReadSet {
        ReadSet {
            bytes_max: Some(usize::try_from(most).unwrap_or(usize::MAX)),
            ..ReadSet::default()
        }
    }

    /// Counts bytes that are held in addition.
    ///
    /// # Errors
    /// `InvalidArgument` if that would be too many, here and below; nothing has changed then.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let grown = self.bytes.saturating_add(bytes);
        match self.bytes_max {
            Some(most) if grown > most => Err(Error::invalid(format!(
                "the transaction would keep {grown} bytes of what it read and locked, more than \
                 {most} (an eighth of memory_bytes): split it, or read by a snapshot what its result \
                 does not depend on"
            ))),
            _ => {
                self.bytes = grown;
                Ok(())
            }
        }
    }

    /// Notes that a key was read at `seq`. An earlier read of it stays: the key must be unchanged
    /// since both.
    pub fn key(&mut self, id: KeyspaceId, order: &KeyOrder, key: &[u8], seq: SeqNo) -> Result<()> {
        let known = self
            .spaces
            .get_mut(&id)
            .and_then(|space| space.keys.get_mut(&(key, order) as &dyn AsOrderedKey));
        match known {
            Some(at) => *at = seq.min(*at),
            None => {
                self.grow(key.len() + KEY_ENTRY_BYTES)?;
                let space = self.spaces.entry(id).or_default();
                space.keys.insert(OrderedKey::new(key, order), seq);
            }
        }
        self.read_at(seq);
        Ok(())
    }

    /// Notes that a range was read at `seq`. Returns its place, by which it can be extended.
    pub fn range(&mut self, id: KeyspaceId, range: ReadRange) -> Result<usize> {
        self.grow(RANGE_ENTRY_BYTES + bytes_of(&range.lower) + bytes_of(&range.upper))?;
        self.read_at(range.seq);
        let space = self.spaces.entry(id).or_default();
        space.ranges.push(range);
        Ok(space.ranges.len() - 1)
    }

    /// Notes that more of the range at a place was read: it reaches to `to` now.
    pub fn extend(
        &mut self,
        (id, at): (KeyspaceId, usize),
        edge: RangeEnd,
        to: Bound<&[u8]>,
    ) -> Result<()> {
        let Some(range) = self.spaces.get(&id).and_then(|space| space.ranges.get(at)) else {
            return Ok(());
        };
        let before = bytes_of(if edge == RangeEnd::Lower { &range.lower } else { &range.upper });
        match bytes_of(&to).checked_sub(before) {
            Some(more) if more > 0 => self.grow(more)?,
            _ => self.bytes -= before - bytes_of(&to),
        }
        let range = self.spaces.get_mut(&id).and_then(|space| space.ranges.get_mut(at));
        let bound = range.map(|range| match edge {
            RangeEnd::Lower => &mut range.lower,
            RangeEnd::Upper => &mut range.upper,
        });
        match (bound, to) {
            // Reuses its memory: a scan comes here for each key.
            (Some(Bound::Included(bound)), Bound::Included(key)) => {
                bound.clear();
                bound.extend_from_slice(key);
            }
            (Some(bound), to) => *bound = to.map(<[u8]>::to_vec),
            (None, _) => {}
        }
        Ok(())
    }

    /// Sets the sequence number of every read to `seq`: all were compared with that state.
    pub fn raise_to(&mut self, seq: SeqNo) {
        self.oldest = self.oldest.map(|_| seq);
        for space in self.spaces.values_mut() {
            space.keys.values_mut().for_each(|at| *at = seq);
            space.ranges.iter_mut().for_each(|range| range.seq = seq);
        }
    }
}

fn bytes_of(bound: &Bound<impl AsRef<[u8]>>) -> usize {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key.as_ref().len(),
        Bound::Unbounded => 0,
    }
}
