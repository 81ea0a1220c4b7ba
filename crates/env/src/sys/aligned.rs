//! A byte buffer aligned for direct I/O.

use super::mapping;
use crate::fs::DIRECT_ALIGN_BYTES;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Smaller ones come from the heap.
const MAPPED_BYTES_MIN: usize = 32 << 10;

/// Zeroed memory that starts at a multiple of [`DIRECT_ALIGN_BYTES`] and
/// is a multiple of it long.
pub(crate) struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
    is_mapped: bool,
}

impl AlignedBuf {
    /// At least `len` bytes (and at least one block) of zeros.
    pub(crate) fn new(len: usize) -> AlignedBuf {
        let layout = Self::layout(len.max(1).next_multiple_of(DIRECT_ALIGN_BYTES));
        let len = layout.size();
        if len >= MAPPED_BYTES_MIN
            && let Some(start) = mapping::map(len)
        {
            return AlignedBuf { start, len, is_mapped: true };
        }
        // SAFETY: the layout's size is not zero (`max(1)` above).
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        AlignedBuf { start, len, is_mapped: false }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, DIRECT_ALIGN_BYTES).expect("a buffer within the address space")
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is owned, `len` bytes long, initialised with zeros.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the borrow unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: mapped or allocated in `new` with this very layout, freed once.
        unsafe {
            match self.is_mapped {
                true => mapping::unmap(self.start, self.len),
                false => dealloc(self.start.as_ptr(), Self::layout(self.len)),
            }
        }
    }
}

// SAFETY: it owns its memory as a `Box<[u8]>` does.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared references only read.
unsafe impl Sync for AlignedBuf {}
