//! Exports to LevelDB and imports from it, where its library is on the machine. (tests/import/run.sh installs it, and
//! RocksDB's.)

use std::path::Path;
use windrow::{Db, Error, ErrorKind, Result};
use windrow_import::{Copied, Kind, Source, Step, export, import};

fn go_on(_: Step, _: u64) -> Result<()> {
    Ok(())
}

/// Makes a database of LevelDB with `count` pairs; `None` without the library.
fn exported(dir: &Path, count: u32) -> Option<()> {
    let db = Db::open(dir.join("ours")).unwrap();
    for n in 0..count {
        db.put(n.to_be_bytes(), format!("value {n}")).unwrap();
    }
    db.put([], "of the empty key").unwrap();
    match export(&db, Kind::LevelDb, &dir.join("theirs"), &mut go_on) {
        Ok(pairs) => assert_eq!(pairs, u64::from(count) + 1),
        Err(error) if error.kind() == ErrorKind::NotSupported => {
            assert!(error.to_string().contains("libleveldb1d"), "{error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let again = export(&db, Kind::LevelDb, &dir.join("theirs"), &mut go_on);
    assert!(again.unwrap_err().to_string().contains("not empty"), "one that exists is left alone");
    Some(())
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    if exported(dir.path(), 5000).is_none() {
        return;
    }
    let db = Db::open(dir.path().join("new")).unwrap();
    let source = Source::open(Kind::LevelDb, &dir.path().join("theirs")).unwrap();
    let copied =
        |was_there| vec![Copied { keyspace: "default".to_owned(), pairs: 5001, was_there }];
    assert_eq!(import(&source, &db, &mut go_on).unwrap(), copied(false));
    assert_eq!(import(&source, &db, &mut go_on).unwrap(), copied(true), "it is passed over");
    db.put("more", "").unwrap();
    let refused = import(&source, &db, &mut go_on).unwrap_err();
    assert!(refused.to_string().contains("choose a new database"), "{refused}");
}

#[test]
fn one_that_is_stopped_leaves_nothing_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    if exported(dir.path(), 10_000).is_none() {
        return;
    }
    let db = Db::open(dir.path().join("new")).unwrap();
    let source = Source::open(Kind::LevelDb, &dir.path().join("theirs")).unwrap();
    let mut stop = |step, _| match step {
        Step::Copying => Err(Error::new(ErrorKind::Closed, "stopped")),
        Step::Verifying => Ok(()),
    };
    assert_eq!(import(&source, &db, &mut stop).unwrap_err().kind(), ErrorKind::Closed);
    assert!(db.is_empty().unwrap());
    assert_eq!(import(&source, &db, &mut go_on).unwrap()[0].pairs, 10_001);
}

/// The names in a directory and the contents of the files.
#[allow(clippy::disallowed_methods, reason = "directories of other programs")]
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    let mut all: Vec<_> = entries.map(read).collect();
    all.sort();
    all
}

/// LevelDB would create a lock and a log in each, and rename files.
#[test]
#[allow(clippy::disallowed_methods, reason = "directories of other programs")]
fn nothing_is_touched_in_a_directory_of_another_program() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["empty", "notes", "rocks"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::fs::write(at("notes").join("LOG"), "mine").unwrap();
    std::fs::write(at("rocks").join("CURRENT"), "MANIFEST-000004\n").unwrap();
    std::fs::write(at("rocks").join("OPTIONS-000007"), "").unwrap();
    Db::open(at("ours")).unwrap().put("a", "1").unwrap();
    for (name, why) in [
        ("empty", "no file CURRENT"),
        ("notes", "no file CURRENT"),
        ("rocks", "a database of RocksDB"),
        ("ours", "another program's"),
        ("none", "no file CURRENT"),
    ] {
        let before = at(name).exists().then(|| contents(&at(name)));
        let Err(error) = Source::open(Kind::LevelDb, &at(name)) else { panic!("{name} is opened") };
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(at(name).exists().then(|| contents(&at(name))), before, "{name}");
    }
    let db = Db::open(at("ours")).unwrap();
    for name in ["notes", "rocks", "ours"] {
        let before = contents(&at(name));
        let error = export(&db, Kind::LevelDb, &at(name), &mut go_on).unwrap_err();
        assert!(error.to_string().contains("not empty"), "{error}");
        assert_eq!(contents(&at(name)), before, "{name}");
    }
}
