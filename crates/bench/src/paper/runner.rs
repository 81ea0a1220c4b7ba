//! Runs an experiment: cases, rounds, branches, phases, in this one process.
//!
//! Owns: the order of things, which is what makes figures comparable:
//! contenders get the same keys; where one writes, the others are idle and
//! drained; reads and open-loop windows alternate between them.
//! Never does: decide what is measured (experiments do), or judge it.

use super::args::Args;
use super::clients::{self, Lane, Reads};
use super::database::Database;
use super::draws::{Draws, Stream};
use super::estimates;
use super::experiment::{Branch, Case, Experiment, OpenLoop, Phase, Place, Work};
use super::open_loop::Load;
use super::records::Records;
use super::sheet::Sheet;
use crate::data::mix;
use crate::process::Stopwatch;
use crate::store::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads of one contender before it is the next one's turn.
const SLICE_OPS: u64 = 250;

/// Read phases are cut into this many rounds, whose ratios show their spread.
const READ_ROUNDS: u32 = 5;

/// Runs one experiment.
pub(crate) struct Runner<'a> {
    args: &'a Args,
    experiment: &'a Experiment,
    dir: PathBuf,
    sheet: Sheet,
    watch: Stopwatch,
    elapsed_s: f64,
}

/// Where a phase runs, and what numbers it draws.
struct Spot {
    at: Place,
    round: u32,
    seed: u64,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(args: &'a Args, experiment: &'a Experiment, dir: PathBuf) -> Result<Self> {
        let sheet = Sheet::new(experiment, args.scale, args.json.as_deref())?;
        Ok(Runner { args, experiment, dir, sheet, watch: Stopwatch::start(), elapsed_s: 0.0 })
    }

    /// Runs all cases; prints a table after each and the verdicts at the end.
    pub(crate) fn run(mut self) -> Result<Sheet> {
        let rounds = self.args.rounds.unwrap_or(self.experiment.rounds);
        for case in &self.experiment.cases {
            for round in 1..=rounds {
                self.case(case, round)?;
            }
            print!("{}", self.sheet.table(case, self.experiment.shown));
        }
        print!("{}", self.sheet.verdicts(&self.experiment.goals));
        Ok(self.sheet)
    }

    /// A line of progress.
    fn say(&mut self, words: &str) {
        self.elapsed_s += self.watch.lap().as_secs_f64();
        eprintln!("{:>6.0} s  {words}", self.elapsed_s);
    }

    fn case(&mut self, case: &Case, round: u32) -> Result<()> {
        let records = Arc::new(Records::new(case.sizes.clone(), self.args.seed));
        let dir = self.dir.join(format!("round{round}"));
        let mut databases = Vec::new();
        for (i, contender) in case.contenders.iter().enumerate() {
            let dir = dir.join(format!("load-{i}"));
            make_dir(&dir)?;
            databases.push(Database::open(&dir, case, contender, &self.args.settings, &records)?);
        }
        self.phases(case, "", &case.load, &databases, round)?;
        if let [only] = &case.branches[..] {
            self.phases(case, &only.name, &only.phases, &databases, round)?;
        } else {
            for branch in &case.branches {
                self.branch(case, branch, &databases, round)?;
            }
        }
        databases.iter().try_for_each(|database| database.db.close())?;
        remove_dir(&dir)
    }

    /// A branch on copies of the databases.
    fn branch(
        &mut self,
        case: &Case,
        branch: &Branch,
        loaded: &[Database],
        round: u32,
    ) -> Result<()> {
        let dir = self.dir.join("branch");
        remove_dir(&dir)?;
        make_dir(&dir)?;
        let mut databases = Vec::new();
        for (i, database) in loaded.iter().enumerate() {
            let dir = dir.join(i.to_string());
            database.db.checkpoint(&dir)?;
            let (contender, records) = (&database.contender, &database.records);
            databases.push(Database::open(&dir, case, contender, &self.args.settings, records)?);
        }
        self.phases(case, &branch.name, &branch.phases, &databases, round)?;
        databases.iter().try_for_each(|database| database.db.close())?;
        remove_dir(&dir)
    }

