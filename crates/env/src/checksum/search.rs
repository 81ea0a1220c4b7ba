//! Finds stretches of bytes that are followed by their own checksum, when their beginnings and ends
//! are not known.
//!
//! A CRC is linear: the contribution of bytes `s..e` follows from the CRCs of the bytes before `s`
//! and before `e`. So each place gets one value as a beginning and one as an end, such that the two
//! are equal where the checksum behind the end is that of the bytes between, seeded with the
//! beginning (rule R6). Comparing all pairs then takes a number of steps linear in the places, not
//! in the pairs.
//!
//! Owns: the search. Never does: judge a stretch that it found: of 2^32 pairs one agrees by chance,
//! so callers check the contents.

use super::seed;
use std::ops::Range;

/// The polynomial of CRC-32C, its bits in reverse.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// The polynomial 1: bit 31 is the lowest power.
const ONE: u32 = 1 << 31;
/// Bytes of a stored checksum.
const STORED_BYTES: usize = 4;

/// The register after one byte, from a register of zeros.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            register = times_x(register);
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
};

const fn times_x(register: u32) -> u32 {
    let carry = if register & 1 == 1 { POLYNOMIAL } else { 0 };
    register >> 1 ^ carry
}

#[inline]
fn step(register: u32, byte: u8) -> u32 {
    TABLE[(register as u8 ^ byte) as usize] ^ register >> 8
}

/// The product of two polynomials.
fn product(mut a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    while a != 0 {
        if a & ONE != 0 {
            sum ^= b;
        }
        a <<= 1;
        b = times_x(b);
    }
    sum
}

/// A checksum that grows byte by byte.
#[derive(Clone, Copy, Debug)]
pub struct Running(u32);

impl Running {
    /// The checksum of no bytes at an offset, as [`super::checksum`] begins it.
    pub fn new(seed_uid: u64, offset: u64) -> Running {
        Running(!seed(seed_uid, offset))
    }

    /// Adds a byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.0 = step(self.0, byte);
    }

    /// The checksum of the bytes so far.
    #[inline]
    pub fn value(self) -> u32 {
        !self.0
    }
}

/// Returns every stretch of `bytes` that is followed by its own checksum, seeded as
/// [`super::checksum`] does for the stretch's offset; `bytes` begin at `offset` of their file. Only
/// stretches whose last byte `may_end` count. They are in the order of their beginnings.
pub fn sealed(
    bytes: &[u8],
    seed_uid: u64,
    offset: u64,
    may_end: impl Fn(u8) -> bool,
) -> Vec<Range<usize>> {
    let mut registers = Vec::with_capacity(bytes.len() + 1);
    registers.push(0);
    for &byte in bytes {
        registers.push(step(registers.last().copied().unwrap_or(0), byte));
    }
    let (mut begins, mut ends) = (Vec::with_capacity(bytes.len()), Vec::new());
    // The factor by which the bytes after `at` change a register.
    let mut rest = ONE;
    for at in (0..=bytes.len()).rev() {
        let stored = bytes[at..].first_chunk::<STORED_BYTES>();
        if let Some(stored) = stored.filter(|_| at > 0 && may_end(bytes[at - 1])) {
            let register = !u32::from_le_bytes(*stored);
            ends.push((product(rest, register ^ registers[at]), at));
        }
        let register = !seed(seed_uid, offset + at as u64);
        begins.push((product(rest, register ^ registers[at]), at));
        rest = step(rest, 0);
    }
    begins.sort_unstable();
    let mut found = Vec::new();
    for (value, end) in ends {
        let from = begins.partition_point(|(begin, _)| *begin < value);
        let same = begins[from..].iter().take_while(|(begin, _)| *begin == value);
        found.extend(same.filter(|(_, at)| *at < end).map(|(_, at)| *at..end));
    }
    found.sort_unstable_by_key(|range| (range.start, range.end));
    found
}

#[cfg(test)]
mod tests {
    use super::super::checksum;
    use super::*;

    const UID: u64 = 0x1234_5678_9abc_def0;

    /// Bytes without long repetitions.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    #[test]
    fn a_running_checksum_is_the_checksum() {
        let bytes = noise(100);
        let mut running = Running::new(UID, 77);
        for (len, &byte) in bytes.iter().enumerate() {
            assert_eq!(running.value(), checksum(UID, 77, &[&bytes[..len]]));
            running.push(byte);
        }
    }

    #[test]
    fn sealed_stretches_are_found_between_others() {
        const OFFSET: u64 = 4_000;
        let mut bytes = noise(700);
        let mut want = Vec::new();
        for (len, garbage) in [(300, 0), (1, 0), (900, 50), (64, 3)] {
            let start = bytes.len();
            bytes.extend_from_slice(&noise(len));
            let sum = checksum(UID, OFFSET + start as u64, &[&bytes[start..]]);
            want.push(start..bytes.len());
            bytes.extend_from_slice(&sum.to_le_bytes());
            bytes.extend_from_slice(&noise(garbage));
        }
        assert_eq!(sealed(&bytes, UID, OFFSET, |_| true), want);
        let last = |range: &Range<usize>| bytes[range.end - 1];
        let some: Vec<_> = want.iter().filter(|r| last(r) == last(&want[0])).cloned().collect();
        assert_eq!(sealed(&bytes, UID, OFFSET, |byte| byte == last(&want[0])), some);
        // With another file's uid, or at another offset: nothing.
        assert_eq!(sealed(&bytes, UID + 1, OFFSET, |_| true), []);
        assert_eq!(sealed(&bytes, UID, OFFSET + 1, |_| true), []);
        assert_eq!(sealed(&[], UID, OFFSET, |_| true), []);
    }
}
