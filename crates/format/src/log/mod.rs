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
//! Owns: the file header, the fragment header, and the rule for the torn tail.
//! Never does: write to files, or know what a payload means.

mod framer;
mod header;
mod mark;
mod reader;

pub use framer::Framer;
pub use header::{
    FILE_HEADER_BYTES, FileHeader, LogKind, MAGIC, decode_file_header, encode_file_header, is_blank,
};
pub use mark::{Length, Mark};
pub use reader::{Reader, Record};

use windrow_base::{Error, FileUid, Result, mutant};
use windrow_env::checksum::checksum;

/// Bytes of a fragment's header.
pub const HEADER_BYTES: usize = 32;

/// Most payload bytes in one fragment (1 MiB).
///
/// Large, since nothing is gained from small ones: a record is valid only as
/// a whole, and fragments only bound what a writer must hold in one piece.
pub const FRAGMENT_BYTES_MAX: usize = 1 << 20;

/// What a record holds. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// A write batch ([`crate::batch`]).
    Batch = 1,
    /// An edit of the manifest.
    Edit = 2,
    /// A note in a write-ahead log about how much of other files was durable ([`Mark`]).
    Mark = 3,
}

impl Class {
    fn from_u8(byte: u8) -> Result<Class> {
        Ok(match byte {
            1 => Class::Batch,
            2 => Class::Edit,
            3 => Class::Mark,
            _ => {
                return Err(Error::not_supported(format!(
                    "log record class {byte} needs a newer Windrow"
                )));
            }
        })
    }
}

/// A fragment's place in its record. The numbers are on disk; none is zero,
/// so that no valid header begins like preallocated space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Fragment {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl Fragment {
    fn from_u8(byte: u8) -> Option<Fragment> {
        Some(match byte {
            1 => Fragment::Full,
            2 => Fragment::First,
            3 => Fragment::Middle,
            4 => Fragment::Last,
            _ => return None,
        })
    }

    fn starts(self) -> bool {
        matches!(self, Fragment::Full | Fragment::First)
    }

    fn ends(self) -> bool {
        matches!(self, Fragment::Full | Fragment::Last)
    }
}

/// A fragment header whose checksum held.
#[derive(Clone, Copy, Debug)]
struct FragmentHeader {
    payload_crc: u32,
    len: u32,
    class: u8,
    fragment: u8,
    stream: u16,
    durable_up_to: u64,
}

impl FragmentHeader {
    fn write(&self, out: &mut [u8; HEADER_BYTES], uid: FileUid, offset: u64) {
        out[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[8..12].copy_from_slice(&self.len.to_le_bytes());
        out[12] = self.class;
        out[13] = self.fragment;
        out[14..16].copy_from_slice(&self.stream.to_le_bytes());
        out[16..24].copy_from_slice(&uid.to_le_bytes());
        out[24..32].copy_from_slice(&self.durable_up_to.to_le_bytes());
        let crc = checksum(uid, offset, &[&out[4..]]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// `None` unless these bytes are a header that was written for this log and offset.
    fn read(bytes: &[u8; HEADER_BYTES], uid: FileUid, offset: u64) -> Option<FragmentHeader> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let is_whole = u32_at(0) == checksum(uid, offset, &[&bytes[4..]]);
        if u64_at(16) != uid || !is_whole && !mutant!(LogHeaderCrc) {
            return None;
        }
        Some(FragmentHeader {
            payload_crc: u32_at(4),
            len: u32_at(8),
            class: bytes[12],
            fragment: bytes[13],
            stream: u16::from_le_bytes([bytes[14], bytes[15]]),
            durable_up_to: u64_at(24),
        })
    }
}

/// The payload's checksum is taken at the payload's own offset, so that it
/// never equals a header's by the same seed.
fn payload_crc(uid: FileUid, header_offset: u64, payload: &[u8]) -> u32 {
    checksum(uid, header_offset + HEADER_BYTES as u64, &[payload])
}

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
}

/// Appends a record of any size to `out`, in as many fragments as it needs.
/// `offset` is where the first appended byte will stand in the file.
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
