//! The limits of a file's and a function's length: a function fits a screen, a long file holds two
//! nouns.
//!
//! Owns: the limits and the list of exceptions (`allow.txt`), each with its reason. Never does:
//! count lines that a formatter decides (attributes, comments above a function).

use crate::findings::Findings;
use crate::source::{self, Source};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const ALLOW_PATH: &str = "crates/xtask/allow.txt";

/// Finds files and functions over their limit, and exceptions that nothing needs.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    let sources = source::load(root)?;
    let allowed = fs::read_to_string(root.join(ALLOW_PATH))?;
    Ok(judge(&sources, &allowed))
}

fn judge(sources: &[Source], allowed: &str) -> Vec<String> {
    let (mut exceptions, mut findings) = parse_exceptions(allowed);
    let mut found = |place: String, line: usize, what: &str, lines: usize, max: usize| {
        if lines <= max {
            return;
        }
        match exceptions.get_mut(&place) {
            Some(exception) if lines <= exception.limit => exception.needed = true,
            Some(exception) => {
                exception.needed = true;
                findings.push(format!(
                    "{place}: {what} has {lines} lines, over its own limit of {}",
                    exception.limit
                ));
            }
            None => {
                findings.push(format!("{place} (line {line}): {what} has {lines} lines of {max}"))
            }
        }
    };
    for source in sources {
        found(source.path.clone(), 1, "the file", source.text.lines().count(), FILE_LINES_MAX);
        for function in functions(&source.syntax) {
            let place = format!("{}:{}", source.path, function.name);
            found(place, function.line, "the function", function.lines, FUNCTION_LINES_MAX);
        }
    }
    let stale = exceptions.iter().filter(|(_, exception)| !exception.needed);
    findings
        .extend(stale.map(|(place, _)| format!("{ALLOW_PATH}: {place} is not needed any more")));
    findings
}

struct Exception {
    limit: usize,
    needed: bool,
}

/// Parses lines of `path[:function] limit reason`; `#` begins a comment.
fn parse_exceptions(text: &str) -> (BTreeMap<String, Exception>, Vec<String>) {
    let mut exceptions = BTreeMap::new();
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let (place, limit) = (words.next(), words.next().and_then(|l| l.parse().ok()));
        match (place, limit) {
            (Some(place), Some(limit)) if words.next().is_some() => {
                exceptions.insert(place.to_owned(), Exception { limit, needed: false });
            }
            _ => {
                findings.push(format!("{ALLOW_PATH}:{number}: not `path[:function] limit reason`"))
            }
        }
    }
    (exceptions, findings)
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// Returns every function with a body, also within functions, impls and modules.
fn functions(file: &syn::File) -> Vec<Function> {
    struct Finder(Vec<Function>);

    impl Finder {
        fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let line = signature.fn_token.span.start().line;
            let end = block.brace_token.span.close().end().line;
            self.0.push(Function {
                name: signature.ident.to_string(),
                line,
                lines: end - line + 1,
            });
        }
    }

    impl<'a> Visit<'a> for Finder {
        fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
            self.add(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
            self.add(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
        fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
            if let Some(block) = &item.default {
                self.add(&item.sig, block);
            }
            visit::visit_trait_item_fn(self, item);
        }
    }

    let mut finder = Finder(Vec::new());
    finder.visit_file(file);
    finder.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        let body = "    // { \" not code\n".repeat(lines - 2);
        format!("/// Doc.\n#[inline]\nfn {name}() {{\n{body}}}\n")
    }

    fn judged(text: &str, allowed: &str) -> Vec<String> {
        judge(&[Source::parse("crates/a/src/b.rs", text).unwrap()], allowed)
    }

    #[test]
    fn a_function_of_seventy_lines_fits() {
        assert!(judged(&function("fits", 70), "").is_empty());
        let found = judged(&function("long", 71), "");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("b.rs:long (line 3)") && found[0].contains("71 lines"));
    }

    #[test]
    fn methods_and_inner_functions_count() {
        let long = function("deep", 80);
        for text in [
            format!("mod m {{ impl T {{\n{long}}} }}"),
            format!("trait T {{\n{long}}}"),
            format!("fn outer() {{ let f = || {{\n{long}}}; }}"),
        ] {
            assert!(judged(&text, "").iter().any(|f| f.contains(":deep")), "{text}");
        }
    }

    #[test]
    fn a_file_of_eight_hundred_lines_fits() {
        assert!(judged(&"// x\n".repeat(800), "").is_empty());
        assert!(judged(&"// x\n".repeat(801), "")[0].contains("801 lines"));
    }

    #[test]
    fn exceptions_hold_up_to_their_limit_and_go_when_unused() {
        let text = function("long", 90);
        let allow = "# why\ncrates/a/src/b.rs:long 90 one table\n";
        assert!(judged(&text, allow).is_empty());
        assert!(judged(&text, "crates/a/src/b.rs:long 80 x")[0].contains("own limit of 80"));
        assert!(judged("fn a() {}", allow)[0].contains("not needed any more"));
        assert!(judged("fn a() {}", "crates/a/src/b.rs:long 90")[0].contains("allow.txt:1"));
    }
}
