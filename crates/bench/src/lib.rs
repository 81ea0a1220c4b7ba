//! Benchmarks: the same workloads on any store behind one trait, each run in a process of its own,
//! engines in turn.
//!
//! A workload file names the phases of a run. Among the files are the experiments of the papers
//! behind Windrow's policies, with the papers' claims.
//!
//! Owns: the generators, the workloads, the measuring of a process, the report. Never does: tune a
//! store (its adapter does, and says how), or judge a figure from one run: rounds are interleaved,
//! and ratios are taken per round.

mod args;
mod call;
mod child;
mod claims;
mod client;
mod data;
mod dataset;
mod draws;
mod driver;
mod latency;
mod lengths;
mod machine;
mod op;
mod output;
mod paper;
mod process;
mod progress;
mod record;
mod report;
mod runner;
pub mod store;
mod workload;

use args::{About, Command, RunArgs, USAGE};
use record::Head;
use runner::Runner;
use std::fs::File;
use std::path::{Path, PathBuf};
use store::{Engine, Result};

/// Printed below the figures of `quick`.
const QUICK: &str = "
This was a test of the benchmark: everything ran, on so little data that the figures say nothing of
any engine. `run` measures; `claims` measures what README says.
";

/// Runs the benchmark of these engines in turn, as `windrow-bench` and `windrow-bench-peers` do.
/// `args` are the words after the program's name. Returns the exit code: 0, 1 after an error or a
/// wrong answer, 2 for wrong arguments.
pub fn run(engines: &[Engine], args: &[String]) -> i32 {
    if args.is_empty() || args.iter().any(|a| a == "--help" || a == "-h") {
        let printed = output::exit_code("windrow-bench", output::print(format_args!("{USAGE}\n")));
        return if args.is_empty() { 2 } else { printed };
    }
    let command = match Command::parse(args, engines) {
        Ok(command) => command,
        Err(problem) => {
            output::note(format_args!(
                "windrow-bench: {problem}\n\n`windrow-bench --help` tells the commands and flags"
            ));
            return 2;
        }
    };
    let done = match command {
        Command::List => list(),
        Command::ListPapers => output::print(paper::listed()),
        Command::Show(name) => show(&name),
        Command::Child(unit) => serde_json::from_str(&unit)
            .map_err(Into::into)
            .and_then(|unit| child::run(engines, &unit)),
        Command::Report(report) => report::write(&report),
        Command::Run(run) => begin(engines, args, &run),
        Command::Resume(file, dir) => resume(engines, &file, dir),
    };
    output::exit_code("windrow-bench", done)
}

fn list() -> Result<()> {
    for name in [workload::names(), workload::by_name(), paper::experiment_names()].concat() {
        let text = args::builtin_text(&name).unwrap_or_default();
        let workloads = workload::parse(&name, text, workload::Scale::Full)?;
        let Some(workload) = workloads.first() else { continue };
        output::print(format_args!("{name:<22} {:<12} {}\n", workload.family, workload.title))?;
    }
    Ok(())
}

fn show(name: &str) -> Result<()> {
    let text = args::builtin_text(name)
        .ok_or_else(|| format!("no workload `{name}`; `windrow-bench list` names them"))?;
    output::print(text)
}

/// Begins a new run.
fn begin(engines: &[Engine], command: &[String], args: &RunArgs) -> Result<()> {
    let head = runner::head(args, engines, &args::without_places(command))?;
    args.notes.iter().for_each(output::note);
    let name = || format!("windrow-bench-{}.jsonl", head.started.replace([':', '-'], ""));
    let path = args.json.clone().unwrap_or_else(|| name().into());
    let file = File::options().write(true).create_new(true).open(&path).map_err(|error| {
        format!(
            "{}: {error}; name another file by --json, or `windrow-bench resume` this one",
            path.display()
        )
    })?;
    let mut runner = Runner::new(args, file, Vec::new())?;
    runner.begin(&head)?;
    finish(args, runner, head, &path)
}

/// Resumes a run: units whose lines it has are not run again.
#[allow(clippy::disallowed_methods, reason = "the user's file of results")]
fn resume(engines: &[Engine], path: &Path, dir: Option<PathBuf>) -> Result<()> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    let run = report::run_of(&name, &text)?;
    if run.end.is_some() {
        return Err(format!("{name}: this run is complete").into());
    }
    let Command::Run(mut args) = Command::parse(&run.head.command, engines)? else {
        return Err(format!("{name}: not a run's command: {:?}", run.head.command).into());
    };
    args.dir = dir.or(args.dir);
    let file = File::options().append(true).open(path)?;
    // A killed run may have left half a line.
    file.set_len(text.rfind('\n').map_or(0, |end| end as u64 + 1))?;
    output::note(format_args!(
        "windrow-bench: {} of the run's lines are there already",
        run.phases.len()
    ));
    finish(&args, Runner::new(&args, file, run.phases)?, run.head, path)
}

/// Runs the units that are left, and prints the tables.
fn finish(args: &RunArgs, runner: Runner<'_>, head: Head, path: &Path) -> Result<()> {
    let (phases, end) = runner.run().map_err(|error| {
        format!(
            "{error}\nwhat was measured is kept: `windrow-bench resume {}` goes on",
            path.display()
        )
    })?;
    let disagreements = end.disagreements.len();
    let run = report::Run { head, phases, end: Some(end) };
    let last = format!("\nlines: {0}; pictures: windrow-bench report {0}\n", path.display());
    let verdicts =
        report::verdicts(args.workloads.iter().map(|(workload, _)| workload), &run.phases);
    let tables = report::table(&run) + &verdicts;
    let told = match args.about {
        About::Workloads => tables,
        About::Quick => tables + QUICK,
        About::Claims => tables + &claims::compared(&claims::claims(), &run.phases),
    };
    let printed = output::print(told + &last);
    // The checksums come first: one that differs is a failure whether or not anybody reads the
    // tables.
    match disagreements {
        0 => printed,
        n => Err(format!("{n} checksums differ between contenders: see above").into()),
    }
}
