//! `torture cut`: the file system is shut down under the writers, as by a power cut, and mounted
//! again; then everything promised to them must be present.
//!
//! The acknowledgements that count are read before the shutdown: a later one may or may not have
//! been in time. Owns: the moment of the cut. Never does: judge.

use super::child::{End, Worker};
use super::history::{History, close, verify};
use super::judge::{Survives, Tally, Told};
use super::ledger::{Ack, Ledger};
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::stop;
use super::volume::{self, Kind, Volume};
use super::worker::Task;
use super::workload::Shape;
use std::path::Path;
use std::time::{Duration, Instant};
use windrow_env::testing::{Rng, Shutdown, shut_down_file_system};

/// Cuts of one database before the next one is begun on a new file system.
const SESSIONS: u64 = 40;
/// The longest time that writers write before the cut, in microseconds.
const WRITE_US_MAX: u64 = 120_000;
/// The time that a worker has to notice, before it is killed.
const NOTICE: Duration = Duration::from_millis(40);

/// The counts of all cuts together.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    cuts: u64,
    clean_errors: u64,
    killed: u64,
    bus: u64,
    before_open: u64,
    verified: u64,
    tally: Tally,
}

/// One file system and the database on it.
struct Cut<'a> {
    plan: &'a Plan,
    volume: &'a mut Volume,
    history: History,
    exists: bool,
}

/// Runs `plan.rounds` cuts.
///
/// # Errors
/// The write that was lost, or the refusal.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    if let Some(why) = volume::missing(plan.fs) {
        return Ok(Outcome::Skipped(why));
    }
    let scratch = plan.scratch(std::env::temp_dir())?;
    let plain = |why: String| plan.failure(plan.seed, why);
    let ledgers = tempfile::tempdir_in(Ledger::directory()).map_err(|e| plain(e.to_string()))?;
    let bytes = plan.fs.bytes_min().max(96 << 20);
    let mut volume = Volume::new(scratch.path(), plan.fs, bytes).map_err(plain)?;
    let begin = Instant::now();
    let mut said = begin;
    let mut figures = Figures::default();
    let mut seed = plan.seed;
    while figures.cuts < plan.rounds && !stop::requested() {
        volume.renew().map_err(plain)?;
        let history = begin_history(seed, &volume, ledgers.path());
        let mut cut = Cut { plan, volume: &mut volume, history, exists: false };
        for _ in 0..SESSIONS.min(plan.rounds - figures.cuts) {
            if let Err(why) = cut.live(&mut figures) {
                let why = format!("seed {seed}, session {}: {why}", cut.history.session);
                drop(volume);
                return Err(Failure { why, seed, kept: Some(scratch.keep().join("image")) });
            }
            if stop::requested() {
                break;
            }
        }
        seed += 1;
        if said.elapsed() > Duration::from_secs(20) {
            said = Instant::now();
            eprintln!("{}", line(plan.fs, &figures, begin));
        }
    }
    Ok(Outcome::Passed(line(plan.fs, &figures, begin)))
}

fn line(kind: Kind, figures: &Figures, begin: Instant) -> String {
    let seconds = begin.elapsed().as_secs_f64();
    let tally = &figures.tally;
    format!(
        "{kind}: {} cuts in {seconds:.1} s ({:.1}/s); lost 0 of {} promised batches, {} of {} \
         acknowledged ones were not promised and gone; the writer ended {} times by a clean \
         error, {} by SIGBUS, {} were killed; {} cuts before the database was open; verified {} \
         times",
        figures.cuts,
        figures.cuts as f64 / seconds,
        tally.synced,
        tally.gone,
        tally.acknowledged,
        figures.clean_errors,
        figures.bus,
        figures.killed,
        figures.before_open,
        figures.verified,
    )
}

/// Begins the history of the database on a seed's file system.
fn begin_history(seed: u64, volume: &Volume, ledgers: &Path) -> History {
    let mut rng = Rng::new(seed);
    let shape = Shape {
        seed: rng.next_u64(),
        writers: 1 + rng.below(4) as u32,
        slots: 20 + rng.below(150),
        synced_percent: [1, 10, 50, 100][rng.below(4) as usize],
        deleted_percent: 5 + rng.below(40),
    };
    History::new(rng, shape, volume.path().join("db"), ledgers)
}

impl Cut<'_> {
    /// Runs one mount, from its first write to the judgement after the next mount.
    fn live(&mut self, figures: &mut Figures) -> Result<(), String> {
        self.volume.mount()?;
        let rng = &mut self.history.rng;
        let setup = Setup::draw(rng, &self.plan.preset);
        let pause_us = [0, 200, 2_000][rng.below(3) as usize];
        let task = Task { pause_us, ..self.history.task(&setup) };
        let (mut worker, ledger) = Worker::start(&task, None)?;
        let told = self.cut(&mut worker, &ledger)?;
        match worker.wait(NOTICE)? {
            End::Killed => figures.killed += 1,
            End::Refused(_) => figures.clean_errors += 1,
            // `map_logs` documents the signal; by `pwrite` it must be an error.
            End::Bus if !setup.is_unmapped() => figures.bus += 1,
            end => return Err(format!("under {:?} the program ended: {end:?}", setup.settings)),
        }
        let opened = ledger.is_opened();
        figures.cuts += 1;
        figures.before_open += u64::from(!opened);
        let told = Told { before: told, ..self.history.acks(&ledger)? };
        self.volume.unmount()?;
        self.volume.mount()?;
        let judged = self
            .judge(&setup, &told, figures)
            .map_err(|why| format!("{why}\nwritten under {:?}", setup.settings));
        self.volume.unmount()?;
        judged
    }

    /// Lets the worker write, reads its promises, and cuts the file system off.
    fn cut(&mut self, worker: &mut Worker, ledger: &Ledger) -> Result<Vec<Vec<Ack>>, String> {
        let rng = &mut self.history.rng;
        // One session in eight is cut in recovery, or even before it.
        if rng.below(8) > 0 {
            while !ledger.is_opened() && !worker.run_for(Duration::from_micros(500))? {}
            self.exists |= ledger.is_opened();
        }
        worker.run_for(Duration::from_micros(rng.below(WRITE_US_MAX)))?;
        let how = match rng.below(8) {
            0 => Shutdown::FlushAll,
            1 => Shutdown::FlushJournal,
            _ => Shutdown::FlushNothing,
        };
        let told = self.history.acks(ledger)?.before;
        shut_down_file_system(self.volume.path(), how).map_err(|e| e.to_string())?;
        Ok(told)
    }

    fn judge(&mut self, setup: &Setup, told: &Told, figures: &mut Figures) -> Result<(), String> {
        let promised = self.exists || told.before.iter().any(|acks| !acks.is_empty());
        if !promised && !self.history.dir.join("CURRENT").exists() {
            return Ok(());
        }
        let whole = self.history.rng.below(4) == 0;
        let (db, tally) = self.history.judged(setup, !whole, Some(told), Survives::Synced)?;
        figures.tally.add(tally);
        if whole {
            verify(&db)?;
            figures.verified += 1;
        }
        close(&db)
    }
}
