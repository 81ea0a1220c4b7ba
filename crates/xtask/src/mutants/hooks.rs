//! Hooks of mutants in the source: each is one statement.
//!
//! Owns: where a hook may be, and its form. Never does: know the table.

use crate::source::Source;
use proc_macro2::{TokenStream, TokenTree};
use syn::StmtMacro;
use syn::visit::{self, Visit};

/// The macros themselves, and their tests.
const HOME: &str = "crates/base/src/mutants/";

/// The path of a write, and the places where edits become part of the tree: only a patch leaves out
/// a statement there.
const WITHOUT: &[&str] = &[
    "crates/store/src/jobs/flush.rs",
    "crates/store/src/jobs/mod.rs",
    "crates/store/src/catalog/mod.rs",
    "crates/store/src/manifest/state.rs",
    "crates/store/src/write/commit.rs",
    "crates/store/src/write/pipeline.rs",
    "crates/store/src/write/queue.rs",
];

/// Returns the mutant of each hook, and the faults of hooks.
pub(super) fn find(sources: &[Source]) -> (Vec<String>, Vec<String>) {
    let (mut hooks, mut findings) = (Vec::new(), Vec::new());
    for source in sources.iter().filter(|source| !source.path.starts_with(HOME)) {
        if !source.text.contains("mutant!") {
            continue;
        }
        let mut statements = Statements::default();
        statements.visit_file(&source.syntax);
        for (name, line) in calls(source.text.parse().unwrap_or_default()) {
            let place = format!("{}:{line}", source.path);
            if !statements.lines.contains(&line) || name != "unless_mutant" {
                findings.push(format!(
                    "{place}: a hook is a statement, `unless_mutant!(Name, statement);`: what \
                     else a mutant changes is a patch (docs/reliability/mutants.md)"
                ));
            } else if WITHOUT.contains(&&*source.path) {
                findings.push(format!("{place}: no hook may be here: make it a patch"));
            }
        }
        hooks.extend(statements.mutants);
    }
    let is_there = |path: &&&str| sources.iter().any(|source| source.path == **path);
    let gone = WITHOUT.iter().filter(|path| !is_there(path));
    findings.extend(gone.map(|path| format!("{path}: is where no hook may be, and not there")));
    (hooks, findings)
}

/// Hooks that are statements.
#[derive(Default)]
struct Statements {
    lines: Vec<usize>,
    mutants: Vec<String>,
}

impl<'ast> Visit<'ast> for Statements {
    fn visit_stmt_macro(&mut self, statement: &'ast StmtMacro) {
        let called = statement.mac.path.segments.last();
        if let Some(called) = called.filter(|name| name.ident == "unless_mutant") {
            let first = statement.mac.tokens.clone().into_iter().next();
            self.mutants.extend(first.map(|name| name.to_string()));
            if statement.semi_token.is_some() {
                self.lines.push(called.ident.span().start().line);
            }
        }
        visit::visit_stmt_macro(self, statement);
    }
}

/// Returns every call of the macros, with its line, also within another macro's arguments.
fn calls(tokens: TokenStream) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match (tree, trees.get(at + 1)) {
            (TokenTree::Group(group), _) => found.extend(calls(group.stream())),
            (TokenTree::Ident(name), Some(TokenTree::Punct(sign)))
                if sign.as_char() == '!' && (name == "mutant" || name == "unless_mutant") =>
            {
                found.push((name.to_string(), name.span().start().line));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, body: &str) -> (Vec<String>, Vec<String>) {
        let mut sources: Vec<Source> =
            WITHOUT.iter().map(|path| Source::parse(path, "").unwrap()).collect();
        let text = format!("fn f() {{\n{body}\n}}");
        sources.retain(|source| source.path != path);
        sources.push(Source::parse(path, &text).unwrap());
        find(&sources)
    }

    #[test]
    fn a_statement_is_a_hook() {
        let (hooks, findings) = found("crates/engine/src/a.rs", "unless_mutant!(One, f()?);\ng();");
        assert_eq!((hooks, findings), (vec!["One".to_owned()], Vec::new()));
    }

    #[test]
    fn what_is_no_statement_is_found() {
        for body in [
            "if a && !mutant!(One) {}",
            "let a = unless_mutant!(One, f());",
            "unless_mutant!(One, f())",
            "unless_mutant!(One,\nif mutant!(Two) { f() });",
            "assert!(mutant!(One));",
        ] {
            let (_, findings) = found("crates/format/src/a.rs", body);
            assert_eq!(findings.len(), 1, "{body}: {findings:?}");
            assert!(findings[0].starts_with("crates/format/src/a.rs:"), "{findings:?}");
        }
        assert!(
            found("crates/engine/src/a.rs", "let a = \"mutant!(One)\"; // mutant!(Two)")
                .1
                .is_empty()
        );
        assert!(found("crates/base/src/mutants/mod.rs", "a(mutant!(One));").1.is_empty());
    }

    #[test]
    fn no_hook_is_in_commit_and_install() {
        let (_, findings) = found("crates/store/src/jobs/mod.rs", "unless_mutant!(One, f()?);");
        assert!(findings[0].contains("jobs/mod.rs:2: no hook may be here"), "{findings:?}");
        let (_, findings) = find(&[]);
        assert_eq!(findings.len(), WITHOUT.len());
    }
}
