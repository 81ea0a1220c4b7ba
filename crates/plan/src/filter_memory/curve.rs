//! False-positive rate against bits per key, and the best bits for a price.
//!
//! A curve is a chain of knots with the logarithm of the rate linear between
//! them, so that the best bits for a price have a closed form in each piece.
//! Two curves: the textbook formula of the papers, and the filter that the
//! table format builds. The format holds the built one against its own
//! formula (`the_plans_curve_is_the_built_filters` in the engine's tests).
//!
//! Owns: both curves. Never does: look at a file.

use core::f64::consts::LN_2;
use windrow_base::debug_invariant;

/// `ln(2)^2`: what one bit per key takes off the logarithm of the rate.
pub const LN2_SQUARED: f64 = LN_2 * LN_2;

/// Fewest bits per key that a filter gets. Paper: what RocksDB rounds to. It
/// is more than a convention: with one probe the wrong answers saved per bit
/// are `e^(-1/b) / b`, which is largest at b = 1, so that a smaller filter
/// buys less per bit than a whole one for fewer files.
pub const BITS_MIN: f64 = 1.0;

/// Most bits per key: there one look-up in twenty thousand is let through.
pub const BITS_CAP: f64 = 24.0;

#[derive(Debug)]
struct Knot {
    bits: f64,
    ln_rate: f64,
    /// The part that a bit takes off `ln_rate` from here to the next knot.
    slope: f64,
}

const fn knot(bits: f64, ln_rate: f64, slope: f64) -> Knot {
    Knot { bits, ln_rate, slope }
}

/// A convex, falling curve from one bit per key on.
#[derive(Debug)]
pub struct Curve {
    knots: &'static [Knot],
}

/// The textbook formula, `e^(-ln(2)^2 b)`: Eq. 1 of Mnemosyne.
pub static FORMULA: Curve = Curve { knots: &[knot(1.0, -LN2_SQUARED, LN2_SQUARED)] };

/// The filter that tables carry: Bloom in lines of 64 bytes. The knots are the
/// rates of `windrow_format::filter::false_positive_rate`, which the filter's
/// own test measures, chosen so that the slopes fall: the true curve has a
/// bump of 2 % where the second probe pays, at 2 bits, and no optimum lies there.
pub static BUILT: Curve = Curve {
    knots: &[
        knot(1.0, -0.458_674, 0.490_250),
        knot(3.0, -1.439_175, 0.472_067),
        knot(6.0, -2.855_375, 0.455_817),
        knot(8.0, -3.767_009, 0.432_913),
        knot(12.0, -5.498_660, 0.400_072),
        knot(16.0, -7.098_947, 0.366_020),
        knot(20.0, -8.563_027, 0.330_170),
        knot(24.0, -9.883_707, 0.290_000),
    ],
};

/// A piece of bits as a function of the urgency `u` (see [`Curve::bits`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Urgency at which it begins.
    pub(super) urgency: f64,
    /// Bits there.
    pub(super) bits: f64,
    /// Bits per urgency; 0 where bits stay.
    pub(super) rise: f64,
    /// Logarithm of the rate at its beginning.
    pub(super) ln_rate: f64,
}

impl Curve {
    /// Returns the share of lookups of absent keys that a filter of `bits` per key lets through; 1
    /// without a filter. Below one bit, one probe: `1 - e^(-1/b)`.
    pub fn rate(&self, bits: f64) -> f64 {
        if bits.is_nan() || bits <= 0.0 {
            return 1.0;
        }
        if bits < BITS_MIN {
            return 1.0 - libm::exp(-1.0 / bits);
        }
        let at = self.knots.partition_point(|k| k.bits <= bits).max(1) - 1;
        let knot = &self.knots[at];
        let rate = libm::exp(knot.ln_rate - knot.slope * (bits - knot.bits));
        debug_invariant!(
            F1,
            (0.0..=1.0).contains(&rate),
            "a rate of {rate} at {bits} bits per key"
        );
        rate
    }

