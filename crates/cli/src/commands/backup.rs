//! `backup`, `backups` and `restore`.
//!
//! Owns: what is printed. Never does: know how backups are kept.

use crate::args::{BackupArgs, BackupsArgs, RestoreArgs};
use crate::failure::{Failure, Kind, Result};
use crate::human;
use crate::progress::Progress;
use crate::store::{self, Access};
use serde_json::json;
use std::io::{self, Write};
use windrow::backup::{
    BackedUp, Backup, BackupChanges, BackupDirectory, BackupOptions, BackupVerifier, Moment,
    backup_numbers, prune_backups, read_backup, restore_backup, restore_to,
};
use windrow::{Error, ErrorKind};

/// Makes a backup, and removes old ones.
pub(crate) fn backup(args: &BackupArgs, quiet: bool) -> Result<()> {
    // First: nothing is made for a database that is not there.
    store::must_exist(&args.open.path)?;
    let target = BackupDirectory::open(&args.target).map_err(of_backups)?;
    let mut options = BackupOptions::default();
    options.bytes_per_second = u64::from(args.limit.unwrap_or(0)) << 20;
    let made = store::with_opened(&args.open, Access::Change, |opened| {
        let _progress = Progress::waiting(quiet, "copying");
        // A session that follows shows a moment: what was written since belongs to the backup.
        if opened.is_followed { Ok(None) } else { Ok(Some(opened.db.backup(&target, options)?)) }
    });
    let made = match made {
        Ok(Some(made)) => made,
        Err(failure) if !failure.is_busy() => return Err(failure),
        // Another process writes it, and goes on.
        Ok(None) | Err(_) => {
            let follower = store::follow(&args.open)?;
            let _progress = Progress::waiting(quiet, "copying");
            follower.backup(&target, options)?
        }
    };
    let pruned = args.keep.map_or(Ok(Vec::new()), |keep| prune_backups(&target, keep as usize));
    // It is made, whatever became of the others.
    print_made(args, &made, pruned.as_deref().unwrap_or(&[]))?;
    pruned.map(drop).map_err(of_backups)
}

fn print_made(args: &BackupArgs, made: &BackedUp, pruned: &[u64]) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        let told = json!({
            "number": made.number,
            "tables": made.tables,
            "bytes": made.bytes,
            "copied_tables": made.copied_tables,
            "copied_bytes": made.copied_bytes,
            "seq": made.seq,
            "changes": made.changes.map(changes_as_json),
            "removed": pruned,
        });
        writeln!(out, "{told}")?;
        return Ok(out.flush()?);
    }
    write!(
        out,
        "backup {}: {}, {}; copied {}, {}",
        made.number,
        human::plural(made.tables, "table"),
        human::size(made.bytes),
        human::plural(made.copied_tables, "table"),
        human::size(made.copied_bytes),
    )?;
    match made.changes {
        Some(changes) => writeln!(out, "; {}", told_changes(changes, Some(made.seq)))?,
        None => writeln!(out)?,
    }
    for number in pruned {
        writeln!(out, "removed backup {number}")?;
    }
    Ok(out.flush()?)
}

/// The changes that a backup has with it.
fn told_changes(changes: BackupChanges, seq: Option<u64>) -> String {
    let BackupChanges { since, through, bytes, .. } = changes;
    // The logs did not have all of them any more, or one is damaged.
    let only = if seq == Some(through) { String::new() } else { format!(" up to {through} only") };
    format!("changes since backup {since}{only}, {}", human::size(bytes))
}

fn changes_as_json(changes: BackupChanges) -> serde_json::Value {
    json!({ "since": changes.since, "through": changes.through, "bytes": changes.bytes })
}

/// A backup of the list: what its record says, and what is wrong with it.
struct Listed {
    number: u64,
    record: Option<Backup>,
    problem: Option<Error>,
}

/// Lists backups, and reads them.
pub(crate) fn list(args: &BackupsArgs, quiet: bool) -> Result<()> {
    let opened = match args.keep {
        // Nothing is made for who only looks.
        Some(_) if args.target.exists() => BackupDirectory::open(&args.target),
        _ => BackupDirectory::open_read_only(&args.target),
    };
    let target = opened.map_err(of_backups)?;
    if let Some(keep) = args.keep {
        prune_backups(&target, keep as usize).map_err(of_backups)?;
    }
    let mut list = Vec::new();
    for number in backup_numbers(&target).map_err(of_backups)? {
        let (record, problem) = match read_backup(&target, number) {
            Ok(record) => (Some(record), None),
            Err(error) => (None, Some(error)),
        };
        list.push(Listed { number, record, problem });
    }
    if args.verify {
        verify(&target, &mut list, quiet);
    }
    if list.iter().any(|listed| listed.problem.is_some()) {
        // A prune in another process has removed these meanwhile.
        let left = backup_numbers(&target).map_err(of_backups)?;
        list.retain(|listed| left.contains(&listed.number));
    }
    let printed = print_list(args, &list);
    // Damage is a failure whether or not anybody reads what it is.
    let problem = list.into_iter().find_map(|listed| listed.problem);
    problem.map_or(printed, |problem| Err(of_backups(problem)))
}

