//! A byte buffer aligned for direct I/O.
//!
//! Owns: the alignment. Never does: allocate by itself (`buffer.rs`), or grow.

use super::buffer::Buffer;
use crate::fs::DIRECT_ALIGN_BYTES;
use std::ops::{Deref, DerefMut};

/// A part of a buffer whose start and length are multiples of [`DIRECT_ALIGN_BYTES`].
pub(crate) struct AlignedBuf {
    buffer: Buffer,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// A buffer of at least `len` bytes (and at least one block) of any content.
    pub(crate) fn new(len: usize) -> AlignedBuf {
        let len = len.max(1).next_multiple_of(DIRECT_ALIGN_BYTES);
        let buffer = Buffer::new(len + DIRECT_ALIGN_BYTES);
        let at = buffer.as_non_null().addr().get();
        AlignedBuf { buffer, start: at.next_multiple_of(DIRECT_ALIGN_BYTES) - at, len }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}
