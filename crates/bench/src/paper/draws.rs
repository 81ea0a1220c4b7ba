//! Which record an operation touches: the distributions of the papers.
//!
//! Owns: their generators. Two streams of one seed give the same numbers,
//! which is how contenders get identical work. Never does: make a key.

use crate::data::{Draw, mix};
use std::sync::Arc;

/// A distribution over the records of a data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Draws {
    /// 0, 1, 2 ... in key order, from the start again after the last.
    Sequential,
    /// Every record once, in random order; the same order again after the last.
    Shuffled,
    /// Any record alike.
    Uniform,
    /// Zipf with this exponent; popular records lie all over the key space
    /// (YCSB's scrambled zipf).
    Zipf(f64),
    /// Zipf over recency of loading: the record that [`Draws::Shuffled`] gave
    /// last is the most popular (YCSB's "latest", skewed-latest zipf).
    Latest(f64),
    /// Normal around the middle of the key space, with this standard
    /// deviation as a share of it: popular records are neighbours.
    Normal(f64),
}

/// Numbers of records, from a distribution and a seed.
#[derive(Clone)]
pub(crate) struct Stream {
    draws: Draws,
    count: u64,
    draw: Draw,
    zipf: Option<Zipf>,
    order: Arc<[u32]>,
    drawn: u64,
}

impl Stream {
    /// A stream over `count` records. `load_seed` fixes the order of a load,
    /// which is the same for all streams of a data set.
    pub(crate) fn new(draws: Draws, count: u64, load_seed: u64, seed: u64) -> Stream {
        let zipf = match draws {
            Draws::Zipf(theta) | Draws::Latest(theta) => Some(Zipf::new(count, theta)),
            _ => None,
        };
        let order = match draws {
            Draws::Shuffled | Draws::Latest(_) => shuffled(count, load_seed),
            _ => Arc::from([]),
        };
        Stream { draws, count, draw: Draw::new(seed), zipf, order, drawn: 0 }
    }

    /// The next record's number.
    pub(crate) fn next(&mut self) -> u64 {
        let at = self.drawn % self.count;
        self.drawn += 1;
        match self.draws {
            Draws::Sequential => at,
            Draws::Shuffled => self.order[at as usize].into(),
            Draws::Uniform => self.draw.below(self.count),
            Draws::Zipf(_) => mix(self.rank()) % self.count,
            Draws::Latest(_) => {
                let back = self.rank();
                self.order[(self.count - 1 - back) as usize].into()
            }
            Draws::Normal(sigma) => loop {
                let place = 0.5 + sigma * self.normal();
                if (0.0..1.0).contains(&place) {
                    break (place * self.count as f64) as u64;
                }
            },
        }
    }

    /// Whether the next operation is one of a kind that has this share of all.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.draw.unit() < share
    }

    /// A rank, 0 the most popular. `zipf` is there in every kind that ranks.
    fn rank(&mut self) -> u64 {
        let unit = self.draw.unit();
        self.zipf.as_ref().map_or(0, |zipf| zipf.rank(unit))
    }

    /// A standard normal number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.draw.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.draw.unit()).cos()
    }
}

/// 0..count in random order (Fisher and Yates).
fn shuffled(count: u64, seed: u64) -> Arc<[u32]> {
    let mut draw = Draw::new(seed ^ 0x6f72_6465);
    let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, draw.below(i as u64 + 1) as usize);
    }
    order.into()
}

/// Zipf ranks in constant time: Gray et al., "Quickly Generating
/// Billion-Record Synthetic Databases" (SIGMOD 1994), as YCSB has it.
#[derive(Clone, Debug)]
struct Zipf {
    count: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
    half_pow: f64,
}

