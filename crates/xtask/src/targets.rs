//! The coverage of `cargo test`: it must not leave out a test or an example in silence.
//!
//! Owns: the check of the targets that manifests exclude (`test = false`, `doctest = false`), and
//! of files in a directory of tests that no `mod` names. Never does: run a test.

use crate::findings::Findings;
use crate::source::{self, Source};
use crate::supply;
use std::path::Path;

/// Finds tests, examples in documentation, and files of tests that `cargo test` leaves out.
///
/// # Errors
/// If `cargo metadata` fails or a file cannot be read.
pub fn check(root: &Path) -> Findings {
    let sources = source::load(root)?;
    let mut findings: Vec<String> =
        sources.iter().filter_map(|source| unnamed(source, &sources)).collect();
    for package in supply::metadata(root)?.workspace_packages() {
        let Some(dir) = package.manifest_path.parent() else { continue };
        for target in &package.targets {
            let of_target = |source: &&Source| {
                let path = root.join(&source.path);
                match target.is_lib() {
                    true => path.starts_with(dir.join("src")),
                    false => path == target.src_path,
                }
            };
            for source in sources.iter().filter(of_target) {
                if !target.test {
                    findings.extend(tests(source));
                }
                if target.is_lib() && !target.doctest {
                    findings.extend(examples(source));
                }
            }
        }
    }
    Ok(findings)
}

/// Finds a module of `tests/it` that its `main.rs` does not declare.
fn unnamed(source: &Source, all: &[Source]) -> Option<String> {
    let (dir, file) = source.path.rsplit_once('/')?;
    let name = file.strip_suffix(".rs").filter(|name| *name != "main")?;
    let main = all.iter().find(|s| s.path == format!("{dir}/main.rs") && dir.ends_with("tests/it"));
    let is_named = main?.text.lines().any(|line| line == format!("mod {name};"));
    (!is_named).then(|| format!("{}: no `mod {name};` in {dir}/main.rs", source.path))
}

/// Finds tests in a file whose target has `test = false`.
fn tests(source: &Source) -> Option<String> {
    let at = source.text.lines().position(|line| line.trim() == "#[test]")?;
    Some(format!("{}:{}: a test where the manifest has `test = false`", source.path, at + 1))
}

/// Finds examples that are code, in a library with `doctest = false`.
fn examples(source: &Source) -> Vec<String> {
    let mut is_open = false;
    let mut found = Vec::new();
    for (line, text) in (1..).zip(source.text.lines()) {
        let text = text.trim_start();
        let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        let Some(fence) = doc.and_then(|doc| doc.trim().strip_prefix("```")) else { continue };
        if !is_open && fence != "text" {
            let path = &source.path;
            found.push(format!(
                "{path}:{line}: an example where the manifest has `doctest = false`"
            ));
        }
        is_open = !is_open;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    #[test]
    fn a_file_of_tests_that_nobody_names_is_found() {
        let main = source("crates/a/tests/it/main.rs", "mod one;\n");
        let one = source("crates/a/tests/it/one.rs", "");
        let two = source("crates/a/tests/it/two.rs", "");
        let all = [main, one, two];
        let found: Vec<String> = all.iter().filter_map(|source| unnamed(source, &all)).collect();
        assert_eq!(found, ["crates/a/tests/it/two.rs: no `mod two;` in crates/a/tests/it/main.rs"]);
    }

    #[test]
    fn what_a_manifest_takes_out_has_no_tests_and_no_examples() {
        let with = source("a.rs", "mod t {\n    #[test]\n    fn t() {}\n}\n");
        assert!(tests(&with).unwrap().starts_with("a.rs:2: "));
        assert_eq!(tests(&source("a.rs", "fn main() {}")), None);
        let text = source("a.rs", "//! ```text\n//! a\n//! ```\n");
        assert!(examples(&text).is_empty());
        let code =
            source("a.rs", "//! ```text\n//! a\n//! ```\n/// ```\n/// a();\n/// ```\nfn a() {}\n");
        assert_eq!(examples(&code).len(), 1, "{:?}", examples(&code));
        assert!(examples(&code)[0].starts_with("a.rs:4: "));
    }
}
