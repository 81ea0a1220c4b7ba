//! The names of other files that a module's code uses.
//!
//! Owns: the walk through the code: paths, `use`s, calls of methods, and macros'
//! arguments. Never does: resolve (`tree.rs`, `calls.rs`).

use super::calls::{Place, element, element_last};
use super::graph::Graph;
use super::locals::Locals;
use super::tokens::{expressions, paths, quoted_paths};
use super::tree::{ItemId, ModuleId, Named, Tree, attributes, imports, is_reexport};
use super::types::{Ty, Types, names, parameters};
use crate::conditions::is_for_tests;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Pat};

/// Adds the names of other files that every module of a crate uses.
pub(super) fn collect(tree: &Tree<'_>, types: &Types<'_>, graph: &mut Graph) {
    for (module, code) in tree.modules.iter().enumerate() {
        let (own, locals) = (None, Locals::default());
        let mut walk = Walk { tree, types, module, file: code.file, own, locals, graph };
        code.items.iter().for_each(|item| walk.visit_item(item));
    }
}

struct Walk<'t, 'a> {
    tree: &'t Tree<'a>,
    types: &'t Types<'a>,
    module: ModuleId,
    file: &'t str,
    /// The type of the enclosing `impl` or trait.
    own: Option<Ty>,
    locals: Locals,
    graph: &'t mut Graph,
}

impl<'a> Walk<'_, 'a> {
    fn place(&self) -> Place<'_, 'a> {
        Place {
            tree: self.tree,
            types: self.types,
            module: self.module,
            own: self.own.as_ref(),
            locals: &self.locals,
        }
    }

    /// Adds the names of a path: the item, and the method of it that the path ends in.
    fn name(&mut self, path: &[String], line: usize) {
        if let [own, method, ..] = path
            && own == "Self"
        {
            if let Some(item) = self.own.as_ref().and_then(Ty::item).cloned() {
                self.call(&item, method, line);
            }
            return;
        }
        for (named, rest) in self.place().resolve(path) {
            let Named::Item(item) = named else { continue };
            self.graph.add(self.file, self.tree.file(&item), item.name.clone(), line);
            if let Some(method) = path[path.len() - rest..].first() {
                self.call(&item, method, line);
            }
        }
    }

    fn call(&mut self, item: &ItemId, method: &str, line: usize) {
        if let Some((function, owner)) = self.types.method(self.tree, item, method) {
            let file = self.tree.modules[function.module].file;
            self.graph.add(self.file, file, format!("{}::{method}", owner.name), line);
        }
    }

    /// Binds the names of a pattern.
    fn bind(&mut self, pattern: &Pat, ty: Option<Ty>) {
        match pattern {
            Pat::Ident(ident) if !is_constant(&ident.ident) => {
                self.locals.bind(ident.ident.to_string(), ty);
                if let Some((_, inner)) = &ident.subpat {
                    self.bind(inner, None);
                }
            }
            Pat::Type(typed) => {
                let ty = self.types.read(self.tree, self.module, &typed.ty, self.own.as_ref());
                self.bind(&typed.pat, Some(ty));
            }
            Pat::Reference(inner) => self.bind(&inner.pat, ty),
            Pat::Paren(inner) => self.bind(&inner.pat, ty),
            Pat::Tuple(tuple) => {
                let args = ty.map_or(Vec::new(), |ty| ty.args);
                let fits = args.len() == tuple.elems.len();
                for (place, inner) in tuple.elems.iter().enumerate() {
                    self.bind(inner, args.get(place).filter(|_| fits).cloned());
                }
            }
            Pat::TupleStruct(tuple) => {
                let passes = tuple.path.is_ident("Some") || tuple.path.is_ident("Ok");
                let inner = ty.filter(|_| passes);
                let inner = inner.and_then(|ty| element(&ty, &["Option", "Result"]));
                for (place, elem) in tuple.elems.iter().enumerate() {
                    let field = || self.place().field_of(&tuple.path, &place.to_string());
                    let ty = inner.clone().or_else(field);
                    self.bind(elem, ty);
                }
            }
            Pat::Struct(literal) => {
                for field in &literal.fields {
                    let syn::Member::Named(name) = &field.member else { continue };
                    let ty = self.place().field_of(&literal.path, &name.to_string());
                    self.bind(&field.pat, ty);
                }
            }
            Pat::Or(or) => or.cases.iter().for_each(|case| self.bind(case, ty.clone())),
            Pat::Slice(slice) => {
                let each = ty.and_then(|ty| element_last(&ty));
                slice.elems.iter().for_each(|elem| self.bind(elem, each.clone()));
            }
            _ => {}
        }
    }

    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) {
        self.locals.open();
        inside(self);
        self.locals.close();
    }

    fn function(&mut self, signature: &syn::Signature, block: Option<&syn::Block>) {
        self.visit_signature(signature);
        self.scoped(|walk| {
            for (pattern, ty) in parameters(signature) {
                let ty = walk.types.read(walk.tree, walk.module, ty, walk.own.as_ref());
                walk.bind(pattern, Some(ty));
            }
            block.into_iter().for_each(|block| walk.visit_block(block));
        });
    }

    fn with_own(&mut self, own: Option<Ty>, inside: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.own, own);
        inside(self);
        self.own = outer;
    }
}

