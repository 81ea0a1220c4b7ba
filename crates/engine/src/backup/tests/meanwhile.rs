//! Changes of the database, and of the target, while a backup is made.

use super::*;
use std::io::Read;
use windrow_env::sync::atomic::{AtomicU64, Ordering};

/// A target that has something done before it stores its n-th object, or reads one of this name.
struct Meanwhile<'a> {
    target: &'a BackupDirectory,
    before: u64,
    before_reading: &'a str,
    puts: AtomicU64,
    act: &'a (dyn Fn() + Send + Sync),
}

impl<'a> Meanwhile<'a> {
    fn new(
        target: &'a BackupDirectory,
        before: u64,
        act: &'a (dyn Fn() + Send + Sync),
    ) -> Meanwhile<'a> {
        Meanwhile { target, before, before_reading: "", puts: AtomicU64::new(0), act }
    }

    fn before_reading(self, name: &'a str) -> Meanwhile<'a> {
        Meanwhile { before: u64::MAX, before_reading: name, ..self }
    }
}

impl BackupTarget for Meanwhile<'_> {
    fn put(&self, name: &str, from: &mut dyn Read) -> Result<()> {
        if self.puts.fetch_add(1, Ordering::Relaxed) == self.before {
            (self.act)();
        }
        self.target.put(name, from)
    }

    fn get(&self, name: &str) -> Result<Box<dyn Read + '_>> {
        if name == self.before_reading {
            (self.act)();
        }
        self.target.get(name)
    }

    fn list(&self, folder: &str) -> Result<Vec<StoredObject>> {
        self.target.list(folder)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.target.remove(name)
    }

    fn claim(&self) -> Result<Box<dyn Send + '_>> {
        self.target.claim()
    }
}

/// As many tables has [`several`].
const TABLES: u64 = 6;

/// A database of several tables in two keyspaces.
fn several(env: &Env) -> Db {
    let db = open(env, "db");
    let other = db.keyspace("other").unwrap();
    for round in 0..3 {
        put(&db, round * 100..round * 100 + 150, "a");
        other.put("key", round.to_be_bytes()).unwrap();
        db.flush().unwrap();
    }
    db
}

/// Tables that a merge, a drop and deletes leave behind stay until they are copied, and nothing of
/// what came later is in the backup.
#[test]
fn tables_that_are_merged_away_or_dropped_meanwhile_are_in_the_backup() {
    for before in 0..=TABLES {
        let (env, _) = env(before);
        let db = several(&env);
        let then = contents(&db);
        let target = directory(&env);
        let act = || {
            db.drop_keyspace("other").unwrap();
            put(&db, 0..1_000, "later");
            db.clear_prefix([]).unwrap();
            db.compact().unwrap();
            db.keyspace("other").unwrap().put("key", "another").unwrap();
            db.wait_idle().unwrap();
        };
        let slow = Meanwhile::new(&target, before, &act);
        db.backup(&slow, BackupOptions::default()).unwrap();
        assert!(slow.puts.load(Ordering::Relaxed) > before, "nothing was done meanwhile");
        assert_eq!(contents(&db), []);
        restore_backup_in(&env, &target, None, Path::new("copy")).unwrap();
        let copy = open(&env, "copy");
        assert_eq!(contents(&copy), then);
        let other = copy.open_keyspace("other").unwrap().expect("it was there");
        assert_eq!(other.get("key").unwrap().as_deref(), Some(&2u32.to_be_bytes()[..]));
        assert!(copy.verify().unwrap().is_ok());
        copy.close().unwrap();
        db.close().unwrap();
        // Nothing of it is left once the backup lets go.
        drop(db);
        let db = open(&env, "db");
        assert!(db.verify().unwrap().is_ok());
        db.close().unwrap();
    }
}

/// A follower's backup is of its moment too: a lease keeps its files.
#[test]
fn a_followers_files_stay_until_they_are_copied() {
    for before in 0..=TABLES {
        let (env, _) = env(before);
        let db = several(&env);
        put(&db, 0..50, "in the log");
        let then = contents(&db);
        let follower = Follower::open_with("db", options(&env)).unwrap();
        let target = directory(&env);
        let act = || {
            put(&db, 0..1_000, "later");
            db.compact().unwrap();
            db.wait_idle().unwrap();
        };
        let slow = Meanwhile::new(&target, before, &act);
        follower.backup(&slow, BackupOptions::default()).unwrap();
        assert!(slow.puts.load(Ordering::Relaxed) > before, "nothing was done meanwhile");
        assert_eq!(restored(&env, &target, None, "copy"), then);
        drop(follower);
        db.close().unwrap();
    }
}

#[test]
fn a_backup_or_prune_next_to_another_one_is_refused() {
    let (env, _) = env(1);
    let db = several(&env);
    let target = directory(&env);
    let act = || {
        let another = db.backup(&target, BackupOptions::default()).unwrap_err();
        let prune = prune_backups(&target, 0).unwrap_err();
        for refused in [another, prune] {
            assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        }
        assert_eq!(backups(&target).unwrap(), []);
    };
    let slow = Meanwhile::new(&target, 1, &act);
    db.backup(&slow, BackupOptions::default()).unwrap();
    assert_eq!(prune_backups(&target, 0).unwrap(), [1], "the first one is over");
    db.close().unwrap();
}

