//! A process that changes its directory while a database is open by a relative path. Alone in its
//! file: the directory is the whole process's.

#![allow(clippy::disallowed_methods, reason = "where the process is")]

use windrow::{Db, ErrorKind, Options, WriteSync};

#[test]
fn a_change_of_directory_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let places = ["here", "there"].map(|name| dir.path().join(name));
    for place in &places {
        std::fs::create_dir(place).unwrap();
        std::env::set_current_dir(place).unwrap();
        let db = Db::open("db").unwrap();
        (0..1_000).for_each(|key| db.put(format!("{key:06}"), "old").unwrap());
        db.close().unwrap();
    }
    std::env::set_current_dir(&places[0]).unwrap();
    let mut options = Options::default();
    options.settings.set("memtable_bytes", "64KiB").unwrap();
    let db = Db::open_with("db", options).unwrap();
    assert_eq!(db.path(), std::env::current_dir().unwrap().join("db"));
    std::env::set_current_dir(&places[1]).unwrap();
    // The other database is independent of the first.
    let other = Db::open("db").unwrap();
    assert_eq!(Db::open("../here/db").unwrap_err().kind(), ErrorKind::Busy);
    for key in 0..20_000 {
        db.put(format!("{key:06}"), "new").unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    db.put_with("last", "new", WriteSync::Yes).unwrap();
    // A relative target is resolved where the process is now.
    db.checkpoint("copy").unwrap();
    other.close().unwrap();
    db.close().unwrap();
    let count = |path: std::path::PathBuf, wanted: &[u8]| {
        let db = Db::open(path).unwrap();
        db.verify().unwrap().into_result().unwrap();
        db.iter().filter(|item| item.as_ref().is_ok_and(|(_, value)| value == wanted)).count()
    };
    assert_eq!(count(places[0].join("db"), b"new"), 20_001);
    assert_eq!(count(places[1].join("copy"), b"new"), 20_001);
    assert_eq!(count(places[1].join("db"), b"old"), 1_000);
}
