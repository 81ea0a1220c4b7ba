//! Which keys are updated, in which order.
//!
//! A workload first writes every key once (in random order, or in key order if
//! it is sequential) and then updates for ever. Keys are the numbers below a
//! count.
//!
//! Owns: the distributions. Never does: update a tree.

use crate::random::SplitMix;
use windrow_base::{Error, Result};

/// How updates choose their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Every key alike.
    Uniform,
    /// Zipf with exponent 0.99, the ranks scattered over the key space.
    Zipf,
    /// All in 3 % of the key space, and there every key alike.
    Clustered,
    /// Nine of ten in a hot 2 % that wanders through the key space, crossing
    /// it once for each ten times that its keys are written.
    Wandering,
    /// In key order, over and over.
    Sequential,
}

/// The exponent of [`Workload::Zipf`], as YCSB has it.
const ZIPF_EXPONENT: f64 = 0.99;
/// The part of the key space in which [`Workload::Clustered`] writes.
const CLUSTER_SHARE: f64 = 0.03;
/// The part of the key space that is hot in [`Workload::Wandering`].
const HOT_SHARE: f64 = 0.02;
/// How often [`Workload::Wandering`] writes a key of the hot part, on average,
/// before that has moved on.
const HOT_WRITES: f64 = 10.0;

impl Workload {
    /// Every workload.
    pub const ALL: [Workload; 5] = [
        Workload::Uniform,
        Workload::Zipf,
        Workload::Clustered,
        Workload::Wandering,
        Workload::Sequential,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Uniform => "uniform",
            Workload::Zipf => "zipf",
            Workload::Clustered => "clustered",
            Workload::Wandering => "wandering",
            Workload::Sequential => "sequential",
        }
    }

    /// Returns the workload of a name.
    ///
    /// # Errors
    /// `InvalidArgument` that lists the names.
    pub fn parse(name: &str) -> Result<Workload> {
        Workload::ALL.into_iter().find(|w| w.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Workload::ALL.iter().map(|w| w.name()).collect();
            Error::invalid(format!("no workload `{name}`; there are {}", names.join(", ")))
        })
    }
}

/// A stream of keys: every one once, then updates.
#[derive(Clone, Debug)]
pub struct KeyStream {
    workload: Workload,
    random: SplitMix,
    /// Keys in the order in which they are first written; for zipf also the
    /// key of each rank.
    scattered: Vec<u32>,
    zipf: Zipf,
    /// Keys drawn so far.
    drawn: u64,
}

impl KeyStream {
    /// The stream of `count` keys (at least 1).
    pub fn new(workload: Workload, count: u32, seed: u64) -> KeyStream {
        let mut random = SplitMix(seed);
        let scattered = match workload {
            Workload::Sequential => (0..count).collect(),
            _ => random.permutation(count),
        };
        KeyStream { workload, random, scattered, zipf: Zipf::new(count, ZIPF_EXPONENT), drawn: 0 }
    }

    fn draw(&mut self) -> u32 {
        let count = self.scattered.len() as u32;
        let drawn = self.drawn;
        self.drawn += 1;
        if drawn < count as u64 {
            return self.scattered[drawn as usize];
        }
        let share = |part: f64| ((count as f64 * part) as u32).max(1);
        match self.workload {
            Workload::Uniform => self.random.below(count),
            Workload::Zipf => self.scattered[self.zipf.draw(&mut self.random) as usize],
            Workload::Clustered => count / 3 + self.random.below(share(CLUSTER_SHARE)),
            Workload::Wandering if self.random.below(10) == 0 => self.random.below(count),
            Workload::Wandering => {
                let start = (drawn as f64 * 0.9 / HOT_WRITES) as u64;
                let key = start + self.random.below(share(HOT_SHARE)) as u64;
                (key % count as u64) as u32
            }
            Workload::Sequential => (drawn % count as u64) as u32,
        }
    }
}

/// Never ends.
impl Iterator for KeyStream {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        Some(self.draw())
    }
}

/// Ranks with probability proportional to 1 / (rank + 1)^exponent, in O(1) each.
///
/// From: Gray, Sundaresan, Englert, Baclawski, Weinberger, "Quickly generating
/// billion-record synthetic databases" (SIGMOD 1994); YCSB draws this way too.
#[derive(Clone, Debug)]
struct Zipf {
    count: f64,
    exponent: f64,
    /// Sum of the weights of all ranks.
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    fn new(count: u32, exponent: f64) -> Zipf {
        let zeta_of = |n: u32| (1..=n).map(|i| (i as f64).powf(-exponent)).sum::<f64>();
        let (zeta, zeta2) = (zeta_of(count), zeta_of(2.min(count)));
        let count = count as f64;
        let eta = (1.0 - (2.0 / count).powf(1.0 - exponent)) / (1.0 - zeta2 / zeta);
        Zipf { count, exponent, zeta, alpha: 1.0 / (1.0 - exponent), eta }
    }

    fn draw(&self, random: &mut SplitMix) -> u32 {
        let u = random.unit();
        let weight = u * self.zeta;
        if weight < 1.0 || self.count < 2.0 {
            return 0;
        }
        if weight < 1.0 + 0.5f64.powf(self.exponent) {
            return 1;
        }
        let rank = self.count * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u32).min(self.count as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(workload: Workload, keys: u32, draws: usize) -> Vec<u32> {
        let mut counts = vec![0; keys as usize];
        for key in KeyStream::new(workload, keys, 7).skip(keys as usize).take(draws) {
            counts[key as usize] += 1;
        }
        counts
    }

    #[test]
    fn every_workload_first_writes_every_key_once() {
        for workload in Workload::ALL {
            let mut first: Vec<u32> = KeyStream::new(workload, 1000, 3).take(1000).collect();
            first.sort_unstable();
            assert!(first.into_iter().eq(0..1000), "{workload:?}");
        }
    }

    #[test]
    fn a_seed_repeats_and_another_differs() {
        let of =
            |seed| KeyStream::new(Workload::Zipf, 500, seed).skip(500).take(50).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    /// Against the sum of the weights: rank r is drawn draws / (zeta (r + 1)^.99) times.
    #[test]
    fn zipf_draws_as_its_weights_say() {
        let draws = 400_000;
        let mut sorted = counts(Workload::Zipf, 1000, draws);
        sorted.sort_unstable_by_key(|&c| std::cmp::Reverse(c));
        let zeta: f64 = (1..=1000).map(|i| f64::from(i).powf(-0.99)).sum();
        for rank in [0, 1, 9, 99] {
            let expected = draws as f64 / (zeta * f64::from(rank + 1).powf(0.99));
            let seen = f64::from(sorted[rank as usize]);
            assert!((seen / expected - 1.0).abs() < 0.15, "rank {rank}: {seen} of {expected}");
        }
    }

    #[test]
    fn clustered_and_wandering_stay_where_they_should() {
        let clustered = counts(Workload::Clustered, 10_000, 50_000);
        assert_eq!(clustered.iter().filter(|&&c| c > 0).count(), 300);
        // Within one tenth of a crossing the hot part covers 10 + 2 % of the keys.
        let wandering = counts(Workload::Wandering, 10_000, 10_000 * 10 / 9 / 10 * 10);
        let hot = wandering.iter().filter(|&&c| c > 2).count();
        assert!((900..1300).contains(&hot), "{hot}");
    }
}
