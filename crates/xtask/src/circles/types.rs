//! The types of a crate as they are written: fields, and methods with the file that they are in.
//!
//! Owns: the reading of a written type without its references and smart pointers.
//! Never does: infer (`calls.rs` follows the simple cases).

use super::tree::{ItemId, ModuleId, Named, Tree, attributes};
use crate::conditions::is_for_tests;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use syn::{
    Fields, FnArg, GenericArgument, ImplItem, Item, PathArguments, ReturnType, Signature,
    TraitItem, Type, TypeParamBound,
};

/// Pointer types that are read as the type that they point to.
const POINTERS: [&str; 6] = ["Arc", "Box", "Rc", "Guard", "MutexGuard", "Ref"];

/// The most steps of `Deref` that are followed.
const DEREFS_MAX: usize = 4;

/// The name of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// One of the crate's own types.
    Item(ItemId),
    /// The last name of any other type.
    Other(String),
}

/// A type, without references and smart pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ty {
    pub(super) head: Head,
    pub(super) args: Vec<Ty>,
}

impl Ty {
    pub(super) fn other(name: &str, args: Vec<Ty>) -> Ty {
        Ty { head: Head::Other(name.to_owned()), args }
    }

    /// Returns a type of the crate, with unknown parameters.
    pub(super) fn of(item: ItemId) -> Ty {
        Ty { head: Head::Item(item), args: Vec::new() }
    }

    pub(super) fn item(&self) -> Option<&ItemId> {
        match &self.head {
            Head::Item(item) => Some(item),
            Head::Other(_) => None,
        }
    }
}

/// A function's module, and its result.
pub(super) struct Function<'a> {
    pub(super) module: ModuleId,
    pub(super) output: Option<&'a Type>,
}

/// A written type, and the module it is written in.
type Written<'a> = (ModuleId, &'a Type);

/// The types of a crate.
#[derive(Default)]
pub(super) struct Types<'a> {
    fields: HashMap<ItemId, HashMap<String, Written<'a>>>,
    aliases: HashMap<ItemId, Written<'a>>,
    /// The target types of `Deref`.
    targets: HashMap<ItemId, Written<'a>>,
    methods: HashMap<(ItemId, String), Vec<Function<'a>>>,
    functions: HashMap<ItemId, Function<'a>>,
    /// The files with each type's own methods.
    homes: BTreeMap<ItemId, BTreeSet<&'a str>>,
}

impl<'a> Types<'a> {
    pub(super) fn of(tree: &Tree<'a>) -> Types<'a> {
        let mut types = Types::default();
        let items = || {
            let modules = tree.modules.iter().enumerate();
            let items = modules.flat_map(|(id, m)| m.items.iter().map(move |item| (id, item)));
            items.filter(|(_, item)| !attributes(item).iter().any(is_for_tests))
        };
        items().for_each(|(module, item)| types.add_item(module, item));
        for (module, item) in items() {
            if let Item::Impl(item) = item {
                types.add_impl(tree, module, item);
            }
        }
        types
    }

    fn add_item(&mut self, module: ModuleId, item: &'a Item) {
        let id = |name: &syn::Ident| ItemId { module, name: name.to_string() };
        match item {
            Item::Struct(item) => {
                self.fields.insert(id(&item.ident), fields(module, &item.fields));
            }
            Item::Enum(item) => {
                for variant in &item.variants {
                    let name = id(&item.ident).variant(&variant.ident.to_string());
                    self.fields.insert(name, fields(module, &variant.fields));
                }
            }
            Item::Type(alias) => {
                self.aliases.insert(id(&alias.ident), (module, &alias.ty));
            }
            Item::Fn(item) => {
                self.functions.insert(id(&item.sig.ident), Function::of(module, &item.sig));
            }
            Item::Trait(item) => {
                for part in &item.items {
                    if let TraitItem::Fn(method) = part {
                        self.add_method(id(&item.ident), module, &method.sig);
                    }
                }
            }
            _ => {}
        }
    }

    fn add_impl(&mut self, tree: &Tree<'a>, module: ModuleId, item: &'a syn::ItemImpl) {
        let ty = self.read(tree, module, &item.self_ty, None);
        let Some(id) = ty.item().cloned() else { return };
        let is_deref = item.trait_.as_ref().is_some_and(|(path, _)| ends_in(path, "Deref"));
        for part in &item.items {
            if let (true, ImplItem::Type(target)) = (is_deref, part) {
                self.targets.insert(id.clone(), (module, &target.ty));
            }
            let ImplItem::Fn(method) = part else { continue };
            if method.attrs.iter().any(is_for_tests) {
                continue;
            }
            self.add_method(id.clone(), module, &method.sig);
            if item.trait_.is_none() {
                self.homes.entry(id.clone()).or_default().insert(tree.modules[module].file);
            }
        }
    }

    fn add_method(&mut self, item: ItemId, module: ModuleId, signature: &'a Signature) {
        let methods = self.methods.entry((item, signature.ident.to_string())).or_default();
        methods.push(Function::of(module, signature));
    }

    /// Reads a written type.
    pub(super) fn read(
        &self,
        tree: &Tree<'a>,
        module: ModuleId,
        ty: &Type,
        own: Option<&Ty>,
    ) -> Ty {
        let read = |ty: &Type| self.read(tree, module, ty, own);
        match ty {
            Type::Reference(ty) => read(&ty.elem),
            Type::Ptr(ty) => read(&ty.elem),
            Type::Paren(ty) => read(&ty.elem),
            Type::Group(ty) => read(&ty.elem),
            Type::Slice(ty) => Ty::other("[]", vec![read(&ty.elem)]),
            Type::Array(ty) => Ty::other("[]", vec![read(&ty.elem)]),
            Type::Tuple(ty) => Ty::other("()", ty.elems.iter().map(read).collect()),
            Type::ImplTrait(ty) => self.read_bounds(tree, module, ty.bounds.iter()),
            Type::TraitObject(ty) => self.read_bounds(tree, module, ty.bounds.iter()),
            Type::Path(ty) if ty.qself.is_none() => self.read_path(tree, module, &ty.path, own),
            _ => Ty::other("?", Vec::new()),
        }
    }

    fn read_bounds<'b>(
        &self,
        tree: &Tree<'a>,
        module: ModuleId,
        bounds: impl Iterator<Item = &'b TypeParamBound>,
    ) -> Ty {
        let mut traits = bounds.filter_map(|bound| match bound {
            TypeParamBound::Trait(bound) => Some(&bound.path),
            _ => None,
        });
        let first = traits.next().map(|path| self.read_path(tree, module, path, None));
        first.unwrap_or_else(|| Ty::other("?", Vec::new()))
    }

