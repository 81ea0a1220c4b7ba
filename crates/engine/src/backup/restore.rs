//! Restoring: a backup becomes a database again, as it was then or with changes behind it.
//!
//! Owns: the order: tables, the manifest and its log, CURRENT. Never does: change the target.

use super::kept::existing;
use super::log_part;
use super::moments::{Moment, RestorePlan};
use super::names;
use super::record::{BackedUpTable, Backup, Contents};
use super::target::BackupTarget;
use crate::checkpoint::{Copy, Numbers, check_empty};
use std::io::Write;
use std::path::Path;
use windrow_base::{Result, SeqNo};
use windrow_env::Env;
use windrow_env::fs::WriteFile;
use windrow_format::names as files;
use windrow_recover::log::log_copy::LogCopy;
use windrow_store::manifest::record::{Field, ManifestRecord};
use windrow_store::write::segments::EMPTY_BYTES;

/// The name of a copy in errors.
const RESTORED: &str = "a restored database";

/// Makes a database of the backup of this number, or of the newest one, in a directory that is empty
/// or not there yet. Every object is compared with its checksum.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path().join("db")).unwrap();
/// use windrow::Db;
/// use windrow::backup::{BackupDirectory, BackupOptions, restore_backup};
///
/// let backups = BackupDirectory::open(dir.path().join("backups"))?;
/// db.put("key", "before")?;
/// let first = db.backup(&backups, BackupOptions::default())?;
/// db.put("key", "after")?;
/// db.backup(&backups, BackupOptions::default())?;
/// restore_backup(&backups, Some(first.number), dir.path().join("then"))?;
/// let then = Db::open(dir.path().join("then"))?;
/// assert_eq!(then.get("key")?.as_deref(), Some(&b"before"[..]));
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `InvalidArgument` if there is no such backup, or the directory holds something; `Corruption` that
/// names the damaged object; `Io`, `NoSpace`; others of the target. Nothing is left in
/// the directory then.
pub fn restore_backup(
    target: &dyn BackupTarget,
    number: Option<u64>,
    dir: impl AsRef<Path>,
) -> Result<Backup> {
    restore_backup_in(&Env::os(1), target, number, dir.as_ref())
}

/// Restores as [`restore_backup`] does, in an environment.
///
/// # Errors
/// The errors of that call.
pub fn restore_backup_in(
    env: &Env,
    target: &dyn BackupTarget,
    number: Option<u64>,
    dir: &Path,
) -> Result<Backup> {
    let contents = existing(target, number)?;
    let mut copy = Copy::begin(env, dir, RESTORED)?;
    let filled = fill(target, &contents, &contents.manifest, None, &mut copy);
    filled.inspect_err(|_| copy.remove())?;
    Ok(contents.told())
}

/// A database that was restored to a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The backup that it was made of.
    pub backup: Backup,
    /// The number of batches behind the backup that it has as well.
    pub batches: u64,
    /// The sequence number of its last write.
    pub seq: SeqNo,
}

/// Makes a database of a moment between two backups, in a directory that is empty or not there yet: of
/// the last backup before it, or of backup `from`, and the changes behind that. Later backups have
/// these with them, where the database keeps changes (setting `changes_bytes`).
///
/// Batches are there whole or not at all, with the sequence numbers of the source. The next open for
/// writing puts them into tables.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use windrow::backup::{BackupDirectory, BackupOptions, Moment, restore_to};
/// use windrow::{Db, Options};
///
/// let mut options = Options::default();
/// options.settings.changes_bytes = 64 << 20;
/// let db = Db::open_with(dir.path().join("db"), options)?;
/// let backups = BackupDirectory::open(dir.path().join("backups"))?;
/// db.backup(&backups, BackupOptions::default())?;
/// db.put("apple", "red")?;
/// let before = db.snapshot().seq();
/// db.delete("apple")?; // a mistake
/// db.backup(&backups, BackupOptions::default())?;
///
/// let restored = restore_to(&backups, Moment::Seq(before), None, dir.path().join("then"))?;
/// assert_eq!((restored.backup.number, restored.batches), (1, 1));
/// assert!(Db::open(dir.path().join("then"))?.contains_key("apple")?);
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `InvalidArgument` if the target has no such moment, or an ingestion lies between the backup and the
/// moment (the message says what can be restored); as [`restore_backup`]. Nothing is left in the
/// directory then.
pub fn restore_to(
    target: &dyn BackupTarget,
    to: Moment,
    from: Option<u64>,
    dir: impl AsRef<Path>,
) -> Result<Restored> {
    restore_to_in(&Env::os(1), target, (to, from), dir.as_ref())
}

/// Restores as [`restore_to`] does, in an environment.
///
/// # Errors
/// The errors of that call.
pub fn restore_to_in(
    env: &Env,
    target: &dyn BackupTarget,
    (to, from): (Moment, Option<u64>),
    dir: &Path,
) -> Result<Restored> {
    // An empty directory is a matter of the caller's, and is said before changes are read.
    check_empty(env, &env.fs.absolute(dir)?, RESTORED)?;
    let plan = RestorePlan::of(target, to, from)?;
    let mut copy = Copy::begin(env, dir, RESTORED)?;
    let filled = fill(target, &plan.base, &plan.manifest, Some(&plan), &mut copy);
    filled.inspect_err(|_| copy.remove())?;
    Ok(Restored { backup: plan.base.told(), batches: plan.batches, seq: plan.seq })
}

fn fill(
    target: &dyn BackupTarget,
    contents: &Contents,
    manifest: &ManifestRecord,
    plan: Option<&RestorePlan>,
    copy: &mut Copy,
) -> Result<()> {
    let needed = plan.map(RestorePlan::tables);
    let is_needed = |table: &&BackedUpTable| {
        needed.as_ref().is_none_or(|needed| needed.contains(&table.number))
    };
    for table in contents.tables.iter().filter(is_needed) {
        let mut file = copy.create(files::table(table.number))?;
        table.sum.copy(target, &names::table(table.uid), &mut Appending(&mut *file))?;
        file.finish()?;
    }
    copy.sync_names()?;
    let Contents { number, database_uid, log: parts, .. } = contents;
    let numbers = Numbers { manifest: contents.manifest_number, wal: contents.log_number };
    let plan = plan.filter(|plan| plan.batches > 0);
    if parts.is_empty() && plan.is_none() {
        return copy.write_closed(*database_uid, numbers, manifest);
    }
    let mut log = copy.begin_manifest(numbers.manifest, manifest)?;
    let wal = copy.new_wal(numbers.wal, log.in_force(), EMPTY_BYTES)?;
    let mut batches = LogCopy::new(&wal);
    let mut append = |payload: &[u8]| batches.append(payload);
    log_part::read(target, *number, parts, &mut append)?;
    plan.map_or(Ok(()), |plan| plan.batches(target, &mut append))?;
    let bytes = batches.finish()?;
    log.append(&ManifestRecord(vec![
        wal.added(),
        Field::WalSynced { number: numbers.wal, bytes },
    ]))?;
    copy.end_manifest(log, numbers.manifest, *database_uid)
}

/// A file that is written to its end.
struct Appending<'a>(&'a mut dyn WriteFile);

impl Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.append(bytes).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
