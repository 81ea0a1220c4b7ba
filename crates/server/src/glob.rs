//! Patterns of keys: `*`, `?`, `[a-c]`, `[^a]` and a backslash before a literal character.
//!
//! A star takes as little as it can, and only the last one is tried again with more: no match takes
//! longer than the pattern's length times that of the key.
//!
//! Owns: the match. Never does: take a pattern of any length.

use crate::fault::{Outcome, fail};
use std::borrow::Cow;

/// The longest pattern.
const BYTES_MAX: usize = 4096;

/// A pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern<'p> {
    text: Cow<'p, [u8]>,
    is_all: bool,
}

impl<'p> Pattern<'p> {
    /// # Errors
    /// A pattern that is too long.
    pub(crate) fn new(text: &'p [u8]) -> Outcome<Pattern<'p>> {
        if text.len() > BYTES_MAX {
            return fail(format!("ERR a pattern may have {BYTES_MAX} bytes, not {}", text.len()));
        }
        Ok(Pattern { text: Cow::Borrowed(text), is_all: text == b"*" })
    }

    /// Returns the only key that it matches, if it has no wildcard.
    pub(crate) fn only_key(&self) -> Option<&[u8]> {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        (!self.text.iter().any(is_special)).then_some(&self.text)
    }

    /// Returns the beginning of every key that it matches.
    pub(crate) fn literal_prefix(&self) -> &[u8] {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let len = self.text.iter().position(is_special).unwrap_or(self.text.len());
        &self.text[..len]
    }

    /// Returns whether it matches all of `text`.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        self.is_all || matches(&self.text, text)
    }
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The place after the last star, and the end of the text that it takes so far.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, from));
            continue;
        }
        let step = match (pattern.get(at), text.get(from)) {
            (None, None) => return true,
            (Some(_), Some(byte)) => one(&pattern[at..], *byte),
            _ => None,
        };
        if let Some(len) = step {
            at += len;
            from += 1;
            continue;
        }
        match star {
            Some((behind, taken)) if taken < text.len() => {
                star = Some((behind, taken + 1));
                (at, from) = (behind, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Returns the length of the pattern's part for one byte, if that part matches `byte`.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', ..] => {
            let (is_in, len) = class(pattern, byte);
            is_in.then_some(len)
        }
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Returns whether a class has the byte, and its length. A class that does not end takes the rest.
fn class(pattern: &[u8], byte: u8) -> (bool, usize) {
    let is_negated = pattern.get(1) == Some(&b'^');
    let mut at = if is_negated { 2 } else { 1 };
    let mut is_in = false;
    loop {
        match &pattern[at.min(pattern.len())..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                is_in |= *escaped == byte;
                at += 2;
            }
            [from, b'-', to, ..] => {
                is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                is_in |= *literal == byte;
                at += 1;
            }
        }
    }
    (is_in != is_negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern.as_bytes()).unwrap().matches(text.as_bytes())
    }

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "abc"),
            ("foo*", "foobar"),
            ("*bar", "foobar"),
            ("f?o", "foo"),
            ("h[ae]llo", "hello"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            (r"a\*b", "a*b"),
            (r"[\]]", "]"),
            ("a*b*c", "aXbYbZc"),
            ("[abc", "b"),
            ("", ""),
        ] {
            assert!(is_match(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", ""),
            ("h[^e]llo", "hello"),
            ("h[a-b]llo", "hcllo"),
            (r"a\*b", "aXb"),
            ("a*b", "ab "),
            ("?", ""),
        ] {
            assert!(!is_match(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_time_beyond_all_bounds() {
        let text = "a".repeat(60_000);
        assert!(!is_match(&("a*".repeat(2_000) + "b"), &text));
        assert!(Pattern::new(&[b'*'; BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn what_a_match_begins_with_bounds_a_scan() {
        let prefix = |pattern: &'static str| {
            Pattern::new(pattern.as_bytes()).unwrap().literal_prefix().to_vec()
        };
        assert_eq!(prefix("user:*"), b"user:");
        assert_eq!(prefix("*"), b"");
        assert_eq!(Pattern::new(b"a").unwrap().only_key(), Some(&b"a"[..]));
        assert_eq!(Pattern::new(b"a?").unwrap().only_key(), None);
    }
}
