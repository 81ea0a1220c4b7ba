//! Checksums of everything on disk: CRC-32C, seeded with the file's uid and
//! the offset (rule R6), so that a block that was valid somewhere else fails.
//!
//! A CRC is a bijection of its seed for given bytes, so the same bytes under
//! two seeds never agree; two places share a seed with probability 2^-32,
//! which is the strength of the checksum itself.
//!
//! Owns: the polynomial and the seed. Never does: decide what is covered: callers say which bytes,
//! and where.

mod search;

pub use search::{Running, sealed};

/// CRC-32C (Castagnoli) of `bytes`, without a seed: for what has no file uid
/// yet (CURRENT, the file header that introduces the uid).
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// CRC-32C of bytes that `crc` is of (0 of none) and `bytes` behind them.
#[inline]
pub fn continued(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

/// Checksum of the concatenation of `parts`, bound to a file (`seed_uid`) and
/// a byte `offset` in it.
#[inline]
pub fn checksum(seed_uid: u64, offset: u64, parts: &[&[u8]]) -> u32 {
    let mut crc = seed(seed_uid, offset);
    for part in parts {
        crc = ::crc32c::crc32c_append(crc, part);
    }
    crc
}

/// Mixes uid and offset into 32 bits. Multiplying between the two keeps
/// `(uid, offset)` and `(uid + d, offset - d)` apart; the last steps spread
/// every input bit over the upper half, which is what is kept.
#[inline]
fn seed(uid: u64, offset: u64) -> u32 {
    let mut x = (uid ^ (uid >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ offset ^ (x >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn plain_crc_is_castagnoli() {
        // The check value of the CRC catalogue.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn parts_are_concatenated() {
        let whole = checksum(7, 4096, &[b"hello, world"]);
        assert_eq!(whole, checksum(7, 4096, &[b"hello", b", ", b"", b"world"]));
        assert_ne!(whole, checksum(7, 4096, &[b"hello, worle"]));
    }

    #[test]
    fn the_same_bytes_elsewhere_fail() {
        let bytes = [0u8; 64];
        let mut seen = HashSet::new();
        for uid in [0, 1, 2, 1 << 32, u64::MAX] {
            for block in 0..2_000u64 {
                seen.insert(checksum(uid, block * 4096, &[&bytes]));
            }
        }
        // 10,000 values in 2^32: about 0.01 collisions expected.
        assert!(seen.len() >= 9_998, "{} distinct", seen.len());
    }

    #[test]
    fn every_single_bit_flip_shows() {
        let mut bytes = [0x5au8; 116];
        let good = checksum(3, 99, &[&bytes]);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(3, 99, &[&bytes]), good);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
