//! A manifest that was read to its end, and its comparison with a log's record of it.
//!
//! Owns: that comparison. Never does: read either.

use std::path::Path;
use windrow_base::{Error, FileNumber, FileUid, Result};
use windrow_format::log::Length;
use windrow_format::names;

/// A manifest that was read to its end.
#[derive(Clone, Copy, Debug)]
pub struct FoldedManifest {
    /// Its identity.
    pub uid: FileUid,
    /// How far it is valid.
    pub valid: Length,
    /// Bytes behind that which were not written whole.
    pub torn_bytes: u64,
}

impl FoldedManifest {
    /// Compares it with the manifest in force by a log's record of it.
    ///
    /// # Errors
    /// `Corruption` naming the manifest, or CURRENT if that names an older one.
    pub fn check(&self, dir: &Path, seen: Length, log: FileNumber) -> Result<()> {
        let (valid, what) = (self.valid, format!("log {log} saw"));
        let (name, what, offset) = if seen.number > valid.number {
            let what = format!("{what} manifest {} in force, not {}", seen.number, valid.number);
            (names::CURRENT.to_owned(), what, 0)
        } else if seen.number == valid.number && seen.bytes > valid.bytes {
            let what = format!(
                "the manifest ends at {}, but {what} {} bytes of it synced",
                valid.bytes, seen.bytes
            );
            (names::manifest(valid.number), what, valid.bytes)
        } else {
            return Ok(());
        };
        let file = dir.join(name).display().to_string();
        Err(Error::corruption(what).with_file(file).with_offset(offset))
    }
}
