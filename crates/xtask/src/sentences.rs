//! Sentences of comments and pages: one begins with a thing or a verb, not with a word that stands for
//! a thing which is never named; and a head says what its file owns and never does.
//!
//! Owns: the words and phrases that are refused, and what counts as a sentence. Never does: judge
//! names, strings, code in comments, or help texts that a user sees.

use crate::findings::Findings;
use crate::{links, source};
use std::fs;
use std::path::Path;

/// Words with which no sentence begins, unless it is a question.
const HEADS: &[&str] =
    &["What", "Who", "Whom", "Whose", "Whoever", "Whatever", "That of", "The same"];

/// Phrases that a reader has to resolve: split the sentence, or name the thing.
const PHRASES: &[&str] =
    &["of which", "of whom", "whoever", "so many", "is to be", "are to be", "was to be"];

/// Paths that are not judged, with the reason.
const NOT_JUDGED: &[(&str, &str)] = &[
    ("crates/xtask/src/sentences.rs", "the tables themselves, and their tests"),
    ("crates/cli/src/args", "help texts, which users see, and tests compare"),
    ("crates/cli/src/layout.rs", "help texts"),
    ("crates/cli/src/log.rs", "help texts"),
    ("docs/options.md", "generated from the help texts of settings"),
];

/// Finds refused heads and phrases in comments and pages, and files whose head does not say what
/// they own and never do.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn check(root: &Path) -> Findings {
    let mut findings = Vec::new();
    for source in source::load(root)?.iter().filter(|source| is_judged(&source.path)) {
        findings.extend(sentences(&source.path, &comments(&source.text)));
        findings.extend(head(&source.path, &source.text));
    }
    for page in links::pages(root)? {
        let path = page.to_string_lossy();
        if is_judged(&path) {
            findings.extend(sentences(&path, &prose(&fs::read_to_string(root.join(&page))?)));
        }
    }
    Ok(findings)
}

fn is_judged(path: &str) -> bool {
    !NOT_JUDGED.iter().any(|(begin, _)| path.starts_with(begin))
}

/// A paragraph, with the line at which it begins.
type Paragraph = (usize, String);

/// Collects paragraphs from lines: `None` ends one.
fn paragraphs<'a>(lines: impl Iterator<Item = Option<&'a str>>) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut is_open = false;
    for (line, text) in (1..).zip(lines) {
        match (text, found.last_mut().filter(|_| is_open)) {
            (Some(text), Some((_, paragraph))) => {
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            (Some(text), None) => found.push((line, text.to_owned())),
            (None, _) => {}
        }
        is_open = text.is_some();
    }
    found
}

/// Returns the paragraphs of whole-line comments, without code in them.
fn comments(text: &str) -> Vec<Paragraph> {
    let mut is_code = false;
    paragraphs(text.lines().map(move |line| {
        let comment = line.trim_start().strip_prefix("//");
        let Some(comment) = comment.map(|text| text.trim_start_matches(['/', '!']).trim()) else {
            is_code = false;
            return None;
        };
        plain(comment, &mut is_code)
    }))
}

/// Returns the paragraphs of a page, without code, tables and headings.
fn prose(text: &str) -> Vec<Paragraph> {
    let mut is_code = false;
    paragraphs(text.lines().map(move |line| {
        let is_indented = line.starts_with("    ");
        plain(line.trim(), &mut is_code).filter(|_| !is_indented)
    }))
}

/// Returns a line as a part of a paragraph; `None` where none goes on.
fn plain<'a>(line: &'a str, is_code: &mut bool) -> Option<&'a str> {
    if line.starts_with("```") {
        *is_code = !*is_code;
        return None;
    }
    let is_prose = !*is_code && !line.is_empty() && !line.starts_with(['#', '|', '<']);
    is_prose.then_some(line)
}

fn sentences(path: &str, paragraphs: &[Paragraph]) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, text) in paragraphs {
        let mut refuse = |what: &str| {
            findings
                .push(format!("{path}:{line}: `{what}`: name the thing, or split the sentence"));
        };
        for sentence in split(text) {
            let is_question = sentence.trim_end().ends_with('?');
            let head = HEADS.iter().find(|head| begins_with(sentence, head));
            if let Some(head) = head.filter(|_| !is_question) {
                refuse(head);
            }
        }
        let lower = text.to_lowercase();
        PHRASES.iter().filter(|phrase| has(&lower, phrase)).for_each(|phrase| refuse(phrase));
    }
    findings
}

/// Splits a paragraph where a sentence, a clause or an item of a list ends.
fn split(text: &str) -> Vec<&str> {
    let ends = text.match_indices([' ']).filter(|(at, _)| {
        text[..*at].ends_with(['.', ':', ';', '!', '?']) || text[..*at].ends_with(" -")
    });
    let mut from = 0;
    let mut parts = Vec::new();
    for (at, _) in ends {
        parts.push(text[from..at].trim_start_matches(['-', ' ']));
        from = at + 1;
    }
    parts.push(text[from..].trim_start_matches(['-', '*', ' ']));
    parts
}

fn begins_with(sentence: &str, head: &str) -> bool {
    sentence.strip_prefix(head).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a phrase is in a text as whole words.
fn has(text: &str, phrase: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        let after = text[at + phrase.len()..].chars().next();
        !is_letter(text[..at].chars().next_back()) && !is_letter(after)
    })
}

/// Judges the head of a file of a library or program; tests say what they test.
fn head(path: &str, text: &str) -> Option<String> {
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    if !path.contains("/src/") || is_test {
        return None;
    }
    let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let head = head.join(" ");
    let missing = ["Owns", "Never"].into_iter().find(|word| !has(&head, word))?;
    Some(format!("{path}:1: its head does not say `{missing}`: what it owns, and never does"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        sentences("a.rs", &comments(text)).len()
    }

    #[test]
    fn a_sentence_that_names_nothing_is_found_wherever_it_begins() {
        for text in [
            "/// What a caller hands in.",
            "// It is read. Who\n// waits is told.",
            "//! - The same with other keys.",
            "    // Deleted: what is obsolete. Who reads it?\n    // That of the writer.",
            "// A file of which nothing is left.",
            "// It is\n// to be written.",
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
    }

    #[test]
    fn questions_code_and_words_within_a_sentence_are_none() {
        for text in [
            "// It says what failed, and who waits.",
            "// What if it fails?",
            "/// ```\n/// // What a test says.\n/// ```",
            "let a = \"What\"; // What follows code is not judged.",
            "// Whatsoever; proof which.",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
        let page = "# What it is\n\n| What | x |\n\n    What\n\nWhat is new.\n- Who reads.\n";
        assert_eq!(sentences("a.md", &prose(page)).len(), 2, "the last two");
    }

    #[test]
    fn a_head_says_what_a_file_owns_and_never_does() {
        assert!(head("crates/a/src/b.rs", "//! B.\n//! Owns: b. Never does: c.\n").is_none());
        assert!(head("crates/a/src/b.rs", "//! B.\n//! Owns: b.\n").is_some());
        assert!(head("crates/a/src/tests/b.rs", "//! B.\n").is_none());
        assert!(head("crates/a/tests/b.rs", "//! B.\n").is_none());
    }
}
