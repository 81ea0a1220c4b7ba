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
    /// Staged rows; one without a value is deleted.
    staged: VecDeque<(Vec<u8>, Option<Vec<u8>>)>,
    /// Prefixes of the database's rows that are deleted.
    gone: Vec<Vec<u8>>,
}

impl Rows {
    /// Returns the rows of a range, with the staged ones over those of the database.
    pub(crate) fn new(
        keyspace: &Keyspace,
        space: Space,
        (from, to): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        staged: &StagedWrites,
    ) -> Rows {
        let over = staged.range(space, &from, &to);
        let over = over.map(|(key, value)| (key.clone(), value.map(<[u8]>::to_vec))).collect();
        Rows {
            rows: keyspace.range((from, to)),
            front: None,
            back: None,
            staged: over,
            gone: staged.gone(space).to_vec(),
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

    /// Takes rows from both ends in every way, over those of two commands, and compares them with a map.
    #[test]
    fn rows_are_one_sequence_from_either_end() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let spaces = Spaces::of(&db).unwrap();
        let keyspace = spaces.get(Space::Sets);
        let mut model = BTreeMap::new();
        for key in ["a1", "a3", "b1", "b2", "c1"] {
            keyspace.put(key, "db").unwrap();
            model.insert(key.to_owned(), "db".to_owned());
        }
        let mut staged = StagedWrites::default();
        let put = |staged: &mut StagedWrites, key: &str, value: &str| {
            staged.put(Space::Sets, key.into(), value.into(), None);
        };
        staged.begin();
        put(&mut staged, "b4", "lost");
        staged.delete(Space::Sets, b"c1".to_vec());
        put(&mut staged, "a1", "over");
        put(&mut staged, "a2", "staged");
        staged.begin();
        staged.delete_prefix(Space::Sets, b"b".to_vec());
        put(&mut staged, "b3", "staged");
        for key in ["a2", "b3"] {
            model.insert(key.to_owned(), "staged".to_owned());
        }
        model.insert("a1".to_owned(), "over".to_owned());
        model.retain(|key, _| !["b1", "b2", "c1"].contains(&key.as_str()));
        let expected: Vec<_> = model.into_iter().collect();
        for pattern in 0..1_u32 << (expected.len() + 1) {
            let range = (Bound::Unbounded, Bound::Unbounded);
            let mut rows = Rows::new(keyspace, Space::Sets, range, &staged);
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
