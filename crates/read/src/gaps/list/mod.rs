//! The ranges of a keyspace that scans found empty: a list of a bounded size, as a value. [`super`]
//! says when a range is known to be empty, and for which readers.
//!
//! Owns: the ranges. Never does: wait, or ask for a sequence number.

use crate::gaps::edge::{Edge, EdgeAt};
use std::cmp::Ordering as Order;
use windrow_base::{KeyOrder, SeqNo};
use windrow_env::sync::atomic::{AtomicU64, Ordering};

/// Most ranges of a keyspace.
pub(super) const RANGES_MAX: usize = 16;

/// Changes of the list after which a range that no scan has used meanwhile is let go as a whole if
/// a key in it is put: keys that come back one by one must not cost a change of the list each.
const UNUSED_CHANGES_MAX: u64 = 16;

/// The point at which a scan reads: a sequence number, and the number of versions of the tree that
/// were installed before its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    pub seq: SeqNo,
    pub installs: u64,
}

impl ReadPoint {
    fn max(self, other: ReadPoint) -> ReadPoint {
        ReadPoint { seq: self.seq.max(other.seq), installs: self.installs.max(other.installs) }
    }

    /// Whether a reader at this point may use a range found at `found`.
    fn is_from(self, found: ReadPoint) -> bool {
        found.seq <= self.seq && found.installs <= self.installs
    }
}

/// A span of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapSpan {
    /// `None`: before all keys.
    pub start: Option<Edge>,
    pub end: Edge,
}

/// `None` is the place before all keys.
type EdgePosition<'a> = Option<EdgeAt<'a>>;

impl GapSpan {
    fn start_place(&self) -> EdgePosition<'_> {
        self.start.as_ref().map(Edge::at)
    }

    /// Compares its start with a place.
    fn start_to(&self, order: &KeyOrder, place: EdgePosition<'_>) -> Order {
        match (&self.start, place) {
            (None, None) => Order::Equal,
            (None, Some(_)) => Order::Less,
            (Some(_), None) => Order::Greater,
            (Some(start), Some(place)) => start.compare(order, place),
        }
    }

    /// Compares its end with a place.
    fn end_to(&self, order: &KeyOrder, place: EdgePosition<'_>) -> Order {
        place.map_or(Order::Greater, |place| self.end.compare(order, place))
    }

    /// Whether there is no place between its ends.
    pub(super) fn is_empty(&self, order: &KeyOrder) -> bool {
        self.end_to(order, self.start_place()).is_le()
    }

    fn holds(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let place = Some(EdgeAt::before(user_key));
        self.start_to(order, place).is_le() && self.end_to(order, place).is_gt()
    }

    fn overlaps(&self, order: &KeyOrder, other: &GapSpan) -> bool {
        self.start_to(order, Some(other.end.at())).is_lt()
            && self.end_to(order, other.start_place()).is_gt()
    }

    /// Whether it overlaps with another one, or they have an end in common.
    fn touches(&self, order: &KeyOrder, other: &GapSpan) -> bool {
        self.start_to(order, Some(other.end.at())).is_le()
            && self.end_to(order, other.start_place()).is_ge()
    }

    /// The part that it shares with a span that it overlaps.
    fn and(&self, order: &KeyOrder, other: &GapSpan) -> GapSpan {
        let starts_last = self.start_to(order, other.start_place()).is_ge();
        let ends_first = self.end_to(order, Some(other.end.at())).is_le();
        GapSpan {
            start: if starts_last { &self.start } else { &other.start }.clone(),
            end: if ends_first { &self.end } else { &other.end }.clone(),
        }
    }

    /// Its union with a span that it overlaps or touches.
    fn or(self, order: &KeyOrder, other: GapSpan) -> GapSpan {
        let starts_first = self.start_to(order, other.start_place()).is_le();
        let ends_last = self.end_to(order, Some(other.end.at())).is_ge();
        GapSpan {
            start: if starts_first { self.start } else { other.start },
            end: if ends_last { self.end } else { other.end },
        }
    }

    /// Bytes of the longer of its keys.
    pub(super) fn edge_bytes_max(&self) -> usize {
        self.start.as_ref().map_or(0, |start| start.key.len()).max(self.end.key.len())
    }

    fn bytes(&self) -> usize {
        self.start.as_ref().map_or(0, Edge::bytes) + self.end.bytes()
    }
}

/// The state of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeState {
    /// Readers from this point on see no key in it: it is a gap.
    Empty(ReadPoint),
    /// It is watched for writes above this sequence number.
    Pending(SeqNo),
}

#[derive(Debug)]
struct Range {
    span: GapSpan,
    known: RangeState,
    /// The list's turn when a scan last used it.
    used: AtomicU64,
}

impl Clone for Range {
    fn clone(&self) -> Range {
        let used = AtomicU64::new(self.used.load(Ordering::Relaxed));
        Range { span: self.span.clone(), known: self.known, used }
    }
}

impl Range {
    fn new(span: GapSpan, known: RangeState, turn: u64) -> Range {
        Range { span, known, used: AtomicU64::new(turn) }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// The ranges, ascending and disjoint.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    ranges: Vec<Range>,
    /// A range that is about to be listed.
    watched: Option<GapSpan>,
    /// How often the list was changed.
    turn: u64,
}

impl List {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.watched.is_none()
    }

    /// Memory of the list, without the watched range.
    pub(super) fn bytes(&self) -> usize {
        let keys = self.ranges.iter().map(|range| range.span.bytes()).sum::<usize>();
        size_of::<List>() + self.ranges.capacity() * size_of::<Range>() + keys
    }

