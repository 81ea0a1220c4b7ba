//! The highest arrival rate that a store serves.
//!
//! A store that runs flat out borrows from the future: it owes the compactions
//! that it leaves. A rate is sustained if a window of it ends almost without a
//! queue, and the debt at its end is paid soon. Rates are bracketed from a
//! first guess and the bracket is halved. One window by good luck would end the
//! search too high and one by bad luck too low (RocksDB's answer went from
//! 186,000 to 63,000 a second so), so that two of three decide.
//!
//! Owns: the search and the verdict. Never does: run a window.

use super::{OpenLoad, Outcome};
use crate::store::Result;

/// The width of the final bracket: the next higher rate that was tried, and
/// failed, is at most this many times the answer.
const CLOSE: f64 = 1.05;

/// The number of windows that decide about a rate, of three at most.
const WINDOWS: u32 = 2;

/// The number of windows after which a search ends with its best answer.
const MOST: usize = 30;

/// The time that a drain takes however little is owed: it writes a memtable
/// out, and merges level 0, which stores let grow to a few files before they
/// do.
const LAST_MERGE_NS: u64 = 2_000_000_000;

/// One window at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attempt {
    /// Operations sent per second.
    pub(crate) rate_per_s: f64,
    /// The time during which they were sent.
    pub(crate) length_ns: u64,
    /// Operations due and done.
    pub(crate) due: u64,
    pub(crate) done: u64,
    /// The time from the window's end to the last completion: the length of the
    /// queue that was left.
    pub(crate) late_ns: u64,
    /// The time from the last completion until no compaction was due.
    pub(crate) drain_ns: u64,
}

impl Attempt {
    /// Makes an attempt from a window's outcome, and the time that the store
    /// then took to drain.
    pub(crate) fn of(load: OpenLoad, outcome: &Outcome, drain_ns: u64) -> Attempt {
        Attempt {
            rate_per_s: load.rate_per_s,
            length_ns: load.length_ns,
            due: outcome.due,
            done: outcome.done,
            late_ns: outcome.elapsed_ns.saturating_sub(load.length_ns),
            drain_ns,
        }
    }

