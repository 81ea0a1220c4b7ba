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

    /// A copy of the block's bytes, if all of them are here.
    pub fn copy(&self, handle: BlockHandle) -> Option<Buffer> {
        Some(Buffer::copy_of(&self.bytes[self.range_of(handle)?]))
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

/// The limits of a stretch in every mode.
#[derive(Clone, Copy, Debug)]
pub struct ReadaheadLimits {
    /// Most bytes of a stretch, except its block.
    pub max_bytes: u64,
    /// The file's length.
    pub file_bytes: u64,
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
    pub(crate) fn seek_bytes(&self, block: BlockHandle) -> u64 {
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

    /// Returns the range to read for `block`, which was reached by a seek (`stepped` false) or by
    /// walking in `forward` direction from its neighbour. `seek_end` is the end of the blocks that
    /// a seek reads with it.
    pub fn plan(
        &mut self,
        block: BlockHandle,
        seek_end: u64,
        stepped: bool,
        forward: bool,
        limits: ReadaheadLimits,
    ) -> Range<u64> {
        let ReadaheadLimits { max_bytes, file_bytes } = limits;
        let end = block.offset.saturating_add(u64::from(block.bytes));
        let alone = block.offset..end;
        let asked_bytes = match self.mode {
            Readahead::Sequential { bytes } => bytes,
            Readahead::Auto { max_bytes } if stepped => {
                self.window_bytes = (self.window_bytes * 2).max(AUTO_BYTES_MIN).min(max_bytes);
                self.window_bytes
            }
            _ if stepped || !forward => return alone,
            _ => return block.offset..seek_end.max(end),
        };
        if end > file_bytes {
            return alone;
        }
        let bytes = asked_bytes.min(max_bytes).min(file_bytes);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_BYTES: u64 = 10 << 20;
    const LIMITS: ReadaheadLimits = ReadaheadLimits { max_bytes: u64::MAX, file_bytes: FILE_BYTES };

    fn handle(offset: u64, bytes: u32) -> BlockHandle {
        BlockHandle { offset, bytes }
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
            assert_eq!(Planner::new(auto).expecting(expected).seek_bytes(block), bytes);
            assert_eq!(Planner::new(Readahead::None).expecting(expected).seek_bytes(block), 4096);
        }
        let small = Readahead::Auto { max_bytes: 8192 };
        assert_eq!(Planner::new(small).expecting(1 << 30).seek_bytes(block), 8192);
        let mut plan = Planner::new(auto);
        assert_eq!(plan.plan(block, 13_192, false, true, LIMITS), 5000..13_192);
        assert_eq!(plan.plan(block, 0, false, true, LIMITS), 5000..9096);
        assert_eq!(plan.plan(block, 13_192, false, false, LIMITS), 5000..9096);
    }

    #[test]
    fn stretches_double_while_reads_stay_in_order() {
        let mut plan = Planner::new(Readahead::Auto { max_bytes: 64 << 10 });
        let mut sizes = Vec::new();
        for _ in 0..5 {
            let range = plan.plan(handle(8192, 4096), 0, true, true, LIMITS);
            assert_eq!(range.start, 8192);
            sizes.push(range.end - range.start);
        }
        assert_eq!(sizes, [16 << 10, 32 << 10, 64 << 10, 64 << 10, 64 << 10]);
        plan.seek();
        assert_eq!(plan.plan(handle(8192, 4096), 0, true, true, LIMITS).end, 8192 + (16 << 10));
    }

    /// With any sizes, the range holds the block and stays in the file.
    #[test]
    fn a_range_holds_its_block_and_stays_in_the_file() {
        let modes = [
            Readahead::None,
            Readahead::Auto { max_bytes: 20_000 },
            Readahead::Sequential { bytes: 256 << 10 },
            Readahead::Sequential { bytes: 1 },
            Readahead::Sequential { bytes: u64::MAX },
            Readahead::Auto { max_bytes: u64::MAX },
        ];
        for mode in modes {
            for offset in [0, 1, 4095, 4096, 777_777, FILE_BYTES - 5000] {
                for bytes in [1, 4096, 5000] {
                    for (stepped, forward) in
                        [(true, true), (true, false), (false, true), (false, false)]
                    {
                        let block = handle(offset, bytes);
                        for max_bytes in [0, 1, 10_000, u64::MAX] {
                            let limits = ReadaheadLimits { max_bytes, ..LIMITS };
                            let mut plan = Planner::new(mode);
                            let range = plan.plan(block, 0, stepped, forward, limits);
                            let end = offset + u64::from(bytes);
                            assert!(range.start <= offset && end <= range.end);
                            assert!(range.end <= FILE_BYTES, "{mode:?} {block:?} {range:?}");
                            // Rounding at both ends, and the block itself.
                            let most = max_bytes.saturating_add(2 * 4096 + u64::from(bytes));
                            assert!(range.end - range.start <= most, "{mode:?} {range:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_stretch_gives_only_whole_blocks() {
        let bytes: Vec<u8> = (0..50).collect();
        let stretch = ReadaheadBuffer { offset: 100, bytes: Buffer::copy_of(&bytes), charge: None };
        assert_eq!(stretch.copy(handle(110, 3)), Some(Buffer::copy_of(&[10, 11, 12])));
        assert_eq!(stretch.copy(handle(149, 1)), Some(Buffer::copy_of(&[49])));
        for outside in [handle(99, 2), handle(149, 2), handle(150, 1), handle(u64::MAX, 1)] {
            assert_eq!(stretch.copy(outside), None);
        }
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
