//! `load`: pairs from a file or a pipe into the database, group by group, or by an ingestion.
//!
//! A group is one atomic batch, and groups are committed in the order of the input by one thread:
//! after a crash the database has always the first n lines. An ingestion (`--sorted`, `--bulk`)
//! adds all lines or none.
//!
//! Owns: the groups and their acknowledgements. Never does: parse a line (`formats.rs` does).

use super::ingest;
use crate::args::{EXIT_LOST, LoadArgs};
use crate::failure::{Failure, Result};
use crate::formats::{Event, NumberedPair, PairReader};
use crate::human::{self, Stopwatch};
use crate::input::Source;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::stop;
use crate::store::{self, Access};
use std::io::{self, Write};
use std::time::Duration;
use windrow::{Batch, Db, Keyspace, WriteSync};

/// A group is committed before it grows beyond this many bytes, if its number of lines does not end
/// it before; a longer line is a group of its own. The limit is far below the largest batch at any
/// setting, which is for such a line alone.
const GROUP_BYTES: usize = 256 << 10;

/// The pending group, and the counts of the load.
struct Groups<'a> {
    db: &'a Db,
    keyspace: Keyspace,
    sync: WriteSync,
    ack: bool,
    ttl: Option<Duration>,
    lines_max: u64,
    batch: Batch,
    lines_pending: u64,
    /// The numbers of the first and the last pending line in the input.
    pending: (u64, u64),
    lines_loaded: u64,
    /// The input's name.
    name: &'a str,
}

impl<'a> Groups<'a> {
    fn new(db: &'a Db, args: &LoadArgs, name: &'a str) -> Result<Groups<'a>> {
        Ok(Groups {
            db,
            keyspace: db.keyspace(&args.data.keyspace)?,
            sync: if args.sync || args.ack { WriteSync::Yes } else { WriteSync::No },
            ack: args.ack,
            ttl: args.ttl,
            lines_max: args.group,
            batch: Batch::new(),
            lines_pending: 0,
            pending: (0, 0),
            lines_loaded: 0,
            name,
        })
    }

    /// Returns whether the user waits for the report that a line is durable.
    fn is_synced(&self) -> bool {
        matches!(self.sync, WriteSync::Yes)
    }

    /// Adds the pair of a line; the pending lines are committed first where both would be too much
    /// for a group.
    fn push(&mut self, line: u64, key: &[u8], value: &[u8]) -> Result<()> {
        if self.batch.byte_len() + key.len() + value.len() > GROUP_BYTES {
            self.commit()?;
        }
        match self.ttl {
            Some(ttl) => self.batch.put_with_ttl(&self.keyspace, key, value, ttl),
            None => self.batch.put(&self.keyspace, key, value),
        }
        self.pending = (if self.lines_pending == 0 { line } else { self.pending.0 }, line);
        self.lines_pending += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.lines_pending >= self.lines_max || self.batch.byte_len() >= GROUP_BYTES
    }

    /// Commits the pending lines and acknowledges them.
    fn commit(&mut self) -> Result<()> {
        // The count is taken first: a group that failed is not tried again.
        let lines = std::mem::take(&mut self.lines_pending);
        if lines == 0 {
            return Ok(());
        }
        let written = self.db.write(&mut self.batch, self.sync);
        self.batch.clear();
        written.map_err(|error| {
            let ((first, last), name) = (self.pending, self.name);
            error.context(match first == last {
                true => format!("line {first} of {name}"),
                false => format!("lines {first} to {last} of {name}"),
            })
        })?;
        self.lines_loaded += lines;
        if self.ack { self.acknowledge() } else { Ok(()) }
    }

    /// Prints the number of durable lines. A closed reader is a failure here, unlike elsewhere: the
    /// output is incomplete, and the rest of the input is not loaded.
    fn acknowledge(&self) -> Result<()> {
        let mut out = io::stdout().lock();
        let told = writeln!(out, "{}", self.lines_loaded).and_then(|()| out.flush());
        told.map_err(|error| Failure::file("acknowledge to", "standard output", &error))
    }
}

