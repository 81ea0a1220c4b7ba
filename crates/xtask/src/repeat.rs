//! Runs every test binary many times in a row, under conditions that differ:
//! whether a verdict depends on who else runs, or on how many cores there are.
//!
//! By turns beside threads that take all cores, and on one core alone
//! (`taskset -c 0`). Owns: the order of runs, the table, the output of what
//! failed (`target/repeat`). Never does: judge speed; the seconds in the table
//! say how long a run takes, and nothing fails by them.

use cargo_metadata::{Artifact, Message, Target};
use std::error::Error;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Runs of each binary.
    pub times: u32,
    /// Part of the binary's name; empty for all of them.
    pub filter: String,
    /// Packages to build; empty for all but the peers' benchmark.
    pub packages: Vec<String>,
}

impl Plan {
    /// The plan that the arguments of the command ask for.
    ///
    /// # Errors
    /// The argument that cannot be understood.
    pub fn parse(arguments: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan { times: 50, filter: String::new(), packages: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(&name) = arguments.next() {
            let value = *arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name {
                "--times" => match value.parse() {
                    Ok(times) if times > 0 => plan.times = times,
                    _ => return Err(format!("--times {value}: not a number from 1 on")),
                },
                "--filter" => value.clone_into(&mut plan.filter),
                "--package" => plan.packages.push(value.to_owned()),
                _ => return Err(format!("unknown argument {name}")),
            }
        }
        Ok(plan)
    }
}

/// A test binary.
struct Binary {
    /// Package and target.
    name: String,
    path: PathBuf,
    /// Where cargo would run it.
    dir: PathBuf,
}

/// What came of a binary's runs.
#[derive(Default)]
struct Row {
    runs: u32,
    failures: u32,
    longest: Duration,
    sum: Duration,
}

/// How a run is made harder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Loaded,
    OneCore,
}

impl Condition {
    /// By turns.
    fn of(run: u32) -> Condition {
        if run.is_multiple_of(2) { Condition::Loaded } else { Condition::OneCore }
    }

    fn name(self) -> &'static str {
        match self {
            Condition::Loaded => "loaded",
            Condition::OneCore => "one-core",
        }
    }
}

/// Builds the tests, runs the plan and prints the table. Returns whether all passed.
///
/// # Errors
/// Where they cannot be built, or a binary cannot be begun.
pub fn run(root: &Path, plan: &Plan) -> Result<bool, Box<dyn Error>> {
    let logs = root.join("target/repeat");
    fs::create_dir_all(&logs)?;
    let binaries = build(root, plan)?;
    if binaries.is_empty() {
        return Err(format!("no test binary has `{}` in its name", plan.filter).into());
    }
    println!("{:<40} {:>5} {:>8} {:>9} {:>9}", "binary", "runs", "failures", "mean s", "longest");
    let mut failures = 0;
    for binary in &binaries {
        let row = repeat(binary, plan.times, &logs)?;
        failures += row.failures;
        println!(
            "{:<40} {:>5} {:>8} {:>9.2} {:>9.2}",
            binary.name,
            row.runs,
            row.failures,
            row.sum.as_secs_f64() / f64::from(row.runs.max(1)),
            row.longest.as_secs_f64()
        );
    }
    let runs = binaries.len() as u64 * u64::from(plan.times);
    println!("{} binaries, {runs} runs, {failures} failures", binaries.len());
    if failures > 0 {
        println!("the output of what failed is in {}", logs.display());
    }
    Ok(failures == 0)
}

/// The test binaries of the workspace, as cargo names them.
fn build(root: &Path, plan: &Plan) -> Result<Vec<Binary>, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args(["test", "--no-run", "--message-format=json"]);
    match plan.packages.is_empty() {
        true => command.args(["--workspace", "--exclude", "windrow-bench-peers"]),
        false => command.args(plan.packages.iter().flat_map(|name| ["--package", name])),
    };
    let mut binaries = Vec::new();
    for artifact in artifacts(&mut command)? {
        let Some(path) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let dir = artifact.manifest_path.parent().ok_or("a manifest without a directory")?;
        let package = dir.file_name().unwrap_or_default();
        let name = format!("{package} {}", kind(&artifact.target));
        if name.contains(&plan.filter) {
            binaries.push(Binary { name, path: path.into(), dir: dir.into() });
        }
    }
    binaries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(binaries)
}

