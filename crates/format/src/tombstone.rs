//! Range tombstones, and the fragments a set of them is cut into.
//!
//! Overlapping tombstones are cut at each other's ends into disjoint
//! fragments, each with the sequence numbers that cover it, newest first: the
//! question "what is the newest tombstone over this key, as of that snapshot"
//! is then one binary search. Fragments are immutable and shared.
//!
//! N tombstones nested in each other make N fragments with N (N + 1) / 2
//! sequence numbers. So only sets that something bounds are built whole;
//! merges and flushes build what their snapshots can tell apart.
//! Never does: decide whether a tombstone may be dropped (the engine's I6).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX};
use windrow_base::{Error, KeyOrder, Result, SeqNo};

/// A delete of all keys in `[start, end)` older than its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// First user key covered.
    pub start: Vec<u8>,
    /// First user key not covered any more.
    pub end: Vec<u8>,
    /// Hides entries with a lower sequence number.
    pub seq: SeqNo,
}

#[derive(Debug)]
struct Fragment {
    start: Box<[u8]>,
    end: Box<[u8]>,
    /// Where its sequence numbers lie in `Inner::seqs`.
    seqs: (usize, usize),
}

#[derive(Debug, Default)]
struct Inner {
    fragments: Vec<Fragment>,
    seqs: Vec<SeqNo>,
    heap_bytes: usize,
}

/// Sorted, disjoint fragments. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    inner: Option<Arc<Inner>>,
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

impl FragmentRef<'_> {
    /// The newest sequence number that a read at `max_seq` sees.
    #[inline]
    pub fn newest(&self, max_seq: SeqNo) -> Option<SeqNo> {
        let at = self.seqs.partition_point(|&seq| seq > max_seq);
        self.seqs.get(at).copied()
    }
}

impl Fragments {
    /// No tombstones.
    pub fn empty() -> Fragments {
        Fragments::default()
    }

    /// Cuts tombstones, in any order and overlapping anyhow, into fragments.
    /// Those with `start >= end` cover nothing and vanish. Time and memory are
    /// quadratic in how many overlap: for sets that are bounded.
    pub fn build(tombstones: &[RangeTombstone], order: &KeyOrder) -> Fragments {
        let borrowed = tombstones.iter().map(|t| (&t.start[..], &t.end[..], t.seq));
        cut(borrowed.collect(), order, |active, seqs| seqs.extend(active.keys().rev()))
    }

