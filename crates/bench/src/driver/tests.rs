//! The drivers on stores whose times are known, under a clock that only sleeping moves: their
//! reports are compared with arithmetic.
//!
//! Virtual time is for one client: several would all move one clock. The parts that several clients
//! share are tested by counts.
//!
//! Owns: the virtual clock and the stub workers. Never does: assert a real time.
//! several clients share is tested by counts.

use super::*;
use crate::latency::Latencies;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::env::{Clock, OsClock};

const US: u64 = 1000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A clock that only sleeping and work move.
#[derive(Clone, Default)]
struct Virtual(Arc<AtomicU64>);

impl Virtual {
    /// Does not begin at zero: intended starts count from where the run begins.
    fn new() -> Virtual {
        Virtual(Arc::new(AtomicU64::new(5 * S)))
    }
}

impl Clock for Virtual {
    fn wall_ms(&self) -> u64 {
        self.monotonic_ns() / MS
    }
    fn monotonic_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_ns(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }
}

/// A worker whose operation takes the time that this function of its number and its start returns.
struct Stub<F>(Virtual, F);

impl<F: Fn(u64, u64) -> u64 + Send> Worker for Stub<F> {
    fn run(&mut self, number: u64) -> Result<Kind> {
        self.0.sleep_ns((self.1)(number, self.0.monotonic_ns() - 5 * S));
        Ok(if number.is_multiple_of(2) { Kind::Put } else { Kind::Get })
    }
}

/// Returns 0.1 ms an operation. In the last second of every ten the store stalls, and the
/// operations of that second wait for its end first.
fn stalling(_: u64, now_ns: u64) -> u64 {
    let within_ns = now_ns % (10 * S);
    let waited_ns = if 9 * S <= within_ns { 10 * S - within_ns } else { 0 };
    waited_ns + 100 * US
}

fn opened(rate_per_s: f64, length_ns: u64, takes: impl Fn(u64, u64) -> u64 + Send) -> Outcome {
    let clock = Virtual::new();
    let mut workers = [Stub(clock.clone(), takes)];
    open(&clock, OpenLoad { rate_per_s, length_ns }, &mut workers).unwrap()
}

/// The time function of a stub that never runs.
type Never = fn(u64, u64) -> u64;

/// Returns no concurrent clients.
fn alone() -> [ConcurrentClient<Stub<Never>>; 0] {
    []
}

/// Compares within the histogram's buckets, which are 0.1 % wide.
#[track_caller]
fn near_ms(us: f64, ms: f64) {
    assert!((us / 1000.0 / ms - 1.0).abs() <= 0.001, "{us} us for {ms} ms");
}

fn all(outcome: &Outcome) -> Latencies {
    outcome.latencies.all().unwrap()
}

/// 1000 operations a second for 100 s; ten of these are stalls. Counted from the start of a stall,
/// operation i is due at i ms. It is done as the i-th after the stall, at 1000 + 0.1 (i + 1) ms:
/// its latency is 1000.1 - 0.9 i ms, down to the 0.1 ms of all others where i reaches 1111. The
/// stall that ends the run has 1000 such operations, the nine before it 1112, so that 100,000
/// sorted latencies begin, from the longest, with ten of each i below 1000. The 99th percentile is
/// exceeded by 1000 operations, those with i < 100, and is the latency of i = 100: 1000.1 - 90 =
/// 910.1 ms. The 99.9th is exceeded by 100: i = 10, 991.1 ms. The 90th, exceeded by 10,000, is the
/// first of the nine stalls' latencies from i = 1000 on: 100.1 ms.
#[test]
fn the_open_loop_reports_what_a_stall_costs() {
    let outcome = opened(1000.0, 100 * S, stalling);
    assert_eq!((outcome.done, outcome.due), (100_000, 100_000));
    let latencies = all(&outcome);
    near_ms(latencies.quantile_us(0.5), 0.1);
    near_ms(latencies.quantile_us(0.9), 100.1);
    near_ms(latencies.quantile_us(0.99), 910.1);
    near_ms(latencies.quantile_us(0.999), 991.1);
    near_ms(latencies.quantile_us(1.0), 1000.1);
    // 1000 + 9 * 1112 operations were late; i = 1111 by 0.1 ms.
    assert_eq!(latencies.above_us(150.0), 11_008);
    // The last of the run is i = 999 of the last stall.
    assert_eq!(outcome.elapsed_ns, 100 * S + 100 * MS);
    // Nothing completes from the operation before the stall, at 8999.1 ms, to 10,000.1; an
    // operation has been due from 9000 on.
    assert_eq!(outcome.longest_gap_ns, 1000 * MS + 100 * US);
    assert_eq!(outcome.stalled_ns, 10 * S);
    // One second without completions, then the missed operations with those that were due.
    assert_eq!(outcome.steps[7..12], [1000, 1000, 0, 2000, 1000]);
}