pub(crate) fn run(args: &LoadArgs, quiet: bool) -> Result<()> {
    #[cfg(feature = "import")]
    if let Some(from) = args.from {
        return super::foreign_databases::import(args, from, quiet);
    }
    let layout = Layout::new(args.format, args.data.hex, &args.fields)?.with_crlf(args.crlf)?;
    store::check_keyspace_name(&args.data.keyspace)?;
    // Before the database is created: a wrong file name must not leave one.
    let source = Source::open(args.file.as_deref())?;
    let progress = match source.bytes_total() {
        Some(bytes) => Progress::bytes(quiet, "loading", bytes),
        None => Progress::counting(quiet, "lines loaded"),
    };
    let by_bytes = source.bytes_total().is_some();
    let name = source.name().to_owned();
    let mut reader = PairReader::new(source, &layout).skipping(args.skip_errors);
    let first = first_pair(&mut reader, args)?;
    let watch = Stopwatch::start();
    let lines = store::with(&args.open, Access::Create, |db| {
        if args.sorted || args.bulk {
            let progress = (&progress, by_bytes);
            return ingest::all((&mut reader, first.as_ref(), &name), db, args, progress);
        }
        let mut groups = Groups::new(db, args, &name)?;
        if let Some((line, key, value)) = &first {
            groups.push(*line, key, value)?;
        }
        let outcome = pump(&mut reader, &mut groups, |reader, lines| {
            progress.at(if by_bytes { reader.position() } else { lines });
        });
        finish(outcome, &mut groups)
    })?;
    drop(progress);
    if reader.looks_like_crlf() {
        store::warn("every value ends in a carriage return: for a file of Windows use --crlf");
    }
    if !quiet {
        summary(lines, reader.position(), watch.elapsed());
    }
    if reader.skipped() > 0 {
        let lines = human::plural(reader.skipped(), "line");
        store::warn(format_args!("{lines} of {name} left out (--skip-errors)"));
        return Err(Failure::Said(EXIT_LOST));
    }
    Ok(())
}

/// Returns the first pair, where there is no database yet: an input that is bad from its first line
/// on must not leave an empty one.
fn first_pair(reader: &mut PairReader, args: &LoadArgs) -> Result<Option<NumberedPair>> {
    if args.open.session.is_some() || args.open.path.exists() {
        return Ok(None);
    }
    loop {
        match reader.next(false) {
            Ok(Event::Pair { line, key, value }) => {
                return Ok(Some((line, key.to_vec(), value.to_vec())));
            }
            Ok(Event::Skipped) => stop::check()?,
            Ok(Event::Idle | Event::End) => return Ok(None),
            Err(failure) => return Err(failure.and("nothing is loaded")),
        }
    }
}

/// Loads the input to its end, a bad line, or Ctrl-C.
fn pump(
    reader: &mut PairReader,
    groups: &mut Groups<'_>,
    report: impl Fn(&PairReader, u64),
) -> Result<()> {
    let tell_idle = groups.is_synced();
    loop {
        match reader.next(tell_idle && groups.lines_pending > 0)? {
            Event::Pair { line, key, value } => {
                groups.push(line, key, value)?;
                if !groups.is_full() {
                    continue;
                }
            }
            Event::Skipped => {
                stop::check()?;
                continue;
            }
            Event::Idle => {}
            Event::End => return groups.commit(),
        }
        groups.commit()?;
        report(reader, groups.lines_loaded);
        stop::check()?;
    }
}

/// Commits the lines before the one at which the input broke off, and only those, and reports their
/// number.
fn finish(outcome: Result<()>, groups: &mut Groups<'_>) -> Result<u64> {
    let Err(failure) = outcome else { return Ok(groups.lines_loaded) };
    groups.commit()?;
    let loaded = human::plural(groups.lines_loaded, "line");
    if matches!(failure, Failure::Interrupted) {
        let _ = writeln!(io::stderr(), "windrow: stopped; {loaded} loaded");
    }
    Err(failure.and(format_args!("{loaded} before it loaded")))
}

fn summary(lines: u64, bytes: u64, elapsed: Duration) {
    let _ = writeln!(
        io::stderr(),
        "loaded {} ({}) in {}: {} a second",
        human::plural(lines, "line"),
        human::size(bytes),
        human::time(elapsed),
        human::count(human::per_second(lines, elapsed)),
    );
}
