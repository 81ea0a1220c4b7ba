//! To LevelDB and back, where its library is on the machine. (tests/import/run.sh installs it, and RocksDB's.)

use std::path::Path;
use windrow::{Db, Error, ErrorKind, Result};
use windrow_import::{Copied, Kind, Source, Step, export, import};

fn go_on(_: Step, _: u64) -> Result<()> {
    Ok(())
}

/// A database of LevelDB's with `count` pairs; `None` without the library.
fn exported(dir: &Path, count: u32) -> Option<()> {
    let db = Db::open(dir.join("ours")).unwrap();
    for n in 0..count {
        db.put(n.to_be_bytes(), format!("value {n}")).unwrap();
    }
    db.put([], "of the empty key").unwrap();
    match export(&db.default_keyspace(), Kind::LevelDb, &dir.join("theirs"), &mut go_on) {
        Ok(pairs) => assert_eq!(pairs, u64::from(count) + 1),
        Err(error) if error.kind() == ErrorKind::NotSupported => {
            assert!(error.to_string().contains("libleveldb1d"), "{error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let again = export(&db.default_keyspace(), Kind::LevelDb, &dir.join("theirs"), &mut go_on);
    assert!(again.unwrap_err().to_string().contains("theirs"), "one that exists is left alone");
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

#[test]
fn a_directory_of_another_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for kind in [Kind::LevelDb, Kind::RocksDb] {
        let Err(error) = Source::open(kind, dir.path()) else { panic!("{kind:?} opened it") };
        let is_told = [ErrorKind::Io, ErrorKind::NotSupported].contains(&error.kind());
        assert!(is_told, "{error}");
    }
}
