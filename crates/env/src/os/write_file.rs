//! A file written once, front to back: tables, CURRENT, temporaries.
//!
//! It has a buffer in the process. A buffered file starts write-out as it grows, a direct one
//! writes whole aligned buffers and pads its last block; `finish` cuts the padding off again, and
//! frees reserved space that is not used. Where space is short nothing is reserved, since a log may
//! need it.
//!
//! Owns: the descriptor, the buffer, and the first failure. Never does: write after a failure, or
//! retry a sync.

use super::name_at::NameAt;
use super::retry::retry;
use crate::error::io_error;
use crate::fs::{DIRECT_ALIGN_BYTES, WriteOptions};
use crate::lock_ranks;
use crate::sync::real::Mutex;
use crate::sync::real::thread::{Builder, JoinHandle};
use crate::sys::aligned::AlignedBuf;
use crate::sys::writeback;
use crate::{Process, WriteFile};
use rustix::fs::{AtFlags, FallocateFlags, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, Result};

/// Buffer of a file that goes through the page cache.
const BUFFER_BYTES: usize = 64 << 10;
/// Buffer of a direct file: each write is one request to the device.
const DIRECT_BUFFER_BYTES: usize = 256 << 10;
/// A buffered file starts write-out each time this much is dirty.
const WRITEBACK_BYTES: u64 = 1 << 20;
/// At most one part in this of the free space is reserved ahead.
const RESERVED_SHARE: u64 = 8;

/// The flags that create a file: an existing entry, or a link, is refused.
pub(super) const NEW_FILE: OFlags = OFlags::CREATE.union(OFlags::EXCL);

pub(super) struct OsWriteFile {
    /// `None` once finished.
    fd: Option<OwnedFd>,
    path: PathBuf,
    buf: AlignedBuf,
    /// Bytes of `buf` that hold data; their place in the file is `flushed`.
    filled: usize,
    /// Bytes handed to the kernel; a multiple of the alignment if direct.
    flushed: u64,
    /// Bytes whose write-out was started.
    written_back: u64,
    /// The length at the last sync: a finish right after it has nothing to sync.
    synced_bytes: Option<u64>,
    preallocated_bytes: u64,
    direct: bool,
    /// The first failure: the file must not be used after it.
    failed: Option<Error>,
    /// The process that created it: a forked child shares the descriptor.
    process: Process,
}

impl OsWriteFile {
    pub(super) fn create(place: NameAt<'_>, options: WriteOptions) -> Result<OsWriteFile> {
        let path = place.path;
        let (fd, direct) = open_for_writing(place, options.direct)
            .map_err(|errno| io_error("create the file", path, errno))?;
        let preallocated_bytes = match preallocate(&fd, options.preallocate_bytes) {
            true => options.preallocate_bytes,
            false => 0,
        };
        Ok(OsWriteFile {
            fd: Some(fd),
            path: path.to_path_buf(),
            buf: AlignedBuf::new(if direct { DIRECT_BUFFER_BYTES } else { BUFFER_BYTES }),
            filled: 0,
            flushed: 0,
            written_back: 0,
            synced_bytes: None,
            preallocated_bytes,
            direct,
            failed: None,
            process: Process::current(),
        })
    }

    fn fail(&mut self, action: &str, errno: Errno) -> Error {
        let error = io_error(action, &self.path, errno);
        self.failed = Some(error.clone());
        error
    }

    fn check_usable(&self) -> Result<()> {
        let refusal = if let Some(first) = &self.failed {
            Error::after(first, "an earlier write to the file failed")
        } else if self.fd.is_none() {
            Error::new(ErrorKind::Io, "cannot write to the file: it is finished")
        } else if !self.process.is_this() {
            let why = "it was made by another process, and this one is a fork of it";
            Error::new(ErrorKind::Io, format!("cannot write to the file: {why}"))
        } else {
            return Ok(());
        };
        Err(refusal.with_file(self.path.display().to_string()))
    }

    /// Writes the first `len` bytes of the buffer at `flushed`.
    fn write_buffer(&mut self, len: usize) -> Result<()> {
        let Some(fd) = &self.fd else { return self.check_usable() };
        let mut direct = self.direct;
        let result = write_all(fd, &self.buf[..len], self.flushed, &mut direct);
        self.direct = direct;
        result.map_err(|errno| self.fail("write to the file", errno))
    }

    /// Empties a full buffer.
    fn flush_full(&mut self) -> Result<()> {
        self.write_buffer(self.filled)?;
        self.flushed += self.filled as u64;
        self.filled = 0;
        self.start_writeback(WRITEBACK_BYTES);
        Ok(())
    }

    /// Starts write-out if at least `bytes_min` are dirty.
    fn start_writeback(&mut self, bytes_min: u64) {
        let dirty = self.flushed - self.written_back;
        if self.direct || dirty < bytes_min {
            return;
        }
        if let Some(fd) = &self.fd {
            writeback::start(fd.as_fd(), self.written_back, dirty);
            self.written_back = self.flushed;
        }
    }