    /// As [`Fragments::build`], of tombstones as (start, end, sequence number),
    /// but each fragment has the newest sequence number of each stripe only: of
    /// those that the same of the `snapshots`, ascending, see. What a stripe hides
    /// of itself, its newest tombstone hides.
    pub fn newest_of_stripes<'a>(
        tombstones: impl Iterator<Item = (&'a [u8], &'a [u8], SeqNo)>,
        order: &KeyOrder,
        snapshots: &[SeqNo],
    ) -> Fragments {
        cut(tombstones.collect(), order, |active, seqs| {
            let mut newest = active.last_key_value();
            while let Some((&seq, _)) = newest {
                seqs.push(seq);
                let below = snapshots.partition_point(|&snapshot| snapshot < seq).checked_sub(1);
                newest = below.and_then(|at| active.range(..=snapshots[at]).next_back());
            }
        })
    }

    fn from_inner(inner: Inner) -> Fragments {
        let inner = (!inner.fragments.is_empty()).then(|| Arc::new(inner));
        Fragments { inner }
    }

    /// Whether nothing is covered.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.inner.is_none()
    }

    /// Number of fragments.
    pub fn len(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.fragments.len())
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
        let inner = self.inner.as_deref()?;
        let at = inner.fragments.partition_point(|f| order.compare(&f.end, key).is_le());
        inner.get(at)
    }

    /// The last fragment that starts at or before a user key: the one over it, or else the previous.
    pub fn at_or_before(&self, order: &KeyOrder, key: &[u8]) -> Option<FragmentRef<'_>> {
        let inner = self.inner.as_deref()?;
        let after = inner.fragments.partition_point(|f| order.compare(&f.start, key).is_le());
        inner.get(after.checked_sub(1)?)
    }

    /// The fragment of an index below [`Fragments::len`].
    pub fn get(&self, index: usize) -> Option<FragmentRef<'_>> {
        self.inner.as_deref()?.get(index)
    }

    /// All fragments in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = FragmentRef<'_>> {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    /// The tombstones of all fragments, cut to `[from, to)` (unbounded where
    /// `None`), in the order a table takes them: by key, then newest first.
    pub fn truncated(
        &self,
        order: &KeyOrder,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Vec<RangeTombstone> {
        let mut out = Vec::new();
        for f in self.iter() {
            let start = match from {
                Some(from) if order.compare(f.start, from).is_lt() => from,
                _ => f.start,
            };
            let end = match to {
                Some(to) if order.compare(to, f.end).is_lt() => to,
                _ => f.end,
            };
            if order.compare(start, end).is_lt() {
                let cut =
                    |&seq: &SeqNo| RangeTombstone { start: start.into(), end: end.into(), seq };
                out.extend(f.seqs.iter().map(cut));
            }
        }
        out
    }

    /// (start, end, sequence number) of each sequence number of each fragment.
    pub fn triples(&self) -> impl Iterator<Item = (&[u8], &[u8], SeqNo)> {
        self.iter().flat_map(|f| f.seqs.iter().map(move |&seq| (f.start, f.end, seq)))
    }

    /// The tombstones, one for each sequence number of each fragment.
    pub fn to_tombstones(&self) -> Vec<RangeTombstone> {
        let one = |f: FragmentRef<'_>, seq: SeqNo| RangeTombstone {
            start: f.start.to_vec(),
            end: f.end.to_vec(),
            seq,
        };
        self.iter().flat_map(|f| f.seqs.iter().map(move |&seq| one(f, seq))).collect()
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.inner.as_deref().map_or(0, |inner| {
            inner.heap_bytes
                + inner.fragments.capacity() * size_of::<Fragment>()
                + inner.seqs.capacity() * size_of::<SeqNo>()
        })
    }

    /// Number of (fragment, sequence number) pairs.
    pub fn pairs(&self) -> u64 {
        self.inner.as_deref().map_or(0, |inner| inner.seqs.len() as u64)
    }

    /// Appends the payload of a tombstone block.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        for f in self.iter() {
            put_slice(out, f.start);
            put_slice(out, f.end);
            put_varint(out, f.seqs.len() as u64);
            f.seqs.iter().for_each(|&seq| put_varint(out, seq));
        }
    }

    /// Reads the payload of a tombstone block; checks the order and disjointness.
    ///
    /// # Errors
    /// `Corruption` if it is not what [`Fragments::encode`] writes.
    pub(crate) fn decode(payload: &[u8], order: &KeyOrder) -> Result<Fragments> {
        let mut d = Decoder::new(payload);
        let count = d.varint()?;
        let mut inner = Inner::default();
        let mut seqs = Vec::new();
        for _ in 0..count {
            let (start, end) = (d.slice()?, d.slice()?);
            let previous_end = inner.fragments.last().map(|f| &f.end[..]);
            let ordered = previous_end.is_none_or(|p| order.compare(p, start).is_le())
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
            inner.push(start, end, &seqs);
        }
        if !d.is_empty() {
            return Err(Error::corruption("bytes left over after the range tombstones"));
        }
        Ok(Fragments::from_inner(inner))
    }
}

