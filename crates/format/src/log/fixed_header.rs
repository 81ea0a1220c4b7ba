//! The fragment header of fixed length: 32 bytes, the log's uid among them.
//!
//! Owns: the header, byte by byte. Never does: decide what a header proves (`evidence.rs`).

use super::fragment::{FragmentHeader, HEADER_BYTES};
use windrow_base::FileUid;
use windrow_env::checksum::checksum;

/// Writes a header that fills `out`, which has [`HEADER_BYTES`].
pub(super) fn write(header: &FragmentHeader, out: &mut [u8], uid: FileUid, offset: u64) {
    out[4..8].copy_from_slice(&header.payload_crc.to_le_bytes());
    out[8..12].copy_from_slice(&header.len.to_le_bytes());
    out[12] = header.class;
    out[13] = header.fragment;
    out[14..16].copy_from_slice(&header.stream.to_le_bytes());
    out[16..24].copy_from_slice(&uid.to_le_bytes());
    out[24..32].copy_from_slice(&header.durable_up_to.to_le_bytes());
    let crc = checksum(uid, offset, &[&out[4..]]);
    out[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Reads a header. `None` unless these bytes are one that was written for this log and offset.
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
