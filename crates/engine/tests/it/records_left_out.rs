//! Whole batches behind damage to a log that was never synced: the reports of an open and a repair,
//! and the place of the log afterwards.

use crate::simulated_database::{DIR, options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::env::sync::{Mutex, Rank};
use windrow::inspect::RecordsLeftOut;
use windrow::{Db, Event, Options, WriteSync};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, PowerLoss, When, env};

/// The number of keys that are written, each in a batch of its own.
const WRITTEN: u64 = 300;

/// Files with keys that were never synced, after the process died; and the path of the log.
fn unsynced(seed: u64) -> (Handles, PathBuf) {
    let (_, handles) = env(seed);
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    for key in 0..WRITTEN {
        db.put(format!("{key:04}"), [b'v'; 60]).unwrap();
    }
    let handles = killed(&handles, db, seed);
    let log = logs(&handles, DIR).pop().unwrap();
    (handles, log)
}

fn killed(handles: &Handles, db: Db, seed: u64) -> Handles {
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.clear_faults();
    handles.fs.kill(seed);
    handles.reborn(seed)
}

/// The files with `.wal` in their name, oldest first.
fn logs(handles: &Handles, dir: impl AsRef<Path>) -> Vec<PathBuf> {
    let names = handles.fs.files(dir.as_ref());
    names.iter().filter(|n| n.contains(".wal")).map(|n| dir.as_ref().join(n)).collect()
}

fn lost(handles: &Handles) -> Vec<PathBuf> {
    logs(handles, Path::new(DIR).join("lost"))
}

/// Damages the record of a key.
fn damage(handles: &Handles, log: &Path, key: u64) {
    let bytes = handles.fs.read_file(log).unwrap();
    let key = format!("{key:04}");
    let at = bytes.windows(4).position(|w| w == key.as_bytes()).unwrap();
    handles.fs.flip(log, at as u64, 1);
}

/// Checks that the database holds the first `keys` keys.
#[track_caller]
fn holds_a_prefix(db: &Db, keys: u64) {
    let found: Vec<_> = db.iter().keys().map(|key| key.unwrap().to_vec()).collect();
    let want: Vec<_> = (0..keys).map(|key| format!("{key:04}").into_bytes()).collect();
    assert_eq!(found, want);
}

fn read_only(handles: &Handles) -> Db {
    Db::open_with(DIR, Options { read_only: true, ..options(handles) }).unwrap()
}

fn number(log: &Path) -> u64 {
    log.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().parse().unwrap()
}

#[test]
fn an_open_says_what_is_behind_the_damage_and_keeps_the_log() {
    let (handles, log) = unsynced(1);
    damage(&handles, &log, 10);
    let damaged = handles.fs.read_file(&log).unwrap();
    for _ in 0..2 {
        let db = read_only(&handles);
        let records = db.records_left_out();
        let [RecordsLeftOut { log: said, from_byte, to_byte, batches, kept: None, .. }] =
            records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!((said, batches), (number(&log), WRITTEN - 11));
        assert!(from_byte < to_byte && damaged[to_byte as usize..].iter().all(|b| *b == 0));
        let report = db.verify().unwrap();
        assert!(report.is_ok() && report.records_left_out == records, "{report:?}");
        holds_a_prefix(&db, 10);
        db.close().unwrap();
        assert!(lost(&handles).is_empty(), "an open for reading wrote");
    }
    let heard = Arc::new(Mutex::new(Rank::INNERMOST, Vec::new()));
    let mut writing = options(&handles);
    let listener = heard.clone();
    writing.components.listener = Some(Arc::new(move |event: &Event| {
        if let Event::RecordsLeftOut { .. } = event {
            listener.lock().push(event.to_string());
        }
    }));
    let db = Db::open_with(DIR, writing).unwrap();
    let records = db.records_left_out();
    let kept = records[0].kept.clone().unwrap();
    assert_eq!((records.len(), records[0].batches), (1, WRITTEN - 11));
    assert_eq!(lost(&handles), std::slice::from_ref(&kept));
    assert!(handles.fs.read_file(&kept).unwrap() == damaged, "it is not the log as it was");
    let heard = heard.lock().clone();
    assert!(heard.len() == 1 && heard[0].contains("289 whole batches in bytes"), "{heard:?}");
    handles.jobs.run_until_idle();
    assert!(logs(&handles, DIR).iter().all(|new| number(new) > number(&log)), "the log stays");
    db.put("more", "x").unwrap();
    db.delete("more").unwrap();
    db.close().unwrap();
    // None of these records comes back.
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    assert!(db.records_left_out().is_empty());
    holds_a_prefix(&db, 10);
    db.close().unwrap();
    let report = windrow::repair(DIR, options(&handles)).unwrap();
    assert!(!report.lost_something() && report.originals.is_empty(), "{report:?}");
    holds_a_prefix(&read_only(&handles), 10);
}

#[test]
fn a_repair_says_so_and_keeps_the_log() {
    for without_manifest in [false, true] {
        let (handles, log) = unsynced(2);
        damage(&handles, &log, 10);
        let damaged = handles.fs.read_file(&log).unwrap();
        if without_manifest {
            for name in handles.fs.files(Path::new(DIR)) {
                if name.starts_with("MANIFEST") {
                    handles.fs.remove_file(&Path::new(DIR).join(name));
                }
            }
        }
        let report = windrow::repair(DIR, options(&handles)).unwrap();
        assert!(report.lost_something());
        let log = report.logs.iter().find(|l| log.ends_with(&l.file)).unwrap();
        assert_eq!(log.whole_batches, WRITTEN - 11);
        assert!(handles.fs.read_file(&report.originals[0]).unwrap() == damaged);
        assert_eq!(report.originals, lost(&handles));
        holds_a_prefix(&read_only(&handles), 10);
        let report = windrow::repair(DIR, options(&handles)).unwrap();
        assert!(!report.lost_something(), "{report:?}");
    }
}

