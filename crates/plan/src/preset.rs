//! Policies by name and as text.
//!
//! A policy is written as a preset's name, as a value for each axis, or as a
//! name and the axes that differ from it:
//!
//! ```text
//! leveled
//! shape=leveling(t=10) level0=tiered(k=4) pick=leveled(file=min_overlap) cut=by_size
//! filters=uniform(bits=10)
//! leveled level0=tiered(k=8) filters=none
//! ```
//!
//! `Display` prints the second form, which parses to the same policy. An axis
//! that is not named keeps the preset's value (`leveled` if none is named).

use crate::axes::{Cut, FilterMemory, Level0, Picker, Policy, Shape};
use crate::cut::BySize;
use crate::filter_memory::Uniform;
use crate::level0::Tiered;
use crate::pick::leveled::{FileChoice, Leveled};
use crate::shape::Leveling;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use windrow_base::{Error, Result};

/// Names that [`Policy::parse`] takes, with what each is.
pub const PRESETS: &[(&str, &str)] =
    &[("leveled", "tiered level 0, levels of ratio 10, uniform filters (as RocksDB and LevelDB)")];

const AXES: &str = "shape, level0, pick, cut, filters";

impl Policy {
    /// The baseline: tiered level 0 of four, ratio 10, ten filter bits per key.
    pub fn leveled() -> Policy {
        Policy {
            shape: Shape::Leveling(Leveling { t: 10.0 }),
            level0: Level0::Tiered(Tiered { k: 4 }),
            picker: Picker::Leveled(Leveled::default()),
            cut: Cut::BySize(BySize),
            filters: FilterMemory::Uniform(Uniform { bits: 10.0 }),
        }
    }

    /// The policy that a preset's name stands for.
    pub fn preset(name: &str) -> Option<Policy> {
        (name == "leveled").then(Policy::leveled)
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// `InvalidArgument` that names the word at fault and lists what is valid.
    pub fn parse(text: &str) -> Result<Policy> {
        let mut policy = None;
        let mut named: Vec<&str> = Vec::new();
        for word in words(text) {
            let Some((axis, value)) = word.split_once('=').filter(|(axis, _)| !axis.contains('('))
            else {
                if policy.is_some() {
                    return Err(Error::invalid(format!(
                        "policy: `{word}`: a preset's name comes first and once"
                    )));
                }
                policy = Some(Policy::preset(word).ok_or_else(|| unknown_preset(word))?);
                continue;
            };
            if named.contains(&axis) {
                return Err(Error::invalid(format!("policy: `{axis}` is given twice")));
            }
            named.push(axis);
            let policy = policy.get_or_insert_with(Policy::leveled);
            policy.set(axis, &Value::parse(value)?)?;
        }
        policy.ok_or_else(|| unknown_preset(text.trim()))
    }

    fn set(&mut self, axis: &str, value: &Value<'_>) -> Result<()> {
        match axis {
            "shape" => self.shape = shape(value)?,
            "level0" => self.level0 = level0(value)?,
            "pick" => self.picker = picker(value)?,
            "cut" => self.cut = cut(value)?,
            "filters" => self.filters = filters(value)?,
            _ => {
                return Err(Error::invalid(format!(
                    "policy: no axis `{axis}`; the axes are {AXES}"
                )));
            }
        }
        Ok(())
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Policy> {
        Policy::parse(text)
    }
}

fn shape(value: &Value<'_>) -> Result<Shape> {
    match value.name {
        "leveling" => {
            let t = value.number("t", 1.5, 1000.0)?.unwrap_or(10.0);
            value.only(&["t"])?;
            Ok(Shape::Leveling(Leveling { t }))
        }
        _ => Err(value.unknown("shape", "leveling(t=10)")),
    }
}

fn level0(value: &Value<'_>) -> Result<Level0> {
    match value.name {
        "tiered" => {
            let k = value.number("k", 1.0, 1000.0)?.unwrap_or(4.0);
            value.only(&["k"])?;
            if k != libm::trunc(k) {
                return Err(Error::invalid("policy: tiered: `k` must be a whole number"));
            }
            Ok(Level0::Tiered(Tiered { k: k as u32 }))
        }
        _ => Err(value.unknown("level0", "tiered(k=4)")),
    }
}

fn picker(value: &Value<'_>) -> Result<Picker> {
    match value.name {
        "leveled" => {
            let file = match value.option("file") {
                None | Some("min_overlap") => FileChoice::MinOverlap,
                Some("round_robin") => FileChoice::RoundRobin,
                Some(other) => {
                    return Err(Error::invalid(format!(
                        "policy: leveled: `file={other}`; it is min_overlap or round_robin"
                    )));
                }
            };
            value.only(&["file"])?;
            Ok(Picker::Leveled(Leveled { file }))
        }
        _ => Err(value.unknown("pick", "leveled(file=min_overlap), leveled(file=round_robin)")),
    }
}

fn cut(value: &Value<'_>) -> Result<Cut> {
    match value.name {
        "by_size" => {
            value.only(&[])?;
            Ok(Cut::BySize(BySize))
        }
        _ => Err(value.unknown("cut", "by_size")),
    }
}

fn filters(value: &Value<'_>) -> Result<FilterMemory> {
    match value.name {
        "none" => {
            value.only(&[])?;
            Ok(FilterMemory::None)
        }
        "uniform" => {
            let bits = value.number("bits", 0.0, 64.0)?.unwrap_or(10.0);
            value.only(&["bits"])?;
            Ok(FilterMemory::Uniform(Uniform { bits }))
        }
        _ => Err(value.unknown("filters", "none, uniform(bits=10)")),
    }
}

fn unknown_preset(word: &str) -> Error {
    let names: Vec<&str> = PRESETS.iter().map(|p| p.0).collect();
    Error::invalid(format!(
        "policy: no preset `{word}`; the presets are {}, and a policy can be written as \
         axis=value with the axes {AXES}",
        names.join(", ")
    ))
}

/// `name(key=value, ...)`; a first option without a key is the value's main one.
struct Value<'a> {
    name: &'a str,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Value<'a> {
    fn parse(text: &'a str) -> Result<Value<'a>> {
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Value { name: text, options: Vec::new() });
        };
        let Some(inner) = rest.strip_suffix(')') else {
            return Err(Error::invalid(format!("policy: `{text}` lacks its `)`")));
        };
        let options = inner.split(',').map(str::trim).filter(|o| !o.is_empty());
        let options = options.map(|o| match o.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            None => ("", o),
        });
        Ok(Value { name: name.trim(), options: options.collect() })
    }

