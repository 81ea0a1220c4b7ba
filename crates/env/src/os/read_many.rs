//! Many reads at once: one submission, device depth = number of reads.
//!
//! Direct files read the aligned hull of each range into scratch memory that the thread keeps. A
//! read that the ring did not run, or did not complete, is run again alone, which also names its
//! error.
//!
//! Owns: the route of each read, and the scratch memory. Never does: return the ring's error
//! numbers.

use super::read_file::{hull, is_aligned};
use crate::fs::{DIRECT_ALIGN_BYTES, ReadRequest};
use crate::sys::aligned::AlignedBuf;
use crate::sys::ring::{NOT_RUN, RingRead, read_batch};
use std::cell::RefCell;

/// Scratch memory kept between batches: 64 reads of a 4 KiB block that
/// straddles two.
const SCRATCH_KEPT_BYTES: usize = 512 << 10;
/// The longest single read that is given to the ring.
const READ_BYTES_MAX: usize = 1 << 30;

thread_local! {
    static SCRATCH: RefCell<Option<AlignedBuf>> = const { RefCell::new(None) };
}

/// How a request goes to the ring.
#[derive(Clone, Copy)]
enum Route {
    /// Not through the ring.
    Alone,
    /// Directly into its buffer.
    Straight,
    /// Through scratch memory: hull start and bytes.
    Hull(u64, usize),
}

impl Route {
    /// The scratch memory that it takes: whole pages, so that the next request's part is aligned
    /// for any file.
    fn scratch_bytes(self) -> usize {
        match self {
            Route::Hull(_, bytes) => bytes.next_multiple_of(DIRECT_ALIGN_BYTES),
            Route::Alone | Route::Straight => 0,
        }
    }
}

pub(super) fn read_many(requests: &mut [ReadRequest<'_>]) {
    if requests.len() < 2 {
        return read_alone(requests, |_| true);
    }
    let routes: Vec<Route> = requests.iter().map(route).collect();
    let mut scratch = take_scratch(routes.iter().map(|route| route.scratch_bytes()).sum());
    let outcomes = run(requests, &routes, scratch.as_deref_mut().unwrap_or_default());
    let mut at = 0;
    let mut done = vec![false; requests.len()];
    for (index, request) in requests.iter_mut().enumerate() {
        let got = usize::try_from(outcomes[index]).unwrap_or(0);
        let len = request.buf.len();
        match routes[index] {
            Route::Alone => {}
            Route::Straight => done[index] = got == len,
            Route::Hull(start, _) => {
                let skip = (request.offset - start) as usize;
                if let Some(scratch) = scratch.as_deref().filter(|_| got >= skip + len) {
                    request.buf.copy_from_slice(&scratch[at + skip..at + skip + len]);
                    done[index] = true;
                }
                at += routes[index].scratch_bytes();
            }
        }
        if done[index] {
            request.result = Ok(());
        }
    }
    keep_scratch(scratch);
    read_alone(requests, |index| !done[index]);
}

fn read_alone(requests: &mut [ReadRequest<'_>], wanted: impl Fn(usize) -> bool) {
    for (index, request) in requests.iter_mut().enumerate() {
        if wanted(index) {
            request.result = request.file.read_at(request.offset, request.buf);
        }
    }
}

fn route(request: &ReadRequest<'_>) -> Route {
    let len = request.buf.len();
    if request.file.raw_fd().is_none() || len == 0 || len > READ_BYTES_MAX {
        Route::Alone
    } else {
        match request.file.direct_align() {
            Some(align) if !is_aligned(request.offset, request.buf, align) => {
                let (start, bytes) = hull(request.offset, len, align);
                Route::Hull(start, bytes)
            }
            _ => Route::Straight,
        }
    }
}

/// Runs the requests that go to the ring; returns the outcome of each request.
fn run(requests: &mut [ReadRequest<'_>], routes: &[Route], mut scratch: &mut [u8]) -> Vec<i32> {
    let mut outcomes = vec![NOT_RUN; requests.len()];
    let mut places = Vec::with_capacity(requests.len());
    let mut reads = Vec::with_capacity(requests.len());
    for (index, (request, route)) in requests.iter_mut().zip(routes).enumerate() {
        let Some(fd) = request.file.raw_fd() else { continue };
        let (offset, buf) = match *route {
            Route::Alone => continue,
            Route::Straight => (request.offset, &mut *request.buf),
            Route::Hull(start, bytes) => {
                let (head, rest) = std::mem::take(&mut scratch).split_at_mut(route.scratch_bytes());
                scratch = rest;
                (start, &mut head[..bytes])
            }
        };
        places.push(index);
        reads.push(RingRead { fd, offset, buf, outcome: NOT_RUN });
    }
    if reads.len() > 1 {
        read_batch(&mut reads);
    }
    for (read, place) in reads.iter().zip(places) {
        outcomes[place] = read.outcome;
    }
    outcomes
}

fn take_scratch(bytes: usize) -> Option<AlignedBuf> {
    if bytes == 0 {
        return None;
    }
    let kept = SCRATCH.with_borrow_mut(Option::take).filter(|kept| kept.len() >= bytes);
    // Grown by doubling, so that a thread settles on one allocation.
    Some(
        kept.unwrap_or_else(|| {
            AlignedBuf::new(bytes.next_power_of_two().max(8 * DIRECT_ALIGN_BYTES))
        }),
    )
}

fn keep_scratch(scratch: Option<AlignedBuf>) {
    if let Some(scratch) = scratch.filter(|s| s.len() <= SCRATCH_KEPT_BYTES) {
        SCRATCH.set(Some(scratch));
    }
}