    /// Returns whether the store served the rate: in full, with a queue of at
    /// most 2 % of the window at its end, and drained within a tenth of it and
    /// the time of the last merge.
    pub(crate) fn held(&self) -> bool {
        self.done == self.due
            && self.late_ns <= self.length_ns / 50
            && self.drain_ns <= self.length_ns / 10 + LAST_MERGE_NS
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sustainable {
    /// The highest rate that held; `None` if none did.
    pub(crate) rate_per_s: Option<f64>,
    /// Every window, in order.
    pub(crate) attempts: Vec<Attempt>,
}

/// Searches from `guess_per_s`, for which the drained throughput of a saturated
/// run is good. `window` sends at a rate and drains.
///
/// # Errors
/// If the guess is no rate, and those of `window`.
pub(crate) fn sustainable(
    guess_per_s: f64,
    mut window: impl FnMut(f64) -> Result<Attempt>,
) -> Result<Sustainable> {
    if !guess_per_s.is_finite() || guess_per_s <= 0.0 {
        return Err(format!("{guess_per_s} operations per second is no rate to start from").into());
    }
    let mut attempts = Vec::new();
    let (mut held, mut failed, mut rate, mut stride) = (None, None, guess_per_s, 1.25);
    while attempts.len() < MOST {
        let (mut good, mut bad) = (0, 0);
        while good < WINDOWS && bad < WINDOWS {
            let attempt = window(rate)?;
            attempts.push(attempt);
            *(if attempt.held() { &mut good } else { &mut bad }) += 1;
        }
        let holds = good == WINDOWS;
        *(if holds { &mut held } else { &mut failed }) = Some(rate);
        rate = match (held, failed) {
            (Some(low), Some(high)) if high <= low * CLOSE => break,
            // Half-way by ratio.
            (Some(low), Some(high)) => f64::sqrt(low * high),
            (Some(low), None) => low * stride,
            (None, high) => high.unwrap_or(rate) / stride,
        };
        // The stride grows while there is no bracket: the guess was far off.
        stride = (stride * stride).min(4.0);
    }
    Ok(Sustainable { rate_per_s: held, attempts })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_NS: u64 = 10_000_000_000;

    /// Returns a window that holds or does not.
    fn window(rate_per_s: f64, holds: bool) -> Attempt {
        let done = if holds { 1000 } else { 999 };
        Attempt { rate_per_s, length_ns: LENGTH_NS, due: 1000, done, late_ns: 0, drain_ns: 0 }
    }

    #[test]
    fn a_capacity_is_found_from_any_guess() {
        for guess in [10.0, 90.0, 104.0, 1000.0, 1e5] {
            for capacity in [80.0, 100.0, 104.5, 2000.0] {
                let found = sustainable(guess, |rate| Ok(window(rate, rate <= capacity))).unwrap();
                let rate = found.rate_per_s.unwrap();
                assert!(rate <= capacity && capacity <= rate * CLOSE, "{guess} {capacity} {rate}");
                assert!(found.attempts.len() < MOST, "{guess} {capacity}: {:?}", found.attempts);
            }
        }
    }

    #[test]
    fn one_lucky_window_is_not_enough() {
        let mut tried = Vec::new();
        let found = sustainable(100.0, |rate| {
            // A rate up to 130 holds the first time, one up to 100 always.
            let lucky = rate <= 130.0 && !tried.contains(&rate.to_bits());
            tried.push(rate.to_bits());
            Ok(window(rate, rate <= 100.0 || lucky))
        });
        let rate = found.unwrap().rate_per_s.unwrap();
        assert!((95.0..=100.0).contains(&rate), "{rate}");
    }

    #[test]
    fn one_unlucky_window_does_not_end_a_rate() {
        let mut sent = 0;
        let found = sustainable(100.0, |rate| {
            sent += 1;
            // Every third window fails without a cause.
            Ok(window(rate, rate <= 120.0 && sent % 3 != 0))
        });
        let rate = found.unwrap().rate_per_s.unwrap();
        assert!((120.0 / CLOSE..=120.0).contains(&rate), "{rate}");
    }

    #[test]
    fn what_never_holds_has_no_rate() {
        let found = sustainable(100.0, |rate| Ok(window(rate, false))).unwrap();
        assert_eq!((found.rate_per_s, found.attempts.len()), (None, MOST));
        assert!(found.attempts.is_sorted_by(|a, b| a.rate_per_s >= b.rate_per_s));
    }

    #[test]
    fn what_always_holds_ends_too() {
        let found = sustainable(1.0, |rate| Ok(window(rate, true))).unwrap();
        assert_eq!(found.attempts.len(), MOST);
        assert_eq!(found.rate_per_s, found.attempts.last().map(|a| a.rate_per_s));
    }

    #[test]
    fn errors_end_the_search() {
        assert!(sustainable(100.0, |_| Err("broken".into())).is_err());
        for guess in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(sustainable(guess, |rate| Ok(window(rate, true))).is_err());
        }
    }

    #[test]
    fn a_window_holds_within_its_bounds() {
        let good = window(1.0, true);
        assert!(good.held());
        assert!(Attempt { late_ns: 200_000_000, drain_ns: 3_000_000_000, ..good }.held());
        assert!(!Attempt { late_ns: 200_000_001, ..good }.held());
        assert!(!Attempt { drain_ns: 3_000_000_001, ..good }.held());
        assert!(!Attempt { done: 999, ..good }.held());
        // A short window has as much time as a long one for its last merge.
        let short = Attempt { length_ns: LENGTH_NS / 10, ..good };
        assert!(Attempt { drain_ns: LAST_MERGE_NS + 100_000_000, ..short }.held());
        assert!(!Attempt { drain_ns: LAST_MERGE_NS + 100_000_001, ..short }.held());
    }
}
