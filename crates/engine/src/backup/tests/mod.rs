//! Backups in a simulated file system: what is copied, kept and removed.

mod crash;
mod damage;
mod meanwhile;

use super::*;
use crate::{Db, Follower, Options};
use std::path::Path;
use windrow_base::{ErrorKind, Result};
use windrow_env::Env;
use windrow_env::fs::WriteOptions;
use windrow_env::testing::env;

fn options(env: &Env) -> Options {
    let mut options = Options::default();
    options.components.env = Some(env.clone());
    options
}

fn open(env: &Env, dir: &str) -> Db {
    Db::open_with(dir, options(env)).unwrap()
}

fn put(db: &Db, keys: std::ops::Range<u32>, value: &str) {
    for key in keys {
        db.put(key.to_be_bytes(), value.repeat(20)).unwrap();
    }
}

fn directory(env: &Env) -> BackupDirectory {
    BackupDirectory::open_in(env, Path::new("backups")).unwrap()
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// All entries of a database.
fn contents(db: &Db) -> Entries {
    let entries = db.iter().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())));
    entries.collect::<Result<_>>().unwrap()
}

/// The entries of a restored backup.
fn restored(env: &Env, target: &dyn BackupTarget, number: Option<u64>, dir: &str) -> Entries {
    restore_backup_in(env, target, number, Path::new(dir)).unwrap();
    let db = open(env, dir);
    let found = contents(&db);
    assert!(db.verify().unwrap().is_ok());
    db.close().unwrap();
    found
}

