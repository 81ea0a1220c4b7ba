//! Buffers of the engine: blocks, chunks of memtables, and the bytes of single reads and writes.
//!
//! They are most of a database's memory, and many threads allocate and free them. So they do not
//! come from the general allocator, which keeps freed memory for each of its heaps
//! (`region_pool.rs`). A buffer of middle size is a run in a region; a larger one has a mapping of
//! its own (`mapping_pool.rs`). Small ones, and all when the system maps nothing more, come from
//! the heap.
//!
//! Owns: the source of a buffer's memory, and its return to that source. Never does: grow.

use super::mapping::{self, Pages};
use super::{mapping_pool, region_pool};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The alignment of a buffer's start: a cache line.
const ALIGN: usize = 64;

/// Smaller buffers come from the heap, which packs small blocks better.
const RUN_BYTES_MIN: usize = 1 << 10;

/// A buffer of bytes, whose length is fixed when it is made.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    /// The length that there is memory for, at least the one that it was made with.
    capacity: usize,
    home: Home,
}

#[derive(Clone, Copy)]
enum Home {
    Heap,
    Region(region_pool::RegionIndex),
    Mapping,
}

// SAFETY: it owns its memory as a `Box<[u8]>` does; any thread may free it.
unsafe impl Send for Buffer {}
// SAFETY: shared references only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` bytes of any content: zeros, or the bytes of an earlier buffer. The system
    /// supplies all of its pages now. A large one may take up to a quarter more memory.
    pub fn new(len: usize) -> Buffer {
        Buffer::with_pages(len, Pages::Now)
    }

    /// The same, for an owner who does not fill it at once: each page comes when it is first used,
    /// and none is spare.
    pub fn filled_later(len: usize) -> Buffer {
        Buffer::with_pages(len, Pages::Later)
    }

    fn with_pages(len: usize, pages: Pages) -> Buffer {
        let mapped = match len {
            0..RUN_BYTES_MIN => None,
            RUN_BYTES_MIN..=region_pool::RUN_BYTES_MAX => region_pool::take(len, pages)
                .map(|(start, place)| (start, len, Home::Region(place))),
            _ => mapping_pool::take(mapping::mapped_bytes(len), pages)
                .map(|(start, bytes)| (start, bytes, Home::Mapping)),
        };
        let (start, capacity, home) = mapped.unwrap_or_else(|| (on_heap(len), len, Home::Heap));
        let buffer = Buffer { start, len, capacity, home };
        #[cfg(any(test, feature = "testing"))]
        if !matches!(home, Home::Heap) {
            super::heap::CountingHeap.add(buffer.memory_bytes());
        }
        buffer
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::new(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// A buffer of `len` bytes of any content: this one, if it has room for them.
    pub fn reused(mut self, len: usize) -> Buffer {
        if len > self.capacity {
            // Dropped first, so that both do not take memory at the same time.
            drop(self);
            return Buffer::new(len);
        }
        self.len = len;
        self
    }

    /// Returns a buffer of the same content without more spare memory than a new one may have.
    pub fn shrunk(self) -> Buffer {
        let most = match self.home {
            Home::Mapping => mapping_pool::most_bytes(mapping::mapped_bytes(self.len)),
            _ => self.len,
        };
        if self.capacity <= most { self } else { Buffer::copy_of(&self) }
    }

    /// Shortens the buffer to `len` bytes; it keeps its memory.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self.home {
            Home::Heap => self.capacity,
            Home::Region(_) => region_pool::run_bytes(self.capacity),
            Home::Mapping => mapping::mapped_bytes(self.capacity),
        }
    }

    /// Its start, at a multiple of 64, which never changes.
    pub fn as_non_null(&self) -> NonNull<u8> {
        self.start
    }
}

/// The memory that is kept for buffers beyond those in use, in bytes: the part in proportion to
/// `bytes` of those in use.
pub(crate) fn spare_memory(bytes: u64) -> u64 {
    let (runs, mappings) = (region_pool::bytes(), mapping_pool::bytes());
    let (used, idle) = (runs.0 + mappings.0, (runs.1 + mappings.1) as u64);
    // In `u128`, since it is a product of two lengths.
    let part = u128::from(idle) * u128::from(bytes) / (used as u128).max(1);
    idle.min(u64::try_from(part).unwrap_or(u64::MAX))
}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, ALIGN).expect("a buffer within the address space")
}

/// The type whose dangling address is the start of empty buffers.
#[repr(align(64))]
struct Aligned;

const _: () = assert!(align_of::<Aligned>() == ALIGN);

fn on_heap(len: usize) -> NonNull<u8> {
    if len == 0 {
        return NonNull::<Aligned>::dangling().cast();
    }
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout(len)) };
    NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout(len)))
}

