//! Tests of the list by itself, the last one against writers and scans of a model.
//!
//! Owns: the cases and the model. Never does: read a table, or run two threads.

use super::{
    EdgeAt, GapSpan, KeyOrder, List, RANGES_MAX, Range, ReadPoint, SeqNo, UNUSED_CHANGES_MAX,
};
use crate::gaps::edge::Edge;
use std::collections::VecDeque;
use windrow_env::testing::Rng;

const ORDER: KeyOrder = KeyOrder::Bytewise;

fn edge(key: u8, after: bool) -> Edge {
    Edge { key: [key].into(), after }
}

/// From one key to another, both included.
fn span(from: u8, to: u8) -> GapSpan {
    GapSpan { start: Some(edge(from, false)), end: edge(to, true) }
}

fn point(seq: SeqNo) -> ReadPoint {
    ReadPoint { seq, installs: 0 }
}

fn add(list: &mut List, span: GapSpan, seq: SeqNo, last: SeqNo) {
    list.watch(span);
    list.list_watched(&ORDER, point(seq), Some(last));
}

fn gap_before(list: &List, key: u8, seq: SeqNo) -> Option<GapSpan> {
    list.gap_at(&ORDER, true, Some(EdgeAt::before(&[key])), point(seq)).cloned()
}

fn spans(list: &List) -> Vec<GapSpan> {
    list.ranges.iter().map(|range| range.span.clone()).collect()
}

#[test]
fn a_gap_is_met_at_its_near_end_and_within() {
    let mut list = List::default();
    add(&mut list, span(10, 20), 5, 5);
    for (key, forward, backward) in [
        (9, false, false),
        (10, true, false),
        (11, true, true),
        (20, true, true),
        (21, false, false),
    ] {
        let key = [key];
        let place = Some(EdgeAt::before(&key));
        let meets = |is_forward| list.gap_at(&ORDER, is_forward, place, point(5)).is_some();
        assert_eq!((meets(true), meets(false)), (forward, backward), "{key:?}");
    }
    let after_last = edge(20, true);
    assert!(list.gap_at(&ORDER, false, Some(after_last.at()), point(5)).is_some());
    assert!(list.gap_at(&ORDER, true, Some(after_last.at()), point(5)).is_none());
    assert!(list.gap_at(&ORDER, true, None, point(5)).is_none());
    add(&mut list, GapSpan { start: None, end: edge(9, true) }, 5, 5);
    let whole = list.gap_at(&ORDER, true, None, point(5)).unwrap();
    assert_eq!(*whole, GapSpan { start: None, end: edge(9, true) });
}

#[test]
fn a_reader_of_before_uses_no_gap() {
    let mut list = List::default();
    let found = ReadPoint { seq: 5, installs: 3 };
    list.watch(span(10, 20));
    list.list_watched(&ORDER, found, Some(5));
    let at = |seq, installs| {
        let reader = ReadPoint { seq, installs };
        list.gap_at(&ORDER, true, Some(EdgeAt::before(&[10])), reader).is_some()
    };
    assert!(at(5, 3) && at(6, 4));
    assert!(!at(4, 3), "an older sequence number");
    assert!(!at(6, 2), "an older view");
}

#[test]
fn what_is_pending_becomes_a_gap_by_a_second_scan() {
    let mut list = List::default();
    add(&mut list, span(10, 20), 5, 8);
    assert_eq!(gap_before(&list, 10, 9), None);
    add(&mut list, span(12, 30), 7, 9);
    assert_eq!(gap_before(&list, 12, 9), None, "it has not seen 8");
    assert_eq!(spans(&list), [span(10, 20)]);
    add(&mut list, span(12, 30), 8, 9);
    assert_eq!(gap_before(&list, 12, 8), Some(span(12, 20)));
    assert_eq!(gap_before(&list, 12, 7), None);
}

#[test]
fn gaps_that_touch_are_one() {
    let mut list = List::default();
    add(&mut list, span(10, 12), 5, 5);
    let next = GapSpan { start: Some(edge(12, true)), end: edge(20, true) };
    add(&mut list, next, 6, 7);
    assert_eq!(list.ranges.len(), 2);
    // The second one is pending, and is confirmed.
    add(&mut list, span(13, 20), 7, 8);
    assert_eq!(list.ranges.len(), 2, "nothing is known of what is between 12 and 13");
    let next = GapSpan { start: Some(edge(12, true)), end: edge(13, true) };
    add(&mut list, next, 8, 8);
    assert_eq!(spans(&list), [span(10, 20)]);
    assert_eq!(gap_before(&list, 10, 7), None);
}

#[test]
fn a_put_cuts_a_range() {
    let mut list = List::default();
    add(&mut list, span(10, 20), 5, 5);
    for key in [9, 21] {
        assert!(!list.holds(&ORDER, &[key]));
        list.cut(&ORDER, &[key], 512);
    }
    assert_eq!(spans(&list), [span(10, 20)]);
    list.cut(&ORDER, &[15], 512);
    let left = GapSpan { start: Some(edge(10, false)), end: edge(15, false) };
    let right = GapSpan { start: Some(edge(15, true)), end: edge(20, true) };
    assert_eq!(spans(&list), [left, right.clone()]);
    assert!(list.holds(&ORDER, &[14]) && list.holds(&ORDER, &[16]));
    assert!(!list.holds(&ORDER, &[15]));
    // All places between 10 and 15: no single byte, but longer keys.
    for key in 10..15 {
        list.cut(&ORDER, &[key], 512);
    }
    assert!(list.holds(&ORDER, &[14, 0]));
    // A key that is too long to be an edge.
    list.cut(&ORDER, &[16, 0, 0], 2);
    assert!(!list.holds(&ORDER, &[17]), "{right:?} is gone as a whole");
}

