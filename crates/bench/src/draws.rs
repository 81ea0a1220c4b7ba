//! The choice of the record that an operation touches: the distributions of the papers, of YCSB and
//! of db_bench.
//!
//! Owns: their names, and streams of records' numbers. Two streams of one seed give the same
//! numbers, which is how contenders get identical work. No stream needs memory for each record: the
//! peak of the process is measured. Never does: make a key.

#[cfg(test)]
pub(crate) mod chi_square;
mod hot_ranges;
mod order;
mod zipf;

use crate::call;
use crate::data::{Draw, mix};
use hot_ranges::HotRanges;
use order::Permutation;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use zipf::Zipf;

/// Ranks that YCSB's scrambled generator draws from, however many records there are.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;

/// A distribution over the records of a data set. Exponents of Zipf's law lie
/// between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Draws {
    /// 0, 1, 2 ... in order of numbers, from the start again after the last.
    Sequential,
    /// Every record once, in random order; the same order again after the last.
    Shuffled,
    /// All records with equal probability.
    Uniform,
    /// Zipf, record 0 the most popular, then record 1: popular records are neighbours where numbers
    /// are in key order (YCSB's "zipfian").
    Zipfian(f64),
    /// Zipf over as many ranks as there are records, each rank's record chosen by a hash: popular
    /// records lie all over the key space. Some records share ranks, and about a third of them have
    /// none.
    Scattered(f64),
    /// [`Draws::Scattered`] over ten billion ranks, whatever the number of records (YCSB's
    /// "scrambled zipfian", its default). The head is lighter, 3.8 % for the first record instead
    /// of 6.5 % of a million, and no record is left out: most ranks are cold, and fall on all
    /// records alike.
    Scrambled(f64),
    /// Zipf over recency: the record that was loaded or inserted last is the
    /// most popular (YCSB's "latest", L2SM's skewed-latest zipf).
    Latest(f64),
    /// Normal around the middle of the key space, with this standard
    /// deviation as a share of it: popular records are neighbours
    /// (Mnemosyne's skew by key).
    Normal(f64),
    /// A few hot ranges of keys, and hot keys in each (db_bench's `mixgraph`).
    HotRanges,
}

impl Draws {
    /// The words that name distributions, for messages.
    pub(crate) const WORDS: &str = "sequential, shuffled, uniform, zipfian(0.99), \
        scattered(0.99), scrambled(0.99), latest(0.99), normal(0.05), hot_ranges";
}

impl TryFrom<String> for Draws {
    type Error = String;

    fn try_from(text: String) -> Result<Draws, String> {
        text.parse()
    }
}

impl FromStr for Draws {
    type Err = String;

    fn from_str(text: &str) -> Result<Draws, String> {
        let wrong = || format!("\"{text}\" is no distribution; there are {}", Draws::WORDS);
        let (name, numbers) = call::parts(text).ok_or_else(wrong)?;
        let plain = match name {
            "sequential" => Some(Draws::Sequential),
            "shuffled" => Some(Draws::Shuffled),
            "uniform" => Some(Draws::Uniform),
            "hot_ranges" => Some(Draws::HotRanges),
            _ => None,
        };
        if let Some(draws) = plain {
            return numbers.is_empty().then_some(draws).ok_or_else(wrong);
        }
        let &[number] = numbers.as_slice() else { return Err(wrong()) };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let draws = match name {
            "zipfian" => Draws::Zipfian(number),
            "scattered" => Draws::Scattered(number),
            "scrambled" => Draws::Scrambled(number),
            "latest" => Draws::Latest(number),
            "normal" => Draws::Normal(number),
            _ => return Err(wrong()),
        };
        if number <= 0.0 || !number.is_finite() {
            return Err(format!("{text}: the number must be above 0"));
        }
        if 1.0 <= number && name != "normal" {
            return Err(format!("{text}: the exponent must be below 1"));
        }
        Ok(draws)
    }
}

impl fmt::Display for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Draws::Sequential => write!(f, "sequential"),
            Draws::Shuffled => write!(f, "shuffled"),
            Draws::Uniform => write!(f, "uniform"),
            Draws::Zipfian(theta) => write!(f, "zipfian({theta})"),
            Draws::Scattered(theta) => write!(f, "scattered({theta})"),
            Draws::Scrambled(theta) => write!(f, "scrambled({theta})"),
            Draws::Latest(theta) => write!(f, "latest({theta})"),
            Draws::Normal(sigma) => write!(f, "normal({sigma})"),
            Draws::HotRanges => write!(f, "hot_ranges"),
        }
    }
}

