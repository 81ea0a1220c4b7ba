//! Numbers in the columns of an index block.
//!
//! Owns: no state. Never does: read outside the bytes.

/// The 16-bit number at an offset; 0 where the bytes end before.
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<2>()) {
        Some(b) => u16::from_le_bytes(*b),
        None => 0,
    }
}

/// The 32-bit number at an offset; 0 where the bytes end before.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
        Some(b) => u32::from_le_bytes(*b),
        None => 0,
    }
}

/// The 64-bit number at an offset; 0 where the bytes end before.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|b| b.first_chunk::<8>()) {
        Some(b) => u64::from_le_bytes(*b),
        None => 0,
    }
}
