//! Consumer groups of a stream: how far each has read, and which entries are not acknowledged.
//!
//! Owns: their rows among those of the stream ([`super::stream`]): `g`, the length of the group's
//! name (u32, big-endian), the name, and then
//!
//! | behind it | value |
//! |---|---|
//! | nothing | the last identifier delivered, the number of entries up to it (i64, -1: unknown), the number pending |
//! | `c`, a consumer's name | milliseconds since 1970 when it was seen, the number of entries pending with it |
//! | `p`, an identifier | a pending entry: its delivery in ms since 1970, the deliveries so far, the consumer's name |
//! | `q`, length and name of a consumer, an identifier | nothing: the pending entries by consumer |
//!
//! Numbers in values are u64, little-endian. Never does: know a command.

use super::element;
use super::rows::Rows;
use super::space::Space;
use super::stream_id::Id;
use super::view::View;
use crate::fault::Outcome;
use std::collections::BTreeMap;
use std::ops::Bound;
use windrow::{Error, Result};

const GROUP: u8 = b'g';
const CONSUMER: u8 = b'c';
const PENDING: u8 = b'p';
const BY_CONSUMER: u8 = b'q';

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: Vec<u8>,
    /// The last identifier that was delivered to one of its consumers.
    pub(crate) last: Id,
    /// The number of the stream's entries up to it, if that is known.
    pub(crate) read: Option<u64>,
    /// The number of entries that were delivered and not acknowledged.
    pub(crate) pending: u64,
}

/// A consumer of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Consumer {
    pub(crate) seen_ms: u64,
    pub(crate) pending: u64,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) delivered_ms: u64,
    pub(crate) deliveries: u64,
    pub(crate) consumer: Vec<u8>,
}

fn corrupt() -> Error {
    Error::corruption(
        "a row of the keyspace redis.streams is none of a consumer group: another program wrote it, or a \
         newer version of the server; destroy the group, or delete the row with `windrow delete \
         --keyspace redis.streams`",
    )
}

/// Returns bytes with their length before them.
fn with_len(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&len.to_be_bytes()[..], bytes].concat()
}

/// Splits off bytes with their length before them; returns them and the rest.
fn split_len(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, behind) = bytes.split_at_checked(4)?;
    behind.split_at_checked(u32::from_be_bytes(len.try_into().ok()?) as usize)
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Returns the prefix of the rows of a group.
fn prefix(key: &[u8], group: &[u8]) -> Vec<u8> {
    [&element::row(key, &[GROUP])[..], &with_len(group)].concat()
}

/// Returns a row of a group.
fn row(key: &[u8], group: &[u8], mark: u8, rest: &[u8]) -> Vec<u8> {
    [&prefix(key, group)[..], &[mark], rest].concat()
}

fn by_consumer(key: &[u8], group: &[u8], consumer: &[u8], id: Id) -> Vec<u8> {
    row(key, group, BY_CONSUMER, &[&with_len(consumer)[..], &id.encode()].concat())
}

impl Group {
    pub(crate) fn new(name: &[u8], last: Id, read: Option<u64>) -> Group {
        Group { name: name.to_vec(), last, read, pending: 0 }
    }

    fn decode(name: &[u8], value: &[u8]) -> Result<Group> {
        let group = || {
            let (last, numbers) = value.split_at_checked(Id::BYTES)?;
            Some(Group {
                name: name.to_vec(),
                last: Id::decode(last)?,
                read: number(numbers, 0).filter(|read| *read != u64::MAX),
                pending: number(numbers, 8)?,
            })
        };
        (value.len() == Id::BYTES + 16).then(group).flatten().ok_or_else(corrupt)
    }

    /// Loads the group of that name, if the stream has one.
    ///
    /// # Errors
    /// Those of a read, here and below.
    pub(crate) fn load(view: &View<'_>, key: &[u8], name: &[u8]) -> Outcome<Option<Group>> {
        let value = view.row(Space::Streams, &prefix(key, name))?;
        Ok(value.map(|value| Group::decode(name, &value)).transpose()?)
    }

    pub(crate) fn save(&self, view: &mut View<'_>, key: &[u8]) -> Outcome {
        let read = self.read.unwrap_or(u64::MAX).to_le_bytes();
        let value = [&self.last.encode()[..], &read, &self.pending.to_le_bytes()].concat();
        Ok(view.put_row(Space::Streams, prefix(key, &self.name), value)?)
    }

    /// Deletes it and all its rows.
    pub(crate) fn delete(&self, view: &mut View<'_>, key: &[u8]) {
        view.delete_rows(Space::Streams, &prefix(key, &self.name));
    }

