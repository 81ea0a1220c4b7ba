//! A line of JSON as a pair: an object with `key` and `value`, each a string or
//! a whole number; other fields are skipped.
//!
//! A number is stored as its decimal digits, where 64 bits hold it. Others
//! (with a fraction or an exponent, or longer) are refused: they can be written
//! in several ways, and the stored one would be a guess.
//!
//! Owns: this form. Never does: read or write a file.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The contents of a line.
#[derive(serde::Deserialize)]
pub(crate) struct JsonPair<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    value: Text<'a>,
}

/// A string, or the digits of a number.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a whole number")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(E::custom("a number that is not whole or needs more than 64 bits: put it in quotes"))
    }
}

/// Returns the key and the value of a line.
///
/// # Errors
/// The mistake, and its byte.
pub(crate) fn pair(line: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), String> {
    let pair: JsonPair<'_> = serde_json::from_slice(line).map_err(|error| {
        let (text, at) = (error.to_string(), error.column());
        // Only this line of the input is known here.
        let place = format!(" at line {} column {at}", error.line());
        let what = text.strip_suffix(&place).unwrap_or(&text);
        format!("not an object with key and value: {what} (byte {at})")
    })?;
    Ok((pair.key.0, pair.value.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_whole_numbers_are_taken() {
        let of = |line: &str| pair(line.as_bytes()).map(|(k, v)| format!("{k}={v}"));
        assert_eq!(of(r#"{"key":"a","value":"b"}"#).unwrap(), "a=b");
        assert_eq!(
            of(r#"{"x":[1,{}],"value":-7,"key":18446744073709551615}"#).unwrap(),
            "18446744073709551615=-7"
        );
        assert_eq!(of(r#" {"key":"\u00e9\n","value":0, "more": null} "#).unwrap(), "é\n=0");
        for (bad, why) in [
            (r#"{"key":"a","value":1.5}"#, "put it in quotes (byte"),
            (r#"{"key":"a","value":18446744073709551616}"#, "put it in quotes"),
            (r#"{"key":"a","value":true}"#, "string or a whole number"),
            (r#"{"key":"a","value":{}}"#, "string or a whole number"),
            (r#"{"key":"a"}"#, "missing field `value`"),
            (r#"{"key":"a","key":"b","value":""}"#, "duplicate field"),
            (r#"["a","b",1]"#, "byte"),
        ] {
            let said = of(bad).unwrap_err();
            assert!(said.contains(why) && !said.contains("line"), "{bad}: {said}");
        }
    }
}
