//! The lines of the data-holding crates that the tests run, by rustc's own instrumentation and
//! LLVM's tools.
//!
//! Everything is built once more, instrumented, into `target/coverage`; every test is run; and a
//! table is printed by crate and by file. Lines of test modules and of test doubles do not count.
//! Owns: the table, and `target/coverage/missed.txt`. Never does: fail for a share; a reader judges
//! the lines that are not covered.

use crate::conditions::is_for_tests;
use crate::repeat::executables;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use syn::visit::{self, Visit};

/// The crates that are measured, by directory.
const CRATES: [&str; 7] = ["engine", "recover", "store", "read", "format", "plan", "env"];
/// Files that the table names.
const FILES: usize = 20;

/// Runs the tests of these packages (none: of the workspace) and prints the table.
/// Returns whether all tests passed.
///
/// # Errors
/// A tool that is missing, or that failed.
pub fn run(root: &Path, packages: &[&str]) -> Result<bool, Box<dyn Error>> {
    let [profdata, cov] = tools()?;
    let out = root.join("target/coverage");
    let profiles = out.join("profiles");
    let _ = fs::remove_dir_all(&profiles);
    fs::create_dir_all(&profiles)?;
    let chosen = match packages {
        [] => vec!["--workspace", "--exclude", "windrow-bench-peers"],
        names => names.iter().flat_map(|name| ["--package", name]).collect(),
    };
    let cargo = || {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(root).args(["test", "--tests"]).args(&chosen);
        command.env("CARGO_TARGET_DIR", &out).env("CARGO_INCREMENTAL", "0");
        command.env("RUSTFLAGS", "-C instrument-coverage");
        // Eight profiles for each binary. Its processes merge their counts into them when they end.
        command.env("LLVM_PROFILE_FILE", profiles.join("%8m.profraw"));
        command
    };
    let objects = executables(cargo().args(["--no-run", "--message-format=json"]))?;
    let passed = cargo().arg("--no-fail-fast").status()?.success();
    let merged = out.join("all.profdata");
    let raw = fs::read_dir(&profiles)?.map(|entry| entry.map(|entry| entry.path()));
    let raw = raw.collect::<Result<Vec<_>, _>>()?;
    output(Command::new(profdata).args(["merge", "-sparse", "-o"]).arg(&merged).args(raw))?;
    let [first, rest @ ..] = &objects[..] else {
        return Err("there are no tests".into());
    };
    let mut export = Command::new(cov);
    export.args(["export", "--format=lcov", "--instr-profile"]).arg(&merged).arg(first);
    rest.iter().for_each(|object| _ = export.arg("--object").arg(object));
    export.arg("--sources").args(CRATES.map(|name| root.join("crates").join(name).join("src")));
    let files = files(root, &output(&mut export)?)?;
    print!("{}", table(&files));
    let list = out.join("missed.txt");
    fs::write(&list, missed(&files))?;
    println!("\nlines that no test runs: {}", list.display());
    Ok(passed)
}

/// Finds `llvm-profdata` and `llvm-cov`: first those that the environment names, then those of the
/// compiler's LLVM version, then rustup's.
fn tools() -> Result<[PathBuf; 2], Box<dyn Error>> {
    let about = output(Command::new("rustc").arg("-vV"))?;
    let field = |name| about.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
    let version = field("LLVM version:").split('.').next().unwrap_or("").to_owned();
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let rustup = Path::new(sysroot.trim()).join("lib/rustlib").join(field("host:")).join("bin");
    let find = |variable: &str, name: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let others = [PathBuf::from(format!("{name}-{version}")), rustup.join(name)];
        let runs = |tool: &PathBuf| output(Command::new(tool).arg("--version")).is_ok();
        named.or_else(|| others.into_iter().find(runs)).ok_or_else(|| {
            format!(
                "no {name} of LLVM {version}: apt-get install llvm-{version}, or rustup component \
                 add llvm-tools, or set {variable}"
            )
        })
    };
    Ok([find("LLVM_PROFDATA", "llvm-profdata")?, find("LLVM_COV", "llvm-cov")?])
}

fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", command.get_program().display(), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The lines of a file that have code of their own, and whether a test ran them.
type Lines = BTreeMap<usize, bool>;

/// Lines by path, without those of tests.
type Files = BTreeMap<String, Lines>;

fn files(root: &Path, lcov: &str) -> Result<Files, Box<dyn Error>> {
    let mut files = parse(root, lcov);
    let mut tests = BTreeSet::new();
    for (path, lines) in &mut files {
        let source = Source::parse(path, &fs::read_to_string(root.join(path))?)?;
        let found = TestCode::of(&source);
        lines.retain(|line, _| !found.ranges.iter().any(|(lo, hi)| lo <= line && line <= hi));
        tests.extend(found.modules);
    }
    let is_test = |path: &str| {
        let stem = path.trim_end_matches(".rs");
        tests.iter().any(|test| stem == *test || stem.starts_with(&format!("{test}/")))
    };
    files.retain(|path, lines| !lines.is_empty() && !is_test(path));
    Ok(files)
}

/// Reads the line counts of an lcov file.
fn parse(root: &Path, lcov: &str) -> Files {
    let mut files = Files::new();
    let mut path = None;
    for line in lcov.lines() {
        if let Some(name) = line.strip_prefix("SF:") {
            let name = Path::new(name).strip_prefix(root).ok();
            path = name.and_then(Path::to_str).map(str::to_owned);
        } else if let (Some(path), Some(rest)) = (&path, line.strip_prefix("DA:")) {
            let mut fields = rest.split(',');
            let mut number = || fields.next().and_then(|field| field.parse::<usize>().ok());
            if let (Some(at), Some(count)) = (number(), number()) {
                *files.entry(path.clone()).or_default().entry(at).or_default() |= count > 0;
            }
        }
    }
    files
}