    fn phases(
        &mut self,
        case: &Case,
        branch: &str,
        phases: &[Phase],
        databases: &[Database],
        round: u32,
    ) -> Result<()> {
        for (i, phase) in phases.iter().enumerate() {
            let at = Place::new(&case.name, branch, phase.name);
            let words = at.words();
            let seed = words.bytes().fold(mix(self.args.seed), |h, b| mix(h ^ u64::from(b)));
            let spot = Spot { at, round, seed: seed ^ u64::from(round) << 8 ^ i as u64 };
            match &phase.work {
                Work::Mixed { puts, ops, gets } => {
                    let streams = self.streams(databases, &spot, (*puts, gets.draws));
                    for database in in_turn(databases, round) {
                        self.say(&format!("{words}: {}", database.contender.name));
                        let figures = clients::mixed(database, &streams, *ops, *gets)?;
                        self.sheet.add(&spot.at, database.contender.name, round, figures)?;
                    }
                }
                Work::Reads { read, draws, ops, absent } => {
                    let streams = self.streams(databases, &spot, (*draws, *draws));
                    self.say(&format!("{words}: all in turn"));
                    let reads = Reads { read: *read, absent: *absent, ops: *ops };
                    self.reads(&spot, databases, &reads, &streams.1)?;
                }
                Work::OpenLoop(load) => self.open_loop(&spot, databases, load)?,
                Work::Estimates { draws, absent, checks, puts, gets } => {
                    let streams = self.streams(databases, &spot, (*draws, *draws));
                    let mut watch = estimates::Watch::new(&databases[0], *absent, streams);
                    for check in 1..=*checks {
                        self.say(&format!("{words}: check {check} of {checks}"));
                        for (who, figures) in watch.check(*puts, *gets)? {
                            let number = (round - 1) * checks + check;
                            self.sheet.add(&spot.at, who, number, figures)?;
                        }
                    }
                }
            }
        }
        let at = Place::new(&case.name, branch, "tree");
        for database in databases {
            self.sheet.add(&at, database.contender.name, round, database.tree_figures())?;
        }
        Ok(())
    }

    /// The streams of puts and of gets of a phase.
    fn streams(
        &self,
        databases: &[Database],
        spot: &Spot,
        (puts, gets): (Draws, Draws),
    ) -> (Stream, Stream) {
        let count = databases[0].records.sizes.count;
        let stream = |draws, salt| Stream::new(draws, count, self.args.seed, spot.seed ^ salt);
        (stream(puts, 0x7000_0000), stream(gets, 0x9000_0000))
    }

    fn reads(
        &mut self,
        spot: &Spot,
        databases: &[Database],
        reads: &Reads,
        stream: &Stream,
    ) -> Result<()> {
        let mut lanes: Vec<Lane<'_>> =
            databases.iter().map(|database| Lane::new(database, stream)).collect::<Result<_>>()?;
        // Opens tables, and fills the cache where there is one.
        for lane in &mut lanes {
            lane.slice(reads, (reads.ops / 10).max(1))?;
        }
        for part in 1..=READ_ROUNDS {
            for lane in &mut lanes {
                lane.reset()?;
            }
            let mut left = (reads.ops / u64::from(READ_ROUNDS)).max(1);
            let mut turn = 0;
            while left > 0 {
                let ops = left.min(SLICE_OPS);
                let mut order: Vec<&mut Lane<'_>> = lanes.iter_mut().collect();
                if turn % 2 == 1 {
                    order.reverse();
                }
                order.into_iter().try_for_each(|lane| lane.slice(reads, ops))?;
                left -= ops;
                turn += 1;
            }
            let number = (spot.round - 1) * READ_ROUNDS + part;
            for lane in &lanes {
                self.sheet.add(&spot.at, lane.database.contender.name, number, lane.figures())?;
            }
        }
        Ok(())
    }

    fn open_loop(&mut self, spot: &Spot, databases: &[Database], load: &OpenLoop) -> Result<()> {
        let workers = |database: &Database, run: u64| {
            clients::workers(database, load, (self.args.seed, spot.seed ^ mix(run)))
        };
        let mut searched = Vec::new();
        for database in databases {
            eprintln!(
                "         {}: {}, what it sustains",
                spot.at.words(),
                database.contender.name
            );
            searched.push(clients::sustained(database, load, &mut workers(database, 0))?);
        }
        let slowest_per_s = searched.iter().map(|(per_s, _)| *per_s).fold(f64::INFINITY, f64::min);
        let mut measured = Vec::new();
        for percent in &load.loads_percent {
            let rate_per_s = slowest_per_s * f64::from(*percent) / 100.0;
            let length_ns = (load.window_s * 1e9) as u64;
            let phase = format!("{} at {percent} %", spot.at.phase);
            let at = Place { phase, ..spot.at.clone() };
            for window in 1..=load.windows {
                eprintln!("         {}: window {window} of {}", at.words(), load.windows);
                let number = (spot.round - 1) * load.windows + window;
                let run = u64::from(*percent) << 32 | u64::from(window);
                for database in in_turn(databases, window) {
                    let load = Load { rate_per_s, length_ns };
                    let figures = clients::window(database, load, &mut workers(database, run))?;
                    measured.push((at.clone(), database.contender.name, number, figures));
                }
            }
        }
        for (database, (_, figures)) in databases.iter().zip(searched) {
            self.sheet.add(&spot.at, database.contender.name, spot.round, figures)?;
        }
        measured
            .into_iter()
            .try_for_each(|(at, who, n, figures)| self.sheet.add(&at, who, n, figures))
    }
}

/// First to last in odd rounds, last to first in even ones: neither end
/// always runs on the other's heat.
fn in_turn(databases: &[Database], round: u32) -> Vec<&Database> {
    let mut order: Vec<&Database> = databases.iter().collect();
    if round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

#[allow(clippy::disallowed_methods, reason = "directories of the benchmark, not of a database")]
pub(super) fn make_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()).into())
}

pub(super) fn remove_dir(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {e}", dir.display()).into())
        }
        _ => Ok(()),
    }
}
