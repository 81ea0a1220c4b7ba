//! Maintenance of a database: `verify`, `repair`, `compact`, `checkpoint`, `destroy`.
//!
//! Owns: their reports and exit codes. Never does: check or repair (the library does).

use super::ask::ask;
use crate::args::{CheckpointArgs, CompactArgs, DestroyArgs, EXIT_LOST, RepairArgs, VerifyArgs};
use crate::failure::{Failure, Result};
use crate::human::{self, Stopwatch};
use crate::picture;
use crate::progress::Progress;
use crate::stop;
use crate::store::{self, Access};
use std::io::{self, Write};
use windrow::Db;
use windrow::inspect::{DamagedLog, DamagedTable, LostRange, RepairReport, VerifyReport};

pub(crate) fn verify(args: &VerifyArgs, quiet: bool) -> Result<()> {
    let report = store::with(&args.open, Access::Read, |db| {
        let progress = Progress::bytes(quiet, "verifying", tables_bytes(db));
        Ok(db.verify_with_progress(|so_far| progress.at(so_far.bytes))?)
    })?;
    let mut out = io::stdout().lock();
    let printed = match args.json {
        true => print_verified_json(&mut out, &report),
        false => print_verified(&mut out, &report),
    };
    // The damage comes first: it is a failure whether or not anybody reads the report.
    report.into_result()?;
    printed
}

fn verdict(report: &VerifyReport) -> &'static str {
    match (report.damaged().count(), report.unreadable().count()) {
        (0, 0) if !report.records_left_out.is_empty() => "sound, but for what is left out",
        (0, 0) => "sound",
        (0, _) => "not all could be read",
        _ => "damaged",
    }
}

