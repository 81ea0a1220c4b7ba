//! Fields of JSON objects by their path: `user.id`, `tags.0`, `.` for all of it.
//!
//! Dots separate names, a backslash keeps a dot in a name, and in an array a number counts from 0.
//! A field is stored as follows: a string as its characters, any other value as it is written, so
//! that no number is rounded and no object rewritten.
//!
//! Owns: paths, their look-up in a line, and the line of a pair by paths. Never does: read or write
//! a file.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The path of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath {
    /// The path as the user wrote it.
    text: String,
    /// The names; none for the whole object.
    names: Vec<String>,
}

impl JsonPath {
    /// # Errors
    /// The mistake, as half a sentence.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        let (mut names, mut name, mut is_kept) = (Vec::new(), String::new(), false);
        let whole = text == ".";
        for c in text.chars().filter(|_| !whole) {
            match c {
                '\\' if !is_kept => is_kept = true,
                '.' if !is_kept => names.push(std::mem::take(&mut name)),
                _ => {
                    name.push(c);
                    is_kept = false;
                }
            }
        }
        if !whole {
            names.push(name);
        }
        if is_kept || names.iter().any(String::is_empty) {
            return Err(format!(
                "`{text}` is no path of a field: write names with dots between them, such as \
                 user.id, or `.` for the whole line (a dot in a name is `\\.`)"
            ));
        }
        Ok(JsonPath { text: text.to_owned(), names })
    }

    /// Returns whether it is the whole line.
    pub(crate) fn is_whole(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the field of a line.
    ///
    /// # Errors
    /// The mistake in the line, or that there is no such field.
    pub(crate) fn find<'a>(&self, line: &'a [u8]) -> Result<Cow<'a, str>, String> {
        let mut at: &RawValue = serde_json::from_slice(line).map_err(|error| {
            let (text, column) = (error.to_string(), error.column());
            let place = format!(" at line {} column {column}", error.line());
            format!("not JSON: {} (byte {column})", text.strip_suffix(&place).unwrap_or(&text))
        })?;
        for name in &self.names {
            at = step(at, name)?.ok_or_else(|| match at.get().as_bytes()[0] {
                b'{' | b'[' => format!("there is no field `{}`", self.text),
                _ => format!("there is no field `{}`: `{name}` is asked of no object", self.text),
            })?;
        }
        match at.get() {
            "null" if !self.is_whole() => Err(format!("field `{}` is null", self.text)),
            text if text.starts_with('"') => {
                let string: BorrowedText<'a> =
                    serde_json::from_str(text).map_err(|e| e.to_string())?;
                Ok(string.0)
            }
            text => Ok(Cow::Borrowed(text)),
        }
    }

    /// Puts a value into an object, and makes the objects on its path.
    ///
    /// # Errors
    /// The other value in its place.
    pub(crate) fn put(
        &self,
        object: &mut serde_json::Map<String, serde_json::Value>,
        value: &str,
    ) -> Result<(), String> {
        let (last, within) = self.names.split_last().expect("a path that is not the whole line");
        let mut at = object;
        for name in within {
            let inner = at.entry(name.clone()).or_insert_with(|| serde_json::json!({}));
            at = inner.as_object_mut().ok_or_else(|| {
                format!("field `{}` has no room: `{name}` is not an object", self.text)
            })?;
        }
        match at.get(last) {
            None => _ = at.insert(last.clone(), value.into()),
            Some(there) => {
                let shown = match there {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                if shown != value {
                    return Err(format!("field `{}` holds {there} already", self.text));
                }
            }
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the value that an object or array has under a name.
fn step<'a>(value: &'a RawValue, name: &str) -> Result<Option<&'a RawValue>, String> {
    let mut reader = serde_json::Deserializer::from_str(value.get());
    match value.get().as_bytes()[0] {
        b'{' | b'[' => Named(name).deserialize(&mut reader).map_err(|error| error.to_string()),
        _ => Ok(None),
    }
}

/// Looks for one name, and skips the others.
struct Named<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Named<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(BorrowedText(name)) = map.next_key()? {
            if name != self.0 {
                map.next_value::<IgnoredAny>()?;
            } else if found.replace(map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("field `{name}` is there twice")));
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let wanted = self.0.parse::<usize>().ok();
        let (mut found, mut at) = (None, 0);
        loop {
            if Some(at) == wanted {
                found = seq.next_element()?;
                if found.is_none() {
                    return Ok(None);
                }
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            at += 1;
        }
    }
}

/// The fields of a line of JSON that are the key and the value of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonFields {
    pub(crate) key: JsonPath,
    pub(crate) value: JsonPath,
}