fn verify(target: &BackupDirectory, list: &mut [Listed], quiet: bool) {
    let all = list.iter().filter_map(|listed| listed.record.as_ref()).map(|record| record.bytes);
    let progress = Progress::bytes(quiet, "verifying", all.sum());
    let (mut verifier, mut done) = (BackupVerifier::new(target), 0);
    for listed in list {
        if let Some(record) = &listed.record {
            listed.problem = verifier.verify(listed.number).err();
            done += record.bytes;
            progress.at(done);
        }
    }
}

fn print_list(args: &BackupsArgs, list: &[Listed]) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        let told: Vec<_> = list.iter().map(as_json).collect();
        writeln!(out, "{}", json!({ "backups": told, "verified": args.verify }))?;
        return Ok(out.flush()?);
    }
    let is_listed = |number| list.iter().any(|listed| listed.number == number);
    for Listed { number, record, problem } in list {
        write!(out, "{number:>6}")?;
        if let Some(record) = record {
            let tables = human::plural(record.tables, "table");
            let (made, size) = (human::utc(record.made_ms), human::size(record.bytes));
            write!(out, "  {made}  {tables}, {size}")?;
            // Those of the first one go on from a backup that is gone.
            if let Some(changes) = record.changes.filter(|changes| is_listed(changes.since)) {
                write!(out, "; {}", told_changes(changes, record.seq))?;
            }
            if let Some(seq) = record.seq {
                write!(out, "; sequence number {seq}")?;
            }
        }
        match problem {
            Some(problem) => writeln!(out, ": {problem}")?,
            None if args.verify => writeln!(out, ": sound")?,
            None => writeln!(out)?,
        }
    }
    Ok(out.flush()?)
}

fn as_json(listed: &Listed) -> serde_json::Value {
    let record = listed.record.as_ref();
    json!({
        "number": listed.number,
        "made_ms": record.map(|record| record.made_ms),
        "database_uid": record.map(|record| format!("{:016x}", record.database_uid)),
        "tables": record.map(|record| record.tables),
        "bytes": record.map(|record| record.bytes),
        "seq": record.and_then(|record| record.seq),
        "changes": record.and_then(|record| record.changes).map(changes_as_json),
        "problem": listed.problem.as_ref().map(ToString::to_string),
    })
}

/// Makes a database of a backup.
pub(crate) fn restore(args: &RestoreArgs, quiet: bool) -> Result<()> {
    let target = BackupDirectory::open_read_only(&args.target).map_err(of_backups)?;
    let progress = Progress::waiting(quiet, "restoring");
    let to = args.to_seq.map(Moment::Seq).or(args.to_time.map(Moment::Time));
    let done = match to {
        None => {
            let backup = restore_backup(&target, args.backup, &args.path).map_err(of_backups)?;
            Done { backup, behind: None }
        }
        Some(to) => {
            let done = restore_to(&target, to, args.backup, &args.path).map_err(of_moment)?;
            Done { backup: done.backup, behind: Some((done.batches, done.seq)) }
        }
    };
    drop(progress);
    print_restored(args, done)
}

/// A backup that was restored, with the number of batches behind it and the last sequence number, if a
/// moment was asked for.
struct Done {
    backup: Backup,
    behind: Option<(u64, u64)>,
}

fn print_restored(args: &RestoreArgs, Done { backup, behind }: Done) -> Result<()> {
    let mut out = io::stdout().lock();
    let (number, tables) = (backup.number, human::plural(backup.tables, "table"));
    let size = human::size(backup.bytes);
    if args.json {
        let mut told = as_json(&Listed { number, record: Some(backup), problem: None });
        if let Some((batches, seq)) = behind {
            told["batches"] = batches.into();
            told["restored_seq"] = seq.into();
        }
        writeln!(out, "{told}")?;
        return Ok(out.flush()?);
    }
    match behind {
        None => writeln!(out, "restored backup {number}: {tables}, {size}")?,
        Some((batches, seq)) => {
            let batches = human::plural(batches, "batch");
            writeln!(
                out,
                "restored backup {number}: {tables}, {size}; and {batches} behind it, up to sequence number {seq}"
            )?;
        }
    }
    Ok(out.flush()?)
}

/// A failure of a restore to a moment. The message says which moments there are; the times of backups
/// are in the list.
fn of_moment(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::InvalidArgument => Failure::failed(error.to_string())
            .hint("`windrow backups` lists the backups, with their times and sequence numbers"),
        _ => of_backups(error),
    }
}

/// A failure of a backup: the hints for failures of a database do not help there.
fn of_backups(error: Error) -> Failure {
    let (hint, kind) = match error.kind() {
        ErrorKind::Corruption => (
            "`windrow backups --verify` tells which backups are damaged, and the others can be \
             restored; a damaged table is stored again by the next backup once its file is removed",
            Kind::Plain,
        ),
        ErrorKind::Busy => {
            ("another program uses these backups: try again when it has ended", Kind::Busy)
        }
        ErrorKind::NoSpace => ("make room on the device and run the command again", Kind::Plain),
        _ => return Failure::from(error),
    };
    Failure::failed(error.to_string()).hint(hint).of_kind(kind)
}
