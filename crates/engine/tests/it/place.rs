//! A database whose directory is moved, deleted, restored or replaced while it is open; directories
//! of other programs; and names that are no files. No acknowledged write is lost silently, and no
//! other program's bytes are touched.

#![allow(clippy::disallowed_methods, reason = "what other programs do to files")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use windrow::env::sync::{Mutex, Rank};
use windrow::{Components, Db, ErrorKind, Event, Options, Result, Slice, WriteSync, repair};

/// The content of a directory: every name, and the bytes of every file.
fn image(dir: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let bytes = entry.file_type().unwrap().is_file().then(|| fs::read(entry.path()).unwrap());
        (entry.file_name().into_string().unwrap(), bytes)
    };
    fs::read_dir(dir).unwrap().map(entry).collect()
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::create_dir(to);
    for (name, bytes) in image(from) {
        fs::write(to.join(name), bytes.expect("a file")).unwrap();
    }
}

fn put(db: &Db, keys: std::ops::Range<u32>, value: &str) -> Result<()> {
    keys.into_iter().try_for_each(|key| db.put(format!("{key:06}"), value))
}

fn contents(dir: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let db = Db::open(dir).unwrap();
    db.verify().unwrap().into_result().unwrap();
    let pair = |(key, value): (Slice, Slice)| (key.to_vec(), value.to_vec());
    let all = db.iter().map(|item| pair(item.unwrap())).collect();
    db.close().unwrap();
    all
}

/// A closed database of 100 pairs, in a directory of a temporary one.
fn backup() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (db, backup) = (dir.path().join("db"), dir.path().join("backup"));
    let open = Db::open(&backup).unwrap();
    put(&open, 0..100, "backup").unwrap();
    open.close().unwrap();
    copy(&backup, &db);
    (dir, db, backup)
}

#[test]
fn a_directory_that_is_renamed_stays_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("db"), dir.path().join("moved"));
    let mut options = Options::default();
    options.settings.set("memtable_bytes", "64KiB").unwrap();
    let db = Db::open_with(&path, options).unwrap();
    put(&db, 0..5_000, "mine").unwrap();
    db.flush().unwrap();
    fs::rename(&path, &moved).unwrap();
    let other = Db::open(&path).unwrap();
    put(&other, 0..1_000, "another's").unwrap();
    put(&db, 5_000..20_000, "mine").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    db.put_with("last", "mine", WriteSync::Yes).unwrap();
    db.checkpoint(dir.path().join("copy")).unwrap();
    assert_eq!(db.get("000007").unwrap().as_deref(), Some(&b"mine"[..]));
    assert_eq!(Db::open(&moved).unwrap_err().kind(), ErrorKind::Busy);
    other.flush().unwrap();
    other.close().unwrap();
    db.close().unwrap();
    for dir in [&moved, &dir.path().join("copy")] {
        let mine = contents(dir);
        assert_eq!(mine.len(), 20_001);
        assert!(mine.iter().all(|(_, value)| value == b"mine"));
    }
    let others = contents(&path);
    assert!(others.len() == 1_000 && others.iter().all(|(_, value)| value == b"another's"));
}

/// An operation on the directory of an open database.
type Attack = fn(&Path, &Path);

const ATTACKS: [(&str, Attack); 5] = [
    ("deleted and restored", |db, backup| {
        delete(db);
        copy(backup, db);
    }),
    ("moved and restored file by file", |db, backup| {
        for name in image(db).into_keys() {
            fs::remove_file(db.join(name)).unwrap();
        }
        copy(backup, db);
    }),
    ("restored over what is there", copy_over),
    ("deleted", |db, _| delete(db)),
    ("CURRENT of another database", |db, backup| {
        fs::write(db.join("CURRENT"), fs::read(backup.join("CURRENT")).unwrap()).unwrap();
    }),
];

/// Deletes until nothing is there, since the database may be making a log in it.
fn delete(db: &Path) {
    while db.exists() {
        let _ = fs::remove_dir_all(db);
    }
}

/// As `cp -a backup/. db` does: into the files that are there.
fn copy_over(db: &Path, backup: &Path) {
    copy(backup, db);
}

