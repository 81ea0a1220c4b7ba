//! Many keys in order: `scan`, `export`, `count` and `clear`.
//!
//! Owns: the walk over a range, and its reports. Never does: format a pair
//! (`formats.rs` does).

use super::ask::ask;
use crate::args::{ClearArgs, CountArgs, EXIT_LOST, ExportArgs, RangeArgs, ScanArgs};
use crate::bytes;
use crate::failure::{Failure, Result};
use crate::formats::{PairWriter, Reader};
use crate::human;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::stop;
use crate::store::{self, Access};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::Bound;
use windrow::{Cursor, Db, Error, ErrorKind, Keyspace, ReadOptions};

/// The number of pairs between two updates of the progress bar and checks for
/// Ctrl-C.
const CHECK_PAIRS: u64 = 1024;

/// The number of refusals that are reported one by one.
const REFUSED_SAID_MAX: u64 = 10;

/// The number of bytes of output written at once.
const OUTPUT_BYTES: usize = 1 << 18;

/// The range of a walk, and its direction.
struct Range {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    reverse: bool,
    limit: u64,
    /// Whether only keys are wanted: a key whose merge is refused has no value,
    /// and still counts as a key.
    keys_only: bool,
}

impl Range {
    /// Returns the range of all keys.
    fn all() -> Range {
        Range { lower: None, upper: None, reverse: false, limit: u64::MAX, keys_only: false }
    }

    fn of(args: &RangeArgs, hex: bool) -> Result<Range> {
        let key = |arg: &Option<std::ffi::OsString>| {
            arg.as_ref().map(|arg| bytes::from_arg(arg, hex)).transpose()
        };
        let prefix = key(&args.prefix)?;
        let prefix_end = prefix.as_deref().and_then(bytes::prefix_end);
        Ok(Range {
            lower: key(&args.from)?.max(prefix),
            upper: bytes::least(key(&args.to)?, prefix_end),
            ..Range::all()
        })
    }

    fn is_empty(&self) -> bool {
        let crossed =
            matches!((&self.lower, &self.upper), (Some(lower), Some(upper)) if upper <= lower);
        self.limit == 0 || crossed
    }
}

/// Keys that a walk skipped, since the merge operator refuses their values.
#[derive(Default)]
struct Refused {
    keys: u64,
}

impl Refused {
    /// Reports the first few such keys.
    fn note(&mut self, error: &Error) {
        self.keys += 1;
        if self.keys <= REFUSED_SAID_MAX {
            store::warn(error.message());
        }
    }

    /// Returns the command's outcome: a failure if keys were left out.
    fn end(&self) -> Result<()> {
        if self.keys == 0 {
            return Ok(());
        }
        store::warn(format_args!(
            "{} left out, for the merge operator refuses what is stored",
            human::plural(self.keys, "key")
        ));
        Err(Failure::Said(EXIT_LOST))
    }
}

/// Hands every pair of the range to `each`, in order.
fn walk(
    keyspace: &Keyspace,
    range: Range,
    mut each: impl FnMut(u64, &Cursor) -> Result<()>,
) -> Result<Refused> {
    let mut refused = Refused::default();
    if range.is_empty() {
        return Ok(refused);
    }
    let options = ReadOptions {
        lower: range.lower,
        upper: range.upper,
        fill_cache: false,
        ..ReadOptions::default()
    };
    let mut cursor = keyspace.cursor(options);
    let mut moved = if range.reverse { cursor.seek_last() } else { cursor.seek_first() };
    let mut pairs = 0u64;
    loop {
        let is_at_pair = match moved {
            Err(error) if error.kind() == ErrorKind::MergeRefused => {
                if !range.keys_only {
                    refused.note(&error);
                }
                range.keys_only
            }
            Ok(false) => break,
            moved => moved?,
        };
        if is_at_pair {
            pairs += 1;
            if pairs.is_multiple_of(CHECK_PAIRS) {
                stop::check()?;
            }
            each(pairs, &cursor)?;
        }
        if pairs == range.limit {
            break;
        }
        moved = if range.reverse { cursor.prev() } else { cursor.next() };
    }
    Ok(refused)
}

