//! Writes that are not in the database yet.
//!
//! Commands that arrive together are written together: each sees the writes of those before it, and
//! a row that several of them wrote is written once. Staged rows belong to one client, under the
//! locks of its keys.
//!
//! Owns: rows over those of the database, and the batch that they become. Never does: write it.

use super::element;
use super::space::{SPACES, Space, Spaces};
use crate::clock;
use std::collections::BTreeMap;
use std::ops::Bound;
use windrow::Batch;

/// The value of a row, and its expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    value: Vec<u8>,
    deadline_ms: Option<u64>,
}

/// The staged rows of one space. A row without a value is deleted.
#[derive(Debug, Default)]
struct OfSpace {
    rows: BTreeMap<Vec<u8>, Option<Row>>,
    /// Prefixes of rows that were deleted, before any that `rows` has.
    gone: Vec<Vec<u8>>,
}

/// Rows and deletes over those of the database.
#[derive(Debug, Default)]
pub(crate) struct StagedWrites {
    spaces: [OfSpace; SPACES.len()],
    bytes: usize,
}

impl StagedWrites {
    fn of(&self, space: Space) -> &OfSpace {
        &self.spaces[space as usize]
    }

    fn of_mut(&mut self, space: Space) -> &mut OfSpace {
        &mut self.spaces[space as usize]
    }

    /// Returns about how many bytes have been staged.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns a staged row: its value, or that it is deleted; `None` where the database decides.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Option<Option<&[u8]>> {
        match self.of(space).rows.get(key) {
            Some(row) => Some(row.as_ref().map(|row| &row.value[..])),
            None => self.hides(space, key).then_some(None),
        }
    }

    /// Returns whether older rows of that key are deleted.
    pub(crate) fn hides(&self, space: Space, key: &[u8]) -> bool {
        self.of(space).gone.iter().any(|prefix| key.starts_with(prefix))
    }

    /// Returns the prefixes of rows that are deleted.
    pub(crate) fn gone(&self, space: Space) -> &[Vec<u8>] {
        &self.of(space).gone
    }

    pub(crate) fn put(&mut self, space: Space, key: &[u8], value: &[u8], deadline_ms: Option<u64>) {
        self.bytes += key.len() + value.len() + 64;
        let row = Row { value: value.to_vec(), deadline_ms };
        self.of_mut(space).rows.insert(key.to_vec(), Some(row));
    }

    pub(crate) fn delete(&mut self, space: Space, key: &[u8]) {
        self.bytes += key.len() + 64;
        self.of_mut(space).rows.insert(key.to_vec(), None);
    }

    /// Deletes all rows that begin with `prefix`.
    pub(crate) fn delete_prefix(&mut self, space: Space, prefix: &[u8]) {
        self.bytes += prefix.len() + 64;
        let of_space = self.of_mut(space);
        of_space.rows.retain(|key, _| !key.starts_with(prefix));
        of_space.gone.push(prefix.to_vec());
    }

    /// Moves the rows that were staged later into these.
    pub(crate) fn absorb(&mut self, later: &mut StagedWrites) {
        for space in SPACES {
            let later = std::mem::take(later.of_mut(space));
            for prefix in later.gone {
                self.delete_prefix(space, &prefix);
            }
            self.of_mut(space).rows.extend(later.rows);
        }
        self.bytes += std::mem::take(&mut later.bytes);
    }

    /// Returns the staged rows of a range, in their order.
    pub(crate) fn range(
        &self,
        space: Space,
        from: &Bound<Vec<u8>>,
        to: &Bound<Vec<u8>>,
    ) -> impl Iterator<Item = (&Vec<u8>, Option<&[u8]>)> {
        let rows = &self.of(space).rows;
        let is_empty = match (from, to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (
                Bound::Included(from) | Bound::Excluded(from),
                Bound::Included(to) | Bound::Excluded(to),
            ) => from >= to,
            _ => false,
        };
        let range = (!is_empty && !rows.is_empty())
            .then(|| rows.range::<Vec<u8>, _>((from.as_ref(), to.as_ref())));
        range.into_iter().flatten().map(|(key, row)| (key, row.as_ref().map(|row| &row.value[..])))
    }

    /// Moves everything into `batch`.
    pub(crate) fn move_into(&mut self, spaces: &Spaces, batch: &mut Batch) {
        for space in SPACES {
            let (keyspace, staged) = (spaces.get(space), std::mem::take(self.of_mut(space)));
            for prefix in staged.gone {
                match prefix.is_empty() {
                    true => batch.delete_prefix(keyspace, b""),
                    false => batch.delete_range(keyspace, &prefix, element::end_of(&prefix)),
                }
            }
            for (key, row) in staged.rows {
                match row {
                    None => batch.delete(keyspace, key),
                    Some(Row { value, deadline_ms: None }) => batch.put(keyspace, key, value),
                    Some(Row { value, deadline_ms: Some(ms) }) => {
                        batch.put_until(keyspace, key, value, clock::at_ms(ms));
                    }
                }
            }
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(staged: &StagedWrites) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let all = staged.range(Space::Sets, &Bound::Unbounded, &Bound::Unbounded);
        all.map(|(key, value)| (text(key), value.map(text))).collect()
    }

    #[test]
    fn later_writes_are_over_earlier_ones() {
        let mut first = StagedWrites::default();
        first.put(Space::Sets, b"a1", b"old", None);
        first.put(Space::Sets, b"b1", b"old", None);
        let mut later = StagedWrites::default();
        later.put(Space::Sets, b"a2", b"lost", None);
        later.delete_prefix(Space::Sets, b"a");
        later.put(Space::Sets, b"a3", b"new", Some(7));
        later.delete(Space::Sets, b"b1");
        assert_eq!(later.get(Space::Sets, b"a1"), Some(None), "hidden");
        assert_eq!(later.get(Space::Sets, b"a3"), Some(Some(&b"new"[..])));
        assert_eq!(later.get(Space::Sets, b"c"), None, "the database knows");
        first.absorb(&mut later);
        assert!(later.is_empty() && !first.is_empty());
        let new = Some("new".to_owned());
        assert_eq!(rows(&first), [("a3".to_owned(), new), ("b1".to_owned(), None)]);
        assert!(first.hides(Space::Sets, b"a9") && !first.hides(Space::Hashes, b"a9"));
        let backwards = (Bound::Included(b"z".to_vec()), Bound::Excluded(b"a".to_vec()));
        assert_eq!(first.range(Space::Sets, &backwards.0, &backwards.1).count(), 0);
    }
}
