//! The number of assertions for each function, by crate and folder, and the places where invariants
//! and rules are checked.
//!
//! Every function counts, and in a second column those with steps (`steps.rs`): a getter has
//! nothing to assert. Tests, their doubles and model checkers do not count, whether they are a
//! block of a file or a file of their own. Closures are part of their function.
//!
//! Two rows at the end are sums over files: `plan`, and the control plane of the engine's crates
//! ([`CONTROL_PLANE`]), which decides and records the state that readers and writers rely on. Code
//! that runs for each key (reads, tables, caches) is not part of it.
//!
//! Owns: the definition of an assertion (macros that fail in every build or in debug builds) and of
//! its names (I1 to I10, Q1 to Q4, R1 to R16). Never does: require a number.

pub(crate) mod steps;

use crate::conditions::is_for_tests;
use crate::source::{self, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ops::AddAssign;
use std::path::Path;
use syn::visit::{self, Visit};

/// Crates that have a row for each folder.
const LIBRARIES: [&str; 9] =
    ["base", "env", "format", "plan", "skiplist", "read", "store", "recover", "engine"];

/// The control plane: files and folders of the engine's crates.
const CONTROL_PLANE: [&str; 21] = [
    "crates/recover/src/close.rs",
    "crates/store/src/jobs/changed_keyspaces.rs",
    "crates/store/src/jobs/flush.rs",
    "crates/store/src/host/gate.rs",
    "crates/store/src/jobs/mod.rs",
    "crates/store/src/catalog/",
    "crates/store/src/manifest/",
    "crates/store/src/jobs/merge.rs",
    "crates/recover/src/discovery/",
    "crates/recover/src/open/",
    "crates/recover/src/resume.rs",
    "crates/store/src/jobs/schedule.rs",
    "crates/store/src/host/workers.rs",
    "crates/store/src/write/pipeline.rs",
    "crates/store/src/write/queue.rs",
    "crates/store/src/write/room.rs",
    "crates/store/src/write/segments.rs",
    "crates/store/src/write/unflushed_writes.rs",
    "crates/store/src/host/write_state.rs",
    "crates/read/src/snapshot_list.rs",
    "crates/read/src/stats/chain.rs",
];

const NAMED: [&str; 3] = ["invariant", "check_invariant", "debug_invariant"];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    functions: usize,
    with_steps: usize,
    assertions: usize,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.functions += other.functions;
        self.with_steps += other.with_steps;
        self.assertions += other.assertions;
    }
}

/// The counts of one file.
#[derive(Default)]
struct Found {
    count: Count,
    /// Names of invariants.
    named: BTreeSet<String>,
    /// Functions with steps and without assertions: name and line.
    bare: Vec<(String, usize)>,
}

/// Prints a table and the names; or, of the files whose path contains one of `parts`, the functions
/// with steps and without assertions. Fails nothing: the answer is `true`.
///
/// # Errors
/// If the sources cannot be read.
pub fn print(root: &Path, parts: &[&str]) -> Result<bool, Box<dyn Error>> {
    let sources = source::load(root)?;
    let tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    let mut rows: BTreeMap<String, Count> = BTreeMap::new();
    let (mut plan, mut control) = (Count::default(), Count::default());
    let mut named: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for source in &sources {
        let Some(folder) = folder(source).filter(|_| !is_within(&source.path, &tests)) else {
            continue;
        };
        let found = find(source);
        if parts.iter().any(|part| source.path.contains(part)) {
            found.bare.iter().for_each(|(name, line)| println!("{}:{line}: {name}", source.path));
        }
        *rows.entry(folder).or_default() += found.count;
        if source.crate_dir() == "plan" {
            plan += found.count;
        }
        if is_control_plane(&source.path) {
            control += found.count;
        }
        for name in found.named {
            named.entry(name).or_default().insert(&source.path);
        }
    }
    if !parts.is_empty() {
        return Ok(true);
    }
    let titles = ("functions", "with steps", "assertions", "of all", "of those");
    println!(
        "{:<24} {:>9} {:>10} {:>10} {:>7} {:>8}",
        "folder", titles.0, titles.1, titles.2, titles.3, titles.4
    );
    rows.iter().for_each(|(name, count)| row(name, count));
    row("all of plan", &plan);
    row("engine's control plane", &control);
    for (name, files) in named {
        println!("{name}: {}", files.into_iter().collect::<Vec<_>>().join(" "));
    }
    Ok(true)
}

fn row(name: &str, count: &Count) {
    let Count { functions, with_steps, assertions } = *count;
    let each = |of: usize| assertions as f64 / of.max(1) as f64;
    let (all, those) = (each(functions), each(with_steps));
    println!("{name:<24} {functions:>9} {with_steps:>10} {assertions:>10} {all:>7.2} {those:>8.2}");
}

/// Returns the name of a source's row: `engine/write`, or `engine` for a file in no folder; `None`
/// outside of the libraries.
fn folder(source: &Source) -> Option<String> {
    let name = source.crate_dir();
    let inner = source.path.strip_prefix(&format!("crates/{name}/src/"))?;
    let folder = inner.rsplit_once('/').map(|(folder, _)| format!("{name}/{folder}"));
    LIBRARIES.contains(&name).then(|| folder.unwrap_or_else(|| name.to_owned()))
}

