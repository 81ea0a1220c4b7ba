//! The commands and the code on the pages for users: extracted, and run.
//!
//! A block of `sh` or `console` on one of the pages is run in a directory of its page, which begins
//! with the sample files that the pages name (`samples.rs`), with the program `windrow` on the
//! search path. Each command must end with exit code 0; output that a `console` block shows must be
//! the real output. Blocks of Rust are run by `cargo test`, if the engine's documentation tests
//! include the page: `check` makes sure of that. A comment above a block, which no reader of the
//! rendered page sees, has the block's options (`page.rs` lists them):
//!
//! ```text
//! <!-- commands: all, checkout -->
//! ```
//!
//! `cargo test` runs the cheap ones (`crates/cli/tests/it/pages.rs`, which has the program);
//! `cargo run -p windrow-xtask -- readme --all` runs the rest as well.
//!
//! Owns: the list of pages, and the directory of each.
//! Never does: judge a block that is not run; that needs a reason on the page.

mod page;
mod samples;
mod script;

use crate::findings::Findings;
use crate::repeat::executables;
use page::{Block, Page, Word};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The file whose documentation tests run the Rust of pages.
const DOC_TESTS: &str = "crates/engine/src/lib.rs";

/// The selection of pages and blocks to run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Whether to run also the blocks that take long or need the network.
    pub all: bool,
    /// Parts of pages' paths. A page is run if its path contains any of them; empty for all pages.
    pub pages: Vec<String>,
}

impl Plan {
    /// The plan that the arguments of the command ask for.
    ///
    /// # Errors
    /// The argument that cannot be understood.
    pub fn parse(arguments: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan::default();
        for argument in arguments {
            match *argument {
                "--all" => plan.all = true,
                flag if flag.starts_with('-') => return Err(format!("unknown argument {flag}")),
                page => plan.pages.push(page.to_owned()),
            }
        }
        Ok(plan)
    }
}

