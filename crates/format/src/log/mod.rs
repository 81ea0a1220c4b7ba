//! Framing of the write-ahead log and the manifest alike (R5, R6, R11, R12, R15).
//!
//! A log is a file header and then records, each of one or more fragments,
//! back to back without alignment; the rest of a preallocated file is zeros.
//! A fragment's header and its payload have checksums of their own, seeded
//! with the log's uid and the fragment's offset, so that a fragment that was
//! copied, misplaced or left over from another log never passes.
//!
//! Every fragment records the length of the log that was known to be on the device when it was
//! written (`durable_up_to`). This tells a torn tail (bytes that were never promised durable) from
//! damage to synced bytes: see [`LogReader`].
//!
//! Owns: the file header, the fragments, and the rule for the torn tail. Never does: write to
//! files, or know the meaning of a payload.

mod evidence;
mod fixed_header;
mod fragment;
mod framer;
mod framing;
mod header;
mod mark;
mod position;
mod reader;
mod short_header;
mod window;

pub use fragment::{Class, FRAGMENT_BYTES_MAX, HEADER_BYTES};
pub use framer::Framer;
pub use framing::Framing;
pub use header::{
    FILE_HEADER_BYTES, FileHeader, LogKind, MAGIC, decode_file_header, encode_file_header, is_blank,
};
pub use mark::{Length, Mark};
pub use position::{LogPosition, framed_bytes_max};
pub use reader::{LogReader, LogRecord};

use fragment::FragmentKind;
use position::seal_fragment;
use windrow_base::Result;

/// Fills in the header of a record of one fragment, in place: `buf` is [`HEADER_BYTES`] of room, or
/// more, and from `payload_at` on the payload. Returns the record, header and payload.
///
/// # Panics
/// If there is no room, or the payload is over [`FRAGMENT_BYTES_MAX`] (use [`frame`]).
pub fn seal(buf: &mut [u8], payload_at: usize, class: Class, place: LogPosition) -> &[u8] {
    assert!(buf.len() - payload_at <= FRAGMENT_BYTES_MAX, "one fragment holds the payload");
    let begin = seal_fragment(buf, payload_at, &place, class, FragmentKind::Full);
    &buf[begin..]
}

/// Appends a record of any size to `out`, in as many fragments as it needs. The first
/// appended byte goes to `place`.
pub fn frame(out: &mut Vec<u8>, payload: &[u8], class: Class, place: LogPosition) {
    out.reserve(place.framed_bytes(payload.len()) as usize);
    let append = |_, piece: &[u8]| {
        out.extend_from_slice(piece);
        Ok(())
    };
    let appended = frame_pieces(payload, class, place, append);
    debug_assert!(appended.is_ok(), "appending to memory does not fail");
}

/// As [`frame`], but hands each fragment, header and payload together, to `put` with its offset in
/// the file: a large record is never copied whole.
///
/// # Errors
/// The error of `put`, which is not called again after it.
pub fn frame_pieces(
    payload: &[u8],
    class: Class,
    place: LogPosition,
    mut put: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut framer = Framer::new(class, place);
    framer.reserve(payload.len());
    framer.push(payload, &mut put)?;
    framer.finish(&mut put)
}

#[cfg(test)]
mod tests;
