//! How many assertions there are for each function, by crate and folder, and which
//! invariants and rules are checked where.
//!
//! Owns: what counts as an assertion (macros that fail in every build or in debug
//! builds), and as a name of one (I1 to I10, Q1 to Q4, R1 to R16). Tests, their doubles
//! and model checkers count for nothing. Never does: ask for a number.

use crate::conditions::is_for_tests;
use crate::source::{self, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use syn::visit::{self, Visit};

/// Crates of which each folder is a row.
const LIBRARIES: [&str; 6] = ["base", "env", "format", "plan", "skiplist", "engine"];

const NAMED: [&str; 3] = ["invariant", "check_invariant", "debug_invariant"];

#[derive(Default)]
struct Count {
    functions: usize,
    assertions: usize,
    /// Name of the invariant, and the files that check it.
    named: BTreeMap<String, BTreeSet<String>>,
}

/// Prints a table and the names. Fails nothing: the answer is `true`.
///
/// # Errors
/// If the sources cannot be read.
pub fn print(root: &Path) -> Result<bool, Box<dyn Error>> {
    let mut folders: BTreeMap<String, Count> = BTreeMap::new();
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in source::load(root)? {
        let Some(folder) = folder(&source) else { continue };
        let count = count(&source);
        let row = folders.entry(folder).or_default();
        row.functions += count.functions;
        row.assertions += count.assertions;
        for (name, files) in count.named {
            named.entry(name).or_default().extend(files);
        }
    }
    println!("{:<24} {:>9} {:>10} {:>8}", "folder", "functions", "assertions", "each");
    for (folder, Count { functions, assertions, .. }) in &folders {
        let each = *assertions as f64 / (*functions).max(1) as f64;
        println!("{folder:<24} {functions:>9} {assertions:>10} {each:>8.2}");
    }
    for (name, files) in named {
        println!("{name}: {}", files.into_iter().collect::<Vec<_>>().join(" "));
    }
    Ok(true)
}

/// `engine/write`, or `engine` for what is in no folder; `None` for what is no part of
/// a library.
fn folder(source: &Source) -> Option<String> {
    let name = source.crate_dir();
    let inner = source.path.strip_prefix(&format!("crates/{name}/src/"))?;
    let folder = inner.rsplit_once('/').map(|(folder, _)| format!("{name}/{folder}"));
    LIBRARIES.contains(&name).then(|| folder.unwrap_or_else(|| name.to_owned()))
}

fn count(source: &Source) -> Count {
    let mut counter = Counter { path: &source.path, count: Count::default() };
    if !source.syntax.attrs.iter().any(is_for_tests) {
        counter.visit_file(&source.syntax);
    }
    counter.count
}

struct Counter<'a> {
    path: &'a str,
    count: Count,
}

impl<'ast> Visit<'ast> for Counter<'_> {
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

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.count.functions += 1;
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !item.attrs.iter().any(is_for_tests) {
            self.count.functions += 1;
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.count.functions += usize::from(item.default.is_some());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let Some(name) = item.path.segments.last().map(|segment| segment.ident.to_string()) else {
            return;
        };
        let is_named = NAMED.contains(&&*name);
        if is_named {
            let tokens = item.tokens.to_string();
            let invariant = tokens.split([',', ' ']).next().unwrap_or_default().to_owned();
            self.count.named.entry(invariant).or_default().insert(self.path.to_owned());
        }
        let asserts = name.starts_with("assert") || name.starts_with("debug_assert");
        self.count.assertions += usize::from(is_named || asserts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_outside_tests_count() {
        let text = "fn a() { assert!(true); invariant!(I2, 1 == 1, \"x\"); }\n\
                    impl T { fn b() { debug_assert_eq!(1, 1); println!(); } }\n\
                    trait U { fn c(); fn d() {} }\n\
                    #[cfg(test)] mod tests { fn e() { assert!(true); } }";
        let source = Source::parse("crates/plan/src/tree/a.rs", text).unwrap();
        let count = count(&source);
        assert_eq!((count.functions, count.assertions), (3, 3));
        assert_eq!(count.named.keys().collect::<Vec<_>>(), ["I2"]);
        assert_eq!(folder(&source).as_deref(), Some("plan/tree"));
    }

    #[test]
    fn only_libraries_have_rows() {
        for path in ["crates/bench/src/a.rs", "crates/engine/tests/a.rs"] {
            assert_eq!(folder(&Source::parse(path, "").unwrap()), None, "{path}");
        }
        let top = Source::parse("crates/engine/src/a.rs", "").unwrap();
        assert_eq!(folder(&top).as_deref(), Some("engine"));
    }
}