    /// Returns the gap that a reader meets at a place in its direction.
    pub(super) fn gap_at(
        &self,
        order: &KeyOrder,
        is_forward: bool,
        place: EdgePosition<'_>,
        reader: ReadPoint,
    ) -> Option<&GapSpan> {
        // Whether a range that ends, or begins, here is ahead.
        let is_ahead = |side: Order, if_here: bool| match side {
            Order::Less => false,
            Order::Equal => if_here,
            Order::Greater => true,
        };
        let is_past = |range: &Range| !is_ahead(range.span.end_to(order, place), !is_forward);
        let range = self.ranges.get(self.ranges.partition_point(is_past))?;
        if is_ahead(range.span.start_to(order, place), !is_forward) {
            return None;
        }
        match range.known {
            RangeState::Empty(found) if reader.is_from(found) => {}
            _ => return None,
        }
        // Readers share it: it is written once in each turn.
        if range.used() != self.turn {
            range.used.store(self.turn, Ordering::Relaxed);
        }
        Some(&range.span)
    }

    /// The first range that ends after a place.
    fn first_beyond(&self, order: &KeyOrder, place: EdgePosition<'_>) -> usize {
        self.ranges.partition_point(|range| range.span.end_to(order, place).is_le())
    }

    /// Whether a key is in any range, or in the one that is about to be listed.
    pub(super) fn holds(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let at = self.first_beyond(order, Some(EdgeAt::before(user_key)));
        let beyond = self.ranges.get(at).map(|range| &range.span);
        beyond.into_iter().chain(&self.watched).any(|span| span.holds(order, user_key))
    }

    /// Cuts a key out of the range that it is in.
    pub(super) fn cut(&mut self, order: &KeyOrder, user_key: &[u8], edge_bytes_max: usize) {
        let before = EdgeAt::before(user_key);
        let at = self.first_beyond(order, Some(before));
        if !self.ranges.get(at).is_some_and(|range| range.span.holds(order, user_key)) {
            return;
        }
        self.turn += 1;
        let Range { span, known, used } = self.ranges.remove(at);
        let used = used.load(Ordering::Relaxed);
        if user_key.len() > edge_bytes_max || self.turn - used > UNUSED_CHANGES_MAX {
            return;
        }
        let before = before.to_edge();
        let after = Edge { after: true, ..before.clone() };
        let right = GapSpan { start: Some(after), end: span.end };
        let left = GapSpan { start: span.start, end: before };
        let parts = [left, right].into_iter().filter(|span| !span.is_empty(order));
        let parts: Vec<Range> = parts.map(|span| Range::new(span, known, used)).collect();
        self.ranges.splice(at..at, parts);
        self.limit();
    }

    /// Lets go of the range that was used least recently.
    fn limit(&mut self) {
        while self.ranges.len() > RANGES_MAX {
            let oldest = (0..self.ranges.len()).min_by_key(|&at| self.ranges[at].used());
            self.ranges.remove(oldest.unwrap_or(0));
        }
    }

    /// Has [`List::holds`] know of a span from here on.
    pub(super) fn watch(&mut self, span: GapSpan) {
        self.watched = Some(span);
    }

    /// Lists the span that was watched, which was found empty at `found`. `last` is the last
    /// sequence number that was given out, asked for since the span is watched. If that is not
    /// known, the span is let go.
    pub(super) fn list_watched(&mut self, order: &KeyOrder, found: ReadPoint, last: Option<SeqNo>) {
        let (Some(span), Some(last)) = (self.watched.take(), last) else { return };
        self.turn += 1;
        if last <= found.seq {
            self.add_gap(order, span, found);
        } else if !self.confirm(order, &span, found) {
            self.add_pending(order, span, last);
        }
        self.limit();
    }

    /// Adds a gap, joined with those that it overlaps or touches, in place of the ranges that are
    /// pending there.
    fn add_gap(&mut self, order: &KeyOrder, span: GapSpan, found: ReadPoint) {
        let is_near = |range: &Range| match range.known {
            RangeState::Empty(_) => range.span.touches(order, &span),
            RangeState::Pending(_) => range.span.overlaps(order, &span),
        };
        let ranges = std::mem::take(&mut self.ranges);
        let (near, others): (Vec<Range>, Vec<Range>) = ranges.into_iter().partition(is_near);
        self.ranges = others;
        let (mut span, mut found) = (span, found);
        for range in near {
            if let RangeState::Empty(before) = range.known {
                (span, found) = (span.or(order, range.span), found.max(before));
            }
        }
        let at = self.first_beyond(order, span.start_place());
        self.ranges.insert(at, Range::new(span, RangeState::Empty(found), self.turn));
    }

    /// Adds a pending range, unless it overlaps with another one.
    fn add_pending(&mut self, order: &KeyOrder, span: GapSpan, last: SeqNo) {
        let at = self.first_beyond(order, span.start_place());
        if self.ranges.get(at).is_none_or(|next| !next.span.overlaps(order, &span)) {
            self.ranges.insert(at, Range::new(span, RangeState::Pending(last), self.turn));
        }
    }

    /// Makes gaps of the parts of pending ranges that a scan found empty, if the scan saw all
    /// writes that came before the watch. Returns whether there was any.
    fn confirm(&mut self, order: &KeyOrder, seen: &GapSpan, found: ReadPoint) -> bool {
        let is_confirmed = |range: &Range| match range.known {
            RangeState::Pending(last) => last <= found.seq && range.span.overlaps(order, seen),
            RangeState::Empty(_) => false,
        };
        let mut any = false;
        while let Some(at) = self.ranges.iter().position(is_confirmed) {
            let Range { span, .. } = self.ranges.remove(at);
            self.add_gap(order, span.and(order, seen), found);
            any = true;
        }
        any
    }
}

#[cfg(test)]
mod tests;
