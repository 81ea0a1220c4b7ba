//! Verify, for files that are no tables: CURRENT, the manifest that it names, every log whose
//! records may be in no table yet, and those that are kept for the feed of changes.
//!
//! In a log that is being written the published part is read; in one that another process writes,
//! the whole records (`log/growing_log.rs`).
//!
//! Owns: the walk over them. Never does: replay, or judge what a torn end means (that is the
//! reader's and recovery's).

use super::report::VerifyReport;
use crate::database::Database;
use crate::discovery::manifest_tail::read_records;
use crate::discovery::read_current;
use crate::log::growing_log::{GrowingLog, Took};
use crate::log::log_source::LogSource;
use crate::log::seq_chain::{LogEntry, SeqChain};
use std::sync::Arc;
use windrow_base::{Error, Result};
use windrow_env::ReadFile;
use windrow_env::fs::{ReadFileOptions, is_not_found};
use windrow_format::log::{FILE_HEADER_BYTES, LogKind, LogReader, LogRecord};
use windrow_format::names;
use windrow_store::manifest::record::ManifestRecord;
use windrow_store::write::wal::Wal;

/// A log that is read.
struct Segment {
    file: LogSource,
    /// The end of the written part; `None`: as the file shows it.
    end: Option<u64>,
    /// Kept for the feed of changes alone.
    is_kept: bool,
}

/// Checks CURRENT and the manifest.
pub(super) fn verify_manifest(database: &Database, report: &mut VerifyReport) {
    if database.is_moment {
        let mut read = || {
            let (mut at, current) = (0, read_current(&database.env, &database.dir)?);
            read_records(&database.env, &database.dir, &current, &mut at, &mut |_| {
                report.manifest_records += 1;
                Ok(())
            })
        };
        return read().unwrap_or_else(|error| report.problems.push(error));
    }
    let file = match manifest_in_force(database) {
        Ok(Some(file)) => file,
        Ok(None) => return,
        Err(error) => return report.problems.push(error),
    };
    let read = || -> Result<u64> {
        let mut reader = LogReader::open(file, LogKind::Manifest, None)?;
        let mut records = 0;
        while let Some(record) = reader.next()? {
            ManifestRecord::decode(record.payload).map_err(|e| e.with_offset(record.offset))?;
            records += 1;
        }
        Ok(records)
    };
    match read() {
        Ok(records) => report.manifest_records = records,
        Err(error) => report.problems.push(error),
    }
}

/// The manifest, opened while it is in force, since another one may follow it. `None` for a
/// database that is being made, and has none yet.
fn manifest_in_force(database: &Database) -> Result<Option<Arc<dyn ReadFile>>> {
    let catalog = database.catalog.lock();
    let is_being_opened = catalog.log().is_none() && database.write_state.check().is_ok();
    if is_being_opened && !database.env.fs.exists(&database.dir.join(names::CURRENT))? {
        return Ok(None);
    }
    let current = read_current(&database.env, &database.dir)?;
    let number = current.manifest_number;
    let is_another =
        catalog.log().is_some_and(|log| (log.number, log.uid) != (number, current.manifest_uid));
    // Where writing is off, CURRENT may name the manifest of a change of manifests that failed
    // after the replacement of CURRENT. That manifest is as true.
    if is_another && database.write_state.check().is_ok() {
        let path = database.dir.join(names::CURRENT).display().to_string();
        return Err(Error::corruption("CURRENT names another manifest").with_file(path));
    }
    database
        .env
        .fs
        .open(&database.dir.join(names::manifest(number)), ReadFileOptions::default())
        .map(Some)
}