/// What a run of cargo that prints its messages as JSON builds.
fn artifacts(command: &mut Command) -> Result<Vec<Artifact>, Box<dyn Error>> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("no output of cargo")?;
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(BufReader::new(out)) {
        if let Message::CompilerArtifact(artifact) = message? {
            artifacts.push(artifact);
        }
    }
    if !child.wait()?.success() {
        return Err("the tests do not build".into());
    }
    Ok(artifacts)
}

/// The programs that such a run of cargo builds, tests and what they start.
pub(crate) fn executables(command: &mut Command) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let built = artifacts(command)?;
    Ok(built.into_iter().filter_map(|artifact| artifact.executable).map(Into::into).collect())
}

fn kind(target: &Target) -> String {
    match target.is_lib() {
        true => "lib".to_owned(),
        false => target.name.clone(),
    }
}

fn repeat(binary: &Binary, times: u32, logs: &Path) -> Result<Row, Box<dyn Error>> {
    let mut row = Row::default();
    for run in 0..times {
        let condition = Condition::of(run);
        let begin = Instant::now();
        let output = run_once(binary, condition)?;
        let took = begin.elapsed();
        row.runs += 1;
        row.sum += took;
        row.longest = row.longest.max(took);
        if !output.status.success() {
            row.failures += 1;
            keep(binary, run, condition, &output, logs)?;
        }
    }
    Ok(row)
}

fn run_once(binary: &Binary, condition: Condition) -> Result<Output, Box<dyn Error>> {
    let mut command = match condition {
        Condition::Loaded => Command::new(&binary.path),
        Condition::OneCore => {
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]).arg(&binary.path);
            command
        }
    };
    command.current_dir(&binary.dir).env("CARGO_MANIFEST_DIR", &binary.dir).stdin(Stdio::null());
    let busy = AtomicBool::new(condition == Condition::Loaded);
    let cores = thread::available_parallelism()?.get();
    let output = thread::scope(|scope| {
        let threads = if busy.load(Ordering::Relaxed) { cores } else { 0 };
        for _ in 0..threads {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let output = command.output();
        busy.store(false, Ordering::Relaxed);
        output
    });
    output.map_err(|error| format!("run {}: {error}", binary.path.display()).into())
}

fn keep(
    binary: &Binary,
    run: u32,
    condition: Condition,
    output: &Output,
    logs: &Path,
) -> Result<(), Box<dyn Error>> {
    let name = format!("{}-{run}-{}.log", binary.name.replace(' ', "-"), condition.name());
    let status = format!("{}\n", output.status);
    let text = [status.as_bytes(), &output.stdout, &output.stderr].concat();
    fs::write(logs.join(&name), text)?;
    println!("failed: {} run {run}, {}: target/repeat/{name}", binary.name, condition.name());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn arguments_are_taken_or_named() {
        let plan = Plan::parse(&["--times", "3", "--filter", "cli", "--package", "a"]).unwrap();
        let packages = vec!["a".to_owned()];
        assert_eq!(plan, Plan { times: 3, filter: "cli".to_owned(), packages });
        assert_eq!(Plan::parse(&[]).unwrap().times, 50);
        for bad in [&["--times"][..], &["--times", "0"], &["--what", "x"]] {
            assert!(Plan::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// A binary that fails on every third run: the first, the fourth.
    #[test]
    fn failures_are_counted_and_their_output_is_kept() {
        let dir = std::env::temp_dir().join(format!("windrow-repeat-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("test");
        let script = "#!/bin/sh\necho x >> runs\n[ $(($(wc -l < runs) % 3)) -ne 1 ] || { echo lost; exit 1; }\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let binary = Binary { name: "some test".to_owned(), path, dir: dir.clone() };
        let row = repeat(&binary, 5, &dir).unwrap();
        assert_eq!((row.runs, row.failures), (5, 2));
        for name in ["some-test-0-loaded.log", "some-test-3-one-core.log"] {
            assert!(fs::read_to_string(dir.join(name)).unwrap().contains("lost"), "{name}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
