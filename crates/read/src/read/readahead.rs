//! How much one device read takes: a block, a block and its neighbour, or a long stretch; and many
//! of them in one submission.
//!
//! Owns: the sizes and the bytes that were read ahead. Never does: decode a block, decide which
//! block is wanted.

use crate::cache::{BlockCache, OpenTable};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::fs::{DIRECT_ALIGN_BYTES, ReadRequest, scatter};
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

/// Bytes of a file that were read in one go, to decode blocks out of: whole blocks, each in a buffer
/// of its own, or one stretch.
#[derive(Default)]
pub struct ReadaheadBuffer {
    /// Of the first piece; the others follow.
    offset: u64,
    pieces: VecDeque<Buffer>,
    charge: Option<Charge>,
}

impl ReadaheadBuffer {
    /// The piece that has all of the block's bytes, and their range in it. A damaged index may name
    /// a block without bytes, which is here as well once it was read: to be refused, not read again.
    #[inline]
    fn place_of(&self, handle: BlockHandle) -> Option<(usize, Range<usize>)> {
        let mut from = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        let last = self.pieces.len().checked_sub(1)?;
        let mut place = 0;
        while place < last && from >= self.pieces[place].len() {
            from -= self.pieces[place].len();
            place += 1;
        }
        let range = from..from.checked_add(handle.bytes as usize)?;
        (range.end <= self.pieces[place].len()).then_some((place, range))
    }

    /// Whether all of the block's bytes are here.
    #[inline]
    pub(crate) fn has(&self, handle: BlockHandle) -> bool {
        self.place_of(handle).is_some()
    }

    /// The block's bytes, if all of them are here; the memory stays for the next read, unless the
    /// block is all that is here.
    pub fn copy(&mut self, handle: BlockHandle) -> Option<Buffer> {
        let (place, range) = self.place_of(handle)?;
        match self.pieces.len() == 1 && range.len() == self.pieces[place].len() {
            true => Some(self.take_buffer().shrunk()),
            false => Some(Buffer::copy_of(&self.pieces[place][range])),
        }
    }

    /// The block's bytes, if all of them are here. Lets go of the blocks before it in the direction
    /// at hand, and of a stretch once none is left after it. An idle iterator holds no buffer then,
    /// or the blocks that it presumably goes on with.
    pub fn take(&mut self, handle: BlockHandle, forward: bool) -> Option<Buffer> {
        let (place, range) = self.place_of(handle)?;
        let piece = &self.pieces[place];
        if range.len() < piece.len() {
            let raw = Buffer::copy_of(&piece[range.clone()]);
            let is_last = if forward { range.end == piece.len() } else { range.start == 0 };
            if is_last {
                *self = ReadaheadBuffer::default();
            }
            return Some(raw);
        }
        let passed =
            if forward { self.pieces.drain(..place) } else { self.pieces.drain(place + 1..) };
        let passed_bytes: usize = passed.map(|piece| piece.memory_bytes()).sum();
        let raw = if forward { self.pieces.pop_front() } else { self.pieces.pop_back() }?;
        if forward {
            self.offset = handle.end();
        }
        match &mut self.charge {
            _ if self.pieces.is_empty() => *self = ReadaheadBuffer::default(),
            Some(charge) => charge.give_back((passed_bytes + raw.memory_bytes()) as u64),
            None => {}
        }
        Some(raw.shrunk())
    }

    /// Lets the bytes go, and gives their memory for the next read.
    pub(crate) fn take_buffer(&mut self) -> Buffer {
        std::mem::take(self).into_bytes()
    }

    /// The bytes of a read of one piece.
    pub fn into_bytes(mut self) -> Buffer {
        self.pieces.pop_front().unwrap_or_default()
    }
}

/// A read that an iterator waits for.
pub struct PendingRead {
    open: Arc<OpenTable>,
    offset: u64,
    pieces: Vec<Buffer>,
    charge: Option<Charge>,
    result: Result<()>,
}

impl PendingRead {
    /// Makes a read of `range` of the table's file in one piece. Reuses `buffer`'s memory.
    ///
    /// # Errors
    /// `Corruption` if the range passes the file's end.
    pub fn new(open: &Arc<OpenTable>, range: Range<u64>, buffer: Buffer) -> Result<PendingRead> {
        let bytes = range.end.saturating_sub(range.start) as usize;
        PendingRead::checked(open, range, || vec![buffer.reused(bytes)])
    }

