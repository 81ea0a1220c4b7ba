//! Logs that are kept for the feed of changes: on a device without room for them, and at a crash.

use crate::simulated_database::{DIR, options};
use std::path::Path;
use windrow::{Db, Options};
use windrow_env::testing::{FileDamage, Handles, NameDamage, PowerLoss, Rng, env};

/// Keys that are written over and over.
const KEYS: u64 = 400;
const VALUE_BYTES: usize = 2000;

fn small(handles: &Handles, changes_bytes: u64) -> Options {
    let mut options = options(handles);
    options.settings.file_bytes = 64 << 10;
    options.settings.compression = "none".to_owned();
    options.settings.changes_bytes = changes_bytes;
    options
}

fn kept(handles: &Handles) -> usize {
    let files = handles.fs.files(Path::new(DIR));
    files.iter().filter(|name| name.ends_with(".changes")).count()
}

fn write(db: &Db, handles: &Handles, rng: &mut Rng, writes: u64) {
    for n in 0..writes {
        let value: Vec<u8> = (0..VALUE_BYTES).map(|_| rng.below(256) as u8).collect();
        db.put(rng.below(KEYS).to_be_bytes(), value).unwrap();
        if n % 16 == 0 {
            handles.jobs.fire_timers();
            handles.jobs.run_until_idle();
        }
    }
}

/// Several times the device is written, and every write finds room, as it does without kept logs.
#[test]
fn no_write_fails_for_logs_that_are_kept() {
    for seed in 0..3 {
        for changes_bytes in [0, 1 << 30] {
            let (_, handles) = env(seed);
            let db = Db::open_with(DIR, small(&handles, changes_bytes)).unwrap();
            handles.fs.set_capacity(Some(6 << 20));
            let mut rng = Rng::new(seed);
            let mut most = 0;
            for _ in 0..20 {
                write(&db, &handles, &mut rng, 500);
                most = most.max(kept(&handles));
            }
            let stats = db.stats();
            assert_eq!(most > 0, changes_bytes > 0, "seed {seed}: {most} logs were kept");
            if changes_bytes > 0 {
                assert!(stats.changes_begin > 5000, "the oldest go: {}", stats.changes_begin);
                // All of it is there.
                let changes = db.changes(stats.changes_begin, Default::default()).unwrap();
                let found = changes.map(Result::unwrap).collect::<Vec<_>>().len() as u64;
                assert_eq!(found, 10_000 + 1 - stats.changes_begin, "seed {seed}");
            }
            db.verify().unwrap().into_result().unwrap();
            db.close().unwrap();
            let db = Db::open_with(DIR, small(&handles, changes_bytes)).unwrap();
            assert!(db.count(..).unwrap() <= KEYS);
            write(&db, &handles, &mut rng, 500);
        }
    }
}

/// An open needs room for a manifest and a log, and takes it from kept logs.
#[test]
fn an_open_on_a_full_device_takes_the_room_of_kept_logs() {
    let (_, handles) = env(1);
    let db = Db::open_with(DIR, small(&handles, 1 << 30)).unwrap();
    let mut rng = Rng::new(1);
    write(&db, &handles, &mut rng, 2000);
    db.close().unwrap();
    let before = kept(&handles);
    assert!(before > 20, "{before} logs are kept");
    handles.fs.set_capacity(Some(handles.fs.used_bytes() + 1000));
    let db = Db::open_with(DIR, small(&handles, 1 << 30)).unwrap();
    let after = kept(&handles);
    assert!(0 < after && after < before, "{after} of {before} are left");
    let begin = db.stats().changes_begin;
    assert!(1 < begin && begin < 2000, "the feed begins with {begin}");
    let changes = db.changes(begin, Default::default()).unwrap();
    assert_eq!(changes.map(Result::unwrap).collect::<Vec<_>>().len() as u64, 2001 - begin);
    write(&db, &handles, &mut rng, 2000);
}

/// A crash comes between the removal of a file and the record of it.
#[test]
fn a_log_that_was_given_up_and_is_still_in_the_manifest_is_no_harm() {
    let (_, handles) = env(2);
    let db = Db::open_with(DIR, small(&handles, 1 << 30)).unwrap();
    let mut rng = Rng::new(2);
    write(&db, &handles, &mut rng, 500);
    let files = handles.fs.files(Path::new(DIR));
    let oldest = files.iter().filter(|name| name.ends_with(".changes")).min().unwrap();
    handles.fs.halt();
    drop(db);
    handles.jobs.discard();
    handles.fs.kill(1);
    let handles = handles.reborn(2);
    handles.fs.remove_file(&Path::new(DIR).join(oldest));
    let db = Db::open_with(DIR, small(&handles, 1 << 30)).unwrap();
    let begin = db.stats().changes_begin;
    assert!(1 < begin, "the feed begins with {begin}");
    let changes = db.changes(begin, Default::default()).unwrap();
    assert_eq!(changes.map(Result::unwrap).collect::<Vec<_>>().len() as u64, 501 - begin);
}

/// Settings by which a flush writes one table.
fn few_files(handles: &Handles) -> Options {
    let mut options = small(handles, 1 << 30);
    options.settings.preset = "leveled".to_owned();
    options.settings.file_bytes = 1 << 20;
    options
}

/// A process dies around the record that keeps a log, and the next one in its open. Then the power
/// goes, which takes back what neither synced: the log may be one to replay again.
#[test]
fn a_log_that_leaves_is_there_for_either_manifest() {
    let key = |n: u64| n.to_be_bytes();
    // Leaves what the page cache has when a flush dies at its operation `at`.
    let killed_in_flush = |at: u64| {
        let (_, handles) = env(1);
        let db = Db::open_with(DIR, few_files(&handles)).unwrap();
        // They fill a memtable, and the log behind it is begun.
        (0..3).for_each(|n| db.put(key(n), [n as u8; 30_000]).unwrap());
        db.sync().unwrap();
        let dies_at = handles.fs.operations() + at;
        handles.fs.crash_at(dies_at);
        handles.jobs.run_until_idle();
        let is_done = handles.fs.operations() <= dies_at;
        handles.fs.halt();
        drop(db);
        handles.jobs.discard();
        handles.fs.kill(1);
        (handles.reborn(2), is_done)
    };
    let lost = |files, names| PowerLoss { seed: 1, files: Some(files), names: Some(names) };
    let losses = [
        lost(FileDamage::DropAll, NameDamage::DropAll),
        lost(FileDamage::DropAll, NameDamage::KeepAll),
        lost(FileDamage::KeepAll, NameDamage::DropAll),
        PowerLoss { seed: 1, ..PowerLoss::default() },
    ];
    let mut points = 0;
    for at in 0.. {
        for loss in &losses {
            for dies_at in 0.. {
                let (handles, _) = killed_in_flush(at);
                handles.fs.crash_at(handles.fs.operations() + dies_at);
                let opened = Db::open_with(DIR, few_files(&handles));
                let is_whole = opened.is_ok();
                handles.fs.halt();
                drop(opened);
                handles.jobs.discard();
                handles.fs.crash_with(*loss);
                let handles = handles.reborn(3);
                let place = format!("killed at {at}, and at {dies_at} of the open, then {loss:?}");
                let db = Db::open_with(DIR, few_files(&handles))
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(db.count(..).unwrap(), 3, "{place}");
                db.verify().unwrap().into_result().unwrap_or_else(|e| panic!("{place}: {e}"));
                points += 1;
                if is_whole {
                    break;
                }
            }
        }
        if killed_in_flush(at).1 {
            break;
        }
    }
    assert!(points > 500, "{points} points");
}
