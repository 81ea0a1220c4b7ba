//! One layer: sorted, disjoint fragments, and their form on disk.
//!
//! Keys lie in one buffer, and where a fragment begins at the last one's end
//! they share it. Immutable once built; shared by reference count.
//! Never does: cut tombstones (`sweep.rs`), or choose what goes into a layer.

use super::{Parts, sweep};
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Error, KeyOrder, Result, SeqNo};

/// Where a key lies in `Layer::keys`.
#[derive(Clone, Copy, Debug)]
struct Key {
    at: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Fragment {
    start: Key,
    end: Key,
    /// Where its sequence numbers lie in `Layer::seqs`.
    seqs: (usize, usize),
}

/// Fragments in the making.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    keys: Vec<u8>,
    fragments: Vec<Fragment>,
    seqs: Vec<SeqNo>,
}

/// Sorted, disjoint fragments. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    layer: Option<Arc<Layer>>,
}

/// One fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRef<'a> {
    /// First user key covered.
    pub start: &'a [u8],
    /// First user key not covered any more.
    pub end: &'a [u8],
    /// Sequence numbers of the tombstones over it, newest first; at least one.
    pub seqs: &'a [SeqNo],
}

impl<'a> FragmentRef<'a> {
    /// The newest sequence number that a read at `max_seq` sees.
    #[inline]
    pub fn newest(&self, max_seq: SeqNo) -> Option<SeqNo> {
        let at = self.seqs.partition_point(|&seq| seq > max_seq);
        self.seqs.get(at).copied()
    }

    /// What of it lies in `[from, to)` (unbounded where `None`).
    pub fn within(
        self,
        order: &KeyOrder,
        from: Option<&'a [u8]>,
        to: Option<&'a [u8]>,
    ) -> Option<FragmentRef<'a>> {
        let start = from.filter(|from| order.compare(self.start, from).is_lt());
        let end = to.filter(|to| order.compare(to, self.end).is_lt());
        let (start, end) = (start.unwrap_or(self.start), end.unwrap_or(self.end));
        let seqs = self.seqs;
        order.compare(start, end).is_lt().then_some(FragmentRef { start, end, seqs })
    }
}

impl Fragments {
    /// Cuts tombstones, in any order and overlapping anyhow, into fragments.
    /// Those with `start >= end` cover nothing and vanish. Time and memory are
    /// quadratic in how many overlap: for sets that are bounded.
    pub fn build<'a>(tombstones: impl Iterator<Item = Parts<'a>>, order: &KeyOrder) -> Fragments {
        let mut list = Vec::from_iter(tombstones);
        let all = sweep::cut(&mut list, order, usize::MAX, &sweep::all);
        Fragments::from_layer(all.unwrap_or_default())
    }

    pub(super) fn from_layer(layer: Layer) -> Fragments {
        let layer = (!layer.fragments.is_empty()).then(|| Arc::new(layer));
        Fragments { layer }
    }

    /// Whether nothing is covered.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layer.is_none()
    }

    /// Number of fragments.
    pub fn len(&self) -> usize {
        self.layer.as_ref().map_or(0, |layer| layer.fragments.len())
    }

    /// Newest tombstone with a sequence number of at most `max_seq` that covers the user key.
    #[inline]
    pub fn newest_covering(&self, order: &KeyOrder, key: &[u8], max_seq: SeqNo) -> Option<SeqNo> {
        self.covering(order, key)?.newest(max_seq)
    }

    /// The fragment over a user key.
    #[inline]
    pub fn covering(&self, order: &KeyOrder, key: &[u8]) -> Option<FragmentRef<'_>> {
        self.at_or_after(order, key).filter(|f| order.compare(f.start, key).is_le())
    }

    /// The first fragment that ends after a user key: the one over it, or else the next.
    pub fn at_or_after(&self, order: &KeyOrder, key: &[u8]) -> Option<FragmentRef<'_>> {
        let layer = self.layer.as_deref()?;
        let ended = |f: &Fragment| order.compare(layer.key(f.end), key).is_le();
        layer.get(layer.fragments.partition_point(ended))
    }

    /// The last fragment that starts at or before a user key: the one over it, or else the previous.
    pub fn at_or_before(&self, order: &KeyOrder, key: &[u8]) -> Option<FragmentRef<'_>> {
        let layer = self.layer.as_deref()?;
        let begun = |f: &Fragment| order.compare(layer.key(f.start), key).is_le();
        layer.get(layer.fragments.partition_point(begun).checked_sub(1)?)
    }

    /// The fragment of an index below [`Fragments::len`].
    pub fn get(&self, index: usize) -> Option<FragmentRef<'_>> {
        self.layer.as_deref()?.get(index)
    }

    /// All fragments in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = FragmentRef<'_>> {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    /// The oldest and the newest sequence number.
    pub(super) fn seq_bounds(&self) -> Option<(SeqNo, SeqNo)> {
        let seqs = &self.layer.as_deref()?.seqs;
        Some((*seqs.iter().min()?, *seqs.iter().max()?))
    }

    /// Tombstones that make the same fragments, as few as there may be: what
    /// was cut at the ends of others is one again.
    pub(super) fn rejoined<'a>(&'a self, out: &mut Vec<Parts<'a>>) {
        // What goes on: by sequence number, where it began and has got to.
        let mut open: BTreeMap<SeqNo, (&[u8], &[u8])> = BTreeMap::new();
        for f in self.iter() {
            open.retain(|seq, (start, end)| {
                let has = || f.seqs.binary_search_by(|other| seq.cmp(other)).is_ok();
                let goes_on = *end == f.start && has();
                if !goes_on {
                    out.push((*start, *end, *seq));
                }
                goes_on
            });
            for &seq in f.seqs {
                open.entry(seq).or_insert((f.start, f.end)).1 = f.end;
            }
        }
        out.extend(open.into_iter().map(|(seq, (start, end))| (start, end, seq)));
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.layer.as_deref().map_or(0, Layer::memory_bytes)
    }

    /// Number of (fragment, sequence number) pairs.
    pub fn pairs(&self) -> u64 {
        self.layer.as_deref().map_or(0, |layer| layer.seqs.len() as u64)
    }

    /// Appends its form on disk.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        for f in self.iter() {
            put_slice(out, f.start);
            put_slice(out, f.end);
            put_varint(out, f.seqs.len() as u64);
            f.seqs.iter().for_each(|&seq| put_varint(out, seq));
        }
    }

    /// Reads one layer; checks the order and disjointness.
    ///
    /// # Errors
    /// `Corruption` if it is not what [`Fragments::encode`] writes.
    pub(super) fn decode(d: &mut Decoder<'_>, order: &KeyOrder) -> Result<Fragments> {
        let count = d.varint()?;
        let mut layer = Layer::default();
        let mut seqs = Vec::new();
        for _ in 0..count {
            let (start, end) = (d.slice()?, d.slice()?);
            let ordered = layer.last_end().is_none_or(|last| order.compare(last, start).is_le())
                && order.compare(start, end).is_lt();
            if !ordered || start.len().max(end.len()) > KEY_BYTES_MAX {
                return Err(Error::corruption("range tombstones out of order"));
            }
            seqs.clear();
            for _ in 0..d.varint()? {
                let seq = d.varint()?;
                if seq > SEQ_MAX || seqs.last().is_some_and(|&newer| newer <= seq) {
                    return Err(Error::corruption("range tombstone with an impossible sequence"));
                }
                seqs.push(seq);
            }
            if seqs.is_empty() {
                return Err(Error::corruption("range tombstone without a sequence"));
            }
            layer.push(start, end, &seqs);
        }
        layer.shrink();
        Ok(Fragments::from_layer(layer))
    }
}