/// 50,000 a second come as fifty each millisecond, of 10 us each. The first of a group is done 10
/// us after it came and the last after 500. Every rank has 1 in 50 of the operations: the median is
/// that of the 25th.
#[test]
fn high_rates_arrive_in_groups_of_a_millisecond() {
    let outcome = opened(50_000.0, S, |_, _| 10 * US);
    assert_eq!((outcome.done, outcome.due), (50_000, 50_000));
    let latencies = all(&outcome);
    near_ms(latencies.quantile_us(0.02), 0.01);
    near_ms(latencies.quantile_us(0.5), 0.25);
    near_ms(latencies.quantile_us(1.0), 0.5);
    assert_eq!(outcome.elapsed_ns, 999 * MS + 500 * US);
    assert_eq!(outcome.stalled_ns, 0);
}

/// The store of the open loop's test. A client that waits sends 10 operations a millisecond while
/// the store is well, and one for each stall: 90,000 are done from the start of a stall to the
/// start of the next. Of 900,001 ten are slow: the 99.99th percentile is that of a store without
/// stalls, for users who saw one in ten of their requests wait for half a second.
#[test]
fn the_closed_loop_does_not_see_it() {
    let clock = Virtual::new();
    let mut workers = [Stub(clock.clone(), stalling)];
    let outcome = closed(&clock, 900_001, &mut workers, &mut alone()).unwrap();
    let latencies = all(&outcome);
    for quantile in [0.5, 0.99, 0.999, 0.9999] {
        near_ms(latencies.quantile_us(quantile), 0.1);
    }
    near_ms(latencies.quantile_us(1.0), 1000.1);
    assert_eq!(latencies.above_us(150.0), 10);
    // Each of the ten stalls follows full seconds; the timeline does show them.
    assert_eq!(outcome.elapsed_ns, 100 * S + 100 * US);
    assert_eq!(outcome.longest_gap_ns, 1000 * MS + 100 * US);
    // The operation before a stall completes as the stall begins, in its first slot.
    assert_eq!(outcome.stalled_ns, 10 * 990 * MS);
    assert_eq!((outcome.steps[9], outcome.steps[19], outcome.step_ns), (1, 1, S));
    assert!(outcome.steps[10..19].iter().all(|done| 9999 <= *done));
}

#[test]
fn what_keeps_up_has_its_service_time() {
    let outcome = opened(100.0, S, |_, _| MS);
    assert_eq!((outcome.done, outcome.due), (100, 100));
    let counts: Vec<_> = outcome.latencies.iter().map(|(kind, l)| (kind, l.count())).collect();
    assert_eq!(counts, [(Kind::Put, 50), (Kind::Get, 50)]);
    near_ms(all(&outcome).quantile_us(1.0), 1.0);
    // The last begins at 990 ms. Idle time between two operations is no gap.
    assert_eq!(outcome.elapsed_ns, 991 * MS);
    assert_eq!((outcome.stalled_ns, outcome.longest_gap_ns), (0, MS));
}

#[test]
fn a_pause_is_felt_by_all_that_were_due_in_it() {
    // 500 a second, 1 ms each; operation 10 (due at 20 ms) takes 101 ms.
    // The others were due every 2 ms and go at 1 ms apiece: operation
    // 10 + i completes 101 + i ms after 20 ms, due 2 i after: 101 - i late.
    let outcome = opened(500.0, S, |number, _| if number == 10 { 101 * MS } else { MS });
    let of = |kind| outcome.latencies.get(kind).unwrap();
    near_ms(of(Kind::Put).quantile_us(1.0), 101.0);
    near_ms(of(Kind::Get).quantile_us(1.0), 100.0);
    // i = 1..=100 more were late: 110 of 500, with 101 above 1 ms.
    assert_eq!(all(&outcome).above_us(1500.0), 100);
    // Nothing completed from 19 to 121 ms: slots 2 to 11 are empty.
    assert_eq!((outcome.stalled_ns, outcome.longest_gap_ns), (100 * MS, 101 * MS));
}

