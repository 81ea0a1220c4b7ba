//! Prefetching of memory that will be read soon.
//!
//! Owns: no state. Never does: read the memory, or fault.

/// Bytes of a cache line of the processors that are supported.
const LINE_BYTES: usize = 64;

/// Prefetches the cache lines of `bytes`, so that they are fetched together and not each at its
/// first read. Reads nothing; does nothing on other processors.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut line = bytes.as_ptr();
        // Begins at a line's start, so that the last line is included too.
        let end = line.wrapping_add(bytes.len());
        line = line.wrapping_sub(line.addr() % LINE_BYTES);
        while line < end {
            // SAFETY: a prefetch never faults, at any address.
            unsafe {
                use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(line.cast());
            }
            line = line.wrapping_add(LINE_BYTES);
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (bytes, LINE_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_may_be_asked_for() {
        let bytes = [7; 1000];
        for from in 0..130 {
            prefetch(&bytes[from..from]);
            prefetch(&bytes[from..]);
        }
        prefetch(&[]);
    }
}