/// The parts of a file that are for tests only.
#[derive(Default)]
struct TestCode {
    /// First and last lines.
    ranges: Vec<(usize, usize)>,
    /// Modules in files of their own, by path without `.rs`.
    modules: Vec<String>,
    /// The directory of such files.
    dir: String,
}

impl TestCode {
    fn of(source: &Source) -> TestCode {
        let stem = source.path.trim_end_matches(".rs");
        let (parent, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let owns_parent = matches!(name, "lib" | "mod" | "main");
        let dir = if owns_parent { parent } else { stem };
        let mut found = TestCode { dir: dir.to_owned(), ..TestCode::default() };
        found.visit_file(&source.syntax);
        found
    }

    fn add(&mut self, attributes: &[syn::Attribute], end: usize) -> bool {
        let test = attributes.iter().find(|attribute| is_for_tests(attribute));
        self.ranges.extend(test.map(|test| (test.pound_token.span.start().line, end)));
        test.is_some()
    }
}

impl<'a> Visit<'a> for TestCode {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        let Some((brace, _)) = &item.content else {
            if item.attrs.iter().any(is_for_tests) {
                self.modules.push(format!("{}/{}", self.dir, item.ident));
            }
            return;
        };
        if !self.add(&item.attrs, brace.span.close().end().line) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.add(&item.attrs, item.block.brace_token.span.close().end().line);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if !self.add(&item.attrs, item.brace_token.span.close().end().line) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add(&item.attrs, item.block.brace_token.span.close().end().line);
    }
}

/// Lines, and how many of them were run.
#[derive(Clone, Copy, Default)]
struct Share {
    lines: usize,
    covered: usize,
}

impl Share {
    fn of(lines: &Lines) -> Share {
        Share { lines: lines.len(), covered: lines.values().filter(|covered| **covered).count() }
    }

    fn add(&mut self, other: Share) {
        self.lines += other.lines;
        self.covered += other.covered;
    }

    fn percent(self) -> f64 {
        100.0 * self.covered as f64 / self.lines.max(1) as f64
    }
}

fn table(files: &Files) -> String {
    let mut text = String::from("| crate | lines | covered | per cent |\n|---|---|---|---|\n");
    let mut total = Share::default();
    for name in CRATES {
        let mut sum = Share::default();
        let of_crate =
            files.iter().filter(|(path, _)| path.starts_with(&format!("crates/{name}/")));
        of_crate.for_each(|(_, lines)| sum.add(Share::of(lines)));
        total.add(sum);
        let _ =
            writeln!(text, "| {name} | {} | {} | {:.1} |", sum.lines, sum.covered, sum.percent());
    }
    let _ =
        writeln!(text, "| all | {} | {} | {:.1} |", total.lines, total.covered, total.percent());
    let mut worst: Vec<(&str, Share)> =
        files.iter().map(|(path, lines)| (path.as_str(), Share::of(lines))).collect();
    worst.sort_by_key(|(path, share)| (share.covered as isize - share.lines as isize, *path));
    text += "\n| file | not covered | of | per cent covered |\n|---|---|---|---|\n";
    for (path, share) in worst.into_iter().take(FILES) {
        let (missed, percent) = (share.lines - share.covered, share.percent());
        let _ = writeln!(text, "| {path} | {missed} | {} | {percent:.1} |", share.lines);
    }
    text
}

/// Lists every range of lines that was not run, one a line.
fn missed(files: &Files) -> String {
    let mut text = String::new();
    for (path, lines) in files {
        let mut open: Option<(usize, usize)> = None;
        let ends = lines.iter().map(|(line, covered)| (*line, *covered)).chain([(0, true)]);
        for (line, covered) in ends {
            open = match (open, covered) {
                (Some((lo, _)), false) => Some((lo, line)),
                (None, false) => Some((line, line)),
                (Some((lo, hi)), true) => {
                    let _ = writeln!(text, "{path}:{lo}-{hi}");
                    None
                }
                (None, true) => None,
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_left_out() {
        let text = "#[cfg(test)]\nmod tests;\n#[cfg(any(test, feature = \"testing\"))]\npub mod \
                    testing;\nmod used;\n#[cfg(not(test))]\nfn used() {}\n\n#[cfg(test)]\nmod inner \
                    {\n    fn a() {}\n}\nimpl Used {\n    #[cfg(test)]\n    fn b() {}\n}\n";
        let found = TestCode::of(&Source::parse("crates/x/src/lib.rs", text).unwrap());
        assert_eq!(found.ranges, [(9, 12), (14, 15)]);
        assert_eq!(found.modules, ["crates/x/src/tests", "crates/x/src/testing"]);
        let found = TestCode::of(&Source::parse("crates/x/src/used.rs", text).unwrap());
        assert_eq!(found.modules[0], "crates/x/src/used/tests");
    }

    #[test]
    fn a_line_is_covered_if_any_binary_ran_it() {
        let lcov = "SF:/w/crates/engine/src/a.rs\nDA:1,0\nDA:2,0\nDA:3,5\nend_of_record\n\
                    SF:/w/crates/engine/src/a.rs\nDA:1,0\nDA:2,1\nDA:4,0\nend_of_record\n\
                    SF:/elsewhere/b.rs\nDA:1,0\nend_of_record\n";
        let files = parse(Path::new("/w"), lcov);
        assert_eq!(missed(&files), "crates/engine/src/a.rs:1-1\ncrates/engine/src/a.rs:4-4\n");
        let table = table(&files);
        assert!(table.contains("| engine | 4 | 2 | 50.0 |"), "{table}");
        assert!(table.contains("| crates/engine/src/a.rs | 2 | 4 | 50.0 |"), "{table}");
    }
}
