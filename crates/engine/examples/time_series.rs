//! Time series: samples of many series, kept for a fixed time, read by series and time.
//!
//! A key is the series' name, a zero byte and the time, most significant byte first, so
//! that a series is a range in the order of time. Samples expire by themselves.
//!
//! `cargo run --example time_series`

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use windrow::{Batch, Db, InKeyspace, ReadOptions, Ttl, WriteSync};

const MINUTE_MS: u64 = 60_000;
const KEPT: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("windrow-series-{}", std::process::id()));
    let series = Series::open(&path)?;

    // Ten hours of two ovens, as lines of text.
    let now = series.db.now_ms();
    let start = now - now % MINUTE_MS - 600 * MINUTE_MS;
    let mut lines = String::new();
    for minute in 0..600 {
        let at = start + minute * MINUTE_MS;
        lines += &format!("oven/1 {at} {}\noven/2 {at} 21.5\n", 180 + minute % 7);
    }
    assert_eq!(series.add_lines(&lines)?, 1_200);

    // A line that is wrong is named, and none of its batch is kept.
    let wrong = format!("oven/1 {now} 1\noven/1 noon 180");
    assert_eq!(series.add_lines(&wrong).unwrap_err().to_string(), "line 2: `noon` is not a time");
    let old = now - 25 * 60 * MINUTE_MS;
    assert!(matches!(series.add("oven/1", old, 1.0), Err(SeriesError::TooOld)));
    assert!(matches!(series.add("oven\0", now, 1.0), Err(SeriesError::BadName)));
    assert!(matches!(series.add("oven/1", now, f64::NAN), Err(SeriesError::NotANumber)));

    // An hour, by ten minutes; the newest sample; the names of the series.
    let hour = start + 60 * MINUTE_MS..start + 120 * MINUTE_MS;
    let means = series.means("oven/2", hour.clone(), 10 * MINUTE_MS)?;
    assert_eq!(means.len(), 6);
    assert_eq!(means[0], (hour.start, 21.5));
    assert_eq!(series.newest("oven/1")?, Some((start + 599 * MINUTE_MS, 184.0)));
    assert_eq!(series.newest("oven/")?, None, "the beginning of a name is another name");
    assert_eq!(series.names()?, ["oven/1", "oven/2"]);

    // A sample is kept for a day from its own time on, regardless of when it was added.
    let Ttl::Left(left) = series.db.ttl(key("oven/1", start))? else {
        panic!("it expires");
    };
    assert!(left <= KEPT - Duration::from_millis(now - start));

    series.remove("oven/1")?;
    series.db.close()?;
    let series = Series::open(&path)?;
    assert_eq!(series.names()?, ["oven/2"]);
    assert_eq!(series.samples("oven/2", 0..u64::MAX)?.len(), 600);
    series.db.close()?;
    Ok(Db::destroy(&path)?)
}

struct Series {
    db: Db,
}

impl Series {
    fn open(path: &Path) -> Result<Series, SeriesError> {
        Ok(Series { db: Db::open(path)? })
    }

    fn add(&self, name: &str, at_ms: u64, value: f64) -> Result<(), SeriesError> {
        let mut batch = Batch::new();
        self.add_to(&mut batch, name, at_ms, value)?;
        self.db.write(batch, WriteSync::No)?;
        Ok(())
    }

    fn add_to(
        &self,
        batch: &mut Batch,
        name: &str,
        at_ms: u64,
        value: f64,
    ) -> Result<(), SeriesError> {
        if name.is_empty() || name.len() > 255 || name.contains('\0') {
            return Err(SeriesError::BadName);
        }
        if !value.is_finite() {
            return Err(SeriesError::NotANumber);
        }
        let age = Duration::from_millis(self.db.now_ms().saturating_sub(at_ms));
        let left = KEPT.checked_sub(age).ok_or(SeriesError::TooOld)?;
        batch.put_with_ttl(&self.db, key(name, at_ms), value.to_be_bytes(), left);
        Ok(())
    }

    /// Adds samples, a line `name time value` each: all of them, or none. Returns their number.
    fn add_lines(&self, lines: &str) -> Result<usize, SeriesError> {
        let mut batch = Batch::new();
        for (number, line) in (1..).zip(lines.lines()) {
            let at_line = |error| SeriesError::Line(number, Box::new(error));
            let (name, at_ms, value) = parse(line).map_err(at_line)?;
            self.add_to(&mut batch, name, at_ms, value).map_err(at_line)?;
        }
        let count = batch.len();
        // One sync for all of them.
        self.db.write(batch, WriteSync::Yes)?;
        Ok(count)
    }

