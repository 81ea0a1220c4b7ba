//! Writes that are not in the database yet.
//!
//! Commands that arrive together are written together: each sees the writes of those before it, and
//! a row that several of them wrote is written once. Staged rows belong to one client, under the
//! locks of its keys. Each row knows which command wrote it, and what it was before that command: so
//! one that fails leaves no trace, and one that succeeds costs nothing more.
//!
//! Owns: rows over those of the database, and the batch that they become. Never does: write it.

use super::element;
use super::space::{SPACES, Space, Spaces};
use crate::clock;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use windrow::Batch;

/// The value of a row, and its expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    value: Vec<u8>,
    deadline_ms: Option<u64>,
}

/// A staged row.
#[derive(Debug)]
struct Staged {
    /// `None`: it is deleted.
    row: Option<Row>,
    /// The number of the command that staged it.
    command: u32,
    /// The row that an earlier command had staged, if one had.
    before: Option<Option<Row>>,
}

impl Staged {
    /// Returns the row that earlier commands than `command` have staged, if any has.
    fn without(self, command: u32) -> Option<Staged> {
        if self.command < command {
            return Some(self);
        }
        Some(Staged { row: self.before?, command: command.saturating_sub(1), before: None })
    }
}

/// The staged rows of one space.
#[derive(Debug, Default)]
struct OfSpace {
    rows: BTreeMap<Vec<u8>, Staged>,
    /// Prefixes of rows that were deleted, before any that `rows` has.
    gone: Vec<Vec<u8>>,
}

/// The traces of the present command beyond the rows that it staged.
#[derive(Debug, Default)]
struct Undo {
    /// The bytes that were staged before it.
    bytes: usize,
    /// The space of each prefix that it deleted.
    gone: Vec<Space>,
    /// The staged rows that it deleted with a prefix.
    removed: Vec<(Space, Vec<u8>, Staged)>,
}

/// Rows and deletes over those of the database.
#[derive(Debug, Default)]
pub(crate) struct StagedWrites {
    spaces: [OfSpace; SPACES.len()],
    bytes: usize,
    /// The number of the present command.
    command: u32,
    undo: Undo,
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

    /// Returns about how many bytes the present command has staged.
    pub(crate) fn own_bytes(&self) -> usize {
        self.bytes - self.undo.bytes
    }

