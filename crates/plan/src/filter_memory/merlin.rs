//! Merlin: how often each file is asked, and how often in vain.
//!
//! Pure arithmetic on the engine's records. A *query* is a lookup that goes past the memtables;
//! queries are numbered from 1 on by a counter D of the keyspace. A file remembers its last
//! [`WINDOW`] queries by number, each with whether the file held an entry of the key (a *hit*; a
//! tombstone is one: the filter was right to let the query through), and of all earlier ones their
//! counts. The estimate mixes the two ages, so that it follows a workload that changes and does not
//! forget (Mnemosyne, section 4.2.1).
//!
//! A merge's output was never asked; its counts are inherited ([`propagate`], section 4.2.2). All
//! counts speak of the queries since number 0, whenever the file was made: that makes files of any
//! age comparable.
//!
//! Three things differ from the paper. Intervals are measured up to now and not up to the file's
//! last query, or a file that is no longer asked would keep its estimate for ever. A window that is
//! not full counts in proportion to the queries it has seen. Everything is in floating point.
//!
//! Owns: the estimate, its inheritance by a merge's outputs, and its bytes. Never does: record a
//! lookup; the engine does.

use crate::tree::Place;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use windrow_base::coding::{Decoder, put_varint};
use windrow_base::debug_invariant;

/// Queries that a file remembers one by one.
pub const WINDOW: usize = 64;

/// Weight of a full window against the queries before it (the paper's beta).
pub const BETA: f64 = 0.5;

/// By how much the counts of upper files must exceed what the deeper ones
/// explain before the difference is taken for queries that passed those by
/// (the paper's corner cases), and not for noise: twice the error of a window.
const EXCESS: f64 = 1.25;

/// Estimated queries of a file since query 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Queries that reach the file, the paper's q.
    pub queries: f64,
    /// Of them, those that find an entry there, the paper's x.
    pub hits: f64,
}

impl Estimate {
    /// Queries that find nothing, the paper's z.
    pub fn empty(&self) -> f64 {
        (self.queries - self.hits).max(0.0)
    }

    /// Returns the estimate times `share`.
    pub fn scaled(self, share: f64) -> Estimate {
        Estimate { queries: self.queries * share, hits: self.hits * share }
    }

    fn plus(self, other: Estimate) -> Estimate {
        Estimate { queries: self.queries + other.queries, hits: self.hits + other.hits }
    }
}

/// Sums over the queries that are known of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Counts of the queries up to `since`, inherited ones included: the
    /// paper's q' and x'. `None` if nothing is known of that time.
    pub older: Option<Estimate>,
    /// The query number up to which `older` speaks: when the file was made, or
    /// the oldest query of a window that has let some go.
    pub since: u64,
    /// Whether `since` is the first query of the window.
    pub rolls: bool,
    /// Queries and hits in the window.
    pub recent: Estimate,
}

impl Seen {
    /// Returns the estimate at query `now`. With w queries in the window, the oldest at D_w:
    ///
    /// `interval = beta (now - D_w) / w + (1 - beta) D_w / (q' + 1)`,
    /// `q = now / interval`, and x of q in the same mixture of ratios.
    pub fn estimate(&self, now: u64) -> Estimate {
        let now = now.max(self.since) as f64;
        let since = self.since as f64;
        let Estimate { queries: seen, hits } = self.recent;
        let elapsed = now - since;
        debug_invariant!(F3, elapsed >= 0.0, "query {now} is before {since}");
        debug_invariant!(F3, hits <= seen, "{hits} hits of {seen} queries in a window");
        // A window that rolls begins with a query, another one with none.
        let intervals = if self.rolls { seen } else { seen + 1.0 };
        let Some(older) = self.older.filter(|_| since > 0.0) else {
            // Up to `since` as after it.
            let queries = if elapsed > 0.0 { seen * now / elapsed } else { seen };
            let ratio = if seen > 0.0 { hits / seen } else { 0.0 };
            debug_invariant!(F3, queries >= seen, "{queries} queries, and {seen} were seen");
            return Estimate { queries, hits: queries * ratio };
        };
        let recent_interval = elapsed / intervals.max(1.0);
        let older_interval = since / (older.queries + 1.0);
        // An idle file's window is filled by the queries that did not come.
        let weight = BETA * (seen.max(elapsed / older_interval) / WINDOW as f64).min(1.0);
        debug_invariant!(F3, (0.0..=BETA).contains(&weight), "a window weighs {weight}");
        let interval = weight * recent_interval + (1.0 - weight) * older_interval;
        let queries = now / interval;
        debug_invariant!(F3, queries >= 0.0, "{queries} queries at {now}, one each {interval}");
        let older_ratio = (older.hits / older.queries.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let ratio = match (seen > 0.0, older.queries > 0.0) {
            (true, true) => weight * hits / seen + (1.0 - weight) * older_ratio,
            (true, false) => hits / seen,
            (false, _) => older_ratio,
        };
        debug_invariant!(F3, (0.0..=1.0).contains(&ratio), "{ratio} of the queries are hits");
        Estimate { queries, hits: queries * ratio }
    }
}

/// A file's record as one thread keeps it: the reference for simulations. (The engine's is made of
/// atomics, and loses a query now and then.)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    seen: Seen,
    recent: VecDeque<(u64, bool)>,
}

