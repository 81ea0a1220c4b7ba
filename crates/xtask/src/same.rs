//! A comparison of two builds of the engine: for each seed of the crash harness, both must give the
//! same operations on files, the same events, and the same bytes in the directory.
//!
//! Owns: building the other revision next to this one (`target/same`), and the comparison. Never
//! does: judge which result is right; an intended change of behaviour shows as a difference here.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The revision and the number of seeds to compare.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The revision that this tree is compared with.
    pub revision: String,
    /// Seeds of the crash harness, from 0.
    pub seeds: u64,
}

/// The most seeds with differences that are named.
const NAMED: usize = 10;

/// The hashed parts, in the order of a line's hashes.
const PARTS: [&str; 3] = ["operations", "events", "files"];

impl Plan {
    /// The plan that the arguments of the command ask for.
    ///
    /// # Errors
    /// The argument that cannot be understood.
    pub fn parse(arguments: &[&str]) -> Result<Plan, String> {
        let (revision, seeds) = match arguments {
            [revision] => (revision, "10000"),
            [revision, "--seeds", seeds] => (revision, *seeds),
            _ => return Err("same takes a revision, and --seeds with a number".to_owned()),
        };
        match seeds.parse() {
            Ok(seeds) if seeds > 0 => Ok(Plan { revision: (*revision).to_owned(), seeds }),
            _ => Err(format!("--seeds {seeds}: not a number from 1 on")),
        }
    }
}

/// The hashes of each seed.
type Hashes = BTreeMap<u64, [String; 3]>;

/// Runs both builds and prints the differences. Returns whether there are none.
///
/// # Errors
/// The build or run that failed.
pub fn run(root: &Path, plan: &Plan) -> Result<bool, Box<dyn Error>> {
    let before = hashes(&harness_of(root, &plan.revision)?, plan.seeds)?;
    let now = hashes(&harness(root, &root.join("target"))?, plan.seeds)?;
    let differing = differing(&before, &now);
    for (seed, parts) in differing.iter().take(NAMED) {
        println!("seed {seed}: {} differ", parts.join(", "));
    }
    let (seeds, count) = (now.len(), differing.len());
    println!("{seeds} seeds, {count} of them not as at {}", plan.revision);
    Ok(count == 0)
}

/// Builds the harness of another revision.
fn harness_of(root: &Path, revision: &str) -> Result<PathBuf, Box<dyn Error>> {
    let dir = root.join("target/same");
    let tree = dir.join("tree");
    let git = |arguments: &[&str]| succeed(Command::new("git").current_dir(root).args(arguments));
    let path = tree.display().to_string();
    if tree.exists() {
        git(&["worktree", "remove", "--force", &path])?;
    }
    git(&["worktree", "add", "--detach", "--force", &path, revision])?;
    let built = harness(&tree, &dir);
    git(&["worktree", "remove", "--force", &path])?;
    built
}

fn harness(tree: &Path, target: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(tree).args(["build", "--release", "-p", "windrow-sim", "--bin", "fault"]);
    succeed(cargo.arg("--target-dir").arg(target))?;
    Ok(target.join("release/fault"))
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

fn hashes(harness: &Path, seeds: u64) -> Result<Hashes, Box<dyn Error>> {
    let mut command = Command::new(harness);
    command.args(["--hashes", "--seeds", &seeds.to_string()]).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: does this revision know --hashes?").into());
    }
    parse(&String::from_utf8(output.stdout)?)
}

fn parse(lines: &str) -> Result<Hashes, Box<dyn Error>> {
    let mut hashes = Hashes::new();
    for line in lines.lines() {
        let mut words = line.split(' ');
        let seed = words.next().unwrap_or_default().parse()?;
        let parts: Vec<String> = words.map(str::to_owned).collect();
        let parts = parts.try_into().map_err(|_| format!("not a line of hashes: {line}"))?;
        hashes.insert(seed, parts);
    }
    Ok(hashes)
}

/// Returns the seeds whose hashes differ, and the parts that differ.
fn differing(before: &Hashes, now: &Hashes) -> Vec<(u64, Vec<&'static str>)> {
    let seeds = now.keys().chain(before.keys().filter(|seed| !now.contains_key(seed)));
    let parts = |seed: &u64| {
        let (Some(before), Some(now)) = (before.get(seed), now.get(seed)) else {
            return PARTS.to_vec();
        };
        let pairs = PARTS.iter().zip(before.iter().zip(now));
        pairs.filter(|(_, (before, now))| before != now).map(|(part, _)| *part).collect()
    };
    seeds.map(|seed| (*seed, parts(seed))).filter(|(_, parts)| !parts.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let before = parse("0 a b c\n1 d e f\n2 g h i\n").unwrap();
        let now = parse("1 d x f\n0 a b c\n").unwrap();
        assert_eq!(differing(&before, &before), []);
        assert_eq!(differing(&before, &now), [(1, vec!["events"]), (2, PARTS.to_vec())]);
        assert!(parse("0 a b\n").is_err());
    }

    #[test]
    fn plans() {
        let plan = |revision: &str, seeds| Plan { revision: revision.to_owned(), seeds };
        assert_eq!(Plan::parse(&["main"]), Ok(plan("main", 10_000)));
        assert_eq!(Plan::parse(&["v1", "--seeds", "5"]), Ok(plan("v1", 5)));
        assert!(Plan::parse(&[]).is_err() && Plan::parse(&["v1", "--seeds", "0"]).is_err());
    }
}
