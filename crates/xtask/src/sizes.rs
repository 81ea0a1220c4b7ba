//! The limits of a crate of the engine: its size, and the number of files next to its folders.
//!
//! The compiler enforces the arrows between crates, but none between the folders of one. So a crate
//! stays small enough to be read as a whole, and a file has a folder.
//!
//! Owns: both limits. Never does: count tests.

use crate::assertions::{is_within, test_modules};
use crate::conditions::is_for_tests;
use crate::findings::Findings;
use crate::source::{self, ENGINE, Source};
use std::path::Path;

/// Lines of a crate, without tests.
const LINES_MAX: usize = 13_000;
/// Files in a crate's `src`, next to its folders.
const FLAT_FILES_MAX: usize = 12;

/// Finds crates of the engine over a limit.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    let sources = source::load(root)?;
    Ok(ENGINE.iter().flat_map(|name| judge(name, &sources)).collect())
}

fn judge(name: &str, sources: &[Source]) -> Vec<String> {
    let tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    let src = format!("crates/{name}/src/");
    let of_crate = |source: &&Source| source.path.starts_with(&src);
    let files: Vec<&Source> =
        sources.iter().filter(of_crate).filter(|file| !is_within(&file.path, &tests)).collect();
    let lines: usize = files.iter().map(|file| lines_without_tests(file)).sum();
    let flat = files.iter().filter(|file| !file.path[src.len()..].contains('/')).count();
    let mut findings = Vec::new();
    if lines > LINES_MAX {
        findings.push(format!("crates/{name}: {lines} lines without tests, of {LINES_MAX}"));
    }
    if flat > FLAT_FILES_MAX {
        findings.push(format!("{src}: {flat} files next to folders, of {FLAT_FILES_MAX}"));
    }
    findings
}

/// Returns the number of a file's lines that are in no module for tests.
fn lines_without_tests(source: &Source) -> usize {
    let of_tests = source.syntax.items.iter().filter_map(|item| {
        let syn::Item::Mod(module) = item else { return None };
        let (brace, _) = module.content.as_ref()?;
        let begin = module.mod_token.span.start().line;
        let lines = brace.span.close().end().line - begin + 1;
        module.attrs.iter().any(is_for_tests).then_some(lines)
    });
    source.text.lines().count() - of_tests.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(count: usize, text: &str) -> Vec<Source> {
        let path = |n| format!("crates/read/src/f{n}.rs");
        (0..count).map(|n| Source::parse(&path(n), text).unwrap()).collect()
    }

    #[test]
    fn twelve_files_next_to_folders_fit() {
        assert!(judge("read", &files(12, "")).is_empty());
        let found = judge("read", &files(13, ""));
        assert!(found.len() == 1 && found[0].contains("13 files"), "{found:?}");
        assert!(judge("store", &files(13, "")).is_empty(), "those are of another crate");
    }

    #[test]
    fn tests_are_no_lines() {
        let line = "// x\n";
        assert!(judge("read", &files(10, &line.repeat(1_300))).is_empty());
        assert!(judge("read", &files(10, &line.repeat(1_301)))[0].contains("13010 lines"));
        let tests =
            format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(1_299), line.repeat(9));
        assert!(judge("read", &files(10, &tests)).is_empty());
    }
}
