//! The arena: memory that any number of threads allocate from, that never moves, and that is freed
//! as a whole.
//!
//! Owns: the chunks. Those of full size come from a pool and go back to it, if there is one. Never
//! does: free or reuse a single allocation, run a destructor, or take a lock: an allocation is one
//! `fetch_add`.
#![allow(unsafe_code)]

use crate::chunk::{CHUNK_BYTES_MAX, Chunk, free_chunk, new_chunk, try_carve};
use crate::pool::ChunkPool;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use core::ptr::{self, NonNull};
use std::sync::Arc;

/// Entries up to this size share chunks. Few larger ones fit into a chunk, and the rest of it is
/// lost.
const SMALL_BYTES_MAX: usize = 8 << 10;
/// Alignment of every allocation.
pub(crate) const ALIGN: usize = 8;

/// The arena; see the module.
pub(crate) struct Arena {
    /// The chunk that small requests are served from; never null.
    current: AtomicPtr<Chunk>,
    /// Chunks of one large entry each; may be null.
    large: AtomicPtr<Chunk>,
    /// Sum of `total_bytes`.
    allocated_bytes: AtomicUsize,
    /// The source of chunks of full size.
    pool: Option<Arc<ChunkPool>>,
}

// SAFETY: the chunks belong to the arena alone, and the fields that threads share (`used_bytes`,
// the list heads) are atomic.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena with a first chunk of `first_bytes`. Each next chunk is twice the last, or as large
    /// as all chunks together.
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

    /// The bytes of all chunks, rounded down to a power of two. Chunks of one entry count: where
    /// all entries are large for the first chunks, each would always get a chunk of its own if
    /// chunks grew only with the size of shared ones.
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
                // SAFETY: `&mut self`: no thread uses the chunks any more; each is on one list
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

/// Takes a chunk, from the pool if it is of full size and there is a pool.
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
    // SAFETY: the caller's promise; the size tells whether the chunk came from the pool.
    unsafe {
        match pool {
            Some(pool) if (*chunk).total_bytes == CHUNK_BYTES_MAX => {
                pool.give_back(NonNull::new_unchecked(chunk));
            }
            _ => free_chunk(chunk),
        }
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
            // All but the first mebibyte or two.
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
