//! Statics that another thread can have locked while the process forks.
//!
//! A child made by `fork` has one thread. A lock that another thread held at that moment stays
//! locked in the child, and a value that it was filling stays half filled. A database that the
//! child opens then waits for ever, in a place that no test reaches twice. So a library's static is
//! constant, or an atomic.
//!
//! Owns: the list of types that wait, and of the one static that may (locked across a fork on
//! purpose). Never does: look into other crates.

use crate::conditions::is_for_tests;
use crate::findings::Findings;
use crate::source::{self, Source};
use std::path::Path;
use syn::visit::{self, Visit};

/// The crates that a database consists of, without external dependencies.
const LIBRARIES: [&str; 9] =
    ["base", "env", "format", "plan", "skiplist", "read", "store", "recover", "engine"];

const TYPES_THAT_WAIT: [&str; 7] =
    ["LazyLock", "OnceLock", "Once", "Mutex", "RwLock", "Condvar", "Barrier"];

/// Files whose static may wait, since it is locked before a fork and released after it.
const HELD_ACROSS_FORK: [&str; 1] = ["crates/env/src/os/lock_register.rs"];

/// Finds such statics in the whole workspace.
///
/// # Errors
/// If the sources cannot be read.
pub fn check(root: &Path) -> Findings {
    Ok(source::load(root)?.iter().flat_map(findings).collect())
}

fn findings(source: &Source) -> Vec<String> {
    let is_library = LIBRARIES.contains(&source.crate_dir())
        && source.path.starts_with(&format!("crates/{}/src/", source.crate_dir()));
    if !is_library || HELD_ACROSS_FORK.contains(&&*source.path) {
        return Vec::new();
    }
    let mut statics = Statics { path: &source.path, findings: Vec::new() };
    statics.visit_file(&source.syntax);
    statics.findings
}

struct Statics<'a> {
    path: &'a str,
    findings: Vec<String>,
}

/// Returns the type's own name: `LazyLock` of `std::sync::LazyLock<Vec<u8>>`.
fn type_name(ty: &syn::Type) -> Option<String> {
    let syn::Type::Path(path) = ty else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

impl<'ast> Visit<'ast> for Statics<'_> {
    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        let waits = type_name(&item.ty).filter(|name| TYPES_THAT_WAIT.contains(&&**name));
        if let Some(name) = waits.filter(|_| !item.attrs.iter().any(is_for_tests)) {
            self.findings.push(format!(
                "{}:{}: static {} is a {name}, which a forked child may find held for ever: \
                 make it constant, or an atomic",
                self.path,
                item.ident.span().start().line,
                item.ident
            ));
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_item_fn(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        findings(&Source::parse(path, text).unwrap())
    }

    #[test]
    fn a_static_that_waits_is_found_wherever_it_is() {
        let text = "static A: std::sync::LazyLock<u8> = x();\n\
                    impl T { fn f() { static B: OnceLock<u8> = y(); } }";
        let found = found("crates/engine/src/a.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/engine/src/a.rs:1: static A is a LazyLock"));
        assert!(found[1].starts_with("crates/engine/src/a.rs:2: static B is a OnceLock"));
    }

    #[test]
    fn what_does_not_wait_or_is_not_in_a_database_is_left_alone() {
        let waits = "static A: Mutex<u8> = Mutex::new(0);";
        let in_tests = format!("#[cfg(test)] mod tests {{ {waits} }}");
        let atomic = "static A: AtomicU64 = AtomicU64::new(0);";
        for (path, text) in [
            ("crates/engine/src/a.rs", atomic),
            ("crates/engine/src/a.rs", &*in_tests),
            ("crates/engine/tests/a.rs", waits),
            ("crates/bench/src/a.rs", waits),
            ("crates/env/src/os/lock_register.rs", waits),
        ] {
            assert_eq!(found(path, text), Vec::<String>::new(), "{path}: {text}");
        }
    }
}