    fn option(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|o| o.0 == key || o.0.is_empty()).map(|o| o.1)
    }

    fn number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>> {
        let Some(text) = self.option(key) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(Error::invalid(format!(
                "policy: {}: `{key}={text}` must be a number from {min} to {max}",
                self.name
            ))),
        }
    }

    /// Fails on an option that the value does not have, or has twice.
    fn only(&self, known: &[&str]) -> Result<()> {
        let valid = |key: &str| known.contains(&key) || (key.is_empty() && !known.is_empty());
        for (key, value) in &self.options {
            if !valid(key) {
                let has = if known.is_empty() { "none".into() } else { known.join(", ") };
                return Err(Error::invalid(format!(
                    "policy: {} has no option `{key}={value}`; its options: {has}",
                    self.name
                )));
            }
        }
        if self.options.len() > known.len() {
            return Err(Error::invalid(format!("policy: {}: an option is given twice", self.name)));
        }
        Ok(())
    }

    fn unknown(&self, axis: &str, valid: &str) -> Error {
        Error::invalid(format!("policy: no {axis} `{}`; valid: {valid}", self.name))
    }
}

/// Splits at white space outside parentheses.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    text.split(move |c: char| {
        depth += (c == '(') as i32 - (c == ')') as i32;
        c.is_whitespace() && depth <= 0
    })
    .filter(|word| !word.is_empty())
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape::Leveling(leveling) = &self.shape;
        write!(f, "shape=leveling(t={})", leveling.t)?;
        let Level0::Tiered(tiered) = &self.level0;
        write!(f, " level0=tiered(k={})", tiered.k)?;
        let Picker::Leveled(leveled) = &self.picker;
        let file = match leveled.file {
            FileChoice::MinOverlap => "min_overlap",
            FileChoice::RoundRobin => "round_robin",
        };
        write!(f, " pick=leveled(file={file})")?;
        let Cut::BySize(_) = &self.cut;
        write!(f, " cut=by_size")?;
        match &self.filters {
            FilterMemory::None => write!(f, " filters=none"),
            FilterMemory::Uniform(uniform) => write!(f, " filters=uniform(bits={})", uniform.bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_printed_parses_to_the_same() {
        for text in [
            "leveled",
            " leveled  filters=none ",
            "shape=leveling(t=2.5)",
            "shape=leveling(4) level0=tiered( k = 2 ) pick=leveled(file=round_robin)",
            "level0=tiered(8) filters=uniform(bits=3.5) cut=by_size",
        ] {
            let policy = Policy::parse(text).unwrap();
            assert_eq!(Policy::parse(&policy.to_string()).unwrap(), policy, "{text}");
        }
        assert_eq!(Policy::parse("leveled").unwrap(), Policy::leveled());
        let policy = Policy::parse("leveled level0=tiered(k=7)").unwrap();
        assert_eq!(policy, Policy { level0: Level0::Tiered(Tiered { k: 7 }), ..Policy::leveled() });
    }

    #[test]
    fn errors_name_the_fault_and_what_is_valid() {
        for (text, part) in [
            ("", "the presets are leveled"),
            ("levelled", "no preset `levelled`; the presets are leveled"),
            ("shape=garnish", "no shape `garnish`; valid: leveling(t=10)"),
            ("shape=leveling(t=1)", "must be a number from 1.5 to 1000"),
            ("shape=leveling(t=nan)", "must be a number"),
            ("shape=leveling(t=2,t=3)", "given twice"),
            ("shape=leveling(c=2)", "no option `c=2`; its options: t"),
            ("level0=tiered(k=2.5)", "whole number"),
            ("level0=tiered(k=2", "lacks its `)`"),
            ("pick=leveled(file=best)", "min_overlap or round_robin"),
            ("cut=by_size(3)", "no option"),
            ("filters=uniform(bits=-1)", "from 0 to 64"),
            ("color=red", "no axis `color`; the axes are shape"),
            ("filters=none filters=none", "given twice"),
            ("filters=none leveled", "comes first"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert_eq!(error.kind(), windrow_base::ErrorKind::InvalidArgument);
            assert!(error.message().contains(part), "{text}: {error}");
        }
    }
}
