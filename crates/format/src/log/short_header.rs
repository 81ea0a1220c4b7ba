//! The short fragment header: both checksums, a byte for class and fragment, and two varints, the
//! payload's length and the distance back to the end of the durable part.
//!
//! The header does not hold the log's uid: both checksums are seeded with it. The kind byte is at a
//! fixed place and has its highest bit set, so that a search for headers skips zeros and text at
//! the speed of a scan.
//!
//! Owns: the header, byte by byte. Never does: decide what a header proves (`evidence.rs`).

use super::fragment::{Class, FRAGMENT_BYTES_MAX, FragmentHeader, HEADER_BYTES};
use windrow_base::FileUid;
use windrow_base::coding::{get_varint, put_varint_at, varint_len};
use windrow_env::checksum::checksum;

/// The offset of the kind byte, for class and fragment, after the two checksums.
pub(super) const KIND_AT: usize = 8;

/// The offset of the varints.
const VARINTS_AT: usize = KIND_AT + 1;

/// The most bytes of a header that is written.
pub(super) const HEADER_BYTES_MAX: usize =
    VARINTS_AT + varint_len(FRAGMENT_BYTES_MAX as u64) + varint_len(u64::MAX);

/// The most bytes of a header that can be read: lengths of 32 bits.
const READ_BYTES_MAX: usize = VARINTS_AT + varint_len(u32::MAX as u64) + varint_len(u64::MAX);

// A reader that has loaded the bytes of a header of fixed length has loaded this one whole.
const _: () = assert!(READ_BYTES_MAX <= HEADER_BYTES);

/// The bits of the kind byte: this one, five for the class, and two for the fragment.
const KIND_BIT: u8 = 0x80;
const CLASS_MAX: u8 = 31;

/// Whether this is the kind of a fragment that this build writes.
#[inline]
pub(super) fn is_kind(byte: u8) -> bool {
    const FIRST: u8 = KIND_BIT | (Class::Batch as u8) << 2;
    const LAST: u8 = KIND_BIT | (Class::Mark as u8) << 2 | 3;
    (FIRST..=LAST).contains(&byte)
}

/// The stored distance back to the end of the durable part: 0 where nothing is known, else the
/// distance and one.
fn distance(offset: u64, durable_up_to: u64) -> u64 {
    debug_assert!(durable_up_to <= offset, "{durable_up_to} is durable before {offset}");
    if durable_up_to == 0 { 0 } else { offset.saturating_sub(durable_up_to) + 1 }
}

/// Bytes of a header.
pub(super) fn header_bytes(payload_bytes: usize, offset: u64, durable_up_to: u64) -> usize {
    let back = distance(offset, durable_up_to);
    VARINTS_AT + varint_len(payload_bytes as u64) + varint_len(back)
}

/// Writes a header that fills `out`, which has [`header_bytes`].
pub(super) fn write(header: &FragmentHeader, out: &mut [u8], uid: FileUid, offset: u64) {
    debug_assert!(header.class <= CLASS_MAX && (1..=4).contains(&header.fragment));
    debug_assert_eq!(header.stream, 0, "there is no stream in a short header");
    out[4..8].copy_from_slice(&header.payload_crc.to_le_bytes());
    out[KIND_AT] = KIND_BIT | header.class << 2 | (header.fragment - 1);
    let at = put_varint_at(out, VARINTS_AT, u64::from(header.len));
    let end = put_varint_at(out, at, distance(offset, header.durable_up_to));
    debug_assert_eq!(end, out.len(), "the header has the length that was taken for it");
    let crc = checksum(uid, offset, &[&out[4..]]);
    out[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Parses the bytes at `offset`, if they have the form of a header. The checksum is not tested yet.
#[inline]
pub(super) fn parse(bytes: &[u8], offset: u64) -> Option<(FragmentHeader, usize)> {
    let kind = *bytes.get(KIND_AT)?;
    if kind < KIND_BIT {
        return None;
    }
    let (len, len_width) = get_varint(&bytes[VARINTS_AT..])?;
    let (back, back_width) = get_varint(&bytes[VARINTS_AT + len_width..])?;
    let durable_up_to = match back {
        0 => 0,
        // A durable length of 0 is not stored as a distance: 0 means unknown, and the file's header
        // is at 0.
        _ => offset.checked_sub(back - 1).filter(|&durable| durable > 0)?,
    };
    let header = FragmentHeader {
        payload_crc: u32::from_le_bytes(*bytes[4..].first_chunk()?),
        len: u32::try_from(len).ok()?,
        class: (kind & !KIND_BIT) >> 2,
        fragment: (kind & 3) + 1,
        stream: 0,
        durable_up_to,
    };
    Some((header, VARINTS_AT + len_width + back_width))
}

/// Whether the checksum of a header that was parsed holds. `bytes`: the header alone.
#[inline]
pub(super) fn is_whole(bytes: &[u8], uid: FileUid, offset: u64) -> bool {
    let stored = bytes.first_chunk().map(|crc| u32::from_le_bytes(*crc));
    stored == bytes.get(4..).map(|covered| checksum(uid, offset, &[covered]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_in_the_length_that_was_taken() {
        let (uid, far) = (7, 1u64 << 40);
        for len in [0, 1, 127, 128, FRAGMENT_BYTES_MAX as u32] {
            for (offset, durable_up_to) in
                [(64, 0), (64, 64), (191, 64), (192, 64), (far, 1), (far, far), (u64::MAX, 1)]
            {
                for class in [Class::Batch, Class::Edit, Class::Mark] {
                    for fragment in 1..=4 {
                        let (class, stream, payload_crc) = (class as u8, 0, 0xdead_beef);
                        let header = FragmentHeader {
                            payload_crc,
                            len,
                            class,
                            fragment,
                            stream,
                            durable_up_to,
                        };
                        let mut out = vec![0; header_bytes(len as usize, offset, durable_up_to)];
                        assert!(out.len() <= HEADER_BYTES_MAX);
                        write(&header, &mut out, uid, offset);
                        assert!(is_kind(out[KIND_AT]) && is_whole(&out, uid, offset));
                        assert!(!is_whole(&out, uid + 1, offset));
                        assert!(!is_whole(&out, uid, offset ^ 1));
                        assert_eq!(parse(&out, offset), Some((header, out.len())));
                        for cut in 0..out.len() {
                            assert_eq!(parse(&out[..cut], offset), None, "cut at {cut}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_header_says_that_more_is_durable_than_lies_before_it() {
        let mut bytes = [0; READ_BYTES_MAX];
        bytes[KIND_AT] = 0x84;
        let end = put_varint_at(&mut bytes, VARINTS_AT, 5);
        for (back, durable) in [(0, Some(0)), (1, Some(64)), (64, Some(1)), (65, None), (66, None)]
        {
            put_varint_at(&mut bytes, end, back);
            assert_eq!(parse(&bytes, 64).map(|(h, _)| h.durable_up_to), durable, "{back}");
        }
        put_varint_at(&mut bytes, VARINTS_AT, u64::from(u32::MAX) + 1);
        assert_eq!(parse(&bytes, 64), None, "a length beyond 32 bits");
    }
}
