//! Mutants: the engine with one of its safeguards taken out, and the hunt for the tests that notice
//! it (`docs/reliability/mutants.md`).
//!
//! A mutant that leaves out one statement is a hook in the source
//! (`unless_mutant!(Name, statement);`). Any other is a patch in `crates/sim/mutants` that adds
//! wrong code. All patches are applied to one copy of the source. The code that they add asks
//! `mutant!(Name)`, so one build has all mutants.
//!
//! Owns: the check that each mutant is a hook or a patch and that all patches apply, the copy and
//! its build. Never does: hunt (`windrow-sim` does).

mod copy;
mod hooks;
mod patch;
mod table;

use crate::findings::Findings;
use crate::source;
use patch::{Change, Patch};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Entry;

/// The directory of the patches, from the root.
const DIR: &str = "crates/sim/mutants";

/// The variable that tells the build that it compiles the patched copy.
const PATCHED: &str = "WINDROW_MUTANTS_PATCHED";

/// The most lines of context at each end of a hunk that `--refresh` may ignore.
const LESS_CONTEXT_MAX: usize = 3;

/// The target that `cargo build` and `cargo clippy` make of the copy.
const HUNT: [&str; 7] =
    ["--locked", "-p", "windrow-sim", "--features", "mutants", "--bin", "mutants"];

/// A task of the `mutants` command.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// Build the copy and hunt, with these arguments.
    Hunt(Vec<String>),
    /// Check that the copy compiles without warnings.
    Check,
    /// Write every patch again, for the present lines.
    Refresh,
}

impl Plan {
    /// The plan that the arguments of the command ask for.
    ///
    /// # Errors
    /// Never: unknown arguments are passed to the hunt.
    pub fn parse(arguments: &[&str]) -> Result<Plan, String> {
        Ok(match arguments {
            ["--check"] => Plan::Check,
            ["--refresh"] => Plan::Refresh,
            hunt => Plan::Hunt(hunt.iter().map(|argument| (*argument).to_owned()).collect()),
        })
    }
}

/// Runs a plan. Returns whether it succeeded: every mutant that was hunted was noticed, the copy
/// compiles, every patch has its place.
///
/// # Errors
/// Patches that do not apply; a file that cannot be written; a program that cannot be run.
pub fn run(root: &Path, plan: &Plan) -> Result<bool, Box<dyn Error>> {
    if *plan == Plan::Refresh {
        return refresh(root);
    }
    let (patches, found) = read(root, &table::read(root)?)?;
    let (files, clashes) = apply_all(root, &patches)?;
    let found: Vec<String> = found.into_iter().chain(clashes).collect();
    if !found.is_empty() {
        return Err(found.join("\n").into());
    }
    let dir = root.join("target/mutants");
    let source = dir.join("source");
    copy::update(root, &source, &files)?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(&source).env(PATCHED, "1");
    let Plan::Hunt(arguments) = plan else {
        // The copy's dependencies are built there already.
        cargo.arg("clippy").args(HUNT).arg("--target-dir").arg(root.join("target"));
        return Ok(cargo.args(["--", "-D", "warnings"]).status()?.success());
    };
    let target = dir.join("build");
    cargo.args(["build", "--release"]).args(HUNT).arg("--target-dir").arg(&target);
    if !cargo.status()?.success() {
        return Err(format!("{cargo:?} failed").into());
    }
    Ok(Command::new(target.join("release/mutants")).args(arguments).status()?.success())
}

/// Finds mutants that are neither hook nor patch, or both; hooks that are more than a statement or
/// in a forbidden place; and patches that do not apply.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    let entries = table::read(root)?;
    let (patches, mut findings) = read(root, &entries)?;
    findings.extend(apply_all(root, &patches)?.1);
    let sources = source::load(root)?;
    let (hooks, found) = hooks::find(&sources);
    findings.extend(found);
    for Entry { name, .. } in &entries {
        let places = hooks.iter().filter(|hook| **hook == *name).count();
        let is_patch = patches.iter().any(|(patched, _)| patched == name);
        match (places, is_patch) {
            (1, false) | (0, true) => {}
            (0, false) => findings.push(format!("{}: no hook and no patch", path(name))),
            _ => findings.push(format!("{}: {name} has {places} hooks, too", path(name))),
        }
    }
    let known: BTreeSet<&str> = entries.iter().map(|entry| &*entry.name).collect();
    let unknown = hooks.iter().filter(|hook| !known.contains(&***hook));
    findings.extend(unknown.map(|hook| format!("{}: no mutant {hook}", table::PATH)));
    Ok(findings)
}

fn path(name: &str) -> String {
    format!("{DIR}/{name}.patch")
}

/// The patches, by name, in the order of the table.
type Patches = Vec<(String, Patch)>;

