//! One phase on an open store: clients in the closed or the open loop, or the
//! search for a rate.
//!
//! Owns: the clients' seeds and the choice of a phase's figures. Never does: open or close the
//! store.

use super::backups::{OverAtEnd, Sums, UnitBackups};
use super::consumers;
use super::disk::DiskWatch;
use super::estimates;
use super::evict::Evictor;
use super::measure::{self, Done, Figures, Meter};
use super::unit::Unit;
use crate::client::{Client, RecordExpiry, Shared};
use crate::data::mix;
use crate::dataset::Dataset;
use crate::draws::{Draws, Stream};
use crate::driver::{self, Attempt, ConcurrentClient, OpenLoad, Outcome, Worker, sustainable};
use crate::op::Kind;
use crate::process::mib;
use crate::record;
use crate::store::{Abilities, Result, Store, Sync};
use crate::workload::{Backup, BackupTime, Mix, Open, Phase, Search, Workload};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::Db;
use windrow::env::OsClock;

/// The numbers of concurrent clients begin here, beyond those of any measured client.
const CONCURRENT: u64 = 1 << 20;

/// A round has as many generations as fit these bits: 33 million.
const ROUND_BITS: u32 = 25;

/// The greatest number of a round whose generations are above those of the one before.
const ROUND_NUMBERS: u32 = (1 << (31 - ROUND_BITS)) - 1;

/// The state of the records after the phases so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Records that were inserted.
    pub(super) inserted: u64,
    /// The number of inserted records that were taken off a queue's front.
    pub(super) front: u64,
    /// The newest generation of any record.
    pub(super) generation: u32,
}

impl State {
    /// Returns the state at the begin of a round, in another process than the phases that ran once:
    /// all records are inserted, and the round's generations are above those of the rounds before,
    /// whose values are still there.
    pub(super) fn loaded(records: u64, round: u32) -> State {
        let generation = 1 << 31 | round.min(ROUND_NUMBERS) << ROUND_BITS;
        State { inserted: records, front: 0, generation }
    }
}

/// A phase that is about to run.
pub(super) struct Work<'a> {
    pub(super) unit: &'a Unit,
    pub(super) workload: &'a Workload,
    pub(super) phase: &'a Phase,
    pub(super) abilities: Abilities,
    pub(super) direct_io: bool,
    pub(super) store: &'a dyn Store,
    /// Windrow's own handle of the store, where the phase needs it.
    pub(super) windrow: Option<&'a Db>,
    pub(super) backups: Option<&'a UnitBackups>,
    pub(super) data: &'a Dataset,
    /// The state after the earlier phases.
    pub(super) before: State,
}

/// A client whose store's files leave the page cache after each operation.
struct Evicting<'a> {
    client: Client<'a>,
    evictor: Option<&'a Evictor>,
}

impl Worker for Evicting<'_> {
    fn run(&mut self, number: u64) -> Result<Kind> {
        self.client.run(number)
    }

    fn rest(&mut self) -> Result<bool> {
        let Some(evictor) = self.evictor else { return Ok(false) };
        evictor.evict()?;
        Ok(true)
    }
}