fn is_control_plane(path: &str) -> bool {
    let mut parts = CONTROL_PLANE.into_iter();
    parts.any(|part| path == part || (part.ends_with('/') && path.starts_with(part)))
}

/// Returns the paths, without `.rs`, of the modules in their own files that a file declares for
/// tests alone.
pub(crate) fn test_modules(source: &Source) -> Vec<String> {
    let stem = source.path.trim_end_matches(".rs");
    let dir = match stem.rsplit_once('/') {
        Some((dir, "mod" | "lib" | "main")) => dir,
        _ => stem,
    };
    let modules = source.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(item) if item.content.is_none() => Some(item),
        _ => None,
    });
    let for_tests = modules.filter(|module| module.attrs.iter().any(is_for_tests));
    for_tests.map(|module| format!("{dir}/{}", module.ident)).collect()
}

/// Whether the file is one of these modules, or below one.
pub(crate) fn is_within(path: &str, modules: &[String]) -> bool {
    let rest = |module: &String| path.strip_prefix(module.as_str());
    modules.iter().filter_map(rest).any(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn find(source: &Source) -> Found {
    let mut counter = Counter { found: Found::default(), is_boilerplate: false };
    if !source.syntax.attrs.iter().any(is_for_tests) {
        counter.visit_file(&source.syntax);
    }
    counter.found
}

struct Counter {
    found: Found,
    /// In the `impl` of a trait of the standard library.
    is_boilerplate: bool,
}

impl Counter {
    fn function(&mut self, name: &syn::Ident, body: &syn::Block, visit: impl FnOnce(&mut Self)) {
        let before = self.found.count.assertions;
        let with_steps = !self.is_boilerplate && steps::has_steps(body);
        self.found.count.functions += 1;
        self.found.count.with_steps += usize::from(with_steps);
        visit(self);
        if with_steps && self.found.count.assertions == before {
            self.found.bare.push((name.to_string(), name.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Counter {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.is_boilerplate, steps::is_boilerplate(item));
        visit::visit_item_impl(self, item);
        self.is_boilerplate = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, &item.block, |counter| visit::visit_item_fn(counter, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !item.attrs.iter().any(is_for_tests) {
            let visit = |counter: &mut Counter| visit::visit_impl_item_fn(counter, item);
            self.function(&item.sig.ident, &item.block, visit);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            let visit = |counter: &mut Counter| visit::visit_trait_item_fn(counter, item);
            self.function(&item.sig.ident, body, visit);
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let Some(name) = item.path.segments.last().map(|segment| segment.ident.to_string()) else {
            return;
        };
        if NAMED.contains(&&*name) {
            let tokens = item.tokens.to_string();
            let invariant = tokens.split([',', ' ']).next().unwrap_or_default().to_owned();
            self.found.named.insert(invariant);
        }
        self.found.count.assertions += usize::from(steps::asserts(&name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_outside_tests_count() {
        let text = "fn a() { assert!(true); invariant!(I2, 1 == 1, \"x\"); }\n\
                    impl T { fn b() { debug_assert_eq!(1, 1); println!(); } }\n\
                    trait U { fn c(); fn d() { if a { b() } } }\n\
                    impl Default for T { fn default() -> T { if a { b } else { c } } }\n\
                    #[cfg(test)] mod tests { fn e() { assert!(true); } }";
        let source = Source::parse("crates/plan/src/tree/a.rs", text).unwrap();
        let found = find(&source);
        assert_eq!(found.count, Count { functions: 4, with_steps: 1, assertions: 3 });
        assert_eq!(found.named.iter().collect::<Vec<_>>(), ["I2"]);
        assert_eq!(found.bare, [("d".to_owned(), 3)]);
        assert_eq!(folder(&source).as_deref(), Some("plan/tree"));
    }

    #[test]
    fn files_of_tests_are_left_out() {
        let text = "#[cfg(test)] mod tests; mod a; #[cfg(test)] mod b { fn c() {} }";
        for (path, module) in [
            ("crates/engine/src/stats.rs", "crates/engine/src/stats/tests"),
            ("crates/engine/src/read/mod.rs", "crates/engine/src/read/tests"),
            ("crates/engine/src/lib.rs", "crates/engine/src/tests"),
        ] {
            let modules = test_modules(&Source::parse(path, text).unwrap());
            assert_eq!(modules, [module]);
            assert!(is_within(&format!("{module}.rs"), &modules));
            assert!(is_within(&format!("{module}/a.rs"), &modules));
            assert!(!is_within(&format!("{module}s.rs"), &modules));
        }
    }

    #[test]
    fn only_libraries_have_rows() {
        for path in ["crates/bench/src/a.rs", "crates/engine/tests/a.rs"] {
            assert_eq!(folder(&Source::parse(path, "").unwrap()), None, "{path}");
        }
        let top = Source::parse("crates/engine/src/a.rs", "").unwrap();
        assert_eq!(folder(&top).as_deref(), Some("engine"));
    }

    #[test]
    fn the_control_plane_is_there() {
        for part in CONTROL_PLANE {
            assert!(crate::root().join(part).exists(), "{part} is not there");
        }
        assert!(is_control_plane("crates/recover/src/open/mod.rs"));
        assert!(!is_control_plane("crates/engine/src/opening.rs"));
        assert!(!is_control_plane("crates/plan/src/open/mod.rs"));
    }
}