/// Whether a name in a pattern is matched and not bound.
fn is_constant(name: &syn::Ident) -> bool {
    name.to_string().starts_with(|c: char| c.is_uppercase())
}

fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(is_for_tests)
}

impl<'ast> Visit<'ast> for Walk<'_, '_> {
    /// Serde calls functions by the paths that its attributes hold in quotes.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let syn::Meta::List(list) = &attribute.meta else { return };
        if list.path.is_ident("serde") {
            for (path, line) in quoted_paths(&list.tokens) {
                self.name(&path, line);
            }
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
    /// Each module has a walk of its own.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for import in imports(item) {
            if !is_reexport(item) && !import.glob {
                self.name(&import.path, import.line);
            }
            // At a module's head this does nothing: no scope is open.
            if let Some(name) = import.name {
                self.locals.import(name, import.path);
            }
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, Some(&item.block));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let own = self.types.read(self.tree, self.module, &item.self_ty, None);
        self.with_own(Some(own), |walk| visit::visit_item_impl(walk, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let id = ItemId { module: self.module, name: item.ident.to_string() };
        self.with_own(Some(Ty::of(id)), |walk| visit::visit_item_trait(walk, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !for_tests(&item.attrs) {
            self.function(&item.sig, Some(&item.block));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if !for_tests(&item.attrs) {
            self.function(&item.sig, item.default.as_ref());
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.scoped(|walk| visit::visit_block(walk, block));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if for_tests(&local.attrs) {
            return;
        }
        visit::visit_local(self, local);
        let ty = local.init.as_ref().and_then(|init| self.place().ty(&init.expr));
        self.bind(&local.pat, ty);
    }

    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        if !for_tests(&block.attrs) {
            visit::visit_expr_block(self, block);
        }
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.scoped(|walk| {
            walk.visit_expr(&expr.cond);
            walk.visit_block(&expr.then_branch);
        });
        if let Some((_, other)) = &expr.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.scoped(|walk| visit::visit_expr_while(walk, expr));
    }

    fn visit_expr_let(&mut self, expr: &'ast syn::ExprLet) {
        visit::visit_expr_let(self, expr);
        let ty = self.place().ty(&expr.expr);
        self.bind(&expr.pat, ty);
    }

    fn visit_expr_for_loop(&mut self, expr: &'ast syn::ExprForLoop) {
        self.visit_expr(&expr.expr);
        let each = self.place().ty(&expr.expr).and_then(|ty| element_last(&ty));
        self.scoped(|walk| {
            walk.visit_pat(&expr.pat);
            walk.bind(&expr.pat, each);
            walk.visit_block(&expr.body);
        });
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.visit_expr(&expr.expr);
        let ty = self.place().ty(&expr.expr);
        for arm in expr.arms.iter().filter(|arm| !for_tests(&arm.attrs)) {
            self.scoped(|walk| {
                walk.bind(&arm.pat, ty.clone());
                walk.visit_arm(arm);
            });
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.scoped(|walk| {
            closure.inputs.iter().for_each(|input| walk.bind(input, None));
            visit::visit_expr_closure(walk, closure);
        });
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let receiver = self.place().ty(&call.receiver);
        if let Some(item) = receiver.as_ref().and_then(Ty::item).cloned() {
            let name = call.method.to_string();
            self.call(&item, &name, call.method.span().start().line);
        }
        self.visit_expr(&call.receiver);
        call.turbofish.iter().for_each(|args| self.visit_angle_bracketed_generic_arguments(args));
        let each = receiver
            .and_then(|ty| element(&ty, &["Option", "Result"]).or_else(|| element_last(&ty)));
        for arg in &call.args {
            match (arg, &each) {
                // The closure's argument has the type that the receiver contains.
                (Expr::Closure(closure), Some(each)) if closure.inputs.len() == 1 => {
                    self.scoped(|walk| {
                        walk.bind(&closure.inputs[0], Some(each.clone()));
                        visit::visit_expr_closure(walk, closure);
                    });
                }
                _ => self.visit_expr(arg),
            }
        }
    }

    fn visit_expr_path(&mut self, expr: &'ast syn::ExprPath) {
        let is_local =
            |name: &syn::Ident| self.locals.is_bound(&name.to_string()) || name == "self";
        if !expr.path.get_ident().is_some_and(is_local) {
            visit::visit_expr_path(self, expr);
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if is_constant(&pattern.ident) {
            self.name(&[pattern.ident.to_string()], pattern.ident.span().start().line);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            self.name(&names(path), first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        match expressions(&call.tokens) {
            Some(expressions) => expressions.iter().for_each(|expr| self.visit_expr(expr)),
            None => {
                for (path, line) in paths(&call.tokens) {
                    self.name(&path, line);
                }
            }
        }
    }
}
