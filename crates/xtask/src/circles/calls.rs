//! The type of an expression, where the source text tells it.
//!
//! Owns: parameters, fields, constructors, the declared results of methods and functions, and the
//! few methods of `std` that pass a type through. Never does: infer generics; an unknown type is
//! left out.

use super::locals::Locals;
use super::tree::{ModuleId, Named, Tree};
use super::types::{Function, Head, Ty, Types, names};
use syn::{Expr, Member};

/// Collections and iterators, whose last parameter is the type of their elements.
const MANY: [&str; 11] = [
    "[]",
    "Vec",
    "VecDeque",
    "HashMap",
    "BTreeMap",
    "HashSet",
    "BTreeSet",
    "Iterator",
    "Peekable",
    "IntoIterator",
    "BinaryHeap",
];

/// The context of an expression.
pub(super) struct Place<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    pub(super) types: &'t Types<'a>,
    pub(super) module: ModuleId,
    pub(super) own: Option<&'t Ty>,
    pub(super) locals: &'t Locals,
}

impl<'a> Place<'_, 'a> {
    /// Returns an expression's type.
    pub(super) fn ty(&self, expr: &Expr) -> Option<Ty> {
        match expr {
            Expr::Path(path) => self.ty_of_path(&path.path),
            Expr::Field(field) => {
                let base = self.ty(&field.base)?;
                let name = match &field.member {
                    Member::Named(name) => name.to_string(),
                    Member::Unnamed(place) => place.index.to_string(),
                };
                match &base.head {
                    Head::Item(item) => self.types.field(self.tree, item, &name),
                    Head::Other(head) if head == "()" => {
                        base.args.get(name.parse::<usize>().ok()?).cloned()
                    }
                    Head::Other(_) => None,
                }
            }
            Expr::MethodCall(call) => {
                let receiver = self.ty(&call.receiver)?;
                let name = call.method.to_string();
                match receiver.item().and_then(|item| self.types.method(self.tree, item, &name)) {
                    Some((method, owner)) => self.output(method, Some(&Ty::of(owner))),
                    None => passed_through(&receiver, &name),
                }
            }
            Expr::Call(call) => self.ty_of_call(call),
            Expr::Struct(literal) => self.named(&literal.path),
            Expr::Reference(expr) => self.ty(&expr.expr),
            Expr::Paren(expr) => self.ty(&expr.expr),
            Expr::Group(expr) => self.ty(&expr.expr),
            Expr::Unary(expr) if matches!(expr.op, syn::UnOp::Deref(_)) => self.ty(&expr.expr),
            Expr::Try(expr) => element(&self.ty(&expr.expr)?, &["Option", "Result"]),
            Expr::Index(expr) => element_last(&self.ty(&expr.expr)?),
            Expr::Cast(expr) => Some(self.types.read(self.tree, self.module, &expr.ty, self.own)),
            Expr::Tuple(tuple) => {
                let unknown = || Ty::other("?", Vec::new());
                let each = tuple.elems.iter().map(|expr| self.ty(expr).unwrap_or_else(unknown));
                Some(Ty::other("()", each.collect()))
            }
            _ => None,
        }
    }

    fn ty_of_path(&self, path: &syn::Path) -> Option<Ty> {
        match path.get_ident() {
            Some(name) if name == "self" => self.own.cloned(),
            Some(name) if self.locals.is_bound(&name.to_string()) => {
                self.locals.ty(&name.to_string()).cloned()
            }
            _ => None,
        }
    }

    fn ty_of_call(&self, call: &syn::ExprCall) -> Option<Ty> {
        let Expr::Path(path) = &*call.func else { return None };
        let first = || call.args.first().and_then(|expr| self.ty(expr));
        let names = names(&path.path);
        match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["Some"] => return Some(Ty::other("Option", vec![first()?])),
            ["Ok"] => return Some(Ty::other("Result", vec![first()?])),
            ["Arc" | "Box" | "Rc", "new" | "clone"] => return first(),
            ["Self", method] => {
                let own = self.own?;
                let (method, _) = self.types.method(self.tree, own.item()?, method)?;
                return self.output(method, Some(own));
            }
            ["Self"] => return self.own.cloned(),
            _ => {}
        }
        for (named, rest) in self.resolve(&names) {
            let Named::Item(item) = named else { continue };
            match rest {
                0 => match self.types.function(&item) {
                    Some(function) => return self.output(function, None),
                    None if self.types.is_struct(&item) => {
                        return Some(Ty::of(item));
                    }
                    None => {}
                },
                1 => {
                    if let Some((method, _)) = self.types.method(self.tree, &item, names.last()?) {
                        return self.output(method, Some(&Ty::of(item)));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the type that a path names.
    pub(super) fn named(&self, path: &syn::Path) -> Option<Ty> {
        if path.is_ident("Self") {
            return self.own.cloned();
        }
        self.resolve(&names(path)).into_iter().find_map(|(named, _)| match named {
            Named::Item(item) => Some(Ty::of(item)),
            Named::Module(_) => None,
        })
    }

    /// Returns the type of a field of the struct or variant that a path names.
    pub(super) fn field_of(&self, path: &syn::Path, field: &str) -> Option<Ty> {
        let names = names(path);
        let own = || Some((self.own?.item()?.clone(), names.len() - 1));
        let led = || {
            self.resolve(&names).into_iter().find_map(|(named, rest)| match named {
                Named::Item(item) => Some((item, rest)),
                Named::Module(_) => None,
            })
        };
        let (item, rest) = if names[0] == "Self" { own() } else { led() }?;
        match rest {
            0 => self.types.field(self.tree, &item, field),
            _ => self.types.field(self.tree, &item.variant(names.last()?), field),
        }
    }

    /// Resolves a path; a `use` within the function takes precedence over the module's names.
    pub(super) fn resolve(&self, names: &[String]) -> Vec<(Named, usize)> {
        let Some((first, rest)) = names.split_first() else { return Vec::new() };
        match self.locals.imported(first) {
            Some(path) => self.tree.resolve(self.module, &[path, rest].concat()),
            None => self.tree.resolve(self.module, names),
        }
    }

    fn output(&self, function: &Function<'a>, own: Option<&Ty>) -> Option<Ty> {
        Some(self.types.read(self.tree, function.module, function.output?, own))
    }
}

/// Returns the first parameter of a type that is one of these.
pub(super) fn element(ty: &Ty, heads: &[&str]) -> Option<Ty> {
    match &ty.head {
        Head::Other(head) if heads.contains(&head.as_str()) => ty.args.first().cloned(),
        _ => None,
    }
}

/// Returns the type of a collection's elements.
pub(super) fn element_last(ty: &Ty) -> Option<Ty> {
    match &ty.head {
        Head::Other(head) if MANY.contains(&head.as_str()) => ty.args.last().cloned(),
        _ => None,
    }
}

/// Returns the result of a method of `std`, where that is a parameter of the receiver's type.
fn passed_through(receiver: &Ty, method: &str) -> Option<Ty> {
    let Head::Other(head) = &receiver.head else {
        let same = ["clone", "as_ref", "as_mut", "borrow", "by_ref", "unwrap", "load", "lock"];
        return same.contains(&method).then(|| receiver.clone());
    };
    let inner = receiver.args.first();
    let option = |ty: Option<&Ty>| Some(Ty::other("Option", vec![ty?.clone()]));
    match (head.as_str(), method) {
        (_, "clone" | "as_ref" | "as_mut" | "by_ref" | "as_deref" | "as_deref_mut") => {
            Some(receiver.clone())
        }
        ("Mutex" | "RwLock", "lock" | "read" | "write" | "get_mut" | "into_inner")
        | ("Cell" | "RefCell", "borrow" | "borrow_mut" | "get" | "get_mut" | "into_inner")
        | ("ArcSwap", "load" | "load_full") => inner.cloned(),
        ("ArcSwapOption", "load" | "load_full") => option(inner),
        ("Weak", "upgrade") | ("OnceLock", "get") => option(inner),
        ("Option" | "Result", "unwrap" | "expect" | "unwrap_or" | "unwrap_or_else")
        | ("Option" | "Result", "unwrap_or_default" | "get_or_insert_with") => inner.cloned(),
        ("Option", "ok_or" | "ok_or_else") => Some(Ty::other("Result", vec![inner?.clone()])),
        ("Result", "ok") => option(inner),
        ("Option", "take" | "filter" | "or" | "or_else" | "cloned" | "copied" | "inspect")
        | ("Result", "map_err" | "inspect_err" | "or_else") => Some(receiver.clone()),
        ("Option", "iter" | "into_iter") => Some(Ty::other("Iterator", vec![inner?.clone()])),
        _ => element_last(receiver).and_then(|each| passed_on(each, head, method)),
    }
}

/// Returns the result of a method of a collection or iterator of `each`.
fn passed_on(each: Ty, head: &str, method: &str) -> Option<Ty> {
    match method {
        "get" | "get_mut" | "first" | "last" | "pop" | "pop_front" | "pop_back" | "next"
        | "front" | "back" | "first_mut" | "last_mut" | "find" | "max_by_key" | "min_by_key"
        | "peek" | "nth" | "next_back" => Some(Ty::other("Option", vec![each])),
        "remove" if head == "Vec" => Some(each),
        "remove" => Some(Ty::other("Option", vec![each])),
        "iter" | "iter_mut" | "into_iter" | "values" | "values_mut" | "into_values" | "drain"
        | "filter" | "rev" | "skip" | "take" | "chain" | "cloned" | "copied" | "skip_while"
        | "take_while" | "inspect" | "peekable" | "step_by" => {
            // A map's iterator yields pairs.
            let pairs = head.ends_with("Map") && !method.contains("values");
            (!pairs).then(|| Ty::other("Iterator", vec![each]))
        }
        _ => None,
    }
}
