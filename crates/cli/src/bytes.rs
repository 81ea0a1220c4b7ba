//! Keys and values between the shell and the database: hexadecimal, and a printable form for
//! messages.
//!
//! Without `--hex` the bytes of an argument are the bytes of the key: nothing is unescaped and
//! nothing needs to be UTF-8.
//!
//! Owns: these conversions. Never does: read or write.

use crate::failure::{Failure, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Returns the bytes of an argument.
///
/// # Errors
/// `Usage` if `hex` and it is not hexadecimal.
pub(crate) fn from_arg(arg: &OsStr, hex: bool) -> Result<Vec<u8>> {
    let raw = arg.as_bytes();
    if !hex {
        return Ok(raw.to_vec());
    }
    let mut out = Vec::with_capacity(raw.len() / 2);
    decode_hex(raw, &mut out).map_err(|why| {
        Failure::usage(format!("`{}` is not hexadecimal: {why}", arg.to_string_lossy()))
    })?;
    Ok(out)
}

/// Decodes hexadecimal digits of either case into `out`, which is cleared.
///
/// # Errors
/// The mistake, as half a sentence.
pub(crate) fn decode_hex(digits: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.clear();
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(format!("{} digits is an odd number", digits.len()));
    }
    for (i, &[high, low]) in pairs.iter().enumerate() {
        let byte = |digit: u8| (digit as char).to_digit(16);
        let (Some(high), Some(low)) = (byte(high), byte(low)) else {
            return Err(format!("byte {} is not two digits of 0-9, a-f", i + 1));
        };
        out.push((high << 4 | low) as u8);
    }
    Ok(())
}

/// Appends `raw` in lower-case hexadecimal.
pub(crate) fn encode_hex(raw: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(raw.len() * 2);
    for byte in raw {
        out.push(DIGITS[(byte >> 4) as usize]);
        out.push(DIGITS[(byte & 15) as usize]);
    }
}

/// Returns a key for messages: printable ASCII as it is, the rest as `\xNN`, cut after `bytes_max`
/// bytes.
pub(crate) fn shown(key: &[u8], bytes_max: usize) -> String {
    let head = &key[..key.len().min(bytes_max)];
    let mut text = match std::str::from_utf8(head) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => head.escape_ascii().to_string(),
    };
    if head.len() < key.len() {
        text.push('…');
    }
    text
}

/// Returns a whole key or value for messages: text without control characters as it is, else with
/// everything but printable ASCII escaped.
pub(crate) fn printable(field: &[u8]) -> String {
    shown(field, usize::MAX)
}

/// Returns the first key after all that begin with `prefix`; `None` if there is none: the prefix is
/// empty, or all its bytes are 0xff.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Returns the smaller of two exclusive upper bounds; `None` is no bound.
pub(crate) fn least(a: Option<Vec<u8>>, b: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Reads a counter of the merge operator `add`.
///
/// # Errors
/// `Failed` for a value that is no counter.
pub(crate) fn counter(value: &[u8]) -> Result<i64> {
    let bytes = value.try_into().map_err(|_| {
        let bytes = crate::human::plural(value.len() as u64, "byte");
        Failure::failed(format!("the value has {bytes}, and a counter has 8"))
            .hint("leave out --number, or see it with --hex")
    })?;
    Ok(i64::from_le_bytes(bytes))
}

/// Reads a length of time: a number and `ms`, `s`, `m`, `h` or `d`; seconds without a unit.
///
/// # Errors
/// The mistake, for the argument parser.
pub(crate) fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => {
            return Err("write a whole number, of seconds or with ms, s, m, h or d: 90, 90s, 36h"
                .to_owned());
        }
    };
    let number: u64 = number.parse().map_err(|_| "starts with a whole number: 90s".to_owned())?;
    let ms = number.checked_mul(unit_ms).ok_or("is longer than can be counted")?;
    Ok(std::time::Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_names_what_is_wrong() {
        let raw: Vec<u8> = (0..=255).collect();
        let (mut hex, mut back) = (Vec::new(), Vec::new());
        encode_hex(&raw, &mut hex);
        decode_hex(&hex, &mut back).unwrap();
        assert_eq!(back, raw);
        decode_hex(b"FFfe", &mut back).unwrap();
        assert_eq!(back, [0xff, 0xfe]);
        assert!(decode_hex(b"abc", &mut back).unwrap_err().contains("odd"));
        assert!(decode_hex(b"00zz", &mut back).unwrap_err().contains("byte 2"));
    }

    #[test]
    fn durations() {
        let ms = |text: &str| parse_duration(text).map(|d| d.as_millis());
        assert_eq!(ms("250ms"), Ok(250));
        assert_eq!(ms("90"), Ok(90_000));
        assert_eq!(ms("2d"), Ok(172_800_000));
        for bad in ["", "s", "-1s", "1.5s", "1w", "99999999999999999d"] {
            assert!(ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown_keys_are_printable_and_short() {
        assert_eq!(shown("Zürich".as_bytes(), 20), "Zürich");
        assert_eq!(shown(b"a\x00\xff", 20), "a\\x00\\xff");
        assert_eq!(shown(b"abcdef", 3), "abc…");
    }
}