impl JsonFields {
    /// Returns the fields that the arguments name, if they name any.
    ///
    /// # Errors
    /// The mistake in a path.
    pub(crate) fn of(key: Option<&str>, value: Option<&str>) -> Result<Option<JsonFields>, String> {
        if key.is_none() && value.is_none() {
            return Ok(None);
        }
        let key = JsonPath::parse(key.unwrap_or("key"))?;
        if key.is_whole() {
            return Err("a key is a field of the line, and not the whole line".to_owned());
        }
        Ok(Some(JsonFields { key, value: JsonPath::parse(value.unwrap_or("value"))? }))
    }

    /// Returns the key and the value of a line.
    ///
    /// # Errors
    /// The mistake in the line.
    pub(crate) fn pair<'a>(&self, line: &'a [u8]) -> Result<(Cow<'a, str>, Cow<'a, str>), String> {
        Ok((self.key.find(line)?, self.value.find(line)?))
    }

    /// Returns the line for a pair; without a value only the key's fields.
    ///
    /// # Errors
    /// The part that cannot be written so.
    pub(crate) fn line(&self, key: &str, value: Option<&str>) -> Result<String, String> {
        let Some(value) = value else {
            let mut object = serde_json::Map::new();
            self.key.put(&mut object, key)?;
            return Ok(serde_json::Value::Object(object).to_string());
        };
        if self.value.is_whole() {
            return self.whole_line(key, value);
        }
        let mut object = serde_json::Map::new();
        self.key.put(&mut object, key)?;
        self.value.put(&mut object, value)?;
        Ok(serde_json::Value::Object(object).to_string())
    }

    /// Returns the value, which is an object: as it is if it has the key, else with the key added.
    fn whole_line(&self, key: &str, value: &str) -> Result<String, String> {
        let is_there = self.key.find(value.as_bytes()).is_ok_and(|found| found == key);
        if is_there && value.trim_start().starts_with('{') && !value.contains('\n') {
            return Ok(value.to_owned());
        }
        let mut object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(value).map_err(|_| "the value is not a JSON object".to_owned())?;
        self.key.put(&mut object, key)?;
        Ok(serde_json::Value::Object(object).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(key: &str, value: &str) -> JsonFields {
        JsonFields::of(Some(key), Some(value)).unwrap().unwrap()
    }

    #[test]
    fn fields_are_found_by_their_path() {
        let of = |key: &str, value: &str, line: &str| {
            fields(key, value).pair(line.as_bytes()).map(|(key, value)| format!("{key}={value}"))
        };
        let line = r#" {"user":{"id":7,"na\u006de":"Ada \"L\""},"tags":["a",1.50],"a.b":{}} "#;
        for (key, value, expected) in [
            ("user.id", ".", format!("7={}", line.trim())),
            ("user.name", "tags.1", "Ada \"L\"=1.50".to_owned()),
            ("tags.0", "user", format!("a={}", r#"{"id":7,"na\u006de":"Ada \"L\""}"#)),
            ("tags.0", r"a\.b", "a={}".to_owned()),
        ] {
            assert_eq!(of(key, value, line).unwrap(), expected, "{key} {value}");
        }
        for (key, value, line, why) in [
            ("id", ".", r#"{"x":1}"#, "there is no field `id`"),
            ("id.of", ".", r#"{"id":1}"#, "`of` is asked of no object"),
            ("id.2", ".", r#"{"id":[0,1]}"#, "there is no field `id.2`"),
            ("id", ".", r#"{"id":null}"#, "`id` is null"),
            ("id", ".", r#"{"id":1,"id":2}"#, "there twice"),
            ("id", ".", r#"{"id":1"#, "(byte 7)"),
            ("id", "x", "[]", "there is no field `id`"),
        ] {
            let said = of(key, value, line).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
        for bad in ["", "a..b", ".a", "a\\"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
        assert!(JsonFields::of(Some("."), None).is_err());
        assert_eq!(JsonFields::of(None, None), Ok(None));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let line = fields("user.id", "user.name").line("7", Some("Ada")).unwrap();
        assert_eq!(line, r#"{"user":{"id":"7","name":"Ada"}}"#);
        assert_eq!(fields("a.b", "v").line("1", None).unwrap(), r#"{"a":{"b":"1"}}"#);
        let whole = fields("id", ".");
        let value = r#"{"id":7, "n":1.50}"#;
        assert_eq!(whole.line("7", Some(value)).unwrap(), value);
        assert_eq!(whole.line("7", Some("{}")).unwrap(), r#"{"id":"7"}"#);
        assert!(whole.line("8", Some(value)).unwrap_err().contains("holds 7 already"));
        assert!(whole.line("8", Some("[1]")).unwrap_err().contains("not a JSON object"));
        assert!(fields("a", "a.b").line("1", Some("2")).unwrap_err().contains("not an object"));
    }
}
