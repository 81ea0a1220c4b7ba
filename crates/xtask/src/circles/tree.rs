//! The modules of one crate, and the names that each of them has.
//!
//! Owns: the file of each module, and the resolution of a path of names through imports, re-exports
//! and globs. Never does: look into functions.

use crate::conditions::{is_for_tests, is_for_unit_tests};
use crate::source::Source;
use std::collections::{HashMap, HashSet};
use syn::{Attribute, Item, UseTree, Visibility};

/// A module, by its place in [`Tree::modules`]. The crate's root is 0.
pub(super) type ModuleId = usize;

/// An item: the module that defines it, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ItemId {
    pub(super) module: ModuleId,
    pub(super) name: String,
}

impl ItemId {
    /// Returns one of its variants, if it is an enum.
    pub(super) fn variant(&self, name: &str) -> ItemId {
        ItemId { module: self.module, name: format!("{}::{name}", self.name) }
    }
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Module(ModuleId),
    Item(ItemId),
}

/// The target of a path, and how many of the path's last names are within it (a variant, a method).
pub(super) type Found = (Named, usize);

/// One `use`d name.
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// Its local name; `None` for `*` and `_`.
    pub(super) name: Option<String>,
    pub(super) glob: bool,
    pub(super) line: usize,
}

enum Entry {
    Module(ModuleId),
    Item(ModuleId),
    Import(Vec<String>),
}

/// A module: a file, or an inline module in one.
pub(super) struct Module<'a> {
    /// Its file's path.
    pub(super) file: &'a str,
    pub(super) items: &'a [Item],
    parent: ModuleId,
    names: HashMap<String, Vec<Entry>>,
    globs: Vec<Vec<String>>,
}

/// All modules of a crate except unit tests.
pub(super) struct Tree<'a> {
    pub(super) modules: Vec<Module<'a>>,
    files: &'a HashMap<&'a str, &'a Source>,
}

