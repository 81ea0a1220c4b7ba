//! The parts of a workload file that are written once for many: values by scale, the common values
//! of all cases, names with values.
//!
//! A table `{ quick = 1, reduced = 2, full = 3 }` becomes the value of the scale that is run
//! (`full` where `reduced` is left out). A table with `scales = [...]` is left out of the other
//! scales. A case's tables override the common ones. `"{NAME}"` in a string becomes the value of
//! NAME in the case's `with`. All of that is done on the parsed tree, whose values know their
//! places, so that an error still finds its line.
//!
//! Owns: these four replacements. Never does: know a key but `scales`.

use super::Scale;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A value, and where it is.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// The place of a mistake, as bytes of the text, and its message.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) Range<usize>, pub(super) String);

impl Wrong {
    pub(super) fn at<T>(value: &Spanned<T>, message: impl Into<String>) -> Wrong {
        Wrong(value.span(), message.into())
    }
}

impl From<toml::de::Error> for Wrong {
    fn from(error: toml::de::Error) -> Wrong {
        Wrong(error.span().unwrap_or(0..0), error.message().to_owned())
    }
}

/// Returns the value at a scale; `None` if it is left out there.
pub(super) fn at_scale(value: Value<'_>, scale: Scale) -> Result<Option<Value<'_>>, Wrong> {
    let span = value.span();
    let chosen = match value.into_inner() {
        DeValue::Table(mut table) => {
            if let Some(scales) = table.remove("scales")
                && !names_scale(&scales, scale)?
            {
                return Ok(None);
            }
            let is_scale = |name: &str| Scale::named(name).is_some();
            if table.keys().any(|key| is_scale(key.get_ref())) {
                if let Some(odd) = table.keys().find(|key| !is_scale(key.get_ref())) {
                    let message =
                        format!("`{}` is not a scale: quick, reduced, full", odd.get_ref());
                    return Err(Wrong::at(odd, message));
                }
                let missing = || format!("has no value for the scale `{}`", scale.name());
                let mut value = table.remove(scale.name());
                if scale == Scale::Reduced {
                    value = value.or_else(|| table.remove(Scale::Full.name()));
                }
                let value = value.ok_or_else(|| Wrong(span, missing()))?;
                return at_scale(value, scale);
            }
            let mut kept = DeTable::new();
            for (key, value) in table {
                if let Some(value) = at_scale(value, scale)? {
                    kept.insert(key, value);
                }
            }
            DeValue::Table(kept)
        }
        DeValue::Array(array) => {
            let mut kept = DeArray::new();
            for value in array {
                at_scale(value, scale)?.into_iter().for_each(|value| kept.push(value));
            }
            DeValue::Array(kept)
        }
        other => other,
    };
    Ok(Some(Spanned::new(span, chosen)))
}

/// Returns whether a list of scales has this one.
fn names_scale(list: &Value<'_>, scale: Scale) -> Result<bool, Wrong> {
    let wrong = |value| Wrong::at(value, "is a list of scales: quick, reduced, full");
    let mut found = false;
    for value in list.get_ref().as_array().ok_or_else(|| wrong(list))?.iter() {
        let name = value.get_ref().as_str().ok_or_else(|| wrong(value))?;
        if Scale::named(name).is_none() {
            return Err(wrong(value));
        }
        found |= name == scale.name();
    }
    Ok(found)
}

/// Returns `common` with the values of `own` over it: tables key by key, all else whole.
pub(super) fn join<'i>(common: Value<'i>, own: Value<'i>) -> Value<'i> {
    let (span, common_span) = (own.span(), common.span());
    match (common.into_inner(), own.into_inner()) {
        (DeValue::Table(mut table), DeValue::Table(own)) => {
            for (key, value) in own {
                let joined = match table.remove(&key) {
                    Some(old) => join(old, value),
                    None => value,
                };
                table.insert(key, joined);
            }
            // A joined table has the place of the common one.
            Spanned::new(common_span, DeValue::Table(table))
        }
        (_, own) => Spanned::new(span, own),
    }
}

/// Replaces every `{NAME}` by its value in `with`.
pub(super) fn fill<'i>(value: Value<'i>, with: &DeTable<'i>) -> Result<Value<'i>, Wrong> {
    let span = value.span();
    let filled = match value.into_inner() {
        DeValue::String(text) => fill_text(&text, &span, with)?,
        DeValue::Array(array) => {
            let mut filled = DeArray::new();
            for value in array {
                filled.push(fill(value, with)?);
            }
            DeValue::Array(filled)
        }
        DeValue::Table(table) => {
            let filled = table.into_iter().map(|(key, value)| Ok((key, fill(value, with)?)));
            DeValue::Table(filled.collect::<Result<_, Wrong>>()?)
        }
        other => other,
    };
    Ok(Spanned::new(span, filled))
}

/// Returns the text with the names replaced. A string that is a single `{NAME}` becomes the value
/// itself, a number if it is one.
fn fill_text<'i>(
    text: &str,
    span: &Range<usize>,
    with: &DeTable<'i>,
) -> Result<DeValue<'i>, Wrong> {
    let value = |name: &str| {
        let value = with.get(name).map(Spanned::get_ref);
        value.ok_or_else(|| Wrong(span.clone(), format!("`with` says nothing of `{{{name}}}`")))
    };
    let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if let Some(name) = whole.filter(|name| !name.contains(['{', '}'])) {
        return Ok(value(name)?.clone());
    }
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let unclosed = || Wrong(span.clone(), "a `{` without its `}`".to_owned());
        let (name, after) = after.split_once('}').ok_or_else(unclosed)?;
        filled += before;
        filled += &match value(name)? {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => return Err(Wrong(span.clone(), format!("`{{{name}}}` does not fit into words"))),
        };
        rest = after;
    }
    Ok(DeValue::String((filled + rest).into()))
}