impl Drop for Buffer {
    fn drop(&mut self) {
        #[cfg(any(test, feature = "testing"))]
        if !matches!(self.home, Home::Heap) {
            super::heap::CountingHeap.sub(self.memory_bytes());
        }
        // SAFETY: `new` took it from that source, for `capacity` bytes; it is dropped once.
        unsafe {
            match self.home {
                Home::Heap if self.capacity == 0 => {}
                Home::Heap => dealloc(self.start.as_ptr(), layout(self.capacity)),
                Home::Region(place) => region_pool::give_back(self.start, self.capacity, place),
                Home::Mapping => {
                    mapping_pool::give_back(self.start, mapping::mapped_bytes(self.capacity));
                }
            }
        }
    }
}

impl Default for Buffer {
    /// An empty buffer, which takes no memory.
    fn default() -> Buffer {
        Buffer::new(0)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is its own, `len` bytes of it are initialised: the heap's and the
        // system's with zeros, a region's also with the bytes of earlier buffers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the borrow unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes on each side of the bounds between the kinds of memory.
    const SIZES: [usize; 8] = [
        0,
        1,
        RUN_BYTES_MIN - 1,
        RUN_BYTES_MIN,
        4_242,
        region_pool::RUN_BYTES_MAX,
        region_pool::RUN_BYTES_MAX + 1,
        3 << 20,
    ];

    #[test]
    fn a_buffer_holds_what_is_written_to_it() {
        for len in SIZES {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let mut buffer = Buffer::copy_of(&bytes);
            assert_eq!(*buffer, *bytes);
            assert!(len <= buffer.memory_bytes() && buffer.memory_bytes() < len + 4096);
            assert!(buffer.as_non_null().addr().get().is_multiple_of(ALIGN));
            buffer.truncate(len / 2);
            assert_eq!(*buffer, bytes[..len / 2]);
            let start = buffer.as_non_null();
            let buffer = buffer.reused(len);
            assert_eq!((buffer.len(), buffer.as_non_null()), (len, start));
            assert_eq!(buffer.reused(len + 1).len(), len + 1);
        }
    }

    /// Gets of large values take and free such a buffer each time.
    #[cfg(not(any(miri, heap_only)))]
    #[test]
    fn a_large_buffer_has_the_memory_of_a_freed_one() {
        const LEN: usize = 700 << 10;
        // Other tests may take the kept memory, or leave none to be kept.
        let is_reused = (0..1_000).any(|round| {
            let mut buffer = Buffer::new(LEN);
            buffer.fill(7);
            drop(buffer);
            let next = Buffer::new(if round % 2 == 0 { LEN } else { LEN / 4 * 3 });
            next[next.len() - 1] == 7 && next[100] == 7
        });
        assert!(is_reused);
        let grown = Buffer::new(2 * LEN);
        assert_eq!((grown.len(), grown.memory_bytes()), (2 * LEN, 2 * LEN));
        let most = 2 << 20;
        let many: Vec<Buffer> = (0..20).map(|_| Buffer::new(LEN)).collect();
        drop(many);
        assert!(mapping_pool::bytes().1 < most, "{:?}", mapping_pool::bytes());
    }

    /// A page stays while one block of it is held.
    #[cfg(not(any(miri, heap_only)))]
    #[test]
    fn what_is_kept_next_to_buffers_is_due_to_those_who_hold_them() {
        const BLOCK_BYTES: usize = 2 << 10;
        let mut blocks: Vec<Buffer> = (0..4_000).map(|_| Buffer::new(BLOCK_BYTES)).collect();
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        let held = (blocks.len() * BLOCK_BYTES) as u64;
        // Other tests run at the same time, and hold at most a few megabytes more.
        let due = spare_memory(held);
        assert!(held / 4 < due && due <= spare_memory(held * 2), "{due} next to {held}");
        assert_eq!(spare_memory(0), 0);
    }

    /// Memory that two threads got at the same time would be overwritten.
    #[test]
    fn threads_share_the_regions() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|threads| {
            for thread in 0..4u8 {
                threads.spawn(move || {
                    let mut held: Vec<(u8, Buffer)> = Vec::new();
                    let mut state = u64::from(thread) + 1;
                    for round in 0..ROUNDS {
                        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        let random = (state >> 33) as usize;
                        if held.len() > 100 || round % 3 == 2 {
                            let (byte, buffer) = held.swap_remove(random % held.len());
                            assert!(buffer.iter().all(|&found| found == byte));
                        } else {
                            let byte = thread << 6 | (round % 64) as u8;
                            let most = if round % 16 == 0 { 250 << 10 } else { 20 << 10 };
                            let mut buffer = Buffer::new(random % most);
                            buffer.fill(byte);
                            held.push((byte, buffer));
                        }
                    }
                });
            }
        });
    }
}
