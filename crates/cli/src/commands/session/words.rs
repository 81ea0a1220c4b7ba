//! A line of a session as words: quotes, escapes, comments.
//!
//! White space separates words. `'...'` keeps all characters between the quotes. In `"..."` and
//! outside of quotes a backslash begins an escape: `\n`, `\t`, `\r`, `\0`, `\xNN` (a byte); before
//! any other character it means that character. A word that begins with `#` begins a comment.
//!
//! Owns: this grammar. Never does: know a command.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Splits a line into words.
///
/// # Errors
/// The mistake, as half a sentence.
pub(super) fn split(line: &[u8]) -> Result<Vec<OsString>, String> {
    let (mut words, mut word) = (Vec::new(), None::<Vec<u8>>);
    let mut rest = line.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'#' if word.is_none() => break,
            b' ' | b'\t' | b'\r' | b'\n' => words.extend(word.take().map(OsString::from_vec)),
            b'\'' | b'"' => quoted(byte, &mut rest, word.get_or_insert_default())?,
            b'\\' => word.get_or_insert_default().push(escaped(&mut rest)?),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    Ok(words)
}

fn quoted(
    quote: u8,
    rest: &mut impl Iterator<Item = u8>,
    word: &mut Vec<u8>,
) -> Result<(), String> {
    loop {
        match rest.next() {
            None => return Err(format!("a {} is not closed", char::from(quote))),
            Some(byte) if byte == quote => return Ok(()),
            Some(b'\\') if quote == b'"' => word.push(escaped(rest)?),
            Some(byte) => word.push(byte),
        }
    }
}

fn escaped(rest: &mut impl Iterator<Item = u8>) -> Result<u8, String> {
    let Some(byte) = rest.next() else {
        return Err("a backslash ends the line: write \\\\ for one".to_owned());
    };
    Ok(match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'0' => 0,
        b'x' => {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (Some(high), Some(low)) = (digit(), digit()) else {
                return Err("\\x is followed by two hexadecimal digits".to_owned());
            };
            (high << 4 | low) as u8
        }
        other => other,
    })
}

/// Returns a word that `split` reads as these bytes.
pub(super) fn quote(bytes: &[u8]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:/@+=,%~^".contains(c);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && text.chars().all(is_plain) => return text.to_owned(),
        Ok(text) if !text.chars().any(|c| c == '\'' || c.is_control()) => {
            return format!("'{text}'");
        }
        _ => {}
    }
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    c.encode_utf8(&mut utf8).bytes().for_each(|byte| push_hex(&mut out, byte));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_hex(&mut out, byte));
    }
    out.push('"');
    out
}

fn push_hex(out: &mut String, byte: u8) {
    out.push_str(&format!("\\x{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn words_are_split_and_quoted() {
        let of = |line: &str| {
            let words = split(line.as_bytes()).unwrap();
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(" put  a 'b c' # more"), ["put", "a", "b c"]);
        assert_eq!(of(r#"a"b\tc"'\n' '' "" x#y"#), ["ab\tc\\n", "", "", "x#y"]);
        assert_eq!(of(r"a\ b \x41\\"), ["a b", "A\\"]);
        assert!(of("  # nothing").is_empty());
        for (bad, why) in
            [("'a", "not closed"), ("\"a\\\"", "not closed"), ("a\\", "ends the line")]
        {
            assert!(split(bad.as_bytes()).unwrap_err().contains(why), "{bad}");
        }
        assert!(split(br"\x4").is_err());
        for bytes in [&b"a"[..], b"", b"a b", b"it's", b"\"\\\n\t\x01", b"\xff\xc3\xa9 z", b"#"] {
            let words = split(quote(bytes).as_bytes()).unwrap();
            assert_eq!(words.len(), 1, "{bytes:?}");
            assert_eq!(words[0].as_bytes(), bytes);
        }
    }
}
