//! The record of lookups and of the files that they ask, from which Merlin estimates
//! (`windrow_plan::filter_memory::merlin`).
//!
//! One lookup in a number of them that the policy sets ([`SAMPLE`] by default) is recorded, whole:
//! it gets a number, and every file it asks notes that number and whether it held the key. One rate
//! for everything keeps files comparable. Recorded lookups are spread by the golden ratio over a
//! thread's lookups, so that no period of the workload meets the same residue again and again.
//!
//! Records are kept with the table's handle (`cache/file_record.rs`). Only policies that use
//! estimates switch this on; otherwise a lookup reads one flag.
//!
//! Owns: the sampling. Never does: estimate, or decide.

use super::view::VersionFile;
use crate::cache::file_record::{FileRecord, Query, known_at_birth};
use crate::stats::Counters;
use windrow_env::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use windrow_plan::filter_memory::merlin::{self, Estimate};
use windrow_plan::tree::{File, Version};

/// One read in this many is recorded or timed if no policy says otherwise.
pub(crate) const SAMPLE: u64 = windrow_plan::filter_memory::SAMPLE as u64;

/// 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether a read of this number is one of the few that are recorded.
#[inline]
pub fn is_sampled(number: u64) -> bool {
    is_one_in(number, SAMPLE.trailing_zeros())
}

/// Whether a read of this number is the one in 2^`log2` that is recorded.
#[inline]
fn is_one_in(number: u64, log2: u32) -> bool {
    number.wrapping_mul(GOLDEN).leading_zeros() >= log2
}

/// A recorder's rate for one lookup in `sample`.
fn rate(sample: Option<u32>) -> u32 {
    sample.map_or(0, |sample| sample.max(1).ilog2() + 1)
}

/// The answer of a table to a lookup of a key that its bounds contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The filter said no: no block was read.
    Filtered,
    /// The table holds an entry of the key (a tombstone counts: the filter was right).
    Found,
    /// The table was searched and has no entry of the key.
    Wasted,
}

/// A keyspace's recorder: gives recorded queries their numbers.
#[derive(Debug, Default)]
pub struct Access {
    /// One lookup in 2^(this - 1) is recorded; 0: none is.
    rate: AtomicU32,
    /// Queries recorded since the first file was made: Merlin's D.
    queries: AtomicU64,
    /// D at this open.
    origin: u64,
}

impl Access {
    /// Makes the recorder over the files of `version`, whose statistics say how far the numbers had
    /// come.
    pub fn new(sample: Option<u32>, version: &Version) -> Access {
        let numbers = version.files().filter_map(|(_, _, f)| merlin::decode(&f.statistics));
        let origin = numbers.map(|(_, query)| query).max().unwrap_or(0);
        Access { rate: AtomicU32::new(rate(sample)), queries: AtomicU64::new(origin), origin }
    }

    /// Whether queries are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.rate.load(Ordering::Relaxed) != 0
    }

    /// Records one lookup in `sample` from here on, or none: the policy has changed. Earlier
    /// records stay.
    pub fn set_sample(&self, sample: Option<u32>) {
        self.rate.store(rate(sample), Ordering::Relaxed);
    }

    /// The number of lookups for each that is recorded.
    #[inline]
    pub fn sample(&self) -> f64 {
        f64::from(1u32 << self.rate.load(Ordering::Relaxed).saturating_sub(1))
    }

    /// Queries recorded so far: Merlin's D.
    #[inline]
    pub fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// D at this open.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Notes that a lookup goes past the memtables, for a key of this hash. Returns its number if
    /// it is recorded.
    #[inline]
    pub fn begin(&self, counters: &Counters, hash: u64) -> Query {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return 0;
        }
        // The hash tells lookups of one batch apart, the count those of one key.
        if !is_one_in(counters.here().gets.get().wrapping_add(hash), rate - 1) {
            return 0;
        }
        self.queries.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records that a file answered the lookup.
    #[inline]
    pub(crate) fn answered(&self, file: &VersionFile, answer: Answer, query: Query) {
        if query != 0 {
            self.record(file, answer, query);
        }
    }

    #[cold]
    fn record(&self, file: &VersionFile, answer: Answer, query: Query) {
        let record = file.table.record.get_or_init(|| FileRecord::new(&file.file, self.origin));
        record.add(query, answer == Answer::Found);
    }

    /// Returns Merlin's estimate of a file now; `None` as long as nothing is known of it.
    pub fn estimate(&self, file: &File, record: Option<&FileRecord>) -> Option<Estimate> {
        let now = self.queries();
        let seen = match record {
            Some(record) => record.seen(),
            None => known_at_birth(file, self.origin),
        };
        // No lookup has asked for anything yet: that says nothing of this file.
        let known = seen.older.is_some() || now > self.origin;
        known.then(|| seen.estimate(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::KeyOrder;
    use windrow_env::testing::Rng;
    use windrow_plan::filter_memory::merlin::Observed;

    /// By one thread, the record is equal to the reference's.
    #[test]
    fn a_record_estimates_as_the_reference_does() {
        let mut rng = Rng::new(1);
        for round in 0..50 {
            let birth = Estimate { queries: 40.0, hits: 10.0 };
            let statistics = if round % 2 == 0 { merlin::encode(&birth, 100) } else { Vec::new() };
            let file = File { statistics, ..File::default() };
            let record = FileRecord::new(&file, 50);
            let older = (round % 2 == 0).then_some(birth);
            let mut reference = Observed::new(older, if round % 2 == 0 { 100 } else { 50 });
            let mut query = 100;
            for _ in 0..rng.below(300) {
                query += 1 + rng.below(9);
                let hit = rng.chance(0.3);
                record.add(query, hit);
                reference.record(query, hit);
                let now = query + rng.below(5);
                let (got, want) = (record.seen().estimate(now), reference.estimate(now));
                assert!(
                    (got.queries - want.queries).abs() < 1e-6 * want.queries,
                    "{got:?} {want:?}"
                );
                assert!((got.hits - want.hits).abs() < 1e-6 * want.queries, "{got:?} {want:?}");
            }
        }
    }

    #[test]
    fn one_lookup_in_so_many_is_recorded_whatever_its_period() {
        for sample in [1, 8, 64] {
            let access = Access::new(Some(sample), &Version::empty(KeyOrder::Bytewise));
            let counters = Counters::default();
            let mut recorded = [0u64; 4];
            for lookup in 0..1_000 * sample as usize {
                let key = lookup % 4;
                recorded[key] += u64::from(access.begin(&counters, key as u64 * 12_345) != 0);
                counters.here().gets.add(1);
            }
            assert_eq!(recorded.iter().sum::<u64>(), access.queries());
            for count in recorded {
                assert!((225..275).contains(&count), "one in {sample}: {recorded:?}");
            }
        }
        let off = Access::default();
        assert!((0..1000).all(|hash| off.begin(&Counters::default(), hash) == 0));
        assert_eq!(off.queries(), 0);
    }
}
