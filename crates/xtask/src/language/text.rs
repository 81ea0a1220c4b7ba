//! A file as words, each with its line, in prose or in code.
//!
//! Owns: where a word begins and ends (`LatchedUnlinks` and `held_bits` are two each), and which
//! parts of a Rust file are comments or strings. Never does: judge a word.

/// One word of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As it is written.
    pub(super) text: String,
    /// The word in lower case.
    pub(super) lower: String,
    /// Line from 1; 0 in the name of a file.
    pub(super) line: usize,
    /// Whether it is in a comment, a string or a page, not in code.
    pub(super) prose: bool,
    /// Whether it is a whole name.
    pub(super) alone: bool,
}

/// Returns the words of a page, a name, or a data file.
pub(super) fn of_prose(text: &str, first_line: usize) -> Vec<Word> {
    let chars: Vec<(char, bool)> = text.chars().map(|c| (c, true)).collect();
    words(&chars, first_line)
}

/// Returns the words of a Rust file.
pub(super) fn of_rust(text: &str) -> Vec<Word> {
    words(&Lexer::new(text).run(), 1)
}

/// Cuts characters, each with whether it is prose, into words.
fn words(chars: &[(char, bool)], first_line: usize) -> Vec<Word> {
    let mut found = Vec::new();
    let mut line = first_line;
    let mut at = 0;
    while at < chars.len() {
        let is_part = |&(c, _): &(char, bool)| c.is_alphanumeric() || c == '_';
        let len = chars[at..].iter().take_while(|c| is_part(c)).count();
        if len == 0 {
            line += usize::from(chars[at].0 == '\n');
            at += 1;
            continue;
        }
        let prose = chars[at].1;
        let name: Vec<char> = chars[at..at + len].iter().map(|c| c.0).collect();
        let parts = split(&name);
        let alone = parts.len() == 1;
        found.extend(parts.into_iter().map(|text| Word {
            lower: text.to_lowercase(),
            text,
            line,
            prose,
            alone,
        }));
        at += len;
    }
    found
}

/// Splits a name into words: at `_`, before a capital that follows a small letter, and before the
/// last of several capitals that a small letter follows.
fn split(name: &[char]) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    for (i, &c) in name.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| name[i]);
        let after = name.get(i + 1);
        let begins = c.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase()
                    || b.is_numeric()
                    || (b.is_uppercase() && after.is_some_and(|a| a.is_lowercase()))
            });
        if (begins || c == '_') && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if c != '_' {
            part.push(c);
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Separates comments and strings from code.
struct Lexer {
    chars: Vec<char>,
    at: usize,
    out: Vec<(char, bool)>,
}

impl Lexer {
    fn new(text: &str) -> Lexer {
        Lexer { chars: text.chars().collect(), at: 0, out: Vec::new() }
    }

    fn run(mut self) -> Vec<(char, bool)> {
        while let Some(&c) = self.chars.get(self.at) {
            match c {
                '/' if self.starts_with("//") => self.take_until("\n", false),
                '/' if self.starts_with("/*") => self.take_until("*/", false),
                '"' => self.take_until("\"", true),
                'r' if !self.is_within_name() && self.raw_hashes().is_some() => {
                    let hashes = self.raw_hashes().unwrap_or(0);
                    self.take(hashes + 1, false);
                    self.take_until(&format!("\"{}", "#".repeat(hashes)), false);
                }
                '\'' => self.take_quote(),
                _ => self.take(1, false),
            }
        }
        self.out
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn is_within_name(&self) -> bool {
        let before = self.at.checked_sub(1).map(|i| self.chars[i]);
        before.is_some_and(|b| b.is_alphanumeric() || b == '_') && before != Some('b')
    }

    /// Returns the number of `#` of a raw string that begins here, if one does.
    fn raw_hashes(&self) -> Option<usize> {
        let rest = &self.chars[self.at + 1..];
        let hashes = rest.iter().take_while(|c| **c == '#').count();
        (rest.get(hashes) == Some(&'"')).then_some(hashes)
    }

    fn take(&mut self, count: usize, prose: bool) {
        let end = (self.at + count).min(self.chars.len());
        self.out.extend(self.chars[self.at..end].iter().map(|c| (*c, prose)));
        self.at = end;
    }

    /// Takes the text from here up to and with `end` as prose. An escape sequence is not a part of
    /// a word: it is replaced by a space.
    fn take_until(&mut self, end: &str, escapes: bool) {
        self.take(1, true);
        while self.at < self.chars.len() && !self.starts_with(end) {
            if escapes && self.chars[self.at] == '\\' {
                self.out.push((' ', true));
                let next = self.chars.get(self.at + 1);
                self.out.push((if next == Some(&'\n') { '\n' } else { ' ' }, true));
                self.at = (self.at + 2).min(self.chars.len());
            } else {
                self.take(1, true);
            }
        }
        self.take(end.chars().count(), true);
    }

    /// A character, or the name of a lifetime.
    fn take_quote(&mut self) {
        let is_escape = self.chars.get(self.at + 1) == Some(&'\\');
        let is_char = is_escape || self.chars.get(self.at + 2) == Some(&'\'');
        if !is_char {
            return self.take(1, false);
        }
        self.take(if is_escape { 3 } else { 2 }, false);
        while self.at < self.chars.len() && self.chars[self.at] != '\'' {
            self.take(1, false);
        }
        self.take(1, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(words: &[Word]) -> Vec<&str> {
        words.iter().map(|word| word.lower.as_str()).collect()
    }

    #[test]
    fn names_are_cut_into_words() {
        let words = of_prose("LatchedUnlinks held_bits SSTLog b2Tree x'y MAX_LEN", 1);
        let parts = ["latched", "unlinks", "held", "bits", "sst", "log", "b2", "tree"];
        assert_eq!(lower(&words)[..8], parts);
        assert_eq!(lower(&words)[8..], ["x", "y", "max", "len"]);
        assert!(!words[0].alone && words[8].alone);
    }

    #[test]
    fn comments_and_strings_are_prose() {
        let text =
            "a // b\nc(\"d\\ne\\\n f\", 'g', '\"', '\\'', r#\"h \"i\"#) /* j\n*/ k<'l> \"m\"";
        let words = of_rust(text);
        let prose: Vec<&str> =
            words.iter().filter(|w| w.prose).map(|word| word.lower.as_str()).collect();
        assert_eq!(prose, ["b", "d", "e", "f", "h", "i", "j", "m"]);
        let lines: Vec<usize> = words.iter().map(|word| word.line).collect();
        assert_eq!(words.iter().find(|w| w.lower == "f").map(|w| w.line), Some(3));
        assert_eq!(lines.last(), Some(&4));
    }
}
