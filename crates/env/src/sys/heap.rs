//! A global allocator that counts, and aborts the process at the n-th
//! allocation: what running out of memory does to a Rust program.
//!
//! Owns: the counts, of buffers too, which are no allocator's (`buffer.rs`). Never does: serve
//! memory itself; the system's allocator does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The allocation at which the process ends.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// See the module. For a program's `#[global_allocator]`; where it is not that, it
/// counts buffers alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingHeap;

impl CountingHeap {
    /// Aborts the process at the `n`-th allocation from here on.
    pub fn abort_at(self, n: u64) {
        LAST.store(self.count().saturating_add(n), Ordering::Relaxed);
    }

    /// Allocations so far, growing ones included.
    pub fn count(self) -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    /// Bytes asked for and not given back.
    pub fn live_bytes(self) -> usize {
        LIVE.load(Ordering::Relaxed)
    }

    /// The most of them at a time.
    pub fn peak_bytes(self) -> usize {
        PEAK.load(Ordering::Relaxed)
    }

    /// Something was allocated: here, or where buffers are.
    pub(super) fn add(self, bytes: usize) {
        if COUNT.fetch_add(1, Ordering::Relaxed) >= LAST.load(Ordering::Relaxed) {
            // Not by a panic, which would unwind and allocate.
            std::process::abort();
        }
        let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Looking first keeps the line shared while nothing is broken.
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
