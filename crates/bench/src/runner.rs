//! A run: its workloads in sequence, each with its rounds, each round with the contenders in turn,
//! every unit in a process of its own.
//!
//! Owns: the order of units, directories, children, the file of lines, the comparison between
//! contenders. Never does: measure (`child.rs` does).

mod dirs;
mod plan;

use crate::args::RunArgs;
use crate::child::{self, Unit};
use crate::machine;
use crate::output;
use crate::process::Stopwatch;
use crate::progress::Progress;
use crate::record::{ContenderLine, End, Head, Line, PhaseLine, WorkloadLine};
use crate::store::{Engine, Result};
use crate::workload::{Workload, rate_key};
use dirs::{copy_dir, make_dir, remove_dir};
use plan::{UnitPlace, units};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs units, and keeps their lines.
pub(crate) struct Runner<'a> {
    args: &'a RunArgs,
    dir: PathBuf,
    file: File,
    phases: Vec<PhaseLine>,
    disagreements: Vec<String>,
}

/// Returns the head of a run.
pub(crate) fn head(args: &RunArgs, engines: &[Engine], command: &[String]) -> Result<Head> {
    let mut contenders = Vec::new();
    let all = args.workloads.iter().flat_map(|(workload, _)| &workload.contenders);
    for own in all {
        if contenders.iter().any(|known: &ContenderLine| known.name == own.name) {
            continue;
        }
        let engine = child::engine_of(engines, own)?;
        contenders.push(ContenderLine {
            name: own.name.clone(),
            engine: engine.name.to_owned(),
            version: (engine.version)(),
            tuning: engine.tuning.to_owned(),
            direct_io: engine.abilities.direct_io,
        });
    }
    let workloads = args.workloads.iter().map(|(workload, _)| {
        let plain = crate::workload::Contender::named("");
        let common = args.setup.common(workload, &plain);
        WorkloadLine {
            name: workload.name.clone(),
            title: workload.title.clone(),
            family: workload.family.clone(),
            about: workload.about.trim().to_owned(),
            rounds: args.rounds_of(workload),
            records: workload.data.records,
            memory_bytes: common.memory_bytes,
            direct_io: common.direct_io,
            phases: workload.measured(),
            shown: workload.shown.clone(),
            shown_in: workload.shown_in(),
        }
    });
    let setup = &args.setup;
    let mut overrides: BTreeMap<String, String> = setup.settings.iter().cloned().collect();
    overrides.insert("background_threads".to_owned(), setup.background_threads.to_string());
    overrides.insert("codec".to_owned(), if setup.lz4 { "lz4" } else { "none" }.to_owned());
    Ok(Head {
        version: 1,
        started: machine::utc_now(),
        command: command.to_vec(),
        seed: args.seed,
        scale: args.scale.name().to_owned(),
        overrides,
        contenders,
        workloads: workloads.collect(),
        machine: machine::describe(args.dir.as_deref().unwrap_or(&std::env::temp_dir())),
    })
}

impl<'a> Runner<'a> {
    /// Makes a runner whose lines go to `file`. `phases` are those of an earlier part of the run,
    /// which are not done again; it kept its databases in `dir`.
    pub(crate) fn new(args: &'a RunArgs, file: File, phases: Vec<PhaseLine>) -> Result<Runner<'a>> {
        let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir).join(format!(
            "windrow-bench-{:016x}",
            // A resumed run has the same fingerprint.
            args.fingerprint()
        ));
        make_dir(&dir)?;
        Ok(Runner { args, dir, file, phases, disagreements: Vec::new() })
    }

    /// Writes the head of a new run.
    pub(crate) fn begin(&mut self, head: &Head) -> Result<()> {
        self.write(&Line::Run(Box::new(head.clone())))
    }

