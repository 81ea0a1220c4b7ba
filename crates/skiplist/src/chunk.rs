//! A chunk: a piece of memory with a head that says how much of it is handed out.
//!
//! Owns: the layout of a chunk, and taking bytes off it, which is one `fetch_add`.
//! Never does: decide how large one is, or who frees it.
#![allow(unsafe_code)]

use crate::sync::{AtomicUsize, Ordering, Payload};
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Size at which chunks stop growing.
pub(crate) const CHUNK_BYTES_MAX: usize = if cfg!(loom) { 1 << 12 } else { 1 << 20 };
/// Chunks start on a cache line.
const CHUNK_ALIGN: usize = 64;

/// Head of a chunk; the bytes it hands out follow.
#[repr(C, align(64))]
pub(crate) struct Chunk {
    /// The chunk taken before this one, to be freed after it.
    pub(crate) older: *mut Chunk,
    /// Size with this head.
    pub(crate) total_bytes: usize,
    /// Bytes handed out, this head included. Passes `total_bytes` when
    /// threads race for the last bytes, by at most one request per thread.
    used_bytes: AtomicUsize,
    /// What follows this head.
    bytes: Payload,
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

/// Takes `bytes` off `chunk`, or `None` if it has no room.
#[inline]
pub(crate) fn try_carve(chunk: *mut Chunk, bytes: usize) -> Option<NonNull<u8>> {
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