/// Sweeps over the ends of tombstones (start, end, sequence number): between two
/// of them, `pick` chooses among the sequence numbers that cover the stretch.
fn cut(
    mut tombstones: Vec<(&[u8], &[u8], SeqNo)>,
    order: &KeyOrder,
    pick: impl Fn(&BTreeMap<SeqNo, usize>, &mut Vec<SeqNo>),
) -> Fragments {
    tombstones.retain(|(start, end, _)| order.compare(start, end).is_lt());
    let mut by_end = tombstones.clone();
    tombstones.sort_by(|a, b| order.compare(a.0, b.0));
    by_end.sort_by(|a, b| order.compare(a.1, b.1));
    let mut cuts: Vec<&[u8]> = tombstones.iter().flat_map(|t| [t.0, t.1]).collect();
    cuts.sort_by(|a, b| order.compare(a, b));
    cuts.dedup_by(|a, b| order.equal(a, b));

    let (mut starting, mut ending) = (tombstones.iter().peekable(), by_end.iter().peekable());
    let mut inner = Inner::default();
    // Sequence numbers over the stretch, and of how many tombstones each is.
    let mut active: BTreeMap<SeqNo, usize> = BTreeMap::new();
    let mut seqs = Vec::new();
    for pair in cuts.windows(2) {
        while let Some((_, _, seq)) = ending.next_if(|t| order.compare(t.1, pair[0]).is_le()) {
            let count = active.get_mut(seq).expect("it starts before it ends");
            *count -= 1;
            if *count == 0 {
                active.remove(seq);
            }
        }
        while let Some((_, _, seq)) = starting.next_if(|t| order.equal(t.0, pair[0])) {
            *active.entry(*seq).or_default() += 1;
        }
        if !active.is_empty() {
            seqs.clear();
            pick(&active, &mut seqs);
            inner.push_or_extend(pair[0], pair[1], &seqs);
        }
    }
    inner.seqs.shrink_to_fit();
    inner.fragments.shrink_to_fit();
    Fragments::from_inner(inner)
}

impl Inner {
    fn push(&mut self, start: &[u8], end: &[u8], seqs: &[SeqNo]) {
        let at = self.seqs.len();
        self.seqs.extend_from_slice(seqs);
        self.heap_bytes += start.len() + end.len();
        let seqs = (at, self.seqs.len());
        self.fragments.push(Fragment { start: start.into(), end: end.into(), seqs });
    }

    /// As `push`, but what goes on where the last fragment ends, with the same
    /// sequence numbers, is part of it.
    fn push_or_extend(&mut self, start: &[u8], end: &[u8], seqs: &[SeqNo]) {
        if let Some(last) = self.fragments.last_mut()
            && *last.end == *start
            && self.seqs[last.seqs.0..] == *seqs
        {
            self.heap_bytes += end.len();
            self.heap_bytes -= last.end.len();
            last.end = end.into();
            return;
        }
        self.push(start, end, seqs);
    }

    fn get(&self, at: usize) -> Option<FragmentRef<'_>> {
        let f = self.fragments.get(at)?;
        let seqs = &self.seqs[f.seqs.0..f.seqs.1];
        Some(FragmentRef { start: &f.start, end: &f.end, seqs })
    }
}

/// Collects fragments that come in order, as a table writer is given them.
#[derive(Default)]
pub(crate) struct FragmentCollector {
    inner: Inner,
}

impl FragmentCollector {
    /// Adds one tombstone: the fragment of the last one with an older
    /// sequence number, or a fragment at or after the last one's end.
    ///
    /// # Errors
    /// `Corruption` if it is out of order.
    pub(crate) fn add(&mut self, order: &KeyOrder, t: &RangeTombstone) -> Result<()> {
        let bad = || Error::corruption("range tombstones were not given as ordered fragments");
        if !order.compare(&t.start, &t.end).is_lt() || t.seq > SEQ_MAX {
            return Err(bad());
        }
        if let Some(last) = self.inner.fragments.last_mut() {
            match order.compare(&last.end, &t.start) {
                Ordering::Less | Ordering::Equal => {}
                Ordering::Greater => {
                    let newest = self.inner.seqs.last().copied().unwrap_or(0);
                    let same = order.equal(&last.start, &t.start) && order.equal(&last.end, &t.end);
                    if !same || t.seq >= newest {
                        return Err(bad());
                    }
                    self.inner.seqs.push(t.seq);
                    last.seqs.1 += 1;
                    return Ok(());
                }
            }
        }
        self.inner.push(&t.start, &t.end, &[t.seq]);
        Ok(())
    }

