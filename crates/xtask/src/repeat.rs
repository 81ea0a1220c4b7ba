//! Runs every test binary many times in a row, under different conditions. It shows whether a
//! verdict depends on the load or on the number of cores.
//!
//! Runs alternate between a load that takes all cores and one core alone (`taskset`). The load is
//! the other binaries where several run at once (`--jobs`), and threads that spin on the remaining
//! cores.
//!
//! Owns: the order of runs, the table, the output of failed runs (`target/repeat`). Never does:
//! judge speed; the seconds in the table say how long a run takes, and nothing fails by them.

use cargo_metadata::{Artifact, Message, Target};
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::BufReader;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The selection of binaries and the number of their runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// Runs of each binary.
    pub times: u32,
    /// Parts of binaries' names. A binary is run if its name contains any of them; empty for all.
    pub filters: Vec<String>,
    /// Binaries that run at once.
    pub jobs: usize,
    /// Packages to build; empty for all but the peers' benchmark.
    pub packages: Vec<String>,
}

impl Plan {
    /// The plan that the arguments of the command ask for.
    ///
    /// # Errors
    /// The argument that cannot be understood.
    pub fn parse(arguments: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan { times: 50, filters: Vec::new(), jobs: 1, packages: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(&name) = arguments.next() {
            let value = *arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name {
                "--times" => match value.parse() {
                    Ok(times) if times > 0 => plan.times = times,
                    _ => return Err(format!("--times {value}: not a number from 1 on")),
                },
                "--jobs" => match value.parse() {
                    Ok(jobs) if jobs > 0 => plan.jobs = jobs,
                    _ => return Err(format!("--jobs {value}: not a number from 1 on")),
                },
                "--filter" => plan.filters.push(value.to_owned()),
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
    /// The directory in which cargo would run it.
    dir: PathBuf,
}

/// The results of a binary's runs.
#[derive(Default)]
struct Row {
    runs: u32,
    failures: u32,
    longest: Duration,
    sum: Duration,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.sum.as_secs_f64() / f64::from(self.runs.max(1));
        let longest = self.longest.as_secs_f64();
        write!(f, "{:>5} {:>8} {mean:>9.2} {longest:>9.2}", self.runs, self.failures)
    }
}

/// A condition that makes a run harder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Loaded,
    OneCore,
}

impl Condition {
    /// Alternates by the number of the run.
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
/// If they cannot be built, or a binary cannot be started.
pub fn run(root: &Path, plan: &Plan) -> Result<bool, Box<dyn Error>> {
    let logs = root.join("target/repeat");
    fs::create_dir_all(&logs)?;
    let binaries = build(root, plan)?;
    if binaries.is_empty() {
        return Err(format!("no test binary has any of {:?} in its name", plan.filters).into());
    }
    println!("{:<40} {:>5} {:>8} {:>9} {:>9}", "binary", "runs", "failures", "mean s", "longest");
    let runner =
        Runner { logs, cores: thread::available_parallelism()?.get(), ..Runner::default() };
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), String> {
        while let Some(binary) = binaries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = runner.repeat(binary, plan.times).map_err(|error| error.to_string())?;
            runner.failures.fetch_add(row.failures, Ordering::Relaxed);
            println!("{:<40} {row}", binary.name);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..plan.jobs).map(|_| scope.spawn(work)).collect();
        jobs.into_iter().try_for_each(|job| job.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    let (logs, failures) = (runner.logs, runner.failures.into_inner());
    let runs = binaries.len() as u64 * u64::from(plan.times);
    println!("{} binaries, {runs} runs, {failures} failures", binaries.len());
    if failures > 0 {
        println!("the output of what failed is in {}", logs.display());
    }
    Ok(failures == 0)
}

/// Returns the test binaries of the workspace, as cargo names them.
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
        if plan.filters.is_empty() || plan.filters.iter().any(|part| name.contains(part)) {
            binaries.push(Binary { name, path: path.into(), dir: dir.into() });
        }
    }
    binaries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(binaries)
}

/// Returns the artifacts of a run of cargo that prints its messages as JSON.
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

/// Returns the programs that such a run of cargo builds: tests and the programs that they start.
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

/// The state that all runs share.
#[derive(Default)]
struct Runner {
    logs: PathBuf,
    cores: usize,
    /// Binaries that run now.
    running: AtomicUsize,
    failures: AtomicU32,
}

impl Runner {
    fn repeat(&self, binary: &Binary, times: u32) -> Result<Row, Box<dyn Error>> {
        let mut row = Row::default();
        for run in 0..times {
            let condition = Condition::of(run);
            let begin = Instant::now();
            let before = self.running.fetch_add(1, Ordering::Relaxed);
            let output = self.run_once(binary, condition, before);
            self.running.fetch_sub(1, Ordering::Relaxed);
            let output = output?;
            let took = begin.elapsed();
            row.runs += 1;
            row.sum += took;
            row.longest = row.longest.max(took);
            if !output.status.success() {
                row.failures += 1;
                keep(binary, run, condition, &output, &self.logs)?;
            }
        }
        Ok(row)
    }

    /// Runs it next to `others` that already run.
    fn run_once(
        &self,
        binary: &Binary,
        condition: Condition,
        others: usize,
    ) -> Result<Output, Box<dyn Error>> {
        let (mut command, spinning) = match condition {
            Condition::Loaded => (Command::new(&binary.path), self.cores.saturating_sub(others)),
            Condition::OneCore => {
                let mut command = Command::new("taskset");
                let core = others % self.cores;
                command.args(["-c", &core.to_string()]).arg(&binary.path);
                (command, 0)
            }
        };
        command.current_dir(&binary.dir).env("CARGO_MANIFEST_DIR", &binary.dir);
        command.stdin(Stdio::null());
        let busy = AtomicBool::new(true);
        let output = thread::scope(|scope| {
            for _ in 0..spinning {
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
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let given = "--times 3 --filter cli --filter sim --jobs 2 --package a";
        let plan = Plan::parse(&given.split(' ').collect::<Vec<_>>()).unwrap();
        let (filters, packages) = (owned(&["cli", "sim"]), owned(&["a"]));
        assert_eq!(plan, Plan { times: 3, filters, jobs: 2, packages });
        assert_eq!(Plan::parse(&[]).unwrap().times, 50);
        for bad in [&["--times"][..], &["--times", "0"], &["--jobs", "x"], &["--what", "x"]] {
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
        let runner = Runner { logs: dir.clone(), cores: 2, ..Runner::default() };
        let row = runner.repeat(&binary, 5).unwrap();
        assert_eq!((row.runs, row.failures), (5, 2));
        for name in ["some-test-0-loaded.log", "some-test-3-one-core.log"] {
            assert!(fs::read_to_string(dir.join(name)).unwrap().contains("lost"), "{name}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
