//! Combined weight: hotness and sparseness as one number from 0 to 1.
//!
//! L2SM (Huang et al., section III-D): `W = alpha * H' + (1 - alpha) * S'`, H'
//! and S' scaled to 0..1 over the files that are compared. The paper divides
//! by `max - min` without subtracting `min`, which leaves the scale, and by
//! zero where all files are alike; here it is `(x - min) / (max - min)`, and 0
//! where `max = min`.
//!
//! Owns: the formula. Never does: choose a file.

use super::sparseness::{shared_prefix, sparseness};
use crate::tree::File;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::debug_invariant;

/// W of each file: the larger, the more it would disturb the run it is in.
pub fn weights(files: &[Arc<File>], alpha: f64) -> Vec<f64> {
    let prefix_bytes = shared_prefix(files);
    let hot: Vec<f64> = files.iter().map(|f| f.hotness as f64).collect();
    let sparse: Vec<f64> = files.iter().map(|f| sparseness(f, prefix_bytes)).collect();
    combine(&hot, &sparse, alpha)
}

/// `alpha * hot' + (1 - alpha) * sparse'`, each scaled to 0..1.
pub fn combine(hot: &[f64], sparse: &[f64], alpha: f64) -> Vec<f64> {
    debug_invariant!(H1, hot.len() == sparse.len(), "{} hot, {} sparse", hot.len(), sparse.len());
    debug_invariant!(H1, (0.0..=1.0).contains(&alpha), "hotness weighs {alpha}");
    let (hot, sparse) = (Scale::of(hot), Scale::of(sparse));
    let weights: Vec<f64> = hot.zip(sparse).map(|(h, s)| alpha * h + (1.0 - alpha) * s).collect();
    let odd = weights.iter().find(|weight| !(0.0..=1.0 + 1e-9).contains(*weight));
    debug_invariant!(H1, odd.is_none(), "a table weighs {odd:?}");
    weights
}

/// Values scaled to 0..1.
struct Scale<'a> {
    values: core::slice::Iter<'a, f64>,
    min: f64,
    spread: f64,
}

impl Scale<'_> {
    fn of(values: &[f64]) -> Scale<'_> {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        debug_invariant!(H1, values.is_empty() || min <= max, "a scale from {min} to {max}");
        Scale { values: values.iter(), min, spread: max - min }
    }
}

impl Iterator for Scale<'_> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let value = self.values.next()?;
        let scaled = if self.spread > 0.0 { (value - self.min) / self.spread } else { 0.0 };
        debug_invariant!(H1, (0.0..=1.0).contains(&scaled), "{value} is scaled to {scaled}");
        Some(scaled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_is_scaled_to_its_spread() {
        let hot = [10.0, 30.0, 20.0];
        let sparse = [-4.0, -4.0, 6.0];
        assert_eq!(combine(&hot, &sparse, 1.0), [0.0, 1.0, 0.5]);
        assert_eq!(combine(&hot, &sparse, 0.0), [0.0, 0.0, 1.0]);
        assert_eq!(combine(&hot, &sparse, 0.5), [0.0, 0.5, 0.75]);
    }

    #[test]
    fn where_all_are_alike_the_weight_is_nought() {
        assert_eq!(combine(&[7.0, 7.0], &[1.0, 3.0], 0.5), [0.0, 0.5]);
        assert_eq!(combine(&[7.0], &[3.0], 0.5), [0.0]);
        assert!(combine(&[], &[], 0.5).is_empty());
    }
}