    pub(crate) fn finish(self) -> Fragments {
        Fragments::from_inner(self.inner)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.inner.heap_bytes + self.inner.fragments.len() * (size_of::<Fragment>() + 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn t(start: &str, end: &str, seq: SeqNo) -> RangeTombstone {
        RangeTombstone { start: start.into(), end: end.into(), seq }
    }

    #[test]
    fn overlaps_are_cut_at_each_others_ends() {
        let order = KeyOrder::Bytewise;
        let f = Fragments::build(&[t("c", "g", 5), t("a", "e", 9), t("x", "x", 1)], &order);
        let text: Vec<String> = f
            .iter()
            .map(|f| {
                let key = |k: &[u8]| String::from_utf8_lossy(k).into_owned();
                format!("{}-{}:{:?}", key(f.start), key(f.end), f.seqs)
            })
            .collect();
        assert_eq!(text, ["a-c:[9]", "c-e:[9, 5]", "e-g:[5]"]);
        assert_eq!(f.newest_covering(&order, b"d", 8), Some(5));
        assert_eq!(f.newest_covering(&order, b"g", 99), None);
        let cut = f.truncated(&order, Some(b"b"), Some(b"d"));
        assert_eq!(cut, [t("b", "c", 9), t("c", "d", 9), t("c", "d", 5)]);
        assert!(Fragments::build(&[], &order).is_empty());
        assert_eq!(Fragments::empty().memory_bytes(), 0);
    }

    #[test]
    fn nested_tombstones_cost_what_snapshots_tell_apart() {
        let order = KeyOrder::Bytewise;
        let nested = Vec::from_iter((1..=100_000u32).map(|i| (i.to_be_bytes(), u64::from(i))));
        let all = || nested.iter().map(|(end, seq)| (&[][..], &end[..], *seq));
        let f = Fragments::newest_of_stripes(all(), &order, &[]);
        assert_eq!((f.len(), f.pairs()), (1, 1));
        // A key is under the tombstones of the numbers above it.
        let f = Fragments::newest_of_stripes(all(), &order, &[500, 70_000]);
        let seqs = Vec::from_iter(f.iter().map(|f| f.seqs.to_vec()));
        assert_eq!(seqs, [vec![100_000, 70_000, 500], vec![100_000, 70_000], vec![100_000]]);
    }

    proptest! {
        #[test]
        fn a_stripe_hides_what_all_its_tombstones_hide(
            list in prop::collection::vec((0u8..20, 0u8..20, 1u64..40), 0..30),
            mut snapshots in prop::collection::vec(0u64..42, 0..5),
        ) {
            let order = KeyOrder::Bytewise;
            snapshots.sort_unstable();
            let list = Vec::from_iter(list.into_iter().map(|(a, b, seq)| RangeTombstone {
                start: vec![a],
                end: vec![b],
                seq,
            }));
            let all = Fragments::build(&list, &order);
            let few = Fragments::newest_of_stripes(all.triples(), &order, &snapshots);
            for key in 0..20 {
                for bound in snapshots.iter().copied().chain([u64::MAX]) {
                    let of = |f: &Fragments| f.newest_covering(&order, &[key], bound);
                    prop_assert_eq!(of(&few), of(&all), "{} at {}", key, bound);
                }
            }
            let stripes = snapshots.len() as u64 + 1;
            prop_assert!(few.iter().all(|f| f.seqs.len() as u64 <= stripes));
        }

        #[test]
        fn fragments_answer_as_the_list_does(
            list in prop::collection::vec((0u8..30, 0u8..30, 1u64..20), 0..20),
            asked in 0u8..30, max_seq in 0u64..22,
        ) {
            let order = KeyOrder::Bytewise;
            let list: Vec<RangeTombstone> = list
                .into_iter()
                .map(|(a, b, seq)| RangeTombstone { start: vec![a], end: vec![b], seq })
                .collect();
            let f = Fragments::build(&list, &order);
            let expected = list
                .iter()
                .filter(|t| t.start[0] <= asked && asked < t.end[0] && t.seq <= max_seq)
                .map(|t| t.seq)
                .max();
            prop_assert_eq!(f.newest_covering(&order, &[asked], max_seq), expected);

            let mut bytes = Vec::new();
            f.encode(&mut bytes);
            let back = Fragments::decode(&bytes, &order).unwrap();
            prop_assert!(back.iter().eq(f.iter()));
            for cut in 0..bytes.len() {
                prop_assert!(Fragments::decode(&bytes[..cut], &order).is_err());
            }
            let mut collector = FragmentCollector::default();
            for t in f.truncated(&order, None, None) {
                collector.add(&order, &t).unwrap();
            }
            prop_assert!(collector.finish().iter().eq(f.iter()));
        }
    }
}
