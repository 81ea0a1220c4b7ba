//! Bytes of values from an index and a seed, and streams of numbers: the same
//! on every machine.
//!
//! Owns: the pool that values are cut from, half of it compressible, and the
//! generator of numbers. Never does: make a key, or remember a write.

/// Bytes of random and repeated text that values are cut from. Larger than
/// the first-level cache, so that a value's bytes cost what an application's do.
const POOL_BYTES: usize = 1 << 20;

/// A bijection of u64 that scatters (the finaliser of SplitMix64).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Makes values.
pub(crate) struct ValueMaker {
    seed: u64,
    pool: Vec<u8>,
    value_bytes: usize,
}

impl ValueMaker {
    pub(crate) fn new(seed: u64, value_bytes: usize) -> ValueMaker {
        let mut pool = Vec::with_capacity(POOL_BYTES + value_bytes + 32);
        let mut word = mix(seed);
        while pool.len() < POOL_BYTES + value_bytes {
            // 16 random bytes, then 16 bytes that repeat one.
            for _ in 0..2 {
                word = mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
                pool.extend_from_slice(&word.to_le_bytes());
            }
            pool.extend_from_slice(&[word as u8; 16]);
        }
        ValueMaker { seed, pool, value_bytes }
    }

    /// Returns the value of record `index`, `bytes` long.
    pub(crate) fn value_of(&self, index: u64, bytes: usize) -> &[u8] {
        let at = mix(index ^ self.seed.rotate_left(32)) as usize % POOL_BYTES;
        &self.pool[at..at + bytes.min(self.value_bytes)]
    }
}

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(mix(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns a number in 0.0..1.0.
    pub(crate) fn unit(&mut self) -> f64 {
        // An f64 holds 53 bits.
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns any number.
    pub(crate) fn word(&mut self) -> u64 {
        self.next()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_repeat_and_differ() {
        let data = ValueMaker::new(7, 100);
        assert_eq!(data.value_of(3, 100).len(), 100);
        assert_eq!(data.value_of(3, 5).len(), 5);
        assert_ne!(data.value_of(3, 100), data.value_of(4, 100));
        assert_ne!(data.value_of(3, 100), ValueMaker::new(8, 100).value_of(3, 100));
        assert_eq!(data.value_of(3, 100), ValueMaker::new(7, 100).value_of(3, 100));
    }
}