    /// Returns its consumers by name.
    pub(crate) fn consumers(
        &self,
        view: &View<'_>,
        key: &[u8],
    ) -> Outcome<Vec<(Vec<u8>, Consumer)>> {
        let begin = row(key, &self.name, CONSUMER, b"");
        let mut consumers = Vec::new();
        for row in view.gather(view.rows_of(Space::Streams, &begin)) {
            let (row, value) = row?;
            consumers.push((row[begin.len()..].to_vec(), Consumer::decode(&value)?));
        }
        Ok(consumers)
    }
}

/// Returns the groups of a stream.
///
/// # Errors
/// Those of a read.
pub(crate) fn groups(view: &View<'_>, key: &[u8]) -> Outcome<Vec<Group>> {
    let begin = element::row(key, &[GROUP]);
    let end = element::end_of(&begin);
    let (mut groups, mut from) = (Vec::new(), Bound::Included(begin.clone()));
    loop {
        // The first row of a group is its own; the others are skipped.
        let first = view.rows(Space::Streams, from, Bound::Excluded(end.clone())).next();
        let Some(first) = first.transpose()? else { return Ok(groups) };
        let (name, _) = split_len(&first.0[begin.len()..]).ok_or_else(corrupt)?;
        view.keep(name.len())?;
        groups.push(Group::decode(name, &first.1)?);
        from = Bound::Included(element::end_of(&prefix(key, name)));
    }
}

impl Consumer {
    fn decode(value: &[u8]) -> Result<Consumer> {
        let consumer = || Some(Consumer { seen_ms: number(value, 0)?, pending: number(value, 8)? });
        (value.len() == 16).then(consumer).flatten().ok_or_else(corrupt)
    }
}

impl Pending {
    fn decode(value: &[u8]) -> Result<Pending> {
        let pending = || {
            Some(Pending {
                delivered_ms: number(value, 0)?,
                deliveries: number(value, 8)?,
                consumer: value.get(16..)?.to_vec(),
            })
        };
        pending().ok_or_else(corrupt)
    }

    /// Returns the time since it was delivered.
    pub(crate) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.delivered_ms)
    }
}

/// Checks a row of a group that a client restores, after the stream's prefix.
///
/// # Errors
/// `Corruption`.
pub(crate) fn check(rest: &[u8], value: &[u8]) -> Result<()> {
    let (name, behind) = rest.strip_prefix(&[GROUP]).and_then(split_len).ok_or_else(corrupt)?;
    match behind {
        [] => Group::decode(name, value).map(drop),
        [CONSUMER, ..] => Consumer::decode(value).map(drop),
        [PENDING, id @ ..] if Id::decode(id).is_some() => Pending::decode(value).map(drop),
        [BY_CONSUMER, behind @ ..] => {
            let id = split_len(behind).and_then(|(_, id)| Id::decode(id));
            id.filter(|_| value.is_empty()).map(drop).ok_or_else(corrupt)
        }
        _ => Err(corrupt()),
    }
}

/// A group with the consumers that a command changes. It is saved at the end.
pub(crate) struct Delivery<'k> {
    key: &'k [u8],
    pub(crate) group: Group,
    consumers: BTreeMap<Vec<u8>, Consumer>,
}

