//! A file open for positional reads, through the page cache or around it.

use super::write_file::retry;
use crate::ReadFile;
use crate::error::{ends_early, io_error};
use crate::fs::{DIRECT_ALIGN_BYTES, ReadOptions};
use crate::sys::aligned::AlignedBuf;
use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;
use std::cell::RefCell;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use windrow_base::Result;

const ALIGN: u64 = DIRECT_ALIGN_BYTES as u64;
/// Scratch memory a thread keeps for unaligned direct reads; longer reads go
/// through it piece by piece.
const SCRATCH_BYTES: usize = 256 << 10;

thread_local! {
    static SCRATCH: RefCell<Option<AlignedBuf>> = const { RefCell::new(None) };
}

pub(super) struct OsReadFile {
    fd: OwnedFd,
    path: PathBuf,
    len: u64,
    direct: bool,
}

impl OsReadFile {
    pub(super) fn open(path: &Path, options: ReadOptions) -> Result<OsReadFile> {
        let (fd, direct) = open_for_reading(path, options.direct)
            .map_err(|errno| io_error("open the file", path, errno))?;
        let stat =
            rustix::fs::fstat(&fd).map_err(|errno| io_error("look at the file", path, errno))?;
        Ok(OsReadFile { fd, path: path.to_path_buf(), len: stat.st_size as u64, direct })
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

    /// Reads the aligned hull of the range into scratch memory and copies.
    fn read_direct(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if is_aligned(offset, buf) {
            return self.read_buffered(offset, buf);
        }
        SCRATCH.with_borrow_mut(|slot| {
            let scratch = slot.get_or_insert_with(|| AlignedBuf::new(SCRATCH_BYTES));
            let mut done = 0;
            while done < buf.len() {
                let at = offset + done as u64;
                let (start, hull_bytes) = hull(at, buf.len() - done);
                let skip = (at - start) as usize;
                let window = hull_bytes.min(scratch.len());
                let now = (window - skip).min(buf.len() - done);
                let got = self.read_up_to(start, &mut scratch[..window], skip + now)?;
                if got < skip + now {
                    let had = done + got.saturating_sub(skip);
                    return Err(ends_early(&self.path, offset, buf.len(), had));
                }
                buf[done..done + now].copy_from_slice(&scratch[skip..skip + now]);
                done += now;
            }
            Ok(())
        })
    }
}

impl ReadFile for OsReadFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if self.direct { self.read_direct(offset, buf) } else { self.read_buffered(offset, buf) }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        if let (false, Some(len)) = (self.direct, NonZeroU64::new(len)) {
            let _ = rustix::fs::fadvise(&self.fd, offset, Some(len), Advice::WillNeed);
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn raw_fd(&self) -> Option<i32> {
        Some(self.fd.as_raw_fd())
    }

    fn is_direct(&self) -> bool {
        self.direct
    }
}

/// Whether a direct read can go straight into `buf`.
pub(super) fn is_aligned(offset: u64, buf: &[u8]) -> bool {
    offset.is_multiple_of(ALIGN)
        && buf.len().is_multiple_of(DIRECT_ALIGN_BYTES)
        && buf.as_ptr().addr().is_multiple_of(DIRECT_ALIGN_BYTES)
}

/// Start and length of the aligned range around `len` bytes at `offset`.
pub(super) fn hull(offset: u64, len: usize) -> (u64, usize) {
    let start = offset - offset % ALIGN;
    (start, ((offset - start) as usize + len).next_multiple_of(DIRECT_ALIGN_BYTES))
}

fn open_for_reading(path: &Path, direct: bool) -> rustix::io::Result<(OwnedFd, bool)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    if direct {
        match retry(|| rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty())) {
            Err(Errno::INVAL) => {}
            result => return result.map(|fd| (fd, true)),
        }
    }
    retry(|| rustix::fs::open(path, flags, Mode::empty())).map(|fd| (fd, false))
}
