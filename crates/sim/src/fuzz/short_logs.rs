//! Recomputed checksums of a log with short headers.
//!
//! Owns: the places of checksums and lengths in such a log, stated here a second time from
//! `docs/format/`. Never does: change bytes that the checksums cover, except for a length that
//! leads nowhere.

use std::ops::Range;
use windrow_base::FileUid;
use windrow_base::coding::get_varint;
use windrow_env::checksum::checksum;
use windrow_format::log::FILE_HEADER_BYTES;

/// Places in a header: the payload's checksum, class and fragment, and the payload's length. The
/// distance to the durable part follows the length.
const PAYLOAD_CRC_AT: usize = 4;
const KIND_AT: usize = 8;
const LEN_AT: usize = 9;

/// The most bytes of a header.
const HEADER_BYTES_MAX: usize = 24;

/// Recomputes header and payload of every fragment. One whose length leads nowhere ends where the
/// next sound one begins.
pub(super) fn recompute(bytes: &mut [u8], uid: FileUid) {
    let mut at = FILE_HEADER_BYTES;
    while at < bytes.len() && !is_blank(bytes, at) {
        at = fragment(bytes, at, uid);
    }
}

/// Recomputes those of the fragment at `at`; returns the place of the next one.
fn fragment(bytes: &mut [u8], at: usize, uid: FileUid) -> usize {
    let Some((payload_at, stored, len_width)) = header(bytes, at) else {
        return next(bytes, at + 1, uid);
    };
    let end = match payload_at.checked_add(stored).filter(|&end| begins_or_ends(bytes, end)) {
        Some(end) => end,
        // As far as a length of this width reaches.
        None => next(bytes, payload_at, uid).min(payload_at + (1 << (7 * len_width.min(4))) - 1),
    };
    put_wide(&mut bytes[at + LEN_AT..at + LEN_AT + len_width], (end - payload_at) as u64);
    let crc = checksum(uid, payload_at as u64, &[&bytes[payload_at..end]]);
    bytes[at + PAYLOAD_CRC_AT..at + KIND_AT].copy_from_slice(&crc.to_le_bytes());
    let crc = checksum(uid, at as u64, &[&bytes[at + PAYLOAD_CRC_AT..payload_at]]);
    bytes[at..at + PAYLOAD_CRC_AT].copy_from_slice(&crc.to_le_bytes());
    end
}

/// Returns the place of the payload, its length, and the width of that length, if there may be a
/// header.
fn header(bytes: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    bytes.get(at + KIND_AT).filter(|kind| **kind >= 0x80)?;
    let (len, len_width) = get_varint(bytes.get(at + LEN_AT..)?)?;
    let back_at = at + LEN_AT + len_width;
    let (_, back_width) = get_varint(bytes.get(back_at..)?)?;
    Some((back_at + back_width, usize::try_from(len).ok()?, len_width))
}

/// Returns the place of the next header whose checksum holds; else the end.
fn next(bytes: &[u8], from: usize, uid: FileUid) -> usize {
    let is_sound = |&at: &usize| {
        header(bytes, at).is_some_and(|(payload_at, ..)| {
            let crc = checksum(uid, at as u64, &[&bytes[at + PAYLOAD_CRC_AT..payload_at]]);
            bytes[at..].starts_with(&crc.to_le_bytes())
        })
    };
    let places: Range<usize> = from..bytes.len();
    places.into_iter().find(is_sound).unwrap_or(bytes.len())
}

/// Whether `at` is the file's end, a fragment, or preallocated space.
fn begins_or_ends(bytes: &[u8], at: usize) -> bool {
    at == bytes.len() || at < bytes.len() && (is_blank(bytes, at) || header(bytes, at).is_some())
}

fn is_blank(bytes: &[u8], at: usize) -> bool {
    bytes[at..].iter().take(HEADER_BYTES_MAX).all(|&b| b == 0)
}

/// Writes a varint that fills its place.
pub(super) fn put_wide(place: &mut [u8], mut value: u64) {
    let last = place.len() - 1;
    for (i, byte) in place.iter_mut().enumerate() {
        *byte = (value & 0x7f) as u8 | if i < last { 0x80 } else { 0 };
        value >>= 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_varints_read_as_what_they_were_made_of() {
        for (width, value) in [(1, 5), (2, 5), (3, 300), (5, 0), (9, 1 << 60)] {
            let mut place = vec![0; width];
            put_wide(&mut place, value);
            assert_eq!(get_varint(&place), Some((value, width)));
        }
    }
}
