//! Damage to what a target holds: each byte of it is noticed, and nothing is restored of it.

use super::*;
use windrow_env::testing::Handles;

/// A target with two backups, the second one of a follower, with a log; what is in each.
struct Prepared {
    env: Env,
    handles: Handles,
    target: BackupDirectory,
    moments: [Entries; 2],
}

impl Prepared {
    fn new() -> Prepared {
        let (env, handles) = env(1);
        let db = open(&env, "db");
        let target = directory(&env);
        put(&db, 0..20, "a");
        db.backup(&target, BackupOptions::default()).unwrap();
        let first = contents(&db);
        put(&db, 10..30, "b");
        let follower = Follower::open_with("db", options(&env)).unwrap();
        follower.backup(&target, BackupOptions::default()).unwrap();
        drop(follower);
        let moments = [first, contents(&db)];
        db.close().unwrap();
        Prepared { env, handles, target, moments }
    }

    /// Every object, and how long it is.
    fn objects(&self) -> Vec<StoredObject> {
        let folders = [names::TABLES, names::RECORDS, names::LOGS].into_iter();
        folders.flat_map(|folder| self.target.list(folder).unwrap()).collect()
    }

    /// The backups that are found damaged: by verify as by a restore, which leaves nothing. Others
    /// are restored to what they are of.
    fn damaged(&self) -> Vec<u64> {
        let copy = Path::new("copy");
        let is_damaged = |&number: &u64| {
            let verified = verify_backup(&self.target, number);
            let restored = restore_backup_in(&self.env, &self.target, Some(number), copy);
            assert_eq!(verified.is_ok(), restored.is_ok(), "{verified:?}, {restored:?}");
            if let Err(error) = restored {
                let told = verified.unwrap_err();
                assert!(error.is_corruption() && told.is_corruption(), "{error}, {told}");
                assert_eq!(self.handles.fs.files(copy), [""; 0], "after {error}");
                return true;
            }
            let db = open(&self.env, "copy");
            assert_eq!(contents(&db), self.moments[number as usize - 1]);
            db.close().unwrap();
            for name in self.handles.fs.files(copy) {
                self.handles.fs.remove_file(&copy.join(name));
            }
            false
        };
        [1, 2].into_iter().filter(is_damaged).collect()
    }
}

/// The backups that an object belongs to: the table is in both.
fn owners(name: &str) -> &'static [u64] {
    match name {
        name if name.starts_with(names::TABLES) => &[1, 2],
        "backups/000001.backup" => &[1],
        _ => &[2],
    }
}

#[test]
fn each_byte_of_a_backup_that_is_changed_is_noticed() {
    let prepared = Prepared::new();
    let objects = prepared.objects();
    assert_eq!(objects.len(), 4, "{objects:?}");
    assert_eq!(prepared.damaged(), [0; 0]);
    for StoredObject { name, bytes } in objects {
        let path = Path::new("backups").join(&name);
        for at in 0..bytes {
            let mask = 1 << (at % 8);
            prepared.handles.fs.flip(&path, at, mask);
            assert_eq!(prepared.damaged(), owners(&name), "byte {at} of {name}");
            prepared.handles.fs.flip(&path, at, mask);
        }
    }
    assert_eq!(prepared.damaged(), [0; 0]);
}

/// Of an object that is cut short, that has grown, or in whose place another one is.
#[test]
fn an_object_of_another_length_or_of_others_is_noticed() {
    let prepared = Prepared::new();
    let fs = &prepared.handles.fs;
    let objects = prepared.objects();
    for StoredObject { name, bytes } in &objects {
        let path = Path::new("backups").join(name);
        let whole = fs.read_file(&path).unwrap();
        let mut grown = whole.clone();
        grown.push(0);
        let cut = (0..*bytes).map(|len| whole[..len as usize].to_vec());
        let others = objects.iter().filter(|other| other.name != *name);
        let others =
            others.map(|other| fs.read_file(&Path::new("backups").join(&other.name)).unwrap());
        for damage in cut.chain([grown]).chain(others) {
            fs.write_file(&path, &damage);
            assert_eq!(prepared.damaged(), owners(name), "{} bytes of {name}", damage.len());
        }
        fs.write_file(&path, &whole);
    }
    assert_eq!(prepared.damaged(), [0; 0]);
}

#[test]
fn damage_is_named_and_repaired_by_the_next_backup() {
    let (env, handles) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    put(&db, 0..500, "a");
    db.backup(&target, BackupOptions::default()).unwrap();
    let table = target.list(names::TABLES).unwrap()[0].name.clone();
    handles.fs.flip(&Path::new("backups").join(&table), 4_000, 1);
    for error in [
        verify_backup(&target, 1).unwrap_err(),
        restore_backup_in(&env, &target, None, Path::new("copy")).unwrap_err(),
    ] {
        assert!(error.is_corruption() && error.to_string().contains(&table), "{error}");
    }
    // Once it is removed, the next backup stores it again, and what names it is whole.
    target.remove(&table).unwrap();
    let absent = verify_backup(&target, 1).unwrap_err();
    assert!(absent.to_string().contains(&table), "{absent}");
    let made = db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!((made.number, made.copied_tables), (2, 1));
    assert_eq!(restored(&env, &target, Some(1), "copy"), contents(&db));
    db.close().unwrap();
}

/// Damage to a table of the database is not backed up: each byte of it.
#[test]
fn damage_to_the_source_is_not_stored() {
    let (env, handles) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    put(&db, 0..40, "a");
    db.flush().unwrap();
    let files = handles.fs.files(Path::new("db"));
    let table = files.iter().find(|name| name.ends_with(".sst")).expect("a table");
    let path = Path::new("db").join(table);
    for at in 0..env.fs.len(&path).unwrap() {
        handles.fs.flip(&path, at, 1);
        let refused = db.backup(&target, BackupOptions::default()).unwrap_err();
        assert!(refused.is_corruption() && refused.to_string().contains(table), "{refused}");
        handles.fs.flip(&path, at, 1);
    }
    assert!(backups(&target).unwrap().is_empty() && target.list(names::TABLES).unwrap().is_empty());
    db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!(restored(&env, &target, None, "copy"), contents(&db));
    db.close().unwrap();
}

/// A record that cannot be read keeps the others from nothing but from being pruned.
#[test]
fn a_damaged_record_is_no_harm_to_other_backups() {
    let (env, handles) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    for keys in [0..100, 100..200] {
        put(&db, keys, "a");
        db.backup(&target, BackupOptions::default()).unwrap();
    }
    handles.fs.flip(Path::new("backups/backups/000001.backup"), 60, 1);
    let listed = backups(&target).unwrap_err();
    assert!(listed.to_string().contains("000001.backup"), "{listed}");
    assert_eq!(backup_numbers(&target).unwrap(), [1, 2]);
    assert_eq!(read_backup(&target, 2).unwrap().tables, 2);
    let made = db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!((made.number, made.copied_tables), (3, 0));
    let objects = target.list(names::TABLES).unwrap();
    let refused = prune_backups(&target, 3).unwrap_err();
    assert!(refused.message().contains("nothing is removed, since of backup 1"), "{refused}");
    assert_eq!(target.list(names::TABLES).unwrap(), objects);
    assert_eq!(restored(&env, &target, Some(2), "copy"), contents(&db));
    // It goes when it is its turn.
    assert_eq!(prune_backups(&target, 2).unwrap(), [1]);
    db.close().unwrap();
}
