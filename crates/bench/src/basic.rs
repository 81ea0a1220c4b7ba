//! The workload `basic`: rounds of load, cached and disk phases, engines in
//! turn, each run in a process of its own so that peaks of memory are apart.
//!
//! Owns: the order of runs, directories, children. Never does: measure.

use crate::args::Args;
use crate::report::{Figures, Report};
use crate::store::{Engine, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Runner<'a> {
    args: &'a Args,
    prefix: &'a [&'a str],
    words: &'a [String],
    dir: PathBuf,
}

/// Runs all phases and prints the report.
pub(crate) fn run(
    args: &Args,
    engines: &[Engine],
    prefix: &[&str],
    words: &[String],
) -> Result<()> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir =
        if args.keep { dir } else { dir.join(format!("windrow-bench-{}", std::process::id())) };
    make_dir(&dir)?;
    let runner = Runner { args, prefix, words, dir };
    // In the order of the program, so that ratios are Windrow's over the peer's.
    let named = engines.iter().map(|e| e.name.to_owned());
    let names: Vec<String> = named.filter(|name| args.engines.contains(name)).collect();
    let done = runner.phases(&names);
    if !args.keep {
        remove_dir(&runner.dir)?;
    }
    done
}

#[allow(clippy::disallowed_methods, reason = "directories of the benchmark, not of a database")]
fn make_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()).into())
}

fn remove_dir(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {e}", dir.display()).into())
        }
        _ => Ok(()),
    }
}

impl Runner<'_> {
    fn phases(&self, names: &[String]) -> Result<()> {
        for phase in &self.args.phases {
            if phase == "disk" {
                self.disk(names)?;
            } else {
                self.rounds(phase, names)?;
            }
        }
        Ok(())
    }

    /// Rounds of a phase that starts from an empty directory.
    fn rounds(&self, phase: &str, names: &[String]) -> Result<()> {
        let mut report = Report::default();
        for round in 1..=self.args.rounds {
            for name in in_turn(names, round) {
                let dir = self.dir.join(format!("{phase}-{name}"));
                remove_dir(&dir)?;
                let figures = self.child(phase, name, round, &dir)?;
                remove_dir(&dir)?;
                report.add(phase, name, round, figures);
            }
        }
        report.summarise(phase, names);
        Ok(())
    }

    /// One load per engine, then rounds of reads.
    fn disk(&self, names: &[String]) -> Result<()> {
        let mut loads = Report::default();
        let dir = |name: &str| self.dir.join(format!("disk-{name}-{}", self.args.disk_records()));
        for name in names {
            if self.args.keep && dir(name).join("loaded").exists() {
                eprintln!("{name}: using {} again", dir(name).display());
                continue;
            }
            remove_dir(&dir(name))?;
            let figures = self.child("disk-load", name, 0, &dir(name).join("data"))?;
            make_dir(&dir(name).join("loaded"))?;
            loads.add("disk-load", name, 0, figures);
        }
        let mut report = Report::default();
        for round in 1..=self.args.rounds {
            for name in in_turn(names, round) {
                let figures = self.child("disk", name, round, &dir(name).join("data"))?;
                report.add("disk", name, round, figures);
            }
        }
        loads.summarise("disk-load", names);
        report.summarise("disk", names);
        Ok(())
    }

    /// Runs one phase of one engine in a process of its own.
    fn child(&self, phase: &str, engine: &str, round: u32, dir: &Path) -> Result<Figures> {
        eprintln!("round {round}: {engine} {phase}");
        make_dir(dir)?;
        // What earlier runs left to be written must not be this one's load.
        Command::new("sync").status()?;
        let output = Command::new(std::env::current_exe()?)
            .args(self.prefix)
            .args(self.words)
            .arg("--child")
            .arg(format!("{phase}:{engine}:{}", dir.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("{engine} {phase}: {}", output.status).into());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let figures = text.lines().last().and_then(Figures::from_json);
        figures.ok_or_else(|| format!("{engine} {phase} printed no figures").into())
    }
}

/// A B, then B A, and so on: neither engine always runs on the other's heat.
fn in_turn(names: &[String], round: u32) -> Vec<&String> {
    let mut names: Vec<&String> = names.iter().collect();
    if round.is_multiple_of(2) {
        names.reverse();
    }
    names
}
