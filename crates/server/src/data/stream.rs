//! Streams: entries by their identifiers.
//!
//! Owns: the rows of a stream but those of its groups ([`super::group`]), behind the prefix of its
//! key: nothing (the record: the last identifier, the greatest that was deleted, how many entries
//! were ever added, u64, little-endian), `e` and the identifier (an entry: its fields and values
//! one after the other, each behind its length, u32, little-endian). Of its head the number is that
//! of its entries and one more, for the record: a stream without entries still exists. Never does:
//! know a command.

use super::element;
use super::head::{Head, Kind};
use super::rows::Rows;
use super::space::Space;
use super::stream_id::Id;
use super::view::View;
use crate::fault::Outcome;
use std::cmp::Ordering;
use std::ops::{Bound, RangeInclusive};
use windrow::{Error, Result, Slice};

const ENTRY: u8 = b'e';
const RECORD_BYTES: usize = 2 * Id::BYTES + 8;

/// A stream, without its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    head: Head,
    /// The greatest identifier that an entry has had.
    pub(crate) last: Id,
    pub(crate) max_deleted: Id,
    /// The number of entries that were ever added.
    pub(crate) added: u64,
}

/// An entry: its identifier, and the bytes of its fields.
pub(crate) type Entry = (Id, Slice);

/// Returns the error of a row that no server wrote.
fn corrupt() -> Error {
    Error::corruption(
        "a row of the keyspace redis.streams is none of a stream: another program wrote it, or a newer \
         version of the server; delete it with `windrow delete --keyspace redis.streams`",
    )
}

/// Splits bytes into parts, each with its length before it.
fn split(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (len, behind) = bytes.split_at_checked(4)?;
        let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
        let (part, behind) = behind.split_at_checked(len)?;
        parts.push(part);
        bytes = behind;
    }
    Some(parts)
}

/// Returns the fields and values of an entry, one after the other.
///
/// # Errors
/// `Corruption`.
pub(crate) fn fields(entry: &[u8]) -> Result<Vec<&[u8]>> {
    split(entry).ok_or_else(corrupt)
}

/// Returns the key of an entry's row.
fn entry_row(key: &[u8], id: Id) -> Vec<u8> {
    element::row(key, &[&[ENTRY][..], &id.encode()].concat())
}

impl Stream {
    /// Makes a stream that has never had an entry.
    pub(crate) fn new() -> Stream {
        let head = Head { end: 1, ..Head::new(Kind::Stream) };
        Stream { head, last: Id::ZERO, max_deleted: Id::ZERO, added: 0 }
    }

    /// Returns the number of its entries.
    pub(crate) fn len(&self) -> u64 {
        self.head.len().saturating_sub(1)
    }

    /// Loads the stream of a key, if it has one.
    ///
    /// # Errors
    /// `WRONGTYPE`, and those of a read.
    pub(crate) fn load(view: &View<'_>, key: &[u8]) -> Outcome<Option<Stream>> {
        let Some(head) = view.collection(key, Kind::Stream)? else { return Ok(None) };
        let record = view.row(Space::Streams, &element::prefix(key))?.ok_or_else(corrupt)?;
        Ok(Some(Stream::decode(head, &record)?))
    }

    fn decode(head: Head, record: &[u8]) -> Result<Stream> {
        let id = |at: usize| Id::decode(&record[at..at + Id::BYTES]);
        let stream = || {
            let added = record.get(2 * Id::BYTES..RECORD_BYTES)?.try_into().ok()?;
            Some(Stream {
                head,
                last: id(0)?,
                max_deleted: id(Id::BYTES)?,
                added: u64::from_le_bytes(added),
            })
        };
        (record.len() == RECORD_BYTES).then(stream).flatten().ok_or_else(corrupt)
    }

    /// Loads the stream of a key for a write: a new one if there is none.
    ///
    /// # Errors
    /// As [`Stream::load`].
    pub(crate) fn load_to_write(view: &mut View<'_>, key: &[u8]) -> Outcome<Stream> {
        if let Some(stream) = Stream::load(view, key)? {
            return Ok(stream);
        }
        // If another stream has expired there, its rows are deleted.
        view.collection_to_write(key, Kind::Stream)?;
        Ok(Stream::new())
    }

