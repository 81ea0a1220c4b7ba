//! How much one device read takes: a block, a block and its neighbour, or a long stretch; and many
//! of them in one submission.
//!
//! Owns: the sizes and the bytes that were read ahead. Never does: decode a block, decide which
//! block is wanted.

use crate::cache::{BlockCache, OpenTable};
use std::ops::Range;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::fs::{DIRECT_ALIGN_BYTES, ReadRequest};
use windrow_env::{Buffer, FileSystem};
use windrow_format::block::Charge;
use windrow_format::table::BlockHandle;

/// A seek that has to read its block reads the blocks after it too, as far as the scan presumably
/// goes in this run, if it leaves its block at least one time in this many: a second read would
/// cost a whole device latency, 4 KiB more cost about 2 us. (Ten nexts in one run of 116-byte
/// entries leave a block of 4 KiB one time in three.)
const LEAVES_BLOCK_ONE_IN: u64 = 8;

/// Most bytes of the blocks that a seek reads together.
const SEEK_BYTES_MAX: u64 = 64 << 10;

/// A stretch of at most this many bytes gives its memory back block by block.
const SHORT_STRETCH_BYTES: usize = 32 << 10;

/// First stretch of [`Readahead::Auto`], doubled by every further one.
const AUTO_BYTES_MIN: u64 = 16 << 10;

/// A stretch that would have fewer blocks than this ends with a whole one: the part of a large
/// block that a stretch ends with is read for nothing, since the block is read again.
const CUT_BLOCKS_MIN: u64 = 8;

/// How a table iterator reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readahead {
    /// One block at a time.
    None,
    /// Nothing at first; stretches that double up to this many bytes while
    /// blocks are read in order.
    Auto { max_bytes: u64 },
    /// Stretches of this many bytes from the first block on: merges, and scans
    /// known to be long.
    Sequential { bytes: u64 },
}

/// Bytes of a file that were read in one go, to decode blocks out of.
#[derive(Default)]
pub struct ReadaheadBuffer {
    offset: u64,
    bytes: Buffer,
    charge: Option<Charge>,
}

impl ReadaheadBuffer {
    /// The range of the block's bytes, if all of them are here.
    #[inline]
    fn range_of(&self, handle: BlockHandle) -> Option<Range<usize>> {
        let from = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        let range = from..from.checked_add(handle.bytes as usize)?;
        (range.end <= self.bytes.len()).then_some(range)
    }

    /// The block's bytes, if all of them are here; the memory stays for the next read, unless the
    /// block is all that is here.
    pub fn copy(&mut self, handle: BlockHandle) -> Option<Buffer> {
        let range = self.range_of(handle)?;
        if range.len() == self.bytes.len() {
            return Some(self.take_buffer().shrunk());
        }
        Some(Buffer::copy_of(&self.bytes[range]))
    }

    /// The block's bytes, if all of them are here. Lets go of the bytes before them in the
    /// direction at hand once few or none are left after them. An idle iterator holds no buffer
    /// then, or one block's.
    pub fn take(&mut self, handle: BlockHandle, forward: bool) -> Option<Buffer> {
        let range = self.range_of(handle)?;
        if range.len() == self.bytes.len() {
            self.charge = None;
            // It may have held a longer stretch before.
            return Some(std::mem::take(&mut self.bytes).shrunk());
        }
        let raw = Buffer::copy_of(&self.bytes[range.clone()]);
        let left = if forward { self.bytes.len() - range.end } else { range.start };
        if left == 0 {
            *self = ReadaheadBuffer::default();
        } else if forward && self.bytes.len() <= SHORT_STRETCH_BYTES {
            self.offset += range.end as u64;
            self.bytes = Buffer::copy_of(&self.bytes[range.end..]);
        }
        Some(raw)
    }

    /// Lets the bytes go, and gives their memory for the next read.
    pub(crate) fn take_buffer(&mut self) -> Buffer {
        std::mem::take(self).bytes
    }

    /// All of the bytes.
    pub fn into_bytes(self) -> Buffer {
        self.bytes
    }
}

/// A read that an iterator waits for.
pub struct PendingRead {
    open: Arc<OpenTable>,
    offset: u64,
    bytes: Buffer,
    charge: Option<Charge>,
    result: Result<()>,
}

