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
//!
//! Owns: the names, the presets, and the text of each axis. Never does: guess: an unknown word is
//! an error that lists the valid ones.

use crate::axes::Policy;
use crate::cut::{BySize, Cut, Overlap};
use crate::filter_memory::{FilterMemory, Mnemosyne, Monkey, SAMPLE, SAMPLE_MAX, Uniform};
use crate::level0::{Fifo, Level0, Partitioned, Tiered};
use crate::pick::Picker;
use crate::pick::leveled::{FileChoice, Leveled};
use crate::pick::sst_log::{LogMode, LogShare, SstLog};
use crate::shape::{Base, Garnering, Leveling, Shape};
use crate::usage::Use;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use windrow_base::{Error, Result};

/// Names that [`Policy::parse`] takes, with what each is.
pub const PRESETS: &[(&str, &str)] = &[
    ("windrow", "all four designs together (the default)"),
    ("leveled", "tiered level 0, levels of ratio 10, uniform filters (as RocksDB and LevelDB)"),
    ("autumn", "leveled, with fewer levels: ratios grow towards the top"),
    ("l2sm", "leveled, with an SST-log (files that may overlap) for each upper level"),
    ("vlsm", "short compaction chains: small files, no tiering, cut by overlap"),
    ("mnemosyne", "leveled, with filter memory where lookups find nothing"),
];

const AXES: &str = "shape, level0, pick, cut, filters, use";

impl Policy {
    /// The baseline: tiered level 0 of four, ratio 10, ten filter bits per key.
    pub fn leveled() -> Policy {
        Policy {
            shape: Shape::Leveling(Leveling { t: 10.0, phi: 10.0, base: Base::Constant }),
            level0: Level0::Tiered(Tiered { k: 4 }),
            picker: Picker::Leveled(Leveled::default()),
            cut: Cut::BySize(BySize),
            filters: FilterMemory::Uniform(Uniform { bits: 10.0 }),
            usage: Use::default(),
        }
    }

