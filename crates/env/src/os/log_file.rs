//! A write-ahead log segment: many threads write disjoint ranges of preallocated space, through
//! mapped windows where the file system is known to keep reserved space, by `pwrite` everywhere
//! else.
//!
//! The file has its full length from the start, which the manifest records, and is a hole except
//! for the reserved space, which grows in steps ahead of the writers (`space.rs`). So a segment
//! takes about the space of its records, a sync of a record never has a new length to write, and
//! the length shows a truncated file. Rejected: reserving the whole length at once, which took 80
//! MiB of a device for a log of one record, and refused to open where that was not free.
//!
//! Measured on ext4, 116-byte records: about 40 ns by a mapping, 360 by `pwrite`. From the first
//! sync on, the segment is written by `pwrite`. A store into a mapped page dirties, and a sync then
//! writes, the whole folio (`block_page_mkwrite` and `fault_dirty_shared_page` mark every block of
//! it), and folios of a mapping are large where the file system has them (ext4 from Linux 6.16 on,
//! XFS): a synced put of 100 bytes wrote half a MiB. `pwrite` marks only the blocks that it writes.
//! It also returns an error, instead of a signal, if the device fails while a sync has the pages
//! protected.
//!
//! Owns: the reservation, the windows, and the first failure. Never does: choose offsets, or write
//! after a failure.

