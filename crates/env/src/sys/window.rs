//! A stretch of a log file mapped into memory, written by many threads.
//!
//! A store into a shared mapping is in the page cache, hence with the kernel, at once; it costs a
//! memcpy where `pwrite` costs a system call and the inode's lock. A window goes through `Unmapped
//! -> Mapped -> Closed` and never back. Writers pin it while they copy. Once it is closed, the last
//! writer to leave unmaps it. It closes itself when as many bytes were written as it is long, since
//! a log is written once.
//!
//! A page that the file system cannot provide (device gone, file system shut down) raises SIGBUS on
//! a store. So pages are first made writable by `MADV_POPULATE_WRITE`, which reports the same
//! failure as an error: the writer then uses `pwrite`, which names it. One gap stays: the kernel's
//! periodic write-out protects pages again, and a file system that fails between that and the next
//! store into the same page still raises the signal.
//!
//! Owns: the mapping of its part of the file. Never does: fall back by itself: `write` returns
//! `false`, and the caller uses `pwrite`.

use crate::lock_ranks;
use crate::sync::real::Mutex;
use crate::sync::real::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::BorrowedFd;
use std::ptr;

/// Bytes of a window; the last one of a file may be shorter.
pub(crate) const WINDOW_BYTES: u64 = 4 << 20;

const PAGE_BYTES: usize = 4096;
/// The most pages made writable ahead of the writers: 64 KiB. Every page made writable is dirty and
/// goes to the device at the next sync, so the step starts at one page and doubles.
const POPULATE_PAGES_MAX: u64 = 16;
/// From Linux 5.14; older kernels return EINVAL, and the log uses `pwrite`.
const MADV_POPULATE_WRITE: libc::c_int = 23;

// The state word: pins in the low bits, two flags, bytes written in the upper half.
const PIN: u64 = 1;
const PINS: u64 = MAPPED - 1;
const MAPPED: u64 = 1 << 30;
const CLOSED: u64 = 1 << 31;
const WRITTEN_SHIFT: u32 = 32;

/// One window of a log file.
pub(crate) struct MappedWindow {
    state: AtomicU64,
    base: AtomicPtr<u8>,
    /// The pages that were made writable: `first << 16 | end`.
    writable: AtomicU64,
    mapping: Mutex<()>,
    file_offset: u64,
    len: usize,
}

enum Pin {
    Pinned,
    Unmapped,
    Closed,
}

impl MappedWindow {
    /// A window over `len` bytes of a file from `file_offset` (a multiple of
    /// [`WINDOW_BYTES`]), all within the file's length.
    pub(crate) fn new(file_offset: u64, len: usize) -> MappedWindow {
        debug_assert!(file_offset.is_multiple_of(WINDOW_BYTES) && len as u64 <= WINDOW_BYTES);
        MappedWindow {
            state: AtomicU64::new(0),
            base: AtomicPtr::new(ptr::null_mut()),
            writable: AtomicU64::new(0),
            mapping: Mutex::new(lock_ranks::LOG_MAPPING, ()),
            file_offset,
            len,
        }
    }

