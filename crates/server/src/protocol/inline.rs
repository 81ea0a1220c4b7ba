//! A request as a line of words, as typed into `telnet`.
//!
//! Owns: quotes and backslashes within it. Never does: look for the end of the line.

/// Splits a line into words; `None` if quotes do not match.
///
/// In double quotes a backslash begins `\n`, `\r`, `\t`, `\a`, `\b` or `\xNN`, in single quotes it
/// escapes a quote. A closing quote ends its word.
pub(crate) fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0);
        rest = &rest[blanks.count()..];
        if rest.is_empty() {
            return Some(words);
        }
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after;
    }
}

fn word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [quote @ (b'"' | b'\''), inside @ ..] => {
                let after = match quote {
                    b'"' => double_quoted(inside, &mut word)?,
                    _ => single_quoted(inside, &mut word)?,
                };
                let ends = after.first().is_none_or(|byte| byte.is_ascii_whitespace());
                return ends.then_some((word, after));
            }
            [byte, _, ..] | [byte] if byte.is_ascii_whitespace() || *byte == 0 => {
                return Some((word, rest));
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn lines_are_parted_as_a_shell_does() {
        let of = |line: &str| words(line.as_bytes());
        let text = |words: &[&str]| Some(words.iter().map(|w| w.as_bytes().to_vec()).collect());
        assert_eq!(of(""), text(&[]));
        assert_eq!(of("  set  a\tb "), text(&["set", "a", "b"]));
        assert_eq!(
            of(r#"set "a b" 'c "d"' "\x41\n\"" "#),
            text(&["set", "a b", "c \"d\"", "A\n\""])
        );
        assert_eq!(of(r"'it\'s'"), text(&["it's"]));
        for unbalanced in [r#"set """test-key""" test-value"#, "'a", "\"a", r#""a"b"#] {
            assert_eq!(of(unbalanced), None, "{unbalanced}");
        }
    }
}