    /// Hands all bytes to the kernel. A direct file pads the last block, keeps it in the buffer to
    /// write it again when it is full, and cuts the file back to its length.
    fn flush_all(&mut self) -> Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        if !self.direct {
            return self.flush_full();
        }
        let padded = self.filled.next_multiple_of(DIRECT_ALIGN_BYTES);
        self.buf[self.filled..padded].fill(0);
        self.write_buffer(padded)?;
        let whole = self.filled - self.filled % DIRECT_ALIGN_BYTES;
        let len = self.len();
        self.buf.copy_within(whole..self.filled, 0);
        self.flushed += whole as u64;
        self.filled -= whole;
        self.cut(len)
    }

    fn cut(&mut self, len: u64) -> Result<()> {
        let Some(fd) = &self.fd else { return self.check_usable() };
        retry(|| rustix::fs::ftruncate(fd, len))
            .map_err(|errno| self.fail("set the length of the file", errno))
    }

    fn sync_flushed(&mut self) -> Result<()> {
        let Some(fd) = &self.fd else { return self.check_usable() };
        rustix::fs::fdatasync(fd).map_err(|errno| self.fail("sync the file", errno))
    }
}

impl WriteFile for OsWriteFile {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check_usable()?;
        while !bytes.is_empty() {
            let room = self.buf.len() - self.filled;
            if !self.direct && self.filled == 0 && bytes.len() >= self.buf.len() {
                // The buffer is empty: write without a copy.
                let Some(fd) = &self.fd else { return self.check_usable() };
                let result = write_all(fd, bytes, self.flushed, &mut false);
                result.map_err(|errno| self.fail("write to the file", errno))?;
                self.flushed += bytes.len() as u64;
                self.start_writeback(WRITEBACK_BYTES);
                return Ok(());
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buf[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == self.buf.len() {
                self.flush_full()?;
            }
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.flushed + self.filled as u64
    }

    fn sync(&mut self) -> Result<()> {
        self.check_usable()?;
        self.flush_all()?;
        self.sync_flushed()?;
        self.synced_bytes = Some(self.len());
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        self.check_usable()?;
        self.flush_all()?;
        if self.preallocated_bytes > self.len() {
            self.cut(self.len())?;
        }
        self.preallocated_bytes = 0;
        // The last block, which a direct file keeps in its buffer, is written too.
        self.flushed = self.len();
        self.filled = 0;
        self.buf = AlignedBuf::new(0);
        self.start_writeback(1);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.check_usable()?;
        let cuts = self.preallocated_bytes > self.len();
        if cuts || self.synced_bytes != Some(self.len()) {
            self.flush_all()?;
            if cuts {
                self.cut(self.len())?;
            }
            self.sync_flushed()?;
        }
        self.fd = None;
        Ok(())
    }
}

/// The most threads that sync at the same time. Measured on ext4, 256 files of 1 KB: one thread
/// takes 180 to 380 ms, 4 take 30 to 40, 16 take 22 to 30, and 64 no less.
const SYNCS_MAX: usize = 16;
/// The number of files that is worth a thread.
const FILES_OF_THREAD: usize = 2;

/// Finishes files on several threads: the file system then answers many syncs
/// with one commit of its journal and one flush of the device.
pub(super) fn finish_all(files: Vec<Box<dyn WriteFile>>) -> Result<()> {
    let threads = (files.len() / FILES_OF_THREAD).clamp(1, SYNCS_MAX);
    let left = Arc::new(Mutex::new(lock_ranks::FILES_LEFT, files));
    let failed = Arc::new(Mutex::new(lock_ranks::FILES_FAILED, None));
    let run = || {
        let (left, failed) = (left.clone(), failed.clone());
        move || {
            let next = || left.lock().pop();
            while let Some(mut file) = next() {
                if let Err(error) = file.finish() {
                    failed.lock().get_or_insert(error);
                    return;
                }
            }
        }
    };
    // The system may give fewer threads.
    let others: Vec<_> = (1..threads).filter_map(|_| Builder::new().spawn(run()).ok()).collect();
    run()();
    let ended: Vec<_> = others.into_iter().map(JoinHandle::join).collect();
    if ended.iter().any(std::result::Result::is_err) {
        return Err(Error::new(ErrorKind::Io, "a thread that synced files panicked"));
    }
    let failed = failed.lock().take();
    failed.map_or(Ok(()), Err)
}

/// Reserves space behind the end of an empty file. It is a hint: without it the writes show whether
/// there is room. Returns whether it did; if not, nothing is reserved.
fn preallocate(fd: &OwnedFd, bytes: u64) -> bool {
    if bytes == 0 {
        return false;
    }
    let free = retry(|| rustix::fs::fstatvfs(fd))
        .map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    if free / RESERVED_SHARE < bytes {
        return false;
    }
    let done = rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, 0, bytes).is_ok();
    if !done {
        // Some file systems keep the part that they reserved before they failed.
        let _ = retry(|| rustix::fs::ftruncate(fd, 0));
    }
    done
}

fn open_for_writing(place: NameAt<'_>, direct: bool) -> rustix::io::Result<(OwnedFd, bool)> {
    if direct {
        match place.open(NEW_FILE | OFlags::WRONLY | OFlags::DIRECT) {
            // The file may have been created before the flag was refused.
            Err(Errno::INVAL) => _ = place.unlink(AtFlags::empty()),
            result => return result.map(|fd| (fd, true)),
        }
    }
    place.open(NEW_FILE | OFlags::WRONLY).map(|fd| (fd, false))
}

/// Writes all of `bytes` at `offset`. Some file systems accept the flag and
/// refuse the write: then the rest goes through the page cache.
fn write_all(
    fd: &OwnedFd,
    mut bytes: &[u8],
    mut offset: u64,
    direct: &mut bool,
) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(fd, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::INVAL) if *direct => {
                let flags = rustix::fs::fcntl_getfl(fd)?;
                rustix::fs::fcntl_setfl(fd, flags - OFlags::DIRECT)?;
                *direct = false;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
