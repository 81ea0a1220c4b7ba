//! The experiments of the papers behind the policies, on this engine: the
//! paper's policy beside the baseline and Windrow's own, in one run, and our
//! ratios beside the paper's.
//!
//! Owns: `windrow paper`. An experiment is data (`experiment.rs`; one file for
//! each paper), which `runner.rs` runs. Never does: change a policy's set-up
//! to please a goal; what is not the paper's set-up is said in the output.

mod args;
mod autumn;
mod clients;
mod database;
mod draws;
mod estimates;
mod experiment;
mod l2sm;
mod merlin;
mod mnemosyne;
mod open_loop;
mod records;
mod runner;
mod sheet;
mod vlsm;

#[cfg(test)]
mod tests;

use crate::store::Result;
use args::{Args, USAGE};
use experiment::Experiment;
use runner::Runner;

/// `windrow paper ...`: runs a paper's experiment. `args` are what follows
/// `paper`. Returns the exit code: 0 also if goals are missed, 1 after an
/// error, 2 for wrong arguments.
pub fn cli(args: &[String]) -> i32 {
    if args.is_empty() || args.iter().any(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return if args.is_empty() { 2 } else { 0 };
    }
    let (args, experiment) = match Args::parse(args).and_then(|a| Ok((select(&a)?, a))) {
        Ok((experiment, args)) => (args, experiment),
        Err(problem) => {
            eprintln!("paper: {problem}\n\n{USAGE}");
            return 2;
        }
    };
    print!("{}", head(&experiment, &args));
    if args.list {
        return 0;
    }
    match run(&args, &experiment) {
        Ok(_) => 0,
        Err(error) => {
            eprintln!("paper: {error}");
            1
        }
    }
}

fn run(args: &Args, experiment: &Experiment) -> Result<sheet::Sheet> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = dir.join(format!("windrow-paper-{}", std::process::id()));
    runner::make_dir(&dir)?;
    let done = Runner::new(args, experiment, dir.clone()).and_then(Runner::run);
    runner::remove_dir(&dir)?;
    done
}

/// The experiment that the arguments name, with the cases and contenders that
/// they choose.
fn select(args: &Args) -> std::result::Result<Experiment, String> {
    let of = match args.experiment.as_str() {
        "autumn" => autumn::experiment,
        "l2sm" => l2sm::experiment,
        "vlsm" => vlsm::experiment,
        "mnemosyne" => mnemosyne::experiment,
        _ => merlin::experiment,
    };
    let mut experiment = of(args.scale);
    let chosen = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let cases: Vec<&str> = experiment.cases.iter().map(|c| c.name.as_str()).collect();
    if let Some(name) = args.cases.iter().find(|name| !cases.contains(&name.as_str())) {
        return Err(format!("no case `{name}`; they are `{}`", cases.join("`, `")));
    }
    experiment.cases.retain(|case| chosen(&args.cases, &case.name));
    for case in &mut experiment.cases {
        let names: Vec<&str> = case.contenders.iter().map(|c| c.name).collect();
        if let Some(name) = args.policies.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(format!("no policy `{name}`; they are `{}`", names.join("`, `")));
        }
        case.contenders.retain(|contender| chosen(&args.policies, contender.name));
    }
    Ok(experiment)
}

/// What is about to be measured.
fn head(experiment: &Experiment, args: &Args) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{} ({} scale)\n", experiment.title, args.scale.name());
    for note in &experiment.notes {
        let _ = writeln!(text, "  {note}");
    }
    for case in &experiment.cases {
        let sizes = &case.sizes;
        let _ = writeln!(
            text,
            "  {}: {} records, keys of {} B, values of {} to {} B, regions: {}",
            case.name,
            sizes.count,
            sizes.key_bytes,
            sizes.value_bytes.0,
            sizes.value_bytes.1,
            case.regions
        );
        let join = |settings: &[experiment::Setting]| {
            let words: Vec<String> = settings.iter().map(|(n, v)| format!("{n}={v}")).collect();
            words.join(" ")
        };
        let _ = writeln!(text, "    {}", join(&case.settings));
        for contender in &case.contenders {
            let (name, policy) = (contender.name, &contender.policy);
            let _ = writeln!(text, "    {name}: {policy} {}", join(&contender.settings));
        }
    }
    text
}
