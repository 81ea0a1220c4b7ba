//! `torture memory`: processes that are short of memory. Each case runs under an address-space
//! limit to its end, and then again and again with an abort at an allocation drawn by the seed, as
//! a failed allocation ends a Rust program. The directory is then opened within the same limit, and
//! nothing acknowledged may be missing.
//!
//! Owns: the limit, the draws, the report. Never does: allocate for the processes.

use super::plan::{Failure, Outcome, Plan};
use super::starve_cases::{CASES, Case};
use super::starved_process::Notes;
use super::stop;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use windrow_env::testing::Rng;

/// Address space for each byte of budget, and in addition: the program, its stacks, mapped logs.
const SPACE_PER_BUDGET: u64 = 2;
const SPACE_BESIDES: u64 = 192 << 20;

const SIGABRT: i32 = 6;

/// The plan, case and directory of a run.
struct Bench<'a> {
    plan: &'a Plan,
    case: &'a Case,
    dir: &'a Path,
}

/// Runs every case.
///
/// # Errors
/// The rule that was broken.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let scratch = plan.scratch(std::env::temp_dir())?;
    let mut rng = Rng::new(plan.seed);
    let mut aborts = 0;
    let wanted = |case: &&Case| plan.case.as_deref().is_none_or(|name| name == case.name);
    for case in CASES.iter().filter(wanted) {
        let dir = scratch.path().join(case.name);
        let bench = Bench { plan, case, dir: &dir };
        match bench.run(&mut rng) {
            Ok(count) => aborts += count,
            Err(why) => {
                let _ = scratch.keep();
                let why = format!("{}: {why}", case.name);
                return Err(Failure { why, seed: plan.seed, kept: Some(dir) });
            }
        }
        if stop::requested() {
            break;
        }
    }
    Ok(Outcome::Passed(format!(
        "all within the budget; {aborts} aborts, lost nothing acknowledged"
    )))
}

impl Bench<'_> {
    fn run(&self, rng: &mut Rng) -> Result<u64, String> {
        self.begin()?;
        let worked = self.process(&[])?;
        let said = done(&worked)?;
        eprintln!("{}: {said}", self.case.name);
        let judged = done(&self.process(&["--judge"])?)?;
        eprintln!("{}: opened again: {judged}", self.case.name);
        let count = said.split(' ').next().and_then(|count| count.parse().ok());
        let count: u64 = count.ok_or("it did not say how many allocations it made")?;
        let mut aborts = 0;
        for _ in 0..self.plan.rounds {
            self.begin()?;
            // Now and then again in the directory of the last abort, the open included.
            for _ in 0..1 + rng.below(3) {
                let at = (1 + rng.below(count)).to_string();
                let worked = self.process(&["--abort-at", &at])?;
                match worked.status.signal() {
                    Some(SIGABRT) => aborts += 1,
                    _ => drop(done(&worked).map_err(|e| format!("abort at {at}: {e}"))?),
                }
            }
            let notes = Notes::open(&self.notes())?.steps();
            let judged = done(&self.process(&["--judge"])?);
            judged.map_err(|e| format!("after {notes} steps and an abort: {e}"))?;
            if stop::requested() {
                break;
            }
        }
        if aborts == 0 && self.plan.rounds >= 8 {
            return Err("no process was ever aborted: this tests nothing".into());
        }
        Ok(aborts)
    }

    /// Makes an empty directory.
    fn begin(&self) -> Result<(), String> {
        let _ = std::fs::remove_dir_all(self.dir);
        std::fs::create_dir_all(self.dir).map_err(|e| format!("{}: {e}", self.dir.display()))
    }

    fn notes(&self) -> std::path::PathBuf {
        self.dir.join("notes")
    }

    fn process(&self, more: &[&str]) -> Result<Output, String> {
        let budget = self.plan.budget_mib << 20;
        let limit = budget * SPACE_PER_BUDGET + SPACE_BESIDES;
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command.arg("starved").args(["--case", self.case.name]);
        command.arg("--dir").arg(self.dir.join("db")).arg("--notes").arg(self.notes());
        command.args(["--budget", &budget.to_string(), "--limit", &limit.to_string()]);
        command.args(["--permille", &self.plan.permille.to_string()]).args(more);
        // Each heap of the C library reserves 64 MiB of address space, however little it uses.
        command.env("MALLOC_ARENA_MAX", "1").stdin(Stdio::null());
        command.output().map_err(|e| format!("start a process: {e}"))
    }
}

/// Returns the output of a process that ended well.
fn done(output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(ended(output.status, &String::from_utf8_lossy(&output.stderr)))
}

fn ended(status: ExitStatus, said: &str) -> String {
    format!("{status}: {}", said.trim())
}