use super::name_at::NameAt;
use super::retry::retry;
use super::write_file::NEW_FILE;
use crate::LogFile;
use crate::error::io_error;
use crate::lock_ranks;
use crate::space;
use crate::sync::real::Mutex;
use crate::sync::real::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sys::window::{MappedWindow, WINDOW_BYTES};
use rustix::fs::{AtFlags, FallocateFlags, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;
use windrow_base::{Error, Result, debug_invariant};

/// The unit of allocation of file systems, or a divisor of it.
const BLOCK_BYTES: u64 = 4096;
/// File systems on which a reserved page can be stored to: ext2/3/4, XFS, tmpfs.
/// Elsewhere (copy on write, network) a store into a reserved page may still
/// find the device full, and that is a signal.
const MAPPABLE: [u64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];
/// In `OsLogFile::mode`: a write or sync failed.
const FAILED: u32 = 1;
/// In `OsLogFile::mode`: there was a sync, and the windows are not used any more.
const BY_CALL: u32 = 2;

pub(super) struct OsLogFile {
    fd: OwnedFd,
    path: PathBuf,
    windows: Box<[MappedWindow]>,
    mapped_bytes: u64,
    /// The length that it was created with.
    len_bytes: u64,
    /// The end of the space that needs no reservation any more.
    reserved_bytes: AtomicU64,
    growing: Mutex<()>,
    mode: AtomicU32,
    /// The first failure, which is set before `mode` has `FAILED`.
    failure: OnceLock<Error>,
}

impl OsLogFile {
    pub(super) fn create(place: NameAt<'_>, len_bytes: u64, map: bool) -> Result<OsLogFile> {
        let path = place.path;
        let fd = place
            .open(NEW_FILE | OFlags::RDWR)
            .map_err(|errno| io_error("create the log", path, errno))?;
        let first = space::first_step(len_bytes, free_bytes(&fd));
        let set_len = |reserved| match first < len_bytes {
            true => retry(|| rustix::fs::ftruncate(&fd, len_bytes)).map(|()| reserved),
            false => Ok(reserved),
        };
        let reserved = match reserve(&fd, 0, first).and_then(set_len) {
            Ok(reserved) => reserved,
            Err(errno) => {
                // Free the space that was reserved before the failure.
                let _ = place.unlink(AtFlags::empty());
                return Err(io_error("reserve space for the log", path, errno));
            }
        };
        let map = map
            && reserved
            && rustix::fs::fstatfs(&fd).is_ok_and(|stat| MAPPABLE.contains(&(stat.f_type as u64)));
        let mapped_bytes = if map { len_bytes } else { 0 };
        let windows = (0..mapped_bytes.div_ceil(WINDOW_BYTES))
            .map(|index| {
                let start = index * WINDOW_BYTES;
                MappedWindow::new(start, (mapped_bytes - start).min(WINDOW_BYTES) as usize)
            })
            .collect();
        Ok(OsLogFile {
            fd,
            path: path.to_path_buf(),
            windows,
            mapped_bytes,
            len_bytes,
            reserved_bytes: AtomicU64::new(if reserved { first } else { u64::MAX }),
            growing: Mutex::new(lock_ranks::LOG_GROWING, ()),
            mode: AtomicU32::new(0),
            failure: OnceLock::new(),
        })
    }

    #[cold]
    fn fail(&self, action: &str, errno: Errno) -> Error {
        let error = io_error(action, &self.path, errno);
        let _ = self.failure.set(error.clone());
        self.mode.fetch_or(FAILED, Ordering::Release);
        error
    }

    /// The error of every call after a failure, with that failure's kind and cause. The call that
    /// failed returned the failure itself.
    #[cold]
    fn failed_before(&self) -> Error {
        let first = self.failure.get().expect("set before the mode says so");
        Error::after(first, "an earlier write or sync of the log failed")
            .with_file(self.path.display().to_string())
    }

    /// Reserves up to `end`, and ahead of it where there is room.
    #[cold]
    fn grow(&self, end: u64) -> rustix::io::Result<()> {
        let _one = self.growing.lock();
        let from = self.reserved_bytes.load(Ordering::Relaxed);
        if end <= from {
            return Ok(());
        }
        let ahead = space::next_step(from, end, self.len_bytes, free_bytes(&self.fd));
        let reserved = match reserve(&self.fd, from, ahead - from) {
            Ok(true) => ahead,
            Ok(false) => u64::MAX,
            // The step does not fit; `end` alone may.
            Err(Errno::NOSPC | Errno::DQUOT) if end < ahead => {
                self.give_back(from, ahead);
                reserve(&self.fd, from, end - from)
                    .inspect_err(|_| self.give_back(from, end))
                    .map(|_| end)?
            }
            Err(errno) => {
                self.give_back(from, ahead);
                return Err(errno);
            }
        };
        debug_invariant!(R15, from < reserved, "a log's room goes from {from} to {reserved}");
        debug_invariant!(R15, end <= reserved, "a log has room up to {reserved} of {end}");
        self.reserved_bytes.store(reserved, Ordering::Relaxed);
        Ok(())
    }

    /// Frees the space between two offsets, also after a reservation that failed half-way. No
    /// thread writes there.
    fn give_back(&self, from: u64, to: u64) {
        let from = from.next_multiple_of(BLOCK_BYTES);
        if from < to {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = retry(|| rustix::fs::fallocate(&self.fd, flags, from, to - from));
        }
    }

    fn write_by_call(&self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match rustix::io::pwrite(&self.fd, bytes, offset) {
                Ok(0) => return Err(self.fail("write to the log", Errno::IO)),
                Ok(n) => {
                    bytes = &bytes[n..];
                    offset += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.fail("write to the log", errno)),
            }
        }
        Ok(())
    }

    /// Writes the first part of `bytes` that lies in windows which accept it. Returns its length.
    fn write_mapped(&self, offset: u64, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            if at >= self.mapped_bytes {
                break;
            }
            let window = &self.windows[(at / WINDOW_BYTES) as usize];
            let room = WINDOW_BYTES.min(self.mapped_bytes - at / WINDOW_BYTES * WINDOW_BYTES)
                - at % WINDOW_BYTES;
            let now = (bytes.len() - done).min(room as usize);
            let part = &bytes[done..done + now];
            if !window.write(self.fd.as_fd(), (at % WINDOW_BYTES) as usize, part) {
                break;
            }
            done += now;
        }
        done
    }
}

