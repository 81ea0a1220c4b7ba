//! One entry of a data block: header, trailer, rest of the user key, value.
//!
//! ```text
//! shared varint | rest varint | value length varint | trailer 8 | rest of key | value
//! ```
//!
//! The user key is prefix-compressed, the trailer is not: so a search can compare user keys by the
//! lengths alone, and versions of one key share the whole key.
//!
//! Owns: the form of an entry. Never does: compare keys, or check their order.

use windrow_base::coding::get_varint;
use windrow_base::key::TRAILER_BYTES;
use windrow_base::{Error, Result};

/// The positions of an entry's parts. Offsets are within the entries' bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryLayout {
    /// Bytes of the user key taken from the entry before.
    pub(super) shared: usize,
    /// The trailer and the rest of the user key begin here.
    pub(super) trailer_at: usize,
    /// The value begins here, and the key ends.
    pub(super) value_at: usize,
    /// The next entry begins here, and the value ends.
    pub(super) end: usize,
}

impl EntryLayout {
    /// Reads the entry at `at`; `None` if it does not fit in `entries`.
    #[inline]
    pub(super) fn read(entries: &[u8], at: usize) -> Option<EntryLayout> {
        let head = entries.get(at..)?;
        let (shared, rest, value, header_bytes) = match head {
            // Nearly always all three lengths are below 128.
            [a, b, c, ..] if (a | b | c) < 0x80 => (*a as usize, *b as usize, *c as usize, 3),
            _ => lengths(head)?,
        };
        let trailer_at = at + header_bytes;
        let value_at = trailer_at.checked_add(TRAILER_BYTES)?.checked_add(rest)?;
        let end = value_at.checked_add(value)?;
        (end <= entries.len()).then_some(EntryLayout { shared, trailer_at, value_at, end })
    }

    /// The trailer.
    #[inline]
    pub(super) fn trailer(&self, entries: &[u8]) -> u64 {
        match entries[self.trailer_at..].first_chunk::<TRAILER_BYTES>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => 0,
        }
    }

    /// The part of the user key that is not shared.
    #[inline]
    pub(super) fn rest<'a>(&self, entries: &'a [u8]) -> &'a [u8] {
        &entries[self.trailer_at + TRAILER_BYTES..self.value_at]
    }
}

fn lengths(head: &[u8]) -> Option<(usize, usize, usize, usize)> {
    let (shared, a) = get_varint(head)?;
    let (rest, b) = get_varint(&head[a..])?;
    let (value, c) = get_varint(&head[a + b..])?;
    let narrow = |n: u64| usize::try_from(n).ok();
    Some((narrow(shared)?, narrow(rest)?, narrow(value)?, a + b + c))
}

/// User key and trailer of the entry at a restart point, where the key is whole.
#[inline]
pub(super) fn at_restart(entries: &[u8], at: usize) -> Result<(&[u8], u64)> {
    match EntryLayout::read(entries, at) {
        Some(entry) if entry.shared == 0 => Ok((entry.rest(entries), entry.trailer(entries))),
        _ => Err(malformed()),
    }
}

#[cold]
pub(super) fn malformed() -> Error {
    Error::corruption("malformed entry in a data block whose checksum holds")
}
