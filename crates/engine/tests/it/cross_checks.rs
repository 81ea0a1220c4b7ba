//! Cross-checks between the files of a crashed database. No file can confirm its own end, so
//! another file has its length, and an end that is gone is noticed (R4, R10, R11). A file that is
//! not this database's own is refused.

use crate::simulated_database::{DIR, options};
use std::path::{Path, PathBuf};
use windrow::{Db, Error, ErrorKind, KeyspaceOptions, WriteSync};
use windrow_env::FileSystem;
use windrow_env::fs::ReadFileOptions;
use windrow_env::testing::{CrashFs, Fault, FaultKind, FileDamage, Handles, NameDamage};
use windrow_env::testing::{Ops, PowerLoss, When, env};
use windrow_format::log::{LogKind, LogReader};
use windrow_format::names;

/// The files that power loss leaves after `work`. Everything unsynced is lost.
fn crashed(seed: u64, work: impl FnOnce(&Db)) -> Handles {
    crashed_again(env(seed).1, work)
}

/// As [`crashed`], from the files that an earlier crash left.
fn crashed_again(handles: Handles, work: impl FnOnce(&Db)) -> Handles {
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    work(&db);
    let fs = handles.fs.fork();
    fs.crash_with(PowerLoss {
        seed: 0,
        files: Some(FileDamage::DropAll),
        names: Some(NameDamage::DropAll),
    });
    Handles { fs, ..handles.reborn(0) }
}

/// The newest file whose name contains `part`.
fn newest(fs: &CrashFs, part: &str) -> PathBuf {
    let files = fs.files(Path::new(DIR)).into_iter().rev();
    Path::new(DIR).join(files.into_iter().find(|name| name.contains(part)).expect("a file"))
}

/// The offset of each record of a log.
fn records(fs: &CrashFs, path: &Path, kind: LogKind) -> Vec<u64> {
    let file = fs.open(path, ReadFileOptions::default()).unwrap();
    let mut reader = LogReader::open(file, kind, None).unwrap();
    let mut starts = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        starts.push(record.offset);
    }
    starts
}

#[track_caller]
fn must_be_damage_of(handles: &Handles, path: &Path) -> Error {
    let error = Db::open_with(DIR, options(handles)).map(|_| ()).expect_err("damage was missed");
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!(error.file().map(Path::new), Some(path), "{error}");
    error
}

#[test]
fn a_keyspace_that_the_manifest_lost_is_missed_though_nothing_was_written_since() {
    let handles = crashed(1, |db| {
        db.put_with("a", "1", WriteSync::Yes).unwrap();
        db.keyspace_with("late", KeyspaceOptions::default()).unwrap();
    });
    let manifest = newest(&handles.fs, "MANIFEST");
    let last = *records(&handles.fs, &manifest, LogKind::Manifest).last().unwrap();
    handles.fs.truncate(&manifest, last);
    must_be_damage_of(&handles, &manifest);
}

#[test]
fn a_keyspace_that_comes_back_is_noticed() {
    let handles = crashed(2, |db| {
        db.keyspace_with("gone", KeyspaceOptions::default()).unwrap();
        db.drop_keyspace("gone").unwrap();
    });
    let manifest = newest(&handles.fs, "MANIFEST");
    let last = *records(&handles.fs, &manifest, LogKind::Manifest).last().unwrap();
    handles.fs.truncate(&manifest, last);
    must_be_damage_of(&handles, &manifest);
}

#[test]
fn a_log_cut_off_between_records_is_shorter_than_it_was_made() {
    let handles = crashed(3, |db| {
        for key in ["a", "b", "c"] {
            db.put_with(key, "1", WriteSync::Yes).unwrap();
        }
    });
    let log = newest(&handles.fs, ".wal");
    let starts = records(&handles.fs, &log, LogKind::Wal);
    handles.fs.truncate(&log, starts[starts.len() - 2]);
    must_be_damage_of(&handles, &log);
}

#[test]
fn the_end_of_an_older_log_is_missed_before_anything_is_in_the_next() {
    let handles = crashed(4, |db| {
        let other = db.keyspace_with("other", KeyspaceOptions::default()).unwrap();
        db.put("a", "1").unwrap();
        other.put("b", "2").unwrap();
        db.default_keyspace().flush().unwrap();
    });
    let log = handles.fs.files(Path::new(DIR)).into_iter().find(|name| name.ends_with(".wal"));
    let log = Path::new(DIR).join(log.unwrap());
    let last = *records(&handles.fs, &log, LogKind::Wal).last().unwrap();
    let mut bytes = handles.fs.read_file(&log).unwrap();
    bytes[last as usize..].fill(0);
    handles.fs.write_file(&log, &bytes);
    must_be_damage_of(&handles, &log);
}

#[test]
fn files_of_another_database_are_refused() {
    let write = |db: &Db| db.put_with("a", "1", WriteSync::Yes).unwrap();
    let other = crashed(5, write);
    for part in [".wal", "MANIFEST", "CURRENT"] {
        let handles = crashed(6, write);
        let path = newest(&handles.fs, part);
        let foreign = other.fs.read_file(&path).expect("both have a file of this name");
        handles.fs.write_file(&path, &foreign);
        let named = if part == "CURRENT" { newest(&handles.fs, "MANIFEST") } else { path };
        must_be_damage_of(&handles, &named);
    }
}

/// Power was lost while a new log was being made: its header had not reached the device, and on its
/// sectors was, whole and valid, the content of an older log.
#[test]
fn what_an_older_log_left_where_a_new_one_was_being_made_is_no_log() {
    let handles = crashed(7, |db| db.put_with("a", "1", WriteSync::Yes).unwrap());
    let left = handles.fs.read_file(&newest(&handles.fs, ".wal")).unwrap();
    let handles = crashed_again(handles, |db| db.put_with("b", "2", WriteSync::Yes).unwrap());
    let files = handles.fs.files(Path::new(DIR));
    let numbers = files.iter().filter_map(|name| names::parse(name)).map(|(_, number)| number);
    let new = Path::new(DIR).join(names::wal(numbers.max().unwrap() + 1));
    handles.fs.write_file(&new, &left);
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    for (key, value) in [("a", "1"), ("b", "2")] {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_bytes()));
    }
    assert_eq!(db.snapshot().seq(), 2, "the older log's record was not replayed again");
    assert!(!handles.fs.files(Path::new(DIR)).iter().any(|name| new.ends_with(name)));
}

/// A manifest that cannot be read now is not damaged: repair must not make one again from the
/// tables, which do not know the names of keyspaces.
#[test]
fn repair_gives_up_where_a_manifest_cannot_be_read() {
    let handles = crashed(8, |db| {
        let named = db.keyspace_with("named", KeyspaceOptions::default()).unwrap();
        named.put("a", "1").unwrap();
        named.flush().unwrap();
    });
    for part in ["MANIFEST", "CURRENT"] {
        for op in [Ops::OPEN, Ops::READ] {
            let fault = Fault::new(FaultKind::Io, op, When::Matching(0)).on_path(part);
            let id = handles.fs.inject(fault);
            if let Err(error) = windrow::repair(DIR, options(&handles)) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            }
            handles.fs.remove_fault(id);
            let db = Db::open_with(DIR, options(&handles)).unwrap();
            let named = db.open_keyspace("named").unwrap().expect("it keeps its name");
            assert_eq!(named.get("a").unwrap().as_deref(), Some(b"1".as_slice()));
        }
    }
}