impl PendingRead {
    /// Makes a read of `range` of the table's file. Reuses `buffer`'s memory.
    ///
    /// # Errors
    /// `Corruption` if the range passes the file's end.
    pub fn new(open: &Arc<OpenTable>, range: Range<u64>, buffer: Buffer) -> Result<PendingRead> {
        if range.end > open.file_bytes || range.start > range.end {
            return Err(Error::corruption("a block handle points past the end of its file")
                .with_file(open.file.path().display().to_string())
                .with_offset(range.start));
        }
        Ok(PendingRead {
            open: Arc::clone(open),
            offset: range.start,
            bytes: buffer.reused((range.end - range.start) as usize),
            charge: None,
            result: Ok(()),
        })
    }

    /// Counts its bytes as read ahead, from now on and for as long as its stretch holds them.
    pub(crate) fn charge_to(&mut self, blocks: &BlockCache) {
        self.charge = Some(blocks.hold_ahead(self.bytes.memory_bytes() as u64));
    }

    /// Reads it alone.
    pub fn run(&mut self) {
        self.result = self.open.file.read_at(self.offset, &mut self.bytes);
    }

    /// Returns the bytes that were read.
    ///
    /// # Errors
    /// The error of the read.
    pub fn finish(self) -> Result<ReadaheadBuffer> {
        self.result?;
        Ok(ReadaheadBuffer { offset: self.offset, bytes: self.bytes, charge: self.charge })
    }
}

/// Runs the reads of several iterators at the same time: they cost about one
/// device latency together.
pub(crate) fn read_together<'a>(
    fs: &dyn FileSystem,
    reads: impl IntoIterator<Item = &'a mut PendingRead>,
) {
    let mut reads: Vec<&mut PendingRead> = reads.into_iter().collect();
    if let [read] = &mut reads[..] {
        return read.run();
    }
    let mut requests: Vec<ReadRequest<'_>> = reads
        .iter_mut()
        .map(|read| {
            let PendingRead { open, offset, bytes, .. } = &mut **read;
            ReadRequest { file: &*open.file, offset: *offset, buf: bytes, result: Ok(()) }
        })
        .collect();
    fs.read_many(&mut requests);
    let results: Vec<Result<()>> = requests.into_iter().map(|request| request.result).collect();
    for (read, result) in reads.into_iter().zip(results) {
        read.result = result;
    }
}

/// How much to read for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadExtent {
    /// The block, and whole blocks behind it.
    Blocks {
        /// Bytes from the block's first on, after which no further block is added.
        wanted_bytes: u64,
        /// Most bytes of them, unless the block alone has more.
        max_bytes: u64,
    },
    /// A stretch of this many bytes from the block on, in the direction at hand; it may end within
    /// a block.
    Stretch { bytes: u64 },
}

/// Decides how much to read for a block that is neither cached nor read ahead.
pub struct Planner {
    mode: Readahead,
    /// Size of the last stretch; 0 after a seek.
    window_bytes: u64,
    /// Bytes that a scan presumably takes from the table.
    expected_bytes: u64,
}

impl Planner {
    /// Reads single blocks for seeks.
    pub fn new(mode: Readahead) -> Planner {
        Planner { mode, window_bytes: 0, expected_bytes: 0 }
    }

    /// For scans that presumably take `bytes` from the table.
    pub(crate) fn expecting(self, bytes: u64) -> Planner {
        Planner { expected_bytes: bytes, ..self }
    }

    /// The bytes that a seek to a block should read, from the block's first on, if whole blocks
    /// give as many: from anywhere in the block the scan goes as far as expected.
    fn seek_bytes(&self, block: BlockHandle) -> u64 {
        let bytes = u64::from(block.bytes);
        let stays = self.expected_bytes < bytes / LEAVES_BLOCK_ONE_IN;
        match self.mode {
            Readahead::Auto { max_bytes } if !stays => {
                (bytes / 2 + self.expected_bytes).max(bytes + 1).min(SEEK_BYTES_MAX).min(max_bytes)
            }
            _ => bytes,
        }
    }

    /// Notes that the iterator was positioned: a long scan need not follow.
    pub fn seek(&mut self) {
        self.window_bytes = 0;
    }

