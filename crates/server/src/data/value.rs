//! Values: strings and collections, over their rows.
//!
//! Owns: the rows of a value, and the rule that a key has one value. Never does: check the rights
//! of a client.

use super::element;
use super::head::{Head, Kind};
use super::space::Space;
use super::view::View;
use crate::fault::{Outcome, WRONG_TYPE, fail};
use windrow::Slice;

/// Collections of up to this number of elements are deleted row by row: a range tombstone costs
/// more.
const ROWS_DELETED_ONE_BY_ONE: u64 = 32;

/// The value of a key.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A string, and its deadline.
    String(Slice, Option<u64>),
    /// A collection.
    Collection(Head),
}

impl Value {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Value::String(..) => Kind::String,
            Value::Collection(head) => head.kind,
        }
    }

    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match self {
            Value::String(_, deadline_ms) => *deadline_ms,
            Value::Collection(head) => head.deadline_ms,
        }
    }
}

/// Returns the spaces that elements of a collection are in.
pub(crate) fn spaces_of(kind: Kind) -> &'static [Space] {
    match kind {
        Kind::String => &[],
        Kind::Hash => &[Space::Hashes],
        Kind::Set => &[Space::Sets],
        Kind::List => &[Space::Lists],
        Kind::SortedSet => &[Space::Members, Space::Scores],
        Kind::Stream => &[Space::Streams],
    }
}

/// Returns a row among the deadlines.
pub(crate) fn deadline_row(deadline_ms: u64, key: &[u8]) -> Vec<u8> {
    [&deadline_ms.to_be_bytes(), key].concat()
}

