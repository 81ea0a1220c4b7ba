//! The names that are bound at a line of a function, with the known part of their types.
//!
//! Owns: scopes. Never does: look names up outside of the function.

use super::types::Ty;
use std::collections::HashMap;

/// Nested scopes of bound names, and of `use`s within a function.
#[derive(Default)]
pub(super) struct Locals {
    scopes: Vec<Scope>,
}

#[derive(Default)]
struct Scope {
    bound: HashMap<String, Option<Ty>>,
    imports: HashMap<String, Vec<String>>,
}

impl Locals {
    pub(super) fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn bind(&mut self, name: String, ty: Option<Ty>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.bound.insert(name, ty);
        }
    }

    pub(super) fn import(&mut self, name: String, path: Vec<String>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.imports.insert(name, path);
        }
    }

    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.bound.contains_key(name))
    }

    /// Returns the type of a bound name, where it is known.
    pub(super) fn ty(&self, name: &str) -> Option<&Ty> {
        self.scopes.iter().rev().find_map(|scope| scope.bound.get(name))?.as_ref()
    }

    /// Returns the path that a `use` within the function gave this name to.
    pub(super) fn imported(&self, name: &str) -> Option<&Vec<String>> {
        self.scopes.iter().rev().find_map(|scope| scope.imports.get(name))
    }
}