    /// Returns the best bits per key of a file of `n` entries and `z` empty lookups. The urgency is
    /// `u = ln(z/n) - C`, where C is the constant of Eq. 7. With the formula's curve, they are
    /// `u / ln(2)^2` and none where that is too little to start (Mnemosyne, Algorithm 1, line 18).
    /// A bit costs `ln(2)^2 e^C`, and the bits are those at which the next one no longer saves that
    /// much.
    pub fn bits(&self, urgency: f64, cap: f64) -> f64 {
        let mut bits = 0.0;
        for piece in self.pieces() {
            if urgency.is_nan() || urgency < piece.urgency {
                break;
            }
            bits = piece.bits + piece.rise * (urgency - piece.urgency);
            let end = self.knots.iter().map(|k| k.bits).find(|&b| b > piece.bits);
            bits = f64::min(bits, end.unwrap_or(f64::INFINITY));
        }
        debug_invariant!(F1, bits == 0.0 || bits >= BITS_MIN, "{bits} bits per key");
        let is_due = urgency >= self.threshold();
        debug_invariant!(F1, is_due == (bits > 0.0), "{bits} bits per key at urgency {urgency}");
        if cap < BITS_MIN { 0.0 } else { bits.min(cap) }
    }

    /// Urgency from which a file gets a filter: there the first bit, taken
    /// whole, earns its price.
    pub fn threshold(&self) -> f64 {
        let first = &self.knots[0];
        let earned = -libm::expm1(first.ln_rate) / first.bits;
        debug_invariant!(F1, earned > 0.0, "the first bit earns {earned}");
        libm::log(LN2_SQUARED) - libm::log(earned)
    }

    /// Bits as a function of urgency: steps and rises in turn. The first piece
    /// is the first bit; the last one rises for ever.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let falls = |pair: &[Knot]| pair[0].bits < pair[1].bits && pair[0].slope >= pair[1].slope;
        debug_invariant!(F1, self.knots.windows(2).all(falls), "{self:?} is not convex");
        let first = &self.knots[0];
        let start = Piece {
            urgency: self.threshold(),
            bits: first.bits,
            rise: 0.0,
            ln_rate: first.ln_rate,
        };
        let rest = self.knots.iter().enumerate().flat_map(|(i, knot)| {
            // Where the next bit's saving, slope x rate, is worth its price.
            let from = libm::log(LN2_SQUARED) - libm::log(knot.slope) - knot.ln_rate;
            let rise = Piece {
                urgency: from,
                bits: knot.bits,
                rise: 1.0 / knot.slope,
                ln_rate: knot.ln_rate,
            };
            let step = self.knots.get(i + 1).map(|next| Piece {
                urgency: from + knot.slope * (next.bits - knot.bits),
                bits: next.bits,
                rise: 0.0,
                ln_rate: next.ln_rate,
            });
            core::iter::once(rise).chain(step)
        });
        core::iter::once(start).chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_continuous_and_convex() {
        for curve in [&FORMULA, &BUILT] {
            for pair in curve.knots.windows(2) {
                let end = pair[0].ln_rate - pair[0].slope * (pair[1].bits - pair[0].bits);
                assert!((end - pair[1].ln_rate).abs() < 2e-4, "{pair:?}");
                assert!(pair[1].slope < pair[0].slope);
            }
            let urgencies: std::vec::Vec<f64> = curve.pieces().map(|p| p.urgency).collect();
            assert!(urgencies.windows(2).all(|w| w[0] <= w[1]), "{urgencies:?}");
        }
        assert_eq!(FORMULA.rate(0.0), 1.0);
        assert!((FORMULA.rate(10.0) - 0.0082).abs() < 1e-4);
        assert!((BUILT.rate(0.5) - 0.8647).abs() < 1e-4);
    }

    /// At every urgency, no other number of bits costs less: searched on a grid.
    #[test]
    fn bits_are_the_best_for_their_price() {
        for curve in [&FORMULA, &BUILT] {
            for step in 0..200 {
                let urgency = f64::from(step) * 0.05 - 1.0;
                // One entry, e^u empty lookups, C = 0.
                let cost = |bits: f64| libm::exp(urgency) * curve.rate(bits) + LN2_SQUARED * bits;
                let found = cost(curve.bits(urgency, 64.0));
                let grid = (40..1200).map(|i| cost(f64::from(i) / 40.0));
                let best = grid.fold(cost(0.0), f64::min);
                assert!(found <= best * (1.0 + 1e-4), "u {urgency}: {found} against {best}");
            }
        }
        assert_eq!(FORMULA.bits(f64::NAN, 64.0), 0.0);
        assert_eq!(FORMULA.bits(100.0, 20.0), 20.0);
        assert_eq!(FORMULA.bits(100.0, 0.5), 0.0);
    }
}
