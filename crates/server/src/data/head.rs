//! The head of a value that is no plain string: its kind, its deadline, its size.
//!
//! Owns: its layout: a letter, the deadline (u64, milliseconds since 1970, 0 for none), then two
//! u64: of a list the positions of its first element and behind its last, of other collections
//! their number of elements (of a stream one more) and of a hash the number of fields it ever had,
//! of others 0. All numbers are little-endian. Never does: look at a clock.

use windrow::{Error, Result};

const BYTES: usize = 25;
/// The position of the first element of a list: there is as much room before it as behind it.
const LIST_MIDDLE: u64 = 1 << 63;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes.
    String,
    /// Fields with values.
    Hash,
    /// Members.
    Set,
    /// Elements in the order of their positions.
    List,
    /// Members in the order of their scores.
    SortedSet,
    /// Entries in the order of their identifiers.
    Stream,
}

/// All kinds.
const KINDS: [Kind; 6] =
    [Kind::String, Kind::Hash, Kind::Set, Kind::List, Kind::SortedSet, Kind::Stream];

impl Kind {
    /// Returns its name for `TYPE`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::List => "list",
            Kind::SortedSet => "zset",
            Kind::Stream => "stream",
        }
    }

    pub(crate) fn letter(self) -> u8 {
        match self {
            Kind::String => b's',
            // Not `h`, whose fields had no number: their values would be read cut short.
            Kind::Hash => b'H',
            Kind::Set => b'S',
            Kind::List => b'l',
            Kind::SortedSet => b'z',
            Kind::Stream => b'x',
        }
    }

    pub(crate) fn of_letter(letter: u8) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.letter() == letter)
    }
}

/// The head of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// The deadline, in milliseconds since 1970.
    pub(crate) deadline_ms: Option<u64>,
    /// The position of a list's first element; 0 for others.
    pub(crate) first: u64,
    /// The position after a list's last element; the number of elements of others.
    pub(crate) end: u64,
    /// The number of fields that a hash ever had; 0 for others.
    pub(crate) next: u64,
}

impl Head {
    /// Makes the head of a value without elements or deadline.
    pub(crate) fn new(kind: Kind) -> Head {
        let first = if kind == Kind::List { LIST_MIDDLE } else { 0 };
        Head { kind, deadline_ms: None, first, end: first, next: 0 }
    }

    /// Returns the number of its elements.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.first
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn is_expired(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms)
    }

    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = self.kind.letter();
        bytes[1..9].copy_from_slice(&self.deadline_ms.unwrap_or(0).to_le_bytes());
        let (a, b) = match self.kind {
            Kind::List => (self.first, self.end),
            _ => (self.end, self.next),
        };
        bytes[9..17].copy_from_slice(&a.to_le_bytes());
        bytes[17..].copy_from_slice(&b.to_le_bytes());
        bytes
    }

    /// # Errors
    /// `Corruption` if `bytes` are no head.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Head> {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let head = || {
            let kind = Kind::of_letter(*bytes.first()?)?;
            let deadline_ms = Some(number(1)?).filter(|ms| *ms > 0);
            let (a, b) = (number(9)?, number(17)?);
            let (first, end, next) = if kind == Kind::List { (a, b, 0) } else { (0, a, b) };
            let head = Head { kind, deadline_ms, first, end, next };
            (bytes.len() == BYTES && first <= end).then_some(head)
        };
        head().ok_or_else(|| {
            Error::corruption(
                "a row of the keyspace redis.keys is no head of a Redis value: another program wrote \
                 it, or a newer version of the server; delete it with `windrow delete --keyspace \
                 redis.keys`",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were() {
        for kind in KINDS {
            for deadline_ms in [None, Some(1), Some(u64::MAX)] {
                let mut head = Head { deadline_ms, ..Head::new(kind) };
                head.end += 7;
                assert_eq!(Head::decode(&head.encode()).unwrap(), head);
                assert_eq!(head.len(), 7);
            }
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let head = Head::new(Kind::List).encode();
        assert!(Head::decode(&head[..24]).is_err());
        assert!(Head::decode(&[&head[..], b"x"].concat()).is_err());
        assert!(Head::decode(b"").is_err());
        let mut reversed = head;
        reversed[17..].copy_from_slice(&0_u64.to_le_bytes());
        assert!(Head::decode(&reversed).is_err(), "a list that ends before it begins");
    }
}