    /// Returns how much to read for `block`, which was reached by a seek (`stepped` false) or by
    /// walking in `forward` direction from its neighbour, where `max_bytes` may be read ahead.
    pub fn extent(
        &mut self,
        block: BlockHandle,
        stepped: bool,
        forward: bool,
        max_bytes: u64,
    ) -> ReadExtent {
        let block_bytes = u64::from(block.bytes);
        let bytes = match self.mode {
            Readahead::Sequential { bytes } => bytes,
            Readahead::Auto { max_bytes } if stepped => {
                self.window_bytes = (self.window_bytes * 2).max(AUTO_BYTES_MIN).min(max_bytes);
                self.window_bytes
            }
            _ if stepped || !forward => 0,
            _ => {
                let wanted_bytes = self.seek_bytes(block).min(max_bytes);
                // A block far larger than the wanted bytes is left for when it is reached.
                return ReadExtent::Blocks { wanted_bytes, max_bytes: 3 * wanted_bytes };
            }
        };
        let bytes = bytes.min(max_bytes);
        if block_bytes.saturating_mul(CUT_BLOCKS_MIN) <= bytes {
            return ReadExtent::Stretch { bytes };
        }
        let bytes = if forward { bytes } else { 0 };
        ReadExtent::Blocks { wanted_bytes: bytes, max_bytes: bytes }
    }
}

