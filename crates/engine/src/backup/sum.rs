//! Length and checksum of an object, as a record has them.
//!
//! Owns: the two, and the copy that compares them. Never does: trust an object before it was compared.

use super::target::{BackupTarget, io_error, read_piece};
use std::io::Write;
use windrow_base::{Error, Result};
use windrow_env::checksum;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The length of an object, and the CRC-32C of all its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) crc: u32,
}

impl Sum {
    pub(super) fn of(bytes: &[u8]) -> Sum {
        let mut sum = Sum::default();
        sum.add(bytes);
        sum
    }

    /// Adds the bytes that follow.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.crc = checksum::continued(self.crc, bytes);
    }

    /// Copies an object out of a target.
    ///
    /// # Errors
    /// `Corruption` if the bytes are not those that were stored. All of them are in `to` then.
    pub(super) fn copy(
        self,
        target: &dyn BackupTarget,
        name: &str,
        to: &mut dyn Write,
    ) -> Result<()> {
        let named = |error: Error| error.with_file(name);
        let mut from = target.get(name).map_err(named)?;
        let mut buf = vec![0; PIECE_BYTES];
        let mut found = Sum::default();
        loop {
            let piece = read_piece(&mut *from, &mut buf).map_err(named)?;
            if piece.is_empty() {
                break;
            }
            found.add(piece);
            // An object that has grown is damaged: the rest is not needed.
            if self.bytes < found.bytes {
                break;
            }
            to.write_all(piece).map_err(io_error)?;
        }
        match found == self {
            true => Ok(()),
            false => Err(named(Error::corruption(format!(
                "{} bytes with checksum {:08x}, where {} with {:08x} were stored",
                found.bytes, found.crc, self.bytes, self.crc
            )))),
        }
    }
}
