//! Latencies of single operations.
//!
//! Owns: the histogram and the names of its figures. Never does: take the time.

use crate::report::Figures;
use crate::store::Result;
use hdrhistogram::Histogram;
use std::time::Duration;

/// A distribution of latencies, three digits, up to ten minutes.
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> Result<Latencies> {
        Ok(Latencies(Histogram::new_with_bounds(1, 600_000_000_000, 3)?))
    }

    pub(crate) fn record(&mut self, time: Duration) {
        self.record_ns(time.as_nanos() as u64);
    }

    pub(crate) fn record_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Takes in another's.
    pub(crate) fn add(&mut self, other: &Latencies) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Sets `NAME_us_mean` and the percentiles beside it; nothing if empty.
    pub(crate) fn figures(&self, figures: &mut Figures, name: &str) {
        if self.0.is_empty() {
            return;
        }
        let us = |ns: u64| ns as f64 / 1000.0;
        figures.set(&format!("{name}_us_mean"), self.0.mean() / 1000.0);
        for (label, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            figures.set(&format!("{name}_us_{label}"), us(self.0.value_at_quantile(quantile)));
        }
        figures.set(&format!("{name}_us_max"), us(self.0.max()));
    }

    #[cfg(test)]
    pub(crate) fn max_us(&self) -> f64 {
        // The top of the histogram's bucket, which is at most 0.1 % wide.
        let ns = self.0.max() as f64;
        (ns / 1e6).round() * 1000.0
    }

    #[cfg(test)]
    pub(crate) fn above_us(&self, us: f64) -> u64 {
        let above = self.0.iter_recorded().filter(|v| v.value_iterated_to() as f64 > us * 1000.0);
        above.map(|v| v.count_since_last_iteration()).sum()
    }
}
