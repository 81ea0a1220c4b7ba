//! The pieces that a table consists of, in the order in which they lie: header, blocks, footer.
//!
//! For who copies a table, and is not to copy damage along: each byte is in one piece, and each
//! piece has a checksum. Where pieces end, the index says, whose blocks are read and checked first.
//!
//! Owns: where pieces end, and the check of each before a copy gets it. Never does: decompress a block,
//! or look into one of data (`verify.rs` does).

use super::footer::{Footer, decode_header};
use super::{
    BLOCK_TRAILER_BYTES, BlockHandle, BlockKind, FOOTER_BYTES, HEADER_BYTES, Locate,
    decode_partition, read_block,
};
use std::sync::Arc;
use windrow_base::{Error, FileUid, Result, unless_mutant};
use windrow_env::ReadFile;
use windrow_env::checksum::checksum;

/// Reads a table from its beginning, for a copy. Damaged pieces are not handed on.
pub struct PieceReader {
    file: Arc<dyn ReadFile>,
    pieces: Pieces,
    /// The end of the pieces that were read.
    at: u64,
    /// The pieces that were read last.
    buf: Vec<u8>,
}

impl std::fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PieceReader({} at {} of {:?})", self.file.path().display(), self.at, self.pieces)
    }
}

impl PieceReader {
    /// Makes a reader of a table that was written with this uid and length.
    ///
    /// # Errors
    /// `Corruption` for a file of another length, and where footer or index are damaged, or blocks do
    /// not lie back to back; `NotSupported` for a newer format; `Io`.
    pub fn new(file: Arc<dyn ReadFile>, uid: FileUid, bytes: u64) -> Result<PieceReader> {
        if file.len() != bytes {
            let text = format!("it has {} bytes, where {bytes} were written", file.len());
            return Err(Error::corruption(text).with_file(file.path().display().to_string()));
        }
        let pieces = Pieces::of(&*file, uid)?;
        Ok(PieceReader { file, pieces, at: 0, buf: Vec::new() })
    }

    /// Returns the number of bytes that [`PieceReader::read`] reads next; 0 at the end.
    pub fn next_bytes(&self, bytes_max: u64) -> u64 {
        if self.at == self.file.len() {
            0
        } else {
            self.pieces.end_of(self.at, bytes_max) - self.at
        }
    }

    /// Reads and checks the whole pieces that fit into `bytes_max`, or one that is larger; nothing at
    /// the end.
    ///
    /// # Errors
    /// `Corruption` of a piece that is not what was written, `Io`. The table ends there for the
    /// caller.
    pub fn read(&mut self, bytes_max: u64) -> Result<&[u8]> {
        let len = self.next_bytes(bytes_max);
        if let Err(error) = self.read_checked(len) {
            self.buf.clear();
            return Err(error);
        }
        self.at += len;
        Ok(&self.buf)
    }

    fn read_checked(&mut self, len: u64) -> Result<()> {
        self.buf.clear();
        self.buf.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        self.file.read_at(self.at, &mut self.buf)?;
        let named = |error: Error| error.with_file(self.file.path().display().to_string());
        unless_mutant!(
            BackupSourceUnchecked,
            self.pieces.check(self.at, &self.buf).map_err(named)?
        );
        Ok(())
    }

    /// Returns the pieces that were read last; none after an error.
    pub fn last(&self) -> &[u8] {
        &self.buf
    }
}

/// Where the pieces of a table end.
#[derive(Debug)]
struct Pieces {
    uid: FileUid,
    /// Of header, blocks and footer, ascending.
    ends: Vec<u64>,
}

impl Pieces {
    /// The pieces of the table with this uid.
    ///
    /// # Errors
    /// `Corruption` where footer or index are damaged, or blocks do not lie back to back;
    /// `NotSupported` for a newer format; `Io`.
    fn of(file: &dyn ReadFile, uid: FileUid) -> Result<Pieces> {
        Pieces::read(file, uid).map_err(|e| e.with_file(file.path().display().to_string()))
    }

