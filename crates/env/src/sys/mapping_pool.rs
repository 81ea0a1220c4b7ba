//! The mappings of large buffers, and the few of freed ones that are kept for the next.
//!
//! Each page of a fresh mapping costs a fault when it is first used, and the system zeroes it: for a
//! value of half a mebibyte that takes longer than to read it from the page cache and to check it.
//! A cache that gives way to a block frees a mapping each time that it takes one, so a few are
//! enough. One that is a little longer serves as it is. Else the one of the nearest length is
//! resized, which keeps its pages: the first one at hand took 28 faults for a value of half a
//! mebibyte, about as long as to copy all of it.
//!
//! Owns: the kept mappings, and the counts. Never does: wait, or keep more than a small part.

use super::mapping::{self, PAGE_BYTES, Pages};
use crate::sync::real::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ops::RangeInclusive;
use std::ptr::{self, NonNull};

/// The most mappings that are kept.
const KEPT_MAX: usize = 32;

/// The bytes that may always be kept; or this part of the used bytes.
const KEPT_BYTES_MIN: usize = 1 << 20;
const KEPT_PART: usize = 8;

/// The part of a buffer's length by which its mapping may be longer.
const SPARE_PART: usize = 4;

static POOL: MappingPool = MappingPool::new();

struct MappingPool {
    kept: [KeptMapping; KEPT_MAX],
    kept_bytes: AtomicUsize,
    /// Bytes of the mappings in use.
    used_bytes: AtomicUsize,
}

/// A place for a mapping. The first word of the mapping is its length.
struct KeptMapping {
    start: AtomicPtr<u8>,
    /// Its length, most often, for those who choose: only who has taken it out may read its first
    /// word.
    about_bytes: AtomicUsize,
}

/// Maps `bytes` (whole pages), zeros or the bytes of an earlier buffer; or up to a quarter more, if
/// a kept mapping has as many and all pages are wanted now. Returns it and its length; `None` if the
/// system refuses.
pub(super) fn take(bytes: usize, pages: Pages) -> Option<(NonNull<u8>, usize)> {
    POOL.take(bytes, pages)
}

/// The most bytes of a mapping for a buffer that needs `bytes`.
pub(super) fn most_bytes(bytes: usize) -> usize {
    bytes + bytes / SPARE_PART
}

/// Keeps a mapping for the next one, or unmaps it.
///
/// # Safety
/// [`take`] returned it for this size, and it is not used any more.
pub(super) unsafe fn give_back(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { POOL.give_back(start, bytes) };
}

/// The bytes in use, and those that are kept.
pub(super) fn bytes() -> (usize, usize) {
    (POOL.used_bytes.load(Ordering::Relaxed), POOL.kept_bytes.load(Ordering::Relaxed))
}

impl MappingPool {
    const fn new() -> MappingPool {
        MappingPool {
            kept: [const { KeptMapping::none() }; KEPT_MAX],
            kept_bytes: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
        }
    }

    fn take(&self, bytes: usize, pages: Pages) -> Option<(NonNull<u8>, usize)> {
        let most = if pages == Pages::Now { most_bytes(bytes) } else { bytes };
        let wanted = bytes..=most;
        let taken = self.take_nearest(&wanted).and_then(|(start, kept_bytes)| {
            if wanted.contains(&kept_bytes) {
                return Some((start, kept_bytes, kept_bytes));
            }
            Some((resized((start, kept_bytes), bytes)?, kept_bytes, bytes))
        });
        let (start, old_bytes, taken_bytes) =
            taken.or_else(|| Some((mapping::map(bytes)?, 0, bytes)))?;
        self.used_bytes.fetch_add(taken_bytes, Ordering::Relaxed);
        if pages == Pages::Now && old_bytes < taken_bytes {
            let added = taken_bytes - old_bytes;
            // SAFETY: the mapping has these bytes.
            unsafe { mapping::populate(start.add(old_bytes), added, added / PAGE_BYTES) };
        }
        Some((start, taken_bytes))
    }