/// Reads all patches. Returns them and the faults of single patches.
fn read(root: &Path, entries: &[Entry]) -> Result<(Patches, Vec<String>), Box<dyn Error>> {
    let mut left: BTreeSet<PathBuf> = BTreeSet::new();
    for file in fs::read_dir(root.join(DIR)).map_err(|e| format!("{DIR}: {e}"))? {
        left.insert(file?.path());
    }
    let (mut patches, mut findings) = (Patches::new(), Vec::new());
    for entry in entries {
        let file = root.join(path(&entry.name));
        if !left.remove(&file) {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        match Patch::parse(&text).and_then(|patch| judge(entry, patch)) {
            Ok(patch) => patches.push((entry.name.clone(), patch)),
            Err(why) => findings.push(format!("{}: {why}", path(&entry.name))),
        }
    }
    let of_none = |file: PathBuf| format!("{}: of no mutant of {}", file.display(), table::PATH);
    findings.extend(left.into_iter().map(of_none));
    Ok((patches, findings))
}

/// Checks a patch: its head must describe the mutant, and its code must ask for that mutant alone.
fn judge(entry: &Entry, patch: Patch) -> Result<Patch, String> {
    let head = entry.head();
    if patch.head != head {
        return Err(format!("its first line must be `{}`", head.trim_end()));
    }
    let mut names = BTreeSet::new();
    for line in patch.added() {
        for (at, asks) in line.match_indices("mutant!(") {
            let rest = &line[at + asks.len()..];
            names.insert(rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(rest));
        }
    }
    let (asks, of_its_own) = (names.contains(&*entry.name), names.len() == 1);
    match asks && of_its_own {
        true => Ok(patch),
        false => Err(format!("it must ask `mutant!({})`, and no other: {names:?}", entry.name)),
    }
}

/// The patched contents of the files, and the faults that kept patches from being applied.
type Applied = (BTreeMap<String, String>, Vec<String>);

/// Applies all patches together.
fn apply_all(root: &Path, patches: &Patches) -> Result<Applied, Box<dyn Error>> {
    let texts = texts(root, patches);
    let mut changes: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
    let (mut files, mut findings) = (BTreeMap::new(), Vec::new());
    for (name, patch) in patches {
        match patch.changes(|file| texts.get(file).map(String::as_str), 0) {
            Ok(own) => {
                for (file, own) in own {
                    let (file, _) = texts.get_key_value(&*file).expect("it was patched");
                    changes.entry(file).or_default().extend(own);
                }
            }
            Err(why) => findings.push(format!(
                "{}: {why}; try `cargo run -p windrow-xtask -- mutants --refresh`, or write \
                 it again as docs/reliability/mutants.md says",
                path(name)
            )),
        }
    }
    for (file, changes) in changes {
        match patch::apply(&texts[file], changes) {
            Ok(text) => drop(files.insert(file.to_owned(), text)),
            Err(why) => findings.push(format!("{DIR}: {file}: {why}")),
        }
    }
    Ok((files, findings))
}

/// Returns the present contents of the files that patches change.
fn texts(root: &Path, patches: &Patches) -> BTreeMap<String, String> {
    let files = patches.iter().flat_map(|(_, patch)| patch.files());
    let text = |file: &str| Some((file.to_owned(), fs::read_to_string(root.join(file)).ok()?));
    files.filter_map(text).collect()
}

/// Writes every patch again, for the present lines.
fn refresh(root: &Path) -> Result<bool, Box<dyn Error>> {
    let mut done = true;
    for entry in table::read(root)? {
        let file = path(&entry.name);
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        match refreshed(root, &entry, &text) {
            Ok(new) if new == text => {}
            Ok(new) => {
                fs::write(root.join(&file), new)?;
                println!("wrote {file}");
            }
            Err(why) => {
                done = false;
                println!("{file}: {why}");
            }
        }
    }
    Ok(done)
}

fn refreshed(root: &Path, entry: &Entry, text: &str) -> Result<String, String> {
    let patches = vec![(entry.name.clone(), Patch::parse(text)?)];
    let texts = texts(root, &patches);
    let find = |less| patches[0].1.changes(|file| texts.get(file).map(String::as_str), less);
    let found = (1..=LESS_CONTEXT_MAX).fold(find(0), |found, less| found.or_else(|_| find(less)));
    let parts = found?.into_iter().map(|(file, own)| patch::write(&file, &texts[&file], &own));
    Ok(std::iter::once(entry.head()).chain(parts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let (promises, what) = ("P1 P2".to_owned(), "it is not synced".to_owned());
        Entry { name: "Some".to_owned(), promises, what }
    }

    fn judged(patch: &str) -> Result<Patch, String> {
        judge(&entry(), Patch::parse(patch).unwrap())
    }

    #[test]
    fn a_patch_says_what_it_breaks_and_asks_for_its_mutant_alone() {
        let patch = "Breaks P1 P2: it is not synced\n--- a/x.rs\n+++ b/x.rs\n\
                     @@ -1 +1,2 @@\n a\n+if windrow_base::mutant!(Some) {}\n";
        assert!(judged(patch).is_ok());
        assert!(judged(&patch.replace("P2", "P3")).unwrap_err().contains("first line"));
        assert!(judged(&patch.replace("(Some)", "(Other)")).unwrap_err().contains("mutant!(Some)"));
        let both = patch.replace("{}", "|| mutant!(Other) {}");
        assert!(judged(&both).unwrap_err().contains("no other"));
    }

    #[test]
    fn a_patch_is_refreshed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let text = fs::read_to_string(root.join("findings.rs")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let made = |at: usize, context: &str| {
            let line = lines[at];
            format!(
                "--- a/findings.rs\n+++ b/findings.rs\n@@ -3,2 +3,3 @@\n {context}\n {line}\n+x\n"
            )
        };
        let whole = refreshed(&root, &entry(), &made(5, lines[4])).unwrap();
        assert!(whole.starts_with(&entry().head()) && whole.contains("@@ -4,6 +4,7 @@"), "{whole}");
        assert_eq!(refreshed(&root, &entry(), &made(5, "was")).unwrap(), whole);
        assert_eq!(refreshed(&root, &entry(), &whole).unwrap(), whole);
        assert!(refreshed(&root, &entry(), &whole.replace(lines[5], "was")).is_err());
    }

    #[test]
    fn plans() {
        assert_eq!(Plan::parse(&["--check"]), Ok(Plan::Check));
        assert_eq!(Plan::parse(&["--refresh"]), Ok(Plan::Refresh));
        let hunt = Plan::Hunt(vec!["--only".to_owned(), "1".to_owned()]);
        assert_eq!(Plan::parse(&["--only", "1"]), Ok(hunt));
    }
}