    /// Returns a staged row: its value, or that it is deleted; `None` where the database decides.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Option<Option<&[u8]>> {
        let of_space = self.of(space);
        if of_space.rows.is_empty() && of_space.gone.is_empty() {
            return None;
        }
        match of_space.rows.get(key) {
            Some(staged) => Some(staged.row.as_ref().map(|row| &row.value[..])),
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

    fn stage(&mut self, space: Space, key: Vec<u8>, row: Option<Row>) {
        let command = self.command;
        match self.of_mut(space).rows.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Staged { row, command, before: None });
            }
            Entry::Occupied(place) => {
                let staged = place.into_mut();
                let older = std::mem::replace(&mut staged.row, row);
                if staged.command < command {
                    (staged.command, staged.before) = (command, Some(older));
                }
            }
        }
    }

    pub(crate) fn put(
        &mut self,
        space: Space,
        key: Vec<u8>,
        value: Vec<u8>,
        deadline_ms: Option<u64>,
    ) {
        self.bytes += key.len() + value.len() + 64;
        self.stage(space, key, Some(Row { value, deadline_ms }));
    }

    /// Puts a row without an expiry over a staged one; returns whether there is one.
    pub(crate) fn replace(&mut self, space: Space, key: &[u8], value: &[u8]) -> bool {
        let command = self.command;
        let Some(staged) = self.of_mut(space).rows.get_mut(key) else { return false };
        match &mut staged.row {
            Some(row) if staged.command == command => {
                row.value.clear();
                row.value.extend_from_slice(value);
                row.deadline_ms = None;
            }
            row => {
                let older = row.replace(Row { value: value.to_vec(), deadline_ms: None });
                if staged.command < command {
                    (staged.command, staged.before) = (command, Some(older));
                }
            }
        }
        self.bytes += key.len() + value.len() + 64;
        true
    }

    pub(crate) fn delete(&mut self, space: Space, key: Vec<u8>) {
        self.bytes += key.len() + 64;
        self.stage(space, key, None);
    }

    /// Deletes all rows that begin with `prefix`.
    pub(crate) fn delete_prefix(&mut self, space: Space, prefix: Vec<u8>) {
        self.bytes += prefix.len() + 64;
        let of_space = &mut self.spaces[space as usize];
        let after =
            of_space.rows.range::<[u8], _>((Bound::Included(&prefix[..]), Bound::Unbounded));
        let keys: Vec<_> =
            after.map(|(key, _)| key).take_while(|key| key.starts_with(&prefix)).cloned().collect();
        for key in keys {
            if let Some((key, staged)) = of_space.rows.remove_entry(&key) {
                self.undo.removed.push((space, key, staged));
            }
        }
        self.undo.gone.push(space);
        of_space.gone.push(prefix);
    }

    // ---- commands

    /// Begins a command: [`StagedWrites::undo`] takes back what is staged from here on.
    pub(crate) fn begin(&mut self) {
        self.command += 1;
        self.undo.bytes = self.bytes;
        self.undo.gone.clear();
        self.undo.removed.clear();
    }

    /// Takes back what the present command has staged.
    pub(crate) fn undo(&mut self) {
        if self.own_bytes() > 0 {
            self.split_off();
        }
    }

    /// Takes out what the present command has staged, as writes over those that stay.
    pub(crate) fn split_off(&mut self) -> StagedWrites {
        let mut own = StagedWrites { bytes: self.own_bytes(), ..StagedWrites::default() };
        let command = self.command;
        for space in SPACES {
            let of_space = &mut self.spaces[space as usize];
            let rows = of_space.rows.iter().filter(|(_, staged)| staged.command == command);
            let keys: Vec<_> = rows.map(|(key, _)| key.clone()).collect();
            for key in keys {
                let Some(mut staged) = of_space.rows.remove(&key) else { continue };
                let row = staged.row.take();
                if let Some(before) = staged.without(command) {
                    of_space.rows.insert(key.clone(), before);
                }
                own.stage(space, key, row);
            }
        }
        for (space, key, staged) in self.undo.removed.drain(..) {
            if let Some(before) = staged.without(command) {
                self.spaces[space as usize].rows.insert(key, before);
            }
        }
        for space in self.undo.gone.drain(..).rev() {
            own.spaces[space as usize].gone.extend(self.spaces[space as usize].gone.pop());
        }
        own.spaces.iter_mut().for_each(|of_space| of_space.gone.reverse());
        self.bytes = self.undo.bytes;
        own
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
        range
            .into_iter()
            .flatten()
            .map(|(key, staged)| (key, staged.row.as_ref().map(|row| &row.value[..])))
    }

    /// Moves everything into `batch`.
    pub(crate) fn move_into(&mut self, spaces: &Spaces, batch: &mut Batch) {
        for space in SPACES {
            let of_space = self.of_mut(space);
            if of_space.rows.is_empty() && of_space.gone.is_empty() {
                continue;
            }
            let (keyspace, staged) = (spaces.get(space), std::mem::take(of_space));
            for prefix in staged.gone {
                match prefix.is_empty() {
                    true => batch.delete_prefix(keyspace, b""),
                    false => batch.delete_range(keyspace, &prefix, element::end_of(&prefix)),
                }
            }
            for (key, staged) in staged.rows {
                match staged.row {
                    None => batch.delete(keyspace, key),
                    Some(Row { value, deadline_ms: None }) => batch.put(keyspace, key, value),
                    Some(Row { value, deadline_ms: Some(ms) }) => {
                        batch.put_until(keyspace, key, value, clock::at_ms(ms));
                    }
                }
            }
        }
        self.bytes = 0;
        self.command = 0;
        self.undo = Undo::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown = (Vec<(String, Option<String>)>, Vec<String>);

    /// Returns the staged rows of sets, and the deleted prefixes.
    fn shown(staged: &StagedWrites) -> Shown {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let all = staged.range(Space::Sets, &Bound::Unbounded, &Bound::Unbounded);
        let rows = all.map(|(key, value)| (text(key), value.map(text))).collect();
        (rows, staged.gone(Space::Sets).iter().map(|prefix| text(prefix)).collect())
    }

    fn put(staged: &mut StagedWrites, key: &str, value: &str) {
        staged.put(Space::Sets, key.into(), value.into(), None);
    }

    /// Two commands: the second writes over rows of the first, and over its own.
    fn two_commands() -> (StagedWrites, Shown) {
        let mut staged = StagedWrites::default();
        staged.begin();
        put(&mut staged, "a1", "old");
        put(&mut staged, "b1", "old");
        staged.delete(Space::Sets, b"b2".to_vec());
        let before = shown(&staged);
        staged.begin();
        put(&mut staged, "a2", "lost");
        put(&mut staged, "a1", "lost");
        staged.delete_prefix(Space::Sets, b"a".to_vec());
        staged.put(Space::Sets, b"a3".to_vec(), b"newer".to_vec(), Some(7));
        assert!(staged.replace(Space::Sets, b"a3", b"new"), "over its own");
        assert!(!staged.replace(Space::Sets, b"a4", b"none"));
        put(&mut staged, "a1", "lost again");
        staged.delete_prefix(Space::Sets, b"a1".to_vec());
        assert!(staged.replace(Space::Sets, b"b1", b"lost"), "over another's");
        assert!(staged.replace(Space::Sets, b"b2", b"lost"), "over a deleted one");
        staged.delete(Space::Sets, b"b2".to_vec());
        staged.delete(Space::Sets, b"b1".to_vec());
        (staged, before)
    }

    #[test]
    fn later_writes_are_over_earlier_ones() {
        let (staged, _) = two_commands();
        assert_eq!(staged.get(Space::Sets, b"a1"), Some(None), "hidden");
        assert_eq!(staged.get(Space::Sets, b"a3"), Some(Some(&b"new"[..])));
        assert_eq!(staged.get(Space::Sets, b"c"), None, "the database knows");
        let (rows, gone) = shown(&staged);
        let new = Some("new".to_owned());
        assert_eq!(
            rows,
            [("a3".to_owned(), new), ("b1".to_owned(), None), ("b2".to_owned(), None)]
        );
        assert_eq!(gone, ["a", "a1"]);
        assert!(staged.hides(Space::Sets, b"a9") && !staged.hides(Space::Hashes, b"a9"));
        let backwards = (Bound::Included(b"z".to_vec()), Bound::Excluded(b"a".to_vec()));
        assert_eq!(staged.range(Space::Sets, &backwards.0, &backwards.1).count(), 0);
    }

    #[test]
    fn a_command_that_fails_leaves_no_trace() {
        let (mut staged, before) = two_commands();
        assert!(staged.own_bytes() > 0 && staged.own_bytes() < staged.bytes());
        staged.undo();
        assert_eq!(shown(&staged), before);
        assert_eq!(staged.own_bytes(), 0);
        // And the next one begins from there.
        staged.begin();
        put(&mut staged, "a1", "newer");
        staged.undo();
        assert_eq!(shown(&staged), before);
    }

    #[test]
    fn a_command_is_taken_out_of_those_before_it() {
        let (mut staged, before) = two_commands();
        let own = staged.split_off();
        assert_eq!(shown(&staged), before);
        let (rows, gone) = shown(&own);
        let new = Some("new".to_owned());
        let gone_rows = ["b1", "b2"].map(|key| (key.to_owned(), None));
        assert_eq!(rows, [&[("a3".to_owned(), new)], &gone_rows[..]].concat());
        assert_eq!(gone, ["a", "a1"]);
        assert!(!own.is_empty());
    }

    #[test]
    fn all_is_gone_once_it_is_in_a_batch() {
        let dir = tempfile::tempdir().unwrap();
        let spaces = Spaces::of(&windrow::Db::open(dir.path()).unwrap()).unwrap();
        let (mut staged, _) = two_commands();
        let mut batch = Batch::new();
        staged.move_into(&spaces, &mut batch);
        assert_eq!((batch.len(), staged.bytes()), (5, 0), "two ranges and three rows");
        assert_eq!(shown(&staged), Shown::default());
    }
}
