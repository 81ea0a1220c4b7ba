//! Repairs that are refused or fail, and the account that a repair gives of logs: entries in logs
//! alone are never lost by it, and never passed over silently.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windrow::inspect::RepairReport;
use windrow::{Db, Error, ErrorKind, Options, WriteSync};
use windrow_base::{KeyspaceId, Kind};
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When, env};
use windrow_format::batch::{self, BatchBuf};
use windrow_format::log::{self, Class, LogKind, LogPosition, LogReader};

const DIR: &str = "/db";

fn options(handles: &Handles, memtable: &str) -> Options {
    let mut options = Options::default();
    options.components.env = Some(handles.env());
    for (name, value) in [("memory_bytes", "8MiB"), ("memtable_bytes", memtable)] {
        options.settings.set(name, value).unwrap();
    }
    options
}

fn repair(handles: &Handles) -> Result<RepairReport, Error> {
    let report = windrow::repair(DIR, options(handles, "64KiB"));
    handles.jobs.discard();
    report
}

/// The files after the process is killed behind `work`.
fn killed(work: impl FnOnce(&Db)) -> Handles {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles, "256KiB")).unwrap();
    work(&db);
    let fs = handles.fs.fork();
    fs.kill(1);
    Handles { fs, ..handles.reborn(1) }
}

/// Keys in logs alone.
const KEYS: usize = 50;

fn put_synced(db: &Db, keys: std::ops::Range<usize>) {
    keys.for_each(|key| db.put_with(format!("{key:06}"), [1; 1_000], WriteSync::Yes).unwrap());
}

fn count(handles: &Handles) -> usize {
    let db = Db::open_with(DIR, options(handles, "64KiB")).unwrap();
    db.verify().unwrap().into_result().unwrap();
    let count = db.iter().map(|pair| pair.map(drop).unwrap()).count();
    db.close().unwrap();
    count
}

fn paths(handles: &Handles, dir: &str, part: &str) -> Vec<PathBuf> {
    let names = handles.fs.files(Path::new(dir)).into_iter().filter(|name| name.contains(part));
    names.map(|name| Path::new(dir).join(name)).collect()
}

fn image(handles: &Handles) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let all = paths(handles, DIR, "").into_iter();
    all.map(|path| (path.clone(), handles.fs.read_file(&path))).collect()
}

/// Such a repair put a manifest in force by which all is in tables, and removed the logs.
#[test]
fn a_read_only_repair_is_refused_and_changes_nothing() {
    let handles = killed(|db| put_synced(db, 0..KEYS));
    let before = image(&handles);
    let asked = Options { read_only: true, ..options(&handles, "64KiB") };
    let error = windrow::repair(DIR, asked).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(image(&handles) == before);
    assert_eq!(count(&handles), KEYS);
}

/// Two logs whose records fill several memtables of a repair.
fn full_logs() -> Handles {
    let handles = killed(|db| {
        let other = db.keyspace("other").unwrap();
        put_synced(db, 0..140);
        other.put("a", "1").unwrap();
        // The next log exists, and the flush begins it.
        db.wait_idle().unwrap();
        other.flush().unwrap();
        put_synced(db, 140..160);
    });
    assert!(paths(&handles, DIR, ".wal").len() > 1, "this tests too little");
    handles
}

/// A table that could not be written was taken for damage of the log that was being read, and the
/// logs before it were taken for replayed.
#[test]
fn a_failed_write_during_a_repair_costs_nothing() {
    let faults = [
        (FaultKind::NoSpace, Ops::WRITE | Ops::SYNC, ".sst"),
        (FaultKind::Io, Ops::WRITE | Ops::SYNC, ".sst"),
        (FaultKind::TooManyFiles, Ops::CREATE, ".sst"),
        (FaultKind::Io, Ops::SYNC_DIR, ""),
        (FaultKind::TooManyFiles, Ops::OPEN, ".wal"),
    ];
    for (kind, on, path) in faults {
        let mut failed = 0;
        for at in 0..12 {
            let handles = full_logs();
            let id = handles.fs.inject(Fault::new(kind, on, When::Matching(at)).on_path(path));
            let logs = paths(&handles, DIR, ".wal");
            let outcome = repair(&handles);
            handles.fs.remove_fault(id);
            let place = format!("{kind:?} at {at} of {path}: {outcome:?}");
            if let Ok(report) = outcome {
                // The fault struck nothing, or an operation that does not matter.
                assert!(!report.lost_something(), "{place}");
                assert_eq!(count(&handles), 160, "{place}");
                continue;
            }
            failed += 1;
            if paths(&handles, DIR, ".wal") == logs {
                let opened = Handles { fs: handles.fs.fork(), ..handles.reborn(2) };
                assert_eq!(count(&opened), 160, "opened after {place}");
            }
            let report = repair(&handles).unwrap();
            assert!(report.problems.is_empty() && !report.lost_something(), "{place}: {report:?}");
            assert_eq!(count(&handles), 160, "{place}");
        }
        assert!(failed > 1, "{kind:?} of {path} failed {failed} repairs");
    }
}