impl<'a> Tree<'a> {
    /// Builds the tree of the modules below a crate's root file.
    pub(super) fn of(root: &'a Source, files: &'a HashMap<&'a str, &'a Source>) -> Tree<'a> {
        let mut tree = Tree { modules: Vec::new(), files };
        tree.add(&root.path, 0, &root.syntax.items, children_dir(&root.path, true));
        tree
    }

    fn add(&mut self, file: &'a str, parent: ModuleId, items: &'a [Item], dir: String) -> ModuleId {
        let id = self.modules.len();
        let (names, globs) = (HashMap::new(), Vec::new());
        self.modules.push(Module { file, items, parent, names, globs });
        for item in items {
            match item {
                Item::Mod(module) if !module.attrs.iter().any(is_for_unit_tests) => {
                    let name = module.ident.to_string();
                    let below = format!("{dir}/{name}");
                    let child = match &module.content {
                        // Inline doubles and model checkers are left out; a file of them is judged
                        // like any other.
                        Some(_) if module.attrs.iter().any(is_for_tests) => continue,
                        Some((_, items)) => self.add(file, id, items, below),
                        None => match self.file_of(&below) {
                            Some(source) => {
                                let dir = children_dir(&source.path, false);
                                self.add(&source.path, id, &source.syntax.items, dir)
                            }
                            None => continue,
                        },
                    };
                    self.name(id, name, Entry::Module(child));
                }
                Item::Use(item) if !item.attrs.iter().any(is_for_tests) => {
                    for import in imports(item) {
                        match import.name {
                            Some(name) => self.name(id, name, Entry::Import(import.path)),
                            None if import.glob => self.modules[id].globs.push(import.path),
                            None => {}
                        }
                    }
                }
                _ if attributes(item).iter().any(is_for_tests) => {}
                _ => self.define(id, item),
            }
        }
        id
    }

    fn define(&mut self, id: ModuleId, item: &Item) {
        let Some(name) = defined_name(item) else { return };
        self.name(id, name.clone(), Entry::Item(id));
        let exported = |attribute: &Attribute| attribute.path().is_ident("macro_export");
        if id != 0 && matches!(item, Item::Macro(item) if item.attrs.iter().any(exported)) {
            self.name(0, name, Entry::Item(id));
        }
    }

    fn name(&mut self, module: ModuleId, name: String, entry: Entry) {
        self.modules[module].names.entry(name).or_default().push(entry);
    }

    fn file_of(&self, below: &str) -> Option<&'a Source> {
        let paths = [format!("{below}.rs"), format!("{below}/mod.rs")];
        paths.iter().find_map(|path| self.files.get(path.as_str()).copied())
    }

    /// Returns the targets of a path within a module; none, if it leads to another crate.
    pub(super) fn resolve(&self, module: ModuleId, path: &[String]) -> Vec<Found> {
        self.follow(module, path, &mut HashSet::new())
    }

    /// Returns the file that an item is defined in.
    pub(super) fn file(&self, item: &ItemId) -> &'a str {
        self.modules[item.module].file
    }

    fn follow(
        &self,
        module: ModuleId,
        path: &[String],
        visited: &mut HashSet<ItemId>,
    ) -> Vec<Found> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let begin = match first.as_str() {
            "crate" => vec![Named::Module(0)],
            "self" => vec![Named::Module(module)],
            "super" => vec![Named::Module(self.modules[module].parent)],
            name => self.lookup(module, name, visited),
        };
        self.descend(begin, rest, visited)
    }

    /// Follows the rest of a path from the targets of its beginning.
    fn descend(
        &self,
        from: Vec<Named>,
        rest: &[String],
        visited: &mut HashSet<ItemId>,
    ) -> Vec<Found> {
        let Some((next, after)) = rest.split_first() else {
            return from.into_iter().map(|named| (named, 0)).collect();
        };
        let is_module = |named: &Named| matches!(named, Named::Module(_));
        let through_module = from.iter().any(is_module);
        let mut found = Vec::new();
        for named in from {
            match named {
                Named::Module(module) => {
                    let mut names = match next.as_str() {
                        "super" => vec![Named::Module(self.modules[module].parent)],
                        _ => self.lookup(module, next, visited),
                    };
                    if names.is_empty() {
                        // A macro may define it.
                        names.push(Named::Item(ItemId { module, name: next.clone() }));
                    }
                    found.extend(self.descend(names, after, visited));
                }
                Named::Item(_) if through_module => {}
                Named::Item(_) => found.push((named, rest.len())),
            }
        }
        found
    }

    fn lookup(&self, module: ModuleId, name: &str, visited: &mut HashSet<ItemId>) -> Vec<Named> {
        let asked = ItemId { module, name: name.to_owned() };
        if !visited.insert(asked.clone()) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let entries = self.modules[module].names.get(name);
        for entry in entries.into_iter().flatten() {
            match entry {
                Entry::Module(module) => found.push(Named::Module(*module)),
                Entry::Item(home) => {
                    found.push(Named::Item(ItemId { module: *home, name: name.to_owned() }));
                }
                Entry::Import(path) => {
                    let led = self.follow(module, path, visited).into_iter();
                    found.extend(led.map(|(named, _)| named));
                }
            }
        }
        if entries.is_none() {
            for glob in &self.modules[module].globs {
                for (named, _) in self.follow(module, glob, visited) {
                    if let Named::Module(module) = named {
                        found.extend(self.lookup(module, name, visited));
                    }
                }
            }
        }
        visited.remove(&asked);
        found
    }
}

/// Returns the directory of the files of a file's child modules.
fn children_dir(path: &str, is_root: bool) -> String {
    let stem = path.trim_end_matches(".rs");
    let (parent, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    if is_root || name == "mod" { parent.to_owned() } else { stem.to_owned() }
}

/// Returns every name that a `use` imports, those of other crates included.
pub(super) fn imports(item: &syn::ItemUse) -> Vec<Import> {
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        flatten(&item.tree, &mut Vec::new(), &mut found);
    }
    found
}

/// Whether a `use` re-exports its names.
pub(super) fn is_reexport(item: &syn::ItemUse) -> bool {
    !matches!(item.vis, Visibility::Inherited)
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Import>) {
    let mut import = |last: Option<&syn::Ident>, name: Option<&syn::Ident>, line, glob| {
        let mut path = path.clone();
        path.extend(last.filter(|last| *last != "self").map(|last| last.to_string()));
        let name = match name {
            Some(name) if name == "self" => path.last().cloned(),
            name => name.filter(|name| *name != "_").map(|name| name.to_string()),
        };
        found.push(Import { path, name, glob, line });
    };
    match tree {
        UseTree::Name(tree) => {
            let line = tree.ident.span().start().line;
            import(Some(&tree.ident), Some(&tree.ident), line, false);
        }
        UseTree::Rename(tree) => {
            let line = tree.ident.span().start().line;
            import(Some(&tree.ident), Some(&tree.rename), line, false);
        }
        UseTree::Glob(tree) => import(None, None, tree.star_token.spans[0].start().line, true),
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            flatten(&tree.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| flatten(tree, path, found));
        }
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns the attributes of an item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
