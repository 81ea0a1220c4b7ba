//! A random order of the numbers below a count, which gives the number at any
//! place without a table.
//!
//! It is a balanced Feistel network over pairs of digits. Its round function
//! need not be invertible: the network is a bijection in any case. The digits'
//! base is the root of the count, rounded up, so that the network's domain is
//! hardly larger than the count. A number that falls outside goes through again
//! until it is inside (Black and Rogaway: "Ciphers with Arbitrary Finite
//! Domains", CT-RSA 2002). Rejected: a table of the order. It would be simpler,
//! but its four to eight bytes a record would be in the very process whose peak
//! memory is measured.
//!
//! Owns: the permutation. Never does: keep a secret. The rounds only have to
//! look random.

use crate::data::mix;

/// Luby and Rackoff: "How to Construct Pseudorandom Permutations from
/// Pseudorandom Functions" (1988) need four; each costs about 4 ns.
const ROUNDS: u64 = 4;

/// A permutation of `0..count`.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    count: u64,
    base: u64,
    keys: [u64; ROUNDS as usize],
}

impl Permutation {
    /// Makes an order of `count` numbers, at least one; seeds give different
    /// ones.
    pub(crate) fn new(count: u64, seed: u64) -> Permutation {
        let root = count.max(1).isqrt();
        let base = if root * root < count { root + 1 } else { root };
        let key = |round| mix(mix(seed ^ 0x6f72_6465) ^ (round + 1));
        Permutation { count: count.max(1), base, keys: std::array::from_fn(|i| key(i as u64)) }
    }

    /// Returns the number at `place`, which is below the count.
    pub(crate) fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.count);
        let mut number = place;
        loop {
            number = self.permute(number);
            if number < self.count {
                return number;
            }
        }
    }

    fn permute(&self, number: u64) -> u64 {
        let (mut high, mut low) = (number / self.base, number % self.base);
        for key in self.keys {
            // The hash, scaled down to the base without a division.
            let added = ((u128::from(mix(low ^ key)) * u128::from(self.base)) >> 64) as u64;
            let sum = high + added;
            (high, low) = (low, if self.base <= sum { sum - self.base } else { sum });
        }
        high * self.base + low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::chi_square;

    #[test]
    fn every_number_has_one_place() {
        for count in [1, 2, 3, 4, 5, 8, 9, 10, 99, 100, 101, 1000, 65_536, 100_003] {
            let order = Permutation::new(count, 7);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                let number = order.at(place) as usize;
                assert!(!std::mem::replace(&mut seen[number], true), "{number} twice of {count}");
            }
        }
    }

    #[test]
    fn places_and_numbers_are_independent() {
        // Places in 20 parts by numbers in 20 parts: 250 in each pair. The
        // margins are fixed, which leaves 19 * 19 degrees of freedom.
        let order = Permutation::new(100_000, 3);
        let mut pairs = vec![0u64; 400];
        (0..100_000).for_each(|at| pairs[(at / 5000 * 20 + order.at(at) / 5000) as usize] += 1);
        let far = chi_square::deviation(&pairs, &[1.0 / 400.0; 400], 361);
        assert!(far.abs() < 4.0, "{far}");
        // Distances of neighbours, as a share of the count, in 20 parts.
        let mut steps = vec![0u64; 20];
        for at in 1..100_000 {
            let ahead = (order.at(at) + 100_000 - order.at(at - 1)) % 100_000;
            steps[(ahead / 5000) as usize] += 1;
        }
        let far = chi_square::deviation(&steps, &[0.05; 20], 19);
        assert!(far.abs() < 4.0, "{far}");
    }

    #[test]
    fn seeds_give_different_orders() {
        let first =
            |seed| (0..20).map(|at| Permutation::new(1000, seed).at(at)).collect::<Vec<_>>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
