//! How long operations take: a histogram for each kind, of constant size.
//!
//! Times are counted in buckets, eight to each power of two, so that a percentile is at most an
//! eighth too long. Cached gets take less time than two readings of a clock cost, so for most kinds
//! one in [`SAMPLE`](crate::read::access::SAMPLE) is timed.
//!
//! Owns: the buckets. Never does: take the time, or choose which operation is timed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The steps of a power of two: 2 to this.
const STEP_BITS: u32 = 3;

/// Longer times, from 18 minutes on, count as this: 2 to this, in nanoseconds.
const LONGEST_BITS: u32 = 40;

const STEPS: usize = 1 << STEP_BITS;

const BUCKETS: usize = (LONGEST_BITS - STEP_BITS + 1) as usize * STEPS;

/// Returns the bucket of a time.
fn bucket_of(ns: u64) -> usize {
    let ns = ns.min((1 << LONGEST_BITS) - 1);
    // Up to two times the steps of a power, each time has a bucket of its own.
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(STEP_BITS + 1);
    shift as usize * STEPS + (ns >> shift) as usize
}

/// Returns the longest time of a bucket.
fn longest_of(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    let first = (bucket - shift * STEPS) as u64;
    ((first + 1) << shift) - 1
}

/// The times of one kind of operation.
#[derive(Debug)]
pub struct Timings {
    buckets: [AtomicU64; BUCKETS],
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Default for Timings {
    fn default() -> Timings {
        Timings {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            total_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        }
    }
}

impl Timings {
    /// Counts an operation that took `ns`.
    #[inline]
    pub fn record(&self, ns: u64) {
        self.buckets[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Latency {
        let counts: Vec<u64> =
            self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Latency {
            counts: counts[..used].to_vec(),
            total_ns: self.total_ns.load(Ordering::Relaxed),
            longest_ns: self.longest_ns.load(Ordering::Relaxed),
        }
    }
}

/// The times of a database's operations.
#[derive(Debug, Default)]
pub struct AllTimings {
    pub get: Timings,
    pub seek: Timings,
    pub put: Timings,
    pub commit: Timings,
}

impl AllTimings {
    pub(super) fn snapshot(&self) -> Latencies {
        Latencies {
            get: self.get.snapshot(),
            seek: self.seek.snapshot(),
            put: self.put.snapshot(),
            commit: self.commit.snapshot(),
        }
    }
}

/// How long operations took since the database was opened, as their callers saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latencies {
    /// Look-ups of one key, one in 64.
    pub get: Latency,
    /// Positionings of cursors and iterators, one in 64.
    pub seek: Latency,
    /// Batches and single writes that do not wait for the device, one in 64.
    pub put: Latency,
    /// Batches and single writes that do ([`WriteSync::Yes`](crate::options::WriteSync::Yes)), all
    /// of them.
    pub commit: Latency,
}

impl Latencies {
    /// Each with its name in tables and JSON.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Latency)> {
        [("get", &self.get), ("seek", &self.seek), ("put", &self.put), ("commit", &self.commit)]
            .into_iter()
    }

    /// The times after `earlier`, an earlier snapshot of the same database.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = windrow::Db::open(dir.path()).unwrap();
    /// let earlier = db.stats().latencies;
    /// for _ in 0..640 {
    ///     db.get("a")?;
    /// }
    /// let since = db.stats().latencies.since(&earlier);
    /// println!("99 % of the gets took at most {:?}", since.get.percentile(99.0));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Latencies) -> Latencies {
        Latencies {
            get: self.get.since(&earlier.get),
            seek: self.seek.since(&earlier.seek),
            put: self.put.since(&earlier.put),
            commit: self.commit.since(&earlier.commit),
        }
    }
}

/// How long the timed operations of one kind took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// By bucket, up to the last that is not empty.
    counts: Vec<u64>,
    total_ns: u64,
    longest_ns: u64,
}

impl Latency {
    /// The number of timed operations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that `percent` of them did not exceed, at most an eighth too long. `None` if none
    /// was timed.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= rank
        };
        let bucket = self.counts.iter().position(reaches)?;
        Some(Duration::from_nanos(longest_of(bucket).min(self.longest_ns)))
    }

    /// Their mean. `None` if none was timed.
    pub fn mean(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.total_ns.checked_div(self.count())?))
    }

    /// The times after `earlier`. The longest is known by its bucket.
    fn since(&self, earlier: &Latency) -> Latency {
        let before = earlier.counts.iter().copied().chain(std::iter::repeat(0));
        let mut counts: Vec<u64> = self
            .counts
            .iter()
            .zip(before)
            .map(|(now, before)| now.saturating_sub(before))
            .collect();
        let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        counts.truncate(used);
        let longest_ns =
            used.checked_sub(1).map_or(0, |last| longest_of(last).min(self.longest_ns));
        Latency { counts, total_ns: self.total_ns.saturating_sub(earlier.total_ns), longest_ns }
    }

    /// The longest. `None` if none was timed.
    pub fn longest(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.longest_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_env::testing::Rng;

    #[test]
    fn buckets_follow_each_other_and_are_an_eighth_wide() {
        for bucket in 0..BUCKETS {
            let longest = longest_of(bucket);
            assert_eq!(bucket_of(longest), bucket);
            let next = bucket_of(longest + 1);
            assert_eq!(next, (bucket + 1).min(BUCKETS - 1));
            let shortest = if bucket == 0 { 0 } else { longest_of(bucket - 1) + 1 };
            assert_eq!(bucket_of(shortest), bucket);
            assert!((longest - shortest) * 8 <= shortest, "{shortest} to {longest}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_times_or_an_eighth_more() {
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            let timings = Timings::default();
            let bits = 1 + rng.below(38);
            let mut times: Vec<u64> =
                (0..1 + rng.below(3_000)).map(|_| rng.below(1 << bits)).collect();
            times.iter().for_each(|ns| timings.record(*ns));
            times.sort_unstable();
            let latency = timings.snapshot();
            assert_eq!(latency.count(), times.len() as u64);
            assert_eq!(latency.longest().unwrap().as_nanos() as u64, times[times.len() - 1]);
            let mean = times.iter().sum::<u64>() / times.len() as u64;
            assert_eq!(latency.mean().unwrap().as_nanos() as u64, mean);
            for percent in [0.0, 1.0, 50.0, 99.0, 99.9, 100.0] {
                let rank = (times.len() as f64 * percent / 100.0).ceil().max(1.0) as usize;
                let exact = times[rank - 1];
                let told = latency.percentile(percent).unwrap().as_nanos() as u64;
                assert!(exact <= told && told <= exact + exact / 8, "{percent}: {exact}, {told}");
            }
        }
        assert_eq!(Timings::default().snapshot().percentile(50.0), None);
        assert_eq!(Latency::default().mean(), None);
        assert_eq!(Latency::default().longest(), None);
    }

    #[test]
    fn a_span_has_what_was_timed_in_it() {
        let timings = Timings::default();
        (0..1000).for_each(|_| timings.record(1_000_000));
        let earlier = timings.snapshot();
        (0..10).for_each(|_| timings.record(1_000));
        let since = timings.snapshot().since(&earlier);
        assert_eq!(since.count(), 10);
        assert_eq!(since.mean(), Some(Duration::from_nanos(1_000)));
        let p99 = since.percentile(99.0).unwrap().as_nanos();
        assert!((1_000..1_130).contains(&p99), "{p99}");
        assert!(since.longest().unwrap() < Duration::from_micros(2), "not that of all time");
        assert_eq!(timings.snapshot().since(&timings.snapshot()), Latency::default());
    }
}
