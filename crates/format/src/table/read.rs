//! Reading single blocks of a table.
//!
//! Owns: the checks of a handle against its file, and the file name and offset in errors. Never
//! does: cache a block, or read ahead.

use super::{BLOCK_TRAILER_BYTES, Block, BlockHandle, BlockKind};
use std::path::Path;
use windrow_base::{Error, FileUid, Result, debug_invariant};
use windrow_env::{Buffer, ReadFile};

/// Reads, checks and decompresses a block.
///
/// # Errors
/// `Corruption`, naming file and offset, if the block does not lie in the
/// file, fails its checksum, or is malformed; `NotSupported` for a codec this
/// build lacks; `Io`.
pub fn read_block(
    file: &dyn ReadFile,
    uid: FileUid,
    handle: BlockHandle,
    kind: BlockKind,
) -> Result<Block> {
    // Checked before anything is allocated (R12).
    if handle.end() > file.len() || (handle.bytes as usize) < BLOCK_TRAILER_BYTES {
        return Err(Error::corruption(format!(
            "a {} block would lie outside its file",
            kind.name()
        ))
        .with_file(file.path().display().to_string())
        .with_offset(handle.offset));
    }
    let mut raw = Buffer::new(handle.bytes as usize);
    file.read_at(handle.offset, &mut raw)?;
    decode_block(raw, file.path(), uid, handle, kind)
}

/// Checks and decompresses a block whose bytes were read already.
///
/// # Errors
/// As [`read_block`], without `Io`.
pub fn decode_block(
    raw: Buffer,
    file_path: &Path,
    uid: FileUid,
    handle: BlockHandle,
    kind: BlockKind,
) -> Result<Block> {
    let (len, due) = (raw.len(), handle.bytes as usize);
    debug_invariant!(R12, len == due, "{len} bytes are taken for a block of {due}");
    Block::from_disk(raw, uid, handle.offset, kind)
        .map_err(|e| e.with_file(file_path.display().to_string()).with_offset(handle.offset))
}
