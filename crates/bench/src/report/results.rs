//! The measured results of one or more runs, read from files of JSON lines.
//!
//! Owns: reading, the message for a faulty file with its remedy, joining runs.
//! A run that was cut short is read as far as it got, and a note says so. Never
//! does: open a file, or mix figures that were not measured alike.

use crate::record::{ContenderLine, End, Head, Line, PhaseLine, WorkloadLine};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the lines that this program reads.
const VERSION: u64 = 1;

/// One run: the lines of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) head: Head,
    pub(crate) phases: Vec<PhaseLine>,
    /// The last line; `None` if the run was cut short.
    pub(crate) end: Option<End>,
}

/// The results of all runs that are reported together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Results {
    /// The heads, one for each run.
    pub(crate) heads: Vec<Head>,
    pub(crate) contenders: Vec<ContenderLine>,
    pub(crate) workloads: Vec<WorkloadLine>,
    pub(crate) phases: Vec<PhaseLine>,
    /// The total time; `None` if a part has no end.
    pub(crate) seconds: Option<f64>,
    /// Answers that differ between contenders.
    pub(crate) disagreements: Vec<String>,
    /// The reservations that a reader of the figures must know.
    pub(crate) notes: Vec<String>,
}

/// A phase of a workload, which all contenders ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PhasePlace<'a> {
    pub(crate) workload: &'a WorkloadLine,
    pub(crate) phase: &'a str,
}

impl PhasePlace<'_> {
    /// Returns its name: the phase alone where its workload's name says no
    /// more.
    pub(crate) fn words(&self) -> String {
        if self.workload.name == self.phase {
            self.phase.to_owned()
        } else {
            format!("{} {}", self.workload.name, self.phase)
        }
    }
}

impl Results {
    /// Returns the results of one run.
    pub(crate) fn of(run: &Run) -> Results {
        let mut results = Results::empty();
        results.contenders.clone_from(&run.head.contenders);
        results.workloads.clone_from(&run.head.workloads);
        results.take(Part { file: "the run".to_owned(), run: run.clone(), is_torn: false });
        results.add_notes();
        results
    }

    fn empty() -> Results {
        Results {
            heads: Vec::new(),
            contenders: Vec::new(),
            workloads: Vec::new(),
            phases: Vec::new(),
            seconds: Some(0.0),
            disagreements: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the places that have figures, in the order of the workloads.
    pub(crate) fn places(&self) -> Vec<PhasePlace<'_>> {
        self.workloads.iter().flat_map(|w| self.places_of(w)).collect()
    }

    /// Returns the places of one workload; phases that it does not list come
    /// last.
    pub(crate) fn places_of<'a>(&'a self, workload: &'a WorkloadLine) -> Vec<PhasePlace<'a>> {
        let ran: Vec<&str> = self
            .phases
            .iter()
            .filter(|p| p.workload == workload.name)
            .map(|p| p.phase.as_str())
            .collect();
        let listed = workload.phases.iter().map(String::as_str).filter(|name| ran.contains(name));
        let mut names: Vec<&str> = Vec::new();
        for name in listed.chain(ran.iter().copied()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.into_iter().map(|phase| PhasePlace { workload, phase }).collect()
    }

    /// Returns the lines of all contenders at a place.
    pub(crate) fn at<'a>(&'a self, place: PhasePlace<'_>) -> Vec<&'a PhaseLine> {
        let here = |p: &&PhaseLine| p.workload == place.workload.name && p.phase == place.phase;
        self.phases.iter().filter(here).collect()
    }

    /// Returns the lines of one contender at a place, one for each round.
    pub(crate) fn lines<'a>(
        &'a self,
        place: PhasePlace<'_>,
        contender: &str,
    ) -> Vec<&'a PhaseLine> {
        self.at(place).into_iter().filter(|p| p.contender == contender).collect()
    }

    /// Returns whether a contender's reads at a place went through the page
    /// cache where they should not: no contender is compared with such reads.
    pub(crate) fn is_buffered(&self, place: PhasePlace<'_>, contender: &str) -> bool {
        self.lines(place, contender).iter().any(|line| line.buffered)
    }

    /// Returns the results of these contenders alone, in this order.
    pub(crate) fn only(&self, names: &[&str]) -> Results {
        let mut results = self.clone();
        let known = |name: &&str| self.contenders.iter().find(|c| c.name == *name).cloned();
        results.contenders = names.iter().filter_map(known).collect();
        results.phases.retain(|phase| names.contains(&phase.contender.as_str()));
        results
    }

    /// Returns the number of rounds of a workload; the phases that run once,
    /// before the rounds, count as one if there are no others.
    pub(crate) fn rounds(&self, workload: &WorkloadLine) -> usize {
        let of = self.phases.iter().filter(|p| p.workload == workload.name).map(|p| p.round);
        let mut rounds: Vec<u32> = of.collect();
        if rounds.iter().any(|round| *round > 0) {
            rounds.retain(|round| *round > 0);
        }
        rounds.sort_unstable();
        rounds.dedup();
        rounds.len()
    }
}