fn print_verified_json(out: &mut impl Write, report: &VerifyReport) -> Result<()> {
    let texts = |problems: Vec<&windrow::Error>| -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    };
    let told = serde_json::json!({
        "verdict": verdict(report),
        "tables": report.tables,
        "bytes": report.bytes,
        "entries": report.entries,
        "logs": report.logs,
        "log_bytes": report.log_bytes,
        "log_batches": report.log_batches,
        "log_operations": report.log_operations,
        "manifest_records": report.manifest_records,
        "damaged": texts(report.damaged().collect()),
        "unreadable": texts(report.unreadable().collect()),
        "left_out": report.records_left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    writeln!(out, "{told}")?;
    Ok(out.flush()?)
}

fn print_verified(out: &mut impl Write, report: &VerifyReport) -> Result<()> {
    for problem in report.damaged() {
        writeln!(out, "damaged: {problem}")?;
    }
    for problem in report.unreadable() {
        writeln!(out, "could not be read: {problem}")?;
    }
    for records in &report.records_left_out {
        writeln!(out, "left out: {records}")?;
    }
    let verdict = verdict(report);
    writeln!(
        out,
        "{} of {}, {}; {} of {}, {} with {}; {} of the manifest: {verdict}",
        human::plural(report.tables, "table"),
        human::size(report.bytes),
        human::plural(report.entries, "entry"),
        human::plural(report.logs, "log"),
        human::size(report.log_bytes),
        human::plural(report.log_batches, "batch"),
        human::plural(report.log_operations, "operation"),
        human::plural(report.manifest_records, "record"),
    )?;
    Ok(out.flush()?)
}

pub(crate) fn repair(args: &RepairArgs, quiet: bool) -> Result<()> {
    store::must_exist(&args.open.path)?;
    let options = store::repair_options(&args.open)?;
    let progress = Progress::waiting(quiet, "repairing");
    let repair = || windrow::repair(&args.open.path, options.clone());
    let report = store::when_free(&args.open, repair)??;
    drop(progress);
    let printed = print_repaired(&mut io::stdout().lock(), args, &report);
    if !report.lost_something() {
        return printed;
    }
    // A loss has its exit code whether or not anybody reads the report.
    if let Err(failure) = printed {
        failure.report();
    }
    Err(Failure::Said(EXIT_LOST))
}

fn print_repaired(out: &mut impl Write, args: &RepairArgs, report: &RepairReport) -> Result<()> {
    for problem in &report.problems {
        writeln!(out, "{problem}")?;
    }
    if report.manifest_rebuilt {
        writeln!(out, "the manifest was made again from the tables and logs")?;
    }
    for name in &report.keyspaces_renamed {
        writeln!(out, "a keyspace whose name is lost is called {name} now")?;
    }
    for file in &report.tables_of_another_database {
        writeln!(out, "{file}: left out: a table of another database")?;
    }
    if report.tables_of_unknown_database > 0 {
        writeln!(
            out,
            "{} taken in that an earlier version wrote, and not known to be of this database",
            human::plural(report.tables_of_unknown_database, "table"),
        )?;
    }
    report.tables.iter().try_for_each(|table| print_table(out, table))?;
    for DamagedLog { file, from_byte, bytes, whole_batches } in &report.logs {
        match bytes {
            _ if *whole_batches > 0 => writeln!(
                out,
                "{file}: lost: what bytes {from_byte}..{bytes} hold, {} among it",
                human::plural(*whole_batches, "whole batch"),
            )?,
            0 => writeln!(out, "{file}: lost: all that it held")?,
            // The log was cut off exactly behind a record.
            _ if from_byte >= bytes => {
                writeln!(out, "{file}: lost: what followed byte {from_byte}")?;
            }
            _ => writeln!(out, "{file}: lost: what bytes {from_byte}..{bytes} hold")?,
        }
    }
    writeln!(
        out,
        "{} kept whole, {} saved in part ({}), {} lost; {} replayed from logs",
        human::plural(report.tables_kept, "table"),
        human::count(report.tables_salvaged),
        human::plural(report.entries_salvaged, "entry"),
        human::count(report.tables_lost),
        human::plural(report.batches_replayed, "batch"),
    )?;
    if !report.originals.is_empty() {
        writeln!(
            out,
            "{} as they were: {}",
            human::plural(report.originals.len() as u64, "original"),
            args.open.path.join("lost").display(),
        )?;
    }
    let verdict = if report.lost_something() { "something is lost" } else { "nothing is lost" };
    writeln!(out, "{verdict}")?;
    Ok(out.flush()?)
}

fn print_table(out: &mut impl Write, table: &DamagedTable) -> Result<()> {
    let keyspace = table.keyspace.as_deref().unwrap_or("an unknown keyspace");
    let saved = human::count(table.entries_saved);
    let of = match table.entries {
        Some(entries) => human::plural(entries, "entry"),
        None => "an unknown number of entries".to_owned(),
    };
    writeln!(out, "{} of {keyspace}: {saved} of {of} saved", table.file)?;
    if table.range_tombstones != Some(0) && !table.range_tombstones_saved {
        writeln!(out, "  lost: its range deletes, if it had any")?;
    }
    if table.in_doubt {
        writeln!(out, "  left out: merge operands that newer tables may hold too")?;
    }
    for LostRange { bytes, after, before } in &table.lost {
        let (start, end) = (bytes.start, bytes.end);
        let keys = match (after, before) {
            (Some(after), Some(before)) => {
                format!("keys from {} to {}", shown(after), shown(before))
            }
            (Some(after), None) => format!("keys from {} on", shown(after)),
            (None, Some(before)) => format!("keys up to {}", shown(before)),
            (None, None) => "all keys".to_owned(),
        };
        writeln!(out, "  lost: bytes {start}..{end}, {keys}")?;
    }
    Ok(())
}

/// Returns a key on a line of text.
fn shown(key: &[u8]) -> String {
    format!("\"{}\"", key.escape_ascii())
}

pub(crate) fn compact(args: &CompactArgs, quiet: bool) -> Result<()> {
    let (before, after, time) = store::with(&args.open, Access::Change, |db| {
        let (before, watch) = (tables_bytes(db), Stopwatch::start());
        let progress = Progress::compacting(quiet, db);
        stop::closes(db, || match &args.keyspace {
            Some(name) => Ok(store::keyspace(db, name)?.compact()?),
            None => Ok(db.compact()?),
        })?;
        drop(progress);
        Ok((before, tables_bytes(db), watch.elapsed()))
    })?;
    if !quiet {
        let (before, after, time) = (human::size(before), human::size(after), human::time(time));
        let _ =
            writeln!(io::stderr(), "compacted in {time}: tables {before} before, {after} after");
    }
    Ok(())
}

fn tables_bytes(db: &Db) -> u64 {
    picture::of(db).iter().map(picture::TreeView::bytes).sum()
}

pub(crate) fn checkpoint(args: &CheckpointArgs, quiet: bool) -> Result<()> {
    let copied = store::with_opened(&args.open, Access::Change, |opened| {
        let _progress = Progress::waiting(quiet, "copying");
        // A session that follows shows one moment: later writes belong to the copy, too.
        if opened.is_followed { Ok(None) } else { Ok(Some(opened.db.checkpoint(&args.target)?)) }
    });
    match copied {
        Ok(Some(())) => Ok(()),
        Err(failure) if !failure.is_busy() => Err(failure),
        // Another process writes it, and goes on.
        Ok(None) | Err(_) => {
            let follower = store::follow(&args.open)?;
            let _progress = Progress::waiting(quiet, "copying");
            Ok(follower.checkpoint(&args.target)?)
        }
    }
}

pub(crate) fn destroy(args: &DestroyArgs) -> Result<()> {
    store::must_exist(&args.path)?;
    let shown = args.path.display().to_string();
    ask(args.yes, &format!("Delete the database {shown} for good?"), &shown)?;
    Ok(Db::destroy(&args.path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow::{Error, ErrorKind};

    fn verdict(problems: Vec<Error>) -> String {
        let report = VerifyReport { logs: 2, log_operations: 7, problems, ..Default::default() };
        let mut out = Vec::new();
        print_verified(&mut out, &report).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_could_not_be_read_is_not_called_damaged() {
        let refused = || Error::new(ErrorKind::Io, "permission denied");
        let damaged = || Error::corruption("a checksum is wrong");
        assert!(verdict(vec![]).ends_with(": sound\n"));
        let text = verdict(vec![refused()]);
        assert!(text.contains("could not be read: ") && !text.contains("damaged"), "{text}");
        let text = verdict(vec![refused(), damaged()]);
        assert!(text.contains("could not be read: ") && text.ends_with(": damaged\n"), "{text}");
        assert!(text.contains("2 logs of ") && text.contains("7 operations"), "{text}");
    }
}
