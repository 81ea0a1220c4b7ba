//! Scores as bytes in their order.
//!
//! Owns: the layout: eight bytes, big-endian, of the bits with the sign inverted, and of negative
//! numbers with all inverted. Never does: take a NaN.

use windrow::{Error, Result};

/// Returns the bytes of a score: their order is that of scores.
pub(crate) fn encode(score: f64) -> [u8; 8] {
    debug_assert!(!score.is_nan(), "a score that is no number");
    // -0 and 0 are one score.
    let bits = (score + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    ordered.to_be_bytes()
}

/// Reads the score that begins `bytes`.
///
/// # Errors
/// `Corruption` if there is none: no score is made up.
pub(crate) fn decode(bytes: &[u8]) -> Result<f64> {
    let ordered = bytes.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    let bits =
        ordered.map(|ordered| if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered });
    let score = bits.map(f64::from_bits).filter(|score| !score.is_nan());
    score.ok_or_else(|| {
        Error::corruption(
            "a row of a sorted set has no score: another program wrote it; delete the key",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_the_order_of_scores() {
        let scores = [
            f64::NEG_INFINITY,
            -1e300,
            -2.5,
            -1.0,
            -1e-300,
            0.0,
            1e-300,
            1.0,
            2.5,
            1e300,
            f64::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(encode(pair[0]) < encode(pair[1]), "{pair:?}");
        }
        for score in scores {
            assert_eq!(decode(&encode(score)).unwrap(), score);
        }
        assert_eq!(encode(-0.0), encode(0.0));
        assert!(decode(b"1234567").is_err() && decode(&[0; 8]).is_err(), "too short; not a number");
    }
}