#[test]
fn what_cannot_keep_up_is_given_up() {
    // 4,000 a second of 1 ms each on one thread: a quarter of them is done.
    let outcome = opened(4000.0, 100 * MS, |_, _| MS);
    // The one that ends at three times the length no longer counts. The last before it is number
    // 298, of the group that came at 296 / 4 ms.
    assert_eq!((outcome.due, outcome.done), (400, 299));
    near_ms(all(&outcome).quantile_us(1.0), 299.0 - 296.0 / 4.0);
    assert_eq!(outcome.elapsed_ns, 300 * MS);
    // An operation that does not return is not done, but is a stall.
    let outcome = opened(100.0, 100 * MS, |number, _| if number == 2 { 5 * S } else { MS });
    assert_eq!((outcome.due, outcome.done, outcome.elapsed_ns), (10, 2, 5020 * MS));
    assert_eq!((outcome.longest_gap_ns, outcome.stalled_ns), (5 * S, 5 * S));
}

#[test]
fn saturation_counts_what_fits() {
    let clock = Virtual::new();
    let takes = |number, _| if number == 3 { 51 * MS } else { MS };
    let outcome = saturate(&clock, 100 * MS, &mut [Stub(clock.clone(), takes)]).unwrap();
    assert_eq!((outcome.done, outcome.due, outcome.elapsed_ns), (50, 50, 100 * MS));
    assert_eq!(outcome.done as f64 * 1e9 / outcome.elapsed_ns as f64, 500.0);
    near_ms(all(&outcome).quantile_us(1.0), 51.0);
    assert_eq!(outcome.timeline().longest_gap_ms, 51.0);
}

#[test]
fn a_load_of_so_many_operations_sends_as_many() {
    for (ops, rate_per_s) in [(1, 3.0), (1000, 333.3), (100, 98_314.7), (777, 530_693.1)] {
        let OpenLoad { length_ns, .. } = OpenLoad::of_ops(ops, rate_per_s);
        let outcome = opened(rate_per_s, length_ns, |_, _| 1);
        assert_eq!((outcome.due, outcome.done), (ops, ops), "{rate_per_s}");
    }
}

#[test]
fn the_sustainable_rate_is_near_the_capacity() {
    // 1 ms each: a window of a second may end 20 ms late, so 2 % more holds.
    let found = sustainable(3000.0, |rate_per_s| {
        let load = OpenLoad { rate_per_s, length_ns: S };
        Ok(Attempt::of(load, &opened(rate_per_s, S, |_, _| MS), 0))
    });
    let rate = found.unwrap().rate_per_s.unwrap();
    assert!((1020.0 / 1.05..=1021.0).contains(&rate), "{rate}");
}

/// Takes 1 ms an operation, and rests for 9 ms after each.
struct Resting(Virtual);

impl Worker for Resting {
    fn run(&mut self, _: u64) -> Result<Kind> {
        self.0.sleep_ns(MS);
        Ok(Kind::Get)
    }

    fn rest(&mut self) -> Result<bool> {
        self.0.sleep_ns(9 * MS);
        Ok(true)
    }
}

#[test]
fn rests_are_no_part_of_operations() {
    let clock = Virtual::new();
    let mut workers = [Resting(clock.clone())];
    for outcome in [
        closed(&clock, 100, &mut workers, &mut alone()).unwrap(),
        saturate(&clock, S, &mut workers).unwrap(),
        // At 50 a second there is room to rest.
        open(&clock, OpenLoad { rate_per_s: 50.0, length_ns: 2 * S }, &mut workers).unwrap(),
    ] {
        assert_eq!(outcome.done, 100);
        near_ms(all(&outcome).quantile_us(1.0), 1.0);
        assert!((outcome.busy_s(1) - 0.1).abs() < 0.0001, "{}", outcome.busy_s(1));
        assert!((outcome.busy_s(2) - 0.05).abs() < 0.0001);
    }
    // At 125 there is not: the last of 10, due at 72 ms, ends at 91.
    let load = OpenLoad { rate_per_s: 125.0, length_ns: 80 * MS };
    let outcome = open(&clock, load, &mut workers).unwrap();
    near_ms(all(&outcome).quantile_us(1.0), 19.0);
}

/// Records the numbers that it was called with; fails at one number.
struct Noting {
    numbers: Vec<u64>,
    fails_at: u64,
}

impl Noting {
    fn several(count: usize) -> Vec<Noting> {
        (0..count).map(|_| Noting { numbers: Vec::new(), fails_at: u64::MAX }).collect()
    }
}

