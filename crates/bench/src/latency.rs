//! Latencies of single operations, by kind.
//!
//! Owns: the histograms, and their percentiles.
//! Never does: take the time.

use crate::op::Kind;
use crate::record;
use crate::store::Result;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The percentiles that curves are drawn through. A percentile with less than one operation above
/// it says nothing and is left out.
const CURVE: [f64; 17] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99, 99.999,
];

/// A distribution of latencies, three digits, up to ten minutes. It takes 250 KB; buckets that are
/// never recorded are never touched.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Result<Latencies> {
        Ok(Latencies(Histogram::new_with_bounds(1, 600_000_000_000, 3)?))
    }

    pub(crate) fn record_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Returns the sum of all latencies, in seconds.
    pub(crate) fn sum_s(&self) -> f64 {
        self.0.mean() * self.0.len() as f64 / 1e9
    }

    /// Adds another distribution.
    pub(crate) fn add(&mut self, other: &Latencies) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency that this share of operations does not exceed, in microseconds: the top
    /// of the histogram's bucket, 0.1 % wide. 1 is the longest.
    pub(crate) fn quantile_us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1000.0
    }

    /// Returns the summary that run files keep.
    pub(crate) fn summary(&self) -> record::Latency {
        // The limit is 0.999, since 1 - 0.9 is not a tenth to a float.
        let above = |percentile: f64| self.count() as f64 * (1.0 - percentile / 100.0);
        let tells = |percentile: &f64| 0.999 <= above(*percentile);
        let shown = CURVE.into_iter().filter(tells).chain([100.0]);
        let curve = shown.map(|p| (p, self.quantile_us(p / 100.0))).collect();
        record::Latency {
            count: self.count(),
            mean: self.0.mean() / 1000.0,
            p50: self.quantile_us(0.5),
            p90: self.quantile_us(0.9),
            p99: self.quantile_us(0.99),
            p999: self.quantile_us(0.999),
            max: self.quantile_us(1.0),
            curve: if self.0.is_empty() { Vec::new() } else { curve },
        }
    }

    #[cfg(test)]
    pub(crate) fn above_us(&self, us: f64) -> u64 {
        let above = self.0.iter_recorded().filter(|v| v.value_iterated_to() as f64 > us * 1000.0);
        above.map(|v| v.count_since_last_iteration()).sum()
    }
}

/// Latencies of each kind of operation that was done.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByKind([Option<Box<Latencies>>; Kind::COUNT]);

impl ByKind {
    /// Records one operation. The first of a kind makes its histogram.
    pub(crate) fn record_ns(&mut self, kind: Kind, ns: u64) -> Result<()> {
        match &mut self.0[kind as usize] {
            Some(latencies) => latencies.record_ns(ns),
            none => none.insert(Box::new(Latencies::new()?)).record_ns(ns),
        }
        Ok(())
    }

    /// Adds the latencies of another.
    pub(crate) fn add(&mut self, other: &ByKind) -> Result<()> {
        for (ours, others) in self.0.iter_mut().zip(&other.0) {
            match (ours, others) {
                (Some(ours), Some(others)) => ours.add(others)?,
                (ours @ None, Some(others)) => *ours = Some(others.clone()),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Returns the latencies of one kind, if any was done.
    pub(crate) fn get(&self, kind: Kind) -> Option<&Latencies> {
        self.0[kind as usize].as_deref()
    }

    /// Returns the kinds that were done.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Kind, &Latencies)> {
        Kind::ALL.into_iter().filter_map(|kind| Some((kind, self.get(kind)?)))
    }

    /// Returns summaries by the kinds' names.
    pub(crate) fn summaries(&self) -> BTreeMap<String, record::Latency> {
        self.iter().map(|(kind, l)| (kind.name().to_owned(), l.summary())).collect()
    }

    /// Returns the latencies of all kinds together.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Result<Latencies> {
        let mut all = Latencies::new()?;
        self.iter().try_for_each(|(_, latencies)| all.add(latencies))?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(count: u64) -> Latencies {
        let mut latencies = Latencies::new().unwrap();
        (1..=count).for_each(|i| latencies.record_ns(i * 1000));
        latencies
    }

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() <= 0.001, "{value} for {expected}");
    }

    #[test]
    fn a_summary_says_what_was_recorded() {
        let summary = rising(10_000).summary();
        assert_eq!(summary.count, 10_000);
        near(summary.mean, 5000.5);
        near(summary.p50, 5000.0);
        near(summary.p90, 9000.0);
        near(summary.p99, 9900.0);
        near(summary.p999, 9990.0);
        near(summary.max, 10_000.0);
        near(summary.curve[0].1, 1.0);
    }

    #[test]
    fn curves_rise_and_end_where_the_count_does() {
        for (count, last) in [(1, 0.0), (10, 90.0), (999, 99.5), (10_000, 99.99)] {
            let curve = rising(count).summary().curve;
            assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{curve:?}");
            assert_eq!(curve.last().unwrap().0, 100.0);
            assert_eq!(curve[curve.len() - 2].0, last, "{count}");
        }
        assert_eq!(Latencies::new().unwrap().summary(), record::Latency::default());
    }

    #[test]
    fn times_beyond_the_histogram_are_its_last() {
        let mut latencies = Latencies::new().unwrap();
        latencies.record_ns(0);
        latencies.record_ns(3_600_000_000_000);
        assert_eq!(latencies.count(), 2);
        assert!(600e6 <= latencies.quantile_us(1.0));
    }

    #[test]
    fn kinds_are_kept_apart_and_merge() {
        let (mut one, mut two) = (ByKind::default(), ByKind::default());
        one.record_ns(Kind::Get, 5000).unwrap();
        two.record_ns(Kind::Get, 9000).unwrap();
        two.record_ns(Kind::Put, 1000).unwrap();
        one.add(&two).unwrap();
        one.add(&ByKind::default()).unwrap();
        let kinds: Vec<_> = one.iter().map(|(kind, l)| (kind, l.count())).collect();
        assert_eq!(kinds, [(Kind::Put, 1), (Kind::Get, 2)]);
        near(one.get(Kind::Get).unwrap().quantile_us(1.0), 9.0);
        assert_eq!(one.all().unwrap().count(), 3);
        let summaries = one.summaries();
        near(summaries["put"].max, 1.0);
        assert!(!summaries.contains_key("scan"));
    }

    #[test]
    fn every_kind_has_its_place() {
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
        }
    }
}
