//! The backups of a directory, and the contents that each must restore to.
//!
//! A backup is judged once against the writer's acknowledgements: it has every batch that was acknowledged
//! before the program began, and a prefix of the commits. From then on it must restore to the same contents
//! for as long as it is listed.
//!
//! Owns: these rules, and those of the list. Never does: run the program.

use super::super::history::DYING_MOST;
use super::super::judge::{Survives, Told, judge};
use super::super::ledger::{Ack, Ledger};
use super::super::setup::small_options;
use super::super::workload::Expected;
use super::command::Command;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use windrow::backup::{BackupDirectory, backup_numbers, read_backup, restore_backup};
use windrow::{Db, ErrorKind};

/// The batches that a backup must have, acknowledged before the program began, and those that it may have.
pub(super) struct Acknowledged<'a> {
    pub(super) session: u64,
    pub(super) ledger: &'a Ledger,
    pub(super) before: Vec<Vec<Ack>>,
}

/// The list, and the contents of its backups.
pub(super) struct Listed {
    /// The directory of the backups.
    dir: PathBuf,
    /// The directory that backups are restored into.
    copy: PathBuf,
    known: BTreeMap<u64, Expected>,
    /// The contents at the session's begin.
    begin: Expected,
    /// The contents of the session's newest backup; its begin's without one.
    newest: Expected,
    /// How often a backup was restored.
    pub(super) restored: u64,
}

impl Listed {
    /// Returns the list of a directory that is not there yet.
    pub(super) fn new(dir: PathBuf, copy: PathBuf, begin: Expected) -> Listed {
        let newest = begin.clone();
        Listed { dir, copy, known: BTreeMap::new(), begin, newest, restored: 0 }
    }

    /// Begins a session, or ends it: the database has these contents.
    pub(super) fn set_begin(&mut self, begin: &Expected) {
        (self.begin, self.newest) = (begin.clone(), begin.clone());
    }

    /// Returns the numbers of the list.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.known.keys().copied().collect()
    }

    /// Returns the contents of a listed backup.
    pub(super) fn contents(&self, number: u64) -> Option<&Expected> {
        self.known.get(&number)
    }

    /// Judges the list that a command left, and every backup that is on it.
    ///
    /// # Errors
    /// The rule that was broken.
    pub(super) fn judge(
        &mut self,
        command: Command,
        is_done: bool,
        acknowledged: Option<&Acknowledged<'_>>,
    ) -> Result<(), String> {
        let found = self.read()?;
        check_list(&self.numbers(), &found, command, is_done)?;
        self.known.retain(|number, _| found.contains(number));
        for number in found {
            let at = |why| format!("backup {number}: {why}");
            match self.known.get(&number).cloned() {
                Some(contents) => self.judge_one(number, contents, None).map_err(at)?,
                None => {
                    let told = acknowledged.map(|told| self.told(told)).transpose()?;
                    self.judge_one(number, self.newest.clone(), told.as_ref()).map_err(at)?;
                    self.newest = self.known[&number].clone();
                }
            };
        }
        Ok(())
    }

    /// Returns the numbers of the backups that are there.
    fn read(&self) -> Result<Vec<u64>, String> {
        if !self.dir.exists() {
            return Ok(Vec::new());
        }
        let target = patiently(|| BackupDirectory::open_read_only(&self.dir))?;
        backup_numbers(&target).map_err(|error| format!("the list of backups: {error}"))
    }

    /// Returns the acknowledgements of batches that are not in the newest backup.
    fn told(&self, acknowledged: &Acknowledged<'_>) -> Result<Told, String> {
        let Acknowledged { session, ledger, before } = acknowledged;
        let since = |acks: &Vec<Vec<Ack>>| {
            let begin = self.begin.numbers.iter().zip(&self.newest.numbers);
            let skipped = begin.map(|(begin, newest)| (newest - begin) as usize);
            acks.iter().zip(skipped).map(|(acks, n)| acks[n.min(acks.len())..].to_vec()).collect()
        };
        let after = ledger.all(self.begin.shape.writers).map_err(|error| error.to_string())?;
        Ok(Told { session: *session, before: since(before), after: since(&after) })
    }

    /// Restores a backup, and judges the database.
    fn judge_one(
        &mut self,
        number: u64,
        mut expected: Expected,
        told: Option<&Told>,
    ) -> Result<(), String> {
        let _ = std::fs::remove_dir_all(&self.copy);
        let target = patiently(|| BackupDirectory::open_read_only(&self.dir))?;
        restore_backup(&target, Some(number), &self.copy).map_err(|error| error.to_string())?;
        judge_copy(&self.copy, &mut expected, told)?;
        self.known.insert(number, expected);
        self.restored += 1;
        Ok(())
    }

    /// Checks after a prune to one backup that the directory has no table but those of that backup.
    ///
    /// # Errors
    /// If others are there.
    pub(super) fn check_nothing_is_left(&self) -> Result<(), String> {
        let target = patiently(|| BackupDirectory::open_read_only(&self.dir))?;
        let [number] = self.numbers()[..] else {
            return Err(format!("one backup was to be kept, and these are: {:?}", self.numbers()));
        };
        let backup = read_backup(&target, number).map_err(|error| error.to_string())?;
        match files(&self.dir.join("tables")) as u64 == backup.tables {
            true => Ok(()),
            false => Err(format!(
                "backup {number} has {} tables, and the directory {}",
                backup.tables,
                files(&self.dir.join("tables"))
            )),
        }
    }
}

