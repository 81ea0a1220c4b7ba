//! The identifiers of a stream's entries: a moment and a number within it.
//!
//! Owns: their order, their text and their bytes. Never does: read a clock.

use std::fmt;

/// The identifier of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    /// Milliseconds since 1970, unless a client chose another number.
    pub(crate) ms: u64,
    pub(crate) seq: u64,
}

impl Id {
    /// The identifier that no entry has.
    pub(crate) const ZERO: Id = Id { ms: 0, seq: 0 };
    pub(crate) const MAX: Id = Id { ms: u64::MAX, seq: u64::MAX };
    /// The number of its bytes.
    pub(crate) const BYTES: usize = 16;

    /// Returns the next one, unless this is the last.
    pub(crate) fn next(self) -> Option<Id> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// Returns the one before, unless this is the first.
    pub(crate) fn before(self) -> Option<Id> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Returns its bytes, in the order of identifiers.
    pub(crate) fn encode(self) -> [u8; Id::BYTES] {
        let mut bytes = [0; Id::BYTES];
        bytes[..8].copy_from_slice(&self.ms.to_be_bytes());
        bytes[8..].copy_from_slice(&self.seq.to_be_bytes());
        bytes
    }

    /// Reads an identifier's bytes; `None` if they are more or fewer.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Id> {
        let (ms, seq) = bytes.split_at_checked(8)?;
        Some(Id {
            ms: u64::from_be_bytes(ms.try_into().ok()?),
            seq: u64::from_be_bytes(seq.try_into().ok()?),
        })
    }

    /// Reads `ms-seq`, or `ms` alone with the number `seq`.
    pub(crate) fn parse(text: &[u8], seq: u64) -> Option<Id> {
        let mut parts = text.splitn(2, |byte| *byte == b'-');
        let ms = number(parts.next()?)?;
        let seq = parts.next().map_or(Some(seq), number)?;
        Some(Id { ms, seq })
    }

    /// Reads `ms-*`: the moment alone.
    pub(crate) fn parse_open(text: &[u8]) -> Option<u64> {
        number(text.strip_suffix(b"-*")?)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(digits).ok()?.parse().ok())?
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_back_from_text_and_bytes_and_keep_their_order() {
        let all = [(0, 0), (0, u64::MAX), (1, 0), (256, 1), (u64::MAX, 0), (u64::MAX, u64::MAX)];
        let all = all.map(|(ms, seq)| Id { ms, seq });
        for id in all {
            assert_eq!(Id::parse(id.to_string().as_bytes(), 7), Some(id));
            assert_eq!(Id::decode(&id.encode()), Some(id));
            assert_eq!(id.next().and_then(Id::before).unwrap_or(id), id);
        }
        for pair in all.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].encode() < pair[1].encode());
        }
        assert_eq!((Id::MAX.next(), Id::ZERO.before()), (None, None));
    }

    #[test]
    fn other_text_is_none() {
        assert_eq!(Id::parse(b"12", 7), Some(Id { ms: 12, seq: 7 }));
        for text in
            ["", "-", "1-", "-1", "1-2-3", "a-1", "1-b", "+1", "18446744073709551616", "1-*"]
        {
            assert_eq!(Id::parse(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!((Id::parse_open(b"12-*"), Id::parse_open(b"12")), (Some(12), None));
        assert_eq!(Id::decode(&[0; 15]), None);
        assert_eq!(Id::decode(&[0; 17]), None);
    }
}
