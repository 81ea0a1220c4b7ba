//! A set of range tombstones of any size, in layers.
//!
//! Every sequence number of a layer is above those of the layers before it. A layer holds at most
//! [`PAIRS_PER_TOMBSTONE`] pairs of fragment and sequence number for each of its tombstones; nearly
//! every set is one layer.
//!
//! Owns: the division of a set into layers. Never does: fragment (`sweep.rs`), or decide that a
//! tombstone may be dropped.

use super::fragments::Fragments;
use super::layer::{FragmentRef, TombstoneLayer};
use super::sweep::{self, Active};
use super::{RangeTombstone, TombstoneParts};
use std::sync::Arc;
use windrow_base::coding::Decoder;
use windrow_base::key::SEQ_MAX;
use windrow_base::{Error, KeyOrder, Result, SeqNo};

/// The pairs of a layer for each of its tombstones. Fewer make more layers for a lookup, more cost
/// memory and bytes on disk.
const PAIRS_PER_TOMBSTONE: usize = 64;

/// Range tombstones, fragmented. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tombstones {
    /// Oldest first; none is empty.
    layers: Option<Arc<[Fragments]>>,
}

impl Tombstones {
    /// No tombstones.
    pub fn empty() -> Tombstones {
        Tombstones::default()
    }

