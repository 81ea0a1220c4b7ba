//! The contents of snapshots and cursors when they were made, which they must show as long as they
//! are open (P4).
//!
//! Owns: those contents, and walking over them. Never does: read a database.

use super::workload::is_reverse;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use windrow_testkit::op::{Answer, Direction, Op, Pair, Span, Step};

/// A cursor's entries in its order, and its position.
struct Kept {
    reverse: bool,
    pairs: Vec<Pair>,
    on: Option<usize>,
}

/// Contents by the name of the snapshot or cursor.
#[derive(Default)]
pub(super) struct Moments {
    snapshots: BTreeMap<String, BTreeMap<String, Vec<Pair>>>,
    cursors: BTreeMap<String, Kept>,
}

/// Returns the scan that reads the entries that a cursor over `span` will show.
pub(super) fn scan_of(span: &Span) -> Op {
    Op::Scan { span: span.clone(), direction: Direction::Forward }
}

fn compare(reverse: bool, a: &[u8], b: &[u8]) -> Ordering {
    if reverse { b.cmp(a) } else { a.cmp(b) }
}

impl Kept {
    fn first_from(&self, key: &[u8]) -> usize {
        self.pairs.partition_point(|(k, _)| compare(self.reverse, k, key).is_lt())
    }

    fn step(&mut self, step: &Step) -> Option<Pair> {
        let to = match step {
            Step::First => Some(0),
            Step::Last => self.pairs.len().checked_sub(1),
            Step::Seek(key) => Some(self.first_from(key)),
            Step::SeekBefore(key) => self.first_from(key).checked_sub(1),
            Step::Next => self.on.map(|on| on + 1),
            Step::Prev => self.on.and_then(|on| on.checked_sub(1)),
        };
        self.on = to.filter(|&index| index < self.pairs.len());
        self.on.map(|index| self.pairs[index].clone())
    }
}

impl Moments {
    /// Records that a snapshot was taken of these contents.
    pub(super) fn snapshot(&mut self, name: &str, contents: Answer) {
        if let Answer::Dump(spaces) = contents {
            self.snapshots.insert(name.to_owned(), spaces.into_iter().collect());
        }
    }

    /// Records that a cursor was opened over these contents.
    pub(super) fn cursor(&mut self, name: &str, span: &Span, contents: Answer) {
        if let Answer::Pairs(pairs, None) = contents {
            let held = Kept { reverse: is_reverse(&span.keyspace), pairs, on: None };
            self.cursors.insert(name.to_owned(), held);
        }
    }

    /// Judges an answer. Returns whether it was known beforehand.
    ///
    /// # Errors
    /// The right answer.
    pub(super) fn judge(&mut self, op: &Op, answer: &Answer) -> Result<bool, Answer> {
        let Some(want) = self.expected(op) else { return Ok(false) };
        if want == *answer { Ok(true) } else { Err(want) }
    }

    fn expected(&mut self, op: &Op) -> Option<Answer> {
        match op {
            Op::Walk { cursor, steps } => {
                let held = self.cursors.get_mut(cursor)?;
                Some(Answer::Steps(steps.iter().map(|step| Ok(held.step(step))).collect()))
            }
            Op::Get { keyspace, at: Some(at), key } => {
                let pairs = self.snapshots.get(at)?.get(keyspace)?;
                let found = pairs.iter().find(|(k, _)| k == key);
                Some(Answer::Value(found.map(|(_, value)| value.clone())))
            }
            Op::Scan { span, direction } => self.scan(span, *direction),
            Op::CloseCursor { cursor } => {
                self.cursors.remove(cursor);
                None
            }
            Op::Release { name } => {
                self.snapshots.remove(name);
                None
            }
            _ => None,
        }
    }

    fn scan(&self, span: &Span, direction: Direction) -> Option<Answer> {
        let pairs = self.snapshots.get(span.at.as_ref()?)?.get(&span.keyspace)?;
        let reverse = is_reverse(&span.keyspace);
        let within = |(key, _): &&Pair| {
            span.from.as_ref().is_none_or(|from| compare(reverse, from, key).is_le())
                && span.to.as_ref().is_none_or(|to| compare(reverse, key, to).is_lt())
        };
        let mut pairs: Vec<Pair> = pairs.iter().filter(within).cloned().collect();
        match direction {
            Direction::Forward => {}
            Direction::Backward => pairs.reverse(),
            // The end that a pair comes from is compared by the lockstep.
            Direction::Zigzag => return None,
        }
        Some(Answer::Pairs(pairs, None))
    }
}
