//! The distributions of lengths: of values, and of scans.
//!
//! Owns: their names, their draws and their means. Never does: make a value.

use crate::call;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// A distribution of lengths: bytes of values, or entries of scans.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Lengths {
    /// One length: `100`.
    Fixed(u64),
    /// All lengths from the first to the second with equal probability, both
    /// included: `256..1024`.
    Uniform(u64, u64),
    /// Generalised Pareto from 0, rounded up: `pareto(0.2615, 25.45, max=1024)`
    /// with shape and scale. Longer lengths become `max`: a shape of 1 or more
    /// has no mean of its own, and the paper says that long scans are cut (Cao,
    /// Dong, Vemuri, Du: "Characterizing, Modeling, and Benchmarking RocksDB
    /// Key-Value Workloads at Facebook", FAST 2020).
    Pareto {
        /// The weight of the tail; above 0.
        shape: f64,
        /// The scale of the body; above 0.
        scale: f64,
        /// The longest length.
        max: u64,
    },
}

impl Lengths {
    /// Returns the length that a random word gives: at least 1, unless fixed at
    /// less.
    pub(crate) fn of(&self, word: u64) -> u64 {
        match *self {
            Lengths::Fixed(length) => length,
            Lengths::Uniform(min, max) => min + word % (max - min + 1),
            Lengths::Pareto { shape, scale, max } => {
                // In (0, 1]: the share of lengths that are longer.
                let longer = ((word >> 11) + 1) as f64 / (1u64 << 53) as f64;
                let length = scale * (longer.powf(-shape) - 1.0) / shape;
                // A float beyond u64 becomes its maximum.
                (length.ceil() as u64).clamp(1, max)
            }
        }
    }

    /// Returns the longest length.
    pub(crate) fn max(&self) -> u64 {
        match *self {
            Lengths::Fixed(length) => length,
            Lengths::Uniform(_, max) | Lengths::Pareto { max, .. } => max,
        }
    }

    /// Returns the mean; lengths that are cut count as the longest.
    pub(crate) fn mean(&self) -> f64 {
        match *self {
            Lengths::Fixed(length) => length as f64,
            Lengths::Uniform(min, max) => f64::midpoint(min as f64, max as f64),
            Lengths::Pareto { shape, scale, max } => {
                // The sum over n of the share of lengths above n.
                let above = |n: u64| (1.0 + shape * n as f64 / scale).powf(-1.0 / shape);
                (0..max).map(above).sum()
            }
        }
    }

    fn pareto(numbers: &[&str]) -> Option<Lengths> {
        let &[shape, scale, max] = numbers else { return None };
        let above_0 = |text: &str| text.parse().ok().filter(|n: &f64| 0.0 < *n && n.is_finite());
        let max = max.strip_prefix("max")?.trim_start().strip_prefix('=')?.trim_start();
        let max = max.parse().ok().filter(|n| 1 <= *n)?;
        Some(Lengths::Pareto { shape: above_0(shape)?, scale: above_0(scale)?, max })
    }
}

impl TryFrom<String> for Lengths {
    type Error = String;

    fn try_from(text: String) -> Result<Lengths, String> {
        text.parse()
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Lengths, String> {
        let found = match call::parts(text) {
            Some(("pareto", numbers)) => Lengths::pareto(&numbers),
            Some((word, numbers)) if numbers.is_empty() => match word.split_once("..") {
                None => word.parse().ok().map(Lengths::Fixed),
                Some((min, max)) => match (min.trim().parse(), max.trim().parse()) {
                    // Up to 2^32, so that the range's size is a number.
                    (Ok(min), Ok(max)) if min <= max && max <= 1 << 32 => {
                        Some(Lengths::Uniform(min, max))
                    }
                    _ => None,
                },
            },
            _ => None,
        };
        found.ok_or_else(|| {
            format!(
                "\"{text}\" is no length: write 100, 256..1024 (both included) or \
                 pareto(0.2615, 25.45, max=1024) (shape, scale)"
            )
        })
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lengths::Fixed(length) => write!(f, "{length}"),
            Lengths::Uniform(min, max) => write!(f, "{min}..{max}"),
            Lengths::Pareto { shape, scale, max } => {
                write!(f, "pareto({shape}, {scale}, max={max})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Draw;
    use crate::draws::chi_square;

    const DRAWN: u64 = 200_000;
    const WORDS: [&str; 5] = [
        "100",
        "256..1024",
        "10..12",
        "pareto(0.2615, 25.45, max=1024)",
        "pareto(2.517, 14.236, max=10000)",
    ];

    fn drawn(lengths: Lengths) -> Vec<u64> {
        let mut draw = Draw::new(9);
        (0..DRAWN).map(|_| lengths.of(draw.below(u64::MAX))).collect()
    }

    #[test]
    fn words_name_lengths() {
        for word in WORDS {
            assert_eq!(word.parse::<Lengths>().unwrap().to_string(), word);
        }
        let wrong = "|-1|1.5|2..1|a..b|..|3..|5(1)|pareto(1, 1)|pareto(0, 1, max=1)|\
                     pareto(1, 1, max=0)|pareto(1, 1, 5)|pareto(1, inf, max=3)|uniform(1, 2)";
        for wrong in wrong.split('|') {
            let error = wrong.parse::<Lengths>().unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn draws_have_the_mean_and_the_longest_that_are_told() {
        for word in WORDS {
            let lengths: Lengths = word.parse().unwrap();
            let drawn = drawn(lengths);
            assert_eq!(drawn.iter().max(), Some(&lengths.max()), "{word}");
            assert!(drawn.iter().all(|length| 1 <= *length));
            let mean = drawn.iter().sum::<u64>() as f64 / DRAWN as f64;
            // Half a percent is the sample's own error for the widest
            // distribution.
            let off = mean / lengths.mean() - 1.0;
            assert!(off.abs() < 0.02, "{word}: {mean} for {}", lengths.mean());
        }
        // A shape below 1 has a mean, scale / (1 - shape); rounding up adds half.
        let values: Lengths = WORDS[3].parse().unwrap();
        assert!((values.mean() - (25.45 / (1.0 - 0.2615) + 0.5)).abs() < 0.5, "{}", values.mean());
    }

    #[test]
    fn uniform_has_every_length_alike() {
        let mut counts = [0; 3];
        drawn(Lengths::Uniform(10, 12)).iter().for_each(|n| counts[*n as usize - 10] += 1);
        assert!(chi_square::deviation(&counts, &[1.0 / 3.0; 3], 2).abs() < 4.0, "{counts:?}");
    }

    #[test]
    fn pareto_has_the_shares_of_its_law() {
        for (shape, scale) in [(0.2615, 25.45), (2.517, 14.236)] {
            let lengths = Lengths::Pareto { shape, scale, max: 1 << 40 };
            // The shares up to and with each end, and beyond the last.
            let ends = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 100, 200];
            let upto = |n: u64| 1.0 - (1.0f64 + shape * n as f64 / scale).powf(-1.0 / shape);
            let mut counts = [0; 13];
            for length in drawn(lengths) {
                counts[ends.partition_point(|end| *end < length)] += 1;
            }
            let edges: Vec<f64> = [0.0].into_iter().chain(ends.map(upto)).chain([1.0]).collect();
            let shares: Vec<f64> = edges.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let far = chi_square::deviation(&counts, &shares, 12);
            assert!(far.abs() < 4.0, "{shape}: {far}");
        }
    }
}
