//! Restoring: a backup becomes a database again.
//!
//! Owns: the order: tables, the manifest and its log, CURRENT. Never does: change the target.

use super::kept::existing;
use super::log_part;
use super::names;
use super::record::{Backup, Contents};
use super::target::BackupTarget;
use crate::checkpoint::{Copy, Numbers};
use std::io::Write;
use std::path::Path;
use windrow_base::Result;
use windrow_env::Env;
use windrow_env::fs::WriteFile;
use windrow_format::names as files;
use windrow_recover::log::log_copy::LogCopy;
use windrow_store::manifest::record::{Field, ManifestRecord};
use windrow_store::write::segments::EMPTY_BYTES;

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
    let mut copy = Copy::begin(env, dir, "a restored database")?;
    fill(target, &contents, &mut copy).inspect_err(|_| copy.remove())?;
    Ok(contents.told())
}

fn fill(target: &dyn BackupTarget, contents: &Contents, copy: &mut Copy) -> Result<()> {
    for table in &contents.tables {
        let mut file = copy.create(files::table(table.number))?;
        table.sum.copy(target, &names::table(table.uid), &mut Appending(&mut *file))?;
        file.finish()?;
    }
    copy.sync_names()?;
    let Contents { number, database_uid, manifest, log: parts, .. } = contents;
    let numbers = Numbers { manifest: contents.manifest_number, wal: contents.log_number };
    if parts.is_empty() {
        return copy.write_closed(*database_uid, numbers, manifest);
    }
    let mut log = copy.begin_manifest(numbers.manifest, manifest)?;
    let wal = copy.new_wal(numbers.wal, log.in_force(), EMPTY_BYTES)?;
    let mut batches = LogCopy::new(&wal);
    log_part::read(target, *number, parts, &mut |payload| batches.append(payload))?;
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