/// An operation of a user after it.
type Work = fn(&Db) -> Result<()>;

const WORK: [(&str, Work); 4] = [
    ("a close", |_| Ok(())),
    ("a synced write", |db| db.put_with("synced", "1", WriteSync::Yes)),
    ("a sync", |db| db.put("a", "1").and_then(|()| db.sync())),
    ("a flush", |db| db.put("a", "1").and_then(|()| db.flush())),
];

#[test]
fn a_directory_that_is_taken_away_turns_writing_off_and_the_restored_one_is_whole() {
    for (attack, act) in ATTACKS {
        for (name, work) in WORK {
            let (_dir, path, backup) = backup();
            let wanted = contents(&backup);
            let db = Db::open(&path).unwrap();
            put(&db, 100..3_000, "lost").unwrap();
            // No background work changes anything meanwhile.
            db.wait_idle().unwrap();
            act(&path, &backup);
            // The files that were put there. Next to them are an older log, and a manifest, where
            // those were not taken away.
            let restored = image(&backup);
            let put_there = || {
                let mut found = if path.exists() { image(&path) } else { BTreeMap::new() };
                found.retain(|name, _| {
                    restored.contains_key(name)
                        || attack.ends_with("restored")
                        || attack.ends_with("by file")
                });
                found
            };
            let there = put_there();
            let worked = work(&db);
            assert!(worked.is_ok() == (name == "a close"), "{attack}, {name}: {worked:?}");
            if let Err(error) = worked {
                assert!(error.to_string().contains("Nothing more is written"), "{error}");
                let refused = db.put("later", "1").unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
            }
            let error = db.close().unwrap_err().to_string();
            assert!(error.contains("directory was deleted, restored or written to"), "{error}");
            assert!(error.contains("open it again"), "{error}");
            // Not a byte of those files was changed.
            assert!(put_there() == there, "{attack}, {name}");
            if attack.contains("deleted and") || attack.contains("file by file") {
                assert_eq!(contents(&path), wanted, "{attack}, {name}");
            }
        }
    }
}

#[test]
fn what_only_looks_like_a_change_changes_nothing() {
    let (_dir, path, _) = backup();
    let db = Db::open(&path).unwrap();
    let current = path.join("CURRENT");
    // Another program writes the same bytes: with another time, and then as another file.
    fs::write(&current, fs::read(&current).unwrap()).unwrap();
    db.put_with("a", "1", WriteSync::Yes).unwrap();
    let bytes = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    fs::write(&current, bytes).unwrap();
    db.put_with("b", "1", WriteSync::Yes).unwrap();
    fs::write(path.join("notes.txt"), "a stranger's").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert_eq!(contents(&path).len(), 102);
}

#[test]
fn a_lock_file_that_is_gone_or_another_turns_writing_off() {
    for replaced in [false, true] {
        let (_dir, path, _) = backup();
        let db = Db::open(&path).unwrap();
        db.put_with("a", "1", WriteSync::Yes).unwrap();
        fs::remove_file(path.join("LOCK")).unwrap();
        if replaced {
            fs::write(path.join("LOCK"), "1\n").unwrap();
        }
        let error = db.put_with("b", "1", WriteSync::Yes).unwrap_err();
        assert!(error.first_failure().file().unwrap().ends_with("LOCK"), "{error}");
        assert!(db.close().is_err());
        // No acknowledged write is lost by it.
        assert!(contents(&path).iter().any(|(key, _)| key == b"a"));
    }
}

#[test]
fn a_database_is_open_once_by_whatever_path() {
    let (dir, path, _) = backup();
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    let db = Db::open(&link).unwrap();
    for other in [&path, &link, &dir.path().join("./db"), &dir.path().join("backup/../db")] {
        assert_eq!(Db::open(other).unwrap_err().kind(), ErrorKind::Busy, "{}", other.display());
        assert_eq!(Db::destroy(path.as_path()).unwrap_err().kind(), ErrorKind::Busy);
    }
    db.close().unwrap();
    assert_eq!(contents(&path).len(), 100);
}

