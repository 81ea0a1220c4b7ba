//! A file open for positional reads, through the page cache or around it.
//!
//! Owns: the descriptor, and each thread's scratch memory for unaligned direct reads. Never does:
//! return fewer bytes than were asked for; that is an error.

use super::name_at::{NameAt, check_regular};
use super::retry::retry;
use crate::error::{ends_early, io_error};
use crate::fs::{DIRECT_ALIGN_BYTES, PiecesWriter, ReadFileOptions};
use crate::sys::aligned::AlignedBuf;
use crate::{Buffer, ReadFile};
use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use std::cell::RefCell;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use windrow_base::Result;

/// Scratch memory that a thread keeps for unaligned direct reads; longer reads go through it in
/// pieces.
const SCRATCH_BYTES: usize = 256 << 10;

/// The most pieces of one system call (`IOV_MAX`).
const PIECES_MAX: usize = 1024;

thread_local! {
    static SCRATCH: RefCell<Option<AlignedBuf>> = const { RefCell::new(None) };
}

pub(super) struct OsReadFile {
    fd: OwnedFd,
    path: PathBuf,
    len: u64,
    /// Alignment of its reads, if they are direct.
    direct_align: Option<usize>,
}

impl OsReadFile {
    pub(super) fn open(place: NameAt<'_>, options: ReadFileOptions) -> Result<OsReadFile> {
        let path = place.path;
        let (fd, direct_align) = open_for_reading(place, options.direct)
            .map_err(|errno| io_error("open the file", path, errno))?;
        let stat =
            rustix::fs::fstat(&fd).map_err(|errno| io_error("look at the file", path, errno))?;
        check_regular(&stat, "open the file", path)?;
        Ok(OsReadFile { fd, path: path.to_path_buf(), len: stat.st_size as u64, direct_align })
    }

    fn read_buffered(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let got = self.read_up_to(offset, buf, buf.len())?;
        if got < buf.len() {
            return Err(ends_early(&self.path, offset, buf.len(), got));
        }
        Ok(())
    }

    /// Reads into `buf` until at least `enough` bytes are there or the file ends.
    fn read_up_to(&self, offset: u64, buf: &mut [u8], enough: usize) -> Result<usize> {
        let mut got = 0;
        while got < enough {
            match rustix::io::pread(&self.fd, &mut buf[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(io_error("read the file", &self.path, errno).with_offset(offset));
                }
            }
        }
        Ok(got)
    }

    /// Reads straight into the pieces.
    fn read_pieces_buffered(&self, offset: u64, pieces: &mut [Buffer]) -> Result<()> {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let mut slices: Vec<_> = pieces.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
        let (mut left, mut done) = (&mut slices[..], 0);
        while done < len {
            let now = left.len().min(PIECES_MAX);
            match rustix::io::preadv(&self.fd, &mut left[..now], offset + done as u64) {
                Ok(0) => return Err(ends_early(&self.path, offset, len, done)),
                Ok(n) => {
                    done += n;
                    IoSliceMut::advance_slices(&mut left, n);
                }
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(io_error("read the file", &self.path, errno).with_offset(offset));
                }
            }
        }
        Ok(())
    }

    fn read_direct(&self, offset: u64, buf: &mut [u8], align: usize) -> Result<()> {
        if is_aligned(offset, buf, align) {
            return self.read_buffered(offset, buf);
        }
        let mut done = 0;
        self.read_through_scratch(offset, buf.len(), align, |bytes| {
            buf[done..done + bytes.len()].copy_from_slice(bytes);
            done += bytes.len();
        })
    }

    /// Reads the aligned hull of the range into scratch memory, window by window, and has the
    /// range's bytes copied from there.
    fn read_through_scratch(
        &self,
        offset: u64,
        len: usize,
        align: usize,
        mut copy: impl FnMut(&[u8]),
    ) -> Result<()> {
        SCRATCH.with_borrow_mut(|slot| {
            let scratch = slot.get_or_insert_with(|| AlignedBuf::new(SCRATCH_BYTES));
            let mut done = 0;
            while done < len {
                let at = offset + done as u64;
                let (start, hull_bytes) = hull(at, len - done, align);
                let skip = (at - start) as usize;
                let window = hull_bytes.min(scratch.len());
                let now = (window - skip).min(len - done);
                let got = self.read_up_to(start, &mut scratch[..window], skip + now)?;
                if got < skip + now {
                    let had = done + got.saturating_sub(skip);
                    return Err(ends_early(&self.path, offset, len, had));
                }
                copy(&scratch[skip..skip + now]);
                done += now;
            }
            Ok(())
        })
    }
}

