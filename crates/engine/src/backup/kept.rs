//! The backups that a target keeps: listed, read, verified, pruned.
//!
//! Owns: which objects a prune removes, and in which order. Never does: store an object.

use super::change_part;
use super::log_part;
use super::names;
use super::record::{Backup, Contents};
use super::sum::Sum;
use super::target::{BackupTarget, io_error};
use std::collections::BTreeSet;
use windrow_base::{Error, FileUid, Result};

/// Returns the numbers of a target's backups, ascending.
///
/// # Errors
/// Errors of the target.
pub fn backup_numbers(target: &dyn BackupTarget) -> Result<Vec<u64>> {
    let records = target.list(names::RECORDS)?;
    let mut numbers: Vec<u64> =
        records.iter().filter_map(|stored| names::number_of(&stored.name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the backups of a target, oldest first.
///
/// # Errors
/// `Corruption` of a record, which it names; errors of the target. [`backup_numbers`] and
/// [`read_backup`] show the other backups.
pub fn backups(target: &dyn BackupTarget) -> Result<Vec<Backup>> {
    let of = |number| Some(read_unless_pruned(target, number).transpose()?.map(|r| r.told()));
    backup_numbers(target)?.into_iter().filter_map(of).collect()
}

/// Reads the record of a backup, but not its tables and log.
///
/// # Errors
/// `InvalidArgument` where there is no such backup; `Corruption` of its record; errors of the target.
pub fn read_backup(target: &dyn BackupTarget, number: u64) -> Result<Backup> {
    Ok(existing(target, Some(number))?.told())
}

/// Reads backups whole, and a table that they share once.
pub struct BackupVerifier<'a> {
    target: &'a dyn BackupTarget,
    sound: BTreeSet<(FileUid, Sum)>,
}

impl std::fmt::Debug for BackupVerifier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackupVerifier({} tables are sound)", self.sound.len())
    }
}

impl<'a> BackupVerifier<'a> {
    /// Makes a verifier that has read nothing yet.
    pub fn new(target: &'a dyn BackupTarget) -> BackupVerifier<'a> {
        BackupVerifier { target, sound: BTreeSet::new() }
    }

    /// Reads every byte of a backup and compares it with the stored checksums. Tables that it has
    /// read for another backup are not read again.
    ///
    /// # Errors
    /// `Corruption` that names the damaged object; `InvalidArgument` where there is no such backup;
    /// what the target says, also where an object is absent.
    pub fn verify(&mut self, number: u64) -> Result<Backup> {
        let contents = existing(self.target, Some(number))?;
        for table in &contents.tables {
            if !self.sound.contains(&(table.uid, table.sum)) {
                let name = names::table(table.uid);
                table.sum.copy(self.target, &name, &mut std::io::sink())?;
                self.sound.insert((table.uid, table.sum));
            }
        }
        log_part::read(self.target, number, &contents.log, &mut |_| Ok(()))?;
        // Where the earlier backup is gone, a prune has removed them, or will.
        let numbers = backup_numbers(self.target)?;
        let changes = contents.changes().filter(|changes| numbers.contains(&changes.since));
        let parts = changes.map_or(&[][..], |changes| &changes.parts);
        for (at, part) in parts.iter().enumerate() {
            change_part::check(self.target, &names::change_part(number, at), part.sum)?;
        }
        Ok(contents.told())
    }
}

/// Reads every byte of a backup and compares it with the stored checksums.
///
/// # Errors
/// As [`BackupVerifier::verify`].
pub fn verify_backup(target: &dyn BackupTarget, number: u64) -> Result<Backup> {
    BackupVerifier::new(target).verify(number)
}

/// Removes all but the newest `keep` backups, and all objects that no backup needs, among them those of
/// backups that were cut short. Returns the numbers of the removed backups.
///
/// # Errors
/// `Busy` while something else changes the target; `Corruption` of the record of a backup that stays:
/// then nothing is removed, since that backup's objects are not known; errors of the target.
/// The backups that stay are whole whatever happens.
pub fn prune_backups(target: &dyn BackupTarget, keep: usize) -> Result<Vec<u64>> {
    let _claim = target.claim()?;
    let all = backup_numbers(target)?;
    let (gone, kept) = all.split_at(all.len().saturating_sub(keep));
    let mut needed = BTreeSet::new();
    for &number in kept {
        let contents = read_record(target, number).map_err(|error| {
            error.context(format!("nothing is removed, since of backup {number}"))
        })?;
        needed.extend(contents.tables.iter().map(|table| names::table(table.uid)));
        needed.extend((0..contents.log.len()).map(|part| names::log_part(number, part)));
        // Those that go on from a backup that is gone are for nothing.
        let changes = contents.changes().filter(|changes| kept.contains(&changes.since));
        let parts = changes.map_or(0, |changes| changes.parts.len());
        needed.extend((0..parts).map(|part| names::change_part(number, part)));
    }
    // Records first, so that a record that is there finds its tables; the oldest first, so that the
    // newest are left if this is cut short.
    for &number in gone {
        target.remove(&names::record(number))?;
    }
    for folder in [names::LOGS, names::TABLES] {
        for stored in target.list(folder)? {
            if names::is_ours(&stored.name) && !needed.contains(&stored.name) {
                target.remove(&stored.name)?;
            }
        }
    }
    Ok(gone.to_vec())
}

/// Reads the record of the backup of this number, or of the newest one.
///
/// # Errors
/// `InvalidArgument` where there is none; as [`read_record`].
pub(super) fn existing(target: &dyn BackupTarget, number: Option<u64>) -> Result<Contents> {
    let all = backup_numbers(target)?;
    let last = *all.last().ok_or_else(|| Error::invalid("there is no backup here"))?;
    let number = number.unwrap_or(last);
    let found = match all.contains(&number) {
        true => read_unless_pruned(target, number)?,
        false => None,
    };
    let missing = || format!("there is no backup {number}; the last one is {last}");
    found.ok_or_else(|| Error::invalid(missing()))
}

/// Reads a record that was listed; `None` if a prune has removed it since.
///
/// # Errors
/// As [`read_record`].
fn read_unless_pruned(target: &dyn BackupTarget, number: u64) -> Result<Option<Contents>> {
    match read_record(target, number) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) => match backup_numbers(target) {
            Ok(numbers) if !numbers.contains(&number) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Reads a record.
///
/// # Errors
/// As [`Contents::decode`]; errors of the target.
pub(super) fn read_record(target: &dyn BackupTarget, number: u64) -> Result<Contents> {
    let name = names::record(number);
    let mut bytes = Vec::new();
    let read = target.get(&name)?.read_to_end(&mut bytes);
    read.map_err(|error| io_error(error).with_file(&*name))?;
    Contents::decode(number, &bytes).map_err(|error| error.with_file(name))
}
