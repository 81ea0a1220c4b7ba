//! The log's space: a log takes about the space of its records; a spare log that cannot be made
//! stops no writer; a writer without room for its own record is refused alone, with nothing
//! written.

use std::path::Path;
use windrow::{Db, ErrorKind, Options, WriteSync};
use windrow_env::FileSystem;
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When, env};

const DIR: &str = "/db";

fn options(handles: &Handles, memtable_bytes: u64) -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 16 << 20;
    options.settings.memtable_bytes = memtable_bytes;
    options.settings.compression = "none".to_owned();
    options.components.env = Some(handles.env());
    options
}

fn logs(handles: &Handles) -> Vec<String> {
    let mut files = handles.fs.files(Path::new(DIR));
    files.retain(|name| name.ends_with(".wal"));
    files
}

fn fill(db: &Db, keys: std::ops::Range<u32>) {
    keys.for_each(|key| db.put(format!("{key:08}"), [7; 500]).unwrap());
}

#[test]
fn an_open_database_at_defaults_takes_little_of_the_device() {
    let (env, handles) = env(1);
    let mut options = Options::default();
    options.components.env = Some(env);
    let db = Db::open_with(DIR, options).unwrap();
    db.put("key", "value").unwrap();
    db.wait_idle().unwrap();
    assert!(handles.fs.used_bytes() < 256 << 10, "{}", handles.fs.used_bytes());
    db.close().unwrap();
    assert!(handles.fs.used_bytes() < 64 << 10, "{}", handles.fs.used_bytes());
}

#[test]
fn a_spare_log_that_cannot_be_made_turns_nothing_off() {
    for kind in [FaultKind::NoSpace, FaultKind::TooManyFiles, FaultKind::Io] {
        for op in [Ops::CREATE, Ops::SYNC] {
            let (_, handles) = env(1);
            let db = Db::open_with(DIR, options(&handles, 64 << 10)).unwrap();
            fill(&db, 0..100);
            db.wait_idle().unwrap();
            let before = logs(&handles);
            // Every log made from here on fails, partly made or not at all.
            let fault = Fault::new(kind, op, When::MatchingFrom(0)).on_path(".wal");
            let fault = handles.fs.inject(fault);
            fill(&db, 100..1_000);
            db.wait_idle().unwrap();
            assert!(db.stats().flushes >= 5, "memtables are switched and flushed");
            let stays = |name: &String| before.contains(name);
            // (A creation that failed may have left a name, which is not touched.)
            let left = logs(&handles).iter().any(|name| !stays(name));
            assert!(!left || op == Ops::CREATE, "the log goes on, and nothing is left over");
            handles.fs.remove_fault(fault);
            fill(&db, 1_000..1_500);
            db.put_with("synced", "yes", WriteSync::Yes).unwrap();
            let newest = logs(&handles).pop().unwrap();
            assert!(!stays(&newest), "and in a new one once that can be made");
            drop(db);
            handles.fs.kill(2);
            let db = Db::open_with(DIR, options(&handles.reborn(2), 64 << 10)).unwrap();
            assert_eq!(db.iter().count(), 1_501, "{kind:?} {op:?}");
        }
    }
}

#[test]
fn a_writer_without_room_is_refused_alone_and_goes_on_when_there_is_some() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles, 4 << 20)).unwrap();
    db.wait_idle().unwrap();
    handles.fs.set_capacity(Some(handles.fs.used_bytes() + (300 << 10)));
    let mut written = 0;
    let error = loop {
        match db.put(format!("{written:08}"), [7; 500]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(written > 500, "{written}: what is free is used; {error}");
    // Reads go on, and acknowledged writes can be synced.
    assert_eq!(db.iter().count(), written);
    db.sync().unwrap();
    handles.fs.set_capacity(None);
    fill(&db, written as u32..1_500);
    assert_eq!(db.iter().count(), 1_500);
    drop(db);
    handles.fs.kill(2);
    let db = Db::open_with(DIR, options(&handles.reborn(2), 4 << 20)).unwrap();
    assert_eq!(db.iter().count(), 1_500);
}

#[test]
fn a_sealed_log_gives_back_what_it_does_not_use() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles, 4 << 20)).unwrap();
    // Keeps the first log.
    db.keyspace("other").unwrap().put("key", "value").unwrap();
    fill(&db, 0..4_200);
    db.wait_idle().unwrap();
    let in_logs = || {
        let files = handles.fs.files(Path::new(DIR)).into_iter();
        let others = files.filter(|name| !name.ends_with(".wal"));
        let len = |name: String| handles.fs.len(&Path::new(DIR).join(name)).unwrap();
        handles.fs.used_bytes() - others.map(len).sum::<u64>()
    };
    let first = Path::new(DIR).join(&logs(&handles)[0]);
    assert!(4 << 20 <= in_logs(), "a step is reserved ahead");
    db.default_keyspace().flush().unwrap();
    assert!(in_logs() < 2_800 << 10, "{}", in_logs());
    assert_eq!(handles.fs.len(&first).unwrap(), 5 << 20, "its length stays");
}