impl Observed {
    /// Begins with nothing seen of a file made at query `since`.
    pub fn new(older: Option<Estimate>, since: u64) -> Observed {
        Observed { seen: Seen { older, since, ..Seen::default() }, recent: VecDeque::new() }
    }

    /// Takes a query in; `query` is larger than every one before.
    pub fn record(&mut self, query: u64, hit: bool) {
        let one = |hit| Estimate { queries: 1.0, hits: f64::from(u8::from(hit)) };
        let last = self.recent.back().map_or(0, |last| last.0);
        debug_invariant!(F3, query > last || last == 0, "query {query} after {last}");
        let seen = &mut self.seen;
        if self.recent.len() == WINDOW
            && let Some((_, hit)) = self.recent.pop_front()
        {
            seen.older = Some(seen.older.unwrap_or_default().plus(one(hit)));
            seen.recent = seen.recent.plus(one(hit).scaled(-1.0));
            seen.rolls = true;
            seen.since = self.recent.front().map_or(query, |oldest| oldest.0);
        }
        self.recent.push_back((query, hit));
        debug_invariant!(
            F3,
            self.recent.len() <= WINDOW,
            "a window of {} queries",
            self.recent.len()
        );
        seen.recent = seen.recent.plus(one(hit));
        let (count, sum) = (self.recent.len() as f64, seen.recent.queries);
        debug_invariant!(F3, count == sum, "a window of {count} queries is counted as {sum}");
    }

    /// Returns the estimate at query `now`; see [`Seen::estimate`].
    pub fn estimate(&self, now: u64) -> Estimate {
        self.seen.estimate(now)
    }
}

/// The statistics of an input file, for one output of a merge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputStatistics {
    /// The input's place in read order.
    pub place: Place,
    /// Share of its entries that lie in the output's range, 0 to 1: alpha.
    pub share: f64,
    /// Its estimate.
    pub estimate: Estimate,
}

/// Returns the estimate of a merge's output, propagated from its inputs (Eq. 13).
///
/// From the deepest place up, `q = q_deeper + x` and `x` adds: queries that an upper file got in
/// vain, the deeper one got too. Where the upper one got clearly more than that explains, the
/// excess passed the deeper files by (a gap, or beyond their ends: the paper's three corner cases),
/// and adds. The deepest place that covers the range gives its own q. Files of SST-logs and of
/// level 0 are upper ones like others.
///
/// The paper has the upper one's q whole in a corner case. So noise that came
/// to the threshold gave a file whose queries are all hits a fifth of them as
/// queries in vain, some files at every merge. Which ones depended on the jobs that
/// ran concurrently.
pub fn propagate(inputs: &[InputStatistics]) -> Estimate {
    let mut order: Vec<&InputStatistics> =
        inputs.iter().filter(|input| input.share > 0.0).collect();
    order.sort_by_key(|input| core::cmp::Reverse(input.place));
    let odd = inputs.iter().map(|input| input.share).find(|share| !(0.0..=1.0).contains(share));
    debug_invariant!(F3, odd.is_none(), "an input gives {odd:?} of its queries");
    let mut deeper: Option<Estimate> = None;
    for group in order.chunk_by(|a, b| a.place == b.place) {
        let here = group
            .iter()
            .fold(Estimate::default(), |sum, input| sum.plus(input.estimate.scaled(input.share)));
        let Estimate { queries, hits } = here;
        debug_invariant!(F3, queries >= 0.0 && hits >= 0.0, "{hits} hits of {queries} queries");
        deeper = Some(deeper.map_or(here, |deeper| {
            let explained = deeper.queries + here.hits;
            let beyond = (here.queries - EXCESS * explained).max(0.0);
            Estimate { queries: explained + beyond, hits: deeper.hits + here.hits }
        }));
    }
    deeper.unwrap_or_default()
}

const VERSION: u8 = 1;

/// Encodes an estimate made at query `now`, for `File::statistics`.
pub fn encode(estimate: &Estimate, now: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(20);
    out.push(VERSION);
    put_varint(&mut out, now);
    out.extend_from_slice(&(estimate.queries as f32).to_bits().to_le_bytes());
    out.extend_from_slice(&(estimate.hits as f32).to_bits().to_le_bytes());
    out
}

