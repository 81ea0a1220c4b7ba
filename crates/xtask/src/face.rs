//! The face: the public names at the root of crate `windrow`, each with a reason to be there, and
//! the methods of a database that hide one of its default keyspace, to which it derefs.
//!
//! Owns: the comparison with `crates/engine/public.txt`, and the limit on the number of names. Never
//! does: look into the modules; a module is one name.

use crate::findings::Findings;
use crate::source::{self, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::{Attribute, ImplItem, Item, Type, UseTree, Visibility};

/// The list of names: `Name: reason`, one a line, in alphabetical order. `Db::method: reason` is a
/// method that a keyspace has as well.
const LIST: &str = "crates/engine/public.txt";
const ROOT: &str = "crates/engine/src/lib.rs";

/// More names than these cannot be taken in by a reader of the first page.
const NAMES_MAX: usize = 45;

const DB: &str = "Db";
const KEYSPACE: &str = "Keyspace";

/// Finds public names without a reason, and reasons without a name.
///
/// # Errors
/// If the list or the crate's root cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    let list = fs::read_to_string(root.join(LIST)).map_err(|e| format!("{LIST}: {e}"))?;
    let text = fs::read_to_string(root.join(ROOT)).map_err(|e| format!("{ROOT}: {e}"))?;
    let file = syn::parse_file(&text).map_err(|e| format!("{ROOT}: {e}"))?;
    let mut names = public_names(&file.items);
    names.extend(hiding_methods(&source::load(root)?));
    Ok(compare(&list, &names))
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
        if reasons.remove(&**name).is_some() {
            continue;
        }
        findings.push(match name.strip_prefix("Db::") {
            Some(method) => format!(
                "{ROOT}: `{name}` hides `{KEYSPACE}::{method}`: give a reason in {LIST}, or leave one out"
            ),
            None => format!(
                "{ROOT}: `{name}` is public: give it a reason in {LIST}, put it into a module, or hide it"
            ),
        });
    }
    for (name, number) in reasons {
        findings.push(format!("{LIST}:{number}: `{name}` is not public any more"));
    }
    let at_root = names.iter().filter(|name| !name.contains("::")).count();
    if at_root > NAMES_MAX {
        findings.push(format!("{ROOT}: {at_root} public names; at most {NAMES_MAX} fit on a page"));
    }
    findings
}

/// Returns the methods that a database and a keyspace have both. A call on a database means the
/// database's, without a word of the compiler.
fn hiding_methods(sources: &[Source]) -> Vec<String> {
    let (of_db, of_keyspace) = (methods(sources, DB), methods(sources, KEYSPACE));
    of_db.intersection(&of_keyspace).map(|method| format!("{DB}::{method}")).collect()
}

/// Returns the public methods of a type of the crate, without those of traits.
fn methods(sources: &[Source], name: &str) -> BTreeSet<String> {
    let of_crate = sources.iter().filter(|source| source.path.starts_with("crates/engine/src/"));
    let blocks = of_crate.flat_map(|source| &source.syntax.items).filter_map(|item| {
        let Item::Impl(block) = item else { return None };
        let is_of_type = matches!(&*block.self_ty, Type::Path(ty) if ty.path.is_ident(name));
        (block.trait_.is_none() && is_of_type).then_some(&block.items)
    });
    let method = |item: &ImplItem| match item {
        ImplItem::Fn(item) if item.sig.receiver().is_some() => {
            matches!(item.vis, Visibility::Public(_)).then(|| item.sig.ident.to_string())
        }
        _ => None,
    };
    blocks.flatten().filter_map(method).collect()
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
    fn a_method_that_hides_another_is_found() {
        let file = |path, text| Source::parse(path, text).expect("parses");
        let sources = [
            file(
                "crates/engine/src/a.rs",
                "impl Db { pub fn flush(&self) {} pub fn open() {} fn over(&self) {} \
                 pub fn close(&self) {} } impl Clone for Db { fn clone(&self) -> Db {} }",
            ),
            file(
                "crates/engine/src/b.rs",
                "impl Keyspace { pub fn flush(&self) {} pub fn open() {} pub fn over(&self) {} } \
                 impl Clone for Keyspace { fn clone(&self) -> Keyspace {} }",
            ),
            file("crates/cli/src/c.rs", "impl Keyspace { pub fn close(&self) {} }"),
        ];
        let hiding = hiding_methods(&sources);
        assert_eq!(hiding, ["Db::flush"]);
        assert!(compare("", &hiding)[0].contains("`Keyspace::flush`"));
        assert!(compare("Db::flush: of all keyspaces\n", &hiding).is_empty());
    }

    #[test]
    fn too_many_names_are_found() {
        let many: Vec<String> = (0..=NAMES_MAX).map(|i| format!("N{i}")).collect();
        let list: String = many.iter().map(|name| format!("{name}: needed\n")).collect();
        assert_eq!(compare(&list, &many).len(), 1);
        let mut others = many[1..].to_vec();
        others.push("Db::flush".to_owned());
        assert_eq!(
            compare(&(list.clone() + "Db::flush: of all\n"), &others).len(),
            1,
            "N0 is gone"
        );
        assert!(compare(&list, &many[1..]).iter().all(|finding| finding.contains("not public")));
    }
}
