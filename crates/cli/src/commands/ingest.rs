//! `load --sorted` and `load --bulk`: all lines by one ingestion, which adds all or none.
//!
//! Owns: errors that name the line, and say that nothing was loaded. Never does: commit a part of
//! the input.

use crate::args::LoadArgs;
use crate::failure::{Failure, Result};
use crate::formats::{Event, NumberedPair, PairReader};
use crate::progress::Progress;
use crate::sorter::Sorter;
use crate::{human, stop};
use std::path::Path;
use windrow::{Db, Ingest, KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The number of lines between two checks for Ctrl-C.
const LOOK_LINES: u64 = 4096;

/// Loads all lines: `first`, if that was read already, and those after it. Returns their number.
///
/// # Errors
/// The mistake in a line, or the error of a table that could not be written. Nothing was loaded
/// then.
pub(super) fn all(
    (reader, first, name): (&mut PairReader, Option<&NumberedPair>, &str),
    db: &Db,
    args: &LoadArgs,
    progress: (&Progress, bool),
) -> Result<u64> {
    let keyspace = db.keyspace(&args.data.keyspace)?;
    let mut ingest = keyspace.ingest()?;
    let loaded = match args.bulk {
        false => each_line(reader, first, progress, |line, key, value| {
            check_limits(line, name, key, value)?;
            let put = put(&mut ingest, args, key, value);
            put.map_err(|error| {
                let failure = Failure::from(error.context(format!("line {line} of {name}")));
                failure
                    .hint("load it by --bulk, which sorts it, or sort it by `LC_ALL=C sort` first")
            })
        }),
        true => sorted((reader, first, name), &mut ingest, args, progress),
    };
    let lines = loaded.map_err(|failure| failure.and("nothing is loaded"))?;
    ingest.finish().map_err(|error| Failure::from(error).and("nothing is loaded"))?;
    Ok(lines)
}

fn put(ingest: &mut Ingest, args: &LoadArgs, key: &[u8], value: &[u8]) -> windrow::Result<()> {
    match args.ttl {
        Some(ttl) => ingest.put_with_ttl(key, value, ttl),
        None => ingest.put(key, value),
    }
}

/// Passes each line to `take`. Returns their number.
fn each_line(
    reader: &mut PairReader,
    first: Option<&NumberedPair>,
    (progress, by_bytes): (&Progress, bool),
    mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<()>,
) -> Result<u64> {
    let mut lines = 0;
    if let Some((line, key, value)) = first {
        take(*line, key, value)?;
        lines += 1;
    }
    loop {
        match reader.next(false)? {
            Event::Pair { line, key, value } => take(line, key, value)?,
            Event::Idle => continue,
            Event::Skipped => {
                stop::check()?;
                continue;
            }
            Event::End => return Ok(lines),
        }
        lines += 1;
        if lines.is_multiple_of(LOOK_LINES) {
            progress.at(if by_bytes { reader.position() } else { lines });
            stop::check()?;
        }
    }
}

/// Sorts all lines, and puts them in the order of their keys.
fn sorted(
    (reader, first, name): (&mut PairReader, Option<&NumberedPair>, &str),
    ingest: &mut Ingest,
    args: &LoadArgs,
    progress: (&Progress, bool),
) -> Result<u64> {
    let dir = args.temp.as_deref().unwrap_or_else(|| next_to(&args.open.path));
    let mut sorter = Sorter::new(dir, args.sort_memory << 20);
    let lines = each_line(reader, first, progress, |line, key, value| {
        check_limits(line, name, key, value)?;
        sorter.push(key, value)
    })?;
    let progress = progress.0;
    progress.go_on("writing tables", lines);
    let mut pairs = sorter.finish()?;
    let failed = |error| Failure::file("sort by temporary files in", dir.display(), &error);
    let mut count = 0u64;
    while let Some((key, value)) = pairs.next().map_err(failed)? {
        put(ingest, args, key, value)?;
        count += 1;
        if count.is_multiple_of(LOOK_LINES) {
            progress.at(count);
            stop::check()?;
        }
    }
    Ok(lines)
}

/// Returns the directory that the database is in: on the same file system, as a rule.
fn next_to(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Fails if the pair is longer than any database takes.
fn check_limits(line: u64, name: &str, key: &[u8], value: &[u8]) -> Result<()> {
    let too_long = |what: &str, bytes: usize, max: usize| {
        let max = human::size(max as u64);
        Failure::failed(format!(
            "line {line} of {name}: the {what} has {bytes} bytes, more than {max}"
        ))
        .hint("take the line out, and load again")
    };
    if key.len() > KEY_BYTES_MAX {
        return Err(too_long("key", key.len(), KEY_BYTES_MAX));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(too_long("value", value.len(), VALUE_BYTES_MAX));
    }
    Ok(())
}