    fn read(file: &dyn ReadFile, uid: FileUid) -> Result<Pieces> {
        let file_bytes = file.len();
        let footer_at = file_bytes
            .checked_sub(FOOTER_BYTES as u64)
            .filter(|at| HEADER_BYTES as u64 <= *at)
            .ok_or_else(|| Error::corruption(format!("{file_bytes} bytes are no table")))?;
        let mut footer = [0; FOOTER_BYTES];
        file.read_at(footer_at, &mut footer)?;
        let footer = Footer::decode(&footer, file_bytes, uid)?;
        let mut blocks: Vec<_> = footer.handles().into_iter().filter(|h| h.bytes > 0).collect();
        let index = read_block(file, uid, footer.index, BlockKind::Index)?;
        let index = decode_partition(&index)?;
        for entry in 0..index.len() {
            match index.get(entry) {
                Locate::Block(block) => blocks.push(block),
                Locate::Partition(partition) => {
                    blocks.extend(partition.filter);
                    blocks.push(partition.index);
                    let index = read_block(file, uid, partition.index, BlockKind::Index)?;
                    let index = decode_partition(&index)?;
                    for entry in 0..index.len() {
                        let Locate::Block(block) = index.get(entry) else {
                            return Err(Error::corruption("a partition leads to no block")
                                .with_offset(partition.index.offset));
                        };
                        blocks.push(block);
                    }
                }
                Locate::None => {}
            }
        }
        check_tiles(&mut blocks, file_bytes)?;
        let header = std::iter::once(HEADER_BYTES as u64);
        let ends = header.chain(blocks.iter().map(BlockHandle::end)).chain([file_bytes]);
        Ok(Pieces { uid, ends: ends.collect() })
    }

    /// Returns the end of the whole pieces that fit into `bytes_max` from `begin` on, where one begins;
    /// if the first is larger, its end.
    fn end_of(&self, begin: u64, bytes_max: u64) -> u64 {
        let next = self.ends.partition_point(|end| *end <= begin);
        let beyond = self.ends.partition_point(|end| *end <= begin.saturating_add(bytes_max));
        let last = self.ends.len() - 1;
        self.ends[next.max(beyond.saturating_sub(1)).min(last)]
    }

    /// Checks whole pieces that were read from `begin` on.
    ///
    /// # Errors
    /// `Corruption` with the offset of the first one that is not what was written.
    fn check(&self, begin: u64, bytes: &[u8]) -> Result<()> {
        let (mut at, mut rest) = (begin, bytes);
        let first = self.ends.partition_point(|end| *end <= begin);
        for &end in &self.ends[first..] {
            if rest.is_empty() {
                break;
            }
            let len = usize::try_from(end - at).unwrap_or(usize::MAX);
            let (piece, behind) = rest
                .split_at_checked(len)
                .ok_or_else(|| Error::corruption("a part of a piece of a table").with_offset(at))?;
            self.check_piece(at, piece).map_err(|error| error.with_offset(at))?;
            (at, rest) = (end, behind);
        }
        match rest {
            [] => Ok(()),
            _ => Err(Error::corruption("bytes behind the end of a table").with_offset(at)),
        }
    }

    fn check_piece(&self, at: u64, piece: &[u8]) -> Result<()> {
        if at == 0 {
            let head = piece.first_chunk().ok_or_else(|| Error::corruption("no header"))?;
            return match decode_header(head)? == self.uid {
                true => Ok(()),
                false => Err(Error::corruption("table header carries another uid")),
            };
        }
        // Of blocks and of the footer alike.
        match piece.split_last_chunk::<4>() {
            Some((covered, crc))
                if u32::from_le_bytes(*crc) == checksum(self.uid, at, &[covered]) =>
            {
                Ok(())
            }
            _ => Err(Error::corruption("a block of a table fails its checksum")),
        }
    }
}

/// That no byte of a table is outside of header, blocks and footer. Sorts the blocks.
///
/// # Errors
/// `Corruption` with the offset where that is not so.
pub(super) fn check_tiles(blocks: &mut [BlockHandle], file_bytes: u64) -> Result<()> {
    blocks.sort_unstable_by_key(|block| block.offset);
    let wrong = |at| Error::corruption("bytes that belong to no block, or to two").with_offset(at);
    let mut at = HEADER_BYTES as u64;
    for block in blocks {
        if block.offset != at || (block.bytes as usize) < BLOCK_TRAILER_BYTES {
            return Err(wrong(at));
        }
        at = block.end();
    }
    match at + FOOTER_BYTES as u64 == file_bytes {
        true => Ok(()),
        false => Err(wrong(at)),
    }
}