impl<'k> Delivery<'k> {
    pub(crate) fn new(key: &'k [u8], group: Group) -> Delivery<'k> {
        Delivery { key, group, consumers: BTreeMap::new() }
    }

    fn consumer_row(&self, name: &[u8]) -> Vec<u8> {
        row(self.key, &self.group.name, CONSUMER, name)
    }

    /// Returns whether there is a consumer of that name.
    pub(crate) fn has_consumer(&self, view: &View<'_>, name: &[u8]) -> Outcome<bool> {
        let is_loaded = self.consumers.contains_key(name);
        Ok(is_loaded || view.has_row(Space::Streams, &self.consumer_row(name))?)
    }

    /// Returns a consumer, a new one if there is none.
    fn consumer(&mut self, view: &View<'_>, name: &[u8]) -> Outcome<&mut Consumer> {
        if !self.consumers.contains_key(name) {
            let value = view.row(Space::Streams, &self.consumer_row(name))?;
            let consumer = value.map(|value| Consumer::decode(&value)).transpose()?;
            self.consumers.insert(name.to_vec(), consumer.unwrap_or_default());
        }
        Ok(self.consumers.entry(name.to_vec()).or_default())
    }

    /// Notes a request of a consumer, which is made if there is none of that name.
    pub(crate) fn see(&mut self, view: &View<'_>, name: &[u8]) -> Outcome {
        let now_ms = view.now_ms();
        self.consumer(view, name)?.seen_ms = now_ms;
        Ok(())
    }

    /// Returns a pending entry.
    pub(crate) fn pending(&self, view: &View<'_>, id: Id) -> Outcome<Option<Pending>> {
        let row = row(self.key, &self.group.name, PENDING, &id.encode());
        let value = view.row(Space::Streams, &row)?;
        Ok(value.map(|value| Pending::decode(&value)).transpose()?)
    }

    /// Makes an entry pending with the consumer of `pending`, and no longer with another one.
    pub(crate) fn assign(&mut self, view: &mut View<'_>, id: Id, pending: &Pending) -> Outcome {
        let before = self.pending(view, id)?;
        if before.as_ref().is_none_or(|before| before.consumer != pending.consumer) {
            match before {
                Some(before) => self.forget(view, &before.consumer, id)?,
                None => self.group.pending += 1,
            }
            self.consumer(view, &pending.consumer)?.pending += 1;
            let row = by_consumer(self.key, &self.group.name, &pending.consumer, id);
            view.put_row(Space::Streams, row, b"")?;
        }
        let (delivered, times) =
            (pending.delivered_ms.to_le_bytes(), pending.deliveries.to_le_bytes());
        let value = [&delivered[..], &times, &pending.consumer].concat();
        let row = row(self.key, &self.group.name, PENDING, &id.encode());
        Ok(view.put_row(Space::Streams, row, value)?)
    }

    /// Removes an entry from the pending ones of a consumer.
    fn forget(&mut self, view: &mut View<'_>, consumer: &[u8], id: Id) -> Outcome {
        let of_consumer = self.consumer(view, consumer)?;
        of_consumer.pending = of_consumer.pending.saturating_sub(1);
        view.delete_row(Space::Streams, &by_consumer(self.key, &self.group.name, consumer, id));
        Ok(())
    }

    /// Removes a pending entry; returns whether it was pending.
    pub(crate) fn acknowledge(&mut self, view: &mut View<'_>, id: Id) -> Outcome<bool> {
        let Some(pending) = self.pending(view, id)? else { return Ok(false) };
        self.forget(view, &pending.consumer, id)?;
        view.delete_row(Space::Streams, &row(self.key, &self.group.name, PENDING, &id.encode()));
        self.group.pending = self.group.pending.saturating_sub(1);
        Ok(true)
    }

    /// Returns the identifiers of pending entries from `from` on, of one consumer or of all.
    pub(crate) fn pending_from(
        &self,
        view: &View<'_>,
        consumer: Option<&[u8]>,
        from: Id,
    ) -> PendingIds {
        let begin = match consumer {
            None => row(self.key, &self.group.name, PENDING, b""),
            Some(name) => row(self.key, &self.group.name, BY_CONSUMER, &with_len(name)),
        };
        let end = Bound::Excluded(element::end_of(&begin));
        let from = Bound::Included([&begin[..], &from.encode()].concat());
        PendingIds(view.rows(Space::Streams, from, end))
    }

    /// Deletes a consumer and its pending entries; returns the number of these.
    pub(crate) fn delete_consumer(&mut self, view: &mut View<'_>, name: &[u8]) -> Outcome<u64> {
        let mut deleted = 0;
        let mut ids = Vec::new();
        for id in self.pending_from(view, Some(name), Id::ZERO) {
            view.keep(Id::BYTES)?;
            ids.push(id?);
        }
        for id in ids {
            deleted += u64::from(self.acknowledge(view, id)?);
        }
        self.consumers.remove(name);
        view.delete_row(Space::Streams, &self.consumer_row(name));
        Ok(deleted)
    }

    /// Writes the group and the loaded consumers.
    pub(crate) fn save(self, view: &mut View<'_>) -> Outcome {
        for (name, consumer) in &self.consumers {
            let numbers = [consumer.seen_ms.to_le_bytes(), consumer.pending.to_le_bytes()];
            view.put_row(Space::Streams, self.consumer_row(name), numbers.concat())?;
        }
        view.store.watched.touch(self.key);
        self.group.save(view, self.key)
    }
}

/// Identifiers of pending entries.
pub(crate) struct PendingIds(Rows);

fn id_of(row: &[u8]) -> Result<Id> {
    let at = row.len().checked_sub(Id::BYTES).ok_or_else(corrupt)?;
    Id::decode(&row[at..]).ok_or_else(corrupt)
}

impl Iterator for PendingIds {
    type Item = Result<Id>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.and_then(|(row, _)| id_of(&row)))
    }
}

impl DoubleEndedIterator for PendingIds {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.0.next_back()?.and_then(|(row, _)| id_of(&row)))
    }
}
