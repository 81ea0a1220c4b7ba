//! Scores as bytes in their order.
//!
//! Owns: the layout: eight bytes, big-endian, of the bits with the sign inverted, and of negative
//! ones all inverted. Never does: take a NaN.

/// The bytes of a score: they are in order as scores are.
pub(crate) fn encode(score: f64) -> [u8; 8] {
    debug_assert!(!score.is_nan(), "a score that is no number");
    // -0 and 0 are the same score.
    let bits = (score + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    ordered.to_be_bytes()
}

/// The score that begins `bytes`; `None` where there are too few.
pub(crate) fn decode(bytes: &[u8]) -> Option<f64> {
    let ordered = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
    Some(f64::from_bits(bits))
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
            assert_eq!(decode(&encode(score)), Some(score));
        }
        assert_eq!(encode(-0.0), encode(0.0));
        assert_eq!(decode(b"1234567"), None);
    }
}
