//! Trees as text: one file a line, parsed and printed alike, so that a test
//! builds a tree from six lines and a report prints what it saw.
//!
//! ```text
//! next_epoch 9
//! L0.sst_log 12 [a,m] epoch=8 bytes=2M seq=90-99
//! L1.run 5 [c,f) tombstones=40 ranges=1
//! ```
//!
//! A line of a file is level and half, number, bounds (`[lo,hi]`, or `[lo,hi)` for an exclusive
//! end), then any of `epoch=`, `bytes=` (K, M, G), `entries=`, `tombstones=`, `ranges=`,
//! `seq=min-max`, `points=lo-hi` or `points=none`, `created=`, `ingested=`, `expiring=count@ms`,
//! `hotness=`, `uid=`. Other lines: `shape_levels`, `next_epoch`, `boundaries k k`,
//! `cursor level key`, `flushed_through`. Keys are printable ASCII without `[],()-%` and spaces,
//! anything else as `%xx`.
//!
//! Owns: the text form and its defaults. Never does: store a tree: the manifest has `codec.rs`.

use super::edit::Edit;
use super::file::{File, Part};
use super::version::Version;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::str::FromStr;
use windrow_base::{Error, KeyOrder, Result};

impl FromStr for Version {
    type Err = Error;

    /// Builds a tree in bytewise order from its text. An attribute that a line lacks has its
    /// default: 1 MiB, 100 entries, no tombstones, points over the whole bounds (up to `lo` if the
    /// end is exclusive), sequence numbers equal to the file number, epochs from the last log line
    /// of a level up.
    ///
    /// # Errors
    /// `InvalidArgument` naming the line for what cannot be read, `Corruption`
    /// for a tree that breaks an invariant.
    fn from_str(text: &str) -> Result<Version> {
        let mut edit = Edit::default();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            parse_line(line, &mut edit)
                .ok_or_else(|| Error::invalid(format!("not a line of a tree: `{line}`")))?;
        }
        default_epochs(&mut edit);
        let version = Version::empty(KeyOrder::Bytewise).apply(&edit)?;
        version.check()?;
        Ok(version)
    }
}

/// Log files without an epoch get one by their place in the text: later lines are older.
fn default_epochs(edit: &mut Edit) {
    let count = edit.added.len() as u64;
    for (i, (_, part, file)) in edit.added.iter_mut().enumerate() {
        if *part == Part::SstLog && file.epoch == 0 {
            Arc::make_mut(file).epoch = count - i as u64;
        }
        debug_assert!((*part == Part::Run) || file.epoch > 0, "table {} has no epoch", file.number);
    }
}

fn parse_line(line: &str, edit: &mut Edit) -> Option<()> {
    let (word, rest) = line.split_once(' ')?;
    let mut rest = rest.split_whitespace();
    match word {
        "shape_levels" => edit.shape_levels = Some(rest.next()?.parse().ok()?),
        "next_epoch" => edit.next_epoch = Some(rest.next()?.parse().ok()?),
        "flushed_through" => edit.flushed_through = Some(rest.next()?.parse().ok()?),
        "boundaries" => {
            edit.boundaries = Some(rest.by_ref().map(parse_key).collect::<Option<Vec<_>>>()?.into())
        }
        "cursor" => {
            let level = rest.next()?.parse().ok()?;
            edit.cursors.push((level, Some(parse_key(rest.next()?)?)));
        }
        place => {
            let (level, part) = parse_place(place)?;
            let number = rest.next()?.parse().ok()?;
            let mut file = parse_bounds(rest.next()?)?;
            file.number = number;
            (file.uid, file.seq_min, file.seq_max) = (number, number, number);
            (file.bytes, file.entries) = (1 << 20, 100);
            let last = if file.largest_exclusive { &file.smallest } else { &file.largest };
            file.point_bounds = Some((file.smallest.clone(), last.clone()));
            for attribute in rest.by_ref() {
                parse_attribute(attribute, &mut file)?;
            }
            edit.added.push((level, part, Arc::new(file)));
        }
    }
    rest.next().is_none().then_some(())
}

/// Reads `L1.run`.
pub fn parse_place(text: &str) -> Option<(u32, Part)> {
    let (level, part) = text.strip_prefix('L')?.split_once('.')?;
    let part = match part {
        "run" => Part::Run,
        "sst_log" => Part::SstLog,
        _ => return None,
    };
    Some((level.parse().ok()?, part))
}

fn parse_bounds(text: &str) -> Option<File> {
    let inner = text.strip_prefix('[')?;
    let (inner, largest_exclusive) = match inner.strip_suffix(']') {
        Some(inner) => (inner, false),
        None => (inner.strip_suffix(')')?, true),
    };
    let (lo, hi) = inner.split_once(',')?;
    Some(File {
        smallest: parse_key(lo)?.into(),
        largest: parse_key(hi)?.into(),
        largest_exclusive,
        ..File::default()
    })
}

