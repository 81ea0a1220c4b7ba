//! Tables that range tombstones hide whole: they go without being read.
//!
//! A table may go if at each key of its bounds a newer range tombstone lies over it that no
//! snapshot tells from the table's entries: a reader that sees an entry of it sees the tombstone
//! too. (RocksDB: `DeleteFilesInRange`; Pebble: delete-only compactions.) Several tombstones that
//! meet may cover a table together.
//!
//! Entries that the table's own tombstones hid stay hidden: the newer tombstone lies over those as
//! well. That one stays where it is for as long as a file outside of a merge lies under it (I6).
//!
//! A tombstone counts only if its own table is read before the one that it hides. Sequence
//! numbers alone would do (I3), but for those that merges have set to 0.
//!
//! Owns: which tables may go. Never does: read tombstones; the caller brings them.

use crate::decision::{Decision, Drop, Reason};
use crate::soundness::checked;
use crate::tree::{File, Part, Place};
use crate::view::View;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{KeyOrder, SeqNo, debug_invariant};

/// A range tombstone of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableTombstone<'a> {
    /// First key that it covers.
    pub start: &'a [u8],
    /// First key after those.
    pub end: &'a [u8],
    /// Its sequence number.
    pub seq: SeqNo,
    /// Where its table is.
    pub place: Place,
}

/// Keys over which one range tombstone of a stripe is the newest.
struct CoveredRange<'a> {
    start: &'a [u8],
    end: &'a [u8],
    seq: SeqNo,
    place: Place,
}

/// The range tombstones of a tree: the newest of each stripe over each key. A stripe is the
/// sequence numbers between two neighbouring snapshots.
pub struct Covers<'a> {
    order: KeyOrder,
    /// Sequence numbers that are read at, ascending.
    held: &'a [SeqNo],
    /// Disjoint and ascending.
    stripes: BTreeMap<usize, Vec<CoveredRange<'a>>>,
}

/// The tables that may go.
#[derive(Debug)]
pub struct Covered {
    /// The tables that may go now, as one drop.
    pub decision: Decision,
    /// A job has others: the caller must ask again when one has ended.
    pub is_in_the_way: bool,
}

impl<'a> Covers<'a> {
    /// Sorts these tombstones, while the snapshots at `held` (ascending) are there. O(n log n).
    pub fn new(
        order: &KeyOrder,
        held: &'a [SeqNo],
        tombstones: impl IntoIterator<Item = TableTombstone<'a>>,
    ) -> Covers<'a> {
        debug_assert!(held.is_sorted(), "snapshots are not in order: {held:?}");
        let mut by_stripe: BTreeMap<usize, Vec<TableTombstone<'a>>> = BTreeMap::new();
        for cover in tombstones {
            by_stripe.entry(stripe(held, cover.seq)).or_default().push(cover);
        }
        let stripes = by_stripe.into_iter().map(|(n, covers)| (n, newest_over(order, &covers)));
        Covers { order: order.clone(), held, stripes: stripes.collect() }
    }

    /// Returns the oldest of the tombstones that hide the file together, if they do.
    fn over(&self, file: &File, place: Place) -> Option<SeqNo> {
        // An entry whose number was set to 0 is seen by every snapshot, as those in the first
        // stripe are.
        let stretches = self.stripes.get(&stripe(self.held, file.seq_min))?;
        let (order, span) = (&self.order, file.span());
        let first = stretches.partition_point(|s| order.compare(s.end, span.lo).is_le());
        let mut oldest = SeqNo::MAX;
        let mut reached = span.lo;
        for (n, stretch) in stretches[first..].iter().enumerate() {
            let meets = match n {
                0 => order.compare(stretch.start, reached).is_le(),
                _ => order.equal(stretch.start, reached),
            };
            if !meets || stretch.seq <= file.seq_max || stretch.place >= place {
                return None;
            }
            oldest = oldest.min(stretch.seq);
            if span.ends_before(order, stretch.end) {
                return Some(oldest);
            }
            reached = stretch.end;
        }
        None
    }
}

/// Counts the snapshots below a sequence number: no snapshot tells two entries of a key apart that
/// have the same count.
fn stripe(held: &[SeqNo], seq: SeqNo) -> usize {
    held.partition_point(|&snapshot| snapshot < seq)
}

/// Returns the newest of the tombstones over each key.
fn newest_over<'a>(order: &KeyOrder, covers: &[TableTombstone<'a>]) -> Vec<CoveredRange<'a>> {
    let mut edges: Vec<(&'a [u8], bool, usize)> = Vec::with_capacity(covers.len() * 2);
    for (i, cover) in covers.iter().enumerate() {
        if order.compare(cover.start, cover.end).is_lt() {
            edges.extend([(cover.start, true, i), (cover.end, false, i)]);
        }
    }
    edges.sort_by(|a, b| order.compare(a.0, b.0));
    let mut stretches: Vec<CoveredRange<'a>> = Vec::new();
    let mut open: BTreeSet<(SeqNo, usize)> = BTreeSet::new();
    for (n, &(key, begins, i)) in edges.iter().enumerate() {
        match begins {
            true => open.insert((covers[i].seq, i)),
            false => open.remove(&(covers[i].seq, i)),
        };
        let Some(&(next, ..)) = edges.get(n + 1) else { break };
        if let Some(&(seq, i)) = open.last()
            && order.compare(key, next).is_lt()
        {
            stretches.push(CoveredRange { start: key, end: next, seq, place: covers[i].place });
        }
    }
    debug_assert!(open.len() <= 1, "a tombstone does not end");
    stretches
}

/// Returns all tables that are hidden whole, wherever they are.
pub fn pick(view: &View<'_>, covers: &Covers<'_>) -> Covered {
    let mut files: Vec<(u32, Part, Arc<File>)> = Vec::new();
    let (mut under, mut bytes, mut is_in_the_way) = (Vec::new(), 0u64, false);
    if view.busy.is_reshaping() {
        return Covered { decision: Decision::Idle, is_in_the_way: !covers.stripes.is_empty() };
    }
    for (level, part, file) in view.version.files() {
        let Some(seq) = covers.over(file, file.place(level, part)) else { continue };
        if view.busy.is_busy(file.number) {
            is_in_the_way = true;
            continue;
        }
        bytes = bytes.saturating_add(file.bytes);
        files.push((level, part, file.clone()));
        under.push(seq);
    }
    if files.is_empty() {
        return Covered { decision: Decision::Idle, is_in_the_way };
    }
    debug_invariant!(I6, under.len() == files.len(), "a table goes that nothing hides");
    let reason = Reason::Covered { files: files.len() as u32, bytes };
    let decision = checked(view, Decision::Drop(Drop { files, under, reason }));
    Covered { decision, is_in_the_way }
}