/// A close does not wait for a slow copy, nor does a resume.
#[test]
fn a_backup_gives_up_when_the_database_closes() {
    for before in 0..=TABLES {
        let (env, _) = env(before);
        let db = several(&env);
        let target = directory(&env);
        // The pinned tables are obsolete by then, and the next open removes them.
        let act = || {
            db.compact().unwrap();
            db.close().unwrap();
            let next = open(&env, "db");
            next.verify().unwrap().into_result().unwrap();
            next.close().unwrap();
        };
        let slow = Meanwhile::new(&target, before, &act);
        let made = db.backup(&slow, BackupOptions::default());
        if before == TABLES {
            // The record alone was missing.
            assert_eq!(made.unwrap().tables, TABLES);
            continue;
        }
        assert_eq!(made.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(backups(&target).unwrap(), []);
        drop(db);
        let db = open(&env, "db");
        assert!(db.verify().unwrap().is_ok());
        db.close().unwrap();
    }
}

#[test]
fn writing_is_turned_on_again_while_a_backup_is_made() {
    use windrow_env::testing::{Fault, FaultKind, Ops, When};
    for before in 0..=TABLES {
        let (env, handles) = env(before);
        let db = several(&env);
        let then = contents(&db);
        let target = directory(&env);
        let act = || {
            let fault = Fault::new(FaultKind::Io, Ops::SYNC, When::Matching(0)).on_path(".wal");
            let fault = handles.fs.inject(fault);
            db.synced().put("key", "lost").unwrap_err();
            handles.fs.remove_fault(fault);
            db.resume().unwrap();
            put(&db, 0..500, "later");
            db.compact().unwrap();
        };
        let slow = Meanwhile::new(&target, before, &act);
        db.backup(&slow, BackupOptions::default()).unwrap();
        assert_eq!(restored(&env, &target, None, "copy"), then);
        db.verify().unwrap().into_result().unwrap();
        db.close().unwrap();
    }
}

/// The caller gets the source's error, not the target's wrapper of it.
#[test]
fn a_source_that_cannot_be_read_is_told_as_it_is() {
    struct Swallows<'a>(&'a BackupDirectory);
    impl BackupTarget for Swallows<'_> {
        fn put(&self, name: &str, from: &mut dyn Read) -> Result<()> {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            self.0.put(name, &mut bytes.as_slice())
        }
        fn get(&self, name: &str) -> Result<Box<dyn Read + '_>> {
            self.0.get(name)
        }
        fn list(&self, folder: &str) -> Result<Vec<StoredObject>> {
            self.0.list(folder)
        }
        fn remove(&self, name: &str) -> Result<()> {
            self.0.remove(name)
        }
    }
    use windrow_env::testing::{Fault, FaultKind, Ops, When};
    let (env, handles) = env(1);
    let db = several(&env);
    let target = directory(&env);
    let fault = Fault::new(FaultKind::Io, Ops::READ, When::Matching(0)).on_path(".sst");
    let fault = handles.fs.inject(fault);
    let refused = db.backup(&Swallows(&target), BackupOptions::default()).unwrap_err();
    handles.fs.remove_fault(fault);
    assert!(refused.kind() == ErrorKind::Io && refused.to_string().contains(".sst"), "{refused}");
    assert_eq!(backups(&target).unwrap(), []);
    // The stored part of the table is too short, and is stored again.
    db.backup(&target, BackupOptions::default()).unwrap();
    verify_backup(&target, 1).unwrap();
    db.close().unwrap();
}

/// A prune removes an object between the names of a listing and their lengths.
#[test]
fn a_directory_is_listed_while_objects_are_removed() {
    let (env, _handles) = env(1);
    let backups = BackupDirectory::open_in(&env, Path::new("/backups")).unwrap();
    let is_over = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20_000 {
                let name = format!("tables/{n}");
                backups.put(&name, &mut &b"x"[..]).unwrap();
                backups.remove(&name).unwrap();
            }
            is_over.store(1, Ordering::Relaxed);
        });
        while is_over.load(Ordering::Relaxed) == 0 {
            assert!(backups.list("tables").unwrap().len() <= 1);
        }
    });
}

#[test]
fn backups_are_listed_while_one_is_pruned() {
    let (env, _handles) = env(1);
    let backups = BackupDirectory::open_in(&env, Path::new("/backups")).unwrap();
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with("/db", options).unwrap();
    for number in 1..=3 {
        assert_eq!(db.backup(&backups, Default::default()).unwrap().number, number);
    }
    let prune = || backups.remove("backups/000002.backup").unwrap();
    let pruned = Meanwhile::new(&backups, 0, &prune).before_reading("backups/000002.backup");
    let numbers = |found: Vec<Backup>| found.iter().map(|backup| backup.number).collect::<Vec<_>>();
    assert_eq!(numbers(super::super::backups(&pruned).unwrap()), [1, 3]);
    let prune = || backups.remove("backups/000003.backup").unwrap();
    let pruned = Meanwhile::new(&backups, 0, &prune).before_reading("backups/000003.backup");
    let gone = read_backup(&pruned, 3).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::InvalidArgument, "{gone}");
    db.close().unwrap();
}