/// Options whose listener collects the events of files that were left.
fn listening() -> (Options, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Rank::INNERMOST, Vec::new()));
    let into = told.clone();
    let listener = move |event: &Event| {
        if let Event::OrphanLeft { .. } = event {
            into.lock().push(event.to_string());
        }
    };
    let components = Components { listener: Some(Arc::new(listener)), ..Components::default() };
    (Options { components, ..Options::default() }, told)
}

#[test]
fn an_orphan_that_cannot_be_removed_keeps_nobody_from_opening() {
    let (_dir, path, _) = backup();
    fs::create_dir(path.join("000777.sst")).unwrap();
    let mut names = Vec::new();
    for round in 0..40 {
        let (options, told) = listening();
        let db = Db::open_with(&path, options).unwrap();
        db.put("again", "1").unwrap();
        db.compact().unwrap();
        db.close().unwrap();
        let told = told.lock();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("000777.sst is no part of the database"), "{}", told[0]);
        names.push(image(&path).len());
        assert_eq!(names[round], names[0], "{names:?}");
    }
    assert_eq!(contents(&path).len(), 101);
}

/// An engine's name, and the names and bytes of the files that it leaves.
type Left = (&'static str, Vec<(&'static str, &'static [u8])>);

/// Directories as other engines leave them.
fn others() -> Vec<Left> {
    const MANIFEST: &[u8] = b"\x56\xf9\xb8\xf8\x1c\0\x01\x01\x1aleveldb.BytewiseComparator";
    const TABLE: &[u8] = b"\0\x08\x01a\x01\0\0\0\0\0\0some RocksDB block";
    vec![
        (
            "RocksDB",
            vec![
                ("CURRENT", b"MANIFEST-000005\n"),
                ("MANIFEST-000005", MANIFEST),
                ("000008.sst", TABLE),
                ("000007.log", b"log"),
                ("LOCK", b""),
                ("IDENTITY", b"4b1c"),
            ],
        ),
        (
            "LevelDB",
            vec![
                ("CURRENT", b"MANIFEST-000002\n"),
                ("MANIFEST-000002", MANIFEST),
                ("000005.ldb", TABLE),
                ("LOCK", b""),
            ],
        ),
        ("a manifest without CURRENT", vec![("MANIFEST-000099", MANIFEST), ("LOCK", b"")]),
        ("a table alone", vec![("000123.sst", TABLE)]),
        ("a CURRENT of somebody's", vec![("CURRENT", b"see notes.txt")]),
        ("a LOCK of somebody's", vec![("LOCK", b"held by the archive job\n")]),
    ]
}

#[test]
fn a_directory_of_another_program_is_refused_and_not_touched() {
    for (whose, files) in others() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let before = image(dir.path());
        let read_only = Options { read_only: true, ..Options::default() };
        let tries: [(&str, Result<()>); 5] = [
            ("open", Db::open(dir.path()).map(drop)),
            ("open to read", Db::open_with(dir.path(), read_only).map(drop)),
            ("destroy", Db::destroy(dir.path())),
            ("repair", repair(dir.path(), Options::default()).map(drop)),
            ("settings", Db::stored_settings(dir.path()).map(drop)),
        ];
        for (what, outcome) in tries {
            let error = outcome.expect_err(whose);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{whose}, {what}: {error}");
            assert!(error.to_string().contains("another program's files"), "{error}");
        }
        assert!(image(dir.path()) == before, "{whose}");
    }
}

#[test]
fn a_lock_file_that_a_power_loss_left_keeps_nobody_from_opening() {
    // The lock file is made first and never synced: its length may be there, and none of its bytes,
    // a part of them, or those of a file that was there before.
    let left: [&[u8]; 9] = [
        b"",
        b"1",
        b"12345",
        b"\0",
        b"\0\0\0\0\0\0",
        b"12\0\0\0\n",
        b"\x00\x00345\n",
        b"see notes",
        b"\xff\xfe4294967\n",
    ];
    for bytes in left {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("LOCK"), bytes).unwrap();
        let db = Db::open(dir.path()).unwrap_or_else(|error| panic!("{bytes:?}: {error}"));
        db.put("key", "value").unwrap();
        db.close().unwrap();
        // A database does not refuse them either, whatever the length.
        for again in [bytes, b"held by the archive job\n"] {
            fs::write(dir.path().join("LOCK"), again).unwrap();
            let db = Db::open(dir.path()).unwrap_or_else(|error| panic!("{again:?}: {error}"));
            assert_eq!(db.get("key").unwrap().unwrap().to_vec(), b"value");
            db.close().unwrap();
        }
    }
}

