//! A reader's lease: the length of the manifest that a follower, a process that reads next to a
//! writer, has read. The follower needs the files that were removed from the tree after that.
//!
//! Layout in `docs/format/lease.md`. The file is overwritten in place and never synced: a torn
//! lease counts as that of a reader that needs every file.
//!
//! Owns: the content of a lease. Never does: lock, write or remove the file.

use crate::log::Length;
use windrow_base::coding::Decoder;
use windrow_base::{Error, Result};
use windrow_env::checksum::crc32c;

/// Bytes of a lease.
pub const LEASE_BYTES: usize = 28;

/// The first bytes of the file.
pub(crate) const MAGIC: [u8; 8] = *b"WndrRead";

/// Encodes the lease of a reader that has read this length of a manifest.
pub fn encode(read: Length) -> [u8; LEASE_BYTES] {
    let mut out = [0; LEASE_BYTES];
    out[..8].copy_from_slice(&MAGIC);
    out[8..16].copy_from_slice(&read.number.to_le_bytes());
    out[16..24].copy_from_slice(&read.bytes.to_le_bytes());
    let crc = crc32c(&out[..24]);
    out[24..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Decodes a lease: the manifest, and the length of it that the reader has read.
///
/// # Errors
/// `Corruption` if the bytes fail the checksum.
pub fn decode(bytes: &[u8]) -> Result<Length> {
    let mut d = Decoder::new(bytes);
    let magic = d.bytes(8)?;
    let read = Length { number: d.u64()?, bytes: d.u64()? };
    let is_whole = d.u32()? == crc32c(&bytes[..24]);
    if magic != MAGIC || !is_whole || !d.is_empty() {
        return Err(Error::corruption("a lease fails its checksum"));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flip_and_every_cut_is_corruption() {
        let read = Length { number: 7, bytes: 0x0123_4567_89ab };
        let whole = encode(read);
        assert_eq!(decode(&whole).unwrap(), read);
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "{cut} bytes");
        }
        for bit in 0..8 * whole.len() {
            let mut flipped = whole;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