    /// Returns the policy of a preset's name.
    pub fn preset(name: &str) -> Option<Policy> {
        let leveled = Policy::leveled();
        let garnering = |t, c| Shape::Garnering(Garnering { t, c, base: Base::Constant });
        let sst_log = SstLog {
            mode: LogMode::Closed,
            omega: 0.05,
            share: LogShare::OfTree,
            alpha: 0.5,
            levels: 2,
            depth: 4,
        };
        let one_file = Leveled { grow: 1, ..Leveled::default() };
        Some(match name {
            "leveled" => leveled,
            "autumn" => Policy {
                shape: garnering(10.0, 0.8),
                filters: FilterMemory::Monkey(Monkey { bits: 10.0 }),
                ..leveled
            },
            "l2sm" => Policy { picker: Picker::SstLog(sst_log), ..leveled },
            "vlsm" => Policy {
                shape: Shape::Leveling(Leveling { t: 8.0, phi: 32.0, base: Base::Constant }),
                level0: Level0::Fifo(Fifo),
                picker: Picker::Leveled(one_file),
                cut: Cut::Overlap(Overlap { f: 8.0, max_bytes: 0, min_bytes: 0 }),
                ..leveled
            },
            "mnemosyne" => Policy {
                filters: FilterMemory::Mnemosyne(Mnemosyne {
                    bits: 6.0,
                    stays: 0.0,
                    sample: SAMPLE,
                }),
                ..leveled
            },
            "windrow" => Policy {
                shape: Shape::Garnering(Garnering { t: 6.5, c: 0.8, base: Base::Last }),
                level0: Level0::Partitioned(Partitioned { partitions: 64, k: None, depth: 8 }),
                picker: Picker::SstLog(SstLog {
                    mode: LogMode::Columns,
                    share: LogShare::Dial,
                    ..sst_log
                }),
                filters: FilterMemory::Mnemosyne(Mnemosyne {
                    bits: 10.0,
                    stays: 0.97,
                    sample: SAMPLE,
                }),
                usage: Use::Balanced,
                ..leveled
            },
            _ => return None,
        })
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
            policy.set(axis, &AxisValue::parse(value)?)?;
        }
        debug_assert!(named.is_empty() || policy.is_some(), "axes {named:?} make no policy");
        policy.ok_or_else(|| unknown_preset(text.trim()))
    }

    fn set(&mut self, axis: &str, value: &AxisValue<'_>) -> Result<()> {
        match axis {
            "shape" => self.shape = shape(value)?,
            "level0" => self.level0 = level0(value)?,
            "pick" => self.picker = picker(value)?,
            "cut" => self.cut = cut(value)?,
            "filters" => self.filters = filters(value)?,
            "use" => self.usage = usage(value)?,
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

fn shape(value: &AxisValue<'_>) -> Result<Shape> {
    match value.name {
        "leveling" => {
            let t = value.number("t", 1.5, 1000.0)?.unwrap_or(10.0);
            let phi = value.named_number("phi", 1.5, 10_000.0)?.unwrap_or(t);
            let base = value.word("base", &[("constant", Base::Constant), ("last", Base::Last)])?;
            value.only(&["t", "phi", "base"])?;
            Ok(Shape::Leveling(Leveling { t, phi, base: base.unwrap_or_default() }))
        }
        "garnering" => {
            let t = value.number("t", 1.5, 1000.0)?.unwrap_or(8.0);
            let c = value.named_number("c", 0.1, 1.0)?.unwrap_or(0.7);
            let bases =
                [("constant", Base::Constant), ("growing", Base::Growing), ("last", Base::Last)];
            let base = value.word("base", &bases)?;
            value.only(&["t", "c", "base"])?;
            Ok(Shape::Garnering(Garnering { t, c, base: base.unwrap_or_default() }))
        }
        _ => Err(value.unknown("shape", "leveling(t=10), garnering(t=8,c=0.7)")),
    }
}

fn level0(value: &AxisValue<'_>) -> Result<Level0> {
    match value.name {
        "tiered" => {
            let k = value.whole("k", true, 1..=1000)?.unwrap_or(4);
            value.only(&["k"])?;
            Ok(Level0::Tiered(Tiered { k }))
        }
        "fifo" => {
            value.only(&[])?;
            Ok(Level0::Fifo(Fifo))
        }
        "partitioned" => {
            let partitions = value.whole("lanes", true, 1..=1024)?.unwrap_or(16);
            let k = match value.named("k") {
                Some("dial") => None,
                _ => Some(value.whole("k", false, 1..=64)?.unwrap_or(4)),
            };
            let depth = value.whole("depth", false, 1..=1000)?.unwrap_or(8);
            value.only(&["lanes", "k", "depth"])?;
            Ok(Level0::Partitioned(Partitioned { partitions, k, depth }))
        }
        _ => Err(value.unknown("level0", "tiered(k=4), fifo, partitioned(lanes=16,k=4)")),
    }
}

fn picker(value: &AxisValue<'_>) -> Result<Picker> {
    match value.name {
        "leveled" => {
            let choices =
                [("min_overlap", FileChoice::MinOverlap), ("round_robin", FileChoice::RoundRobin)];
            let file = value.word("file", &choices)?.or(value.main_word(&choices)?);
            let grow = value.whole("grow", false, 1..=1000)?.unwrap_or(25);
            value.only(&["file", "grow"])?;
            Ok(Picker::Leveled(Leveled { file: file.unwrap_or_default(), grow }))
        }
        "sst_log" => {
            let modes = LogMode::ALL.map(|mode| (mode.name(), mode));
            let mode = value.word("mode", &modes)?.or(value.main_word(&modes)?);
            let mode = mode.unwrap_or(LogMode::Closed);
            let paper = mode == LogMode::Paper;
            let number = |key, default| Ok(value.named_number(key, 0.0, 100.0)?.unwrap_or(default));
            let omega = number("omega", if paper { 0.1 } else { 0.05 })?;
            let alpha = number("alpha", 0.5)?;
            let share = match value.named("share") {
                None => LogShare::OfTree,
                Some("dial") => LogShare::Dial,
                Some(_) => {
                    LogShare::Of { first: number("share", 0.0)?, ratio: number("ratio", 1.0)? }
                }
            };
            if value.named("ratio").is_some() && !matches!(share, LogShare::Of { .. }) {
                return Err(Error::invalid(
                    "policy: `ratio` is that of `share` from level to level; give `share`, too",
                ));
            }
            let levels =
                value.whole("levels", false, 1..=32)?.unwrap_or(if paper { 32 } else { 2 });
            let depth =
                value.whole("depth", false, 1..=1000)?.unwrap_or(if paper { 1000 } else { 4 });
            value.only(&["mode", "omega", "share", "ratio", "alpha", "levels", "depth"])?;
            Ok(Picker::SstLog(SstLog { mode, omega, share, alpha, levels, depth }))
        }
        _ => Err(value.unknown(
            "pick",
            "leveled(file=min_overlap), leveled(file=round_robin), sst_log(closed), \
             sst_log(columns), sst_log(paper)",
        )),
    }
}

fn cut(value: &AxisValue<'_>) -> Result<Cut> {
    match value.name {
        "by_size" => {
            value.only(&[])?;
            Ok(Cut::BySize(BySize))
        }
        "overlap" => {
            let f = value.number("f", 1.0, 1000.0)?.unwrap_or(8.0);
            let bytes = |key| Ok(value.whole(key, false, 0..=u32::MAX)?.unwrap_or(0) as u64);
            let (max_bytes, min_bytes) = (bytes("max_bytes")?, bytes("min_bytes")?);
            value.only(&["f", "max_bytes", "min_bytes"])?;
            Ok(Cut::Overlap(Overlap { f, max_bytes, min_bytes }))
        }
        _ => Err(value.unknown("cut", "by_size, overlap(f=8)")),
    }
}

fn filters(value: &AxisValue<'_>) -> Result<FilterMemory> {
    let bits = || {
        let bits = value.number("bits", 0.0, 64.0)?;
        value.only(&["bits"])?;
        Ok(bits)
    };
    match value.name {
        "none" => {
            value.only(&[])?;
            Ok(FilterMemory::None)
        }
        "uniform" => Ok(FilterMemory::Uniform(Uniform { bits: bits()?.unwrap_or(10.0) })),
        "monkey" => Ok(FilterMemory::Monkey(Monkey { bits: bits()?.unwrap_or(10.0) })),
        "mnemosyne" => {
            let bits = value.number("bits", 0.0, 64.0)?.unwrap_or(6.0);
            let stays = value.named_number("stays", 0.0, 1.0)?.unwrap_or(0.0);
            let sample = value.whole("sample", false, 1..=SAMPLE_MAX)?.unwrap_or(SAMPLE);
            if !sample.is_power_of_two() {
                let text = format!("policy: `sample={sample}` is no power of two: 1, 2, 4 ...");
                return Err(Error::invalid(text));
            }
            value.only(&["bits", "stays", "sample"])?;
            Ok(FilterMemory::Mnemosyne(Mnemosyne { bits, stays, sample }))
        }
        _ => {
            Err(value
                .unknown("filters", "none, uniform(bits=10), monkey(bits=10), mnemosyne(bits=6)"))
        }
    }
}

fn usage(value: &AxisValue<'_>) -> Result<Use> {
    value.only(&[])?;
    let found = Use::ALL.into_iter().find(|(name, _)| *name == value.name);
    found
        .map(|(_, usage)| usage)
        .ok_or_else(|| value.unknown("use", "balanced, reads, writes, measured"))
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
struct AxisValue<'a> {
    name: &'a str,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> AxisValue<'a> {
    fn parse(text: &'a str) -> Result<AxisValue<'a>> {
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(AxisValue { name: text, options: Vec::new() });
        };
        let Some(inner) = rest.strip_suffix(')') else {
            return Err(Error::invalid(format!("policy: `{text}` lacks its `)`")));
        };
        let options = inner.split(',').map(str::trim).filter(|o| !o.is_empty());
        let options = options.map(|o| match o.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            None => ("", o),
        });
        Ok(AxisValue { name: name.trim(), options: options.collect() })
    }

    /// Returns the value of an option that is given by its name.
    fn named(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|o| o.0 == key).map(|o| o.1)
    }

    /// Returns the option that is given without a name: the value's main one.
    fn main(&self) -> Option<&'a str> {
        self.options.first().filter(|o| o.0.is_empty()).map(|o| o.1)
    }

    /// Returns the main option, as a number.
    fn number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>> {
        self.number_of(key, self.named(key).or(self.main()), min, max)
    }

    fn named_number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>> {
        self.number_of(key, self.named(key), min, max)
    }

    fn number_of(&self, key: &str, text: Option<&str>, min: f64, max: f64) -> Result<Option<f64>> {
        debug_assert!(min <= max, "{key} must be from {min} to {max}");
        let Some(text) = text else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(Error::invalid(format!(
                "policy: {}: `{key}={text}` must be a number from {min} to {max}",
                self.name
            ))),
        }
    }

    /// Returns a whole number; `main` if it may be given without its name.
    fn whole(&self, key: &str, main: bool, range: RangeInclusive<u32>) -> Result<Option<u32>> {
        let text = self.named(key).or(if main { self.main() } else { None });
        let (min, max) = (*range.start() as f64, *range.end() as f64);
        match self.number_of(key, text, min, max)? {
            None => Ok(None),
            Some(n) if n == libm::trunc(n) => Ok(Some(n as u32)),
            Some(_) => Err(Error::invalid(format!(
                "policy: {}: `{key}` must be a whole number",
                self.name
            ))),
        }
    }

    /// Returns one of some words, given by the option's name.
    fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        self.word_of(key, self.named(key), words)
    }

    /// Returns one of some words, given without a name.
    fn main_word<T: Copy>(&self, words: &[(&str, T)]) -> Result<Option<T>> {
        self.word_of("", self.main(), words)
    }

    fn word_of<T: Copy>(
        &self,
        key: &str,
        text: Option<&str>,
        words: &[(&str, T)],
    ) -> Result<Option<T>> {
        debug_assert!(!words.is_empty(), "`{key}` can be nothing");
        let Some(text) = text else { return Ok(None) };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*value));
        }
        let valid: Vec<&str> = words.iter().map(|w| w.0).collect();
        let given = if key.is_empty() { text.into() } else { format!("{key}={text}") };
        Err(Error::invalid(format!(
            "policy: {}: `{given}`; it is {}",
            self.name,
            valid.join(" or ")
        )))
    }

    /// Fails on an option that the value does not have, or has twice.
    fn only(&self, known: &[&str]) -> Result<()> {
        let is_once = |key: &&str| known.iter().filter(|other| *other == key).count() == 1;
        debug_assert!(known.iter().all(is_once), "{} has options twice: {known:?}", self.name);
        for (i, (key, value)) in self.options.iter().enumerate() {
            // Only the first may go without its name.
            let valid = known.contains(key) || (key.is_empty() && !known.is_empty() && i == 0);
            if !valid {
                let has = if known.is_empty() { "none".into() } else { known.join(", ") };
                return Err(Error::invalid(format!(
                    "policy: {} has no option `{key}={value}`; its options: {has}",
                    self.name
                )));
            }
        }
        let main = known.first().copied().unwrap_or_default();
        let name = |key: &'a str| if key.is_empty() { main } else { key };
        let mut keys: Vec<&str> = self.options.iter().map(|o| name(o.0)).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
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
        write!(f, "shape={} level0={} pick={}", self.shape, self.level0, self.picker)?;
        write!(f, " cut={} filters={}", self.cut, self.filters)?;
        match self.usage == Use::default() {
            true => Ok(()),
            false => write!(f, " use={}", self.usage),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Leveling(Leveling { t, phi, base }) => {
                write!(f, "leveling(t={t}")?;
                if t != phi {
                    write!(f, ",phi={phi}")?;
                }
                write!(f, "{base})")
            }
            Shape::Garnering(Garnering { t, c, base }) => {
                write!(f, "garnering(t={t},c={c}{base})")
            }
        }
    }
}