/// The range of a stretch of `bytes` from `block` on, in a file of `file_bytes`: aligned, as direct
/// reads are best.
pub fn stretch_range(block: BlockHandle, bytes: u64, forward: bool, file_bytes: u64) -> Range<u64> {
    let end = block.offset.saturating_add(u64::from(block.bytes));
    if end > file_bytes {
        return block.offset..end;
    }
    let align = DIRECT_ALIGN_BYTES as u64;
    let align_up = |at: u64| at.div_ceil(align).saturating_mul(align).min(file_bytes);
    if forward {
        let from = block.offset / align * align;
        from..align_up(from.saturating_add(bytes)).max(end)
    } else {
        let to = align_up(end);
        let from = to.saturating_sub(bytes) / align * align;
        from.min(block.offset)..to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_BYTES: u64 = 10 << 20;

    fn handle(offset: u64, bytes: u32) -> BlockHandle {
        BlockHandle { offset, bytes }
    }

    fn blocks(wanted_bytes: u64, max_bytes: u64) -> ReadExtent {
        ReadExtent::Blocks { wanted_bytes, max_bytes }
    }

    #[test]
    fn a_seek_reads_as_far_as_scans_go() {
        let auto = Readahead::Auto { max_bytes: 1 << 20 };
        let block = handle(5000, 4096);
        for (expected, bytes) in [
            (0, 4096),
            (500, 4096),
            (512, 4097),
            (2000, 4097),
            (11_600, 13_648),
            (1 << 30, 64 << 10),
        ] {
            let seek = |mode, most_bytes| {
                let mut plan = Planner::new(mode).expecting(expected);
                plan.extent(block, false, true, most_bytes)
            };
            assert_eq!(seek(auto, u64::MAX), blocks(bytes, 3 * bytes));
            assert_eq!(seek(auto, 4096), blocks(4096, 3 * 4096));
            assert_eq!(seek(Readahead::None, u64::MAX), blocks(4096, 3 * 4096));
        }
        let small = Readahead::Auto { max_bytes: 8192 };
        let mut plan = Planner::new(small).expecting(1 << 30);
        assert_eq!(plan.extent(block, false, true, u64::MAX), blocks(8192, 3 * 8192));
        assert_eq!(plan.extent(block, false, false, u64::MAX), blocks(0, 0));
    }

    #[test]
    fn stretches_double_while_reads_stay_in_order() {
        let mut plan = Planner::new(Readahead::Auto { max_bytes: 64 << 10 });
        let mut step = || plan.extent(handle(8192, 2048), true, true, u64::MAX);
        for kib in [16, 32, 64, 64, 64] {
            assert_eq!(step(), ReadExtent::Stretch { bytes: kib << 10 });
        }
        plan.seek();
        let first = plan.extent(handle(8192, 2048), true, true, u64::MAX);
        assert_eq!(first, ReadExtent::Stretch { bytes: 16 << 10 });
    }

    /// A stretch that ends within a large block reads that part of it twice.
    #[test]
    fn a_stretch_of_few_blocks_ends_with_a_whole_one() {
        let sequential = Readahead::Sequential { bytes: 256 << 10 };
        for (bytes, extent) in [
            (32 << 10, ReadExtent::Stretch { bytes: 256 << 10 }),
            ((32 << 10) + 1, blocks(256 << 10, 256 << 10)),
            (1 << 20, blocks(256 << 10, 256 << 10)),
        ] {
            let mut plan = Planner::new(sequential);
            assert_eq!(plan.extent(handle(8192, bytes), true, true, u64::MAX), extent);
        }
        let mut plan = Planner::new(sequential);
        assert_eq!(plan.extent(handle(8192, 1 << 20), true, false, u64::MAX), blocks(0, 0));
        assert_eq!(plan.extent(handle(8192, 16 << 10), true, true, 64 << 10), blocks(65536, 65536));
    }

    /// With any sizes, the range holds the block and stays in the file.
    #[test]
    fn a_stretch_holds_its_block_and_stays_in_the_file() {
        for bytes in [0, 1, 20_000, 256 << 10, u64::MAX] {
            for offset in [0, 1, 4095, 4096, 777_777, FILE_BYTES - 5000] {
                for block_bytes in [1, 4096, 5000] {
                    for forward in [true, false] {
                        let block = handle(offset, block_bytes);
                        let range = stretch_range(block, bytes, forward, FILE_BYTES);
                        let end = offset + u64::from(block_bytes);
                        assert!(range.start <= offset && end <= range.end);
                        assert!(range.end <= FILE_BYTES, "{bytes} {block:?} {range:?}");
                        // Rounding at both ends, and the block itself.
                        let most = bytes.saturating_add(2 * 4096 + u64::from(block_bytes));
                        assert!(range.end - range.start <= most, "{bytes} {range:?}");
                    }
                }
            }
        }
        let outside = handle(FILE_BYTES - 10, 11);
        assert_eq!(stretch_range(outside, 4096, true, FILE_BYTES).end, FILE_BYTES + 1);
    }

    #[test]
    fn a_stretch_gives_only_whole_blocks() {
        let bytes: Vec<u8> = (0..50).collect();
        let mut stretch =
            ReadaheadBuffer { offset: 100, bytes: Buffer::copy_of(&bytes), charge: None };
        assert_eq!(stretch.copy(handle(110, 3)), Some(Buffer::copy_of(&[10, 11, 12])));
        assert_eq!(stretch.copy(handle(149, 1)), Some(Buffer::copy_of(&[49])));
        for outside in [handle(99, 2), handle(149, 2), handle(150, 1), handle(u64::MAX, 1)] {
            assert_eq!(stretch.copy(outside), None);
        }
        assert_eq!(stretch.copy(handle(100, 50)), Some(Buffer::copy_of(&bytes)));
        assert_eq!(stretch.bytes.memory_bytes(), 0, "the only block is not copied");
    }

    #[test]
    fn a_stretch_that_was_read_to_its_end_holds_nothing() {
        let cache = BlockCache::new(1 << 20);
        let stretch = |bytes: usize| {
            let charge = Some(cache.hold_ahead(bytes as u64));
            ReadaheadBuffer { offset: 100, bytes: Buffer::copy_of(&vec![7; bytes]), charge }
        };
        let mut alone = stretch(50);
        assert_eq!(alone.take(handle(100, 50), true), Some(Buffer::copy_of(&[7; 50])));
        assert!(alone.bytes.memory_bytes() == 0 && alone.charge.is_none());
        let mut pair = stretch(90);
        assert_eq!(pair.take(handle(100, 50), true), Some(Buffer::copy_of(&[7; 50])));
        assert_eq!((pair.offset, pair.bytes.memory_bytes()), (150, 40));
        assert_eq!(pair.take(handle(100, 50), true), None);
        assert_eq!(pair.take(handle(150, 40), true), Some(Buffer::copy_of(&[7; 40])));
        assert_eq!(pair.bytes.memory_bytes(), 0);
        let mut long = stretch(1 << 20);
        assert_eq!(long.take(handle(100, 50), true), Some(Buffer::copy_of(&[7; 50])));
        assert_eq!(long.bytes.len(), 1 << 20, "bytes are not moved for every block");
        let mut back = stretch(1 << 20);
        assert_eq!(back.take(handle(200, 50), false), Some(Buffer::copy_of(&[7; 50])));
        assert_eq!(back.take(handle(100, 50), false), Some(Buffer::copy_of(&[7; 50])));
        assert!(back.bytes.memory_bytes() == 0 && back.charge.is_none());
    }
}