impl LogFile for OsLogFile {
    #[inline]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mode = self.mode.load(Ordering::Acquire);
        if mode & FAILED != 0 {
            return Err(self.failed_before());
        }
        let Some(end) = offset.checked_add(bytes.len() as u64) else {
            return Err(Error::invalid("a log write beyond the largest offset"));
        };
        if end > self.reserved_bytes.load(Ordering::Relaxed) {
            self.grow(end).map_err(|errno| self.fail("reserve space for the log", errno))?;
        }
        // The file's header is written by `pwrite`: it is synced at once, which would end the use
        // of windows.
        let maps = mode == 0 && offset > 0;
        let done = if maps { self.write_mapped(offset, bytes) } else { 0 };
        if done == bytes.len() {
            return Ok(());
        }
        self.write_by_call(offset + done as u64, &bytes[done..])
    }

    #[inline]
    fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    fn reserve(&self, end: u64) -> Result<()> {
        if end <= self.reserved_bytes() {
            return Ok(());
        }
        self.grow(end).map_err(|errno| io_error("reserve space for the log", &self.path, errno))
    }

    fn release(&self, end: u64) {
        let _one = self.growing.lock();
        let reserved = self.reserved_bytes.load(Ordering::Relaxed);
        let kept = end.next_multiple_of(BLOCK_BYTES);
        if kept < reserved && reserved != u64::MAX {
            self.reserved_bytes.store(kept, Ordering::Relaxed);
            self.give_back(kept, reserved);
        }
    }

    fn sync(&self) -> Result<()> {
        let mode = self.mode.load(Ordering::Acquire);
        if mode & FAILED != 0 {
            return Err(self.failed_before());
        }
        let leaves_windows = mode & BY_CALL == 0 && self.windows.iter().any(MappedWindow::is_used);
        if leaves_windows {
            self.mode.fetch_or(BY_CALL, Ordering::Relaxed);
            self.windows.iter().for_each(MappedWindow::close);
        }
        let synced = rustix::fs::fdatasync(&self.fd);
        synced.map_err(|errno| self.fail("sync the log", errno))?;
        if leaves_windows {
            // Drops the folios that faults read ahead: smaller ones replace them as records are
            // written. A failure does not matter.
            let _ = rustix::fs::fadvise(&self.fd, 0, None, rustix::fs::Advice::DontNeed);
        }
        Ok(())
    }
}

/// Reserves zeros, and extends the length if they pass it. `false` where the file system cannot
/// reserve: then only the length is set.
fn reserve(fd: &OwnedFd, offset: u64, len: u64) -> rustix::io::Result<bool> {
    if len == 0 {
        return Ok(true);
    }
    if offset.saturating_add(len) > device_bytes(fd) {
        return Err(Errno::NOSPC);
    }
    match retry(|| rustix::fs::fallocate(fd, FallocateFlags::empty(), offset, len)) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            let found = retry(|| rustix::fs::fstat(fd))?.st_size as u64;
            retry(|| rustix::fs::ftruncate(fd, found.max(offset + len)))?;
            Ok(false)
        }
        Err(errno) => Err(errno),
    }
}

/// The bytes that are free on the file system for unprivileged users.
fn free_bytes(fd: &OwnedFd) -> u64 {
    let stat = retry(|| rustix::fs::fstatvfs(fd));
    stat.map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The size of the file system, free or not. Reserving more than that would take all free space
/// from others on the device before it failed.
fn device_bytes(fd: &OwnedFd) -> u64 {
    let stat = retry(|| rustix::fs::fstatvfs(fd));
    let bytes = stat.map_or(0, |stat| stat.f_blocks.saturating_mul(stat.f_frsize));
    // Some file systems do not tell.
    if bytes == 0 { u64::MAX } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;

    /// Errors that follow from a full device are of the same kind, since the device may get room
    /// again.
    #[test]
    fn what_comes_after_a_failure_has_its_kind_and_cause() {
        let path = std::env::temp_dir().join(format!("windrow-log-{}", std::process::id()));
        let log = OsLogFile::create(NameAt::from(&*path), 1 << 16, false).unwrap();
        log.write_at(0, b"one").unwrap();
        let first = log.fail("write to the log", Errno::NOSPC);
        log.fail("write to the log", Errno::IO);
        for later in [log.write_at(3, b"two"), log.sync()].map(Result::unwrap_err) {
            assert_eq!(later.kind(), ErrorKind::NoSpace);
            assert!(later.message().starts_with("an earlier write or sync"), "{later}");
            assert_eq!(later.first_failure().to_string(), first.to_string());
        }
        retry(|| NameAt::from(&*path).unlink(AtFlags::empty())).unwrap();
    }
}