    /// Builds a set of tombstones in any order and with any overlaps. Those with `start >= end`
    /// cover nothing and are dropped.
    pub fn build<'a>(
        tombstones: impl Iterator<Item = TombstoneParts<'a>>,
        order: &KeyOrder,
    ) -> Tombstones {
        Tombstones::layered(tombstones.collect(), order, &sweep::all)
    }

    /// As [`Tombstones::build`], but each fragment has only the newest sequence number of each
    /// stripe of its layer. A stripe is the sequence numbers that the same snapshots see
    /// (`snapshots` ascend). The newest tombstone of a stripe hides all that the others of the
    /// stripe hide.
    pub fn newest_of_stripes(
        tombstones: Vec<TombstoneParts<'_>>,
        order: &KeyOrder,
        snapshots: &[SeqNo],
    ) -> Tombstones {
        let pick = |active: &Active, seqs: &mut Vec<SeqNo>| {
            sweep::newest_of_stripes(snapshots, active, seqs);
        };
        Tombstones::layered(tombstones, order, &pick)
    }

    fn layered(
        mut list: Vec<TombstoneParts<'_>>,
        order: &KeyOrder,
        pick: &impl Fn(&Active, &mut Vec<SeqNo>),
    ) -> Tombstones {
        // By sequence number. Sorted in place: a stable sort would take as much memory again.
        list.sort_unstable_by_key(|t| t.2);
        let mut layers = Vec::new();
        let mut pending = vec![list.as_mut_slice()];
        // The oldest part is last, so that it is taken first.
        while let Some(part) = pending.pop() {
            let pairs_max = part.len() * PAIRS_PER_TOMBSTONE;
            let middle = split_point(part);
            let pairs_max = if middle == 0 { usize::MAX } else { pairs_max };
            match sweep::cut(part, order, pairs_max, pick) {
                Some(layer) => layers.push(Fragments::from_layer(layer)),
                None => {
                    part.sort_unstable_by_key(|t| t.2);
                    let (older, newer) = part.split_at_mut(middle);
                    pending.extend([newer, older]);
                }
            }
        }
        Tombstones::from_layers(layers)
    }

    fn from_layers(mut layers: Vec<Fragments>) -> Tombstones {
        layers.retain(|layer| !layer.is_empty());
        Tombstones { layers: (!layers.is_empty()).then(|| layers.into()) }
    }

    /// Whether nothing is covered.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layers.is_none()
    }

    /// The layers, oldest first.
    #[inline]
    pub fn layers(&self) -> &[Fragments] {
        self.layers.as_deref().unwrap_or_default()
    }

    /// Newest tombstone with a sequence number of at most `max_seq` that covers the user key.
    #[inline]
    pub fn newest_covering(&self, order: &KeyOrder, key: &[u8], max_seq: SeqNo) -> Option<SeqNo> {
        let newest_first = self.layers().iter().rev();
        newest_first.filter_map(|layer| layer.newest_covering(order, key, max_seq)).next()
    }

    /// All fragments, layer by layer, oldest first, and in each layer by key.
    pub fn fragments(&self) -> impl Iterator<Item = FragmentRef<'_>> {
        self.layers().iter().flat_map(Fragments::iter)
    }

    /// Returns the fewest tombstones that make the same layers.
    pub fn rejoined(&self) -> Vec<TombstoneParts<'_>> {
        let mut out = Vec::new();
        self.layers().iter().for_each(|layer| layer.rejoined(&mut out));
        out
    }

    /// The first and last key of all fragments.
    pub(crate) fn bounds(&self, order: &KeyOrder) -> Option<(&[u8], &[u8])> {
        let ends = self.layers().iter().filter_map(|layer| {
            let mut fragments = layer.iter();
            let first = fragments.next()?;
            Some((first.start, fragments.next_back().unwrap_or(first).end))
        });
        ends.reduce(|(start, end), (other_start, other_end)| {
            let start = if order.compare(other_start, start).is_lt() { other_start } else { start };
            let end = if order.compare(end, other_end).is_lt() { other_end } else { end };
            (start, end)
        })
    }

    /// Returns a set with those sequence numbers of each fragment for whose index `keep` is true.
    pub fn retain(&self, mut keep: impl FnMut(FragmentRef<'_>, usize) -> bool) -> Tombstones {
        let mut seqs = Vec::new();
        let mut kept_of = |fragments: &Fragments| {
            let mut kept = TombstoneLayer::default();
            for f in fragments.iter() {
                seqs.clear();
                seqs.extend((0..f.seqs.len()).filter(|&i| keep(f, i)).map(|i| f.seqs[i]));
                if !seqs.is_empty() {
                    kept.push(f.start, f.end, &seqs);
                }
            }
            kept.shrink();
            Fragments::from_layer(kept)
        };
        Tombstones::from_layers(self.layers().iter().map(&mut kept_of).collect())
    }

    /// The tombstones, one for each sequence number of each fragment.
    pub fn to_tombstones(&self) -> Vec<RangeTombstone> {
        let one = |f: FragmentRef<'_>, seq: SeqNo| RangeTombstone {
            start: f.start.to_vec(),
            end: f.end.to_vec(),
            seq,
        };
        self.fragments().flat_map(|f| f.seqs.iter().map(move |&seq| one(f, seq))).collect()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let layers = self.layers();
        size_of_val(layers) + layers.iter().map(Fragments::memory_bytes).sum::<usize>()
    }

    /// Number of (fragment, sequence number) pairs.
    pub fn pairs(&self) -> u64 {
        self.layers().iter().map(Fragments::pairs).sum()
    }

    /// Appends the payload of a tombstone block: one layer after the other.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.layers().iter().for_each(|layer| layer.encode(out));
    }

    /// Reads the payload of a tombstone block.
    ///
    /// # Errors
    /// `Corruption` if it is not in the form of [`Tombstones::encode`], or has several layers
    /// without being `layered`.
    pub(crate) fn decode(payload: &[u8], order: &KeyOrder, layered: bool) -> Result<Tombstones> {
        let mut d = Decoder::new(payload);
        let mut layers: Vec<Fragments> = Vec::new();
        let mut newest = None;
        while layers.is_empty() || (layered && !d.is_empty()) {
            let layer = Fragments::decode(&mut d, order)?;
            let bounds = layer.seq_bounds();
            if bounds.is_some_and(|(oldest, _)| newest.is_some_and(|newest| oldest <= newest)) {
                return Err(Error::corruption("layers of range tombstones out of order"));
            }
            newest = bounds.map(|(_, newest)| newest);
            if layer.is_empty() && layered {
                return Err(Error::corruption("an empty layer of range tombstones"));
            }
            layers.push(layer);
        }
        if !d.is_empty() {
            return Err(Error::corruption("bytes left over after the range tombstones"));
        }
        Ok(Tombstones::from_layers(layers))
    }
}