/// Batches in a log after the one that is damaged.
#[test]
fn a_log_behind_the_damage_is_kept_as_well() {
    let (_, handles) = env(3);
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    handles.jobs.run_until_idle();
    let mut key = 0;
    // The jobs that would flush do not run.
    while logs(&handles, DIR).len() < 3 && key < 4_000 {
        db.put(format!("{key:04}"), [b'v'; 60]).unwrap();
        key += 1;
    }
    let handles = killed(&handles, db, 3);
    let logs = logs(&handles, DIR);
    damage(&handles, &logs[0], 5);
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    let records = db.records_left_out();
    assert!(records.len() > 1, "{records:?}");
    assert_eq!(records.iter().map(|r| r.batches).sum::<u64>(), key - 6);
    assert!(records.iter().all(|r| r.kept.is_some()) && lost(&handles).len() == records.len());
    holds_a_prefix(&db, 5);
}

/// At whatever operation the open dies, by a kill or a power loss, the log is in the directory or
/// in `lost/`, whole; and writes that were acknowledged afterwards stay.
#[test]
fn the_log_is_never_in_neither_place() {
    let (start, log) = unsynced(4);
    damage(&start, &log, 10);
    // The damaged log as the device has it.
    let settled = start.fs.read_file(&log).unwrap();
    start.fs.write_file(&log, &settled);
    let mut operation = 0;
    loop {
        let handles = Handles { fs: start.fs.fork(), ..start.reborn(5) };
        handles.fs.crash_at(handles.fs.operations() + operation);
        let opened = Db::open_with(DIR, options(&handles));
        let is_over = opened.is_ok() && !handles.fs.is_dead();
        handles.fs.halt();
        drop(opened);
        handles.jobs.discard();
        for seed in 0..4 {
            let fs = handles.fs.fork();
            if seed == 0 {
                fs.kill(seed);
            } else {
                fs.crash_with(PowerLoss { seed, files: None, names: None });
            }
            let handles = Handles { fs, ..handles.reborn(seed) };
            let there: Vec<PathBuf> = std::iter::once(log.clone()).chain(lost(&handles)).collect();
            let whole = |path: &PathBuf| handles.fs.read_file(path).as_ref() == Some(&settled);
            assert!(there.iter().any(whole), "operation {operation}, {seed}: {there:?}");
            let db = Db::open_with(DIR, options(&handles)).unwrap();
            holds_a_prefix(&db, 10);
            db.put_with("0010", "new", WriteSync::Yes).unwrap();
            let kept = lost(&handles);
            assert!(kept.len() == 1 && whole(&kept[0]), "operation {operation}: {kept:?}");
            let handles = killed(&handles, db, seed);
            holds_a_prefix(&Db::open_with(DIR, options(&handles)).unwrap(), 11);
        }
        if is_over {
            break;
        }
        operation += 1;
    }
    assert!(operation > 10, "the open took {operation} operations");
}

/// The logs of repeated crashes are bounded, and do not push out the one that matters.
#[test]
fn what_is_kept_is_bounded() {
    let (mut handles, log) = unsynced(6);
    damage(&handles, &log, 10);
    for seed in 0..30 {
        let db = Db::open_with(DIR, options(&handles)).unwrap();
        assert!(db.records_left_out().iter().all(|r| r.kept.is_some()));
        for key in 0..6 {
            db.put(format!("{key:04}"), [b'v'; 60]).unwrap();
        }
        handles = killed(&handles, db, seed);
        let log = logs(&handles, DIR).into_iter().rfind(|log| {
            handles.fs.read_file(log).unwrap().windows(4).any(|bytes| bytes == b"0003")
        });
        damage(&handles, &log.unwrap(), 3);
    }
    let kept = lost(&handles);
    assert_eq!(kept.len(), 8, "{kept:?}");
    assert!(kept.iter().any(|path| path.to_string_lossy().contains(".left-out-289")), "{kept:?}");
}

/// A device that is nearly full: the open succeeds, and reports that it did not keep the log.
#[test]
fn a_log_that_there_is_no_room_for_fails_no_open() {
    let (handles, log) = unsynced(7);
    damage(&handles, &log, 10);
    handles.fs.set_capacity(Some(handles.fs.used_bytes() + (1 << 20)));
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    let records = db.records_left_out();
    assert!(records.len() == 1 && records[0].kept.is_none(), "{records:?}");
    assert!(lost(&handles).is_empty());
    db.put("more", "x").unwrap();
}

/// A file system without hard links.
#[test]
fn a_log_that_cannot_be_linked_is_moved() {
    let (handles, log) = unsynced(8);
    damage(&handles, &log, 10);
    let damaged = handles.fs.read_file(&log).unwrap();
    let fault = Fault::new(FaultKind::NotSupported, Ops::LINK, When::MatchingFrom(0));
    handles.fs.inject(fault);
    let db = Db::open_with(DIR, options(&handles)).unwrap();
    let kept = db.records_left_out()[0].kept.clone().unwrap();
    assert!(handles.fs.read_file(&kept).unwrap() == damaged);
    assert!(!logs(&handles, DIR).contains(&log));
    holds_a_prefix(&db, 10);
}