    fn read_path(
        &self,
        tree: &Tree<'a>,
        module: ModuleId,
        path: &syn::Path,
        own: Option<&Ty>,
    ) -> Ty {
        if let (true, Some(own)) = (path.is_ident("Self"), own) {
            return own.clone();
        }
        let names = names(path);
        let args = match path.segments.last().map(|segment| &segment.arguments) {
            Some(PathArguments::AngleBracketed(written)) => written.args.iter().collect(),
            _ => Vec::new(),
        };
        let types = args.into_iter().filter_map(|arg| match arg {
            GenericArgument::Type(ty) => Some(self.read(tree, module, ty, own)),
            _ => None,
        });
        let args: Vec<Ty> = types.collect();
        let led = tree.resolve(module, &names);
        let item = led.into_iter().find_map(|found| match found {
            (Named::Item(item), 0) => Some(item),
            _ => None,
        });
        let last = names.last().map_or("?", String::as_str);
        match item {
            Some(item) => match self.aliases.get(&item) {
                Some(_) if last == "Result" => Ty::other(last, args),
                Some((module, ty)) => self.read(tree, *module, ty, None),
                None => Ty { head: Head::Item(item), args },
            },
            None if POINTERS.contains(&last) && !args.is_empty() => args[args.len() - 1].clone(),
            None => Ty::other(last, args),
        }
    }

    /// Returns a type, and those that `Deref` leads to from it.
    fn dereferenced(&self, tree: &Tree<'a>, item: &ItemId) -> impl Iterator<Item = ItemId> {
        let next = |item: &ItemId| {
            let (module, ty) = self.targets.get(item)?;
            self.read(tree, *module, ty, None).item().cloned()
        };
        std::iter::successors(Some(item.clone()), next).take(DEREFS_MAX)
    }

    /// Returns the type of a field of a struct or variant.
    pub(super) fn field(&self, tree: &Tree<'a>, item: &ItemId, name: &str) -> Option<Ty> {
        let mut types = self.dereferenced(tree, item);
        let (module, ty) = types.find_map(|item| self.fields.get(&item)?.get(name).copied())?;
        Some(self.read(tree, module, ty, None))
    }

    /// Returns the method that a call on a type runs, and the type that has it, if only one has
    /// that name.
    pub(super) fn method(
        &self,
        tree: &Tree<'a>,
        item: &ItemId,
        name: &str,
    ) -> Option<(&Function<'a>, ItemId)> {
        let found = self.dereferenced(tree, item).find_map(|item| {
            let methods = self.methods.get(&(item.clone(), name.to_owned()))?;
            Some((methods, item))
        });
        match found? {
            (methods, item) if methods.len() == 1 => Some((&methods[0], item)),
            _ => None,
        }
    }

    /// Returns a function outside of any type.
    pub(super) fn function(&self, item: &ItemId) -> Option<&Function<'a>> {
        self.functions.get(item)
    }

    /// Whether it is a struct, whose name is also a constructor.
    pub(super) fn is_struct(&self, item: &ItemId) -> bool {
        self.fields.contains_key(item)
    }

    /// Returns the types whose own methods are in more than two files: name and files.
    pub(super) fn spread(&self) -> impl Iterator<Item = (&str, Vec<&'a str>)> {
        let spread = self.homes.iter().filter(|(_, files)| files.len() > 2);
        spread.map(|(item, files)| (item.name.as_str(), files.iter().copied().collect()))
    }
}

impl<'a> Function<'a> {
    fn of(module: ModuleId, signature: &'a Signature) -> Function<'a> {
        let output = match &signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(&**ty),
        };
        Function { module, output }
    }
}

fn fields(module: ModuleId, fields: &Fields) -> HashMap<String, Written<'_>> {
    let named = fields.iter().enumerate().map(|(place, field)| {
        let name = field.ident.as_ref().map_or(place.to_string(), ToString::to_string);
        (name, (module, &field.ty))
    });
    named.collect()
}

fn ends_in(path: &syn::Path, name: &str) -> bool {
    path.segments.last().is_some_and(|segment| segment.ident == name)
}

/// Returns the names of a path.
pub(super) fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the typed parameters of a function.
pub(super) fn parameters(signature: &Signature) -> impl Iterator<Item = (&syn::Pat, &Type)> {
    signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some((&*typed.pat, &*typed.ty)),
        FnArg::Receiver(_) => None,
    })
}
