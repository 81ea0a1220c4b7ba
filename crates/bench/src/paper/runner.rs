//! Runs an experiment: cases, rounds, branches, phases, in this one process.
//!
//! Owns: the order of things, which is what makes figures comparable:
//! contenders get the same keys; where one writes, the others are idle and
//! drained; reads and open-loop windows alternate between them.
//! Never does: decide what is measured (experiments do), or judge it.

use super::args::Args;
use super::clients::{self, Lane};
use super::database::Database;
use super::estimates;
use super::experiment::{
    Branch, Case, Contender, Estimates, Experiment, OpenLoop, Phase, Place, Reads, Work,
};
use super::files;
use super::records::Records;
use super::sheet::{Sheet, Who};
use crate::data::mix;
use crate::draws::{Draws, Stream};
use crate::driver::Load;
use crate::output;
use crate::process::Stopwatch;
use crate::report::Figures;
use crate::store::{Engine, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// Reads of one contender before it is the next one's turn.
const SLICE_OPS: u64 = 250;

/// Read phases are cut into this many rounds, whose ratios show their spread.
const READ_ROUNDS: u32 = 5;

/// Runs one experiment.
pub(crate) struct Runner<'a> {
    args: &'a Args,
    engines: &'a [Engine],
    experiment: &'a Experiment,
    dir: PathBuf,
    sheet: Sheet,
    watch: Stopwatch,
    elapsed_s: f64,
    /// How printing went.
    shown: Result<()>,
}

