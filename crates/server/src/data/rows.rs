//! The rows of a range: those of the database, and staged ones over them.
//!
//! Owns: both as one sequence, from either end. Never does: see rows that are staged later.

use super::space::Space;
use super::staged_writes::StagedWrites;
use std::collections::VecDeque;
use std::ops::Bound;
use windrow::{Iter, Keyspace, Result, Slice};

type Item = Result<(Slice, Slice)>;

/// Rows in their order, from either end.
pub(crate) struct Rows {
    rows: Iter,
    /// Rows of the database that were read and not returned, at both ends.
    front: Option<Item>,
    back: Option<Item>,
    /// Staged rows, later ones over earlier ones; a row without a value is deleted.
    staged: VecDeque<(Vec<u8>, Option<Vec<u8>>)>,
    /// Prefixes of the database's rows that are deleted.
    gone: Vec<Vec<u8>>,
}

impl Rows {
    /// Returns the rows of a range. Of `layers` the later ones are over the earlier ones.
    pub(crate) fn new(
        keyspace: &Keyspace,
        space: Space,
        (from, to): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        layers: &[&StagedWrites],
    ) -> Rows {
        let mut over = std::collections::BTreeMap::new();
        let mut gone = Vec::new();
        for layer in layers {
            for prefix in layer.gone(space) {
                over.retain(|key: &Vec<u8>, _| !key.starts_with(prefix));
                gone.push(prefix.clone());
            }
            for (key, value) in layer.range(space, &from, &to) {
                over.insert(key.clone(), value.map(<[u8]>::to_vec));
            }
        }
        Rows {
            rows: keyspace.range((from, to)),
            front: None,
            back: None,
            staged: over.into_iter().collect(),
            gone,
        }
    }

    fn is_plain(&self) -> bool {
        self.staged.is_empty()
            && self.gone.is_empty()
            && self.front.is_none()
            && self.back.is_none()
    }

    fn is_gone(&self, item: &Item) -> bool {
        let Ok((key, _)) = item else { return false };
        self.gone.iter().any(|prefix| key.starts_with(prefix))
    }

    /// Returns the next row of the database that is not deleted, without taking it.
    fn look_front(&mut self) -> Option<&Item> {
        while self.front.is_none() {
            let item = self.rows.next().or_else(|| self.back.take())?;
            if !self.is_gone(&item) {
                self.front = Some(item);
            }
        }
        self.front.as_ref()
    }

    fn look_back(&mut self) -> Option<&Item> {
        while self.back.is_none() {
            let item = self.rows.next_back().or_else(|| self.front.take())?;
            if !self.is_gone(&item) {
                self.back = Some(item);
            }
        }
        self.back.as_ref()
    }
}

/// The row that comes next of two, and whether both have the same key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextRow {
    Database,
    Staged,
    Both,
}

fn next_of(database: Option<&Item>, staged: Option<&Vec<u8>>, is_front: bool) -> Option<NextRow> {
    let order = match (database, staged) {
        (None, None) => return None,
        (Some(_), None) | (Some(Err(_)), _) => return Some(NextRow::Database),
        (None, Some(_)) => return Some(NextRow::Staged),
        (Some(Ok((key, _))), Some(staged)) => (**key).cmp(&staged[..]),
    };
    let order = if is_front { order } else { order.reverse() };
    Some(match order {
        std::cmp::Ordering::Less => NextRow::Database,
        std::cmp::Ordering::Equal => NextRow::Both,
        std::cmp::Ordering::Greater => NextRow::Staged,
    })
}

impl Iterator for Rows {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.is_plain() {
            return self.rows.next();
        }
        loop {
            let staged = self.staged.front().map(|(key, _)| key.clone());
            match next_of(self.look_front(), staged.as_ref(), true)? {
                NextRow::Database => return self.front.take(),
                next => {
                    if next == NextRow::Both {
                        self.front = None;
                    }
                    if let Some((key, Some(value))) = self.staged.pop_front() {
                        return Some(Ok((Slice::copy_from(&key), Slice::copy_from(&value))));
                    }
                }
            }
        }
    }
}

impl DoubleEndedIterator for Rows {
    fn next_back(&mut self) -> Option<Item> {
        if self.is_plain() {
            return self.rows.next_back();
        }
        loop {
            let staged = self.staged.back().map(|(key, _)| key.clone());
            match next_of(self.look_back(), staged.as_ref(), false)? {
                NextRow::Database => return self.back.take(),
                next => {
                    if next == NextRow::Both {
                        self.back = None;
                    }
                    if let Some((key, Some(value))) = self.staged.pop_back() {
                        return Some(Ok((Slice::copy_from(&key), Slice::copy_from(&value))));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::space::Spaces;
    use std::collections::BTreeMap;
    use windrow::Db;

    /// Takes rows from both ends in every way, over many layers, and compares them with a map.
    #[test]
    fn layers_are_one_sequence_from_either_end() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let spaces = Spaces::of(&db).unwrap();
        let keyspace = spaces.get(Space::Sets);
        let mut model = BTreeMap::new();
        for key in ["a1", "a3", "b1", "b2", "c1"] {
            keyspace.put(key, "db").unwrap();
            model.insert(key.to_owned(), "db".to_owned());
        }
        let (mut first, mut second) = (StagedWrites::default(), StagedWrites::default());
        for (layer, key) in [(&mut first, "a2"), (&mut second, "b3")] {
            layer.put(Space::Sets, key.as_bytes(), b"staged", None);
            model.insert(key.to_owned(), "staged".to_owned());
        }
        first.put(Space::Sets, b"b4", b"lost", None);
        first.delete(Space::Sets, b"c1");
        first.put(Space::Sets, b"a1", b"over", None);
        second.delete_prefix(Space::Sets, b"b");
        second.put(Space::Sets, b"b3", b"staged", None);
        model.insert("a1".to_owned(), "over".to_owned());
        model.retain(|key, _| !["b1", "b2", "c1"].contains(&key.as_str()));
        let expected: Vec<_> = model.into_iter().collect();
        for pattern in 0..1_u32 << (expected.len() + 1) {
            let range = (Bound::Unbounded, Bound::Unbounded);
            let mut rows = Rows::new(keyspace, Space::Sets, range, &[&first, &second]);
            let (mut begin, mut end) = (Vec::new(), Vec::new());
            for step in 0..=expected.len() {
                let from_back = pattern >> step & 1 == 1;
                let row = if from_back { rows.next_back() } else { rows.next() };
                let Some(row) = row else { break };
                let (key, value) = row.unwrap();
                let text = |slice: &Slice| String::from_utf8(slice.to_vec()).unwrap();
                let row = (text(&key), text(&value));
                if from_back { end.push(row) } else { begin.push(row) }
            }
            end.reverse();
            begin.extend(end);
            assert_eq!(begin, expected, "pattern {pattern:b}");
        }
    }
}