    /// Runs all units that are not done yet. Returns all lines.
    pub(crate) fn run(mut self) -> Result<(Vec<PhaseLine>, End)> {
        let mut watch = Stopwatch::start();
        let args = self.args;
        let units: Vec<Vec<UnitPlace>> = args
            .workloads
            .iter()
            .map(|(workload, _)| units(workload, args.rounds_of(workload)))
            .collect();
        let mut progress = Progress::new(units.iter().map(Vec::len).sum());
        for ((workload, text), places) in args.workloads.iter().zip(units) {
            for place in &places {
                let round = if place.round == 0 {
                    String::new()
                } else {
                    format!(" round {}", place.round)
                };
                progress.next(&format!("{}{round} {}", workload.name, place.contender));
                self.place(workload, text, place)?;
            }
            for contender in &workload.contenders {
                remove_dir(&self.dir_of(workload, &contender.name))?;
            }
        }
        remove_dir(&self.dir)?;
        let end =
            End { seconds: watch.lap().as_secs_f64(), disagreements: self.disagreements.clone() };
        self.write(&Line::End(end.clone()))?;
        Ok((self.phases, end))
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        // One call, so that a line is whole or absent if the run is killed.
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        Ok(self.file.flush()?)
    }

    fn dir_of(&self, workload: &Workload, contender: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        // Names that differ only in other characters have places of their own.
        let place = workload.contenders.iter().position(|c| c.name == contender).unwrap_or(0);
        let words = format!("{}-{contender}-{place}", workload.name);
        self.dir.join(words.chars().map(plain).collect::<String>())
    }

    /// Returns whether all measured phases of a place are among the lines.
    fn is_done(&self, workload: &Workload, place: &UnitPlace) -> bool {
        let mut measured = workload.phases[place.phases.0..place.phases.1].iter();
        measured.all(|phase| {
            phase.prepare || self.has(&workload.name, &phase.name, &place.contender, place.round)
        })
    }

    fn has(&self, workload: &str, phase: &str, contender: &str, round: u32) -> bool {
        self.phases.iter().any(|line| {
            line.workload == workload
                && line.phase == phase
                && line.contender == contender
                && line.round == round
        })
    }

    fn place(&mut self, workload: &Workload, text: &str, place: &UnitPlace) -> Result<()> {
        let dir = self.dir_of(workload, &place.contender);
        // A unit that was cut off leaves a store in a state that others do not have.
        let (busy, is_done) = (dir.join("busy"), self.is_done(workload, place));
        let data = dir.join("data");
        if place.is_fresh {
            let is_kept = workload.once() > 0 && data.exists() && !busy.exists();
            if is_done && (is_kept || workload.once() == 0 || self.rest_is_done(workload, place)) {
                return Ok(());
            }
            remove_dir(&dir)?;
        } else if is_done {
            return Ok(());
        }
        if busy.exists() {
            remove_dir(&dir)?;
            let once = UnitPlace {
                round: 0,
                phases: (0, workload.once()),
                is_fresh: true,
                is_branch: false,
                ..place.clone()
            };
            self.unit(workload, text, &once, &dir)?;
        }
        if place.is_branch {
            let branch = dir.join("branch");
            remove_dir(&branch)?;
            copy_dir(&data, &branch.join("data"))?;
            self.unit(workload, text, place, &branch)?;
            return remove_dir(&branch);
        }
        self.unit(workload, text, place, &dir)?;
        if workload.once() == 0 {
            remove_dir(&dir)?;
        }
        Ok(())
    }

    /// Returns whether all of a contender's rounds are done, so that none needs the phases that run
    /// once.
    fn rest_is_done(&self, workload: &Workload, place: &UnitPlace) -> bool {
        let phases = (workload.once(), workload.phases.len());
        let rounds = 1..=self.args.rounds_of(workload);
        rounds
            .map(|round| UnitPlace { round, phases, ..place.clone() })
            .all(|p| self.is_done(workload, &p))
    }

    /// Runs one unit and keeps its lines.
    fn unit(
        &mut self,
        workload: &Workload,
        text: &str,
        place: &UnitPlace,
        dir: &Path,
    ) -> Result<()> {
        let (busy, data) = (dir.join("busy"), dir.join("data"));
        make_dir(&data)?;
        make_dir(&busy)?;
        let unit = Unit {
            workload: workload.name.clone(),
            file: workload.file.clone(),
            text: text.to_owned(),
            scale: self.args.scale.name().to_owned(),
            seed: self.args.seed,
            contender: place.contender.clone(),
            round: place.round,
            phases: place.phases,
            dir: data,
            setup: self.args.setup.clone(),
            rates_per_s: self.rates(workload),
        };
        let lines = self.child(&unit)?;
        remove_dir(&busy)?;
        for line in lines {
            // A resumed run that lost its store runs the first phases again: their lines exist.
            if !self.has(&line.workload, &line.phase, &line.contender, line.round) {
                self.take(line)?;
            }
        }
        Ok(())
    }