#[test]
fn a_log_that_is_missing_is_reported() {
    let handles = killed(|db| put_synced(db, 0..KEYS));
    let log = paths(&handles, DIR, ".wal").pop().unwrap();
    handles.fs.remove_file(&log);
    let report = repair(&handles).unwrap();
    assert!(report.lost_something(), "{report:?}");
    let [lost] = &report.logs[..] else { panic!("{report:?}") };
    assert!(log.ends_with(&lost.file) && (lost.from_byte, lost.bytes) == (0, 0), "{lost:?}");
    let [problem] = &report.problems[..] else { panic!("{report:?}") };
    assert_eq!(problem.file().map(Path::new), Some(&*log), "{problem}");
    assert!(report.originals.is_empty(), "{report:?}");
    assert_eq!(count(&handles), 0);
    // It is reported once.
    assert!(!repair(&handles).unwrap().lost_something());
}

/// Adds a batch to a log whose checksum is right, and whose last operation is of a keyspace that
/// was never made.
fn add_half_a_batch(handles: &Handles, log: &Path) {
    let file = handles.env().fs.open(log, windrow_env::fs::ReadFileOptions::default()).unwrap();
    let mut reader = LogReader::open(file, LogKind::Wal, None).unwrap();
    let mut last_seq = 0;
    while let Some(record) = reader.next().unwrap() {
        if record.class == Class::Batch {
            let (first_seq, count, _) = batch::decode(record.payload, record.framing).unwrap();
            last_seq = first_seq + u64::from(count) - 1;
        }
    }
    let mut made = BatchBuf::new();
    made.push(Kind::Put, KeyspaceId::DEFAULT, b"half", b"of a batch");
    made.push(Kind::Put, KeyspaceId(77), b"the other", b"half");
    made.set_first_seq(last_seq + 1);
    let (header, end) = (reader.header().clone(), reader.valid_bytes());
    let mut bytes = handles.fs.read_file(log).unwrap();
    bytes.truncate(end as usize);
    let (framing, uid) = (header.framing, header.uid);
    let place = LogPosition { framing, uid, offset: end, durable_up_to: 0 };
    log::frame(&mut bytes, made.payload(), Class::Batch, place);
    handles.fs.write_file(log, &bytes);
}

#[test]
fn a_repair_takes_a_batch_whole_or_not_at_all() {
    let handles = killed(|db| put_synced(db, 0..KEYS));
    let log = paths(&handles, DIR, ".wal").pop().unwrap();
    add_half_a_batch(&handles, &log);
    let report = repair(&handles).unwrap();
    assert!(!report.problems.is_empty(), "{report:?}");
    assert_eq!(count(&handles), KEYS);
}

#[test]
fn a_log_that_was_cut_is_reported_and_kept() {
    let handles = killed(|db| put_synced(db, 0..KEYS));
    let log = paths(&handles, DIR, ".wal").pop().unwrap();
    handles.fs.truncate(&log, 10_500);
    let cut = handles.fs.read_file(&log);
    let report = repair(&handles).unwrap();
    let [lost] = &report.logs[..] else { panic!("{report:?}") };
    assert!(log.ends_with(&lost.file) && lost.bytes == 10_500, "{lost:?}");
    assert!(9_000 < lost.from_byte && lost.from_byte <= lost.bytes, "{lost:?}");
    let [problem] = &report.problems[..] else { panic!("{report:?}") };
    assert_eq!(problem.offset(), Some(lost.from_byte));
    assert!(report.lost_something());
    let [original] = &report.originals[..] else { panic!("{report:?}") };
    assert!(cut.is_some() && handles.fs.read_file(original) == cut);
    assert!((5..KEYS).contains(&count(&handles)));
}

/// The log of a clean close is empty.
#[test]
fn the_log_of_a_clean_close_is_not_missed() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, options(&handles, "1MiB")).unwrap();
    put_synced(&db, 0..KEYS);
    db.close().unwrap();
    let log = paths(&handles, DIR, ".wal").pop().unwrap();
    handles.fs.remove_file(&log);
    assert!(Db::open_with(DIR, options(&handles, "1MiB")).is_err(), "nobody misses it");
    let report = repair(&handles).unwrap();
    assert!(!report.lost_something() && report.problems.is_empty(), "{report:?}");
    assert_eq!(count(&handles), KEYS);
}