/// Where a phase runs, and what numbers it draws.
struct Spot {
    at: Place,
    round: u32,
    seed: u64,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        args: &'a Args,
        engines: &'a [Engine],
        experiment: &'a Experiment,
        dir: PathBuf,
    ) -> Result<Self> {
        let sheet = Sheet::new(experiment, args.scale, args.json.as_deref())?;
        let watch = Stopwatch::start();
        Ok(Runner { args, engines, experiment, dir, sheet, watch, elapsed_s: 0.0, shown: Ok(()) })
    }

    /// Runs all cases; prints a table after each and the verdicts at the end.
    pub(crate) fn run(mut self) -> Result<Sheet> {
        let rounds = self.args.rounds.unwrap_or(self.experiment.rounds);
        for case in &self.experiment.cases {
            for round in 1..=rounds {
                self.case(case, round)?;
            }
            self.show(self.sheet.table(case, &self.experiment.shown))?;
        }
        self.show(self.sheet.verdicts(&self.experiment.goals))?;
        self.shown.map(|()| self.sheet)
    }

    /// Prints results. Where they go to a file too, the run goes on though
    /// nobody takes them here; the first failure is told at its end.
    fn show(&mut self, text: String) -> Result<()> {
        let printed = output::print(text);
        if self.args.json.is_none() {
            return printed;
        }
        if self.shown.is_ok() {
            self.shown = printed;
        }
        Ok(())
    }

    /// A line of progress.
    fn say(&mut self, words: &str) {
        self.elapsed_s += self.watch.lap().as_secs_f64();
        output::note(format_args!("{:>6.0} s  {words}", self.elapsed_s));
    }

    fn case(&mut self, case: &Case, round: u32) -> Result<()> {
        let records = Arc::new(Records::new(case.sizes.clone(), self.args.seed));
        let dir = self.dir.join(format!("round{round}"));
        let loaded: Vec<PathBuf> =
            (0..case.contenders.len()).map(|i| dir.join(format!("load-{i}"))).collect();
        loaded.iter().try_for_each(|dir| files::make_dir(dir))?;
        let databases = self.open(case, &loaded, &records)?;
        self.phases(case, "", &case.load, &databases, round)?;
        if let [only] = &case.branches[..] {
            self.phases(case, &only.name, &only.phases, &databases, round)?;
            close(databases)?;
        } else {
            close(databases)?;
            for branch in &case.branches {
                self.branch(case, branch, (&loaded, &records), round)?;
            }
        }
        files::remove_dir(&dir)
    }

    /// The databases of a case's contenders, in their directories.
    fn open(&self, case: &Case, dirs: &[PathBuf], records: &Arc<Records>) -> Result<Vec<Database>> {
        let open = |(contender, dir): (&Contender, &PathBuf)| {
            Database::open(self.engines, dir, (case, contender), &self.args.settings, records)
                .map_err(|e| format!("{}: {e}", contender.name).into())
        };
        case.contenders.iter().zip(dirs).map(open).collect()
    }

    /// A branch on copies of the databases, which are closed.
    fn branch(
        &mut self,
        case: &Case,
        branch: &Branch,
        (loaded, records): (&[PathBuf], &Arc<Records>),
        round: u32,
    ) -> Result<()> {
        let dir = self.dir.join("branch");
        files::remove_dir(&dir)?;
        let copies: Vec<PathBuf> = (0..loaded.len()).map(|i| dir.join(i.to_string())).collect();
        loaded.iter().zip(&copies).try_for_each(|(from, to)| files::copy_dir(from, to))?;
        let databases = self.open(case, &copies, records)?;
        self.phases(case, &branch.name, &branch.phases, &databases, round)?;
        close(databases)?;
        files::remove_dir(&dir)
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
            let at = Place::new(&case.name, branch, &phase.name);
            let words = at.words();
            let seed = words.bytes().fold(mix(self.args.seed), |h, b| mix(h ^ u64::from(b)));
            let spot = Spot { at, round, seed: seed ^ u64::from(round) << 8 ^ i as u64 };
            match &phase.work {
                Work::Mixed(work) => {
                    let streams = self.streams(databases, &spot, (work.puts, work.gets.draws));
                    for database in in_turn(databases, round) {
                        self.say(&format!("{words}: {}", database.contender.name));
                        let figures = clients::mixed(database, &streams, work)?;
                        self.add(&spot.at, database, round, figures)?;
                    }
                }
                Work::Reads(reads) => {
                    let streams = self.streams(databases, &spot, (reads.draws, reads.draws));
                    self.say(&format!("{words}: all in turn"));
                    self.reads(&spot, databases, reads, &streams.1)?;
                }
                Work::OpenLoop(load) => self.open_loop(&spot, databases, load)?,
                Work::Estimates(work) => self.estimates(&spot, databases, work)?,
            }
        }
        let at = Place::new(&case.name, branch, "tree");
        for database in databases {
            self.add(&at, database, round, database.tree_figures())?;
        }
        Ok(())
    }

    fn add(&mut self, at: &Place, of: &Database, round: u32, figures: Figures) -> Result<()> {
        self.sheet.add(at, Who::from(&of.contender), round, figures)
    }

    fn estimates(&mut self, spot: &Spot, databases: &[Database], work: &Estimates) -> Result<()> {
        let streams = self.streams(databases, spot, (work.draws, work.draws));
        let mut watch = estimates::Watch::new(&databases[0], work.absent, streams);
        for check in 1..=work.checks {
            self.say(&format!("{}: check {check} of {}", spot.at.words(), work.checks));
            for (name, figures) in watch.check(work.puts, work.gets)? {
                let number = (spot.round - 1) * work.checks + check;
                let who = Who { name, engine: &databases[0].contender.engine };
                self.sheet.add(&spot.at, who, number, figures)?;
            }
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
                self.add(&spot.at, lane.database, number, lane.figures())?;
            }
        }
        Ok(())
    }

    fn open_loop(&mut self, spot: &Spot, databases: &[Database], load: &OpenLoop) -> Result<()> {
        let load_seed = self.args.seed;
        let seeds = |run: u64| (load_seed, spot.seed ^ mix(run));
        let mut searched = Vec::new();
        for database in databases {
            output::note(format_args!(
                "         {}: {}, what it sustains",
                spot.at.words(),
                database.contender.name
            ));
            searched.push(clients::sustained(database, load, seeds(0))?);
        }
        let slowest_per_s = searched.iter().map(|(per_s, _)| *per_s).fold(f64::INFINITY, f64::min);
        let mut measured = Vec::new();
        for percent in &load.loads_percent {
            let rate_per_s = slowest_per_s * f64::from(*percent) / 100.0;
            let length_ns = (load.window_s * 1e9) as u64;
            let phase = format!("{} at {percent} %", spot.at.phase);
            let at = Place { phase, ..spot.at.clone() };
            for window in 1..=load.windows {
                output::note(format_args!(
                    "         {}: window {window} of {}",
                    at.words(),
                    load.windows
                ));
                let number = (spot.round - 1) * load.windows + window;
                let run = u64::from(*percent) << 32 | u64::from(window);
                for database in in_turn(databases, window) {
                    let rate = Load { rate_per_s, length_ns };
                    let figures = clients::window(database, load, rate, seeds(run))?;
                    measured.push((at.clone(), database, number, figures));
                }
            }
        }
        for (database, (_, figures)) in databases.iter().zip(searched) {
            self.add(&spot.at, database, spot.round, figures)?;
        }
        measured
            .into_iter()
            .try_for_each(|(at, database, n, figures)| self.add(&at, database, n, figures))
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

fn close(databases: Vec<Database>) -> Result<()> {
    databases.into_iter().try_for_each(Database::close)
}