/// Decodes the estimate in `File::statistics` and the query number it was made at. `None` for any
/// bytes that are not one: statistics are never worth an error.
pub fn decode(bytes: &[u8]) -> Option<(Estimate, u64)> {
    let mut decoder = Decoder::new(bytes);
    if decoder.u8().ok()? != VERSION {
        return None;
    }
    let now = decoder.varint().ok()?;
    let mut number = || decoder.u32().ok().map(|bits| f64::from(f32::from_bits(bits)));
    let (queries, hits) = (number()?, number()?);
    let sane = queries.is_finite() && 0.0 <= hits && hits <= queries * 1.001;
    (sane && decoder.is_empty()).then_some((Estimate { queries, hits: hits.min(queries) }, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn near(got: f64, want: f64, within: f64) {
        assert!((got / want - 1.0).abs() < within, "{got} not {want}");
    }

    #[test]
    fn a_steady_file_is_estimated_at_its_rate() {
        let mut file = Observed::new(None, 0);
        for query in 1..=10_000u64 {
            if query % 5 == 0 {
                file.record(query, query % 20 == 0);
            }
            if query % 997 == 0 && query > 1000 {
                let got = file.estimate(query);
                near(got.queries, query as f64 / 5.0, 0.05);
                near(got.hits, got.queries / 4.0, 0.05);
                near(got.empty(), got.queries * 0.75, 0.05);
            }
        }
    }

    #[test]
    fn an_idle_file_ages_and_a_busy_one_rises() {
        let half = Estimate { queries: 500.0, hits: 100.0 };
        let mut idle = Observed::new(Some(half), 1000);
        near(idle.estimate(1000).queries, 500.0, 0.01);
        let later = [1010, 1100, 2000, 10_000].map(|now| idle.estimate(now).queries / now as f64);
        assert!(later.windows(2).all(|w| w[1] < w[0]), "{later:?}");
        // Only the share of the old part is left of it.
        assert!(idle.estimate(1_000_000).queries < 10.0);
        (1001..=1064).for_each(|query| idle.record(query, true));
        assert!(idle.estimate(1064).queries > 650.0);
        assert!(idle.estimate(1064).hits > 400.0);
    }

    #[test]
    fn a_window_without_history_stands_for_all_time() {
        let mut file = Observed::new(None, 900);
        assert_eq!(file.estimate(900), Estimate::default());
        (901..=910).for_each(|query| file.record(query, query % 2 == 0));
        near(file.estimate(1000).queries, 100.0, 1e-9);
        near(file.estimate(1000).hits, 50.0, 1e-9);
        // Statistics of a later time than the counter's do no harm.
        assert!(Observed::new(Some(Estimate::default()), 50).estimate(3).queries <= 1.0);
    }

    fn input(place: Place, share: f64, queries: f64, hits: f64) -> InputStatistics {
        InputStatistics { place, share, estimate: Estimate { queries, hits } }
    }

    #[test]
    fn propagation_counts_each_query_once() {
        let (upper, deep) = (Place::run(1), Place::run(2));
        // The example of the paper's figure 8: x above, q below.
        let got = propagate(&[input(upper, 0.5, 80.0, 20.0), input(deep, 1.0, 60.0, 30.0)]);
        assert_eq!(got, Estimate { queries: 70.0, hits: 40.0 });
        // Two of one place add up.
        let two = [input(deep, 0.5, 60.0, 30.0), input(deep, 1.0, 10.0, 4.0)];
        assert_eq!(propagate(&two), Estimate { queries: 40.0, hits: 19.0 });
        // Nothing deeper, or little of it: the corner cases.
        assert_eq!(propagate(&[input(upper, 1.0, 80.0, 20.0)]).queries, 80.0);
        let gap = [input(upper, 1.0, 80.0, 20.0), input(deep, 1.0, 10.0, 5.0)];
        assert_eq!(propagate(&gap), Estimate { queries: 72.5, hits: 25.0 });
        // A file that finds all but a few stays so: noise of an eighth above is none below.
        let noisy = [input(upper, 1.0, 115.0, 10.0), input(deep, 1.0, 92.0, 91.0)];
        assert_eq!(propagate(&noisy), Estimate { queries: 102.0, hits: 101.0 });
        let more = [input(upper, 1.0, 128.0, 10.0), input(deep, 1.0, 92.0, 91.0)];
        assert!(propagate(&more).empty() < 2.0, "at the threshold: {:?}", propagate(&more));
        // Level 0: the oldest epoch is the deepest of those.
        let epochs = [
            input(Place::sst_log(0, 7), 1.0, 100.0, 10.0),
            input(Place::sst_log(0, 6), 1.0, 90.0, 20.0),
            input(Place::run(1), 1.0, 70.0, 30.0),
        ];
        assert_eq!(propagate(&epochs), Estimate { queries: 100.0, hits: 60.0 });
        assert_eq!(propagate(&[]), Estimate::default());
    }

    #[test]
    fn statistics_round_trip_and_bad_bytes_are_none() {
        let estimate = Estimate { queries: 1234.5, hits: 99.25 };
        let bytes = encode(&estimate, 1 << 40);
        assert_eq!(decode(&bytes), Some((estimate, 1 << 40)));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None);
        }
        let with = |at: usize, value: u8| {
            let mut bad = bytes.clone();
            bad[at] = value;
            bad
        };
        assert_eq!(decode(&with(0, 9)), None);
        // Not a number; negative.
        let nan = encode(&Estimate { queries: f64::NAN, hits: 0.0 }, 1);
        let negative = encode(&Estimate { queries: 1.0, hits: -1.0 }, 1);
        assert_eq!((decode(&nan), decode(&negative)), (None, None));
        let mut longer = vec![0];
        longer.splice(0..0, bytes.clone());
        assert_eq!(decode(&longer), None);
    }
}