pub(crate) fn scan(args: &ScanArgs) -> Result<()> {
    let range = Range {
        reverse: args.reverse,
        keys_only: args.keys_only,
        limit: args.limit.unwrap_or(u64::MAX),
        ..Range::of(&args.range, args.data.hex)?
    };
    let layout = Layout::new(args.format, args.data.hex, &args.fields)?.for_output()?;
    store::with(&args.open, Access::Read, |db| {
        let keyspace = store::keyspace(db, &args.data.keyspace)?;
        let out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
        let mut writer = PairWriter::new(out, layout, Reader::of_stdout())
            .keys_only(args.keys_only)
            .numbers(args.number);
        let walked = walk(&keyspace, range, |_, at| writer.pair(at.key(), at.value()));
        // The pairs before an error are printed, too.
        let flushed = writer.flush();
        let refused = walked?;
        flushed?;
        refused.end()
    })
}

pub(crate) fn count(args: &CountArgs) -> Result<()> {
    let range = Range { keys_only: true, ..Range::of(&args.range, args.data.hex)? };
    store::with(&args.open, Access::Read, |db| {
        let mut count = 0;
        walk(&store::keyspace(db, &args.data.keyspace)?, range, |keys, _| {
            count = keys;
            Ok(())
        })?;
        let mut out = io::stdout().lock();
        if args.json {
            let keyspace = &args.data.keyspace;
            let told = serde_json::json!({ "keyspace": keyspace, "count": count });
            return Ok(writeln!(out, "{told}")?);
        }
        Ok(writeln!(out, "{count}")?)
    })
}

pub(crate) fn clear(args: &ClearArgs) -> Result<()> {
    let range = Range::of(&args.range, args.data.hex)?;
    if range.is_empty() {
        return Err(Failure::usage("no key is in that range: it ends before it begins"));
    }
    store::with(&args.open, Access::Change, |db| {
        let name = &args.data.keyspace;
        let keyspace = store::keyspace(db, name)?;
        if args.all {
            let what = format!("keyspace {name}");
            ask(args.yes, &format!("Delete all keys of {what}?"), &what)?;
        }
        let lower = range.lower.map_or(Bound::Unbounded, Bound::Included);
        let upper = range.upper.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(keyspace.clear_range((lower, upper))?)
    })
}

pub(crate) fn export(args: &ExportArgs, quiet: bool) -> Result<()> {
    #[cfg(feature = "import")]
    if let (Some(to), Some(dir)) = (args.to, &args.dir) {
        return super::foreign_databases::export(args, to, dir, quiet);
    }
    let layout = Layout::new(args.format, args.data.hex, &args.fields)?.for_output()?;
    store::with(&args.open, Access::Read, |db| {
        let keyspace = store::keyspace(db, &args.data.keyspace)?;
        let out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
        let mut writer = PairWriter::new(out, layout, Reader::of_stdout()).numbers(args.number);
        let total = keyspace.approximate_len()?;
        let quiet_bar = quiet || io::stdout().is_terminal();
        let progress = Progress::pairs(quiet_bar, "exporting", total);
        let mut expiring = 0;
        let walked = walk(&keyspace, Range::all(), |pairs, at| {
            if pairs.is_multiple_of(CHECK_PAIRS) {
                progress.at(pairs);
            }
            expiring += u64::from(at.expiry_ms().is_some());
            writer.pair(at.key(), at.value())
        });
        let flushed = writer.flush();
        drop(progress);
        // Damage is reported before a closed pipe.
        let refused = walked?;
        flushed?;
        tell_left_out(db, args, expiring, quiet);
        refused.end()
    })
}

/// Warns of the parts of the database that the export lacks: it must not pass
/// for a complete copy.
fn tell_left_out(db: &Db, args: &ExportArgs, expiring: u64, quiet: bool) {
    if expiring > 0 {
        store::warn(format_args!(
            "{} exported without the time of expiry: what is loaded from this stays",
            human::plural(expiring, "pair")
        ));
    }
    let mut others = db.keyspaces();
    others.retain(|name| *name != args.data.keyspace);
    if !quiet && !others.is_empty() {
        store::warn(format_args!(
            "only keyspace {} is exported; there are also: {} (--keyspace NAME; for a whole \
             copy `windrow checkpoint`)",
            args.data.keyspace,
            others.join(", ")
        ));
    }
}
