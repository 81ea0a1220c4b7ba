//! The mappings of large buffers, and the few of freed ones that are kept for the next.
//!
//! Each page of a fresh mapping costs a fault when it is first used, and the system zeroes it: for a
//! value of half a mebibyte that takes longer than to read it from the page cache and to check it.
//! A cache that gives way to a block frees a mapping each time that it takes one, so a few are
//! enough. One of another length is resized, which keeps its pages.
//!
//! Owns: the kept mappings, and the counts. Never does: wait, or keep more than a small part.

use super::mapping;
use crate::sync::real::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr::{self, NonNull};

/// Mappings that are kept. The first word of each is its length.
static KEPT: [AtomicPtr<u8>; 32] = [const { AtomicPtr::new(ptr::null_mut()) }; 32];
/// Their bytes.
static KEPT_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the mappings in use.
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The bytes that may always be kept; or this part of the used bytes.
const KEPT_BYTES_MIN: usize = 1 << 20;
const KEPT_PART: usize = 32;

/// Maps `bytes` (whole pages), zeros or the bytes of an earlier buffer; `None` if the system
/// refuses.
pub(super) fn take(bytes: usize) -> Option<NonNull<u8>> {
    let start = KEPT.iter().find_map(|slot| resized(taken_out(slot)?, bytes));
    let start = start.or_else(|| mapping::map(bytes))?;
    USED_BYTES.fetch_add(bytes, Ordering::Relaxed);
    Some(start)
}

/// Keeps a mapping for the next one, or unmaps it.
///
/// # Safety
/// [`take`] returned it for this size, and it is not used any more.
pub(super) unsafe fn give_back(start: NonNull<u8>, bytes: usize) {
    let used = USED_BYTES.fetch_sub(bytes, Ordering::Relaxed) - bytes;
    // SAFETY: the caller's promise: the first word of a page is this thread's, and aligned.
    unsafe { start.cast::<usize>().write(bytes) };
    let kept = KEPT_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    let is_kept = kept <= (used / KEPT_PART).max(KEPT_BYTES_MIN)
        && KEPT.iter().any(|slot| {
            let (null, mine) = (ptr::null_mut(), start.as_ptr());
            slot.compare_exchange(null, mine, Ordering::Release, Ordering::Relaxed).is_ok()
        });
    if !is_kept {
        KEPT_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: the caller's promise; no slot has it.
        unsafe { mapping::unmap(start, bytes) };
    }
}

/// The bytes in use, and those that are kept.
pub(super) fn bytes() -> (usize, usize) {
    (USED_BYTES.load(Ordering::Relaxed), KEPT_BYTES.load(Ordering::Relaxed))
}

/// The mapping of a slot, and its length.
fn taken_out(slot: &AtomicPtr<u8>) -> Option<(NonNull<u8>, usize)> {
    if slot.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let start = NonNull::new(slot.swap(ptr::null_mut(), Ordering::Acquire))?;
    // SAFETY: `give_back` wrote the word, and nobody else has the mapping now.
    let bytes = unsafe { start.cast::<usize>().read() };
    KEPT_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    Some((start, bytes))
}

/// A kept mapping with the length `bytes`. `None`: the system refused, and it is unmapped.
fn resized((start, kept_bytes): (NonNull<u8>, usize), bytes: usize) -> Option<NonNull<u8>> {
    if kept_bytes == bytes {
        return Some(start);
    }
    // SAFETY: it is a whole mapping of this length, and this thread's alone.
    let resized = unsafe { mapping::resize(start, kept_bytes, bytes) };
    if resized.is_none() {
        // SAFETY: as above; it is as it was.
        unsafe { mapping::unmap(start, kept_bytes) };
    }
    resized
}
