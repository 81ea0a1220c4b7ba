//! The functions with steps: something can go wrong between their first line and their last, so
//! that an assertion has a place there.
//!
//! A function has steps if it branches or loops, or has three statements or more that are not
//! assertions. A function that returns a field, a constant, a literal or another function's result
//! has none. Neither have the methods that a trait of the standard library asks of every type
//! (`Display`, `Default`, `From`, ...). Branches in closures are the function's.
//!
//! Owns: that definition. Never does: count assertions.

use syn::visit::{self, Visit};

/// Traits that print, copy, compare or convert: their methods are boilerplate.
const BOILERPLATE: [&str; 15] = [
    "Display",
    "Debug",
    "Default",
    "From",
    "Clone",
    "Deref",
    "DerefMut",
    "AsRef",
    "Borrow",
    "Hash",
    "PartialEq",
    "Eq",
    "PartialOrd",
    "Ord",
    "Error",
];

/// The number of statements from which on a function has steps without a branch.
const STATEMENTS_MIN: usize = 3;

/// Whether the methods of an `impl` block are those of a standard trait.
pub(crate) fn is_boilerplate(block: &syn::ItemImpl) -> bool {
    let name = block.trait_.as_ref().and_then(|(path, _)| path.segments.last());
    name.is_some_and(|name| BOILERPLATE.contains(&&*name.ident.to_string()))
}

/// Whether a function with this body has steps.
pub(crate) fn has_steps(body: &syn::Block) -> bool {
    let statements = body.stmts.iter().filter(|statement| !is_assertion(statement)).count();
    let mut branches = Branches(false);
    branches.visit_block(body);
    branches.0 || statements >= STATEMENTS_MIN
}

/// Whether a macro's name is that of an assertion.
pub(crate) fn asserts(name: &str) -> bool {
    name.ends_with("invariant") || name.starts_with("assert") || name.starts_with("debug_assert")
}

fn is_assertion(statement: &syn::Stmt) -> bool {
    let syn::Stmt::Macro(statement) = statement else { return false };
    let name = statement.mac.path.segments.last().map(|segment| segment.ident.to_string());
    name.is_some_and(|name| asserts(&name))
}

struct Branches(bool);

impl<'ast> Visit<'ast> for Branches {
    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        use syn::Expr::{ForLoop, If, Loop, Match, While};
        self.0 |= matches!(expr, ForLoop(_) | If(_) | Loop(_) | Match(_) | While(_));
        visit::visit_expr(self, expr);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.0 |= local.init.as_ref().is_some_and(|init| init.diverge.is_some());
        visit::visit_local(self, local);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {
        // An inner function counts for itself.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(body: &str) -> bool {
        has_steps(&syn::parse_str(&format!("{{ {body} }}")).unwrap())
    }

    #[test]
    fn a_branch_a_loop_or_three_statements_are_steps() {
        for body in [
            "if a { 1 } else { 2 }",
            "let Some(a) = b else { return 0 }; a",
            "match a { _ => b }",
            "a.iter().map(|b| if b { 1 } else { 2 }).sum()",
            "let a = b(); let c = d(a); c + a",
            "while a() {}",
        ] {
            assert!(steps(body), "{body}");
        }
    }

    #[test]
    fn what_only_gives_or_asserts_has_none() {
        for body in [
            "self.count",
            "let a = b(); a.c()",
            "assert!(a); invariant!(I1, a, \"b\"); debug_invariant!(I1, a, \"b\"); self.a",
            "fn inner() { if a { b() } } inner()",
        ] {
            assert!(!steps(body), "{body}");
        }
    }

    #[test]
    fn standard_traits_ask_for_boilerplate() {
        let is = |text: &str| is_boilerplate(&syn::parse_str(text).unwrap());
        assert!(is("impl fmt::Display for A {}") && is("impl From<B> for A {}"));
        assert!(!is("impl A {}") && !is("impl Drop for A {}") && !is("impl Iterator for A {}"));
    }
}