/// Prints the base as an option of a shape; nothing where it is constant.
impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Base::Constant => "",
            Base::Growing => ",base=growing",
            Base::Last => ",base=last",
        })
    }
}

impl fmt::Display for Level0 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level0::Tiered(tiered) => write!(f, "tiered(k={})", tiered.k),
            Level0::Fifo(_) => write!(f, "fifo"),
            Level0::Partitioned(Partitioned { partitions, k, depth }) => {
                write!(f, "partitioned(lanes={partitions},k=")?;
                match k {
                    Some(k) => write!(f, "{k}")?,
                    None => f.write_str("dial")?,
                }
                write!(f, ",depth={depth})")
            }
        }
    }
}

impl fmt::Display for Picker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Picker::Leveled(Leveled { file, grow }) => {
                let file = match file {
                    FileChoice::MinOverlap => "min_overlap",
                    FileChoice::RoundRobin => "round_robin",
                };
                match *grow == Leveled::default().grow {
                    true => write!(f, "leveled(file={file})"),
                    false => write!(f, "leveled(file={file},grow={grow})"),
                }
            }
            Picker::SstLog(SstLog { mode, omega, share, alpha, levels, depth }) => {
                let mode = mode.name();
                write!(f, "sst_log({mode},omega={omega}")?;
                match share {
                    LogShare::OfTree => {}
                    LogShare::Of { first, ratio: 1.0 } => write!(f, ",share={first}")?,
                    LogShare::Of { first, ratio } => write!(f, ",share={first},ratio={ratio}")?,
                    LogShare::Dial => write!(f, ",share=dial")?,
                }
                write!(f, ",alpha={alpha}")?;
                write!(f, ",levels={levels},depth={depth})")
            }
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::BySize(_) => write!(f, "by_size"),
            Cut::Overlap(Overlap { f: most, max_bytes: 0, min_bytes: 0 }) => {
                write!(f, "overlap(f={most})")
            }
            Cut::Overlap(Overlap { f: most, max_bytes, min_bytes }) => {
                write!(f, "overlap(f={most},max_bytes={max_bytes},min_bytes={min_bytes})")
            }
        }
    }
}