/// A stream of records' numbers, from a distribution and a seed.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    shape: Shape,
    /// The number of records that exist.
    count: u64,
    /// The number of records that hashes spread over, future inserts among them.
    space: u64,
    draw: Draw,
    /// The next place of an order, and the distance to the one after.
    place: u64,
    step: u64,
}

/// The state that a distribution needs to draw.
#[derive(Clone, Debug)]
enum Shape {
    Sequential,
    Shuffled(LoadOrder),
    Uniform,
    Zipfian(Zipf),
    Hashed(Zipf),
    Latest(Zipf, LoadOrder),
    Normal(f64),
    HotRanges(Box<HotRanges>),
}

/// The order in which the first records were loaded: `None` in order of their numbers.
#[derive(Clone, Debug)]
struct LoadOrder {
    count: u64,
    order: Option<Permutation>,
}

impl Stream {
    /// Makes a stream over `count` records. `load_seed` fixes the order of a load by
    /// [`Draws::Shuffled`], which is the same for all streams of a data set.
    pub(crate) fn new(draws: Draws, count: u64, load_seed: u64, seed: u64) -> Stream {
        let count = count.max(1);
        let load = || LoadOrder { count, order: Some(Permutation::new(count, load_seed)) };
        let shape = match draws {
            Draws::Sequential => Shape::Sequential,
            Draws::Shuffled => Shape::Shuffled(load()),
            Draws::Uniform => Shape::Uniform,
            Draws::Zipfian(theta) => Shape::Zipfian(Zipf::new(count, theta)),
            Draws::Scattered(theta) => Shape::Hashed(Zipf::new(count, theta)),
            Draws::Scrambled(theta) => Shape::Hashed(Zipf::new(SCRAMBLED_RANKS, theta)),
            Draws::Latest(theta) => Shape::Latest(Zipf::new(count, theta), load()),
            Draws::Normal(sigma) => Shape::Normal(sigma),
            Draws::HotRanges => Shape::HotRanges(Box::new(HotRanges::new(count, load_seed))),
        };
        Stream { shape, count, space: count, draw: Draw::new(seed), place: 0, step: 1 }
    }

    /// Returns the stream of one client of several: orders give it only the places `first`, `first
    /// + step` ... (other draws differ by seed).
    pub(crate) fn every(self, first: u64, step: u64) -> Stream {
        Stream { place: first, step, ..self }
    }

    /// Returns the stream for records loaded in order of their numbers: "latest" follows that
    /// order.
    pub(crate) fn loaded_in_sequence(mut self) -> Stream {
        if let Shape::Latest(_, load) = &mut self.shape {
            load.order = None;
        }
        self
    }

    /// Returns the stream for `count` records at the end: hashed draws then give a record the same
    /// popularity before and after the others are inserted, and draw again while it does not exist.
    pub(crate) fn expecting(self, count: u64) -> Stream {
        Stream { space: count.max(self.space), ..self }
    }

    /// Extends the stream to the records up to `count`, which have been inserted. Popularity stays
    /// with its record, except in "latest", and in "normal", whose middle moves. Hot ranges stay
    /// those of the load.
    pub(crate) fn grow(&mut self, count: u64) {
        if count <= self.count {
            return;
        }
        self.count = count;
        if let Shape::Zipfian(zipf) | Shape::Latest(zipf, _) = &mut self.shape {
            zipf.resize(count);
        }
    }

    /// Returns the next record's number.
    pub(crate) fn next(&mut self) -> u64 {
        let Stream { shape, count, space, draw, place, step } = self;
        let mut at = || {
            // A division costs more than the rest of a draw.
            let at = if *place < *count { *place } else { *place % *count };
            *place += *step;
            at
        };
        match shape {
            Shape::Sequential => at(),
            Shape::Shuffled(load) => load.number(at()),
            Shape::Uniform => draw.below(*count),
            Shape::Zipfian(zipf) => zipf.rank(draw.unit()),
            Shape::Hashed(zipf) => loop {
                let number = mix(zipf.rank(draw.unit())) % *space;
                if number < *count {
                    break number;
                }
            },
            Shape::Latest(zipf, load) => load.number(*count - 1 - zipf.rank(draw.unit())),
            Shape::Normal(sigma) => loop {
                let place = 0.5 + *sigma * normal(draw);
                if (0.0..1.0).contains(&place) {
                    break (place * *count as f64) as u64;
                }
            },
            Shape::HotRanges(ranges) => ranges.next(draw),
        }
    }
}

