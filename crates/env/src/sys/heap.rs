//! A global allocator that counts, and aborts the process at the n-th allocation, as running out of
//! memory does to a Rust program.
//!
//! Owns: the counts, also of buffers, which come from no allocator (`buffer.rs`). Never does: serve
//! memory itself; the system's allocator does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The number of the allocation at which the process ends.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// The allocator; see the module. It is meant for a program's `#[global_allocator]`; otherwise it
/// counts buffers alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingHeap;

impl CountingHeap {
    /// Aborts the process at the `n`-th allocation from here on.
    pub fn abort_at(self, n: u64) {
        LAST.store(self.count().saturating_add(n), Ordering::Relaxed);
    }

    /// The number of allocations so far, those that grow included.
    pub fn count(self) -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    /// The bytes allocated and not freed.
    pub fn live_bytes(self) -> usize {
        LIVE.load(Ordering::Relaxed)
    }

    /// The most bytes at a time.
    pub fn peak_bytes(self) -> usize {
        PEAK.load(Ordering::Relaxed)
    }

    /// Counts an allocation, here or of a buffer.
    pub(super) fn add(self, bytes: usize) {
        if COUNT.fetch_add(1, Ordering::Relaxed) >= LAST.load(Ordering::Relaxed) {
            // A panic would unwind and allocate.
            std::process::abort();
        }
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Loading first keeps the cache line shared while the peak does not rise.
        if live > PEAK.load(Ordering::Relaxed) {
            PEAK.fetch_max(live, Ordering::Relaxed);
        }
    }

    pub(super) fn sub(self, bytes: usize) {
        LIVE.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on to `System` with the arguments it came with, whose promises
// are this trait's; counting touches atomics alone and cannot unwind.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.sub(layout.size());
        // SAFETY: the caller's promise: `memory` came from here, so from `System`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        self.add(new_bytes);
        self.sub(layout.size());
        // SAFETY: the caller's promise: `memory` came from here, so from `System`.
        unsafe { System.realloc(memory, layout, new_bytes) }
    }
}
