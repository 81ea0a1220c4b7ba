//! Backups: what one needs stays as long as it does, and damage to it is not restored.
//!
//! Owns: the scenarios. Never does: end a process (`engine/src/backup/tests` and the crash harness
//! do).

use super::feeding;
use super::steps::{ensure, kind, open, options, text};
use std::io::Read;
use std::path::Path;
use windrow::backup::{
    BackupDirectory, BackupOptions, BackupTarget, StoredObject, backup_numbers, prune_backups,
    restore_backup_in, verify_backup,
};
use windrow::{Db, ErrorKind, Follower, WriteSync};
use windrow_env::testing::{Handles, NameDamage, env};
use windrow_testkit::world::DIR;

const BACKUPS: &str = "/world/backups";

fn directory(handles: &Handles) -> Result<BackupDirectory, String> {
    BackupDirectory::open_in(&handles.env(), Path::new(BACKUPS)).map_err(text)
}

/// A database with a table for each of these values, and a backup after each.
fn backed_up(handles: &Handles, values: &[&str]) -> Result<(Db, BackupDirectory), String> {
    let (db, backups) = (open(handles)?, directory(handles)?);
    for value in values {
        db.put(value, value).and_then(|()| db.compact()).map_err(text)?;
        db.backup(&backups, BackupOptions::default()).map_err(text)?;
    }
    Ok((db, backups))
}

/// Of two backups that are kept, both are whole: also what only the older one needs.
pub(super) fn a_prune_leaves_what_others_need() -> Result<(), String> {
    let (_, handles) = env(1);
    let (db, backups) = backed_up(&handles, &["a", "b", "c"])?;
    prune_backups(&backups, 2).map_err(text)?;
    ensure(backup_numbers(&backups).map_err(text)? == [2, 3], "another backup was removed")?;
    for number in [2, 3] {
        verify_backup(&backups, number).map_err(|e| format!("backup {number}: {e}"))?;
    }
    db.close().map_err(text)
}

/// A byte of a table, and one of a record.
pub(super) fn damage_is_not_restored() -> Result<(), String> {
    let (_, handles) = env(1);
    let (db, backups) = backed_up(&handles, &["a"])?;
    db.close().map_err(text)?;
    for folder in ["tables", "backups"] {
        let objects = backups.list(folder).map_err(text)?;
        let StoredObject { name, bytes } = objects.first().ok_or("nothing was stored")?;
        let path = Path::new(BACKUPS).join(name);
        for at in 0..*bytes {
            handles.fs.flip(&path, at, 1);
            let copy = Path::new("/world/copy");
            let restored = kind(restore_backup_in(&handles.env(), &backups, None, copy));
            let says = format!("byte {at} of {name} was changed, and a restore says {restored:?}");
            ensure(restored == Some(ErrorKind::Corruption), &says)?;
            handles.fs.flip(&path, at, 1);
        }
    }
    Ok(())
}

/// A byte of a table of the database.
pub(super) fn damage_is_not_backed_up() -> Result<(), String> {
    let (_, handles) = env(1);
    let (db, backups) = (open(&handles)?, directory(&handles)?);
    db.put("a", "1").and_then(|()| db.flush()).map_err(text)?;
    let names = handles.fs.files(DIR.as_ref());
    let table = names.iter().find(|name| name.ends_with(".sst")).ok_or("no table")?;
    let path = Path::new(DIR).join(table);
    let bytes = handles.env().fs.len(&path).map_err(text)?;
    for at in 0..bytes {
        handles.fs.flip(&path, at, 1);
        let made = kind(db.backup(&backups, BackupOptions::default()));
        let says = format!("byte {at} of {table} was changed, and a backup says {made:?}");
        ensure(made == Some(ErrorKind::Corruption), &says)?;
        handles.fs.flip(&path, at, 1);
    }
    db.close().map_err(text)
}

/// A target that is slow: everything is merged away before its first object is stored.
struct Slow<'a> {
    backups: &'a BackupDirectory,
    meanwhile: &'a (dyn Fn() + Send + Sync),
}

impl BackupTarget for Slow<'_> {
    fn put(&self, name: &str, from: &mut dyn Read) -> windrow::Result<()> {
        (self.meanwhile)();
        self.backups.put(name, from)
    }

    fn get(&self, name: &str) -> windrow::Result<Box<dyn Read + '_>> {
        self.backups.get(name)
    }

    fn list(&self, folder: &str) -> windrow::Result<Vec<StoredObject>> {
        self.backups.list(folder)
    }

    fn remove(&self, name: &str) -> windrow::Result<()> {
        self.backups.remove(name)
    }
}

/// Tables stay until they are copied, whatever merges do meanwhile.
pub(super) fn tables_stay_until_they_are_copied() -> Result<(), String> {
    let (_, handles) = env(1);
    let (db, backups) = (open(&handles)?, directory(&handles)?);
    for value in ["1", "2"] {
        db.put("a", value).and_then(|()| db.flush()).map_err(text)?;
    }
    let meanwhile = || {
        let merged = db.put("a", "3").and_then(|()| db.compact());
        merged.expect("writers go on");
        handles.jobs.run_until_idle();
    };
    let slow = Slow { backups: &backups, meanwhile: &meanwhile };
    db.backup(&slow, BackupOptions::default()).map_err(text)?;
    verify_backup(&backups, 1).map_err(text)?;
    db.close().map_err(text)
}

/// The power takes back writes that a follower's backup has, and others get their numbers.
pub(super) fn changes_of_another_history_are_not_taken() -> Result<(), String> {
    let (_, handles) = env(1);
    let (db, backups) = (feeding::open(&handles)?, directory(&handles)?);
    db.put_with("a", "1", WriteSync::Yes).and_then(|()| db.put("b", "1")).map_err(text)?;
    let follower = Follower::open_with(DIR, options(&handles)).map_err(text)?;
    let first = follower.backup(&backups, BackupOptions::default()).map_err(text)?;
    drop(follower);
    ensure(first.seq == 2, "a backup lacks what was written")?;
    let handles = feeding::without_power(Some(db), &handles, NameDamage::DropAll);
    let db = feeding::open(&handles)?;
    ensure(db.snapshot().seq() == 1, "the write is there")?;
    db.put("c", "1").and_then(|()| db.put("d", "1")).map_err(text)?;
    let second = db.backup(&backups, BackupOptions::default()).map_err(text)?;
    let says = format!("changes of another history: {:?}", second.changes);
    ensure(second.changes.is_none(), &says)?;
    db.close().map_err(text)
}
