//! The pool: chunks of full size that dropped lists leave for the next ones.
//!
//! A chunk is a mebibyte, and a mapping of its own. A chunk from the pool has its pages already,
//! while the system fills each page of a new mapping with zeros first.
//!
//! A chunk enters and leaves its slot by one atomic operation, so no two lists can get it. Lists
//! that hold more than the pool's size get chunks from the system and give them back there.
//!
//! Owns: the idle chunks, in one slot for each chunk of the pool's size. Never does: take a lock,
//! or keep chunks of other sizes.
#![allow(unsafe_code)]

use crate::chunk::{CHUNK_BYTES_MAX, Chunk, free_chunk, new_chunk, renew_chunk};
use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use core::fmt;
use core::ptr::{self, NonNull};

/// Chunks shared by the lists made by [`SkipList::with_pool`](crate::SkipList::with_pool).
pub struct ChunkPool {
    /// Idle chunks; null where there is none.
    slots: Box<[AtomicPtr<Chunk>]>,
    /// The number of chunks in lists and of idle ones.
    held: AtomicUsize,
    /// The most chunks, in lists and idle, with which a returned chunk is kept; at most one for
    /// each slot.
    held_max: AtomicUsize,
    /// The number of chunks ever handed out.
    taken: AtomicUsize,
}

impl ChunkPool {
    /// A pool for lists that hold about `bytes` together: it keeps a returned chunk only while all
    /// of its chunks, in use or idle, are within that.
    pub fn new(bytes: u64) -> ChunkPool {
        let chunks = usize::try_from(bytes).unwrap_or(usize::MAX) / CHUNK_BYTES_MAX;
        ChunkPool {
            slots: (0..chunks).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            held: AtomicUsize::new(0),
            held_max: AtomicUsize::new(chunks),
            taken: AtomicUsize::new(0),
        }
    }

    /// Bytes of its chunks, in use or idle.
    pub fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed) * CHUNK_BYTES_MAX
    }

    /// The number of chunks handed out since the pool was made, which tells whether lists grew
    /// between two calls.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Keeps no chunk that would make all of them, in use or idle, more than `bytes`, until
    /// [`ChunkPool::keep_at_least`], because that memory has another use. Frees all chunks that are
    /// idle now.
    pub fn keep_within(&self, bytes: u64) {
        self.held_max.store(self.chunks_of(bytes), Ordering::Relaxed);
        self.release_idle();
    }

    /// Keeps no returned chunk that would make all of them, in use or idle, more than `bytes`.
    /// Chunks that are idle now stay.
    pub fn keep_returned_within(&self, bytes: u64) {
        self.held_max.store(self.chunks_of(bytes), Ordering::Relaxed);
    }

    /// Keeps chunks again while all of them are within `bytes`.
    pub fn keep_at_least(&self, bytes: u64) {
        let chunks = self.chunks_of(bytes);
        // Loaded first: calls are frequent, and seldom raise the limit.
        if self.held_max.load(Ordering::Relaxed) < chunks {
            self.held_max.fetch_max(chunks, Ordering::Relaxed);
        }
    }

    fn chunks_of(&self, bytes: u64) -> usize {
        (usize::try_from(bytes).unwrap_or(usize::MAX) / CHUNK_BYTES_MAX).min(self.slots.len())
    }

    fn release_idle(&self) {
        for slot in &self.slots {
            if let Some(chunk) = take_from(slot) {
                self.free(chunk);
            }
        }
    }

    /// An empty chunk of full size whose `older` is the given one.
    pub(crate) fn take(&self, older: *mut Chunk) -> NonNull<Chunk> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        match self.slots.iter().find_map(take_from) {
            Some(chunk) => {
                // SAFETY: it came out of its slot, so no other list has it.
                unsafe { renew_chunk(chunk, older) };
                chunk
            }
            None => {
                self.held.fetch_add(1, Ordering::Relaxed);
                new_chunk(CHUNK_BYTES_MAX, older)
            }
        }
    }

    /// Takes a chunk back.
    ///
    /// # Safety
    /// It came from [`ChunkPool::take`] of this pool and is never used again.
    pub(crate) unsafe fn give_back(&self, chunk: NonNull<Chunk>) {
        let fits = self.held.load(Ordering::Relaxed) <= self.held_max.load(Ordering::Relaxed);
        let put = |slot: &AtomicPtr<Chunk>| {
            let chunk = chunk.as_ptr();
            // Release: the next list writes the chunk after the reads of the last one.
            slot.compare_exchange(ptr::null_mut(), chunk, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        if !(fits && self.slots.iter().any(put)) {
            self.free(chunk);
        }
    }

    fn free(&self, chunk: NonNull<Chunk>) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: it is in no slot and in no list: the caller has it alone.
        unsafe { free_chunk(chunk.as_ptr()) };
    }
}

