//! The sink of a table's blocks: the file, which gets each block with its trailer.
//!
//! Owns: the file while it is written. Never does: decide a block's content.

use super::{BlockHandle, BlockKind};
use crate::block::{BLOCK_TRAILER_BYTES, trailer};
use crate::codec::Codec;
use windrow_base::{Error, FileUid, Result, check_invariant};
use windrow_env::WriteFile;

/// Appends blocks to the file, each with its trailer.
pub(super) struct BlockSink {
    pub(super) file: Box<dyn WriteFile>,
    pub(super) uid: FileUid,
}

impl BlockSink {
    /// The offset of the next block.
    pub(super) fn offset(&self) -> u64 {
        self.file.len()
    }

    /// Writes a block.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn write(
        &mut self,
        kind: BlockKind,
        codec: Codec,
        payload: &[u8],
    ) -> Result<BlockHandle> {
        let offset = self.offset();
        let bytes = u32::try_from(payload.len() + BLOCK_TRAILER_BYTES)
            .map_err(|_| Error::invalid("a block would pass 4 GiB"))?;
        self.file.append(payload)?;
        self.file.append(&trailer(self.uid, offset, kind, codec, payload))?;
        let end = self.offset();
        let due = offset + u64::from(bytes);
        check_invariant!(
            R6,
            end == due,
            "a block with the seed of {offset} ends at {end}, not {due}"
        );
        Ok(BlockHandle { offset, bytes })
    }

    /// Writes a block that is read in place, so never compressed.
    pub(super) fn write_plain(&mut self, kind: BlockKind, payload: &[u8]) -> Result<BlockHandle> {
        self.write(kind, Codec::None, payload)
    }
}