#[test]
fn a_range_that_is_watched_is_held() {
    let mut list = List::default();
    assert!(list.is_empty());
    list.watch(span(10, 20));
    assert!(list.holds(&ORDER, &[10]) && !list.holds(&ORDER, &[21]) && !list.is_empty());
    assert_eq!(gap_before(&list, 10, u64::MAX), None);
    list.list_watched(&ORDER, point(1), None);
    assert!(list.is_empty());
}

#[test]
fn the_list_is_bounded_and_keeps_what_is_used() {
    let mut list = List::default();
    for n in 0..100 {
        let at = n * 2;
        add(&mut list, span(at, at), 5, 5);
        assert!(gap_before(&list, 0, 5).is_some(), "after {n}");
        assert!(list.ranges.len() <= RANGES_MAX);
    }
    assert_eq!(list.ranges.len(), RANGES_MAX);
    assert!(gap_before(&list, 198, 5).is_some());
}

#[test]
fn keys_that_come_back_one_by_one_end_a_range() {
    let mut list = List::default();
    add(&mut list, span(10, 200), 5, 5);
    let mut key = 10;
    while list.holds(&ORDER, &[199]) {
        list.cut(&ORDER, &[key], 512);
        key += 1;
    }
    assert!(u64::from(key - 10) <= UNUSED_CHANGES_MAX + 1);
    // Not while a scan uses it.
    add(&mut list, span(10, 200), 5, 5);
    for key in 10..150 {
        list.cut(&ORDER, &[key], 512);
        assert!(gap_before(&list, 180, 5).is_some());
    }
}

/// A put or delete that has its sequence number.
struct Write {
    seq: SeqNo,
    key: u8,
    is_put: bool,
    /// Whether it will look at the list: it had its number after the list was there.
    looks: bool,
}

/// Keys, the writes to each, and the list as the protocol keeps it.
#[derive(Default)]
struct Model {
    list: List,
    given: SeqNo,
    visible: SeqNo,
    in_flight: VecDeque<Write>,
    published: Vec<Write>,
    used: u64,
}

const KEYS: u8 = 24;

impl Model {
    fn is_there(&self, key: u8, seq: SeqNo) -> bool {
        let newest = self.published.iter().rev().find(|w| w.key == key && w.seq <= seq);
        newest.is_some_and(|write| write.is_put)
    }

    fn give(&mut self, rng: &mut Rng) {
        self.given += 1;
        let (key, is_put) = (rng.below(u64::from(KEYS)) as u8, rng.below(4) == 0);
        let looks = !self.list.is_empty();
        self.in_flight.push_back(Write { seq: self.given, key, is_put, looks });
    }

    fn publish(&mut self) {
        let Some(write) = self.in_flight.pop_front() else { return };
        if write.looks && write.is_put {
            self.list.cut(&ORDER, &[write.key], 512);
        }
        self.visible = write.seq;
        self.published.push(write);
    }

    /// A scan finds a stretch of absent keys at a sequence number.
    fn record(&mut self, rng: &mut Rng) {
        let seq = self.visible - rng.below(4).min(self.visible);
        let from = rng.below(u64::from(KEYS)) as u8;
        let to = (from..KEYS).take_while(|&key| !self.is_there(key, seq)).last();
        if let Some(to) = to {
            add(&mut self.list, span(from, to), seq, self.given);
        }
    }

    /// No reader may go over a key that it sees.
    fn check(&mut self, rng: &mut Rng) {
        let seq = self.visible - rng.below(6).min(self.visible);
        for (key, is_forward) in (0..KEYS).flat_map(|key| [(key, true), (key, false)]) {
            let place = [key];
            let place = Some(EdgeAt::before(&place));
            let Some(gap) = self.list.gap_at(&ORDER, is_forward, place, point(seq)) else {
                continue;
            };
            self.used += 1;
            let seen = (0..KEYS).find(|&key| gap.holds(&ORDER, &[key]) && self.is_there(key, seq));
            assert_eq!(seen, None, "at {seq} of {}: {gap:?}", self.visible);
        }
        let ranges = &self.list.ranges;
        let ascend = |pair: &[Range]| pair[0].span.end_to(&ORDER, pair[1].span.start_place());
        assert!(ranges.windows(2).all(|pair| ascend(pair).is_le()), "{ranges:?}");
        assert!(ranges.iter().all(|range| !range.span.is_empty(&ORDER)), "{ranges:?}");
    }
}

#[test]
fn no_reader_goes_over_what_it_sees() {
    let mut used = 0;
    for seed in 0..300 {
        let (mut rng, mut model) = (Rng::new(seed), Model::default());
        for _ in 0..300 {
            match rng.below(8) {
                0..=2 => model.give(&mut rng),
                3..=5 => model.publish(),
                6 => model.record(&mut rng),
                _ => model.check(&mut rng),
            }
        }
        used += model.used;
    }
    assert!(used > 10_000, "gaps were used {used} times only");
}
