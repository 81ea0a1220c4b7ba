//! Private memory mappings, zeroed, in whole pages.
//!
//! Owns: the calls that map, unmap, supply pages and give them back. Never does: keep memory for
//! later, or serve less than a page.

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};
use std::ptr::{self, NonNull};

/// The unit of pages: the system's page is this, or the multiple of it that [`system_pages`]
/// returns.
pub(super) const PAGE_BYTES: usize = 4 << 10;

/// When the system supplies a buffer's pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// At once: all will be used.
    Now,
    /// When they are first used.
    Later,
}

/// The number of these pages in one of the system's: one, or up to 16 on some processors.
pub(super) fn system_pages() -> usize {
    rustix::param::page_size() / PAGE_BYTES
}

/// The bytes that a mapping for `bytes` takes.
pub(super) fn mapped_bytes(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(PAGE_BYTES)
}

/// Maps `bytes` (whole pages) of zeros; `None` if the system refuses. Under Miri, and built with
/// `--cfg heap_only`, it is always `None`: checkers of memory know the heap's allocations, and
/// cannot tell one run of a region from another.
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    if cfg!(any(miri, loom, heap_only)) {
        return None;
    }
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address of the kernel's choice aliases no
    // memory of ours.
    let start =
        unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, flags, MapFlags::PRIVATE) };
    start.ok().and_then(|start| NonNull::new(start.cast()))
}

/// Unmaps a mapping.
///
/// # Safety
/// [`map`] returned it for this size, and it is not used any more.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    let unmapped = unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) };
    debug_assert!(unmapped.is_ok(), "{unmapped:?}");
}

/// Gives a mapping another length, and maybe another place; it keeps its content up to the shorter
/// of both, and has zeros behind. `None`: the system refuses, and it is as it was.
///
/// # Safety
/// [`map`] returned it for `bytes`, and nothing points into it any more.
pub(super) unsafe fn resize(
    start: NonNull<u8>,
    bytes: usize,
    new_bytes: usize,
) -> Option<NonNull<u8>> {
    let flags = MremapFlags::MAYMOVE;
    // SAFETY: the caller's promise.
    let moved = unsafe { rustix::mm::mremap(start.as_ptr().cast(), bytes, new_bytes, flags) };
    moved.ok().and_then(|start| NonNull::new(start.cast()))
}

/// Tells the system to keep a mapping in pages of the usual size: pages that are given back one by
/// one would otherwise return with a huge page that the system makes of the rest.
///
/// # Safety
/// It lies in a mapping.
pub(super) unsafe fn keep_pages_small(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise; the advice changes no byte. A kernel without huge
    // pages refuses it, and needs none.
    let _ = unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
}

/// A fault for each of fewer pages takes no longer than one call for all of them.
const POPULATED_PAGES_MIN: usize = 4;

/// Has the system supply the `missing` pages of these bytes now, in one call. That takes 1 us a
/// page; a fault in a read from the page cache takes 1.65. A system that does not know the advice
/// supplies them when they are used.
///
/// # Safety
/// They lie in a mapping.
pub(super) unsafe fn populate(start: NonNull<u8>, bytes: usize, missing: usize) {
    if missing < POPULATED_PAGES_MIN {
        return;
    }
    let before = start.addr().get() % rustix::param::page_size();
    // SAFETY: the caller's promise; a mapping begins with a page. The advice changes no byte.
    let _ = unsafe {
        let first = start.as_ptr().sub(before).cast();
        rustix::mm::madvise(first, bytes + before, Advice::LinuxPopulateWrite)
    };
}

/// Gives pages back to the system: they hold zeros when they are used again. Returns whether the
/// system took them.
///
/// # Safety
/// They lie in a mapping, are whole pages of the system, and their content is not used any more.
pub(super) unsafe fn give_back(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller's promise; zeros are as good as the old content.
    unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed).is_ok() }
}

#[cfg(all(test, not(any(miri, loom, heap_only))))]
mod tests {
    use super::*;

    /// Returns the number of pages that the system has supplied.
    fn supplied(start: NonNull<u8>, bytes: usize) -> usize {
        let page = rustix::param::page_size();
        let mut pages = vec![0u8; bytes.div_ceil(page)];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let told = unsafe { libc::mincore(start.as_ptr().cast(), bytes, pages.as_mut_ptr()) };
        assert_eq!(told, 0);
        pages.iter().filter(|page| **page & 1 == 1).count() * page / PAGE_BYTES
    }

    #[test]
    fn missing_pages_come_in_one_call_if_they_are_worth_it() {
        const PAGES: usize = 64;
        let bytes = PAGES * PAGE_BYTES;
        let start = map(bytes).unwrap();
        // SAFETY: the pages lie in the mapping, which is this test's.
        unsafe {
            keep_pages_small(start, bytes);
            let advice = Advice::LinuxPopulateWrite;
            let is_known = rustix::mm::madvise(start.as_ptr().cast(), 0, advice).is_ok();
            populate(start, bytes, POPULATED_PAGES_MIN - 1);
            assert_eq!(supplied(start, bytes), 0);
            // From the middle of a page: that page is among them.
            populate(start.add(bytes / 2 + 100), bytes / 2 - 100, PAGES / 2);
            assert_eq!(supplied(start, bytes), if is_known { PAGES / 2 } else { 0 });
            unmap(start, bytes);
        }
    }
}