    /// Makes a read of blocks that follow each other, the first one at `offset`, each in a buffer
    /// of its own.
    ///
    /// # Errors
    /// `Corruption` if they pass the file's end.
    pub fn of_blocks(open: &Arc<OpenTable>, offset: u64, blocks: &[u32]) -> Result<PendingRead> {
        let bytes: u64 = blocks.iter().map(|bytes| u64::from(*bytes)).sum();
        let buffers = || blocks.iter().map(|bytes| Buffer::new(*bytes as usize)).collect();
        PendingRead::checked(open, offset..offset.saturating_add(bytes), buffers)
    }

    /// Makes the buffers only for a range that is in the file: the index may be damaged.
    fn checked(
        open: &Arc<OpenTable>,
        range: Range<u64>,
        buffers: impl FnOnce() -> Vec<Buffer>,
    ) -> Result<PendingRead> {
        if range.end > open.file_bytes || range.start > range.end {
            return Err(Error::corruption("a block handle points past the end of its file")
                .with_file(open.file.path().display().to_string())
                .with_offset(range.start));
        }
        Ok(PendingRead {
            open: Arc::clone(open),
            offset: range.start,
            pieces: buffers(),
            charge: None,
            result: Ok(()),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Counts its bytes as read ahead, from now on and for as long as any of them is held.
    pub(crate) fn charge_to(&mut self, blocks: &BlockCache) {
        let bytes = self.pieces.iter().map(Buffer::memory_bytes).sum::<usize>();
        self.charge = Some(blocks.hold_ahead(bytes as u64));
    }

    /// Reads it alone.
    pub fn run(&mut self) {
        let file = &self.open.file;
        self.result = match &mut self.pieces[..] {
            [bytes] => file.read_at(self.offset, bytes),
            pieces => file.read_pieces_at(self.offset, pieces),
        };
    }

    /// Returns the bytes that were read.
    ///
    /// # Errors
    /// The error of the read.
    pub fn finish(self) -> Result<ReadaheadBuffer> {
        self.result?;
        let PendingRead { offset, pieces, charge, .. } = self;
        Ok(ReadaheadBuffer { offset, pieces: pieces.into(), charge })
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
    // One buffer for each read, from which its pieces are filled.
    let whole = |read: &&mut PendingRead| match read.pieces.len() {
        1 => Buffer::default(),
        _ => Buffer::new(read.bytes()),
    };
    let mut stretches: Vec<Buffer> = reads.iter().map(whole).collect();
    let mut requests: Vec<ReadRequest<'_>> = reads
        .iter_mut()
        .zip(&mut stretches)
        .map(|(read, stretch)| {
            let PendingRead { open, offset, pieces, .. } = &mut **read;
            let buf = if let [bytes] = &mut pieces[..] { bytes } else { stretch };
            ReadRequest { file: &*open.file, offset: *offset, buf, result: Ok(()) }
        })
        .collect();
    fs.read_many(&mut requests);
    let results: Vec<Result<()>> = requests.into_iter().map(|request| request.result).collect();
    for ((read, stretch), result) in reads.into_iter().zip(stretches).zip(results) {
        if result.is_ok() && read.pieces.len() > 1 {
            scatter(&stretch, &mut read.pieces);
        }
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

    fn read(pieces: &[usize], cache: Option<&BlockCache>) -> ReadaheadBuffer {
        let mut at = 100..;
        let piece = |bytes: &usize| {
            let bytes: Vec<u8> = at.by_ref().take(*bytes).map(|at: u64| at as u8).collect();
            Buffer::copy_of(&bytes)
        };
        let pieces: VecDeque<Buffer> = pieces.iter().map(piece).collect();
        let bytes = pieces.iter().map(|piece| piece.memory_bytes() as u64).sum();
        ReadaheadBuffer { offset: 100, pieces, charge: cache.map(|cache| cache.hold_ahead(bytes)) }
    }

    fn bytes_of(block: BlockHandle) -> Option<Buffer> {
        let bytes: Vec<u8> = (block.offset..block.end()).map(|at| at as u8).collect();
        Some(Buffer::copy_of(&bytes))
    }

    fn holds_nothing(read: &ReadaheadBuffer) -> bool {
        read.pieces.is_empty() && read.charge.is_none()
    }

    #[test]
    fn a_stretch_gives_only_whole_blocks() {
        let mut stretch = read(&[50], None);
        for block in [handle(110, 3), handle(149, 1)] {
            assert_eq!(stretch.copy(block), bytes_of(block));
        }
        for outside in [handle(99, 2), handle(149, 2), handle(150, 1), handle(u64::MAX, 1)] {
            assert_eq!(stretch.copy(outside), None);
        }
        let start = stretch.pieces[0].as_non_null();
        let all = stretch.copy(handle(100, 50)).unwrap();
        assert_eq!((all.as_non_null(), Some(all)), (start, bytes_of(handle(100, 50))));
        assert!(stretch.pieces.is_empty(), "the only block is not copied");
    }

    /// Else an iterator would read it again and again.
    #[test]
    fn a_block_without_bytes_is_given() {
        for forward in [true, false] {
            let mut nothing = read(&[0], None);
            assert_eq!(nothing.take(handle(100, 0), forward), Some(Buffer::default()));
            assert!(holds_nothing(&nothing));
        }
        assert_eq!(read(&[0], None).copy(handle(100, 0)), Some(Buffer::default()));
        assert_eq!(read(&[5, 5], None).take(handle(105, 0), true), Some(Buffer::default()));
        assert_eq!(ReadaheadBuffer::default().take(handle(0, 0), true), None);
    }

    #[test]
    fn a_stretch_that_was_read_to_its_end_holds_nothing() {
        let cache = BlockCache::new(1 << 20);
        let mut long = read(&[1 << 20], Some(&cache));
        assert_eq!(long.take(handle(100, 50), true), bytes_of(handle(100, 50)));
        assert_eq!(long.pieces[0].len(), 1 << 20, "bytes are not moved for every block");
        assert!(long.take(handle(150, (1 << 20) - 50), true).is_some());
        assert!(holds_nothing(&long));
        let mut back = read(&[1 << 20], Some(&cache));
        assert_eq!(back.take(handle(200, 50), false), bytes_of(handle(200, 50)));
        assert_eq!(back.take(handle(100, 50), false), bytes_of(handle(100, 50)));
        assert!(holds_nothing(&back));
        assert_eq!(cache.held_bytes(), 0);
    }

    /// Each in the memory that it was read into, whose charge ends with it.
    #[test]
    fn blocks_go_one_by_one_and_those_passed_with_them() {
        let cache = BlockCache::new(1 << 20);
        let sizes = [5000, 3000, 4000, 600];
        let begins = [100, 5100, 8100, 12_100];
        let blocks: Vec<BlockHandle> =
            begins.iter().zip(sizes).map(|(at, bytes)| handle(*at, bytes as u32)).collect();
        let memory = |read: &ReadaheadBuffer| -> u64 {
            read.pieces.iter().map(|piece| piece.memory_bytes() as u64).sum()
        };
        for (forward, order, left) in [
            (true, [0, 2, 3], [3, 1, 0]),
            (false, [3, 1, 0], [3, 1, 0]),
            (true, [1, 2, 3], [2, 1, 0]),
        ] {
            let mut read = read(&sizes, Some(&cache));
            for (block, left) in order.into_iter().zip(left) {
                let start =
                    read.place_of(blocks[block]).map(|(at, _)| read.pieces[at].as_non_null());
                let raw = read.take(blocks[block], forward);
                assert_eq!(raw.as_ref().map(Buffer::as_non_null), start, "it is not copied");
                assert_eq!(raw, bytes_of(blocks[block]));
                assert!(!read.has(blocks[block]));
                assert_eq!((read.pieces.len(), memory(&read)), (left, cache.held_bytes()));
            }
            assert!(holds_nothing(&read));
        }
        let mut all = read(&sizes, Some(&cache));
        let across = handle(5000, 200);
        assert!(!all.has(across) && all.take(across, true).is_none(), "it is in no piece");
        assert!(!all.has(handle(12_700, 1)) && blocks.iter().all(|block| all.has(*block)));
    }
}