    fn samples(&self, name: &str, during: Range<u64>) -> Result<Vec<(u64, f64)>, SeriesError> {
        let entries = self.db.range(key(name, during.start)..key(name, during.end));
        entries
            .map(|entry| entry.map(|(key, value)| sample(&key, &value)).map_err(Into::into))
            .collect()
    }

    /// The mean of each step of `during` that has samples, with the step's beginning.
    fn means(
        &self,
        name: &str,
        during: Range<u64>,
        step_ms: u64,
    ) -> Result<Vec<(u64, f64)>, SeriesError> {
        let step = |at_ms: u64| (at_ms - during.start) / step_ms;
        let samples = self.samples(name, during.clone())?;
        let steps = samples.chunk_by(|a, b| step(a.0) == step(b.0));
        let mean = |of_step: &[(u64, f64)]| {
            let sum: f64 = of_step.iter().map(|sample| sample.1).sum();
            let begin = during.start + step(of_step[0].0) * step_ms;
            (begin, sum / of_step.len() as f64)
        };
        Ok(steps.map(mean).collect())
    }

    fn newest(&self, name: &str) -> Result<Option<(u64, f64)>, SeriesError> {
        let newest = self.db.range(key(name, 0)..=key(name, u64::MAX)).next_back().transpose()?;
        Ok(newest.map(|(key, value)| sample(&key, &value)))
    }

    /// The names of all series: one seek for each, however many samples it has.
    fn names(&self) -> Result<Vec<String>, SeriesError> {
        let mut cursor = self.db.cursor(ReadOptions::default());
        let mut names = Vec::new();
        let mut is_at_one = cursor.seek_first()?;
        while is_at_one {
            let key = cursor.key();
            let name = &key[..key.len() - 1 - size_of::<u64>()];
            // The byte after the one that ends a name.
            let behind = [name, &[1]].concat();
            names.push(String::from_utf8_lossy(name).into_owned());
            is_at_one = cursor.seek(&behind)?;
        }
        Ok(names)
    }

    /// Removes a series at once, however many samples it has.
    fn remove(&self, name: &str) -> Result<(), SeriesError> {
        Ok(self.db.clear_prefix([name.as_bytes(), &[0]].concat())?)
    }
}

fn key(name: &str, at_ms: u64) -> Vec<u8> {
    [name.as_bytes(), &[0], &at_ms.to_be_bytes()].concat()
}

fn sample(key: &[u8], value: &[u8]) -> (u64, f64) {
    let (_, at_ms) = key.split_at(key.len() - size_of::<u64>());
    let at_ms = u64::from_be_bytes(at_ms.try_into().expect("eight bytes"));
    (at_ms, f64::from_be_bytes(value.try_into().expect("eight bytes")))
}

fn parse(line: &str) -> Result<(&str, u64, f64), SeriesError> {
    let mut words = line.split(' ');
    let (Some(name), Some(at), Some(value), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(SeriesError::NotALine);
    };
    let at_ms = at.parse().map_err(|_| SeriesError::NotATime(at.to_owned()))?;
    let value = value.parse().map_err(|_| SeriesError::NotANumber)?;
    Ok((name, at_ms, value))
}

/// Why a sample was not added, or not found.
#[derive(Debug)]
pub(crate) enum SeriesError {
    Line(usize, Box<SeriesError>),
    NotALine,
    NotATime(String),
    NotANumber,
    BadName,
    TooOld,
    Database(windrow::Error),
}

impl From<windrow::Error> for SeriesError {
    fn from(error: windrow::Error) -> SeriesError {
        SeriesError::Database(error)
    }
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeriesError::Line(number, error) => write!(f, "line {number}: {error}"),
            SeriesError::NotALine => write!(f, "not a name, a time and a value"),
            SeriesError::NotATime(word) => write!(f, "`{word}` is not a time"),
            SeriesError::NotANumber => write!(f, "the value is not a number"),
            SeriesError::BadName => write!(f, "a name has 1 to 255 bytes, none of them zero"),
            SeriesError::TooOld => write!(f, "the sample is older than what is kept"),
            SeriesError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SeriesError {}
