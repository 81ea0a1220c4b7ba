//! A file whose bytes are an input, for readers that need no file system.
//!
//! Owns: the bytes. Never does: write.

use std::path::Path;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::ReadFile;

/// Bytes that are read as a file.
pub(super) struct MemoryFile(Vec<u8>);

impl MemoryFile {
    pub(super) fn open(bytes: Vec<u8>) -> Arc<dyn ReadFile> {
        Arc::new(MemoryFile(bytes))
    }
}

impl ReadFile for MemoryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let Some(bytes) = from.and_then(|bytes| bytes.get(..buf.len())) else {
            return Err(Error::corruption("the file ends early").with_file("input"));
        };
        buf.copy_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> &Path {
        Path::new("input")
    }
}