#[test]
fn each_backup_restores_to_its_moment_and_shares_tables() {
    let (env, _) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    put(&db, 0..2_000, "a");
    db.compact().unwrap();
    let first = db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!((first.number, first.copied_tables), (1, first.tables));
    let then = contents(&db);
    // Entries of memtables are in it; no other table is copied again.
    put(&db, 5_000..5_020, "b");
    let second = db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!(second.number, 2);
    assert!(second.copied_bytes < first.bytes / 10, "{second:?} after {first:?}");
    let third = db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!((third.copied_tables, third.bytes), (0, second.bytes));
    let known = backups(&target).unwrap();
    assert_eq!(known.iter().map(|b| b.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(known[1].bytes, second.bytes);
    assert_eq!(restored(&env, &target, Some(1), "then"), then);
    assert_eq!(restored(&env, &target, None, "now"), contents(&db));
    // Writers went on: the database is another one than its copies.
    put(&db, 0..10, "c");
    db.close().unwrap();
}

#[test]
fn pruning_keeps_what_the_others_need() {
    let (env, _) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    let mut moments = Vec::new();
    for round in 0..4u32 {
        put(&db, round * 500..round * 500 + 800, ["a", "b", "c", "d"][round as usize]);
        db.compact().unwrap();
        db.backup(&target, BackupOptions::default()).unwrap();
        moments.push(contents(&db));
    }
    let stored = || target.list(names::TABLES).unwrap().len();
    let before = stored();
    assert_eq!(prune_backups(&target, 2).unwrap(), [1, 2]);
    assert!(stored() < before);
    assert!(prune_backups(&target, 2).unwrap().is_empty());
    for (number, moment) in [(3, &moments[2]), (4, &moments[3])] {
        verify_backup(&target, number).unwrap();
        assert_eq!(&restored(&env, &target, Some(number), &format!("at-{number}")), moment);
    }
    let gone = restore_backup_in(&env, &target, Some(1), Path::new("gone")).unwrap_err();
    assert!(gone.message().contains("no backup 1; the last one is 4"), "{gone}");
    assert_eq!(prune_backups(&target, 0).unwrap(), [3, 4]);
    assert_eq!((stored(), backups(&target).unwrap().len()), (0, 0));
    // Numbers are not given again while one is there; the next one is whole by itself.
    assert_eq!(db.backup(&target, BackupOptions::default()).unwrap().number, 1);
    db.close().unwrap();
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let (env, _) = env(1);
    let db = open(&env, "db");
    let error = BackupDirectory::open_in(&env, Path::new("db")).map(drop).unwrap_err();
    assert!(error.message().contains("need a directory of their own"), "{error}");
    // Its name is nearly that of a file which is removed.
    let (dir, novel) = (Path::new("novels"), Path::new("novels/unfinished-novel"));
    env.fs.create_dir(dir).unwrap();
    env.fs.create(novel, WriteOptions::default()).unwrap().finish().unwrap();
    let error = BackupDirectory::open_in(&env, dir).map(drop).unwrap_err();
    assert!(error.message().contains("holds `unfinished-novel`"), "{error}");
    assert!(env.fs.exists(novel).unwrap());
    let one = directory(&env);
    let busy = BackupDirectory::open_in(&env, Path::new("backups")).map(drop).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    let restored = restore_backup_in(&env, &one, None, Path::new("db")).unwrap_err();
    assert!(restored.message().contains("there is no backup here"), "{restored}");
    db.backup(&one, BackupOptions::default()).unwrap();
    let restored = restore_backup_in(&env, &one, None, Path::new("db")).unwrap_err();
    assert!(restored.message().contains("a restored database needs"), "{restored}");
    db.close().unwrap();
}

#[test]
fn who_only_reads_backups_changes_nothing() {
    let (env, handles) = env(1);
    let absent = BackupDirectory::open_read_only_in(&env, Path::new("backups")).unwrap_err();
    assert!(absent.message().contains("there are no backups in"), "{absent}");
    let db = open(&env, "db");
    put(&db, 0..100, "a");
    let target = directory(&env);
    db.backup(&target, BackupOptions::default()).unwrap();
    let busy = BackupDirectory::open_read_only_in(&env, Path::new("backups")).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    drop(target);
    let operations = handles.fs.operations();
    let open = || BackupDirectory::open_read_only_in(&env, Path::new("backups")).unwrap();
    let (one, other) = (open(), open());
    assert_eq!(backups(&one).unwrap().len(), 1);
    verify_backup(&other, 1).unwrap();
    for refused in [
        db.backup(&one, BackupOptions::default()).map(drop),
        prune_backups(&one, 1).map(drop),
        one.put("tables/x", &mut &b"x"[..]),
        one.remove("backups/000001.backup"),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    // The backup that is refused is so before it flushes.
    assert_eq!(handles.fs.operations(), operations);
    assert_eq!(restored(&env, &one, None, "copy"), contents(&db));
    db.close().unwrap();
}

#[test]
fn backups_of_another_database_are_left_alone() {
    let (env, _) = env(1);
    let (db, other) = (open(&env, "db"), open(&env, "other"));
    let target = directory(&env);
    put(&db, 0..10, "a");
    db.backup(&target, BackupOptions::default()).unwrap();
    let refused = other.backup(&target, BackupOptions::default()).unwrap_err();
    assert!(refused.message().contains("backup 1 is of another database"), "{refused}");
    // A restored database is the same one.
    restore_backup_in(&env, &target, None, Path::new("restored")).unwrap();
    let restored = open(&env, "restored");
    let again = restored.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!((again.number, again.copied_tables), (2, 0));
    [db, other, restored].iter().for_each(|db| db.close().unwrap());
}

#[test]
fn a_follower_backs_up_what_it_has_read() {
    let (env, _) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    put(&db, 0..300, "a");
    db.flush().unwrap();
    put(&db, 200..400, "b");
    let then = contents(&db);
    let follower = Follower::open_with("db", options(&env)).unwrap();
    put(&db, 0..400, "c");
    let first = follower.backup(&target, BackupOptions::default()).unwrap();
    assert!(first.copied_tables == 1 && first.copied_bytes == first.bytes, "{first:?}");
    assert_eq!(target.list(names::LOGS).unwrap().len(), 1);
    verify_backup(&target, 1).unwrap();
    assert_eq!(restored(&env, &target, Some(1), "then"), then);
    // Nothing of it is copied again but the log; the writer's own has none.
    assert!(follower.refresh().unwrap());
    let second = follower.backup(&target, BackupOptions::default()).unwrap();
    assert!(second.copied_tables == 0 && second.copied_bytes < second.bytes, "{second:?}");
    db.backup(&target, BackupOptions::default()).unwrap();
    for number in [2, 3] {
        let dir = format!("now-{number}");
        assert_eq!(restored(&env, &target, Some(number), &dir), contents(&db));
    }
    assert_eq!(prune_backups(&target, 1).unwrap(), [1, 2]);
    assert_eq!(target.list(names::LOGS).unwrap(), []);
    drop(follower);
    db.close().unwrap();
}

/// All entries that a follower has read may be in tables, and in no log that is in force.
#[test]
fn a_follower_backs_up_what_is_in_tables_alone() {
    let (env, _) = env(1);
    let mut db = open(&env, "db");
    let target = directory(&env);
    put(&db, 0..300, "a");
    for number in 1..=4 {
        match number {
            1 => db.flush().unwrap(),
            2 => db.compact().unwrap(),
            3 => db.close().unwrap(),
            // Its log is in force, and has no batch.
            _ => db = open(&env, "db"),
        }
        let follower = Follower::open_with("db", options(&env)).unwrap();
        follower.backup(&target, BackupOptions::default()).unwrap();
        let dir = format!("copy-{number}");
        assert_eq!(restored(&env, &target, None, &dir), contents(&follower.db()));
        // Sequence numbers go on: what is written now is newer than all of it.
        let copy = open(&env, &dir);
        put(&copy, 0..300, "b");
        copy.compact().unwrap();
        let newest = copy.get(7u32.to_be_bytes()).unwrap();
        assert_eq!(newest.as_deref(), Some("b".repeat(20).as_bytes()));
        copy.close().unwrap();
    }
    db.close().unwrap();
    let logs = target.list(names::LOGS).unwrap();
    assert!(logs.iter().all(|part| part.name < names::log_part(3, 0)), "{logs:?}");
}

/// Logs of more than an object takes, and of batches that are larger than one.
#[test]
fn a_long_log_is_stored_in_parts() {
    let (env, _) = env(1);
    let db = open(&env, "db");
    for key in 0..3u32 {
        db.put(key.to_be_bytes(), vec![key as u8; 5 << 20]).unwrap();
    }
    for key in 3..30u32 {
        db.put(key.to_be_bytes(), vec![key as u8; 300 << 10]).unwrap();
    }
    let target = directory(&env);
    let follower = Follower::open_with("db", options(&env)).unwrap();
    follower.backup(&target, BackupOptions::default()).unwrap();
    let parts = target.list(names::LOGS).unwrap();
    assert!(parts.len() > 2 && parts.iter().all(|part| part.bytes < 6 << 20), "{parts:?}");
    assert_eq!(restored(&env, &target, None, "copy"), contents(&db));
    drop(follower);
    db.close().unwrap();
}

#[test]
fn a_backup_keeps_to_its_pace() {
    let (env, _) = env(1);
    let db = open(&env, "db");
    put(&db, 0..20_000, "a");
    let target = directory(&env);
    let options = BackupOptions { bytes_per_second: 64 << 10 };
    let begin_ns = env.clock.monotonic_ns();
    let made = db.backup(&target, options).unwrap();
    let seconds = (env.clock.monotonic_ns() - begin_ns) as f64 / 1e9;
    let rate = made.copied_bytes as f64 / seconds;
    assert!(made.copied_bytes > 200 << 10, "{made:?}");
    assert!((0.9..1.15).contains(&(rate / f64::from(64 << 10))), "{rate:.0} bytes a second");
    db.close().unwrap();
}