/// Returns the pages, by path from the workspace's root.
fn paths(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut paths = vec!["README.md".to_owned(), "docs/program.md".to_owned()];
    for entry in fs::read_dir(root.join("docs/guide"))? {
        let name = entry?.file_name().into_string().map_err(|_| "docs/guide: a name in no text")?;
        if name.ends_with(".md") {
            paths.push(format!("docs/guide/{name}"));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Finds blocks that would be left out in silence: of no known language, indented, with an unknown
/// mark, or of Rust on a page outside of the documentation tests.
///
/// # Errors
/// If a page cannot be read.
pub fn check(root: &Path) -> Findings {
    let tests = fs::read_to_string(root.join(DOC_TESTS))?;
    let version = workspace_version(root)?;
    let mut findings = Vec::new();
    for path in paths(root)? {
        let page = Page::parse(&path, &fs::read_to_string(root.join(&path))?);
        findings.extend(page.findings.iter().cloned());
        let is_tested = tests.contains(&format!("include_str!(\"../../../{path}\")"));
        if !is_tested && page.blocks.iter().any(Block::is_rust) {
            findings.push(format!("{path}: has code, and {DOC_TESTS} does not include the page"));
        }
        for block in page.blocks.iter().filter(|block| block.language == "toml") {
            findings.extend(
                wrong_dependency(root, &version, block)
                    .map(|why| format!("{path}:{}: {why}", block.line)),
            );
        }
    }
    Ok(findings)
}

fn workspace_version(root: &Path) -> Result<String, Box<dyn Error>> {
    let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("version")).and_then(toml::Value::as_str);
    Ok(version.ok_or("Cargo.toml: no version of the workspace")?.to_owned())
}

/// Returns why these lines of a manifest would not work for a reader who copies them.
fn wrong_dependency(root: &Path, version: &str, block: &Block) -> Option<String> {
    let manifest: toml::Table = match block.text.join("\n").parse() {
        Ok(manifest) => manifest,
        Err(error) => return Some(format!("is no TOML: {error}")),
    };
    let dependency = manifest.get("dependencies")?.get("windrow")?;
    let path = dependency.get("path").and_then(toml::Value::as_str);
    let asked = dependency.as_str().or_else(|| dependency.get("version")?.as_str());
    match (path.map(|path| path.strip_prefix("../windrow/")), asked) {
        (Some(Some(path)), _) if root.join(path).join("Cargo.toml").exists() => None,
        (None, Some(asked)) if version.starts_with(asked) => None,
        _ => Some("the path is not the library's, or the version is another one".to_owned()),
    }
}

/// Builds the program and runs the plan. Returns whether every command did as its page says.
///
/// # Errors
/// If the program cannot be built, or a page cannot be read.
pub fn run(root: &Path, plan: &Plan) -> Result<bool, Box<dyn Error>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--locked", "-p", "windrow-cli", "--bin", "windrow"]);
    let built = executables(cargo.arg("--message-format=json"))?;
    let program = built.first().ok_or("cargo built no program")?;
    let findings = try_pages(root, program, plan, &mut |line| println!("{line}"))?;
    findings.iter().for_each(|finding| println!("{finding}"));
    Ok(findings.is_empty())
}

/// Runs the plan with this program, and reports each page to `say`.
///
/// # Errors
/// If a page cannot be read, or a directory cannot be made.
pub fn try_pages(
    root: &Path,
    program: &Path,
    plan: &Plan,
    say: &mut dyn FnMut(String),
) -> Findings {
    let mut findings = Vec::new();
    let paths = paths(root)?;
    let chosen =
        |path: &&String| plan.pages.is_empty() || plan.pages.iter().any(|part| path.contains(part));
    let mut tried = 0;
    for path in paths.iter().filter(chosen) {
        let page = Page::parse(path, &fs::read_to_string(root.join(path))?);
        findings.extend(page.findings.iter().cloned());
        let dir = tempfile::Builder::new().prefix("windrow-page-").tempdir()?;
        for (name, content) in samples::FILES {
            fs::write(dir.path().join(name), content)?;
        }
        // A checkout next to the reader's programs, as the pages have it.
        std::os::unix::fs::symlink(root, dir.path().join("windrow"))?;
        let place = script::Place { root, dir: dir.path(), program };
        let counts = try_page(&page, &place, plan, &mut findings)?;
        let named = |(outcome, count)| format!("{count} {outcome}");
        let counts: Vec<String> = counts.into_iter().map(named).collect();
        if !counts.is_empty() {
            say(format!("{path}: {}", counts.join(", ")));
        }
        tried += 1;
    }
    if tried == 0 {
        return Err(format!("no page has any of {:?} in its path", plan.pages).into());
    }
    Ok(findings)
}

/// Runs the blocks of a page in their order. Counts the commands by outcome.
fn try_page(
    page: &Page,
    place: &script::Place<'_>,
    plan: &Plan,
    findings: &mut Vec<String>,
) -> Result<BTreeMap<&'static str, usize>, Box<dyn Error>> {
    let mut counts = BTreeMap::new();
    for block in &page.blocks {
        if block.has(Word::Never) || (block.has(Word::All) && !plan.all) {
            *counts.entry("commands left out").or_default() += block.commands();
            continue;
        }
        if let Some(name) = &block.file {
            let path = place.dir.join(name);
            fs::create_dir_all(path.parent().unwrap_or(place.dir))?;
            fs::write(path, block.text.join("\n") + "\n")?;
        }
        for step in block.steps() {
            *counts.entry("commands run").or_default() += step.commands;
            let wrong = script::run(place, block, &step)?;
            findings.extend(wrong.map(|why| format!("{}:{}: {why}", page.path, step.line)));
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        let page = Page::parse("p.md", &format!("```toml\n{text}\n```\n"));
        page.blocks.into_iter().next().unwrap()
    }

    #[test]
    fn a_dependency_that_leads_nowhere_is_found() {
        let wrong = |text: &str| wrong_dependency(&crate::root(), "0.1.0", &block(text));
        let depends = |what: &str| wrong(&format!("[dependencies]\nwindrow = {what}"));
        assert_eq!(depends("{ path = \"../windrow/crates/engine\" }"), None);
        assert_eq!(depends("\"0.1\""), None);
        assert_eq!(depends("{ version = \"0.1\", features = [\"zstd\"] }"), None);
        for gone in ["\"0.2\"", "{ path = \"../windrow/engine\" }", "{ git = \"x\" }", "]"] {
            assert!(depends(gone).is_some(), "{gone}");
        }
    }

    #[test]
    fn arguments_are_flags_and_pages() {
        let plan = Plan { all: true, pages: vec!["guide".into()] };
        assert_eq!(Plan::parse(&["guide", "--all"]), Ok(plan));
        assert!(Plan::parse(&["--al"]).is_err());
    }
}