/// Reads the texts of files: (name, contents). The error names file and line.
pub(crate) fn read(files: &[(String, String)]) -> Result<Results, String> {
    let mut parts = Vec::new();
    for (name, text) in files {
        parts.extend(parts_of(name, text)?);
    }
    let mut results = Results::empty();
    for part in parts {
        results.take_head(&part.file, &part.run.head)?;
        results.take(part);
    }
    results.add_notes();
    if results.phases.is_empty() {
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!(
            "{}: no phase was measured yet; `windrow-bench resume` goes on with such a run",
            names.join(", ")
        ));
    }
    Ok(results)
}

/// Reads the text of one run's file. The error names file and line.
pub(crate) fn run_of(file: &str, text: &str) -> Result<Run, String> {
    let mut parts = parts_of(file, text)?;
    match (parts.pop(), parts.is_empty()) {
        (Some(part), true) => Ok(part.run),
        _ => Err(format!("{file}: holds the lines of several runs")),
    }
}

/// A run with the name of its file.
struct Part {
    file: String,
    run: Run,
    /// Whether its last line is half a line.
    is_torn: bool,
}

fn parts_of(file: &str, text: &str) -> Result<Vec<Part>, String> {
    let mut parts: Vec<Part> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("{file}, line {}", i + 1);
        let is_cut = i + 1 == lines.len() && !text.ends_with('\n');
        let parsed = match (parse(line), parts.last_mut()) {
            (Ok(parsed), _) => parsed,
            // A killed run may have left half a line.
            (Err(_), Some(part)) if is_cut => {
                part.is_torn = true;
                break;
            }
            (Err(problem), _) => return Err(format!("{place}: {problem}")),
        };
        match (parsed, parts.last_mut()) {
            (Line::Run(head), _) => {
                let run = Run { head: *head, phases: Vec::new(), end: None };
                parts.push(Part { file: file.to_owned(), run, is_torn: false });
            }
            (Line::Phase(phase), Some(part)) => {
                check(&part.run.head, &phase).map_err(|problem| format!("{place}: {problem}"))?;
                part.run.phases.push(*phase);
            }
            (Line::End(end), Some(part)) => part.run.end = Some(end),
            (_, None) => {
                return Err(format!(
                    "{place}: a run begins with a line of kind \"run\"; this file has lost its \
                     first line"
                ));
            }
        }
    }
    if parts.is_empty() {
        return Err(format!(
            "{file}: is empty; `windrow-bench run --json {file}` writes such a file"
        ));
    }
    Ok(parts)
}

/// Parses one line. It looks at the version first: errors about another
/// version's fields would be misleading.
fn parse(line: &str) -> Result<Line, String> {
    let value: Value = serde_json::from_str(line).map_err(|e| {
        format!("not JSON ({e}); is this a file that `windrow-bench run --json` wrote?")
    })?;
    if value["kind"] == "run" && value["version"].as_u64() != Some(VERSION) {
        return Err(format!(
            "written in version {} of the lines, and this program reads version {VERSION}; use \
             the program that made it, or run again",
            value["version"]
        ));
    }
    serde_json::from_value(value).map_err(|e| format!("not a line of a run: {e}"))
}

fn check(head: &Head, phase: &PhaseLine) -> Result<(), String> {
    if !head.contenders.iter().any(|c| c.name == phase.contender) {
        return Err(format!("contender `{}` is not in the run's first line", phase.contender));
    }
    if !head.workloads.iter().any(|w| w.name == phase.workload) {
        return Err(format!("workload `{}` is not in the run's first line", phase.workload));
    }
    Ok(())
}

impl Results {
    /// Adds a run's head, or says why it cannot be reported together with those
    /// before it.
    fn take_head(&mut self, file: &str, head: &Head) -> Result<(), String> {
        for contender in &head.contenders {
            match self.contenders.iter().find(|c| c.name == contender.name) {
                None => self.contenders.push(contender.clone()),
                Some(known) if known == contender => {}
                Some(known) => {
                    return Err(format!(
                        "{file}: `{}` is {} here and {} in an earlier file, or set up \
                         differently; report them apart",
                        known.name, contender.version, known.version
                    ));
                }
            }
        }
        for workload in &head.workloads {
            let Some(known) = self.workloads.iter_mut().find(|w| w.name == workload.name) else {
                self.workloads.push(workload.clone());
                continue;
            };
            let measured_alike =
                |w: &WorkloadLine| (w.records, w.memory_bytes, w.direct_io, w.phases.clone());
            if measured_alike(known) != measured_alike(workload) {
                return Err(format!(
                    "{file}: workload `{}` has other records, memory, I/O or phases than in an \
                     earlier file; report them apart",
                    workload.name
                ));
            }
        }
        match self.heads.first().filter(|first| first.scale != head.scale) {
            Some(first) => Err(format!(
                "{file}: scale `{}`, and an earlier file has `{}`; report them apart",
                head.scale, first.scale
            )),
            None => Ok(()),
        }
    }