impl ReadFile for OsReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.direct_align {
            Some(align) => self.read_direct(offset, buf, align),
            None => self.read_buffered(offset, buf),
        }
    }

    fn read_pieces_at(&self, offset: u64, pieces: &mut [Buffer]) -> Result<()> {
        let Some(align) = self.direct_align else {
            return self.read_pieces_buffered(offset, pieces);
        };
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let mut writer = PiecesWriter::new(pieces);
        self.read_through_scratch(offset, len, align, |bytes| writer.put(bytes))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        if let (None, Some(len)) = (self.direct_align, NonZeroU64::new(len)) {
            let _ = rustix::fs::fadvise(&self.fd, offset, Some(len), Advice::WillNeed);
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn raw_fd(&self) -> Option<i32> {
        Some(self.fd.as_raw_fd())
    }

    fn direct_align(&self) -> Option<usize> {
        self.direct_align
    }
}

/// Whether a direct read can go straight into `buf`.
pub(super) fn is_aligned(offset: u64, buf: &[u8], align: usize) -> bool {
    offset.is_multiple_of(align as u64)
        && buf.len().is_multiple_of(align)
        && buf.as_ptr().addr().is_multiple_of(align)
}

/// Start and length of the aligned range around `len` bytes at `offset`.
pub(super) fn hull(offset: u64, len: usize, align: usize) -> (u64, usize) {
    let start = offset - offset % align as u64;
    (start, ((offset - start) as usize + len).next_multiple_of(align))
}

/// Opens the file, and returns the alignment of its reads if they are direct. The open does not
/// wait, as that of a pipe would; later reads do.
fn open_for_reading(
    place: NameAt<'_>,
    direct: bool,
) -> rustix::io::Result<(OwnedFd, Option<usize>)> {
    let waiting = |fd: &OwnedFd, flags| retry(|| rustix::fs::fcntl_setfl(fd, flags));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    if direct {
        match place.open(flags | OFlags::DIRECT) {
            Err(Errno::INVAL) => {}
            Err(errno) => return Err(errno),
            Ok(fd) => {
                if let Some(align) = alignment(&fd) {
                    waiting(&fd, OFlags::DIRECT)?;
                    return Ok((fd, Some(align)));
                }
            }
        }
    }
    let fd = place.open(flags)?;
    waiting(&fd, OFlags::empty())?;
    Ok((fd, None))
}

/// The alignment of direct reads of the file, as the kernel states it (since Linux 6.1). `None` for
/// an alignment beyond that of Windrow's buffers.
fn alignment(fd: &OwnedFd) -> Option<usize> {
    let asked = retry(|| rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN));
    match asked {
        Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            stated_alignment(stat.stx_dio_offset_align, stat.stx_dio_mem_align)
        }
        _ => Some(DIRECT_ALIGN_BYTES),
    }
}

/// One alignment that is enough for offsets and for memory, of the kernel's two.
/// Devices take 512 bytes or 4 KiB; a block of 4 KiB that starts anywhere is
/// read as 4.5 KiB instead of 8 where they take 512.
fn stated_alignment(offset: u32, memory: u32) -> Option<usize> {
    // Zeros mean that there is no direct I/O on the file, although `open` accepted it: the file
    // system serves any read then, and pages suit it.
    if offset == 0 || memory == 0 {
        return Some(DIRECT_ALIGN_BYTES);
    }
    let align = offset.max(memory) as usize;
    (align.is_power_of_two() && align <= DIRECT_ALIGN_BYTES).then_some(align)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_alignment_serves_offsets_and_memory() {
        for (stated, want) in [
            ((512, 4), Some(512)),
            ((512, 512), Some(512)),
            ((512, 4096), Some(4096)),
            ((4096, 4), Some(4096)),
            // Blocks larger than pages; an invalid alignment.
            ((16_384, 512), None),
            ((520, 4), None),
            // Not stated.
            ((0, 0), Some(4096)),
        ] {
            assert_eq!(stated_alignment(stated.0, stated.1), want, "{stated:?}");
        }
    }

    #[test]
    fn a_hull_is_no_larger_than_the_alignment_asks() {
        assert_eq!(hull(1000, 4000, 4096), (0, 8192));
        assert_eq!(hull(1000, 4000, 512), (512, 4608));
        assert_eq!(hull(1024, 512, 512), (1024, 512));
        assert_eq!(hull(4095, 2, 512), (3584, 1024));
    }
}
