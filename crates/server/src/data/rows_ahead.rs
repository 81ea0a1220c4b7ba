//! Rows that commands which have arrived are about to read or write: the memtables are searched for
//! all of them at once, which takes a fraction of the time of one search after the other.
//!
//! Owns: the keys of these rows. Never does: keep a row. Each command reads for itself, under the
//! locks of its keys.

use super::space::{SPACES, Space, Spaces};
use std::ops::Range;

/// Beyond this many bytes of keys no more rows are added.
const BYTES_MAX: usize = 64 << 10;

/// Keys of rows, by space.
#[derive(Debug, Default)]
pub(crate) struct RowsAhead {
    bytes: Vec<u8>,
    rows: Vec<(Space, Range<usize>)>,
}

impl RowsAhead {
    /// Adds a row. Its key is given in parts.
    fn add(&mut self, space: Space, parts: &[&[u8]]) {
        if self.rows.is_empty() {
            self.bytes.reserve(1 << 10);
            self.rows.reserve(32);
        }
        if self.bytes.len() < BYTES_MAX {
            let begin = self.bytes.len();
            parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
            self.rows.push((space, begin..self.bytes.len()));
        }
    }

    /// Adds the row of a string.
    pub(crate) fn add_string(&mut self, key: &[u8]) {
        self.add(Space::Strings, &[key]);
    }

    /// Adds the row of the head of `key`.
    pub(crate) fn add_head(&mut self, key: &[u8]) {
        self.add(Space::Heads, &[key]);
    }

    /// Adds a row of the collection `key`.
    pub(crate) fn add_element(&mut self, space: Space, key: &[u8], rest: &[u8]) {
        let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        self.add(space, &[&len.to_be_bytes(), key, rest]);
    }

    /// Searches for all rows, and forgets them.
    pub(crate) fn search(&mut self, spaces: &Spaces) {
        let mut keys = Vec::with_capacity(self.rows.len());
        for space in SPACES {
            let of_space = self.rows.iter().filter(|(other, _)| *other == space);
            keys.extend(of_space.map(|(_, range)| &self.bytes[range.clone()]));
            // A single one is found as fast where it is read.
            if keys.len() > 1 {
                spaces.get(space).prefetch(&keys);
            }
            keys.clear();
        }
        self.bytes.clear();
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::element;
    use super::*;

    #[test]
    fn keys_are_those_of_the_rows() {
        let mut rows = RowsAhead::default();
        rows.add_string(b"s");
        rows.add_head(b"h");
        rows.add_element(Space::Sets, b"key", b"member");
        let key = |place: usize| &rows.bytes[rows.rows[place].1.clone()];
        assert_eq!((key(0), key(1)), (&b"s"[..], &b"h"[..]));
        assert_eq!(key(2), element::row(b"key", b"member"));
    }

    #[test]
    fn keys_are_bounded() {
        let mut rows = RowsAhead::default();
        (0..10).for_each(|_| rows.add_string(&vec![b'a'; BYTES_MAX / 4]));
        assert_eq!(rows.rows.len(), 4);
    }
}