fn parse_attribute(text: &str, file: &mut File) -> Option<()> {
    let (name, value) = text.split_once('=')?;
    match name {
        "epoch" => file.epoch = value.parse().ok()?,
        "bytes" => file.bytes = parse_bytes(value)?,
        "uid" => file.uid = value.parse().ok()?,
        "entries" => file.entries = value.parse().ok()?,
        "tombstones" => file.point_tombstones = value.parse().ok()?,
        "ranges" => file.range_tombstones = value.parse().ok()?,
        "hotness" => file.hotness = value.parse().ok()?,
        "created" => file.created_ms = value.parse().ok()?,
        "ingested" => file.is_ingested = value.parse().ok()?,
        "seq" => {
            let (min, max) = value.split_once('-')?;
            (file.seq_min, file.seq_max) = (min.parse().ok()?, max.parse().ok()?);
        }
        "points" if value == "none" => {
            file.point_bounds = None;
            file.entries = 0;
        }
        "points" => {
            let (first, last) = value.split_once('-')?;
            file.point_bounds = Some((parse_key(first)?.into(), parse_key(last)?.into()));
        }
        "expiring" => {
            let (count, ms) = value.split_once('@')?;
            (file.expiring_entries, file.expiry_min_ms) = (count.parse().ok()?, ms.parse().ok()?);
        }
        _ => return None,
    }
    Some(())
}

/// Reads a size with an optional K, M or G.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Reads a key as [`KeyText`] prints it.
pub fn parse_key(text: &str) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            key.push(byte);
            continue;
        }
        let high = (bytes.next()? as char).to_digit(16)?;
        let low = (bytes.next()? as char).to_digit(16)?;
        key.push((high << 4 | low) as u8);
    }
    Some(key)
}

/// A key as text: printable ASCII as it is, the rest as `%xx`.
pub struct KeyText<'a>(pub &'a [u8]);

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| match byte {
            b'[' | b']' | b',' | b'(' | b')' | b'-' | b'%' | b'@' => write!(f, "%{byte:02x}"),
            0x21..=0x7e => f.write_char(byte as char),
            _ => write!(f, "%{byte:02x}"),
        })
    }
}

struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n > 0 && n.is_multiple_of(1 << 30) => write!(f, "{}G", n >> 30),
            n if n > 0 && n.is_multiple_of(1 << 20) => write!(f, "{}M", n >> 20),
            n if n > 0 && n.is_multiple_of(1 << 10) => write!(f, "{}K", n >> 10),
            n => write!(f, "{n}"),
        }
    }
}

/// The file as a line of a text tree has it, after level and half.
impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let close = if self.largest_exclusive { ')' } else { ']' };
        write!(
            f,
            "{} [{},{}{close}",
            self.number,
            KeyText(&self.smallest),
            KeyText(&self.largest)
        )?;
        if self.epoch != 0 {
            write!(f, " epoch={}", self.epoch)?;
        }
        write!(f, " bytes={} entries={}", Size(self.bytes), self.entries)?;
        write!(f, " seq={}-{}", self.seq_min, self.seq_max)?;
        let mut counted = |name: &str, n: u64| match n {
            0 => Ok(()),
            n => write!(f, " {name}={n}"),
        };
        counted("tombstones", self.point_tombstones)?;
        counted("ranges", self.range_tombstones)?;
        counted("hotness", self.hotness)?;
        counted("created", self.created_ms)?;
        if self.is_ingested {
            write!(f, " ingested=true")?;
        }
        if self.expiring_entries > 0 {
            write!(f, " expiring={}@{}", self.expiring_entries, self.expiry_min_ms)?;
        }
        match &self.point_bounds {
            None => write!(f, " points=none"),
            Some((first, last))
                if *first == self.smallest && *last == self.largest && !self.largest_exclusive =>
            {
                Ok(())
            }
            Some((first, last)) => write!(f, " points={}-{}", KeyText(first), KeyText(last)),
        }
    }
}

/// The tree as text that parses to it again.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shape_levels != 1 {
            writeln!(f, "shape_levels {}", self.shape_levels)?;
        }
        if self.next_epoch != 1 {
            writeln!(f, "next_epoch {}", self.next_epoch)?;
        }
        if self.flushed_through != 0 {
            writeln!(f, "flushed_through {}", self.flushed_through)?;
        }
        if !self.boundaries.is_empty() {
            write!(f, "boundaries")?;
            self.boundaries.iter().try_for_each(|key| write!(f, " {}", KeyText(key)))?;
            writeln!(f)?;
        }
        for (level, key) in self.cursors.iter().enumerate() {
            if let Some(key) = key {
                writeln!(f, "cursor {level} {}", KeyText(key))?;
            }
        }
        for (level, part, file) in self.files() {
            writeln!(f, "L{level}.{} {file}", part.name())?;
        }
        Ok(())
    }
}