impl View<'_> {
    /// Returns the head of a key, past its deadline or not.
    fn head(&self, key: &[u8]) -> Outcome<Option<Head>> {
        let head = self.with_row(Space::Heads, key, |row| row.map(Head::decode))?;
        Ok(head.transpose()?)
    }

    /// Returns the value of a key.
    pub(crate) fn value(&self, key: &[u8]) -> Outcome<Option<Value>> {
        let head = self.head(key)?;
        match head {
            Some(head) if head.kind != Kind::String => {
                Ok((!self.has_expired(&head)).then_some(Value::Collection(head)))
            }
            _ => {
                let deadline_ms = head.and_then(|head| head.deadline_ms);
                let string = self.row(Space::Strings, key)?;
                Ok(string.map(|string| Value::String(string, deadline_ms)))
            }
        }
    }

    /// Returns whether a key has a value.
    pub(crate) fn exists(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.has_row(Space::Strings, key)? || self.value(key)?.is_some())
    }

    // ---- strings

    /// Returns a string.
    ///
    /// # Errors
    /// `WRONGTYPE` if the key has another kind of value.
    pub(crate) fn string(&self, key: &[u8]) -> Outcome<Option<Slice>> {
        let string = self.row(Space::Strings, key)?;
        if string.is_none() && self.collection_of_any_kind(key)?.is_some() {
            return fail(WRONG_TYPE);
        }
        Ok(string)
    }

    /// Returns a string and its deadline.
    ///
    /// # Errors
    /// As [`View::string`].
    pub(crate) fn string_until(&self, key: &[u8]) -> Outcome<(Option<Slice>, Option<u64>)> {
        match self.value(key)? {
            None => Ok((None, None)),
            Some(Value::String(string, deadline_ms)) => Ok((Some(string), deadline_ms)),
            Some(Value::Collection(_)) => fail(WRONG_TYPE),
        }
    }

    /// Sets a key to a string, whatever value it had.
    pub(crate) fn set_string(
        &mut self,
        key: &[u8],
        string: &[u8],
        deadline_ms: Option<u64>,
    ) -> Outcome {
        if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= self.now_ms()) {
            self.remove(key)?;
            return Ok(());
        }
        match self.head(key)? {
            Some(head) if head.kind != Kind::String => self.remove_collection(key, &head)?,
            Some(_) if deadline_ms.is_none() => self.delete_row(Space::Heads, key),
            _ => {}
        }
        self.put_string(key, string, deadline_ms)
    }

    /// Sets a key that has a string, or nothing, to a string. To remove a deadline takes
    /// [`View::set_string`].
    pub(crate) fn put_string(
        &mut self,
        key: &[u8],
        string: &[u8],
        deadline_ms: Option<u64>,
    ) -> Outcome {
        self.store.watched.touch(key);
        match deadline_ms {
            None => self.put_row(Space::Strings, key, string)?,
            Some(deadline_ms) => {
                let head = Head { deadline_ms: Some(deadline_ms), ..Head::new(Kind::String) };
                self.put_row_until(Space::Strings, key, string, deadline_ms)?;
                self.put_row_until(Space::Heads, key, &head.encode(), deadline_ms)?;
            }
        }
        Ok(())
    }

    // ---- collections

    fn collection_of_any_kind(&self, key: &[u8]) -> Outcome<Option<Head>> {
        let head = self.head(key)?;
        Ok(head.filter(|head| head.kind != Kind::String && !self.has_expired(head)))
    }

    /// Returns the head of a collection.
    ///
    /// # Errors
    /// `WRONGTYPE` if the key has another kind of value.
    pub(crate) fn collection(&self, key: &[u8], kind: Kind) -> Outcome<Option<Head>> {
        match self.head(key)? {
            Some(head) if head.kind == Kind::String => match self.has_row(Space::Strings, key)? {
                true => fail(WRONG_TYPE),
                false => Ok(None),
            },
            Some(head) if self.has_expired(&head) => Ok(None),
            Some(head) if head.kind == kind => Ok(Some(head)),
            Some(_) => fail(WRONG_TYPE),
            None if self.has_row(Space::Strings, key)? => fail(WRONG_TYPE),
            None => Ok(None),
        }
    }

    /// Returns the head of a collection for a read; one without elements if there is none.
    ///
    /// # Errors
    /// As [`View::collection`].
    pub(crate) fn collection_or_empty(&self, key: &[u8], kind: Kind) -> Outcome<Head> {
        Ok(self.collection(key, kind)?.unwrap_or_else(|| Head::new(kind)))
    }

    /// Returns the head of a collection for a write: a new one if there is none, and the rows of an
    /// expired one are deleted. An empty head means that no element exists.
    ///
    /// # Errors
    /// As [`View::collection`].
    pub(crate) fn collection_to_write(&mut self, key: &[u8], kind: Kind) -> Outcome<Head> {
        if let Some(head) = self.collection(key, kind)? {
            return Ok(head);
        }
        if let Some(expired) = self.head(key)? {
            self.remove_collection(key, &expired)?;
        }
        Ok(Head::new(kind))
    }

    /// Writes the head of a collection whose elements were written. Without elements it is deleted.
    pub(crate) fn put_head(&mut self, key: &[u8], head: &Head) -> Outcome {
        self.store.watched.touch(key);
        if head.is_empty() {
            self.delete_row(Space::Heads, key);
            if let Some(deadline_ms) = head.deadline_ms {
                self.delete_row(Space::Deadlines, &deadline_row(deadline_ms, key));
            }
            return Ok(());
        }
        Ok(self.put_row_again(Space::Heads, key, &head.encode())?)
    }

    /// Deletes a collection and its elements.
    pub(crate) fn remove_collection(&mut self, key: &[u8], head: &Head) -> Outcome {
        self.store.watched.touch(key);
        if head.kind == Kind::Stream {
            // The waiting consumers of its groups get an error.
            self.note_fresh(key);
        }
        let prefix = element::prefix(key);
        for space in spaces_of(head.kind) {
            // A stream may have any number of rows of its groups.
            if head.len() > ROWS_DELETED_ONE_BY_ONE || head.kind == Kind::Stream {
                self.delete_rows(*space, &prefix);
                continue;
            }
            let rows: Vec<_> = self.rows_of(*space, &prefix).collect::<windrow::Result<_>>()?;
            for (row, _) in rows {
                self.delete_row(*space, &row);
            }
        }
        self.delete_row(Space::Heads, key);
        if let Some(deadline_ms) = head.deadline_ms {
            self.delete_row(Space::Deadlines, &deadline_row(deadline_ms, key));
        }
        Ok(())
    }

    // ---- both

    /// Deletes the value of a key; returns whether it had one.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Outcome<bool> {
        let head = self.head(key)?;
        match head {
            Some(head) if head.kind != Kind::String => {
                self.remove_collection(key, &head)?;
                Ok(!self.has_expired(&head))
            }
            head => {
                let was_there = self.has_row(Space::Strings, key)?;
                if was_there {
                    self.store.watched.touch(key);
                    self.delete_row(Space::Strings, key);
                }
                if head.is_some() {
                    self.delete_row(Space::Heads, key);
                }
                Ok(was_there)
            }
        }
    }

    /// Sets or removes the deadline of a value. A moment that has passed deletes it.
    pub(crate) fn set_deadline(
        &mut self,
        key: &[u8],
        value: &Value,
        deadline_ms: Option<u64>,
    ) -> Outcome {
        if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= self.now_ms()) {
            self.remove(key)?;
            return Ok(());
        }
        match value {
            Value::String(string, _) => self.set_string(key, string, deadline_ms),
            Value::Collection(head) => {
                if let Some(before_ms) = head.deadline_ms {
                    self.delete_row(Space::Deadlines, &deadline_row(before_ms, key));
                }
                if let Some(deadline_ms) = deadline_ms {
                    self.put_row(Space::Deadlines, deadline_row(deadline_ms, key), b"")?;
                }
                self.put_head(key, &Head { deadline_ms, ..*head })
            }
        }
    }
}
