//! Pearson's test of counts against the shares that they should have.
//!
//! Owns: the statistic. Never does: draw.

/// Returns how many standard deviations the statistic is from its mean, under
/// the approximation that it is normal (fair from some ten degrees of freedom
/// up). Chance gives more than 4 for one in 30,000 seeds; tests have fixed
/// seeds.
pub(crate) fn deviation(counts: &[u64], shares: &[f64], freedom: usize) -> f64 {
    assert_eq!(counts.len(), shares.len());
    let total = counts.iter().sum::<u64>() as f64;
    let part = |(count, share): (&u64, &f64)| {
        let expected = total * share;
        assert!(5.0 <= expected, "bins of fewer than five are no test");
        (*count as f64 - expected).powi(2) / expected
    };
    let statistic: f64 = counts.iter().zip(shares).map(part).sum();
    (statistic - freedom as f64) / (2.0 * freedom as f64).sqrt()
}

#[test]
fn a_loaded_die_is_found_out() {
    let shares = [1.0 / 12.0; 12];
    let fair = [1010, 985, 1002, 1030, 970, 1013, 990, 1020, 965, 1035, 980, 1000];
    assert!(deviation(&fair, &shares, 11).abs() < 2.0);
    let mut loaded = fair;
    loaded[5] += 200;
    assert!(6.0 < deviation(&loaded, &shares, 11));
}
