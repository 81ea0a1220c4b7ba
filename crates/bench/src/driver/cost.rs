//! The cost of the drivers themselves, on the real clock. It is not asserted:
//! run this by hand, on an idle machine, when a figure is in doubt:
//!
//!     cargo test --release -p windrow-bench -- --ignored --nocapture driver::cost
//!
//! Owns no state. Never does: open a store.

use super::*;
use crate::draws::{Draws, Stream};
use std::hint::black_box;
use windrow::env::{Clock, OsClock};

/// Does nothing.
struct Idle;

impl Worker for Idle {
    fn run(&mut self, _: u64) -> Result<Kind> {
        Ok(Kind::Get)
    }
}

fn none() -> [ConcurrentClient<Idle>; 0] {
    []
}

#[test]
#[ignore = "measures"]
fn of_an_operation_in_the_closed_loop() {
    for clients in 1..=2u64 {
        let mut workers: Vec<Idle> = (0..clients).map(|_| Idle).collect();
        let ops = 20_000_000;
        let outcome = closed(&OsClock, ops, &mut workers, &mut none()).unwrap();
        let ns = outcome.elapsed_ns as f64 * clients as f64 / ops as f64;
        eprintln!("closed loop, {clients} clients: {ns:.1} ns an operation and client");
    }
}

#[test]
#[ignore = "measures"]
fn of_waking_in_the_open_loop() {
    for rate_per_s in [100.0, 1000.0, 10_000.0, 100_000.0] {
        let load = OpenLoad { rate_per_s, length_ns: 3_000_000_000 };
        let outcome = open(&OsClock, load, &mut [Idle, Idle]).unwrap();
        let latencies = outcome.latencies.all().unwrap();
        let us = |quantile| latencies.quantile_us(quantile);
        eprintln!(
            "open loop, {rate_per_s} a second: late by {:.1} us at p50, {:.1} p99, {:.1} p99.9",
            us(0.5),
            us(0.99),
            us(0.999),
        );
    }
}

#[test]
#[ignore = "measures"]
fn of_waking_from_sleep() {
    let mut late: [Vec<u64>; 2] = Default::default();
    for _ in 0..20 {
        for (slack_ns, late) in [None, std::num::NonZeroU64::new(1)].into_iter().zip(&mut late) {
            rustix::thread::set_current_timer_slack(slack_ns).unwrap();
            for _ in 0..100 {
                let begin_ns = OsClock.monotonic_ns();
                OsClock.sleep_ns(1_000_000);
                late.push(OsClock.monotonic_ns() - begin_ns - 1_000_000);
            }
        }
    }
    for (name, late) in ["the kernel's slack", "promptly"].into_iter().zip(&mut late) {
        late.sort_unstable();
        let us = |share: usize| late[late.len() * share / 100] as f64 / 1000.0;
        eprintln!("{name}: late by {:.1} us at p10, {:.1} p50, {:.1} p90", us(10), us(50), us(90));
    }
}

#[test]
#[ignore = "measures"]
fn of_a_draw() {
    for word in Draws::WORDS.split(", ") {
        let mut stream = Stream::new(word.parse().unwrap(), 10_000_000, 1, 2);
        let begin_ns = OsClock.monotonic_ns();
        (0..5_000_000).for_each(|_| {
            black_box(stream.next());
        });
        let ns = (OsClock.monotonic_ns() - begin_ns) as f64 / 5e6;
        eprintln!("{word}: {ns:.1} ns a draw");
    }
}