/// Checks every log that may be needed.
pub(super) fn verify_logs(
    database: &Database,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(&VerifyReport),
) {
    for segment in segments(database) {
        let file = match segment.file.file(&*database.env.fs) {
            Ok(file) => file,
            // All its entries were flushed meanwhile; or it was kept for the feed, which begins behind
            // it: on a full device it goes before the manifest says so.
            Err(error)
                if is_not_found(&error) && (segment.is_kept || !is_needed(database, &segment)) =>
            {
                continue;
            }
            Err(error) => {
                report.problems.push(error);
                continue;
            }
        };
        report.logs += 1;
        let verified = match database.is_moment && segment.end.is_none() {
            true => verify_live_log(database, &segment, report),
            false => verify_log(file, &segment, report),
        };
        if let Err(error) = verified {
            report.problems.push(segment.file.named(error));
        }
        progress(report);
    }
}

/// The logs that are written, or where none is, the logs that the manifest knows; and those that are
/// kept.
fn segments(database: &Database) -> Vec<Segment> {
    let of = |number, uid| LogSource::of_uid(&database.dir, number, uid);
    let catalog = database.catalog.lock();
    let kept = catalog.state().kept.iter();
    let kept =
        kept.map(|(&n, log)| Segment { file: of(n, log.uid), end: Some(log.bytes), is_kept: true });
    let mut segments: Vec<_> = kept.collect();
    if catalog.log().is_none() {
        let known = catalog.state().wals.iter();
        let known =
            known.map(|(&n, wal)| Segment { file: of(n, wal.uid), end: None, is_kept: false });
        segments.extend(known);
        return segments;
    }
    drop(catalog);
    let queue = database.pipeline.queue().lock();
    let older = queue.older_wals.iter().map(|(wal, _)| wal);
    let all = older.chain([&queue.wal]).chain(&queue.spare);
    let segment = |wal: &Arc<Wal>| {
        let end = Some(wal.written());
        Segment { file: of(wal.number, wal.uid), end, is_kept: false }
    };
    segments.extend(all.map(segment));
    segments
}

fn is_needed(database: &Database, sought: &Segment) -> bool {
    segments(database).iter().any(|segment| segment.file.number == sought.file.number)
}

fn verify_log(file: Arc<dyn ReadFile>, segment: &Segment, report: &mut VerifyReport) -> Result<()> {
    let mut reader = segment.file.reader(file)?;
    let mut chain = SeqChain::default();
    // The part behind the end is being written.
    while segment.end.is_none_or(|end| reader.valid_bytes() < end) {
        let Some(record) = reader.next()? else { break };
        let at = record.offset;
        count(&mut chain, &record, report).map_err(|error| error.with_offset(at))?;
    }
    let valid = reader.valid_bytes();
    report.log_bytes += valid;
    match segment.end.filter(|end| valid < *end) {
        None => Ok(()),
        Some(end) => Err(Error::corruption(format!(
            "the log is valid up to byte {valid} only, and was written up to {end}"
        ))
        .with_offset(valid)),
    }
}

/// As [`verify_log`], of a log that another process may be writing to.
fn verify_live_log(
    database: &Database,
    segment: &Segment,
    report: &mut VerifyReport,
) -> Result<()> {
    let open = || segment.file.open(&*database.env.fs);
    let mut tail = GrowingLog { open: &open, at: 0 };
    let mut chain = SeqChain::default();
    let read = tail.read_promised(|record| count(&mut chain, record, report).map(|()| Took::It));
    report.log_bytes += tail.at.max(FILE_HEADER_BYTES as u64);
    read.map(drop)
}

/// Checks a record of a log, and counts what is in it.
fn count(chain: &mut SeqChain, record: &LogRecord<'_>, report: &mut VerifyReport) -> Result<()> {
    match chain.entry(record)? {
        LogEntry::Batch(batch) => {
            let next_seq = batch.next_seq();
            for op in batch.ops {
                op?;
                report.log_operations += 1;
            }
            report.log_batches += 1;
            chain.go_on_at(next_seq);
            Ok(())
        }
        LogEntry::Mark(_) => Ok(()),
        LogEntry::Gap { batch, .. } => Err(Error::corruption(format!(
            "a batch begins with sequence number {} behind one that ends before it",
            batch.first_seq
        ))),
    }
}