    /// # Safety
    /// [`MappingPool::take`] returned it for this size, and it is not used any more.
    unsafe fn give_back(&self, start: NonNull<u8>, bytes: usize) {
        let used = self.used_bytes.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        // SAFETY: the caller's promise: the first word of a page is this thread's, and aligned.
        unsafe { start.cast::<usize>().write(bytes) };
        let kept = self.kept_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_kept = kept <= (used / KEPT_PART).max(KEPT_BYTES_MIN)
            && self.kept.iter().any(|place| place.keep(start, bytes));
        if !is_kept {
            self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
            // SAFETY: the caller's promise; no place has it.
            unsafe { mapping::unmap(start, bytes) };
        }
    }

    /// Takes out a kept mapping: the shortest with a length of `wanted`, or else the one that is
    /// nearest to its start. Returns it and its length.
    fn take_nearest(&self, wanted: &RangeInclusive<usize>) -> Option<(NonNull<u8>, usize)> {
        loop {
            let kept = self.kept.iter().filter(|place| !place.is_empty());
            let distance = |place: &&KeptMapping| {
                let bytes = place.about_bytes.load(Ordering::Relaxed);
                (!wanted.contains(&bytes), bytes.abs_diff(*wanted.start()))
            };
            // If another thread was faster, there is one less to choose from.
            if let Some(taken) = kept.min_by_key(distance)?.take_out() {
                self.kept_bytes.fetch_sub(taken.1, Ordering::Relaxed);
                return Some(taken);
            }
        }
    }
}

impl KeptMapping {
    const fn none() -> KeptMapping {
        KeptMapping { start: AtomicPtr::new(ptr::null_mut()), about_bytes: AtomicUsize::new(0) }
    }

    fn is_empty(&self) -> bool {
        self.start.load(Ordering::Relaxed).is_null()
    }

    /// Takes in a mapping, whose length is in its first word. Returns whether the place was free.
    fn keep(&self, start: NonNull<u8>, bytes: usize) -> bool {
        let (null, mine) = (ptr::null_mut(), start.as_ptr());
        let kept = self.start.compare_exchange(null, mine, Ordering::Release, Ordering::Relaxed);
        if kept.is_ok() {
            self.about_bytes.store(bytes, Ordering::Relaxed);
        }
        kept.is_ok()
    }

    /// The mapping and its length, from now on the caller's.
    fn take_out(&self) -> Option<(NonNull<u8>, usize)> {
        let start = NonNull::new(self.start.swap(ptr::null_mut(), Ordering::Acquire))?;
        // SAFETY: `give_back` wrote the word, and nobody else has the mapping now.
        let bytes = unsafe { start.cast::<usize>().read() };
        Some((start, bytes))
    }
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

#[cfg(all(test, not(any(miri, loom, heap_only))))]
mod tests {
    use super::*;

    /// Each page that a mapping has too few is a fault, and each that it has too many is lost.
    #[test]
    fn the_mapping_of_the_nearest_length_is_taken() {
        const KIB: usize = 1 << 10;
        let pool = MappingPool::new();
        for (byte, kib) in [(1, 100), (2, 300), (3, 500)] {
            let start = mapping::map(kib * KIB).unwrap();
            // SAFETY: the byte is within the mapping, which is this test's.
            unsafe { start.add(100).write(byte) };
            pool.used_bytes.fetch_add(kib * KIB, Ordering::Relaxed);
            // SAFETY: it has this length, and is not used any more.
            unsafe { pool.give_back(start, kib * KIB) };
        }
        for (kib, pages, taken_kib, byte) in
            [(360, Pages::Later, 360, 2), (420, Pages::Now, 500, 3), (200, Pages::Now, 200, 1)]
        {
            let (start, bytes) = pool.take(kib * KIB, pages).unwrap();
            assert_eq!(bytes, taken_kib * KIB);
            // SAFETY: as above.
            assert_eq!(unsafe { start.add(100).read() }, byte, "for {kib} KiB");
            // SAFETY: as above, and no longer used.
            unsafe { mapping::unmap(start, bytes) };
        }
        assert_eq!(pool.kept_bytes.load(Ordering::Relaxed), 0);
    }
}
