//! Places in a log, and the headers of fragments there, in either form.
//!
//! Owns: the length of a record in its place, and the sealing of a fragment. Never does: know the
//! bytes of a header (`fixed_header.rs`, `short_header.rs`).

use super::fragment::{Class, FRAGMENT_BYTES_MAX, FragmentHeader, FragmentKind, HEADER_BYTES};
use super::framing::Framing;
use super::{fixed_header, short_header};
use windrow_base::{FileUid, debug_invariant};
use windrow_env::checksum::checksum;

/// The place of a record in a log.
#[derive(Clone, Copy, Debug)]
pub struct LogPosition {
    /// The form of the log's headers.
    pub framing: Framing,
    /// The log's uid.
    pub uid: FileUid,
    /// The record's offset in the file.
    pub offset: u64,
    /// The length of the log that is known to be on the device: at most `offset`.
    pub durable_up_to: u64,
}

impl LogPosition {
    /// The bytes that a header takes at most, at any place.
    pub(super) fn room_bytes(&self) -> usize {
        match self.framing {
            Framing::Fixed => HEADER_BYTES,
            Framing::Short => short_header::HEADER_BYTES_MAX,
        }
    }

    /// Bytes of the header of a fragment here.
    pub(super) fn header_bytes(&self, payload_bytes: usize) -> usize {
        match self.framing {
            Framing::Fixed => HEADER_BYTES,
            Framing::Short => {
                short_header::header_bytes(payload_bytes, self.offset, self.durable_up_to)
            }
        }
    }

    /// Writes a fragment's header into `out`, which it fills.
    pub(super) fn write(&self, header: &FragmentHeader, out: &mut [u8]) {
        match self.framing {
            Framing::Fixed => fixed_header::write(header, out, self.uid, self.offset),
            Framing::Short => short_header::write(header, out, self.uid, self.offset),
        }
    }

    /// Bytes on disk of a record here, its fragment headers included.
    pub fn framed_bytes(mut self, payload_bytes: usize) -> u64 {
        let begin = self.offset;
        let mut left = payload_bytes;
        loop {
            let piece = left.min(FRAGMENT_BYTES_MAX);
            self.offset += (self.header_bytes(piece) + piece) as u64;
            left -= piece;
            if left == 0 {
                return self.offset - begin;
            }
        }
    }
}

/// The most bytes on disk of a record with this payload, at any place.
pub fn framed_bytes_max(payload_bytes: usize) -> u64 {
    let fragments = payload_bytes.div_ceil(FRAGMENT_BYTES_MAX).max(1);
    (payload_bytes + fragments * HEADER_BYTES) as u64
}

/// Reads the header that `bytes` begin with, and its length. `None` unless it was written for this
/// log and offset.
pub(super) fn read_header(
    framing: Framing,
    bytes: &[u8],
    uid: FileUid,
    offset: u64,
) -> Option<(FragmentHeader, usize)> {
    match framing {
        Framing::Fixed => {
            Some((fixed_header::read(bytes.first_chunk()?, uid, offset)?, HEADER_BYTES))
        }
        Framing::Short => {
            let (header, len) = short_header::parse(bytes, offset)?;
            let is_whole = short_header::is_whole(&bytes[..len], uid, offset);
            is_whole.then_some((header, len))
        }
    }
}

/// The checksum of a payload, seeded with the payload's own offset, so that header and payload
/// never have the same seed.
pub(super) fn payload_crc(uid: FileUid, payload_offset: u64, payload: &[u8]) -> u32 {
    checksum(uid, payload_offset, &[payload])
}

/// Fills in the header of a fragment, in place, right before its payload at `payload_at`. Returns
/// the header's offset in `buf`.
///
/// # Panics
/// If there is no room for it.
pub(super) fn seal_fragment(
    buf: &mut [u8],
    payload_at: usize,
    place: &LogPosition,
    class: Class,
    fragment: FragmentKind,
) -> usize {
    let LogPosition { framing, uid, offset, durable_up_to } = *place;
    let (room, payload) = buf.split_at_mut(payload_at);
    let header_bytes = place.header_bytes(payload.len());
    let begin = room.len().checked_sub(header_bytes).expect("room for the header");
    let crc = payload_crc(uid, offset + header_bytes as u64, payload);
    let header = FragmentHeader {
        payload_crc: crc,
        len: payload.len() as u32,
        class: class as u8,
        fragment: fragment as u8,
        stream: 0,
        durable_up_to,
    };
    let head = &mut room[begin..];
    place.write(&header, head);
    let is_read = read_header(framing, head, uid, offset) == Some((header, header_bytes));
    debug_invariant!(R5, is_read, "the header of a fragment at {offset} cannot be read again");
    begin
}
