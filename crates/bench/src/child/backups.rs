//! Backups that a phase makes: of what it has changed, once it has drained, or next to its clients, one
//! after the other. The last of these is cut short when the clients are done: the phase's time must not
//! have the rest of a backup in it.
//!
//! Owns: the directory of the backups, which goes with the unit, and their figures. Never does: change
//! the store.

use super::measure::Figures;
use crate::process::{Stopwatch, mib};
use crate::store::Result;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::Db;
use windrow::backup::{BackupDirectory, BackupOptions, BackupTarget, StoredObject, prune_backups};

/// Backups that stay: the next one copies only what these lack.
const KEPT: usize = 2;

/// The backups of a unit's database, next to its directory.
pub(super) struct UnitBackups {
    dir: PathBuf,
    target: BackupDirectory,
}

/// Says that no further backup is begun, also where the work next to it panics.
pub(super) struct OverAtEnd<'a>(pub(super) &'a AtomicBool);

impl Drop for OverAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The sums over some backups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    count: u64,
    seconds: f64,
    tables: u64,
    bytes: u64,
    copied_tables: u64,
    copied_bytes: u64,
    /// Bytes that were stored while clients were at work, those of a backup that was cut short among them.
    meanwhile_bytes: Option<u64>,
}

/// A directory of backups until the clients are done; then nothing more is stored.
struct Meanwhile<'a> {
    target: &'a BackupDirectory,
    over: &'a AtomicBool,
    bytes: AtomicU64,
}

/// An object on its way into one.
struct Passing<'a> {
    from: &'a mut dyn Read,
    of: &'a Meanwhile<'a>,
}

impl Read for Passing<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.of.over.load(Ordering::Relaxed) {
            return Err(io::Error::other("the clients are done"));
        }
        let len = self.from.read(buf)?;
        self.of.bytes.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

impl BackupTarget for Meanwhile<'_> {
    fn put(&self, name: &str, from: &mut dyn Read) -> windrow::Result<()> {
        self.target.put(name, &mut Passing { from, of: self })
    }

    fn get(&self, name: &str) -> windrow::Result<Box<dyn Read + '_>> {
        self.target.get(name)
    }

    fn list(&self, folder: &str) -> windrow::Result<Vec<StoredObject>> {
        self.target.list(folder)
    }

    fn remove(&self, name: &str) -> windrow::Result<()> {
        self.target.remove(name)
    }

    fn claim(&self) -> windrow::Result<Box<dyn Send + '_>> {
        self.target.claim()
    }
}

impl UnitBackups {
    /// Makes the directory, empty.
    pub(super) fn new(database: &Path) -> Result<UnitBackups> {
        let mut dir = OsString::from(database);
        dir.push("-backups");
        let dir = PathBuf::from(dir);
        remove(&dir);
        let target = BackupDirectory::open(&dir)?;
        Ok(UnitBackups { dir, target })
    }

    /// Makes one backup.
    pub(super) fn back_up(&self, db: &Db, mib_per_s: u64) -> Result<Sums> {
        let mut sums = Sums::default();
        back_up(db, &self.target, mib_per_s, &mut sums)?;
        Ok(sums)
    }

    /// Makes backups one after the other until `over`.
    pub(super) fn back_up_until(&self, db: &Db, mib_per_s: u64, over: &AtomicBool) -> Result<Sums> {
        let meanwhile = Meanwhile { target: &self.target, over, bytes: AtomicU64::new(0) };
        let mut sums = Sums::default();
        while !over.load(Ordering::Relaxed) {
            match back_up(db, &meanwhile, mib_per_s, &mut sums) {
                Err(_) if over.load(Ordering::Relaxed) => {}
                made => made?,
            }
        }
        sums.meanwhile_bytes = Some(meanwhile.bytes.into_inner());
        Ok(sums)
    }
}

fn back_up(db: &Db, target: &dyn BackupTarget, mib_per_s: u64, sums: &mut Sums) -> Result<()> {
    let mut options = BackupOptions::default();
    options.bytes_per_second = mib_per_s << 20;
    let mut watch = Stopwatch::start();
    let made = db.backup(target, options)?;
    sums.count += 1;
    sums.seconds += watch.lap().as_secs_f64();
    sums.tables += made.tables;
    sums.bytes += made.bytes;
    sums.copied_tables += made.copied_tables;
    sums.copied_bytes += made.copied_bytes;
    prune_backups(target, KEPT)?;
    Ok(())
}

impl Drop for UnitBackups {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

fn remove(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir);
}

impl Sums {
    /// Sets the figures of the backups, whose phase has changed records of `changed_bytes`.
    pub(super) fn figures(self, changed_bytes: u64, figures: &mut Figures) {
        let mut set = |name: &str, value: f64| figures.insert(name.to_owned(), value);
        set("backups", self.count as f64);
        if let Some(bytes) = self.meanwhile_bytes {
            set("backup_meanwhile_mib", mib(bytes));
        }
        set("backup_s", self.seconds / self.count as f64);
        set("backup_mib", mib(self.bytes) / self.count as f64);
        set("backup_tables", self.tables as f64 / self.count as f64);
        set("backup_copied_mib", mib(self.copied_bytes) / self.count as f64);
        set("backup_copied_tables", self.copied_tables as f64 / self.count as f64);
        set("backup_copied_share", self.copied_bytes as f64 / self.bytes as f64);
        set("backup_mib_per_s", mib(self.copied_bytes) / self.seconds);
        if changed_bytes > 0 {
            set("backup_copied_per_changed", self.copied_bytes as f64 / changed_bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow::backup::backup_numbers;

    #[test]
    fn backups_are_made_until_the_clients_are_done() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        let backups = UnitBackups::new(&dir.path().join("db")).unwrap();
        let over = AtomicBool::new(false);
        let sums = std::thread::scope(|scope| {
            let over_at_end = OverAtEnd(&over);
            let made = scope.spawn(|| backups.back_up_until(&db, 0, &over));
            let mut number = 0u64;
            while backup_numbers(&backups.target).unwrap().last().is_none_or(|last| *last < 4) {
                db.put(number.to_be_bytes(), "value").unwrap();
                number += 1;
            }
            drop(over_at_end);
            made.join().unwrap().unwrap()
        });
        let mut figures = Figures::new();
        sums.figures(1 << 20, &mut figures);
        assert!(4.0 <= figures["backups"], "{figures:?}");
        // Records and cut-short objects are not counted as copied.
        assert!(mib(sums.copied_bytes) < figures["backup_meanwhile_mib"], "{figures:?}");
        assert!(0.0 < figures["backup_copied_per_changed"], "{figures:?}");
        let at = backups.dir.clone();
        drop(backups);
        assert!(!at.exists());
    }
}
