//! The face: the public names at the root of crate `windrow`, each with a reason to be there.
//!
//! Owns: the comparison with `crates/engine/public.txt`, and the limit on their number. Never does:
//! look into the modules; a module is one name.

use crate::findings::Findings;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::{Attribute, Item, UseTree, Visibility};

/// The list of names: `Name: reason`, one a line, in alphabetical order.
const LIST: &str = "crates/engine/public.txt";
const ROOT: &str = "crates/engine/src/lib.rs";

/// More names than these cannot be taken in by a reader of the first page.
const NAMES_MAX: usize = 45;

/// Finds public names without a reason, and reasons without a name.
///
/// # Errors
/// If the list or the crate's root cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    let list = fs::read_to_string(root.join(LIST)).map_err(|e| format!("{LIST}: {e}"))?;
    let text = fs::read_to_string(root.join(ROOT)).map_err(|e| format!("{ROOT}: {e}"))?;
    let file = syn::parse_file(&text).map_err(|e| format!("{ROOT}: {e}"))?;
    Ok(compare(&list, &public_names(&file.items)))
}

fn compare(list: &str, names: &[String]) -> Vec<String> {
    let mut reasons = BTreeMap::new();
    let mut findings = Vec::new();
    for (line, number) in list.lines().zip(1..) {
        match line.split_once(": ") {
            Some((name, reason)) if !reason.trim().is_empty() => {
                reasons.insert(name, number);
            }
            _ => findings.push(format!("{LIST}:{number}: is not `Name: reason`")),
        }
    }
    for name in names {
        if reasons.remove(&**name).is_none() {
            findings.push(format!(
                "{ROOT}: `{name}` is public: give it a reason in {LIST}, put it into a module, or hide it"
            ));
        }
    }
    for (name, number) in reasons {
        findings.push(format!("{LIST}:{number}: `{name}` is not public any more"));
    }
    if names.len() > NAMES_MAX {
        findings.push(format!(
            "{ROOT}: {} public names; at most {NAMES_MAX} fit on a page",
            names.len()
        ));
    }
    findings
}

/// Returns the names that users of the crate see at its root. Behind the feature `testing` are none.
fn public_names(items: &[Item]) -> Vec<String> {
    let mut names = Vec::new();
    for item in items {
        let (visibility, attributes) = match item {
            Item::Use(item) => (&item.vis, &item.attrs),
            Item::Mod(item) => (&item.vis, &item.attrs),
            _ => continue,
        };
        if !matches!(visibility, Visibility::Public(_)) || attributes.iter().any(is_conditional) {
            continue;
        }
        match item {
            Item::Use(item) => collect(&item.tree, &mut names),
            Item::Mod(item) => names.push(item.ident.to_string()),
            _ => {}
        }
    }
    names.sort();
    names
}

fn is_conditional(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

fn collect(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => collect(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Glob(_) => names.push("*".to_owned()),
        UseTree::Group(group) => group.items.iter().for_each(|item| collect(item, names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        public_names(&syn::parse_file(source).expect("parses").items)
    }

    #[test]
    fn names_of_groups_modules_and_renames_are_found_and_tests_are_not() {
        let source = "pub use a::{B, c::D}; pub use e as f; mod g; pub mod h { pub struct I; } \
                      #[cfg(feature = \"testing\")] pub mod testing; use j::K;";
        assert_eq!(names(source), ["B", "D", "f", "h"]);
    }

    #[test]
    fn a_name_without_a_reason_and_a_reason_without_a_name_are_found() {
        let found = compare("B: the batch\nC: gone\nD:\n", &["B".into(), "E".into()]);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn too_many_names_are_found() {
        let many: Vec<String> = (0..=NAMES_MAX).map(|i| format!("N{i}")).collect();
        let list: String = many.iter().map(|name| format!("{name}: needed\n")).collect();
        assert_eq!(compare(&list, &many).len(), 1);
        assert!(compare(&list, &many[1..]).iter().all(|finding| finding.contains("not public")));
    }
}
