//! Tests of `store/src/host/database_directory.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Components, Db, Options, Result, WriteSync};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When, env};

const DIR: &str = "/db";

fn open(handles: &Handles, dir: &str) -> Db {
    let components = Components { env: Some(handles.env()), ..Components::default() };
    let mut options = Options { components, ..Options::default() };
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 64 << 10;
    options.settings.manifest_bytes = 1 << 10;
    Db::open_with(dir, options).expect("a database")
}

type DirectoryImage = BTreeMap<PathBuf, Vec<u8>>;

fn image(handles: &Handles, dir: &str) -> DirectoryImage {
    let path = |name| Path::new(dir).join(name);
    let paths = handles.fs.files(Path::new(dir)).into_iter().map(path);
    paths.map(|path| (path.clone(), handles.fs.read_file(&path).expect("listed"))).collect()
}

/// The operations, step by step, with a new manifest at each chance.
fn step(db: &Db, step: usize) -> Result<()> {
    match step % 8 {
        0 => db.put(format!("{step}"), "1"),
        1 => db.put_with(format!("{step}"), "1", WriteSync::Yes),
        2 => db.flush(),
        3 => db.put(format!("{step}"), [1; 30_000]),
        4 => db.sync(),
        5 => db.keyspace(&format!("{step}")).map(drop),
        6 => db.compact(),
        _ => db.wait_idle(),
    }
}

const STEPS: usize = 24;

/// The files of another database's directory.
fn another(handles: &Handles) -> DirectoryImage {
    let db = open(handles, "/another");
    db.put("another's", "1").expect("a write");
    db.close().expect("a close");
    image(handles, "/another")
}

/// Its manifest and its log stayed, and the next attempt made more.
#[test]
fn a_creation_that_fails_takes_back_what_it_made() {
    let (mut taken_back, mut at) = (0, 0);
    loop {
        let (_, handles) = env(1);
        handles.fs.inject(Fault::new(FaultKind::NoSpace, Ops::MUTATING, When::Operation(at)));
        let components = Components { env: Some(handles.env()), ..Components::default() };
        let options = Options { components, ..Options::default() };
        if Db::open_with(DIR, options).is_ok() {
            break;
        }
        let mut left = handles.fs.files(Path::new(DIR));
        // From there on it is a database, and the next open goes on from it.
        if !left.iter().any(|name| name == "CURRENT") {
            left.retain(|name| name != "LOCK");
            assert!(left.is_empty(), "operation {at}: {left:?}");
            taken_back += 1;
        }
        handles.fs.clear_faults();
        open(&handles, DIR).close().expect("a close");
        at += 1;
    }
    assert!(taken_back > 3, "{taken_back} of {at}");
}

/// The cost of a write or a read, in system calls that change something and in others.
#[test]
fn only_who_waits_for_the_device_looks_at_the_place() {
    let (_, handles) = env(1);
    let db = open(&handles, DIR);
    db.put("a", "1").expect("a write");
    handles.jobs.run_until_idle();
    let cost = |work: &dyn Fn()| {
        let before = (handles.fs.operations(), handles.fs.reads());
        work();
        (handles.fs.operations() - before.0, handles.fs.reads() - before.1)
    };
    assert_eq!(cost(&|| db.put("b", "2").expect("a write")), (1, 0));
    assert_eq!(cost(&|| assert!(db.get("a").expect("a read").is_some())), (0, 0));
    let synced = || db.put_with("c", "3", WriteSync::Yes).expect("a write");
    // The record and the sync; LOCK and CURRENT.
    assert_eq!(cost(&synced), (2, 2));
}

#[test]
fn a_directory_that_is_moved_at_any_step_stays_the_database() {
    for at in 0..=STEPS {
        let (_, handles) = env(at as u64);
        another(&handles);
        let db = open(&handles, DIR);
        let mut others = None;
        for number in 0..=STEPS {
            if number == at {
                handles.fs.move_dir(Path::new(DIR), Path::new("/moved"));
                handles.fs.move_dir(Path::new("/another"), Path::new(DIR));
                others = Some(image(&handles, DIR));
            }
            if number < STEPS {
                step(&db, number).unwrap_or_else(|e| panic!("moved at {at}, {number}: {e}"));
            }
        }
        db.close().expect("a close");
        assert!(Some(image(&handles, DIR)) == others, "another's, {at}");
        let db = open(&handles, "/moved");
        assert_eq!(db.iter().count(), STEPS / 8 * 3);
        db.verify().expect("a verify").into_result().expect("a sound database");
    }
}

#[test]
fn files_that_are_replaced_at_any_step_are_not_touched() {
    for at in 0..=STEPS {
        let (_, handles) = env(at as u64);
        let backup = another(&handles);
        let db = open(&handles, DIR);
        (0..at).for_each(|number| step(&db, number).expect("nothing is wrong yet"));
        for path in image(&handles, DIR).keys() {
            handles.fs.remove_file(path);
        }
        for (path, bytes) in &backup {
            handles.fs.write_file(&Path::new(DIR).join(path.file_name().unwrap()), bytes);
        }
        let restored = image(&handles, DIR);
        let first = (at..STEPS).find_map(|number| step(&db, number).err());
        let error = db.close().expect_err("what was closed is gone").to_string();
        assert!(error.contains("LOCK is not the file that was locked"), "{at}: {error}");
        assert!(first.is_some() || STEPS <= at + 1, "{at}: not noticed before the close");
        drop(db);
        assert!(image(&handles, DIR) == restored, "restored at {at}");
        assert_eq!(open(&handles, DIR).iter().count(), 1);
    }
}
