//! `torture cut`: the file system is shut down under the writers, as by a power cut, and mounted
//! again; then everything promised to them must be present.
//!
//! The acknowledgements that count are read before the shutdown: a later one may or may not have
//! been in time. Owns: the moment of the cut. Never does: judge.

use super::child::{End, Spec};
use super::judge::{Survives, Tally, Told, judge};
use super::kill::open_patiently;
use super::ledger::Ledger;
use super::plan::{Failure, Outcome, Plan};
use super::setup::Setup;
use super::stop;
use super::volume::{self, Kind, Volume};
use super::workload::{Expected, Shape};
use std::path::PathBuf;
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
struct History<'a> {
    plan: &'a Plan,
    rng: Rng,
    volume: &'a mut Volume,
    ledger: PathBuf,
    expected: Expected,
    session: u64,
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
        let ledger = ledgers.path().join("ledger");
        let mut history = History::new(plan, seed, &mut volume, ledger);
        for _ in 0..SESSIONS.min(plan.rounds - figures.cuts) {
            if let Err(why) = history.live(&mut figures) {
                let why = format!("seed {seed}, session {}: {why}", history.session);
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

impl<'a> History<'a> {
    fn new(plan: &'a Plan, seed: u64, volume: &'a mut Volume, ledger: PathBuf) -> History<'a> {
        let mut rng = Rng::new(seed);
        let shape = Shape {
            seed: rng.next_u64(),
            writers: 1 + rng.below(4) as u32,
            slots: 20 + rng.below(150),
            synced_percent: [1, 10, 50, 100][rng.below(4) as usize],
            deleted_percent: 5 + rng.below(40),
        };
        let expected = Expected::new(shape);
        History { plan, rng, volume, ledger, expected, session: 0, exists: false }
    }

    /// Runs one mount, from its first write to the judgement after the next mount.
    fn live(&mut self, figures: &mut Figures) -> Result<(), String> {
        self.session += 1;
        self.volume.mount()?;
        let setup = Setup::draw(&mut self.rng, &self.plan.preset);
        let dir = self.volume.path().join("db");
        let pause_us = [0, 200, 2_000][self.rng.below(3) as usize];
        let spec = Spec {
            dir: &dir,
            ledger: &self.ledger,
            session: self.session,
            expected: &self.expected,
            setup: &setup,
            more: vec!["--pause-us".into(), u64::to_string(&pause_us)],
            strace: None,
        };
        let (mut worker, ledger) = spec.start()?;
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
        let writers = self.expected.shape.writers;
        let after = ledger.all(writers).map_err(|e| e.to_string())?;
        let told = Told { session: self.session, before: told, after };
        self.volume.unmount()?;
        self.volume.mount()?;
        let judged = self
            .judge(&setup, &told, figures)
            .map_err(|why| format!("{why}\nwritten under {:?}", setup.settings));
        self.volume.unmount()?;
        judged
    }

    /// Lets the worker write, reads its promises, and cuts the file system off.
    fn cut(
        &mut self,
        worker: &mut super::child::Worker,
        ledger: &Ledger,
    ) -> Result<Vec<Vec<super::ledger::Ack>>, String> {
        // One session in eight is cut in recovery, or even before it.
        if self.rng.below(8) > 0 {
            while !ledger.is_opened() && !worker.run_for(Duration::from_micros(500))? {}
            self.exists |= ledger.is_opened();
        }
        worker.run_for(Duration::from_micros(self.rng.below(WRITE_US_MAX)))?;
        let how = match self.rng.below(8) {
            0 => Shutdown::FlushAll,
            1 => Shutdown::FlushJournal,
            _ => Shutdown::FlushNothing,
        };
        let told = ledger.all(self.expected.shape.writers).map_err(|e| e.to_string())?;
        shut_down_file_system(self.volume.path(), how).map_err(|e| e.to_string())?;
        Ok(told)
    }

    fn judge(&mut self, setup: &Setup, told: &Told, figures: &mut Figures) -> Result<(), String> {
        let dir = self.volume.path().join("db");
        let promised = self.exists || told.before.iter().any(|acks| !acks.is_empty());
        if !promised && !dir.join("CURRENT").exists() {
            return Ok(());
        }
        let whole = self.rng.below(4) == 0;
        let mut options = setup.options()?;
        options.read_only = !whole;
        let db = open_patiently(&dir, &options)?;
        let tally = judge(&db, &mut self.expected, Some(told), Survives::Synced)?;
        figures.tally.add(tally);
        if whole {
            db.verify().and_then(|r| r.into_result()).map_err(|e| format!("verify: {e}"))?;
            figures.verified += 1;
        }
        db.close().map_err(|e| format!("close: {e}"))
    }
}
