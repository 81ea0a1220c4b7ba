//! A chunk: a piece of memory with a head that says how much of it is handed out.
//!
//! Owns: the layout of a chunk, and taking bytes off it, which is one `fetch_add`. Never does:
//! decide a chunk's size, or when it is freed.
#![allow(unsafe_code)]

use crate::sync::{AtomicUsize, Ordering, Payload};
use core::ptr::NonNull;
use windrow_env::Buffer;

/// Size at which chunks stop growing.
pub(crate) const CHUNK_BYTES_MAX: usize = if cfg!(loom) { 1 << 12 } else { 1 << 20 };
/// Head of a chunk; the bytes it hands out follow. It starts on a cache line, as buffers do.
#[repr(C, align(64))]
pub(crate) struct Chunk {
    /// The chunk taken before this one, to be freed after it.
    pub(crate) older: *mut Chunk,
    /// Size with this head.
    pub(crate) total_bytes: usize,
    /// Bytes handed out, this head included. Passes `total_bytes` when
    /// threads race for the last bytes, by at most one request per thread.
    used_bytes: AtomicUsize,
    /// The memory of the head and of the bytes after it.
    memory: Buffer,
    /// The bytes after this head.
    bytes: Payload,
}

pub(crate) fn new_chunk(total_bytes: usize, older: *mut Chunk) -> NonNull<Chunk> {
    assert!(total_bytes >= size_of::<Chunk>());
    let memory = Buffer::filled_later(total_bytes);
    let chunk = memory.as_non_null().cast::<Chunk>();
    let used_bytes = AtomicUsize::new(size_of::<Chunk>());
    let bytes = Payload::written();
    // SAFETY: the buffer is large and aligned enough for the head, and no other code uses it.
    unsafe { chunk.write(Chunk { older, total_bytes, used_bytes, memory, bytes }) };
    chunk
}

/// Empties a used chunk.
///
/// # Safety
/// No other thread has the chunk.
pub(crate) unsafe fn renew_chunk(mut chunk: NonNull<Chunk>, older: *mut Chunk) {
    // SAFETY: the caller's promise.
    let head = unsafe { chunk.as_mut() };
    head.bytes.give_up();
    head.older = older;
    head.used_bytes = AtomicUsize::new(size_of::<Chunk>());
    head.bytes = Payload::written();
}

/// # Safety
/// `chunk` came from [`new_chunk`] and is never used again.
pub(crate) unsafe fn free_chunk(chunk: *mut Chunk) {
    // SAFETY: the caller's promise. The head is moved out of its memory, and drops it.
    let head = unsafe { chunk.read() };
    head.bytes.give_up();
}

/// Takes `bytes` off `chunk`, or `None` if it has no room.
#[inline]
pub(crate) fn try_carve(chunk: *mut Chunk, bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: chunks live as long as the arena that the caller borrows.
    let (used_bytes, total_bytes) = unsafe { (&(*chunk).used_bytes, (*chunk).total_bytes) };
    // Loading first keeps the rest of the chunk usable for smaller requests.
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
