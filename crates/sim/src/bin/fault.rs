//! `fault`: any number of seeds of the crash harness, on all processors; or its exhaustive loops.
//! At the first failure it ends with the one line that repeats it.
//!
//! Owns: arguments, progress, the report. Never does: crash anything itself.

#![allow(
    clippy::disallowed_methods,
    reason = "a program for people: it reports how many crashes a second it makes"
)]

use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;
use windrow_sim::crash::{self, Summary, repeat_line};
use windrow_sim::scenario::{Keep, Settings};
use windrow_sim::set::Set;
use windrow_sim::{exhaustive, shrink};
use windrow_testkit::compose::Kinds;
use windrow_testkit::sweep;

/// Seeds between two lines of progress.
const CHUNK: u64 = 2_000;

/// Crashes a database on a simulated machine, by seed, and judges the remaining files.
#[derive(Parser)]
#[command(name = "fault")]
struct Args {
    /// How many seeds
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// The preset whose policies are drawn, or `all`
    #[arg(long, default_value = "all")]
    preset: String,
    /// Print every operation
    #[arg(long)]
    trace: bool,
    /// Print a line of hashes for each seed instead of progress: operations on files,
    /// events, and bytes in the directory, by which two builds are compared
    #[arg(long, conflicts_with = "trace")]
    hashes: bool,
    /// Make a failing run smaller before it is reported (`--shrink false`: report it as it is)
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    shrink: bool,
    /// Run the exhaustive loops instead: every crash and every fault of every feature
    #[arg(long)]
    exhaustive: bool,
    /// The workload of the exhaustive loops that is run, or all
    #[arg(long, requires = "exhaustive")]
    feature: Option<String>,
    /// Sessions to keep, by number
    #[arg(long, value_delimiter = ',')]
    sessions: Option<Vec<u32>>,
    /// Turns of a session, at most
    #[arg(long)]
    turns: Option<u64>,
    /// Clients to keep
    #[arg(long, value_delimiter = ',')]
    clients: Option<Vec<String>>,
    /// Kinds of operation to keep
    #[arg(long, value_delimiter = ',')]
    kinds: Option<Vec<String>>,
    /// Hazards to keep
    #[arg(long, value_delimiter = ',')]
    hazards: Option<Vec<String>>,
}

impl Args {
    fn settings(&self) -> Result<Settings, String> {
        let mut keep = Keep::default();
        if let Some(sessions) = &self.sessions {
            keep.sessions = sessions.iter().fold(0, |bits, session| bits | 1 << (session % 32));
        }
        keep.turns_max = self.turns.unwrap_or(keep.turns_max);
        if let Some(names) = &self.clients {
            keep.clients = Set::parse(listed(names))?;
        }
        if let Some(names) = &self.kinds {
            keep.kinds = Kinds::parse(listed(names))?;
        }
        if let Some(names) = &self.hazards {
            keep.hazards = Set::parse(listed(names))?;
        }
        let known = windrow_plan::preset::PRESETS.iter().any(|(name, _)| *name == self.preset);
        if !known && self.preset != "all" {
            return Err(format!("there is no preset `{}`", self.preset));
        }
        let preset = known.then(|| self.preset.clone());
        Ok(Settings { preset, keep, trace: self.trace, sabotage: None })
    }
}

/// Returns the names of a list; `none` is the empty one.
fn listed(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str).filter(|name| *name != "none")
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.exhaustive {
        true => exhaustive::all(1, args.feature.as_deref(), &|line| println!("{line}")),
        false => args.settings().and_then(|settings| seeds(&args, &settings)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn seeds(args: &Args, settings: &Settings) -> Result<(), String> {
    let (begin, end) = (Instant::now(), args.start + args.seeds);
    let mut total = Summary::default();
    let mut next = args.start;
    while next < end {
        let chunk = next..end.min(next + CHUNK);
        let case = |seed| crash::run(seed, settings).map_err(|failure| failure.to_string());
        let case = |seed| case(seed).inspect(|summary| tell_hashes(args, seed, summary));
        let sum = sweep::run(chunk.clone(), case, Summary::plus);
        let sum = sum.map_err(|(seed, why)| report(args, settings, seed, &why))?;
        total = total.plus(sum.unwrap_or_default());
        next = chunk.end;
        if args.hashes {
            continue;
        }
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{} seeds, {} crashes ({} in recovery), {} sessions on failing devices, {} resumes, \
             {} feeds of changes, {} lies found out, {:.0} s, {:.0} crashes/s",
            chunk.end - args.start,
            total.crashes(),
            total.in_recovery,
            total.failing,
            total.resumed,
            total.fed,
            total.detected,
            seconds,
            total.crashes() as f64 / seconds,
        );
    }
    if !args.hashes {
        println!("no failure; trace hash {:016x}", total.trace_hash);
    }
    Ok(())
}

/// Prints a seed's hashes. Seeds run concurrently, so the lines come in any order.
fn tell_hashes(args: &Args, seed: u64, summary: &Summary) {
    let Summary { trace_hash, events_hash, files_hash, .. } = summary;
    if args.hashes {
        println!("{seed} {trace_hash:016x} {events_hash:016x} {files_hash:016x}");
    }
}

/// Reports the failure of a seed, shrunk, with the line that repeats it.
fn report(args: &Args, settings: &Settings, seed: u64, why: &str) -> String {
    let plain = format!("seed {seed}, {why}\nrepeat: {}", repeat_line(seed, settings));
    if args.trace || !args.shrink {
        return plain;
    }
    // Panics that the search meets again need not be printed.
    std::panic::set_hook(Box::new(|_| {}));
    match crash::run(seed, settings) {
        Ok(_) => format!("{plain}\nwhich it did not do again: the harness is at fault"),
        Err(failure) => {
            let (smaller, failure) = shrink::shrink(seed, settings, failure);
            format!("seed {seed}, {failure}\nrepeat: {}", repeat_line(seed, &smaller))
        }
    }
}