/// A repair made a database of it.
#[test]
fn a_directory_without_a_database_is_left_as_it_is() {
    let (_, handles) = env(1);
    for name in ["", "notes.txt", "RESERVE"] {
        let dir = format!("/without {name}");
        let path = Path::new(&dir);
        windrow_env::FileSystem::create_dir(&handles.fs, path).unwrap();
        if !name.is_empty() {
            handles.fs.write_file(&path.join(name), b"");
        }
        let before = handles.fs.files(path);
        let error = windrow::repair(path, options(&handles, "64KiB")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains("there is no database in"), "{error}");
        assert_eq!(handles.fs.files(path), before);
    }
    // The remains of a database count as one.
    let left = killed(|db| put_synced(db, 0..KEYS));
    for name in ["CURRENT", "MANIFEST"] {
        paths(&left, DIR, name).iter().for_each(|path| left.fs.remove_file(path));
    }
    repair(&left).unwrap();
    assert_eq!(count(&left), KEYS);
}

/// A database with a damaged table, and enough tables of level 0 to be merged.
fn damaged() -> (Handles, PathBuf) {
    let handles = killed(|db| {
        for round in 0..8 {
            (0..KEYS).for_each(|key| db.put(format!("{key:06}"), [round; 1_000]).unwrap());
            db.flush().unwrap();
        }
    });
    let table = paths(&handles, DIR, ".sst").pop().unwrap();
    handles.fs.flip(&table, 100, 1);
    (handles, table)
}

