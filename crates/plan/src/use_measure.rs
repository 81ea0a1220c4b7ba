//! `use=measured`: the use of a keyspace, found from its reads and writes.
//!
//! The dial's price is the number of bytes that may be rewritten, per byte put, so that one file
//! less lies over a point (`dial.rs`). Reads would pay this for it: the time that one more file
//! over every point would have cost them, as bytes that could be merged in that time, over the
//! bytes put meanwhile. The use whose price is nearest (by ratio) is taken.
//!
//! *Hysteresis.* Measurements count half as much after each memtable. The use changes only where
//! the price is beyond the middle between two uses by a factor of 1.4, at most once a minute, and
//! not before four memtables were written: trees need as many to follow. A long time of reads alone
//! counts as no more than 32 times the bytes of its flush, so that writes that begin again are not
//! priced by it for long.
//!
//! Nothing is stored: after an open a keyspace is `balanced` until enough is measured.
//!
//! Owns: the sums, and the use that they come to. Never does: count, or read a clock.

use crate::usage::Use;
use core::fmt;
use windrow_base::debug_invariant;

/// How far beyond the middle of two prices the measured one must be, as a ratio.
const MARGIN: f64 = 1.4;
/// Fewest ms between two changes.
const PAUSE_MS: u64 = 60_000;
/// Fewest memtables written between two changes.
const MEMTABLES_MIN: f64 = 4.0;
/// Reads of one flush cost at most this multiple of its bytes.
const READS_MAX: f64 = 32.0;

/// The measurements of a keyspace's reads and writes, and the use that they give.
#[derive(Clone, Debug, PartialEq)]
pub struct UseMeasure {
    usage: Use,
    /// Bytes that one more file over every point would have cost reads, lately.
    read_bytes: f64,
    /// Bytes put, lately.
    put_bytes: f64,
    /// Memtables written since the use changed.
    memtables: f64,
    /// When it changed, in ms of the clock that flushes are told.
    changed_ms: Option<u64>,
}

impl Default for UseMeasure {
    fn default() -> UseMeasure {
        UseMeasure {
            usage: Use::default(),
            read_bytes: 0.0,
            put_bytes: 0.0,
            memtables: 0.0,
            changed_ms: None,
        }
    }
}

impl UseMeasure {
    /// The use now.
    pub fn usage(&self) -> Use {
        self.usage
    }

    /// Bytes that one more file over a point costs reads, for each byte put.
    pub fn price(&self) -> f64 {
        self.read_bytes / self.put_bytes.max(1.0)
    }

    /// Adds a flush of `put_bytes`, a memtable being `memtable_bytes`; meanwhile one more file over
    /// every point would have cost reads `read_bytes`. `now_ms` is of any clock that goes forward
    /// only. Returns the new use, if it changes.
    pub fn flushed(
        &mut self,
        put_bytes: u64,
        read_bytes: u64,
        memtable_bytes: u64,
        now_ms: u64,
    ) -> Option<Use> {
        let put = put_bytes as f64;
        let memtables = put / memtable_bytes.max(1) as f64;
        let kept = libm::exp2(-memtables);
        debug_invariant!(S1, (0.0..=1.0).contains(&kept), "{kept} of what was measured counts");
        self.read_bytes = self.read_bytes * kept + (read_bytes as f64).min(put * READS_MAX);
        self.put_bytes = self.put_bytes * kept + put;
        self.memtables += memtables;
        let paused = self.changed_ms.is_some_and(|at| now_ms.saturating_sub(at) < PAUSE_MS);
        if paused || self.memtables < MEMTABLES_MIN {
            return None;
        }
        let found = self.nearest();
        if found == self.usage {
            return None;
        }
        self.usage = found;
        self.memtables = 0.0;
        self.changed_ms = Some(now_ms);
        Some(found)
    }

    /// Returns the use whose price is nearest, if the present one's is further by the margin.
    fn nearest(&self) -> Use {
        let price = self.price().max(f64::MIN_POSITIVE);
        let away = |usage: Use| {
            let of = f64::from(usage.file_price_percent()) / 100.0;
            if price > of { price / of } else { of / price }
        };
        let fixed = [Use::Writes, Use::Balanced, Use::Reads];
        let best = fixed.into_iter().min_by(|&a, &b| away(a).total_cmp(&away(b)));
        // At the middle of two prices both are as far; each step beyond counts on both sides.
        best.filter(|&best| away(self.usage) > away(best) * MARGIN * MARGIN).unwrap_or(self.usage)
    }
}

impl fmt::Display for UseMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.put_bytes == 0.0 {
            return write!(f, "{} until something is measured", self.usage);
        }
        write!(
            f,
            "{}: a file over a point costs reads {:.2} bytes for each byte put",
            self.usage,
            self.price()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MEMTABLE: u64 = 1 << 20;

    /// Adds flushes at ten a minute, with reads that cost this much per byte put. Returns the
    /// changes.
    fn run(
        measured: &mut UseMeasure,
        at: &mut u64,
        flushes: u64,
        price: impl Fn(u64) -> f64,
    ) -> Vec<Use> {
        let mut changes = Vec::new();
        for n in 0..flushes {
            *at += 6_000;
            let reads = (MEMTABLE as f64 * price(n)) as u64;
            changes.extend(measured.flushed(MEMTABLE, reads, MEMTABLE, *at));
        }
        changes
    }

    #[test]
    fn the_use_follows_a_mix_that_shifts_and_changes_once_for_each() {
        let (mut measured, mut at) = (UseMeasure::default(), 1_000_000);
        assert_eq!(run(&mut measured, &mut at, 100, |_| 1.0), []);
        assert_eq!(run(&mut measured, &mut at, 100, |_| 0.0), [Use::Writes]);
        assert_eq!(run(&mut measured, &mut at, 100, |_| 1.0), [Use::Balanced]);
        assert_eq!(run(&mut measured, &mut at, 100, |_| 50.0), [Use::Reads]);
        let changes = run(&mut measured, &mut at, 100, |_| 0.0);
        assert_eq!(changes.last(), Some(&Use::Writes));
        assert!(changes.len() <= 2, "{changes:?}");
    }

    #[test]
    fn a_price_between_two_uses_does_not_flap() {
        for middle in [0.45, 2.8] {
            let (mut measured, mut at) = (UseMeasure::default(), 0);
            let mix = |n: u64| middle * if n.is_multiple_of(2) { 0.7 } else { 1.3 };
            assert_eq!(run(&mut measured, &mut at, 1_000, mix), [], "{middle}");
        }
        // Stretches of half a minute at either end: no change within a minute of another.
        let (mut measured, mut at) = (UseMeasure::default(), 0);
        let ends = |n: u64| if (n / 5).is_multiple_of(2) { 0.0 } else { 30.0 };
        let changes = run(&mut measured, &mut at, 1_000, ends);
        assert!(changes.len() <= 100, "{} changes in 100 minutes", changes.len());
    }

    #[test]
    fn reads_alone_are_forgotten_after_some_memtables_and_small_flushes_change_nothing() {
        let (mut measured, mut at) = (UseMeasure::default(), 0);
        // A night of reads, then writes.
        measured.flushed(MEMTABLE, 1 << 50, MEMTABLE, at);
        let changes = run(&mut measured, &mut at, 20, |_| 0.0);
        assert_eq!(changes.last(), Some(&Use::Writes), "{measured}");
        let mut small = UseMeasure::default();
        for n in 0..1_000 {
            assert_eq!(small.flushed(100, 1 << 40, MEMTABLE, n * 60_000), None);
        }
    }
}
