//! The functions of the engine that a put or a get passes, by file.
//!
//! `crates/bench/examples/one_call.rs` is built without optimisation, so that nothing is inlined,
//! and run under valgrind's callgrind, which names each function that the one call enters. Only
//! functions with steps count (`assertions/steps.rs`): a reader needs no other file for a getter.
//! Closures are part of their function. The common case is followed: no memtable is switched, no
//! log is full, no thread is waited for.
//!
//! Owns: the table. Never does: fail for a number.

use crate::assertions::steps;
use crate::conditions::is_for_tests;
use crate::repeat::executables;
use crate::source::{self, ENGINE, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use syn::visit::{self, Visit};

/// The calls that can be followed.
const CALLS: [&str; 2] = ["put", "get"];

/// A function of a file: its name, and its first and last line.
struct Function {
    name: String,
    lines: (usize, usize),
    has_steps: bool,
}

/// Prints the table of each call (none: of all).
///
/// # Errors
/// A call that is not known; valgrind missing; the message of a failed build.
pub fn print(root: &Path, calls: &[&str]) -> Result<bool, Box<dyn Error>> {
    if let Some(unknown) = calls.iter().find(|call| !CALLS.contains(call)) {
        return Err(format!("there is no path `{unknown}`; there are {}", CALLS.join(", ")).into());
    }
    let sources = source::load(root)?;
    let program = build(root)?;
    for call in CALLS.iter().filter(|call| calls.is_empty() || calls.contains(call)) {
        let profile = root.join(format!("target/path/{call}.callgrind"));
        follow(&program, call, &profile)?;
        print_call(call, &passed(root, &sources, &fs::read_to_string(&profile)?));
    }
    Ok(true)
}

fn build(root: &Path) -> Result<std::path::PathBuf, Box<dyn Error>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--locked", "-p", "windrow-bench"]);
    cargo.args(["--example", "one_call", "--message-format=json"]);
    cargo.env("CARGO_TARGET_DIR", root.join("target/path")).env("CARGO_INCREMENTAL", "0");
    cargo
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    // Built like programs that are measured: assertions are not part of the path.
    cargo.env("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false");
    executables(&mut cargo)?.pop().ok_or_else(|| "cargo built no program".into())
}

fn follow(program: &Path, call: &str, profile: &Path) -> Result<(), Box<dyn Error>> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]);
    valgrind.arg(format!("--toggle-collect=one_call::windrow_path_{call}*"));
    valgrind.arg(format!("--callgrind-out-file={}", profile.display())).arg(program);
    let output = valgrind.stderr(Stdio::piped()).output();
    let output = output.map_err(|e| format!("valgrind: {e}: install it (Debian: valgrind)"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// Returns the functions with steps that a profile names, by file of the engine.
fn passed(root: &Path, sources: &[Source], profile: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut passed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let functions = |path: &str| {
        let source = sources.iter().find(|source| source.path == path)?;
        Some(functions(source))
    };
    let mut known: BTreeMap<String, Vec<Function>> = BTreeMap::new();
    let (mut file, mut is_first) = (String::new(), false);
    let root = format!("{}/", root.display());
    for line in profile.lines() {
        if let Some(path) = line.strip_prefix("fl=") {
            file = path.strip_prefix(&root).unwrap_or(path).to_owned();
        } else if line.starts_with("fn=") {
            is_first = true;
        } else if is_first && let Some(at) = line.split(' ').next().and_then(|n| n.parse().ok()) {
            is_first = false;
            if !is_of_engine(&file) {
                continue;
            }
            let of_file =
                known.entry(file.clone()).or_insert_with(|| functions(&file).unwrap_or_default());
            let inside = of_file.iter().filter(|f| (f.lines.0..=f.lines.1).contains(&at));
            let found = inside.min_by_key(|function| function.lines.1 - function.lines.0);
            if let Some(function) = found.filter(|function| function.has_steps) {
                passed.entry(file.clone()).or_default().insert(function.name.clone());
            }
        }
    }
    passed
}

/// Whether a file belongs to the engine.
fn is_of_engine(file: &str) -> bool {
    let mut parts = file.split('/');
    let named = [parts.next(), parts.next(), parts.next()];
    ENGINE.iter().any(|name| named == [Some("crates"), Some(*name), Some("src")])
}

fn print_call(call: &str, passed: &BTreeMap<String, BTreeSet<String>>) {
    let count: usize = passed.values().map(BTreeSet::len).sum();
    println!("{call}: {count} functions with steps in {} files of the engine", passed.len());
    for (file, functions) in passed {
        let names: Vec<&str> = functions.iter().map(String::as_str).collect();
        println!(
            "  {:<28} {:>2}  {}",
            file.trim_start_matches("crates/"),
            names.len(),
            names.join(", ")
        );
    }
}

fn functions(source: &Source) -> Vec<Function> {
    let mut listing = Listing { functions: Vec::new(), is_boilerplate: false };
    listing.visit_file(&source.syntax);
    listing.functions
}

struct Listing {
    functions: Vec<Function>,
    is_boilerplate: bool,
}

impl Listing {
    fn note(&mut self, name: &syn::Ident, body: &syn::Block) {
        let lines = (name.span().start().line, body.brace_token.span.close().end().line);
        let has_steps = !self.is_boilerplate && steps::has_steps(body);
        self.functions.push(Function { name: name.to_string(), lines, has_steps });
    }
}

impl<'ast> Visit<'ast> for Listing {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.is_boilerplate, steps::is_boilerplate(item));
        visit::visit_item_impl(self, item);
        self.is_boilerplate = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.note(&item.sig.ident, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}