impl Worker for Noting {
    fn run(&mut self, number: u64) -> Result<Kind> {
        if number == self.fails_at {
            return Err("as told".into());
        }
        self.numbers.push(number);
        Ok(Kind::Scan)
    }
}

#[test]
fn each_client_has_its_own_operations() {
    let mut workers = Noting::several(3);
    let outcome = closed(&OsClock, 1000, &mut workers, &mut alone()).unwrap();
    assert_eq!((outcome.done, outcome.due), (1000, 1000));
    assert_eq!(outcome.steps.iter().sum::<u64>(), 1000);
    for (place, worker) in workers.iter().enumerate() {
        assert!(worker.numbers.iter().copied().eq((place as u64..1000).step_by(3)));
    }
    // More clients than operations.
    assert_eq!(closed(&OsClock, 2, &mut workers, &mut alone()).unwrap().done, 2);
}

#[test]
fn clients_of_a_rate_do_each_operation_once() {
    let mut workers = Noting::several(3);
    let load = OpenLoad { rate_per_s: 1e5, length_ns: 20 * MS };
    let outcome = open(&OsClock, load, &mut workers).unwrap();
    let numbers: Vec<u64> = workers.iter().flat_map(|w| w.numbers.iter().copied()).collect();
    assert_eq!(numbers.len(), numbers.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(outcome.due, 2000);
    assert!(numbers.iter().all(|number| *number < 2000));
}

/// Works until the others have done something.
struct Waiting(Arc<AtomicBool>);

impl Worker for Waiting {
    fn run(&mut self, _: u64) -> Result<Kind> {
        while !self.0.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(Kind::Get)
    }
}

/// Says when it has run.
struct Telling(Arc<AtomicBool>);

impl Worker for Telling {
    fn run(&mut self, _: u64) -> Result<Kind> {
        self.0.store(true, Ordering::Relaxed);
        Ok(Kind::Put)
    }
}

#[test]
fn concurrent_clients_work_meanwhile_and_are_told_apart() {
    for rate_per_s in [None, Some(1e4)] {
        let told = Arc::new(AtomicBool::new(false));
        let mut workers = [Waiting(told.clone()), Waiting(told.clone())];
        let mut concurrent = [ConcurrentClient { worker: Telling(told.clone()), rate_per_s }];
        let outcome = closed(&OsClock, 100, &mut workers, &mut concurrent).unwrap();
        assert_eq!(outcome.latencies.get(Kind::Get).unwrap().count(), 100);
        assert!(outcome.latencies.get(Kind::Put).is_none());
        let concurrent = outcome.concurrent.unwrap();
        assert!(1 <= concurrent.done);
        assert_eq!(concurrent.latencies.get(Kind::Put).unwrap().count(), concurrent.done);
        assert!(concurrent.latencies.get(Kind::Get).is_none() && concurrent.concurrent.is_none());
    }
}

#[test]
fn a_failure_ends_all() {
    let failing = |at| Noting { numbers: Vec::new(), fails_at: at };
    // The concurrent workers would go on for ever, and so would the main ones' operations.
    let mut concurrent = [ConcurrentClient { worker: failing(50), rate_per_s: None }];
    let mut workers = Noting::several(2);
    let error = closed(&OsClock, u64::MAX, &mut workers, &mut concurrent).unwrap_err();
    assert_eq!(error.to_string(), "as told");
    let mut concurrent = [ConcurrentClient { worker: failing(u64::MAX), rate_per_s: Some(1.0) }];
    let mut workers = [failing(100), failing(u64::MAX)];
    assert!(closed(&OsClock, u64::MAX, &mut workers, &mut concurrent).is_err());
    let load = OpenLoad { rate_per_s: 1e6, length_ns: 1000 * S };
    // Either of them may take the operation.
    assert!(open(&OsClock, load, &mut [failing(100), failing(100)]).is_err());
    assert!(saturate(&OsClock, 1000 * S, &mut [failing(100)]).is_err());
}

struct Panicking;

impl Worker for Panicking {
    fn run(&mut self, _: u64) -> Result<Kind> {
        panic!("as told")
    }
}

#[test]
fn a_panic_ends_all() {
    let mut concurrent =
        [ConcurrentClient { worker: Noting::several(1).remove(0), rate_per_s: None }];
    let error = closed(&OsClock, 10, &mut [Panicking], &mut concurrent).unwrap_err();
    assert_eq!(error.to_string(), "a client thread panicked");
}