    /// Returns the rates that each contender and the slowest one sustain, by the phase that
    /// searched.
    fn rates(&self, workload: &Workload) -> BTreeMap<String, f64> {
        let mut rates: BTreeMap<String, f64> = BTreeMap::new();
        for line in self.phases.iter().filter(|line| line.workload == workload.name) {
            if let Some(rate) = line.figures.get("sustainable_per_s") {
                let slowest = rates.entry(rate_key(&line.phase, None)).or_insert(f64::INFINITY);
                *slowest = slowest.min(*rate);
                rates.insert(rate_key(&line.phase, Some(&line.contender)), *rate);
            }
        }
        rates
    }

    fn child(&self, unit: &Unit) -> Result<Vec<PhaseLine>> {
        // The pending writes of earlier units must not be this one's load.
        rustix::fs::sync();
        let output = Command::new(std::env::current_exe()?)
            .arg("--child")
            .arg(serde_json::to_string(unit)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .output()?;
        let what = format!("{} on {}", unit.workload, unit.contender);
        if !output.status.success() {
            return Err(format!("{what}: {}", output.status).into());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let parse = |line| serde_json::from_str(line).map_err(|e| format!("{what}: {e}").into());
        text.lines().filter(|line| line.starts_with('{')).map(parse).collect()
    }

    /// Keeps a line, and compares it with those of the other contenders.
    fn take(&mut self, line: PhaseLine) -> Result<()> {
        for problem in disagreements(&self.phases, &line) {
            output::note(format_args!("windrow-bench: {problem}"));
            self.disagreements.push(problem);
        }
        self.write(&Line::Phase(Box::new(line.clone())))?;
        self.phases.push(line);
        Ok(())
    }
}

/// Returns the differences of a line from the first contender's in the same place.
fn disagreements(known: &[PhaseLine], line: &PhaseLine) -> Vec<String> {
    let first = known.iter().find(|other| {
        other.workload == line.workload && other.phase == line.phase && other.round == line.round
    });
    let Some(first) = first else { return Vec::new() };
    let sums =
        [("answers", &line.answers, &first.answers), ("contents", &line.contents, &first.contents)];
    let differ = sums
        .into_iter()
        .filter(|(_, ours, theirs)| ours.is_some() && theirs.is_some() && ours != theirs);
    let told = |(what, ..): (&str, _, _)| {
        format!(
            "{}, {}, round {}: {what} of {} and of {} differ",
            line.workload, line.phase, line.round, line.contender, first.contender
        )
    };
    differ.map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(contender: &str, round: u32, sums: [Option<&str>; 2]) -> PhaseLine {
        let [answers, contents] = sums.map(|sum| sum.map(str::to_owned));
        let (workload, phase) = ("w".to_owned(), "p".to_owned());
        let contender = contender.to_owned();
        PhaseLine { workload, phase, contender, round, answers, contents, ..PhaseLine::default() }
    }

    #[test]
    fn checksums_are_compared_in_the_same_round() {
        let known = [line("a", 1, [Some("1"), Some("2")]), line("a", 2, [Some("3"), Some("4")])];
        for (round, sums, differ) in [
            (1, [Some("1"), Some("2")], 0),
            (2, [Some("3"), Some("4")], 0),
            // A phase without an order, or with expiry, has no checksum.
            (1, [None, None], 0),
            // No other line of that round exists.
            (3, [Some("9"), Some("9")], 0),
            (1, [Some("9"), Some("2")], 1),
            (1, [Some("1"), None], 0),
            (2, [Some("9"), Some("9")], 2),
        ] {
            let problems = disagreements(&known, &line("b", round, sums));
            assert_eq!(problems.len(), differ, "{round} {sums:?}: {problems:?}");
            assert!(
                problems.iter().all(|p| p.contains(" b ") && p.contains("of a")),
                "{problems:?}"
            );
        }
    }
}