impl Zipf {
    /// Exponents in (0, 1).
    fn new(count: u64, theta: f64) -> Zipf {
        let zeta: f64 = (1..=count).map(|i| (i as f64).powf(-theta)).sum();
        let half_pow = 0.5f64.powf(theta);
        let zeta2 = 1.0 + half_pow;
        let n = count as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - zeta2 / zeta);
        Zipf { count: n, zeta, alpha: 1.0 / (1.0 - theta), eta, half_pow }
    }

    fn rank(&self, unit: f64) -> u64 {
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.half_pow {
            return 1.min(self.count as u64 - 1);
        }
        let rank = self.count * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.count as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 10_000;
    const DRAWN: usize = 200_000;

    /// How often each record was drawn.
    fn histogram(draws: Draws) -> Vec<u32> {
        let mut stream = Stream::new(draws, COUNT, 3, 4);
        let mut counts = vec![0; COUNT as usize];
        (0..DRAWN).for_each(|_| counts[stream.next() as usize] += 1);
        counts
    }

    fn share(count: u32) -> f64 {
        f64::from(count) / DRAWN as f64
    }

    /// The exact share of rank 0.
    fn first_share(theta: f64) -> f64 {
        1.0 / (1..=COUNT).map(|i| (i as f64).powf(-theta)).sum::<f64>()
    }

    #[test]
    fn orders_give_every_record_once() {
        assert_eq!(histogram(Draws::Sequential), vec![20; COUNT as usize]);
        assert_eq!(histogram(Draws::Shuffled), vec![20; COUNT as usize]);
        let mut stream = Stream::new(Draws::Shuffled, COUNT, 3, 4);
        let rising = (0..1000).filter(|_| stream.next() < stream.next()).count();
        assert!((400..600).contains(&rising), "{rising}: not in random order");
    }

    #[test]
    fn uniform_is_flat() {
        let counts = histogram(Draws::Uniform);
        // 20 expected; the chance of 50 is below one in a million records.
        assert!(counts.iter().all(|&c| c < 50));
    }

    #[test]
    fn zipf_has_its_head_and_is_scattered() {
        let mut counts = histogram(Draws::Zipf(0.99));
        let hot: Vec<usize> = (0..counts.len()).filter(|&i| share(counts[i]) > 0.01).collect();
        assert!(hot.iter().any(|&i| i < 5000) && hot.iter().any(|&i| 5000 <= i), "{hot:?}");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let exact = first_share(0.99);
        assert!((share(counts[0]) / exact - 1.0).abs() < 0.05, "{} {exact}", share(counts[0]));
        // The second of a zipf of .99 has about half of the first.
        let second = share(counts[1]) / share(counts[0]);
        assert!((0.45..0.56).contains(&second), "{second}");
    }

    #[test]
    fn latest_prefers_what_was_loaded_last() {
        let counts = histogram(Draws::Latest(0.99));
        let order = shuffled(COUNT, 3);
        let by_recency: Vec<u32> = order.iter().rev().map(|&n| counts[n as usize]).collect();
        let exact = first_share(0.99);
        assert!((share(by_recency[0]) / exact - 1.0).abs() < 0.05);
        let newest: u32 = by_recency[..1000].iter().sum();
        let oldest: u32 = by_recency[9000..].iter().sum();
        assert!(0.7 < share(newest) && share(oldest) < 0.02, "{newest} {oldest}");
    }

    #[test]
    fn normal_clusters_in_the_middle() {
        let counts = histogram(Draws::Normal(0.05));
        let within = |sigmas: f64| {
            let half = (sigmas * 0.05 * COUNT as f64) as usize;
            let middle = COUNT as usize / 2;
            share(counts[middle - half..middle + half].iter().sum())
        };
        assert!((within(1.0) - 0.683).abs() < 0.01, "{}", within(1.0));
        assert!((within(2.0) - 0.954).abs() < 0.01, "{}", within(2.0));
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        for draws in [Draws::Uniform, Draws::Zipf(0.9), Draws::Normal(0.1), Draws::Latest(0.5)] {
            let take = |seed| {
                let mut stream = Stream::new(draws, COUNT, 3, seed);
                (0..100).map(|_| stream.next()).collect::<Vec<_>>()
            };
            assert_eq!(take(1), take(1));
            assert_ne!(take(1), take(2));
        }
    }
}
