//! The required and the forbidden words of a file: it has a head that says what it is, no `unsafe`
//! outside of the allowed crates, no stubs.
//!
//! Owns: where `unsafe` may be, and that each use names its promise.
//! Never does: judge the promise.

use crate::findings::Findings;
use crate::source::{self, Source};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use std::path::Path;
use syn::visit::{self, Visit};

/// The directories where `unsafe` may be: the arena, the system calls, the C interfaces of a peer
/// that is measured and of stores that are imported from, and our own C and JVM interfaces.
const UNSAFE_HOMES: &[&str] = &[
    "crates/skiplist/src/",
    "crates/env/src/sys/",
    "crates/bench-peers/src/leveldb/",
    "crates/capi/src/",
    "crates/jvm/src/",
    "crates/import/src/",
];

/// Crates that must be unable to do I/O or find a clock.
const NO_STD_CRATES: &[&str] = &["base", "plan"];

/// Lines above an `unsafe` in which its SAFETY comment must begin: room for a
/// long comment and a statement that begins before the keyword.
const SAFETY_LINES: usize = 12;

/// Macros that mark missing code, or that were left from debugging.
const STUBS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Finds files without a head, `unsafe` where it may not be or without its
/// comment, and stubs.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    Ok(source::load(root)?.iter().flat_map(judge).collect())
}

fn judge(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(format!("{}:1: does not open with `//!`", source.path));
    }
    let is_crate_root = source.path.ends_with("/src/lib.rs");
    if is_crate_root
        && NO_STD_CRATES.contains(&source.crate_dir())
        && !source.text.contains("#![no_std]")
    {
        findings.push(format!("{}:1: must be `#![no_std]`", source.path));
    }
    let mut finder = Finder::default();
    finder.visit_file(&source.syntax);
    for (span, macro_name) in finder.stubs {
        let line = span.start().line;
        findings.push(format!("{}:{line}: `{macro_name}!` is not for keeping", source.path));
    }
    let at_home = UNSAFE_HOMES.iter().any(|home| source.path.starts_with(home));
    let lines: Vec<&str> = source.text.lines().collect();
    for (span, needs_comment) in finder.uses {
        let line = span.start().line;
        if !at_home {
            findings.push(format!(
                "{}:{line}: `unsafe` may only be in {}",
                source.path,
                UNSAFE_HOMES.join(" and ")
            ));
        } else if needs_comment && !is_explained(&lines, line) {
            findings.push(format!("{}:{line}: `unsafe` without a SAFETY: comment", source.path));
        }
    }
    findings
}

/// Whether a comment on `line` (from 1) or close above it says `SAFETY:`, or a
/// doc comment has a `# Safety` section.
fn is_explained(lines: &[&str], line: usize) -> bool {
    let begin = line.saturating_sub(1 + SAFETY_LINES);
    lines[begin..line].iter().any(|text| {
        let comment = text.split_once("//").map_or("", |(_, comment)| comment);
        comment.contains("SAFETY:") || comment.contains("# Safety")
    })
}

#[derive(Default)]
struct Finder {
    /// Each `unsafe`, or permission for it, and whether it needs a comment.
    uses: Vec<(Span, bool)>,
    stubs: Vec<(Span, String)>,
}

impl Finder {
    /// Finds `unsafe` within the arguments of a macro, which are not parsed.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "unsafe" => {
                    self.uses.push((ident.span(), true));
                }
                _ => {}
            }
        }
    }
}

fn any_ident(tokens: TokenStream, wanted: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => any_ident(group.stream(), wanted),
        TokenTree::Ident(ident) => ident == wanted,
        _ => false,
    })
}

fn name_of(path: &syn::Path) -> Option<&Ident> {
    path.segments.last().map(|segment| &segment.ident)
}

impl<'a> Visit<'a> for Finder {
    fn visit_expr_unsafe(&mut self, expr: &'a syn::ExprUnsafe) {
        self.uses.push((expr.unsafe_token.span, true));
        visit::visit_expr_unsafe(self, expr);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if let Some(token) = &item.unsafety {
            self.uses.push((token.span, true));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        if let Some(token) = &item.unsafety {
            self.uses.push((token.span, true));
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        if let syn::Safety::Unsafe(token) = &signature.safety {
            self.uses.push((token.span, true));
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_foreign_mod(&mut self, item: &'a syn::ItemForeignMod) {
        if let Some(token) = &item.unsafety {
            self.uses.push((token.span, true));
        }
        visit::visit_item_foreign_mod(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            let allows = list.path.is_ident("allow") || list.path.is_ident("expect");
            if allows && any_ident(list.tokens.clone(), "unsafe_code") {
                self.uses.push((attribute.pound_token.span, false));
            }
        }
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        if let Some(name) = name_of(&call.path)
            && STUBS.iter().any(|stub| name == stub)
        {
            self.stubs.push((name.span(), name.to_string()));
        }
        self.visit_tokens(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        judge(&Source::parse(path, text).unwrap())
    }

    const HOME: &str = "crates/skiplist/src/arena.rs";
    const AWAY: &str = "crates/engine/src/db.rs";

    #[test]
    fn a_file_opens_with_its_head() {
        assert!(judged(AWAY, "//! A.\nfn a() {}").is_empty());
        assert!(judged(AWAY, "// A.\nfn a() {}")[0].contains("db.rs:1:"));
        assert!(judged("crates/plan/src/lib.rs", "//! A.")[0].contains("no_std"));
        assert!(judged("crates/plan/src/lib.rs", "//! A.\n#![no_std]").is_empty());
    }

    #[test]
    fn unsafe_has_two_homes() {
        for code in [
            "fn a() { unsafe { b() } }",
            "unsafe fn a() {}",
            "unsafe impl Send for A {}",
            "fn a() { m!(x, unsafe { b() }) }",
            "#![allow(unsafe_code)]",
            "#[expect(dead_code, unsafe_code, reason = \"x\")] fn a() {}",
            "trait T { unsafe fn a(); }",
        ] {
            let text = format!("//! A.\n{code}\n");
            let away = judged(AWAY, &text);
            assert!(away.len() == 1 && away[0].contains("db.rs:2:"), "{code}: {away:?}");
            let explained = format!("//! A.\n// SAFETY: because.\n{code}\n");
            if !code.starts_with("#!") {
                assert!(judged(HOME, &explained).is_empty(), "{code}");
            }
            let bare = judged(HOME, &text).len();
            assert_eq!(bare, usize::from(!code.contains("unsafe_code")), "{code}");
        }
    }

    #[test]
    fn a_string_that_says_safety_explains_nothing() {
        let text = "//! A.\nfn a() { b(\"SAFETY:\"); unsafe { c() } }";
        assert_eq!(judged(HOME, text).len(), 1);
        assert!(judged(AWAY, "//! unsafe.\n// unsafe\nfn a() { b(\"unsafe\") }").is_empty());
    }

    #[test]
    fn stubs_are_found() {
        for stub in STUBS {
            assert_eq!(judged(AWAY, &format!("//! A.\nfn a() {{ {stub}!() }}")).len(), 1);
        }
    }
}