/// Opens a restored database that must be whole, and compares all of it.
///
/// # Errors
/// The first difference.
pub(super) fn judge_copy(
    dir: &Path,
    expected: &mut Expected,
    told: Option<&Told>,
) -> Result<(), String> {
    let mut options = small_options()?;
    options.read_only = true;
    let db = Db::open_with(dir, options).map_err(|e| format!("open what was restored: {e}"))?;
    judge(&db, expected, told, Survives::Everything)?;
    db.close().map_err(|error| format!("close: {error}"))
}

/// Returns the number of files in a directory; none if it is not there.
pub(super) fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

/// Opens backups whose last user may still be dying.
pub(super) fn patiently<T>(mut open: impl FnMut() -> windrow::Result<T>) -> Result<T, String> {
    let until = Instant::now() + DYING_MOST;
    loop {
        match open() {
            Err(e) if e.kind() == ErrorKind::Busy && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            opened => return opened.map_err(|error| format!("open backups: {error}")),
        }
    }
}

/// Checks the numbers of the backups after a command, whether it ended or was killed: a backup adds one at
/// most, and only the oldest are removed, never one of those that were to be kept.
fn check_list(
    before: &[u64],
    after: &[u64],
    command: Command,
    is_done: bool,
) -> Result<(), String> {
    let mut all = before.to_vec();
    let next = before.last().map_or(1, |last| last + 1);
    let is_added = after.contains(&next);
    if is_added {
        all.push(next);
    }
    let keep = match command {
        Command::Backup { keep: Some(keep) } if is_added => keep,
        Command::Prune { keep } => keep,
        _ => all.len(),
    };
    let least = keep.min(all.len());
    let is_right = all.ends_with(after)
        && (!is_added || matches!(command, Command::Backup { .. }))
        && least <= after.len()
        && (!is_done || after.len() == least)
        && (!is_done || is_added == matches!(command, Command::Backup { .. }));
    match is_right {
        true => Ok(()),
        false => Err(format!(
            "backups {before:?} were listed; after {command:?}, which {}, these are: {after:?}",
            if is_done { "ended by itself" } else { "was killed" }
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_has_lost_or_gained_a_backup_is_noticed() {
        let check = |before: &[u64], after: &[u64], command, is_done| {
            check_list(before, after, command, is_done).is_ok()
        };
        let prune = Command::Prune { keep: 2 };
        assert!(check(&[3, 4, 5, 6], &[5, 6], prune, true));
        assert!(check(&[3, 4, 5, 6], &[4, 5, 6], prune, false), "cut short");
        assert!(!check(&[3, 4, 5, 6], &[4, 5, 6], prune, true), "not enough was removed");
        assert!(!check(&[3, 4, 5, 6], &[6], prune, false), "5 was to be kept");
        assert!(!check(&[3, 4, 5, 6], &[3, 5, 6], prune, false), "3 is older than 4");
        assert!(!check(&[5, 6], &[5, 6, 7], prune, true), "nobody made it");
        let backup = Command::Backup { keep: None };
        assert!(check(&[], &[1], backup, true) && check(&[5], &[5, 6], backup, true));
        assert!(check(&[5], &[5], backup, false), "cut short");
        assert!(!check(&[5], &[5], backup, true), "none was made");
        assert!(!check(&[5], &[6], backup, false), "5 was to be kept");
        let backup = Command::Backup { keep: Some(1) };
        assert!(check(&[4, 5], &[6], backup, true) && check(&[4, 5], &[5, 6], backup, false));
        assert!(!check(&[4, 5], &[5], backup, false), "removed before the new one was there");
        let restore = Command::Restore { number: 5 };
        assert!(check(&[4, 5], &[4, 5], restore, true) && !check(&[4, 5], &[5], restore, false));
    }
}