#[test]
fn strangers_in_a_database_stay() {
    let (_dir, path, _) = backup();
    let strangers: [(&str, &[u8]); 5] = [
        ("000123.tmp", b"half a download"),
        ("MANIFEST-000099", b"a manifest of something"),
        ("000777.sst", b"a table of something"),
        ("000778.wal", b"a log of something"),
        ("RESERVE", b"a reserve of something"),
    ];
    let check = || {
        for (name, bytes) in strangers {
            assert_eq!(fs::read(path.join(name)).unwrap(), bytes, "{name}");
        }
    };
    for (name, bytes) in strangers {
        fs::write(path.join(name), bytes).unwrap();
    }
    for reserve_bytes in [0, 1 << 20] {
        let mut options = Options::default();
        options.settings.reserve_bytes = reserve_bytes;
        let db = Db::open_with(&path, options).unwrap();
        put(&db, 0..200, "more").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        check();
    }
    assert_eq!(contents(&path).len(), 200);
    Db::destroy(&path).unwrap();
    check();
    assert_eq!(image(&path).len(), strangers.len(), "all of Windrow's is gone");
}

#[test]
fn a_new_database_leaves_what_has_a_name_of_its_kind() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("000123.tmp"), b"half a download").unwrap();
    for _ in 0..3 {
        Db::open(dir.path()).unwrap().close().unwrap();
        assert_eq!(fs::read(dir.path().join("000123.tmp")).unwrap(), b"half a download");
    }
}

#[test]
fn a_number_that_leaves_none_is_refused() {
    let (_dir, path, _) = backup();
    let name = format!("{}.sst", (1u64 << 62) - 1);
    fs::write(path.join(&name), b"").unwrap();
    let error = Db::open(&path).unwrap_err();
    assert!(error.to_string().contains("move it away"), "{error}");
    fs::remove_file(path.join(&name)).unwrap();
    assert_eq!(contents(&path).len(), 100);
}

#[test]
fn a_link_is_not_destroyed_nor_what_it_leads_to() {
    let (dir, path, _) = backup();
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    let before = image(&path);
    for by in [link.clone(), link.join("")] {
        let error = Db::destroy(&by).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }
    assert!(image(&path) == before && link.is_symlink());
    Db::destroy(&path).unwrap();
    assert!(!path.exists());
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_or_a_directory_in_the_place_of_a_file_is_an_error_and_no_wait() {
    for name in ["CURRENT", "LOCK", "MANIFEST", ".sst", ".wal"] {
        for make in [pipe as fn(&Path), |path| fs::create_dir(path).unwrap()] {
            let (_dir, path, _) = backup();
            let found = image(&path).into_keys().find(|n| n.contains(name)).unwrap();
            let (file, aside) = (path.join(&found), path.join("aside"));
            fs::rename(&file, &aside).unwrap();
            make(&file);
            let opened = Db::open(&path).and_then(|db| db.verify()?.into_result().map(drop));
            assert!(opened.is_err(), "{name}");
            match file.is_dir() {
                true => fs::remove_dir(&file).unwrap(),
                false => fs::remove_file(&file).unwrap(),
            }
            fs::rename(&aside, &file).unwrap();
            assert_eq!(contents(&path).len(), 100, "{name}");
        }
    }
}

#[test]
fn a_lock_file_that_is_a_link_is_refused_and_what_it_leads_to_left() {
    let (dir, path, _) = backup();
    let target = dir.path().join("precious");
    fs::write(&target, "precious").unwrap();
    fs::remove_file(path.join("LOCK")).unwrap();
    symlink(&target, path.join("LOCK")).unwrap();
    for outcome in [Db::open(&path).map(drop), Db::destroy(&path)] {
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("remove the link"), "{error}");
    }
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    fs::remove_file(path.join("LOCK")).unwrap();
    assert_eq!(contents(&path).len(), 100);
}
