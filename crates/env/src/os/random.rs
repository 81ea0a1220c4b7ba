//! Random numbers of the operating system.
//!
//! Owns: no state. Never does: fail: without the system call it falls back to the standard
//! library's.

use crate::Random;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::hash::{BuildHasher, RandomState};

/// [`Random`] by `getrandom`: one system call per number, for file uids.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    fn next_u64(&self) -> u64 {
        let mut bytes = [0u8; 8];
        loop {
            match getrandom(&mut bytes, GetRandomFlags::empty()) {
                Ok(8) => return u64::from_ne_bytes(bytes),
                Ok(_) | Err(Errno::INTR) => {}
                // A sandbox without the call: the standard library's hash keys are random per
                // process, and different for each hasher.
                Err(_) => return RandomState::new().hash_one(0u64),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ() {
        let mut numbers: Vec<u64> = (0..100).map(|_| OsRandom.next_u64()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100);
    }
}