impl Layer {
    fn key(&self, key: Key) -> &[u8] {
        &self.keys[key.at..key.at + key.bytes]
    }

    fn put_key(&mut self, key: &[u8]) -> Key {
        let at = self.keys.len();
        self.keys.extend_from_slice(key);
        Key { at, bytes: key.len() }
    }

    pub(super) fn get(&self, at: usize) -> Option<FragmentRef<'_>> {
        let f = self.fragments.get(at)?;
        let seqs = &self.seqs[f.seqs.0..f.seqs.1];
        Some(FragmentRef { start: self.key(f.start), end: self.key(f.end), seqs })
    }

    /// The last fragment.
    pub(super) fn last(&self) -> Option<FragmentRef<'_>> {
        self.get(self.fragments.len().checked_sub(1)?)
    }

    fn last_end(&self) -> Option<&[u8]> {
        self.fragments.last().map(|f| self.key(f.end))
    }

    /// An empty one, with room for so many fragments of a sequence number each.
    pub(super) fn with_room(count: usize) -> Layer {
        let (fragments, seqs) = (Vec::with_capacity(count), Vec::with_capacity(count));
        Layer { keys: Vec::new(), fragments, seqs }
    }

    pub(super) fn pairs(&self) -> usize {
        self.seqs.len()
    }

    /// Adds a fragment at or after the last one's end.
    pub(super) fn push(&mut self, start: &[u8], end: &[u8], seqs: &[SeqNo]) {
        let shared = self.fragments.last().map(|f| f.end).filter(|&end| self.key(end) == start);
        let start = shared.unwrap_or_else(|| self.put_key(start));
        let end = self.put_key(end);
        let at = self.seqs.len();
        self.seqs.extend_from_slice(seqs);
        let seqs = (at, self.seqs.len());
        self.fragments.push(Fragment { start, end, seqs });
    }

    /// As `push`, but what goes on where the last fragment ends, with the same
    /// sequence numbers, is part of it.
    pub(super) fn push_or_extend(&mut self, start: &[u8], end: &[u8], seqs: &[SeqNo]) {
        let goes_on = self.last().is_some_and(|last| *last.end == *start && *last.seqs == *seqs);
        if !goes_on {
            return self.push(start, end, seqs);
        }
        // An end is the last key that was put, so that the longer range takes its place.
        let last = self.fragments.last().map_or(self.keys.len(), |f| f.end.at);
        self.keys.truncate(last);
        let end = self.put_key(end);
        if let Some(fragment) = self.fragments.last_mut() {
            fragment.end = end;
        }
    }

    /// Adds an older sequence number to the last fragment.
    pub(super) fn push_seq(&mut self, seq: SeqNo) {
        self.seqs.push(seq);
        if let Some(last) = self.fragments.last_mut() {
            last.seqs.1 += 1;
        }
    }

    pub(super) fn shrink(&mut self) {
        self.keys.shrink_to_fit();
        self.fragments.shrink_to_fit();
        self.seqs.shrink_to_fit();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.fragments.capacity() * size_of::<Fragment>()
            + self.seqs.capacity() * size_of::<SeqNo>()
    }
}