impl LoadOrder {
    /// Returns the record that was inserted at `place`, from 0; inserts follow the load.
    fn number(&self, place: u64) -> u64 {
        match &self.order {
            Some(order) if place < self.count => order.at(place),
            _ => place,
        }
    }
}

/// Returns a standard normal number (Box and Muller).
fn normal(draw: &mut Draw) -> f64 {
    let radius = (-2.0 * (1.0 - draw.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * draw.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 10_000;
    const DRAWN: usize = 200_000;

    /// Counts how often each record was drawn.
    fn histogram(stream: &mut Stream) -> Vec<u64> {
        let mut counts = vec![0; stream.count as usize];
        (0..DRAWN).for_each(|_| counts[stream.next() as usize] += 1);
        counts
    }

    fn stream(draws: Draws) -> Stream {
        Stream::new(draws, COUNT, 3, 4)
    }

    fn share(count: u64) -> f64 {
        count as f64 / DRAWN as f64
    }

    /// Returns the exact share of rank 0.
    fn first_share(count: u64, theta: f64) -> f64 {
        1.0 / (1..=count).map(|i| (i as f64).powf(-theta)).sum::<f64>()
    }

    #[track_caller]
    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value / expected - 1.0).abs() < tolerance, "{value} for {expected}");
    }

    #[test]
    fn orders_give_every_record_once() {
        assert_eq!(histogram(&mut stream(Draws::Sequential)), vec![20; COUNT as usize]);
        assert_eq!(histogram(&mut stream(Draws::Shuffled)), vec![20; COUNT as usize]);
        let mut shuffled = stream(Draws::Shuffled);
        let rising = (0..1000).filter(|_| shuffled.next() < shuffled.next()).count();
        assert!((400..600).contains(&rising), "{rising}: not in random order");
    }

    #[test]
    fn clients_share_an_order_out() {
        for draws in [Draws::Sequential, Draws::Shuffled] {
            let whole: Vec<u64> = {
                let mut stream = stream(draws);
                (0..COUNT).map(|_| stream.next()).collect()
            };
            let mut parts: Vec<Stream> = (0..3).map(|c| stream(draws).every(c, 3)).collect();
            let turns: Vec<u64> = (0..COUNT as usize).map(|i| parts[i % 3].next()).collect();
            assert_eq!(turns, whole);
        }
    }

    #[test]
    fn uniform_is_flat() {
        let counts = histogram(&mut stream(Draws::Uniform));
        let flat = vec![1.0 / COUNT as f64; COUNT as usize];
        let far = chi_square::deviation(&counts, &flat, COUNT as usize - 1);
        assert!(far.abs() < 4.0, "{far}");
    }

    #[test]
    fn zipfian_is_in_order_of_numbers() {
        let counts = histogram(&mut stream(Draws::Zipfian(0.99)));
        near(share(counts[0]), first_share(COUNT, 0.99), 0.05);
        near(share(counts[1]), first_share(COUNT, 0.99) / 2f64.powf(0.99), 0.05);
        let hundreds: Vec<u64> = counts.chunks(1000).map(|c| c.iter().sum()).collect();
        assert!(hundreds.is_sorted_by(|a, b| a > b), "{hundreds:?}");
    }

    #[test]
    fn scattered_has_the_head_of_zipf_all_over() {
        let mut counts = histogram(&mut stream(Draws::Scattered(0.99)));
        let hot: Vec<usize> = (0..counts.len()).filter(|&i| share(counts[i]) > 0.01).collect();
        assert!(hot.iter().any(|&i| i < 5000) && hot.iter().any(|&i| 5000 <= i), "{hot:?}");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        near(share(counts[0]), first_share(COUNT, 0.99), 0.05);
        // The second record of a zipf of .99 has about half of the first one's share.
        near(share(counts[1]) / share(counts[0]), 0.503, 0.1);
        // Ranks fall on records like balls in bins: a share of 1/e gets none.
        let none = counts.iter().filter(|count| **count == 0).count() as f64;
        assert!(0.36 < none / COUNT as f64, "{none}");
    }

    #[test]
    fn scrambled_has_the_head_of_ten_billion_ranks() {
        let mut counts = histogram(&mut stream(Draws::Scrambled(0.99)));
        let hot: Vec<usize> = (0..counts.len()).filter(|&i| share(counts[i]) > 0.005).collect();
        assert!(hot.iter().any(|&i| i < 5000) && hot.iter().any(|&i| 5000 <= i), "{hot:?}");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        near(share(counts[0]), 1.0 / 26.469, 0.05);
        near(share(counts[1]), 1.0 / 26.469 / 2f64.powf(0.99), 0.05);
        // Ranks beyond ten times the records, spread evenly, are half of all draws: 10 a record of
        // 20 on average. No record is left out.
        assert!(counts.iter().all(|count| 0 < *count));
    }

    #[test]
    fn hashed_popularity_stays_when_records_come() {
        for draws in [Draws::Scattered(0.99), Draws::Scrambled(0.99)] {
            // The three hottest of the first records.
            let hottest = |counts: &[u64]| {
                let mut records: Vec<usize> = (0..COUNT as usize).collect();
                records.sort_unstable_by_key(|&i| std::cmp::Reverse(counts[i]));
                records.truncate(3);
                records
            };
            let mut stream = stream(draws).expecting(2 * COUNT);
            let before = hottest(&histogram(&mut stream));
            stream.grow(2 * COUNT);
            let counts = histogram(&mut stream);
            assert_eq!(hottest(&counts), before);
            let came: u64 = counts[COUNT as usize..].iter().sum();
            assert!(0.25 < share(came), "{came}");
        }
    }

    #[test]
    fn latest_prefers_what_was_loaded_last() {
        let shuffled: Vec<u64> = {
            let mut stream = stream(Draws::Shuffled);
            (0..COUNT).map(|_| stream.next()).collect()
        };
        let in_sequence = (0..COUNT).collect::<Vec<_>>();
        let after_sequence = stream(Draws::Latest(0.99)).loaded_in_sequence();
        for (mut latest, order) in
            [(stream(Draws::Latest(0.99)), shuffled), (after_sequence, in_sequence)]
        {
            let counts = histogram(&mut latest);
            let by_recency: Vec<u64> = order.iter().rev().map(|&n| counts[n as usize]).collect();
            near(share(by_recency[0]), first_share(COUNT, 0.99), 0.05);
            let newest: u64 = by_recency[..1000].iter().sum();
            let oldest: u64 = by_recency[9000..].iter().sum();
            assert!(0.7 < share(newest) && share(oldest) < 0.02, "{newest} {oldest}");
        }
    }

    #[test]
    fn latest_follows_inserts() {
        let mut latest = stream(Draws::Latest(0.99));
        (COUNT..=COUNT + 500).for_each(|count| latest.grow(count));
        let counts = histogram(&mut latest);
        let newest: Vec<u64> = counts.iter().rev().take(3).copied().collect();
        near(share(newest[0]), first_share(COUNT + 500, 0.99), 0.05);
        near(share(newest[1]), share(newest[0]) / 2f64.powf(0.99), 0.05);
        let inserted: u64 = counts[COUNT as usize..].iter().sum();
        // 500 ranks of 10,500.
        let expected = first_share(COUNT + 500, 0.99) / first_share(500, 0.99);
        near(share(inserted), expected, 0.03);
    }

    #[test]
    fn normal_clusters_in_the_middle() {
        let counts = histogram(&mut stream(Draws::Normal(0.05)));
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
        let words = "uniform zipfian(0.9) scattered(0.9) scrambled(0.9) latest(0.5) normal(0.1) \
                     hot_ranges";
        for word in words.split_whitespace() {
            let take = |seed| {
                let mut stream = Stream::new(word.parse().unwrap(), COUNT, 3, seed);
                (0..100).map(|_| stream.next()).collect::<Vec<_>>()
            };
            assert_eq!(take(1), take(1));
            assert_ne!(take(1), take(2));
        }
    }

    #[test]
    fn words_name_distributions() {
        for word in Draws::WORDS.split(", ") {
            let draws: Draws = word.parse().unwrap();
            assert_eq!(draws.to_string(), word);
        }
        assert_eq!("zipfian( 0.5 )".parse(), Ok(Draws::Zipfian(0.5)));
        for wrong in [
            "",
            "zipf",
            "zipfian",
            "zipfian()",
            "zipfian(1)",
            "zipfian(x)",
            "zipfian(0.5, 1)",
            "latest(-1)",
            "normal(0)",
            "normal(inf)",
            "uniform(1)",
            "uniform()",
            "latest(NaN)",
        ] {
            let error = wrong.parse::<Draws>().unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