/// The jobs of such a repair ran on, and the lock was released.
#[test]
fn a_repair_that_cannot_move_an_original_closes_what_it_opened() {
    let (handles, table) = damaged();
    let name = table.file_name().unwrap().to_str().unwrap();
    let link = Fault::new(FaultKind::NotSupported, Ops::LINK, When::MatchingFrom(0));
    let rename = Fault::new(FaultKind::Io, Ops::RENAME, When::Matching(0)).on_path(name);
    handles.fs.inject(link);
    handles.fs.inject(rename);
    let error = windrow::repair(DIR, options(&handles, "64KiB")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let after = image(&handles);
    handles.jobs.run_until_idle();
    handles.jobs.fire_timers();
    handles.jobs.run_until_idle();
    assert!(image(&handles) == after, "something ran on");
    assert_eq!(handles.fs.descriptors(), 0);
    let log = paths(&handles, DIR, ".wal").pop().expect("a log");
    let bytes = handles.fs.read_file(&log).unwrap().len();
    assert!(bytes < 10_000, "the log that a close leaves is empty, and not {bytes} bytes long");
    handles.fs.clear_faults();
    assert!(!repair(&handles).unwrap().lost_something());
    assert_eq!(count(&handles), KEYS);
}

/// The report named the other file.
#[test]
fn an_original_that_is_kept_already_is_named_by_where_it_is() {
    let (handles, table) = damaged();
    let bytes = handles.fs.read_file(&table);
    let name = table.file_name().unwrap().to_str().unwrap();
    let lost = Path::new(DIR).join("lost");
    windrow_env::FileSystem::create_dir(&handles.fs, &lost).unwrap();
    handles.fs.write_file(&lost.join(name), b"another");
    // The first repair dies once the original is linked.
    let fault = Fault::new(FaultKind::Io, Ops::RENAME, When::Matching(0));
    handles.fs.inject(fault);
    repair(&handles).unwrap_err();
    let kept = lost.join(format!("{name}.2"));
    assert!(handles.fs.read_file(&kept) == bytes, "this tests nothing");
    assert_eq!(repair(&handles).unwrap().originals, [kept]);
    assert_eq!(handles.fs.files(&lost).len(), 2);
}

/// A closed database with these keys in a table, in a directory of a file system.
fn with_a_table(handles: &Handles, dir: &str, keys: std::ops::Range<usize>) {
    let db = Db::open_with(dir, options(handles, "64KiB")).unwrap();
    keys.for_each(|key| db.put(format!("{key:06}"), [1; 100]).unwrap());
    db.close().unwrap();
}

/// Copies the tables of a directory into the database's, under numbers that are free there.
fn bring_tables(handles: &Handles, from: &str) -> Vec<String> {
    let tables = paths(handles, from, ".sst");
    let bring = |(i, path): (usize, &PathBuf)| {
        let name = format!("{:06}.sst", 900 + i);
        let bytes = handles.fs.read_file(path).unwrap();
        handles.fs.write_file(&Path::new(DIR).join(&name), &bytes);
        name
    };
    tables.iter().enumerate().map(bring).collect()
}

fn remove(handles: &Handles, part: &str) {
    for path in paths(handles, DIR, part) {
        handles.fs.remove_file(&path);
    }
}

/// A database of keys 0 to 99 in tables and one more in its log, next to one of 500 to 799.
fn two_databases() -> Handles {
    let (_, handles) = env(1);
    with_a_table(&handles, "/other", 500..800);
    with_a_table(&handles, DIR, 0..60);
    with_a_table(&handles, DIR, 60..100);
    handles
}

#[test]
fn a_table_of_another_database_is_left_out() {
    // Without CURRENT as well, and with CURRENT and a log that knows its manifest.
    for lost in ["MANIFEST", "MANIFEST and CURRENT"] {
        let handles = two_databases();
        let brought = bring_tables(&handles, "/other");
        assert!(brought.len() == 1, "this tests something else");
        let bytes = handles.fs.read_file(&Path::new(DIR).join(&brought[0]));
        lost.split(" and ").for_each(|part| remove(&handles, part));
        let report = repair(&handles).unwrap();
        assert_eq!(report.tables_of_another_database, brought, "{lost}");
        assert_eq!((report.tables_of_unknown_database, report.tables_kept), (0, 2), "{report:?}");
        assert!(report.lost_something(), "it may lie where one of ours was");
        assert_eq!(report.originals, [Path::new(DIR).join("lost").join(&brought[0])]);
        assert!(handles.fs.read_file(&report.originals[0]) == bytes);
        let assumed = report.problems.iter().any(|p| p.message().contains("CURRENT does not say"));
        assert_eq!(assumed, lost.contains("CURRENT"), "{:?}", report.problems);
        assert_eq!(count(&handles), 100, "{lost}");
        let report = repair(&handles).unwrap();
        assert!(!report.lost_something(), "{report:?}");
    }
}

/// All entries of the database are in its log: the uid in CURRENT counts, and not the only table's.
#[test]
fn a_table_of_another_database_is_not_taken_for_the_own() {
    let handles = killed(|db| put_synced(db, 0..KEYS));
    with_a_table(&handles, "/other", 500..800);
    let brought = bring_tables(&handles, "/other");
    remove(&handles, "MANIFEST");
    let report = repair(&handles).unwrap();
    assert_eq!(report.tables_of_another_database, brought);
    assert_eq!(count(&handles), KEYS);
}

/// CURRENT of another database: the uid in the tables counts.
#[test]
fn a_foreign_current_costs_no_table() {
    let handles = two_databases();
    let current = handles.fs.read_file(Path::new("/other/CURRENT")).unwrap();
    handles.fs.write_file(&Path::new(DIR).join("CURRENT"), &current);
    remove(&handles, "MANIFEST");
    let report = repair(&handles).unwrap();
    assert!(report.tables_of_another_database.is_empty(), "{report:?}");
    assert_eq!(count(&handles), 100);
}

/// The tables of a copy have the uid of the database that it was copied from, and so has the copy.
#[test]
fn a_copy_keeps_its_tables() {
    let (_, handles) = env(1);
    with_a_table(&handles, "/source", 0..60);
    let source = Db::open_with("/source", options(&handles, "64KiB")).unwrap();
    source.checkpoint(DIR).unwrap();
    source.close().unwrap();
    with_a_table(&handles, DIR, 60..100);
    remove(&handles, "MANIFEST");
    let report = repair(&handles).unwrap();
    assert!(report.tables_of_another_database.is_empty() && report.tables_kept == 2, "{report:?}");
    assert_eq!(count(&handles), 100);
}

/// A repair that finds CURRENT lost goes on with the uid of the tables. The next repair, which
/// finds the manifest lost, takes all tables in.
#[test]
fn a_repaired_database_stays_the_same() {
    let (_, handles) = env(1);
    with_a_table(&handles, DIR, 0..60);
    for (lost, keys) in [("CURRENT", 60..80), ("MANIFEST", 80..100), ("CURRENT", 100..120)] {
        remove(&handles, lost);
        let report = repair(&handles).unwrap();
        assert!(report.tables_of_another_database.is_empty(), "{lost}: {report:?}");
        let end = keys.end;
        with_a_table(&handles, DIR, keys);
        assert_eq!(count(&handles), end);
    }
    remove(&handles, "MANIFEST");
    assert!(repair(&handles).unwrap().tables_of_another_database.is_empty());
    assert_eq!(count(&handles), 120);
}
