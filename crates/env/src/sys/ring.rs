//! Many reads in one io_uring submission.
//!
//! Each thread has a ring of its own, made at its first batch: no lock, and
//! completions are reaped by the thread that waits for them. Where the kernel
//! or a seccomp filter refuses rings, `read_batch` says so and callers read
//! one after the other.

use crate::sync::real::atomic::{AtomicBool, Ordering};
use io_uring::{IoUring, opcode, types};
use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;

/// Reads in flight at once, per thread.
pub(crate) const DEPTH: usize = 64;

/// A kernel that refused a ring once refuses it for good.
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static RING: RefCell<Option<IoUring>> = const { RefCell::new(None) };
}

/// One read of a batch.
pub(crate) struct RingRead<'a> {
    /// An open descriptor.
    pub(crate) fd: RawFd,
    /// Byte offset in its file.
    pub(crate) offset: u64,
    /// Where to.
    pub(crate) buf: &'a mut [u8],
    /// Bytes read, or a negated error number; [`NOT_RUN`] before.
    pub(crate) outcome: i32,
}

/// The outcome of a read that was not run.
pub(crate) const NOT_RUN: i32 = -libc::ECANCELED;

/// Runs the reads, all at once up to [`DEPTH`]. On `false` some were not run:
/// their outcome is [`NOT_RUN`].
pub(crate) fn read_batch(reads: &mut [RingRead<'_>]) -> bool {
    if REFUSED.load(Ordering::Relaxed) {
        return false;
    }
    let run = RING.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        if slot.is_none() {
            *slot = make_ring();
        }
        let Some(ring) = slot.as_mut() else { return false };
        for chunk in reads.chunks_mut(DEPTH) {
            if !run_chunk(ring, chunk) {
                // The ring may still hold entries that were never submitted
                // and name these buffers: it must not be used again.
                *slot = None;
                return false;
            }
        }
        true
    });
    run.unwrap_or(false)
}

fn make_ring() -> Option<IoUring> {
    let entries = DEPTH as u32;
    // Completions handled only when this thread asks save an interrupt to it
    // per read (Linux 6.1); the plain ring works from 5.6 on.
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::new(entries));
    match ring {
        Ok(ring) => Some(ring),
        Err(error) => {
            // Out of memory or descriptors may pass; the rest does not.
            let passing = [libc::ENOMEM, libc::EMFILE, libc::ENFILE];
            if !error.raw_os_error().is_some_and(|code| passing.contains(&code)) {
                REFUSED.store(true, Ordering::Relaxed);
            }
            None
        }
    }
}

fn run_chunk(ring: &mut IoUring, reads: &mut [RingRead<'_>]) -> bool {
    debug_assert!(reads.len() <= DEPTH);
    let mut pushed = 0;
    {
        let mut queue = ring.submission();
        for (index, read) in reads.iter_mut().enumerate() {
            read.outcome = NOT_RUN;
            let len = read.buf.len().min(i32::MAX as usize) as u32;
            let entry = opcode::Read::new(types::Fd(read.fd), read.buf.as_mut_ptr(), len)
                .offset(read.offset)
                .build()
                .user_data(index as u64);
            // SAFETY: the buffer is borrowed mutably until this function
            // returns, and it returns only after every submitted read has
            // completed; what was never submitted dies with the ring.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
            pushed += 1;
        }
    }
    let mut reaped = 0;
    let mut failed = pushed < reads.len();
    loop {
        let unsubmitted = ring.submission().len();
        let in_flight = pushed - reaped - if failed { unsubmitted } else { 0 };
        if in_flight == 0 {
            return !failed;
        }
        // After a failure only what is in flight is waited for, by looking.
        if failed {
            std::thread::yield_now();
            let _ = wait_only(ring);
        } else if let Err(error) = ring.submit_and_wait(in_flight) {
            failed = !is_passing(&error);
        }
        for done in ring.completion() {
            reads[done.user_data() as usize].outcome = done.result();
            reaped += 1;
        }
    }
}

/// Lets completions happen without submitting anything.
fn wait_only(ring: &IoUring) -> io::Result<usize> {
    const GETEVENTS: u32 = 1;
    // SAFETY: no argument is passed, so none has to outlive the call.
    unsafe { ring.submitter().enter::<libc::sigset_t>(0, 0, GETEVENTS, None) }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
