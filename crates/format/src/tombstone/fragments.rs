//! A finished layer: sorted, disjoint fragments, the search in them, and their form on disk.
//!
//! Immutable; shared by reference count.
//!
//! Owns: the fragments of one layer. Never does: cut tombstones (`sweep.rs`), or choose those of a
//! layer.

use super::layer::{Fragment, FragmentRef, TombstoneLayer};
use super::{TombstoneParts, sweep};
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Error, KeyOrder, Result, SeqNo};

/// Sorted, disjoint fragments. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    layer: Option<Arc<TombstoneLayer>>,
}

impl Fragments {
    /// Cuts tombstones, in any order and with any overlaps, into fragments. Those with `start >=
    /// end` cover nothing and are dropped. Time and memory are quadratic in the number that
    /// overlap, so this is for bounded sets.
    pub fn build<'a>(
        tombstones: impl Iterator<Item = TombstoneParts<'a>>,
        order: &KeyOrder,
    ) -> Fragments {
        let mut list = Vec::from_iter(tombstones);
        let all = sweep::cut(&mut list, order, usize::MAX, &sweep::all);
        Fragments::from_layer(all.unwrap_or_default())
    }

    pub(super) fn from_layer(layer: TombstoneLayer) -> Fragments {
        let layer = (!layer.fragments.is_empty()).then(|| Arc::new(layer));
        Fragments { layer }
    }

    /// Whether no key is covered.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layer.is_none()
    }

    /// Number of fragments.
    pub fn len(&self) -> usize {
        self.layer.as_ref().map_or(0, |layer| layer.fragments.len())
    }

    /// The sequence number of the newest tombstone that covers the user key, of those up to
    /// `max_seq`.
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

    /// The last fragment that starts at or before a user key: the one over it, or else the
    /// previous.
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

    /// Appends the fewest tombstones that make the same fragments: the pieces of a tombstone that
    /// was cut at the ends of others are joined again.
    pub(super) fn rejoined<'a>(&'a self, out: &mut Vec<TombstoneParts<'a>>) {
        // The tombstones that go on, by sequence number, with their start and their end so far.
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
        self.layer.as_deref().map_or(0, TombstoneLayer::memory_bytes)
    }

    /// Number of (fragment, sequence number) pairs.
    pub fn pairs(&self) -> u64 {
        self.layer.as_deref().map_or(0, |layer| layer.seqs.len() as u64)
    }

    /// Appends the layer's form on disk.
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
    /// `Corruption` if it is not in the form of [`Fragments::encode`].
    pub(super) fn decode(d: &mut Decoder<'_>, order: &KeyOrder) -> Result<Fragments> {
        let count = d.varint()?;
        let mut layer = TombstoneLayer::default();
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
