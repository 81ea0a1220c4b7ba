//! The experiments of the papers behind the policies: the paper's policy
//! beside the baseline and Windrow's own, RocksDB beside them where it is
//! linked, in one run, and our ratios beside the paper's.
//!
//! Owns: `paper`. An experiment is a workload file (`papers/` of this crate,
//! or the user's), which `file.rs` reads and `runner.rs` runs. Never does:
//! change a policy's set-up to please a goal; what is not the paper's set-up
//! is said in the output.

mod args;
mod clients;
mod database;
mod estimates;
mod experiment;
mod fields;
mod file;
mod files;
mod records;
mod runner;
mod sheet;
mod template;

#[cfg(test)]
mod tests;

use crate::output;
use crate::store::{Engine, Result};
use args::{Args, USAGE};
use experiment::Experiment;
use runner::Runner;

/// Names of the papers' experiments and their workload files.
const EXPERIMENTS: [(&str, &str); 5] = [
    ("autumn", include_str!("../../papers/autumn.toml")),
    ("l2sm", include_str!("../../papers/l2sm.toml")),
    ("vlsm", include_str!("../../papers/vlsm.toml")),
    ("mnemosyne", include_str!("../../papers/mnemosyne.toml")),
    ("merlin", include_str!("../../papers/merlin.toml")),
];

/// Engines that `windrow-bench-peers` links.
const PEERS: [&str; 3] = ["rocksdb", "leveldb", "fjall"];

/// `windrow-bench paper ...`: runs a paper's experiment on the engines that this
/// program has. `args` are what follows `paper`. Returns the exit code: 0 also
/// if goals are missed, 1 after an error, 2 for wrong arguments.
pub(crate) fn cli(engines: &[Engine], args: &[String]) -> i32 {
    if args.is_empty() || args.iter().any(|a| a == "--help" || a == "-h") {
        let printed = output::exit_code("paper", output::print(format_args!("{USAGE}\n")));
        return if args.is_empty() { 2 } else { printed };
    }
    let args = match Args::parse(args) {
        Ok(args) => args,
        Err(problem) => {
            output::note(format_args!("paper: {problem}\n\n{USAGE}"));
            return 2;
        }
    };
    let (experiment, missing) = match select(&args, engines) {
        Ok(selected) => selected,
        Err(problem) => {
            output::note(format_args!("paper: {problem}"));
            return 2;
        }
    };
    if args.print {
        let text = text(&args).unwrap_or_default().1;
        return output::exit_code("paper", output::print(text));
    }
    let mut shown = head(&experiment, &args);
    missing.iter().for_each(|note| shown.push_str(&format!("  {note}\n")));
    let done = output::print(shown).and_then(|()| match args.list {
        true => Ok(()),
        false => run(&args, engines, &experiment).map(drop),
    });
    output::exit_code("paper", done)
}

fn run(args: &Args, engines: &[Engine], experiment: &Experiment) -> Result<sheet::Sheet> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = dir.join(format!("windrow-paper-{}", std::process::id()));
    files::make_dir(&dir)?;
    let done = Runner::new(args, engines, experiment, dir.clone()).and_then(Runner::run);
    files::remove_dir(&dir)?;
    done
}

/// The name and the text of the workload file that the arguments name.
fn text(args: &Args) -> std::result::Result<(String, String), String> {
    if let Some(path) = &args.file {
        return Ok((path.display().to_string(), files::read(path)?));
    }
    let named = EXPERIMENTS.iter().find(|(name, _)| *name == args.experiment);
    let (name, text) = named.ok_or_else(|| format!("no experiment `{}`", args.experiment))?;
    Ok((format!("{name}.toml"), (*text).to_owned()))
}

/// The experiment that the arguments name, with the cases and contenders that
/// they choose and whose engines are here; and a note on each that is not.
fn select(
    args: &Args,
    engines: &[Engine],
) -> std::result::Result<(Experiment, Vec<String>), String> {
    let (file, text) = text(args)?;
    let mut experiment = file::parse(&file, &text, args.scale)?;
    let chosen = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
    let cases: Vec<&str> = experiment.cases.iter().map(|c| c.name.as_str()).collect();
    if let Some(name) = args.cases.iter().find(|name| !cases.contains(&name.as_str())) {
        return Err(format!("no case `{name}`; they are `{}`", cases.join("`, `")));
    }
    experiment.cases.retain(|case| chosen(&args.cases, &case.name));
    let mut missing: Vec<String> = Vec::new();
    for case in &mut experiment.cases {
        let names: Vec<&str> = case.contenders.iter().map(|c| c.name.as_str()).collect();
        if let Some(name) = args.policies.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(format!("no policy `{name}`; they are `{}`", names.join("`, `")));
        }
        case.contenders.retain(|contender| chosen(&args.policies, &contender.name));
        let is_here = |name: &str| engines.iter().any(|engine| engine.name == name);
        for contender in case.contenders.iter().filter(|c| !is_here(&c.engine)) {
            let name = &contender.engine;
            if !PEERS.contains(&name.as_str()) {
                let here: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
                return Err(format!("no engine `{name}`; this program has {}", here.join(", ")));
            }
            let note = format!("{name}: not in this program; windrow-bench-peers has it");
            if !missing.contains(&note) {
                missing.push(note);
            }
        }
        case.contenders.retain(|contender| is_here(&contender.engine));
        if case.contenders.is_empty() {
            return Err(format!("case `{}`: {}", case.name, missing.join("; ")));
        }
    }
    Ok((experiment, missing))
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
            let engine = match contender.engine.as_str() {
                "windrow" => String::new(),
                other => format!("{other} "),
            };
            let (name, settings) = (&contender.name, join(&contender.settings));
            let _ = writeln!(text, "    {name}: {engine}{} {settings}", contender.variant);
        }
    }
    text
}
