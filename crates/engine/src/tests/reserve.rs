//! Tests of `recover/src/open/reserve.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, ErrorKind, Options, WriteSync};
use std::path::Path;
use windrow_env::FileSystem;
use windrow_env::testing::{Handles, env};

const DIR: &str = "/db";
const RESERVE_BYTES: u64 = 4 << 20;

fn options(handles: &Handles, reserve_bytes: u64) -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 8 << 20;
    options.settings.memtable_bytes = 64 << 10;
    options.settings.file_bytes = 64 << 10;
    options.settings.compression = "none".to_owned();
    options.settings.reserve_bytes = reserve_bytes;
    options.components.env = Some(handles.env());
    options
}

fn has_reserve(handles: &Handles) -> bool {
    handles.fs.files(Path::new(DIR)).iter().any(|file| file.contains("RESERVE"))
}

/// Writes until the device is full, crashes, and has another program take the rest.
fn fill(handles: &Handles, reserve_bytes: u64) -> u64 {
    let db = Db::open_with(DIR, options(handles, reserve_bytes)).unwrap();
    handles.fs.set_capacity(Some(12 << 20));
    let mut written = 0;
    let error = loop {
        match db.put_with(format!("{written:08}"), [7; 500], WriteSync::Yes) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("no space left"), "{error}");
    drop(db);
    handles.jobs.discard();
    handles.fs.kill(1);
    let free = FileSystem::free_bytes(&handles.fs, Path::new(DIR)).unwrap();
    handles.fs.set_capacity(Some((12 << 20) - free));
    written
}

#[test]
fn a_full_device_is_recovered_with_what_was_reserved() {
    let (_, handles) = env(1);
    let written = fill(&handles, RESERVE_BYTES);
    assert!(has_reserve(&handles));
    let handles = handles.reborn(2);
    let db = Db::open_with(DIR, options(&handles, RESERVE_BYTES)).unwrap();
    assert!(!has_reserve(&handles), "given up");
    let found = db.iter().count() as u64;
    assert!((written..=written + 1).contains(&found), "{found} of {written}");
    db.delete_range("", "99").unwrap();
    db.sync().unwrap();
    drop(db);
    handles.fs.set_capacity(Some(100 << 20));
    let handles = handles.reborn(3);
    let db = Db::open_with(DIR, options(&handles, RESERVE_BYTES)).unwrap();
    assert!(has_reserve(&handles), "made again");
    assert_eq!(db.iter().count(), 0);
    drop(db);
    // No setting asks for it any more.
    let handles = handles.reborn(4);
    drop(Db::open_with(DIR, options(&handles, 0)).unwrap());
    assert!(!has_reserve(&handles));
}

#[test]
fn without_a_reserve_a_full_device_refuses_until_there_is_room() {
    let (_, handles) = env(1);
    let written = fill(&handles, 0);
    let handles = handles.reborn(2);
    let error = Db::open_with(DIR, options(&handles, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    handles.fs.set_capacity(None);
    let handles = handles.reborn(3);
    let db = Db::open_with(DIR, options(&handles, 0)).unwrap();
    let found = db.iter().count() as u64;
    assert!((written..=written + 1).contains(&found), "{found} of {written}");
}
