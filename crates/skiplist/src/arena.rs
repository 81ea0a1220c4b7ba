//! The arena: memory that is handed out by any number of threads, never moves,
//! and is freed as a whole.
//!
//! Owns the chunks; those of full size come from a pool and go back to it, if
//! there is one. Never frees or reuses a single allocation, never runs
//! destructors, and never takes a lock: an allocation is one `fetch_add`.
#![allow(unsafe_code)]

use crate::pool::ChunkPool;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, Payload};
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::sync::Arc;

/// Size at which chunks stop growing.
pub(crate) const CHUNK_BYTES_MAX: usize = if cfg!(loom) { 1 << 12 } else { 1 << 20 };
/// Entries up to this size are to share chunks. Of larger ones few fit into a
/// chunk, and what is left of it is lost.
const SMALL_BYTES_MAX: usize = 8 << 10;
/// Chunks start on a cache line.
const CHUNK_ALIGN: usize = 64;
/// Alignment of every allocation.
pub(crate) const ALIGN: usize = 8;

/// Head of a chunk; the bytes it hands out follow.
#[repr(C, align(64))]
pub(crate) struct Chunk {
    /// The chunk taken before this one, to be freed after it.
    older: *mut Chunk,
    /// Size with this head.
    total_bytes: usize,
    /// Bytes handed out, this head included. Passes `total_bytes` when
    /// threads race for the last bytes, by at most one request per thread.
    used_bytes: AtomicUsize,
    /// What follows this head.
    bytes: Payload,
}

/// See the module.
pub(crate) struct Arena {
    /// The chunk that small requests are served from; never null.
    current: AtomicPtr<Chunk>,
    /// Chunks of one large entry each; may be null.
    large: AtomicPtr<Chunk>,
    /// Sum of `total_bytes`.
    allocated_bytes: AtomicUsize,
    /// Where chunks of full size come from.
    pool: Option<Arc<ChunkPool>>,
}

// SAFETY: the chunks belong to the arena alone, and what threads share of them
// (`used_bytes`, the list heads) is atomic.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena with a first chunk of `first_bytes`; each next one is twice the last,
    /// or as large as all it has.
    pub(crate) fn new(first_bytes: usize, pool: Option<Arc<ChunkPool>>) -> Arena {
        let chunk = take_chunk(pool.as_deref(), first_bytes, ptr::null_mut());
        Arena {
            current: AtomicPtr::new(chunk.as_ptr()),
            large: AtomicPtr::new(ptr::null_mut()),
            allocated_bytes: AtomicUsize::new(first_bytes),
            pool,
        }
    }

    /// Bytes taken from the allocator.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// `bytes` of uninitialised memory, aligned to [`ALIGN`], valid as long as the arena.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        debug_assert!(bytes.is_multiple_of(ALIGN));
        let chunk = self.current.load(Ordering::Acquire);
        match try_carve(chunk, bytes) {
            Some(memory) => memory,
            None => self.allocate_slow(chunk, bytes),
        }
    }

    #[cold]
    fn allocate_slow(&self, mut full: *mut Chunk, bytes: usize) -> NonNull<u8> {
        loop {
            // SAFETY: chunks live as long as the arena, and `total_bytes` is never written again.
            let doubled_bytes = unsafe { (*full).total_bytes } * 2;
            let grown_bytes = if bytes <= SMALL_BYTES_MAX { self.rounded_bytes() } else { 0 };
            let next_bytes = doubled_bytes.max(grown_bytes).min(CHUNK_BYTES_MAX);
            if bytes > next_bytes / 4 {
                return self.allocate_large(bytes);
            }
            let fresh = take_chunk(self.pool.as_deref(), next_bytes, full).as_ptr();
            let installed =
                self.current.compare_exchange(full, fresh, Ordering::AcqRel, Ordering::Acquire);
            let chunk = match installed {
                Ok(_) => {
                    self.allocated_bytes.fetch_add(next_bytes, Ordering::Relaxed);
                    fresh
                }
                Err(theirs) => {
                    // SAFETY: `fresh` was never published.
                    unsafe { leave_chunk(self.pool.as_deref(), fresh) };
                    theirs
                }
            };
            if let Some(memory) = try_carve(chunk, bytes) {
                return memory;
            }
            full = chunk;
        }
    }

    /// All it took, rounded down to a power of two. Chunks of one entry count: where
    /// all entries are large for the first chunks, each would have one for ever, if
    /// chunks grew by chunks alone.
    fn rounded_bytes(&self) -> usize {
        if cfg!(loom) { 0 } else { 1 << self.allocated_bytes().max(1).ilog2() }
    }

    fn allocate_large(&self, bytes: usize) -> NonNull<u8> {
        let total_bytes = bytes.checked_add(size_of::<Chunk>()).expect("entry size overflows");
        let mut older = self.large.load(Ordering::Relaxed);
        let chunk = new_chunk(total_bytes, older).as_ptr();
        let memory = try_carve(chunk, bytes).expect("the chunk was made for this request");
        while let Err(now) =
            self.large.compare_exchange(older, chunk, Ordering::Release, Ordering::Relaxed)
        {
            older = now;
            // SAFETY: `chunk` is not published yet.
            unsafe { (*chunk).older = older };
        }
        self.allocated_bytes.fetch_add(total_bytes, Ordering::Relaxed);
        memory
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (head, pool) in [(&self.current, self.pool.as_deref()), (&self.large, None)] {
            let mut chunk = head.load(Ordering::Acquire);
            while !chunk.is_null() {
                // SAFETY: `&mut self`: nobody uses the chunks any more; each is on one list
                // once, and only those on the first list came from the pool.
                unsafe {
                    let older = (*chunk).older;
                    leave_chunk(pool, chunk);
                    chunk = older;
                }
            }
        }
    }
}