    /// Adds a run's measurements.
    fn take(&mut self, part: Part) {
        self.take_phases(part.run.phases);
        match part.run.end {
            Some(end) => {
                self.seconds = self.seconds.map(|s| s + end.seconds);
                self.disagreements.extend(end.disagreements);
            }
            None => {
                self.seconds = None;
                let torn = if part.is_torn { " in the middle of a line" } else { "" };
                self.notes.push(format!(
                    "{} breaks off{torn}: the run did not come to its end, and not all answers \
                     were compared.",
                    part.file
                ));
            }
        }
        self.heads.push(part.run.head);
    }

    /// Adds phases; rounds that exist already become later rounds.
    fn take_phases(&mut self, phases: Vec<PhaseLine>) {
        let key =
            |p: &PhaseLine| (p.workload.clone(), p.phase.clone(), p.contender.clone(), p.round);
        let known: BTreeSet<_> = self.phases.iter().map(key).collect();
        let mut shift: BTreeMap<String, u32> = BTreeMap::new();
        for phase in phases.iter().filter(|p| known.contains(&key(p))) {
            let of = self.phases.iter().filter(|p| p.workload == phase.workload);
            // At least 1: the phases that run once are then there twice.
            let last = of.map(|p| p.round).max().unwrap_or(0).max(1);
            shift.insert(phase.workload.clone(), last);
        }
        for mut phase in phases {
            phase.round += shift.get(&phase.workload).copied().unwrap_or(0);
            self.phases.push(phase);
        }
    }

    /// Adds the reservations that a reader of the figures must know.
    fn add_notes(&mut self) {
        let differ = |same: &dyn Fn(&Head, &Head) -> bool| {
            self.heads.windows(2).any(|pair| !same(&pair[0], &pair[1]))
        };
        let mut notes = Vec::new();
        if differ(&|a, b| a.machine == b.machine) {
            notes.push(
                "The runs are of different machines: ratios across them mean nothing.".to_owned(),
            );
        }
        if differ(&|a, b| a.seed == b.seed) {
            notes.push("The runs have different seeds.".to_owned());
        }
        if self.heads.iter().any(|head| head.scale == "quick") {
            notes.push(
                "Scale quick shows that everything runs; its figures say nothing.".to_owned(),
            );
        }
        let ran = self.workloads.iter().filter(|w| self.rounds(w) == 1);
        let single: Vec<&str> = ran.map(|w| w.name.as_str()).collect();
        if !single.is_empty() {
            let names = single.join(", ");
            notes.push(format!("One round only, so nothing is known of the spread: {names}."));
        }
        let evicted = self.names_where(|phase| phase.evicted);
        if !evicted.is_empty() {
            notes.push(format!(
                "No direct I/O in {}: where a workload asks for it, files were dropped from the \
                 page cache before reads instead.",
                evicted.join(", ")
            ));
        }
        notes.extend(self.buffered());
        notes.extend(self.overrun());
        self.notes.extend(notes);
    }

    /// Returns the contenders that have a line like this, in their order.
    fn names_where(&self, like: impl Fn(&PhaseLine) -> bool) -> Vec<&str> {
        let has = |name: &str| self.phases.iter().any(|p| p.contender == name && like(p));
        self.contenders.iter().map(|c| c.name.as_str()).filter(|name| has(name)).collect()
    }

    /// Returns the mixes of reads and writes in which direct I/O was asked for
    /// in vain.
    fn buffered(&self) -> Vec<String> {
        let at = |place: PhasePlace<'_>| {
            let names = self.contenders.iter().map(|c| c.name.as_str());
            let names: Vec<&str> = names.filter(|name| self.is_buffered(place, name)).collect();
            (!names.is_empty()).then(|| {
                format!(
                    "{}: the reads of {} went through the page cache, which no budget bounds; \
                     it is not among the peers there.",
                    place.words(),
                    names.join(", ")
                )
            })
        };
        self.places().into_iter().filter_map(at).collect()
    }

    /// Returns the open loops that a contender could not serve: a queue grew
    /// without end.
    fn overrun(&self) -> Vec<String> {
        // Or all were served, but more than a fiftieth of the window after its
        // end.
        let is_late = |p: &PhaseLine| {
            let [late_s, seconds] = ["late_s", "seconds"].map(|name| p.figures.get(name).copied());
            late_s.zip(seconds).is_some_and(|(late, all)| late > (all - late) / 50.0 + 0.05)
        };
        let fell_behind =
            |p: &PhaseLine| p.figures.get("served_share").is_some_and(|s| *s < 0.99) || is_late(p);
        let behind = |place: PhasePlace<'_>| {
            let here = |p: &PhaseLine| {
                p.workload == place.workload.name && p.phase == place.phase && fell_behind(p)
            };
            let names = self.names_where(here);
            (!names.is_empty()).then(|| {
                format!(
                    "{}: {} could not serve the rate in every round; its latencies there say only \
                     for how long the queue grew.",
                    place.words(),
                    names.join(", ")
                )
            })
        };
        self.places().into_iter().filter_map(behind).collect()
    }
}
