//! The logs in a repair: replayed as far as they go, with a report of those that were not taken
//! over whole.
//!
//! At the end of a log no bytes show that there were more. To a replay a log that is missing, or
//! was cut between two records, looks like one that was never written to. Only the manifest shows
//! the difference, and the lost records remain unknown.
//!
//! Owns: the choice of the logs that are replayed, and the account of them. Never does: read a
//! record itself (`log/logs_at_rest.rs` does).

use super::findings::Findings;
use super::report::DamagedLog;
use super::site::Site;
use crate::discovery::originals;
use crate::open::replay::{Replay, Salvaged};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Error, FileNumber, Result};
use windrow_env::ReadFile;
use windrow_env::fs::ReadFileOptions;
use windrow_format::log::{FILE_HEADER_BYTES, LogKind, LogReader};
use windrow_format::names;
use windrow_read::records_left_out::RecordsLeftOut;
use windrow_store::manifest::state::{ManifestState, WalState};

/// Bytes read at a time to see whether a file is blank.
const BLANK_CHUNK_BYTES: usize = 1 << 20;

/// Replays the logs from number `from` on as far as they go. Logs that were not taken over whole
/// are kept.
pub(super) fn replay(
    site: &Site<'_>,
    findings: &mut Findings,
    replay: Replay<'_>,
    state: &ManifestState,
    from: FileNumber,
) -> Result<Salvaged> {
    let mut paths: BTreeMap<FileNumber, PathBuf> = BTreeMap::new();
    for &number in site.listing.wals.range(from..) {
        let path = site.wal_path(number);
        // A log that cannot be opened now may be whole.
        let file = site.env.fs.open(&path, ReadFileOptions::default())?;
        if !was_never_begun(findings.report.manifest_rebuilt, file, number, state) {
            paths.insert(number, path);
        }
    }
    // A repair of an earlier version moved logs before it was done.
    for &number in state.wals.keys().filter(|&&number| from <= number) {
        let moved = originals::place_in_lost(site.dir, &names::wal(number));
        if !paths.contains_key(&number) && site.env.fs.exists(&moved)? {
            paths.insert(number, moved);
        }
    }
    let mut salvaged = replay.run_tolerant(&paths)?;
    findings.report.batches_replayed = salvaged.replayed.batches;
    for (number, error) in salvaged.problems.drain(..) {
        let bytes = site.env.fs.len(Path::new(error.file().unwrap_or_default()));
        findings.report.logs.push(DamagedLog {
            file: names::wal(number),
            from_byte: error.offset().unwrap_or(0),
            bytes: bytes.unwrap_or(0),
            whole_batches: 0,
        });
        findings.keep_original(names::wal(number));
        findings.problem(error);
    }
    for records in &salvaged.replayed.left_out {
        if let Some(path) = paths.get(&records.log) {
            account_for_left_out(site, findings, records, path)?;
        }
    }
    for (&number, wal) in state.wals.range(from..) {
        // The log of a clean close is empty.
        if state.clean_close.is_none_or(|(closed, _)| closed != number) {
            let found = paths.get(&number).map(|path| (&**path, salvaged.ends.get(&number)));
            account_for_log(site, findings, number, wal, found)?;
        }
    }
    Ok(salvaged)
}

/// Reports a log with whole batches behind bytes that are no record, and keeps it.
///
/// # Errors
/// `Io`.
fn account_for_left_out(
    site: &Site<'_>,
    findings: &mut Findings,
    records: &RecordsLeftOut,
    path: &Path,
) -> Result<()> {
    let file = names::wal(records.log);
    let (from_byte, whole_batches) = (records.from_byte, records.batches);
    let problem = Error::corruption(records.to_string()).with_file(path.display().to_string());
    findings.problem(problem.with_offset(from_byte));
    let bytes = site.env.fs.len(path)?;
    findings.keep_original(file.clone());
    findings.report.logs.push(DamagedLog { file, from_byte, bytes, whole_batches });
    Ok(())
}

/// Whether a log was made and never written to. Its header is missing, and it cannot have a record,
/// since the manifest names a log before the first record is written to it.
fn was_never_begun(
    is_rebuilt: bool,
    file: Arc<dyn ReadFile>,
    number: FileNumber,
    state: &ManifestState,
) -> bool {
    let has_header = LogReader::open(file.clone(), LogKind::Wal, None).is_ok();
    match is_rebuilt {
        false => !has_header && !state.wals.contains_key(&number),
        // The list of logs is not known: a log has no records where those bytes are blank.
        true => !has_header && is_blank(&*file, FILE_HEADER_BYTES as u64),
    }
}

/// Reports a log if it is not complete and was not reported yet. `found`: its path, and the byte up
/// to which it is valid.
///
/// # Errors
/// `Io`.
fn account_for_log(
    site: &Site<'_>,
    findings: &mut Findings,
    number: FileNumber,
    wal: &WalState,
    found: Option<(&Path, Option<&u64>)>,
) -> Result<()> {
    let file = names::wal(number);
    if findings.report.logs.iter().any(|log| log.file == file) {
        return Ok(());
    }
    let Some((path, valid)) = found else {
        let path = site.dir.join(&file).display().to_string();
        let what = "a log that the manifest names is missing";
        findings.problem(Error::corruption(what).with_file(path));
        findings.report.logs.push(DamagedLog { file, ..DamagedLog::default() });
        return Ok(());
    };
    let bytes = site.env.fs.len(path)?;
    if wal.bytes <= bytes {
        return Ok(());
    }
    let from_byte = valid.copied().unwrap_or(0);
    let what = format!("the log is {bytes} bytes long, and was made with {}", wal.bytes);
    let problem = Error::corruption(what).with_file(path.display().to_string());
    findings.problem(problem.with_offset(from_byte));
    findings.report.logs.push(DamagedLog {
        file: file.clone(),
        from_byte,
        bytes,
        whole_batches: 0,
    });
    findings.keep_original(file);
    Ok(())
}

/// Whether a file is all zeros from an offset on, as reserved space is.
pub(super) fn is_blank(file: &dyn ReadFile, from: u64) -> bool {
    let mut bytes = vec![0; BLANK_CHUNK_BYTES];
    let mut at = from;
    while at < file.len() {
        let chunk = BLANK_CHUNK_BYTES.min((file.len() - at) as usize);
        let read = file.read_at(at, &mut bytes[..chunk]);
        if read.is_err() || bytes[..chunk].iter().any(|byte| *byte != 0) {
            return false;
        }
        at += chunk as u64;
    }
    true
}