fn take_from(slot: &AtomicPtr<Chunk>) -> Option<NonNull<Chunk>> {
    // Loading first keeps the cache lines of empty slots shared.
    if slot.load(Ordering::Relaxed).is_null() {
        return None;
    }
    NonNull::new(slot.swap(ptr::null_mut(), Ordering::AcqRel))
}

impl Drop for ChunkPool {
    fn drop(&mut self) {
        self.release_idle();
    }
}

impl fmt::Debug for ChunkPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkPool").field("held_bytes", &self.held_bytes()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use std::collections::HashSet;
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    /// An arena of `chunks` chunks, and the addresses of the first entry of each.
    fn full(pool: &Arc<ChunkPool>, chunks: usize) -> (Arena, HashSet<usize>) {
        let arena = Arena::new(CHUNK_BYTES_MAX, Some(pool.clone()));
        let mut firsts = HashSet::new();
        let mut before = 0;
        while firsts.len() < chunks {
            let start = arena.allocate(16 << 10).as_ptr();
            // SAFETY: just allocated, and of that size. A chunk that two arenas have would show
            // here.
            unsafe { ptr::write_bytes(start, 0xab, 16 << 10) };
            if arena.allocated_bytes() > before {
                before = arena.allocated_bytes();
                firsts.insert(start as usize);
            }
        }
        (arena, firsts)
    }

    #[test]
    fn chunks_are_used_again() {
        let pool = Arc::new(ChunkPool::new(8 * MIB));
        let (arena, first) = full(&pool, 6);
        assert_eq!(pool.held_bytes(), 6 << 20);
        drop(arena);
        assert_eq!(pool.held_bytes(), 6 << 20);
        let (arena, second) = full(&pool, 6);
        assert_eq!((pool.held_bytes(), pool.taken()), (6 << 20, 12));
        assert_eq!(first, second);
        drop(arena);
        pool.release_idle();
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded_by_what_is_in_use() {
        let pool = Arc::new(ChunkPool::new(4 * MIB));
        let (large, _) = full(&pool, 9);
        let (small, _) = full(&pool, 2);
        assert_eq!(pool.held_bytes(), 11 << 20);
        drop(large);
        // Two in use, two idle: the other seven went back.
        assert_eq!(pool.held_bytes(), 4 << 20);
        pool.release_idle();
        assert_eq!(pool.held_bytes(), 2 << 20);
        drop(small);
        assert_eq!(pool.held_bytes(), 2 << 20);
    }

    #[test]
    fn chunks_that_come_back_are_kept_within_what_is_said() {
        let pool = Arc::new(ChunkPool::new(8 * MIB));
        let (first, _) = full(&pool, 4);
        drop(full(&pool, 2));
        pool.keep_returned_within(3 * MIB);
        assert_eq!(pool.held_bytes(), 6 << 20, "what is idle stays");
        drop(first);
        assert_eq!(pool.held_bytes(), 3 << 20);
    }

    #[test]
    fn chunks_that_come_back_later_go_while_somebody_uses_their_memory() {
        let pool = Arc::new(ChunkPool::new(8 * MIB));
        let (first, _) = full(&pool, 4);
        drop(full(&pool, 2));
        assert_eq!(pool.held_bytes(), 6 << 20);
        pool.keep_within(3 * MIB);
        assert_eq!(pool.held_bytes(), 4 << 20, "what was idle is gone");
        drop(first);
        assert_eq!(pool.held_bytes(), 3 << 20);
        drop(full(&pool, 6));
        assert_eq!(pool.held_bytes(), 3 << 20);
        pool.keep_at_least(2 * MIB);
        drop(full(&pool, 6));
        assert_eq!(pool.held_bytes(), 3 << 20, "it keeps no less than before");
        pool.keep_at_least(100 * MIB);
        drop(full(&pool, 10));
        assert_eq!(pool.held_bytes(), 8 << 20);
    }

    #[test]
    fn small_and_large_chunks_pass_the_pool_by() {
        let pool = Arc::new(ChunkPool::new(4 * MIB));
        let arena = Arena::new(16 << 10, Some(pool.clone()));
        arena.allocate(3 << 20);
        arena.allocate(1 << 20);
        arena.allocate(8);
        drop(arena);
        assert_eq!((pool.held_bytes(), pool.taken()), (0, 0));
    }

    #[test]
    fn threads_share_it() {
        let pool = Arc::new(ChunkPool::new(4 * MIB));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 2 } else { 200 } {
                        drop(full(&pool, 3));
                        pool.release_idle();
                    }
                });
            }
        });
        pool.release_idle();
        assert_eq!(pool.held_bytes(), 0);
    }
}