/// Returns the index at which a list, sorted by sequence number, is split in two: near the middle,
/// and not within a sequence number. 0: not at all.
fn split_point(list: &[TombstoneParts<'_>]) -> usize {
    let Some(middle) = list.get(list.len() / 2) else { return 0 };
    let at = list.partition_point(|t| t.2 < middle.2);
    match at {
        0 => list.partition_point(|t| t.2 <= middle.2) % list.len(),
        at => at,
    }
}

/// Collects layers of fragments that come in order, as a table writer gets them.
#[derive(Default)]
pub(crate) struct Collector {
    done: Vec<Fragments>,
    done_bytes: usize,
    layer: TombstoneLayer,
    /// The newest sequence number of the layers that are done.
    newest_done: SeqNo,
    newest: SeqNo,
}

impl Collector {
    /// Adds one tombstone: an older sequence number of the last one's fragment, or a fragment at or
    /// after the last one's end.
    ///
    /// # Errors
    /// `Corruption` if it is out of order.
    pub(crate) fn add(&mut self, order: &KeyOrder, t: TombstoneParts<'_>) -> Result<()> {
        let (start, end, seq) = t;
        if let Some(last) = self.layer.last()
            && order.compare(start, last.end).is_lt()
        {
            let same = order.equal(last.start, start) && order.equal(last.end, end);
            if !same || last.seqs.last().is_some_and(|&older| seq >= older) {
                return Err(misplaced());
            }
            self.check_layer(seq)?;
            self.layer.push_seq(seq);
            return Ok(());
        }
        self.add_fragment(order, FragmentRef { start, end, seqs: &[seq] })
    }

    /// Adds a fragment at or after the last one's end.
    ///
    /// # Errors
    /// As [`Collector::add`].
    pub(crate) fn add_fragment(&mut self, order: &KeyOrder, f: FragmentRef<'_>) -> Result<()> {
        let (oldest, newest) = placed(order, self.layer.last(), f)?;
        self.check_layer(oldest)?;
        self.newest = self.newest.max(newest);
        self.layer.push(f.start, f.end, f.seqs);
        Ok(())
    }

    /// Adds a whole layer, newer than those before, and shares its memory.
    ///
    /// # Errors
    /// As [`Collector::add`].
    pub(crate) fn add_layer(&mut self, order: &KeyOrder, layer: &Fragments) -> Result<()> {
        self.end_layer();
        let (mut last, mut newest) = (None, self.newest_done);
        for f in layer.iter() {
            let (oldest, newest_of_f) = placed(order, last, f)?;
            self.check_layer(oldest)?;
            newest = newest.max(newest_of_f);
            last = Some(f);
        }
        (self.newest, self.newest_done) = (newest, newest);
        self.done_bytes += layer.memory_bytes();
        self.done.push(layer.clone());
        Ok(())
    }

    /// Checks that the current layer is newer than those before.
    fn check_layer(&self, seq: SeqNo) -> Result<()> {
        if !self.done.is_empty() && seq <= self.newest_done {
            return Err(misplaced());
        }
        Ok(())
    }

    /// Ends the current layer: the next fragments are of a newer one.
    pub(crate) fn end_layer(&mut self) {
        let mut layer = std::mem::take(&mut self.layer);
        layer.shrink();
        let layer = Fragments::from_layer(layer);
        if !layer.is_empty() {
            self.newest_done = self.newest;
            self.done_bytes += layer.memory_bytes();
            self.done.push(layer);
        }
    }

    pub(crate) fn finish(mut self) -> Tombstones {
        self.end_layer();
        Tombstones::from_layers(self.done)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.done_bytes + self.layer.memory_bytes()
    }
}

/// The oldest and newest sequence number of a fragment that may come after `last`.
fn placed(
    order: &KeyOrder,
    last: Option<FragmentRef<'_>>,
    f: FragmentRef<'_>,
) -> Result<(SeqNo, SeqNo)> {
    let descending = f.seqs.is_sorted_by(|a, b| a > b);
    let after = last.is_none_or(|last| order.compare(last.end, f.start).is_le());
    match (f.seqs.last(), f.seqs.first()) {
        (Some(&oldest), Some(&newest))
            if order.compare(f.start, f.end).is_lt()
                && newest <= SEQ_MAX
                && descending
                && after =>
        {
            Ok((oldest, newest))
        }
        _ => Err(misplaced()),
    }
}

#[cold]
fn misplaced() -> Error {
    Error::corruption("range tombstones were not given as ordered fragments")
}