impl Work<'_> {
    /// Runs the phase; returns its line, and the state after it.
    pub(super) fn run(&self) -> Result<(record::PhaseLine, State)> {
        let State { inserted, front, .. } = self.before;
        let (inserted, front) = (AtomicU64::new(inserted), AtomicU64::new(front));
        let shared = self.shared(&inserted, &front);
        let evictor = self.is_evicted().then(|| Evictor::new(&self.unit.dir)).transpose()?;
        evictor.iter().try_for_each(Evictor::evict)?;
        let mix = self.phase.mix();
        let mut clients: Vec<Evicting<'_>> = (0..self.phase.clients)
            .map(|n| self.client(&shared, &mix, self.phase.keys(), (n.into(), self.phase.clients)))
            .map(|client| Evicting { client, evictor: evictor.as_ref() })
            .collect();
        let disk = DiskWatch::start(&self.unit.dir);
        let mut meter = Meter::start(self.store);
        let mut figures = Figures::new();
        let work = || {
            let (outcome, rate_per_s) = self.at_work(&shared, &mut clients, &mut figures)?;
            Ok((outcome, rate_per_s, meter.lap_s()))
        };
        let (((outcome, rate_per_s, wall_s), consumed), backed_up) =
            self.backing_up(|| self.consumed(work))?;
        // A backup that is cut short ends a moment later, and so do consumers.
        meter.lap_s();
        consumed.iter().for_each(|sums| sums.figures(&mut figures));
        let while_writing = disk.so_far();
        self.drain(&mut meter, &outcome, wall_s, &mut figures)?;
        let done = self.done(&clients);
        meter.stop(self.store, done, &mut figures);
        figures.insert("disk_peak_mib".to_owned(), mib(disk.stop().most));
        if let Some(sums) = self.back_up_after(backed_up)? {
            sums.figures(done.written_bytes, &mut figures);
        }
        // The work between operations would count as a stall.
        let timeline = evictor.is_none().then(|| outcome.timeline());
        if timeline.is_some() {
            figures.insert("stalled_s".to_owned(), outcome.stalled_ns as f64 / 1e9);
            let gap_ms = outcome.longest_gap_ns as f64 / 1e6;
            figures.insert("longest_gap_ms".to_owned(), gap_ms);
        }
        let state = self.state(&shared, &clients);
        let live = state.inserted as f64 * self.data.record_bytes();
        measure::reads(&outcome.latencies, &mut figures);
        measure::tree(self.store.tree(), &mut figures);
        if evictor.is_none() {
            measure::open_files(&self.unit.dir, &mut figures);
        }
        measure::size(&self.unit.dir, (!self.workload.may_miss()).then_some(live), &mut figures);
        if self.overwrites(state) {
            measure::while_writing(while_writing, live, &mut figures);
        }
        // JSON has no word for a quotient by zero.
        figures.retain(|_, value| value.is_finite());
        let answers = clients.iter().fold(0u64, |sum, c| sum.wrapping_add(c.client.answers()));
        let line = record::PhaseLine {
            workload: self.workload.name.clone(),
            phase: self.phase.name.clone(),
            contender: self.unit.contender.clone(),
            round: self.unit.round,
            clients: self.phase.clients,
            ops: outcome.done,
            figures,
            latencies: outcome.latencies.summaries(),
            timeline,
            rate_per_s,
            answers: self.phase.has_order().then(|| format!("{answers:016x}")),
            contents: None,
            evicted: evictor.is_some(),
            buffered: self.is_buffered(),
        };
        Ok((line, state))
    }

    /// Has the clients do the phase's operations. Returns the rate, too, if it is in the open loop.
    fn at_work<'s>(
        &'s self,
        shared: &'s Shared<'s>,
        clients: &mut [Evicting<'s>],
        figures: &mut Figures,
    ) -> Result<(Outcome, Option<f64>)> {
        Ok(match (&self.phase.search, &self.phase.open) {
            (Some(search), _) => (self.search(search, clients, figures)?, None),
            (None, Some(open)) => {
                let (outcome, rate_per_s) = self.open(open, clients, figures)?;
                (outcome, Some(rate_per_s))
            }
            (None, None) if self.phase.estimates.is_some() => {
                (self.estimates(clients, figures)?, None)
            }
            (None, None) => (self.closed(shared, clients)?, None),
        })
    }

    /// Does work next to the phase's consumers of changes, if it has any.
    fn consumed<T>(
        &self,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Option<consumers::Sums>)> {
        if self.phase.consumers == 0 {
            return Ok((work()?, None));
        }
        let db = self.windrow.ok_or("only Windrow's changes are consumed")?;
        let (done, sums) = consumers::next_to(db, self.phase.consumers, work)?;
        Ok((done, Some(sums)))
    }

    /// Does work, and makes backups meanwhile if the phase wants them.
    fn backing_up<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Option<Sums>)> {
        let Some((db, backups, mib_per_s)) = self.backup(BackupTime::Meanwhile)? else {
            return Ok((work()?, None));
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let backing_up = scope.spawn(|| backups.back_up_until(db, mib_per_s, &over));
            let at_end = OverAtEnd(&over);
            let done = work();
            drop(at_end);
            let sums = backing_up.join().map_err(|_| "a backup panicked")??;
            Ok((done?, Some(sums)))
        })
    }

    /// Makes a backup if the phase wants one once it is over. Returns the sums over its backups.
    fn back_up_after(&self, backed_up: Option<Sums>) -> Result<Option<Sums>> {
        let Some((db, backups, mib_per_s)) = self.backup(BackupTime::After)? else {
            return Ok(backed_up);
        };
        Ok(Some(backups.back_up(db, mib_per_s)?))
    }

    /// Returns what a backup needs, if the phase makes one at this time.
    fn backup(&self, time: BackupTime) -> Result<Option<(&Db, &UnitBackups, u64)>> {
        match self.phase.backup {
            Some(Backup { when, mib_per_s }) if when == time => {
                let needed = self.windrow.zip(self.backups);
                let (db, backups) = needed.ok_or("only Windrow's backups are measured")?;
                Ok(Some((db, backups, mib_per_s)))
            }
            _ => Ok(None),
        }
    }

    /// Whether the phase only overwrote existing records: the share of its bytes that were live is
    /// then known throughout. (A search drains within.)
    fn overwrites(&self, after: State) -> bool {
        !self.phase.is_read_only()
            && self.phase.search.is_none()
            && !self.workload.may_miss()
            && self.before.inserted == after.inserted
    }

    /// Returns the state once the clients are done.
    fn state(&self, shared: &Shared<'_>, clients: &[Evicting<'_>]) -> State {
        let inserted = shared.inserted.load(Ordering::Relaxed);
        let is_load = inserted == 0 && !self.phase.is_read_only();
        State {
            inserted: if is_load { self.records() } else { inserted },
            front: shared.front.load(Ordering::Relaxed),
            generation: clients
                .iter()
                .map(|c| c.client.generation())
                .fold(self.before.generation, u32::max),
        }
    }

    fn shared<'s>(&'s self, inserted: &'s AtomicU64, front: &'s AtomicU64) -> Shared<'s> {
        let one = self.phase.clients == 1 && self.phase.concurrent.is_none();
        let timed = |phase: &Phase| phase.search.is_some() || phase.concurrent.is_some();
        Shared {
            store: self.store,
            data: self.data,
            inserted,
            before: self.before.inserted,
            front,
            spaces: self.workload.data.spaces,
            sync: if self.phase.sync { Sync::Yes } else { Sync::No },
            batch: self.phase.batch,
            scan: self.phase.scan,
            expiry: self.phase.expiry.as_ref().map(|expiry| match self.abilities.expiry {
                true => RecordExpiry::Store(expiry.seconds),
                false => RecordExpiry::Client(expiry.keep),
            }),
            // Where the number of writes depends on time, contents must not.
            is_versioned: one && !self.workload.phases.iter().any(timed),
            may_miss: self.workload.may_miss(),
            is_shared: !one,
        }
    }

    /// Makes client `number`, which draws like the client of that number of any other contender.
    fn client<'s>(
        &self,
        shared: &'s Shared<'s>,
        mix_of: &Mix,
        (draws, read_draws): (&Draws, Option<&Draws>),
        (number, clients): (u64, u32),
    ) -> Client<'s> {
        let words = [self.workload.name.as_str(), self.phase.name.as_str()];
        let letters = words.iter().flat_map(|word| word.bytes());
        let seed = letters.fold(mix(self.unit.seed), |h, b| mix(h ^ u64::from(b)));
        let seed = mix(seed ^ u64::from(self.unit.round) << 32 ^ number);
        // On an empty store puts are a load, in the order of the draws.
        let records = if shared.before == 0 { self.records() } else { shared.before };
        let stream = |draws: &Draws, seed| {
            let stream = Stream::new(*draws, records, self.unit.seed, seed)
                .every(number, clients.into())
                .expecting(records + self.inserts());
            if self.workload.is_shuffled() { stream } else { stream.loaded_in_sequence() }
        };
        let read_keys = read_draws.map(|draws| stream(draws, mix(!seed)));
        Client::new(shared, mix_of, stream(draws, mix(seed)), seed, self.before.generation)
            .reading(read_keys)
    }

    /// Whether the page cache is used in place of direct I/O, which the store lacks.
    fn is_evicted(&self) -> bool {
        self.direct_io && !self.abilities.direct_io && self.phase.is_read_only()
    }

    /// Whether reads among writes go through the page cache though they should not: the store's
    /// files cannot be dropped from it then.
    fn is_buffered(&self) -> bool {
        let reads = self.phase.mix().iter().any(|(kind, _)| kind.reads());
        self.direct_io && !self.abilities.direct_io && reads && !self.phase.is_read_only()
    }

    /// Returns a generous bound of the number of inserts, as YCSB counts them.
    fn inserts(&self) -> u64 {
        let share: f64 =
            self.phase.mix().iter().filter(|(kind, _)| *kind == Kind::Insert).map(|(_, s)| s).sum();
        (self.ops() as f64 * share * 2.0) as u64
    }

    fn records(&self) -> u64 {
        self.workload.data.records
    }

    fn ops(&self) -> u64 {
        self.phase.ops.unwrap_or(self.records())
    }

    fn closed<'s>(&self, shared: &'s Shared<'s>, clients: &mut [Evicting<'_>]) -> Result<Outcome> {
        let mut concurrent = Vec::new();
        if let Some(other) = &self.phase.concurrent {
            let mix = other.mix();
            for n in 0..other.clients {
                let place = (u64::from(n) + CONCURRENT, other.clients);
                let client = self.client(shared, &mix, (&other.keys, None), place);
                concurrent.push(ConcurrentClient { worker: client, rate_per_s: other.rate_per_s });
            }
        }
        driver::closed(&OsClock, self.ops(), clients, &mut concurrent)
    }

    /// Runs operations at a fixed rate; returns that rate, too.
    fn open(
        &self,
        open: &Open,
        clients: &mut [Evicting<'_>],
        figures: &mut Figures,
    ) -> Result<(Outcome, f64)> {
        let key = open.rate_key();
        let of = self.unit.rates_per_s.get(&key);
        let of = of.ok_or_else(|| {
            format!("no rate of `{key}` was found: its contender must be among those that run")
        })?;
        let rate_per_s = of * open.percent / 100.0;
        let load = match open.seconds {
            Some(seconds) => OpenLoad { rate_per_s, length_ns: (seconds * 1e9) as u64 },
            None => OpenLoad::of_ops(self.ops(), rate_per_s),
        };
        let outcome = driver::open(&OsClock, load, clients)?;
        let late_ns = outcome.elapsed_ns.saturating_sub(load.length_ns);
        figures.insert("late_s".to_owned(), late_ns as f64 / 1e9);
        Ok((outcome, load.rate_per_s))
    }

    /// Runs puts and reads in turn, and measures the estimates of searches in vain.
    fn estimates<'s>(
        &'s self,
        clients: &mut [Evicting<'s>],
        figures: &mut Figures,
    ) -> Result<Outcome> {
        let [Evicting { client, .. }] = clients else { return Err("one client".into()) };
        let db = self.windrow.ok_or("only Windrow estimates searches")?;
        let (store, data, dir) = (self.store, self.data, self.unit.dir.as_path());
        let of = estimates::Followed { store, db, data, dir };
        let mut watch = estimates::EstimateWatch::new(client, of, self.records());
        let checks = self.phase.estimates.unwrap_or(1);
        let outcome = watch.run(&self.phase.mix(), (self.ops(), checks))?;
        watch.figures(figures);
        Ok(outcome)
    }

    /// Sets the throughput of the phase. Where it only writes, the time counts until no merge is
    /// due: a debt that others pay later is not speed.
    fn drain(
        &self,
        meter: &mut Meter,
        outcome: &Outcome,
        wall_s: f64,
        figures: &mut Figures,
    ) -> Result<()> {
        if self.phase.search.is_some() {
            // The search drained after each attempt, and set its own figures.
            return Ok(());
        }
        // The time between operations was not the store's.
        let seconds = if self.is_evicted() { outcome.busy_s(self.phase.clients) } else { wall_s };
        let mut drain_s = 0.0;
        let drains = self.phase.drain;
        if drains && !self.phase.is_read_only() {
            self.store.drain()?;
            drain_s = meter.lap_s();
            figures.insert("drain_s".to_owned(), drain_s);
        }
        let counts_drain = self.phase.is_write_only() || self.phase.until_idle;
        let is_load = drains && counts_drain && self.phase.open.is_none();
        let counted_s = if is_load { seconds + drain_s } else { seconds };
        figures.insert("seconds".to_owned(), seconds);
        figures.insert("kops_per_s".to_owned(), outcome.done as f64 / counted_s / 1000.0);
        if is_load {
            figures
                .insert("undrained_kops_per_s".to_owned(), outcome.done as f64 / seconds / 1000.0);
        }
        if self.phase.open.is_some() {
            let share = outcome.done as f64 / outcome.due.max(1) as f64;
            figures.insert("served_share".to_owned(), share);
        }
        Ok(())
    }

    fn done(&self, clients: &[Evicting<'_>]) -> Done {
        let sum = |of: fn(&Client<'_>) -> u64| clients.iter().map(|c| of(&c.client)).sum();
        Done {
            // In a search these are more than the outcome's.
            ops: sum(|client| client.ops),
            written_bytes: sum(|client| client.written_bytes),
            read_bytes: sum(|client| client.read_bytes),
            is_read_only: self.phase.is_read_only(),
            is_synced: self.phase.sync,
        }
    }

    /// Searches the rate that the store sustains: first back to back, then by attempts in the open
    /// loop. The outcome is of the time back to back.
    fn search(
        &self,
        search: &Search,
        clients: &mut [Evicting<'_>],
        figures: &mut Figures,
    ) -> Result<Outcome> {
        let length_ns = (search.seconds * 1e9) as u64;
        let mut meter = Meter::start(self.store);
        let outcome = driver::saturate(&OsClock, length_ns, clients)?;
        self.store.drain()?;
        let start_per_s = outcome.done as f64 / meter.lap_s();
        figures.insert("saturated_per_s".to_owned(), start_per_s);
        if !search.attempts {
            figures.insert("kops_per_s".to_owned(), start_per_s / 1000.0);
            figures.insert("sustainable_per_s".to_owned(), start_per_s);
            return Ok(outcome);
        }
        let found = sustainable(start_per_s, |rate_per_s| {
            let load = OpenLoad { rate_per_s, length_ns };
            let outcome = driver::open(&OsClock, load, clients)?;
            meter.lap_s();
            self.store.drain()?;
            Ok(Attempt::of(load, &outcome, (meter.lap_s() * 1e9) as u64))
        })?;
        let rate_per_s = found
            .rate_per_s
            .ok_or_else(|| format!("no rate was sustained in {} attempts", found.attempts.len()))?;
        figures.insert("sustainable_per_s".to_owned(), rate_per_s);
        Ok(outcome)
    }
}