    /// Writes the stream's record and head, but not its entries.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn save(&self, view: &mut View<'_>, key: &[u8]) -> Outcome {
        let added = self.added.to_le_bytes();
        let record = [&self.last.encode()[..], &self.max_deleted.encode(), &added].concat();
        view.put_row(Space::Streams, element::prefix(key), record)?;
        view.put_head(key, &self.head)
    }

    /// Adds an entry after all others.
    ///
    /// # Errors
    /// Those of a write.
    pub(crate) fn add(
        &mut self,
        view: &mut View<'_>,
        key: &[u8],
        id: Id,
        fields: &[&[u8]],
    ) -> Outcome {
        let mut entry = Vec::with_capacity(fields.iter().map(|field| field.len() + 4).sum());
        for field in fields {
            let len = u32::try_from(field.len()).unwrap_or(u32::MAX);
            entry.extend_from_slice(&len.to_le_bytes());
            entry.extend_from_slice(field);
        }
        view.put_row(Space::Streams, entry_row(key, id), entry)?;
        self.last = id;
        self.added = self.added.saturating_add(1);
        self.head.end += 1;
        Ok(())
    }

    /// Deletes an entry; returns whether it existed.
    ///
    /// # Errors
    /// Those of a read.
    pub(crate) fn delete(&mut self, view: &mut View<'_>, key: &[u8], id: Id) -> Outcome<bool> {
        let row = entry_row(key, id);
        if !view.has_row(Space::Streams, &row)? {
            return Ok(false);
        }
        view.delete_row(Space::Streams, &row);
        self.head.end = self.head.end.saturating_sub(1).max(1);
        Ok(true)
    }

    /// Returns whether the entry at `id`, or one after it, was deleted by itself.
    pub(crate) fn has_gap(&self, id: Id) -> bool {
        self.len() > 0 && self.max_deleted != Id::ZERO && id <= self.max_deleted
    }

    /// Returns the number of entries that were added up to `id`, if it can be known: gaps before it
    /// are not counted.
    ///
    /// # Errors
    /// Those of a read.
    pub(crate) fn read_up_to(&self, view: &View<'_>, key: &[u8], id: Id) -> Outcome<Option<u64>> {
        if self.added == 0 {
            return Ok(Some(0));
        }
        if id == self.last || (self.len() == 0 && id < self.last) {
            return Ok(Some(self.added));
        }
        if id > self.last {
            return Ok(None);
        }
        let first = entries(view, key, Id::ZERO..=Id::MAX).next().transpose()?;
        let first = first.map_or(Id::ZERO, |(first, _)| first);
        let before_first = self.added.saturating_sub(self.len());
        Ok(match id.cmp(&first) {
            _ if self.max_deleted != Id::ZERO && self.max_deleted >= first => None,
            Ordering::Less => Some(before_first),
            Ordering::Equal => Some(before_first + 1),
            Ordering::Greater => None,
        })
    }

    /// Returns the number of entries that a group with the last read entry `last` has still to
    /// read, if it can be known.
    ///
    /// # Errors
    /// Those of a read.
    pub(crate) fn lag(
        &self,
        view: &View<'_>,
        key: &[u8],
        last: Id,
        read: Option<u64>,
    ) -> Outcome<Option<u64>> {
        let read = match read {
            _ if self.added == 0 => Some(0),
            Some(read) if !self.has_gap(last) => Some(read),
            _ => self.read_up_to(view, key, last)?,
        };
        Ok(read.map(|read| self.added.saturating_sub(read)))
    }

    /// Deletes all entries.
    pub(crate) fn clear(&mut self, view: &mut View<'_>, key: &[u8]) {
        view.delete_rows(Space::Streams, &element::row(key, &[ENTRY]));
        self.head.end = 1;
    }
}

/// Returns an entry's fields, if it exists.
///
/// # Errors
/// Those of a read.
pub(crate) fn entry(view: &View<'_>, key: &[u8], id: Id) -> Outcome<Option<Slice>> {
    Ok(view.row(Space::Streams, &entry_row(key, id))?)
}

/// The entries of a range, from either end.
pub(crate) struct Entries(Rows);

/// Returns the entries with these identifiers.
pub(crate) fn entries(view: &View<'_>, key: &[u8], ids: RangeInclusive<Id>) -> Entries {
    let (from, to) = (entry_row(key, *ids.start()), entry_row(key, *ids.end()));
    // Bounds out of order are an empty range, which a store need not accept.
    let to = if from <= to { Bound::Included(to) } else { Bound::Excluded(from.clone()) };
    Entries(view.rows(Space::Streams, Bound::Included(from), to))
}

fn entry_of((row, fields): (Slice, Slice)) -> Result<Entry> {
    let id = row.len().checked_sub(Id::BYTES).and_then(|at| Id::decode(&row[at..]));
    Ok((id.ok_or_else(corrupt)?, fields))
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.and_then(entry_of))
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.0.next_back()?.and_then(entry_of))
    }
}

/// Restores a stream from the rows of `DUMP`.
///
/// # Errors
/// Rows that are none of a stream.
pub(crate) fn restore(view: &mut View<'_>, key: &[u8], rows: &[(&[u8], &[u8])]) -> Outcome {
    let mut stream = None;
    let mut entries = 0;
    for (rest, value) in rows {
        match rest {
            [] => stream = Some(Stream::decode(Stream::new().head, value)?),
            [ENTRY, id @ ..] => {
                Id::decode(id).ok_or_else(corrupt)?;
                fields(value)?;
                entries += 1;
            }
            rest => super::group::check(rest, value)?,
        }
        view.put_row(Space::Streams, element::row(key, rest), *value)?;
    }
    let mut stream = stream.ok_or_else(corrupt)?;
    stream.head.end = entries + 1;
    stream.save(view, key)
}
