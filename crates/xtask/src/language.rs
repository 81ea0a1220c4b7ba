//! The language of the workspace: it is the field's, as the glossary in `STYLE.md` has it. Words
//! that the project once used in a sense of its own are found in comments, messages, names, pages
//! and names of files.
//!
//! Owns: which files are read, and the text of a finding.
//! Never does: judge a sentence; that remains for its reader.

mod allowed;
mod terms;
mod text;

use crate::findings::Findings;
use allowed::{ALLOWED, Allowed, NOT_YET, NotYet};
use std::error::Error;
use std::fs;
use std::path::Path;
use terms::{Place, TERMS, Term};
use text::Word;

/// Endings of the names of files that are read.
const ENDS: &[&str] = &[".rs", ".md", ".toml", ".txt"];

/// Paths that are not ours, or are data: build output, word lists, inputs for the fuzzer, stored
/// databases.
const NOT_READ: &[&str] = &["target", "crates/cli/data", "crates/sim/corpora", "Cargo.lock"];

/// Finds words that the field does not use, and exceptions that nothing needs.
///
/// # Errors
/// If a directory or file cannot be read.
pub fn check(root: &Path) -> Findings {
    let mut paths = Vec::new();
    collect(root, "", &mut paths)?;
    paths.sort();
    let mut checker = Checker::new(ALLOWED, NOT_YET);
    for path in &paths {
        checker
            .add(path, &fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?);
    }
    Ok(checker.findings())
}

/// Adds the paths of the files to read below `dir`.
fn collect(root: &Path, dir: &str, paths: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(root.join(dir)).map_err(|e| format!("{dir}: {e}"))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        if name.starts_with('.') || NOT_READ.iter().any(|dir| *dir == path || *dir == name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(root, &path, paths)?;
        } else if ENDS.iter().any(|end| name.ends_with(end)) {
            paths.push(path);
        }
    }
    Ok(())
}

struct Checker {
    allowed: &'static [Allowed],
    allowed_used: Vec<bool>,
    not_yet: &'static [NotYet],
    /// By entry and by its term.
    not_yet_used: Vec<Vec<bool>>,
    found: Vec<String>,
}

impl Checker {
    fn new(allowed: &'static [Allowed], not_yet: &'static [NotYet]) -> Checker {
        Checker {
            allowed,
            allowed_used: vec![false; allowed.len()],
            not_yet,
            not_yet_used: not_yet.iter().map(|entry| vec![false; entry.words.len()]).collect(),
            found: Vec::new(),
        }
    }

    /// Reads one file.
    fn add(&mut self, path: &str, content: &str) {
        let mut words = text::of_prose(path, 0);
        words.extend(if path.ends_with(".rs") {
            text::of_rust(content)
        } else {
            text::of_prose(content, 1)
        });
        for at in 0..words.len() {
            for term in TERMS {
                for form in term.forms.iter().filter(|form| is_used(term, form, &words[at..])) {
                    self.judge(path, &words, at, term, form);
                }
            }
        }
    }

    fn judge(&mut self, path: &str, words: &[Word], at: usize, term: &Term, form: &str) {
        for (exception, used) in self.allowed.iter().zip(&mut self.allowed_used) {
            if path.starts_with(exception.path) && is_within(exception.phrase, words, at) {
                *used = true;
                return;
            }
        }
        for (entry, used) in self.not_yet.iter().zip(&mut self.not_yet_used) {
            let known = entry.words.iter().position(|word| *word == term.forms[0]);
            if let Some(known) = known.filter(|_| path.starts_with(entry.path)) {
                used[known] = true;
                return;
            }
        }
        let place = match words[at].line {
            0 => format!("{path}: its name"),
            line => format!("{path}:{line}"),
        };
        self.found.push(format!("{place}: `{form}`; say: {}", term.instead));
    }

    fn findings(self) -> Vec<String> {
        let mut findings = self.found;
        for (exception, _) in
            self.allowed.iter().zip(&self.allowed_used).filter(|(_, used)| !**used)
        {
            findings.push(format!(
                "language/allowed.rs: `{}` in `{}` ({}) is not needed any more",
                exception.phrase, exception.path, exception.why
            ));
        }
        for (entry, used) in self.not_yet.iter().zip(&self.not_yet_used) {
            let unused = entry.words.iter().zip(used).filter(|(_, used)| !**used);
            findings.extend(unused.map(|(word, _)| {
                format!("language/allowed.rs: `{}` is clean of `{word}`: take it off", entry.path)
            }));
        }
        findings
    }
}

/// Whether `words` begins with a form of a term, where the term is looked for.
fn is_used(term: &Term, form: &str, words: &[Word]) -> bool {
    match term.place {
        Place::Anywhere => begins_with(form, words),
        Place::Prose => words[0].prose && words[0].alone && words[0].text == form,
        Place::Names => !words[0].prose && words[0].alone && words[0].text == form,
    }
}

fn begins_with(phrase: &str, words: &[Word]) -> bool {
    let mut wanted = phrase.split(' ');
    let count = wanted.clone().count();
    count <= words.len() && words.iter().take(count).all(|word| wanted.next() == Some(&word.lower))
}

/// Whether a phrase is there with the word `at` in it. An empty one is everywhere.
fn is_within(phrase: &str, words: &[Word], at: usize) -> bool {
    if phrase.is_empty() {
        return true;
    }
    let count = phrase.split(' ').count();
    (at.saturating_sub(count - 1)..=at).any(|from| begins_with(phrase, &words[from..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: &[Allowed] = &[
        Allowed { path: "", phrase: "round trip", why: "" },
        Allowed { path: "crates/b/", phrase: "lanes", why: "" },
    ];
    const LATER: &[NotYet] = &[NotYet { path: "crates/c/", words: &["mend", "latch"] }];

    fn judged(path: &str, text: &str) -> Vec<String> {
        let mut checker = Checker::new(ALLOW, LATER);
        checker.add(path, text);
        checker.found
    }

    #[test]
    fn a_word_is_found_with_its_line_and_what_to_say() {
        let found = judged("crates/a/src/x.rs", "//! A.\nfn is_latched() {}\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/x.rs:2: `latched`; say: background error"));
        for text in ["// Held by lanes", "struct SeqAnew;", "f(\"it trips\")", "// carried\n// out"]
        {
            assert_eq!(judged("crates/a/src/x.rs", text).len(), 1, "{text}");
        }
        assert!(judged("crates/a/src/mend.rs", "")[0].contains("its name"));
        assert!(judged("docs/a.md", "plane, latchet, `Err(x)`, x_err, Held").is_empty());
    }

    #[test]
    fn prose_and_names_are_told_apart() {
        assert_eq!(judged("a.rs", "// both err").len(), 1);
        assert!(judged("a.rs", "let err = x.map_err(f); // Err, err_of").is_empty());
        assert_eq!(judged("a.rs", "struct Held;").len(), 1);
        assert!(judged("a.rs", "// Held open. held").is_empty());
    }

    #[test]
    fn exceptions_hold_where_they_are_for_and_go_when_unused() {
        assert!(judged("a.md", "a round trip").is_empty());
        assert_eq!(judged("a.md", "a trip round").len(), 1);
        assert!(judged("crates/b/x.md", "two lanes").is_empty());
        assert_eq!(judged("crates/c/x.md", "mended lanes").len(), 1);
        let mut checker = Checker::new(ALLOW, LATER);
        checker.add("crates/c/x.md", "a round trip; mend");
        let findings = checker.findings();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("`lanes` in `crates/b/` () is not needed"));
        assert!(findings[1].contains("is clean of `latch`"));
    }
}
