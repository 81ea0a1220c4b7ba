//! Framing of the write-ahead log and the manifest alike (R5, R6, R11, R12, R15).
//!
//! A log is a file header and then records, each of one or more fragments,
//! back to back without alignment; the rest of a preallocated file is zeros.
//! A fragment's header and its payload have checksums of their own, seeded
//! with the log's uid and the fragment's offset, so that a fragment that was
//! copied, misplaced or left over from another log never passes.
//!
//! Every fragment says up to where the log was known to be on the device when
//! it was written (`durable_up_to`). That is what tells a torn tail (bytes
//! nobody was promised) from damage to what had been synced: see [`Reader`].
//!
//! Owns: the file header, the fragments, and the rule for the torn tail.
//! Never does: write to files, or know what a payload means.

mod fragment;
mod framer;
mod header;
mod mark;
mod reader;

pub use fragment::{Class, FRAGMENT_BYTES_MAX, HEADER_BYTES};
pub use framer::Framer;
pub use header::{
    FILE_HEADER_BYTES, FileHeader, LogKind, MAGIC, decode_file_header, encode_file_header, is_blank,
};
pub use mark::{Length, Mark};
pub use reader::{Reader, Record};

use fragment::{Fragment, FragmentHeader, payload_crc};
use windrow_base::{FileUid, Result, debug_invariant};

/// Bytes on disk of a record, its fragment headers included.
pub fn framed_bytes(payload_bytes: usize) -> u64 {
    let fragments = payload_bytes.div_ceil(FRAGMENT_BYTES_MAX).max(1);
    payload_bytes as u64 + (fragments * HEADER_BYTES) as u64
}

/// Fills in the header of a record of one fragment, in place: `buf` is
/// [`HEADER_BYTES`] of room and then the payload.
///
/// # Panics
/// If there is no room, or the payload is over [`FRAGMENT_BYTES_MAX`] (use [`frame`]).
pub fn seal(buf: &mut [u8], uid: FileUid, offset: u64, class: Class, durable_up_to: u64) {
    let (head, payload) = buf.split_first_chunk_mut::<HEADER_BYTES>().expect("room for the header");
    assert!(payload.len() <= FRAGMENT_BYTES_MAX, "one fragment holds the payload");
    let header = FragmentHeader {
        payload_crc: payload_crc(uid, offset, payload),
        len: payload.len() as u32,
        class: class as u8,
        fragment: Fragment::Full as u8,
        stream: 0,
        durable_up_to,
    };
    header.write(head, uid, offset);
    let is_read = FragmentHeader::read(head, uid, offset).is_some();
    debug_invariant!(R5, is_read, "the header of a record at {offset} cannot be read again");
}

/// Appends a record of any size to `out`, in as many fragments as it needs.
/// `offset` is where the first appended byte will be in the file.
pub fn frame(
    out: &mut Vec<u8>,
    payload: &[u8],
    uid: FileUid,
    offset: u64,
    class: Class,
    durable_up_to: u64,
) {
    out.reserve(framed_bytes(payload.len()) as usize);
    let append = |_, piece: &[u8]| {
        out.extend_from_slice(piece);
        Ok(())
    };
    let appended = frame_pieces(payload, uid, offset, class, durable_up_to, append);
    debug_assert!(appended.is_ok(), "appending to memory does not fail");
}

/// As [`frame`], but hands out each fragment, header and payload together, with
/// where it goes in the file: a large record is never copied whole.
///
/// # Errors
/// What `put` said, which is not called again then.
pub fn frame_pieces(
    payload: &[u8],
    uid: FileUid,
    offset: u64,
    class: Class,
    durable_up_to: u64,
    mut put: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut framer = Framer::new(uid, offset, class, durable_up_to);
    framer.reserve(payload.len());
    framer.push(payload, &mut put)?;
    framer.finish(&mut put)
}

#[cfg(test)]
mod tests;
