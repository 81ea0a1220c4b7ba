//! Circles: files of a crate that need each other, and types whose methods are in
//! many files.
//!
//! A file needs the file that defines a name that it uses: in a `use`, a path, or a method call
//! whose receiver has a written type. A call of `self.f()` in another file counts as much as a call
//! of a function there. Re-exports are followed and count for nothing themselves; neither does code
//! that only tests build. Rejected: to look at `use`s alone, as general tools do. One type's `impl`
//! blocks in thirty files have none.
//!
//! Owns: the verdict, and the report that helps to cut a circle. Never does: expand macros or infer
//! types.

mod allowed;
mod calls;
mod graph;
mod locals;
mod order;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;
mod types;
mod uses;

use crate::findings::Findings;
use crate::source::{self, Source};
use allowed::{ALLOWED, Allowed, Exception};
use graph::{Graph, Reasons};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use tree::Tree;
use types::Types;

/// Names that the report gives for each edge.
const NAMES: usize = 4;

/// The findings of one crate. Paths begin below its `src`.
#[derive(Default)]
struct Found {
    circles: Vec<Circle>,
    /// Types with methods of their own in more than two files, and the files.
    spread: BTreeMap<String, Vec<String>>,
}

/// Files that need each other.
struct Circle {
    files: Vec<String>,
    /// A line for every edge among them.
    edges: Vec<String>,
    /// The edges whose removal breaks the circle.
    to_cut: Vec<String>,
}

/// Finds circles and spread types that are not allowed, and exceptions that nothing needs.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    Ok(judge(&examine(&source::load(root)?), ALLOWED))
}

/// Prints the findings of these crates (none: of all), and returns whether all of them are allowed.
///
/// # Errors
/// If a file cannot be read or parsed, or there is no such crate.
pub fn print(root: &Path, crates: &[&str]) -> Result<bool, Box<dyn Error>> {
    let mut found = examine(&source::load(root)?);
    if let Some(unknown) = crates.iter().find(|name| !found.contains_key(**name)) {
        return Err(format!("there is no crates/{unknown}").into());
    }
    let mut findings = judge(&found, ALLOWED);
    if !crates.is_empty() {
        found.retain(|name, _| crates.contains(&name.as_str()));
        findings.retain(|finding| {
            crates.iter().any(|name| finding.starts_with(&format!("crates/{name}:")))
        });
    }
    print!("{}", report(&found));
    findings.iter().for_each(|finding| println!("not allowed: {finding}"));
    Ok(findings.is_empty())
}

/// Returns the findings of each crate, by its directory.
fn examine(sources: &[Source]) -> BTreeMap<String, Found> {
    let files: HashMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    let mut crates: BTreeMap<String, Found> = BTreeMap::new();
    for root in sources.iter().filter(|source| is_root(source)) {
        let tree = Tree::of(root, &files);
        let types = Types::of(&tree);
        let graph = graphs.entry(root.crate_dir().to_owned()).or_default();
        uses::collect(&tree, &types, graph);
        let found = crates.entry(root.crate_dir().to_owned()).or_default();
        for (name, files) in types.spread() {
            let files = files.into_iter().map(|file| short(file).to_owned());
            found.spread.entry(name.to_owned()).or_default().extend(files);
        }
    }
    for (name, found) in &mut crates {
        let graph = &graphs[name];
        found.circles =
            graph.circles().into_iter().map(|circle| described(graph, circle)).collect();
    }
    crates
}

/// Whether a file is the root of a library or program.
fn is_root(source: &Source) -> bool {
    let below = short(&source.path);
    let is_program =
        below.strip_prefix("bin/").is_some_and(|name| !name.contains('/') || is_main(name));
    below != source.path && (matches!(below, "lib.rs" | "main.rs") || is_program)
}

fn is_main(program: &str) -> bool {
    program.split_once('/').is_some_and(|(_, file)| file == "main.rs")
}

/// Returns a path below a crate's `src`.
fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, below)| below)
}

fn described(graph: &Graph, circle: Vec<String>) -> Circle {
    let line = |(from, to, reasons): (&str, &str, &Reasons)| {
        let mut reasons: Vec<(&String, &usize)> = reasons.iter().collect();
        reasons.sort_by_key(|(name, line)| (**line, *name));
        let named = reasons.iter().take(NAMES).map(|(name, line)| format!("{name} at {line}"));
        let more = match reasons.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(", {more} more"),
        };
        let named: Vec<String> = named.collect();
        format!("{} -> {}: {}{more}", short(from), short(to), named.join(", "))
    };
    Circle {
        edges: graph.within(&circle).into_iter().map(line).collect(),
        to_cut: order::to_cut(graph, &circle).into_iter().map(line).collect(),
        files: circle.iter().map(|file| short(file).to_owned()).collect(),
    }
}

/// Reports all findings, allowed or not.
fn report(crates: &BTreeMap<String, Found>) -> String {
    let mut text = String::new();
    for (name, found) in crates {
        let (circles, spread) = (found.circles.len(), found.spread.len());
        let _ = writeln!(
            text,
            "crates/{name}: {circles} circles, {spread} types with methods in more than two files"
        );
        for Circle { files, edges, to_cut } in &found.circles {
            let _ = writeln!(text, "\n  circle of {} files: {}", files.len(), files.join(" "));
            edges.iter().for_each(|edge| _ = writeln!(text, "    {edge}"));
            let _ = writeln!(text, "  there would be none without these {}:", to_cut.len());
            to_cut.iter().for_each(|edge| _ = writeln!(text, "    {edge}"));
        }
        for (name, files) in &found.spread {
            let _ = writeln!(text, "\n  {name} has methods in: {}", files.join(" "));
        }
        if circles + spread > 0 {
            text.push('\n');
        }
    }
    text
}

fn judge(crates: &BTreeMap<String, Found>, exceptions: &[Exception]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut needed = vec![false; exceptions.len()];
    let mut is_allowed = |name: &str, fits: &dyn Fn(&Allowed) -> bool| {
        let mut allowed = false;
        for (place, exception) in exceptions.iter().enumerate() {
            if exception.crate_dir == name && fits(&exception.what) {
                (allowed, needed[place]) = (true, true);
            }
        }
        allowed
    };
    for (name, found) in crates {
        for Circle { files, .. } in &found.circles {
            let fits = |allowed: &Allowed| match allowed {
                Allowed::Circle(group) => group.iter().eq(files),
                Allowed::Type(_) => false,
            };
            if !is_allowed(name, &fits) {
                findings.push(format!(
                    "crates/{name}: {} need each other; `cargo run -p windrow-xtask -- circles \
                     {name}` says for what",
                    files.join(", ")
                ));
            }
        }
        for (ty, files) in &found.spread {
            let fits = |allowed: &Allowed| match allowed {
                Allowed::Circle(_) => false,
                Allowed::Type(name) => name == ty,
            };
            if !is_allowed(name, &fits) {
                findings.push(format!(
                    "crates/{name}: {ty} has methods in more than two files: {}",
                    files.join(", ")
                ));
            }
        }
    }
    let stale = exceptions.iter().zip(&needed).filter(|(_, needed)| !**needed);
    findings.extend(stale.map(|(exception, _)| {
        let Exception { crate_dir, what, why } = exception;
        format!("crates/{crate_dir}: {what:?} ({why}) is not needed any more (circles/allowed.rs)")
    }));
    findings
}
