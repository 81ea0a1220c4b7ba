//! Tests of directories that are held open, names that are taken, and entries that are no files, in
//! a temporary directory.
//!
//! Owns: the cases. Never does: use the simulated file system.

use super::*;
use crate::FileSystem;
use crate::fs::{EntryKind, LockMode, ReadFileOptions, WriteOptions, is_not_found};
use rustix::fs::{CWD, FileType, Mode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::ErrorKind;

fn put(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) {
    let mut file = fs.create(path, WriteOptions::default()).unwrap();
    file.append(bytes).unwrap();
    file.finish().unwrap();
}

/// A directory `db` in a temporary one, and the file systems without and with it held open.
fn anchored() -> (tempfile::TempDir, PathBuf, OsFs, Arc<dyn FileSystem>) {
    let dir = tempfile::tempdir().unwrap();
    let (fs, db) = (OsFs::new(), dir.path().join("db"));
    fs.create_dir(&db).unwrap();
    let held = fs.anchor(&db).unwrap();
    (dir, db, fs, held)
}

#[test]
fn a_directory_held_open_is_followed_wherever_it_goes() {
    let (dir, db, fs, held) = anchored();
    put(&*held, &db.join("before"), b"1");
    let moved = dir.path().join("moved");
    fs.rename(&db, &moved).unwrap();
    fs.create_dir(&db).unwrap();
    put(&fs, &db.join("before"), b"another's");
    // Every operation.
    put(&*held, &db.join("a"), b"2");
    held.rename(&db.join("a"), &db.join("b")).unwrap();
    held.link(&db.join("b"), &db.join("c")).unwrap();
    held.create_log(&db.join("log"), 100).unwrap().write_at(0, b"3").unwrap();
    held.sync_dir(&db).unwrap();
    held.create_dir(&db.join("lost")).unwrap();
    held.rename(&db.join("c"), &db.join("lost/c")).unwrap();
    held.sync_dir(&db.join("lost")).unwrap();
    let lock = held.lock(&db.join("LOCK"), LockMode::Exclusive).unwrap();
    assert_eq!(lock.id(), held.stamp(&db.join("LOCK")).unwrap().map(|stamp| stamp.id));
    assert!(held.free_bytes(&db).unwrap() > 0);
    assert_eq!(held.read_all(&db.join("before")).unwrap(), b"1");
    assert_eq!(held.len(&db.join("log")).unwrap(), 100);
    assert!(held.exists(&db.join("b")).unwrap() && held.exists(&db).unwrap());
    let mut names = held.list(&db).unwrap();
    names.sort();
    assert_eq!(names, ["LOCK", "b", "before", "log", "lost"]);
    assert_eq!(fs.list(&db).unwrap(), ["before"], "another's directory");
    assert_eq!(fs.read_all(&db.join("before")).unwrap(), b"another's");
    assert!(fs.exists(&moved.join("lost/c")).unwrap());
    // A second anchor, and operations from one to the other.
    let both = held.anchor(&dir.path().join("moved")).unwrap();
    both.link(&db.join("b"), &moved.join("d")).unwrap();
    held.link(&db.join("b"), &dir.path().join("out")).unwrap();
    assert!(fs.exists(&moved.join("d")).unwrap() && fs.exists(&dir.path().join("out")).unwrap());
    held.remove(&db.join("before")).unwrap();
    assert_eq!(fs.read_all(&db.join("before")).unwrap(), b"another's");
    let error = held.remove_dir(&db).unwrap_err();
    assert!(error.message().contains("moved"), "{error}");
}

#[test]
fn a_directory_held_open_and_removed_is_nowhere() {
    let (_dir, db, fs, held) = anchored();
    held.remove_dir(&db).unwrap();
    fs.create_dir(&db).unwrap();
    put(&fs, &db.join("LOCK"), b"another's");
    assert_eq!(held.stamp(&db.join("LOCK")).unwrap(), None);
    assert!(!held.exists(&db.join("LOCK")).unwrap());
    for error in [
        held.create(&db.join("a"), WriteOptions::default()).err().unwrap(),
        held.lock(&db.join("LOCK"), LockMode::Exclusive).err().unwrap(),
        held.open(&db.join("LOCK"), ReadFileOptions::default()).err().unwrap(),
    ] {
        assert!(is_not_found(&error), "{error}");
    }
    assert_eq!(fs.list(&db).unwrap(), ["LOCK"]);
}

#[test]
fn what_has_the_name_of_a_new_file_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let other = dir.path().join("other");
    put(&fs, &other, b"another's");
    put(&fs, &path, b"there");
    let refused = || {
        for direct in [false, true] {
            let options = WriteOptions { direct, ..WriteOptions::default() };
            assert_eq!(fs.create(&path, options).err().unwrap().kind(), ErrorKind::Io);
        }
        assert_eq!(fs.create_log(&path, 10).err().unwrap().kind(), ErrorKind::Io);
        assert_eq!(fs.create_log(&path, 1 << 62).err().unwrap().kind(), ErrorKind::Io);
    };
    refused();
    assert_eq!(fs.read_all(&path).unwrap(), b"there");
    fs.remove(&path).unwrap();
    rustix::fs::symlink(&other, &path).unwrap();
    refused();
    assert_eq!(fs.stamp(&path).unwrap().unwrap().kind, EntryKind::Link);
    assert_eq!(fs.read_all(&other).unwrap(), b"another's");
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_locked() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    let refused = |locks: bool| {
        // A pipe without a writer must not block.
        for direct in [false, true] {
            let error = fs.open(&path, ReadFileOptions { direct }).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Io);
        }
        assert_eq!(fs.read_all(&path).unwrap_err().kind(), ErrorKind::Io);
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            assert_eq!(fs.lock(&path, mode).is_ok(), locks, "{mode:?}");
        }
    };
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert_eq!(fs.stamp(&path).unwrap().unwrap().kind, EntryKind::Other);
    refused(false);
    fs.remove(&path).unwrap();
    fs.create_dir(&path).unwrap();
    assert_eq!(fs.stamp(&path).unwrap().unwrap().kind, EntryKind::Directory);
    refused(false);
}

