//! The names of types within the library: no two types have one.
//!
//! Owns: the comparison, and the names that may be there twice. Never does: look into programs, which
//! each have a `Plan` or a `Case` of their own.

use crate::assertions::{is_within, test_modules};
use crate::conditions::is_for_tests;
use crate::findings::Findings;
use crate::source::{self, Source};
use std::collections::BTreeMap;
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident};

/// The crates that a database consists of, and the one that plays its policies.
const LIBRARIES: [&str; 10] =
    ["base", "env", "format", "plan", "skiplist", "read", "store", "recover", "engine", "lab"];

/// Names of two definitions of one type: with the checks of a model checker or of debug builds, and without.
const OF_ONE_TYPE: [&str; 6] = ["Condvar", "Holding", "Kept", "Mutex", "MutexGuard", "Payload"];

/// Finds types whose name another one has.
///
/// # Errors
/// If the sources cannot be read.
pub fn check(root: &Path) -> Findings {
    Ok(findings(&source::load(root)?))
}

fn findings(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let for_tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    for source in sources {
        let dir = source.crate_dir();
        let is_library = source.path.starts_with(&format!("crates/{dir}/src/"));
        let is_library = is_library && !is_within(&source.path, &for_tests);
        if is_library && LIBRARIES.contains(&dir) {
            Types { path: &source.path, places: &mut places }.visit_file(&source.syntax);
        }
    }
    places.retain(|name, places| places.len() > 1 && !OF_ONE_TYPE.contains(&&**name));
    let of = |(name, places): (&String, &Vec<String>)| {
        let others = places[1..].join(", ");
        format!("{}: `{name}` is also the name of a type in {others}: rename one", places[0])
    };
    places.iter().map(of).collect()
}

struct Types<'a> {
    path: &'a str,
    places: &'a mut BTreeMap<String, Vec<String>>,
}

impl Types<'_> {
    fn add(&mut self, name: &Ident, attributes: &[Attribute]) {
        if !attributes.iter().any(is_for_tests) {
            let place = format!("{}:{}", self.path, name.span().start().line);
            self.places.entry(name.to_string()).or_default().push(place);
        }
    }
}

impl<'ast> Visit<'ast> for Types<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident, &item.attrs);
    }

    /// Types of tests may have any name.
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_types_of_one_name_are_found_outside_of_tests() {
        let source = |path: &str, text: &str| Source::parse(path, text).unwrap();
        let sources = [
            source("crates/plan/src/a.rs", "struct Place;\nenum Job {}\n"),
            source("crates/store/src/b.rs", "pub trait Place {}\n#[cfg(test)]\nstruct Job;\n"),
            source("crates/store/src/c.rs", "#[cfg(test)]\nmod tests { struct Job; }\n"),
            source("crates/sim/src/d.rs", "struct Job;\n"),
        ];
        let found = findings(&sources);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/plan/src/a.rs:1: `Place`"), "{found:?}");
        assert!(found[0].contains("crates/store/src/b.rs:1"), "{found:?}");
    }
}
