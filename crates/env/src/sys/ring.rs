//! Many reads in one io_uring submission.
//!
//! Each thread has a ring of its own, made at its first batch: there is no lock, and the thread
//! that waits for completions reaps them. If the kernel or a seccomp filter refuses rings,
//! `read_batch` returns `false` and callers read one after the other.
//!
//! A ring's queues are memory that a child made by `fork` would share with its parent: an entry
//! that one pushes the other submits, into buffers at addresses of the wrong process. So the child
//! does not get the memory, and makes its own ring.
//!
//! Owns: the rings, and the reads in flight. Never does: return while a read that was submitted may
//! still write to its buffer.

use super::process::NotInherited;
use crate::sync::real::atomic::{AtomicBool, Ordering};
use io_uring::{IoUring, opcode, types};
use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;

/// Reads in flight at once, per thread.
pub(crate) const DEPTH: usize = 64;

/// A kernel that refused a ring once always refuses it.
static REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static RING: RefCell<Option<NotInherited<IoUring>>> = const { RefCell::new(None) };
}

/// The number of calls in a row without a completion before the ring counts as broken: a working
/// ring needs one, or a few if signals interrupt them.
const FRUITLESS_CALLS_MAX: u32 = 1000;
/// The time for which completions of a broken ring are polled, in steps of a millisecond.
const LAST_LOOKS_MAX: u32 = 30_000;

/// One read of a batch.
pub(crate) struct RingRead<'a> {
    /// An open descriptor.
    pub(crate) fd: RawFd,
    /// Byte offset in its file.
    pub(crate) offset: u64,
    /// The buffer that it fills.
    pub(crate) buf: &'a mut [u8],
    /// Bytes read, or a negated error number; [`NOT_RUN`] before.
    pub(crate) outcome: i32,
}

/// The outcome of a read that was not run.
pub(crate) const NOT_RUN: i32 = -libc::ECANCELED;

/// Runs the reads, up to [`DEPTH`] at once. Returns `false` if some were not run: their outcome is
/// [`NOT_RUN`].
pub(crate) fn read_batch(reads: &mut [RingRead<'_>]) -> bool {
    if REFUSED.load(Ordering::Relaxed) {
        return false;
    }
    let run = RING.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        if !slot.as_ref().is_some_and(|ring| ring.process().is_this()) {
            // The parent's ring is leaked, not torn down; the copy of its descriptor blocks
            // nothing.
            *slot = make_ring().map(NotInherited::new);
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
    // Handling completions only when this thread asks saves it an interrupt per read (Linux 6.1);
    // the plain ring works from 5.6 on.
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .dontfork()
        .build(entries)
        .or_else(|_| IoUring::builder().dontfork().build(entries));
    match ring {
        Ok(ring) => Some(ring),
        Err(error) => {
            // A shortage of memory or descriptors may pass; other errors do not.
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
            // SAFETY: the buffer is borrowed mutably until this function returns, and it returns
            // only after every submitted read has completed; an entry that was never submitted is
            // freed with the ring.
            if unsafe { queue.push(&entry) }.is_err() {
                break;
            }
            pushed += 1;
        }
    }
    let mut reaped = 0;
    let mut failed = pushed < reads.len();
    let mut fruitless = 0;
    loop {
        let unsubmitted = ring.submission().len();
        let in_flight =
            (pushed - reaped) - if failed { unsubmitted.min(pushed - reaped) } else { 0 };
        if in_flight == 0 {
            return !failed;
        }
        // After a failure, only reads in flight are waited for.
        let called = match failed {
            true => wait_only(ring, in_flight),
            false => ring.submit_and_wait(in_flight),
        };
        let before = reaped;
        for done in ring.completion() {
            // All completions are of these reads: no other thread can push to this ring.
            if let Some(read) = reads.get_mut(done.user_data() as usize) {
                read.outcome = done.result();
                reaped += 1;
            }
        }
        let in_vain = reaped == before && called.is_err();
        fruitless = if in_vain { fruitless + 1 } else { 0 };
        let gives_up = fruitless >= FRUITLESS_CALLS_MAX;
        if !failed {
            failed = gives_up || called.is_err_and(|error| !is_passing(&error));
        } else if gives_up {
            look_once_more(fruitless - FRUITLESS_CALLS_MAX);
        }
    }
}

/// Waits for completions without submitting anything.
fn wait_only(ring: &IoUring, count: usize) -> io::Result<usize> {
    const GETEVENTS: u32 = 1;
    // SAFETY: no argument is passed, so none has to outlive the call.
    unsafe { ring.submitter().enter::<libc::sigset_t>(0, count as u32, GETEVENTS, None) }
}

/// Waits between two polls of a broken ring, or aborts. The kernel may still write to the buffers
/// of the reads, so they cannot be freed, and no call is left that would end the reads: an abort
/// with a message is better than a wrong result or an endless wait.
#[cold]
#[allow(clippy::disallowed_methods)] // no clock is at hand here
fn look_once_more(looks: u32) {
    if looks >= LAST_LOOKS_MAX {
        eprintln!("windrow: the kernel does not end reads that it took: io_uring is broken");
        std::process::abort();
    }
    std::thread::sleep(std::time::Duration::from_millis(1));
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