impl fmt::Display for FilterMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterMemory::None => write!(f, "none"),
            FilterMemory::Uniform(uniform) => write!(f, "uniform(bits={})", uniform.bits),
            FilterMemory::Monkey(monkey) => write!(f, "monkey(bits={})", monkey.bits),
            FilterMemory::Mnemosyne(Mnemosyne { bits, stays, sample }) => {
                write!(f, "mnemosyne(bits={bits}")?;
                if *stays != 0.0 {
                    write!(f, ",stays={stays}")?;
                }
                if *sample != SAMPLE {
                    write!(f, ",sample={sample}")?;
                }
                f.write_str(")")
            }
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
            "windrow",
            "autumn shape=garnering(2,c=0.8,base=growing) level0=fifo",
            "l2sm pick=sst_log(paper) filters=monkey(2) cut=overlap(f=4,min_bytes=10)",
            "vlsm pick=sst_log(closed,omega=0.02,depth=3)",
            "l2sm pick=sst_log(paper,share=12,ratio=0.2)",
            "mnemosyne level0=partitioned(32,k=2,depth=6)",
            "windrow filters=mnemosyne(8,stays=0.5)",
            "mnemosyne filters=mnemosyne(8,sample=1)",
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
            ("", "the presets are windrow, leveled"),
            ("levelled", "no preset `levelled`; the presets are windrow, leveled"),
            ("shape=garnish", "no shape `garnish`; valid: leveling(t=10), garnering"),
            ("shape=leveling(t=1)", "must be a number from 1.5 to 1000"),
            ("shape=leveling(t=nan)", "must be a number"),
            ("shape=leveling(t=2,t=3)", "given twice"),
            ("shape=leveling(c=2)", "no option `c=2`; its options: t, phi"),
            ("level0=tiered(k=2.5)", "whole number"),
            ("level0=tiered(k=2", "lacks its `)`"),
            ("pick=leveled(file=best)", "min_overlap or round_robin"),
            ("cut=by_size(3)", "no option"),
            ("pick=sst_log(paper,ratio=0.2)", "give `share`, too"),
            ("pick=sst_log(open)", "`open`; it is paper or closed"),
            ("shape=garnering(t=8,0.7)", "no option `=0.7`; its options: t, c, base"),
            ("shape=garnering(8,t=7)", "given twice"),
            ("level0=partitioned(lanes=0)", "from 1 to 1024"),
            ("filters=mnemosyne(6,sample=3)", "no power of two"),
            ("filters=mnemosyne(6,sample=0)", "from 1 to 4096"),
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
