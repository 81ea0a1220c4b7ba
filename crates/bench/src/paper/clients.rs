//! Clients at work on one database: back to back, in slices of reads, and in
//! the open loop.
//!
//! Owns: what is timed, and the figures of each kind of work. Never does:
//! choose which database's turn it is (`runner.rs` does).

use super::database::{Asked, Client, Database, Done, Meter};
use super::experiment::{Gets, Mixed, OpenLoop, Reads};
use crate::data::mix;
use crate::draws::Stream;
use crate::driver::{self, Load, Worker};
use crate::latency::Latencies;
use crate::op::Kind;
use crate::process::Stopwatch;
use crate::report::Figures;
use crate::store::Result;
use windrow::env::OsClock;

/// Gets and puts by one client. Throughput is what the database sustains:
/// the time ends when no merge is due any more.
pub(super) fn mixed(
    database: &Database,
    (puts, gets): &(Stream, Stream),
    work: &Mixed,
) -> Result<Figures> {
    let Mixed { ops, gets: mix, .. } = *work;
    let (mut puts, mut gets) = (puts.clone(), gets.clone());
    let mut client = database.client();
    let (mut put_times, mut get_times) = (Latencies::new()?, Latencies::new()?);
    let meter = Meter::start(database);
    let mut watch = Stopwatch::start();
    for _ in 0..ops {
        if mix.share > 0.0 && gets.chance(mix.share) {
            let absent = gets.chance(mix.absent);
            client.get(gets.next(), absent)?;
            get_times.record(watch.lap());
        } else {
            client.put(puts.next())?;
            put_times.record(watch.lap());
        }
    }
    database.drain()?;
    let done = meter.stop(database, client.take_asked());
    let mut figures = Figures::default();
    done.figures(ops, &mut figures);
    figures.set("drain_s", watch.lap().as_secs_f64());
    put_times.figures(&mut figures, "put");
    get_times.figures(&mut figures, "get");
    Ok(figures)
}

/// One database's part in interleaved reads.
pub(super) struct Lane<'a> {
    pub(super) database: &'a Database,
    client: Client<'a>,
    stream: Stream,
    times: Latencies,
    done: Option<Done>,
    ops: u64,
    found: u64,
}

impl<'a> Lane<'a> {
    pub(super) fn new(database: &'a Database, stream: &Stream) -> Result<Lane<'a>> {
        Ok(Lane {
            database,
            client: database.client(),
            stream: stream.clone(),
            times: Latencies::new()?,
            done: None,
            ops: 0,
            found: 0,
        })
    }

    /// Forgets what was measured, not where the stream is.
    pub(super) fn reset(&mut self) -> Result<()> {
        self.times = Latencies::new()?;
        self.done = None;
        (self.ops, self.found) = (0, 0);
        Ok(())
    }

    /// The next `ops` reads.
    pub(super) fn slice(&mut self, reads: &Reads, ops: u64) -> Result<()> {
        let meter = Meter::start(self.database);
        let mut watch = Stopwatch::start();
        for _ in 0..ops {
            let absent = self.stream.chance(reads.absent);
            let found = self.client.read(reads.read, self.stream.next(), absent)?;
            self.times.record(watch.lap());
            self.found += u64::from(found);
        }
        let done = meter.stop(self.database, self.client.take_asked());
        self.done = Some(self.done.map_or(done, |sum| sum.and(done)));
        self.ops += ops;
        Ok(())
    }

    pub(super) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        if let Some(done) = &self.done {
            done.figures(self.ops, &mut figures);
        }
        self.times.figures(&mut figures, "read");
        figures.set("found_share", self.found as f64 / self.ops.max(1) as f64);
        figures
    }
}

/// One thread's client in the open loop.
struct ClientWorker<'a> {
    client: Client<'a>,
    puts: Stream,
    gets: Stream,
    mix: Gets,
}

impl Worker for ClientWorker<'_> {
    fn run(&mut self, _: u64) -> Result<Kind> {
        if self.gets.chance(self.mix.share) {
            let absent = self.gets.chance(self.mix.absent);
            self.client.get(self.gets.next(), absent)?;
            Ok(Kind::Get)
        } else {
            self.client.put(self.puts.next())?;
            Ok(Kind::Put)
        }
    }
}

/// The clients of a load, each with its own draws.
fn workers<'a>(
    database: &'a Database,
    load: &OpenLoop,
    (load_seed, seed): (u64, u64),
) -> Vec<ClientWorker<'a>> {
    let count = database.records.sizes.count;
    let worker = |thread: u32| {
        let stream = |draws, salt: u64| {
            Stream::new(draws, count, load_seed, seed ^ mix(salt << 32 | u64::from(thread)))
        };
        let (puts, gets) = (stream(load.puts, 1), stream(load.gets.draws, 2));
        ClientWorker { client: database.client(), puts, gets, mix: load.gets }
    };
    (0..load.threads).map(worker).collect()
}

/// What all clients of a load have asked for.
fn take_asked(workers: &mut [ClientWorker<'_>]) -> Asked {
    let mut sum = Asked::default();
    workers.iter_mut().for_each(|worker| sum += worker.client.take_asked());
    sum
}

/// The rate that a database sustains, operations per second: what it does
/// back to back, over the time until no merge is due any more.
pub(super) fn sustained(
    database: &Database,
    load: &OpenLoop,
    seeds: (u64, u64),
) -> Result<(f64, Figures)> {
    let workers = &mut workers(database, load, seeds);
    let meter = Meter::start(database);
    let ops = driver::saturate(&OsClock, (load.search_s * 1e9) as u64, workers)?.done;
    database.drain()?;
    let done = meter.stop(database, take_asked(workers));
    let mut figures = Figures::default();
    done.figures(ops, &mut figures);
    Ok((ops as f64 / done.seconds, figures))
}

/// One window in the open loop, from a drained tree to a drained tree.
/// Traffic and write amplification are of both, rates of the window alone.
pub(super) fn window(
    database: &Database,
    load: &OpenLoop,
    rate: Load,
    seeds: (u64, u64),
) -> Result<Figures> {
    let workers = &mut workers(database, load, seeds);
    let meter = Meter::start(database);
    let outcome = driver::open(&OsClock, rate, workers)?;
    database.drain()?;
    let done = meter.stop(database, take_asked(workers));
    let mut figures = Figures::default();
    done.figures(outcome.done, &mut figures);
    figures.set("rate_kops_per_s", rate.rate_per_s / 1000.0);
    figures.set("kops_per_s", outcome.per_s() / 1000.0);
    figures.set("served_share", outcome.done as f64 / outcome.due.max(1) as f64);
    figures.set("stalled_ms", outcome.stalled_ns as f64 / 1e6);
    outcome.latencies.figures(&mut figures);
    Ok(figures)
}