#[test]
fn a_lock_file_that_is_a_link_is_refused_and_what_it_leads_to_left() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("LOCK"));
    let other = dir.path().join("other");
    put(&fs, &other, b"another's");
    for target in [&other, &dir.path().join("nothing")] {
        rustix::fs::symlink(target, &path).unwrap();
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            let error = fs.lock(&path, mode).err().unwrap();
            assert!(error.message().contains("symbolic link"), "{error}");
        }
        fs.remove(&path).unwrap();
    }
    assert_eq!(fs.read_all(&other).unwrap(), b"another's");
    assert_eq!(fs.list(dir.path()).unwrap(), ["other"], "nothing was made at the end of a link");
}

#[test]
fn a_lock_is_one_by_every_path() {
    let (dir, db, fs, held) = anchored();
    let lock = held.lock(&db.join("LOCK"), LockMode::Exclusive).unwrap();
    let link = dir.path().join("link");
    rustix::fs::symlink(&db, &link).unwrap();
    let by_link = fs.anchor(&link).unwrap();
    let moved = dir.path().join("moved");
    let busy = |fs: &dyn FileSystem, path: &Path| {
        let error = fs.lock(path, LockMode::Exclusive).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    };
    busy(&fs, &db.join("LOCK"));
    busy(&fs, &link.join("LOCK"));
    busy(&*by_link, &link.join("LOCK"));
    fs.rename(&db, &moved).unwrap();
    busy(&fs, &moved.join("LOCK"));
    // The directory is locked too.
    fs.remove(&moved.join("LOCK")).unwrap();
    busy(&fs, &moved.join("LOCK"));
    drop(lock);
    drop(fs.lock(&moved.join("LOCK"), LockMode::Exclusive).unwrap());
}

#[test]
fn a_stamp_tells_files_and_changes_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, path) = (OsFs::new(), dir.path().join("f"));
    assert_eq!(fs.stamp(&path).unwrap(), None);
    assert_eq!(fs.stamp(&path.join("in a file")).unwrap(), None);
    put(&fs, &path, b"12");
    let stamp = fs.stamp(&path).unwrap().unwrap();
    assert_eq!((stamp.kind, stamp.bytes), (EntryKind::File, 2));
    assert_eq!(fs.stamp(&path).unwrap(), Some(stamp));
    fs.link(&path, &dir.path().join("g")).unwrap();
    assert_eq!(fs.stamp(&dir.path().join("g")).unwrap().unwrap().id, stamp.id);
    fs.remove(&path).unwrap();
    put(&fs, &path, b"12");
    assert_ne!(fs.stamp(&path).unwrap().unwrap().id, stamp.id);
}

#[test]
fn paths_are_made_absolute_without_following_links() {
    let fs = OsFs::new();
    let here = std::env::current_dir().unwrap();
    assert_eq!(fs.absolute(Path::new("db")).unwrap(), here.join("db"));
    assert_eq!(fs.absolute(Path::new("./db/")).unwrap(), here.join("db"));
    assert_eq!(fs.absolute(Path::new("/a/./b//c/")).unwrap(), Path::new("/a/b/c"));
    assert!(fs.absolute(Path::new("")).is_err());
}
