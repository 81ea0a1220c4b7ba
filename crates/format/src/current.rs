//! CURRENT: the manifest in force, and the features that a program must understand before it may
//! touch the directory (P21).
//!
//! Layout in `docs/format/current.md`. The 48 bytes here are frozen: a later version may append, so
//! an older program can always read far enough to refuse.
//!
//! Owns: the content of CURRENT, and the format version. Never does: write, rename or sync the
//! file.

use windrow_base::coding::Decoder;
use windrow_base::{Error, FileNumber, FileUid, Result};
use windrow_env::checksum::crc32c;

/// The format version this build writes, and the newest it reads.
///
/// In version 1 the write-ahead log has headers of fixed length. Up to version 2 the index blocks
/// of tables have no compact form.
pub const FORMAT_VERSION: u32 = 3;

/// Feature bits this build understands.
pub const KNOWN_FEATURES: u64 = 0;

/// Bytes of the file in format versions 1 to 3.
pub const CURRENT_BYTES: usize = 48;

/// The first bytes of the file.
pub(crate) const MAGIC: [u8; 8] = *b"WndrCurr";

/// The content of CURRENT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// Format version of the whole directory.
    pub format_version: u32,
    /// Features a program must know to open the directory, one bit each.
    pub required_features: u64,
    /// Number of the manifest in force.
    pub manifest_number: FileNumber,
    /// The identity of that manifest, which tells it from a manifest of another database, and from
    /// an older one of the same number.
    pub manifest_uid: FileUid,
    /// Random identity of the database; the same in its copies.
    pub database_uid: u64,
}

impl Current {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(CURRENT_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.format_version.to_le_bytes());
        out.extend_from_slice(&self.required_features.to_le_bytes());
        out.extend_from_slice(&self.manifest_number.to_le_bytes());
        out.extend_from_slice(&self.manifest_uid.to_le_bytes());
        out.extend_from_slice(&self.database_uid.to_le_bytes());
        let crc = crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        debug_assert_eq!(out.len(), CURRENT_BYTES);
        out
    }

    /// Reads the file's bytes.
    ///
    /// # Errors
    /// `Corruption` if they fail the checksum; `NotSupported` for a newer format version or a
    /// feature this build does not know.
    pub fn decode(bytes: &[u8]) -> Result<Current> {
        if bytes.len() < CURRENT_BYTES {
            return Err(Error::corruption(format!(
                "CURRENT has {} bytes, fewer than {CURRENT_BYTES}",
                bytes.len()
            )));
        }
        let mut d = Decoder::new(bytes);
        let magic = d.bytes(8)?;
        let current = Current {
            format_version: d.u32()?,
            required_features: d.u64()?,
            manifest_number: d.u64()?,
            manifest_uid: d.u64()?,
            database_uid: d.u64()?,
        };
        let covered = &bytes[..d.position()];
        // The checksum is tested before any field is believed, or a flipped bit of the version
        // would pass for a newer program's file.
        let is_whole = d.u32()? == crc32c(covered);
        if !is_whole || magic != MAGIC {
            return Err(Error::corruption("CURRENT fails its checksum"));
        }
        if current.format_version > FORMAT_VERSION {
            return Err(Error::not_supported(format!(
                "format version {} is newer than this build's {FORMAT_VERSION}",
                current.format_version
            )));
        }
        let unknown = current.required_features & !KNOWN_FEATURES;
        if unknown != 0 {
            return Err(Error::not_supported(format!(
                "the database needs features {unknown:#x} that this build does not have"
            )));
        }
        if current.format_version == 0 || !d.is_empty() {
            return Err(Error::corruption("CURRENT has a length or version no build wrote"));
        }
        Ok(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;

    fn sample() -> Current {
        Current {
            format_version: FORMAT_VERSION,
            required_features: 0,
            manifest_number: 7,
            manifest_uid: 0xfedc_ba98_7654_3210,
            database_uid: 0x0123_4567_89ab_cdef,
        }
    }

    #[test]
    fn every_flip_and_every_cut_is_corruption() {
        let bytes = sample().encode();
        assert_eq!(Current::decode(&bytes).unwrap(), sample());
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Current::decode(&bad).unwrap_err().is_corruption(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Current::decode(&bytes[..len]).unwrap_err().is_corruption());
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Current::decode(&longer).unwrap_err().is_corruption());
    }

    #[test]
    fn newer_is_refused_as_newer() {
        let newer = Current { format_version: FORMAT_VERSION + 1, ..sample() };
        let featured = Current { required_features: 1 << 63, ..sample() };
        for current in [newer, featured] {
            let mut bytes = current.encode();
            assert_eq!(Current::decode(&bytes).unwrap_err().kind(), ErrorKind::NotSupported);
            bytes.extend_from_slice(b"what a later version appends");
            assert_eq!(Current::decode(&bytes).unwrap_err().kind(), ErrorKind::NotSupported);
        }
    }
}
