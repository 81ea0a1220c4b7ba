//! Random numbers that repeat.
//!
//! Owns: the generator. Never does: ask the system for a number.

use crate::Random;
use crate::lock_ranks;
use crate::sync::real::Mutex;

/// A small generator (SplitMix64: a counter through a mixing function; Steele, Lea and Flood,
/// OOPSLA 2014). Every seed is good.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The next number, uniform over u64.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform over `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // 53 bits: the precision of a double between 0 and 1.
        ((self.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

/// [`Random`] from a seed.
#[derive(Debug)]
pub struct SeededRandom(Mutex<Rng>);

impl SeededRandom {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(Mutex::new(lock_ranks::RANDOM, Rng::new(seed)))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_chances_are_fair() {
        let (mut a, mut b, mut c) = (Rng::new(1), Rng::new(1), Rng::new(2));
        let first: Vec<u64> = (0..10).map(|_| a.next_u64()).collect();
        assert_eq!(first, (0..10).map(|_| b.next_u64()).collect::<Vec<_>>());
        assert_ne!(first[0], c.next_u64());
        let hits = (0..10_000).filter(|_| a.chance(0.25)).count();
        assert!((2_200..2_800).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| a.below(7) < 7));
        assert!((0..100).all(|_| !a.chance(0.0) && a.chance(1.0)));
    }
}