    /// Copies `bytes` to `at` in the window. `false` if the window cannot take
    /// them (closed, not mappable, pages refused): write them by `pwrite`.
    pub(crate) fn write(&self, fd: BorrowedFd<'_>, at: usize, bytes: &[u8]) -> bool {
        assert!(at <= self.len && bytes.len() <= self.len - at);
        if bytes.is_empty() {
            return true;
        }
        loop {
            match self.pin() {
                Pin::Pinned => break,
                Pin::Closed => return false,
                Pin::Unmapped if self.map(fd) => {}
                Pin::Unmapped => return false,
            }
        }
        let base = self.base.load(Ordering::Relaxed);
        let written = self.make_writable(base, at, bytes.len());
        if written {
            // SAFETY: the mapping is `len` bytes long (asserted above that the range is inside) and
            // stays while the pin is held. No code of the process reads it or makes a reference to
            // it; writers own disjoint ranges (`LogFile::write_at`).
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(at), bytes.len()) };
        } else {
            self.close();
        }
        self.unpin(if written { bytes.len() } else { 0 });
        written
    }

    /// Whether the window was ever mapped.
    pub(crate) fn is_used(&self) -> bool {
        self.state.load(Ordering::Relaxed) & MAPPED != 0
    }

    /// Refuses further writes; unmaps when the last writer has left.
    pub(crate) fn close(&self) {
        let before = self.state.fetch_or(CLOSED, Ordering::AcqRel);
        if before & (CLOSED | MAPPED | PINS) == MAPPED {
            self.unmap();
        }
    }

    #[inline]
    fn pin(&self) -> Pin {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & CLOSED != 0 {
                return Pin::Closed;
            }
            if state & MAPPED == 0 {
                return Pin::Unmapped;
            }
            match self.state.compare_exchange_weak(
                state,
                state + PIN,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Pin::Pinned,
                Err(now) => state = now,
            }
        }
    }

    #[inline]
    fn unpin(&self, written: usize) {
        let step = ((written as u64) << WRITTEN_SHIFT).wrapping_sub(PIN);
        let now = self.state.fetch_add(step, Ordering::Release).wrapping_add(step);
        if now & CLOSED != 0 {
            if now & PINS == 0 {
                fence(Ordering::Acquire);
                self.unmap();
            }
        } else if now >> WRITTEN_SHIFT >= self.len as u64 {
            self.close();
        }
    }

    /// Makes sure that the pages of a range can be stored to. The mapping is pinned.
    #[inline]
    fn make_writable(&self, base: *mut u8, at: usize, len: usize) -> bool {
        let first = (at / PAGE_BYTES) as u64;
        let end = (at + len).div_ceil(PAGE_BYTES) as u64;
        let word = self.writable.load(Ordering::Relaxed);
        let (have_first, have_end) = (word >> 16 & 0xffff, word & 0xffff);
        if have_first <= first && end <= have_end {
            return true;
        }
        self.populate(base, word, first, end)
    }

    #[cold]
    fn populate(&self, base: *mut u8, word: u64, first: u64, end: u64) -> bool {
        let (have_first, have_end) = (word >> 16 & 0xffff, word & 0xffff);
        let ahead = (have_end - have_first).clamp(1, POPULATE_PAGES_MAX);
        let pages = (self.len.div_ceil(PAGE_BYTES)) as u64;
        let end = end.max((first + ahead).min(pages));
        let bytes = (end - first) as usize * PAGE_BYTES;
        loop {
            // SAFETY: the pages lie within the mapping, which the caller has pinned;
            // populating changes no byte.
            let done = unsafe {
                libc::madvise(
                    base.add(first as usize * PAGE_BYTES).cast(),
                    bytes,
                    MADV_POPULATE_WRITE,
                )
            };
            if done == 0 {
                break;
            }
            let error = std::io::Error::last_os_error();
            if !matches!(error.kind(), std::io::ErrorKind::Interrupted)
                && error.raw_os_error() != Some(libc::EAGAIN)
            {
                return false;
            }
        }
        // Pages in a row extend the claim; a jump starts a new one. Losing the race only means that
        // a thread populates pages once more.
        let joins = have_first <= first && first <= have_end && have_end != have_first;
        let claim = if joins { have_first << 16 | end.max(have_end) } else { first << 16 | end };
        let _ = self.writable.compare_exchange(word, claim, Ordering::Relaxed, Ordering::Relaxed);
        true
    }

    #[cold]
    fn map(&self, fd: BorrowedFd<'_>) -> bool {
        let _one = self.mapping.lock();
        if self.state.load(Ordering::Acquire) & (MAPPED | CLOSED) != 0 {
            return true; // Somebody else was first; `pin` looks again.
        }
        // SAFETY: a fresh shared mapping at an address of the kernel's choice
        // aliases no memory of ours.
        let mapped = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                self.len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                self.file_offset,
            )
        };
        match mapped {
            Ok(base) => {
                // A child made by `fork` must not have the log mapped. A failure does not matter:
                // kernels have this since 2.6.16. SAFETY: the mapping was made just above; the
                // advice changes no byte.
                let _ = unsafe { libc::madvise(base, self.len, libc::MADV_DONTFORK) };
                self.base.store(base.cast(), Ordering::Relaxed);
                // Closing at the same moment leaves `MAPPED | CLOSED` without
                // pins, which `drop` cleans up.
                let before = self.state.fetch_or(MAPPED, Ordering::Release);
                if before & CLOSED != 0 {
                    self.unmap();
                }
                true
            }
            Err(_) => {
                self.close();
                false
            }
        }
    }

    fn unmap(&self) {
        let base = self.base.swap(ptr::null_mut(), Ordering::AcqRel);
        if !base.is_null() {
            // SAFETY: mapped in `map` with this length; the swap gives the
            // pointer to one caller only; closed and without pins, so no
            // writer holds it.
            let _ = unsafe { rustix::mm::munmap(base.cast(), self.len) };
        }
    }
}

impl Drop for MappedWindow {
    fn drop(&mut self) {
        self.unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn a_full_window_closes_and_a_late_writer_is_sent_away() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let window = MappedWindow::new(0, 8192);
        assert!(window.write(file.as_fd(), 0, &[1; 5000]));
        assert!(window.write(file.as_fd(), 5000, &[2; 3192]));
        assert!(window.base.load(Ordering::Relaxed).is_null(), "unmapped when full");
        assert!(!window.write(file.as_fd(), 0, &[3; 1]));
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes[4999], bytes[5000], bytes[8191]), (1, 2, 2));
    }

    #[test]
    fn pages_are_claimed_in_growing_steps() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(WINDOW_BYTES).unwrap();
        let window = MappedWindow::new(0, WINDOW_BYTES as usize);
        let end = |window: &MappedWindow| window.writable.load(Ordering::Relaxed) & 0xffff;
        let mut ends = Vec::new();
        for page in 0..40 {
            assert!(window.write(file.as_fd(), page * PAGE_BYTES, &[1; 10]));
            ends.push(end(&window));
        }
        assert_eq!((ends[0], ends[1], ends[2], ends[4]), (1, 2, 4, 8));
        assert_eq!(*ends.last().unwrap(), 48);
    }
}
