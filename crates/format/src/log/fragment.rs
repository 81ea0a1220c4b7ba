//! Fragments: the pieces of a record, each with a header that has a checksum of its own.
//!
//! Owns: a fragment's header, byte by byte, and what a fragment may be. Never does: put
//! records together.

use windrow_base::{Error, FileUid, Result};
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
    /// A note in a write-ahead log about how much of other files was durable ([`Mark`](super::Mark)).
    Mark = 3,
}

impl Class {
    pub(super) fn from_u8(byte: u8) -> Result<Class> {
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
pub(super) enum Fragment {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl Fragment {
    pub(super) fn from_u8(byte: u8) -> Option<Fragment> {
        Some(match byte {
            1 => Fragment::Full,
            2 => Fragment::First,
            3 => Fragment::Middle,
            4 => Fragment::Last,
            _ => return None,
        })
    }

    pub(super) fn starts(self) -> bool {
        matches!(self, Fragment::Full | Fragment::First)
    }

    pub(super) fn ends(self) -> bool {
        matches!(self, Fragment::Full | Fragment::Last)
    }
}

/// A fragment header whose checksum held.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentHeader {
    pub(super) payload_crc: u32,
    pub(super) len: u32,
    pub(super) class: u8,
    pub(super) fragment: u8,
    pub(super) stream: u16,
    pub(super) durable_up_to: u64,
}

impl FragmentHeader {
    pub(super) fn write(&self, out: &mut [u8; HEADER_BYTES], uid: FileUid, offset: u64) {
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
    pub(super) fn read(
        bytes: &[u8; HEADER_BYTES],
        uid: FileUid,
        offset: u64,
    ) -> Option<FragmentHeader> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let is_whole = u32_at(0) == checksum(uid, offset, &[&bytes[4..]]);
        if u64_at(16) != uid || !is_whole {
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
pub(super) fn payload_crc(uid: FileUid, header_offset: u64, payload: &[u8]) -> u32 {
    checksum(uid, header_offset + HEADER_BYTES as u64, &[payload])
}