/// Takes `bytes` off `chunk`, or `None` if it has no room.
#[inline]
fn try_carve(chunk: *mut Chunk, bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: chunks live as long as the arena that the caller borrows.
    let (used_bytes, total_bytes) = unsafe { (&(*chunk).used_bytes, (*chunk).total_bytes) };
    // Looking first keeps what is left usable for smaller requests.
    if total_bytes.checked_sub(used_bytes.load(Ordering::Relaxed)).is_none_or(|left| left < bytes) {
        return None;
    }
    let start = used_bytes.fetch_add(bytes, Ordering::Relaxed);
    if total_bytes.checked_sub(start).is_none_or(|left| left < bytes) {
        return None;
    }
    // SAFETY: the chunk lives, and `start + bytes <= total_bytes`, so the result is inside it.
    unsafe {
        (*chunk).bytes.read();
        Some(NonNull::new_unchecked(chunk.cast::<u8>().add(start)))
    }
}

fn chunk_layout(total_bytes: usize) -> Layout {
    Layout::from_size_align(total_bytes, CHUNK_ALIGN).expect("entry size overflows")
}

/// A chunk, from the pool if it is of full size and there is one.
fn take_chunk(pool: Option<&ChunkPool>, total_bytes: usize, older: *mut Chunk) -> NonNull<Chunk> {
    match pool {
        Some(pool) if total_bytes == CHUNK_BYTES_MAX => pool.take(older),
        _ => new_chunk(total_bytes, older),
    }
}

/// # Safety
/// `chunk` came from [`take_chunk`] with this pool, or with none from
/// [`new_chunk`], and is never used again.
unsafe fn leave_chunk(pool: Option<&ChunkPool>, chunk: *mut Chunk) {
    // SAFETY: the caller's promise; the size tells where it came from.
    unsafe {
        match pool {
            Some(pool) if (*chunk).total_bytes == CHUNK_BYTES_MAX => {
                pool.give_back(NonNull::new_unchecked(chunk));
            }
            _ => free_chunk(chunk),
        }
    }
}

pub(crate) fn new_chunk(total_bytes: usize, older: *mut Chunk) -> NonNull<Chunk> {
    let layout = chunk_layout(total_bytes);
    // SAFETY: the size is at least that of the head, so not zero.
    let memory = unsafe { alloc(layout) };
    let Some(chunk) = NonNull::new(memory.cast::<Chunk>()) else { handle_alloc_error(layout) };
    let used_bytes = AtomicUsize::new(size_of::<Chunk>());
    let bytes = Payload::written();
    // SAFETY: freshly allocated, large and aligned enough for the head.
    unsafe { chunk.write(Chunk { older, total_bytes, used_bytes, bytes }) };
    chunk
}

/// Makes a used chunk empty.
///
/// # Safety
/// The caller has it alone.
pub(crate) unsafe fn renew_chunk(chunk: NonNull<Chunk>, older: *mut Chunk) {
    // SAFETY: the caller's promise; the head stays where it is.
    unsafe {
        let total_bytes = chunk.as_ref().total_bytes;
        chunk.as_ref().bytes.give_up();
        let used_bytes = AtomicUsize::new(size_of::<Chunk>());
        let bytes = Payload::written();
        // Replaces rather than overwrites: the head's atomics are dropped.
        chunk.replace(Chunk { older, total_bytes, used_bytes, bytes });
    }
}

/// # Safety
/// `chunk` came from [`new_chunk`] and is never used again.
pub(crate) unsafe fn free_chunk(chunk: *mut Chunk) {
    // SAFETY: the caller's promise; the layout is the one it was allocated with.
    unsafe {
        (*chunk).bytes.give_up();
        dealloc(chunk.cast(), chunk_layout((*chunk).total_bytes));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_disjoint_and_counted() {
        let arena = Arena::new(16 << 10, None);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for i in 0..5000 {
            let bytes = (i * 37 % 900 + 1) * ALIGN;
            let start = arena.allocate(bytes).as_ptr() as usize;
            assert!(start.is_multiple_of(ALIGN));
            taken.push((start, start + bytes));
        }
        let sum: usize = taken.iter().map(|(start, end)| end - start).sum();
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(sum <= arena.allocated_bytes() && arena.allocated_bytes() < sum + sum / 10);
    }

    #[test]
    fn chunks_grow_with_entries_that_are_large_for_the_first() {
        for bytes in [200, 600, 1200, 5000, SMALL_BYTES_MAX] {
            let pool = Arc::new(ChunkPool::new(0));
            let arena = Arena::new(512, Some(pool.clone()));
            let entries = (32 << 20) / bytes;
            for _ in 0..entries {
                let _ = arena.allocate(bytes / ALIGN * ALIGN);
            }
            // But for the first mebibyte or two.
            assert!(pool.held_bytes() > 29 << 20, "{bytes}: {} in chunks", pool.held_bytes());
            let (used, taken) = (entries * bytes, arena.allocated_bytes());
            assert!(taken < used + used / 10, "{bytes}: {taken} taken for {used}");
        }
    }

    #[test]
    fn a_large_request_leaves_the_current_chunk_in_use() {
        let arena = Arena::new(16 << 10, None);
        let first = arena.allocate(8).as_ptr() as usize;
        let before = arena.allocated_bytes();
        arena.allocate(10 << 20);
        assert_eq!(arena.allocated_bytes(), before + (10 << 20) + size_of::<Chunk>());
        assert_eq!(arena.allocate(8).as_ptr() as usize, first + 8);
    }
}
