//! Tests of the crash file system, one for each rule.
//!
//! Owns: the cases. Never does: use the real file system.

use super::*;
use crate::fs::{LockMode, ReadFileOptions, ReadRequest, WriteOptions, is_not_found};
use crate::{Buffer, FileSystem, WriteFile};
use std::path::Path;
use windrow_base::ErrorKind;

const A: &str = "/db/a";
const B: &str = "/db/b";

fn path(text: &str) -> &Path {
    Path::new(text)
}

/// A file system with a directory `/db`.
fn fs() -> CrashFs {
    let fs = CrashFs::new(7);
    fs.create_dir(path("/db")).unwrap();
    fs
}

fn create(fs: &CrashFs, name: &str, bytes: &[u8]) -> Box<dyn WriteFile> {
    let mut file = fs.create(path(name), WriteOptions::default()).unwrap();
    file.append(bytes).unwrap();
    file
}

/// A file with synced bytes and a synced name.
fn durable(fs: &CrashFs, name: &str, bytes: &[u8]) {
    create(fs, name, bytes).finish().unwrap();
    fs.sync_dir(path(name).parent().unwrap()).unwrap();
}

fn lose(fs: &CrashFs, files: FileDamage, names: NameDamage, seed: u64) {
    fs.crash_with(PowerLoss { seed, files: Some(files), names: Some(names) });
}

#[test]
fn syncing_a_file_does_not_make_its_name_durable() {
    let fs = fs();
    create(&fs, A, b"bytes").finish().unwrap();
    lose(&fs, FileDamage::KeepAll, NameDamage::DropAll, 0);
    assert_eq!(fs.read_file(path(A)), None);
}

#[test]
fn a_name_without_a_synced_file_is_an_empty_file() {
    let fs = fs();
    create(&fs, A, b"bytes").append(b"more").unwrap();
    fs.sync_dir(path("/db")).unwrap();
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert_eq!(fs.read_file(path(A)).unwrap(), b"");
}

#[test]
fn what_is_synced_survives_every_damage() {
    for seed in 0..500 {
        let fs = fs();
        let log = fs.create_log(path(B), 10_000).unwrap();
        log.write_at(0, &[1; 3_000]).unwrap();
        log.sync().unwrap();
        durable(&fs, A, b"synced");
        log.write_at(3_000, &[2; 3_000]).unwrap();
        create(&fs, "/db/c", b"not synced").append(&[3; 5_000]).unwrap();
        fs.crash(seed);
        assert_eq!(fs.read_file(path(A)).unwrap(), b"synced", "seed {seed}");
        let log = fs.read_file(path(B)).unwrap();
        assert_eq!(log.len(), 10_000, "seed {seed}");
        assert!(log[..3_000].iter().all(|&byte| byte == 1), "seed {seed}");
        // The log's space was durable zeros: stale bytes of other files cannot appear in it.
        assert!(log[3_000..].iter().all(|&byte| byte == 0 || byte == 2), "seed {seed}");
    }
}

#[test]
fn damage_takes_every_form() {
    let (mut empty, mut full, mut torn, mut holed, mut stale) = (0, 0, 0, 0, 0);
    for seed in 0..400 {
        let fs = fs();
        durable(&fs, B, &[9; 8_192]);
        let mut file = create(&fs, A, &[1; 2_048]);
        file.append(&[1; 2_048]).unwrap();
        fs.sync_dir(path("/db")).unwrap();
        fs.crash(seed);
        let bytes = fs.read_file(path(A)).unwrap();
        let ones = bytes.iter().filter(|&&byte| byte == 1).count();
        let is_prefix = bytes.iter().take(ones).all(|&byte| byte == 1);
        empty += u32::from(bytes.is_empty());
        full += u32::from(ones == 4_096);
        torn += u32::from(is_prefix && ones == bytes.len() && ones > 0 && ones < 4_096);
        holed += u32::from(!is_prefix && bytes.contains(&0));
        stale += u32::from(bytes.contains(&9));
    }
    let seen = [empty, full, torn, holed, stale];
    assert!(seen.iter().all(|&count| count >= 10), "{seen:?}");
}

#[test]
fn prefix_damage_tears_only_the_last_write() {
    let mut lens = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let fs = fs();
        let mut file = create(&fs, A, &[1; 100]);
        file.append(&[2; 100]).unwrap();
        fs.sync_dir(path("/db")).unwrap();
        lose(&fs, FileDamage::Prefix, NameDamage::KeepAll, seed);
        let bytes = fs.read_file(path(A)).unwrap();
        let whole: Vec<u8> = [[1u8; 100], [2; 100]].concat();
        assert_eq!(bytes, whole[..bytes.len()]);
        lens.insert(bytes.len());
    }
    assert!(lens.len() > 20 && lens.contains(&0) && lens.contains(&200), "{lens:?}");
}

#[test]
fn names_are_lost_in_any_subset_and_renames_go_by_inode() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let fs = fs();
        create(&fs, "/db/temp", b"new").finish().unwrap();
        fs.rename(path("/db/temp"), path("/db/CURRENT")).unwrap();
        create(&fs, "/db/x", b"x").finish().unwrap();
        lose(&fs, FileDamage::KeepAll, NameDamage::Subset, seed);
        let files = fs.files(path("/db"));
        if files.contains(&"CURRENT".to_string()) {
            assert_eq!(fs.read_file(path("/db/CURRENT")).unwrap(), b"new");
            assert!(!files.contains(&"temp".to_string()), "a rename is one step");
        }
        seen.insert(files);
    }
    // {}, temp, CURRENT (with and without the link of temp), each with and without x.
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn an_unsynced_replacement_shows_the_old_or_the_new_file() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..100 {
        let fs = fs();
        durable(&fs, B, b"old");
        create(&fs, A, b"new").finish().unwrap();
        fs.sync_dir(path("/db")).unwrap();
        fs.rename(path(A), path(B)).unwrap();
        fs.crash(seed);
        match fs.read_file(path(B)).unwrap().as_slice() {
            b"old" => old += 1,
            b"new" => new += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(old > 10 && new > 10, "{old} {new}");
}

#[test]
fn an_unsynced_removal_may_come_back() {
    let fs = fs();
    durable(&fs, A, b"bytes");
    fs.remove(path(A)).unwrap();
    assert!(!fs.exists(path(A)).unwrap());
    let kept = fs.fork();
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert_eq!(fs.read_file(path(A)).unwrap(), b"bytes");
    kept.sync_dir(path("/db")).unwrap();
    lose(&kept, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert_eq!(kept.read_file(path(A)), None);
}

#[test]
fn a_failed_sync_loses_the_bytes_and_the_next_one_says_ok() {
    let fs = fs();
    let log = fs.create_log(path(A), 0).unwrap();
    fs.sync_dir(path("/db")).unwrap();
    log.write_at(0, b"first ").unwrap();
    let fault = fs.inject(Fault::new(FaultKind::Io, Ops::SYNC, When::Matching(0)));
    assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Io);
    fs.remove_fault(fault);
    log.write_at(6, b"second").unwrap();
    log.sync().unwrap();
    assert_eq!(fs.read_file(path(A)).unwrap(), b"first second", "the cache shows all");
    lose(&fs, FileDamage::KeepAll, NameDamage::KeepAll, 0);
    assert_eq!(fs.read_file(path(A)).unwrap(), b"\0\0\0\0\0\0second", "the device has the rest");
}

#[test]
fn a_device_that_lies_about_a_sync() {
    let fs = fs();
    fs.inject(Fault::new(FaultKind::LostSync, Ops::SYNC, When::Matching(0)).on_path("/db/a"));
    create(&fs, A, b"bytes").finish().unwrap();
    fs.sync_dir(path("/db")).unwrap();
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert_eq!(fs.read_file(path(A)).unwrap(), b"");
}

#[test]
fn handles_and_locks_die_in_a_crash() {
    let fs = fs();
    durable(&fs, B, b"bytes");
    let mut writer = create(&fs, A, b"1");
    let log = fs.create_log(path("/db/log"), 100).unwrap();
    let reader = fs.open(path(B), ReadFileOptions::default()).unwrap();
    let lock = fs.lock(path("/db/LOCK"), LockMode::Exclusive).unwrap();
    let busy = fs.lock(path("/db/LOCK"), LockMode::Exclusive).err().unwrap();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert_eq!(busy.message(), "database is open in process 1");
    fs.crash(1);
    assert_eq!(writer.append(b"2").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(log.write_at(0, b"2").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(reader.read_at(0, &mut [0; 1]).unwrap_err().kind(), ErrorKind::Io);
    let again = fs.lock(path("/db/LOCK"), LockMode::Exclusive).unwrap();
    drop(lock); // from before: must not release the new one
    assert!(fs.lock(path("/db/LOCK"), LockMode::Shared).is_err());
    drop(again);
    let readers: Vec<_> =
        (0..3).map(|_| fs.lock(path("/db/LOCK"), LockMode::Shared).unwrap()).collect();
    assert!(fs.lock(path("/db/LOCK"), LockMode::Exclusive).is_err());
    drop(readers);
    fs.lock(path("/db/LOCK"), LockMode::Exclusive).unwrap();
}

#[test]
fn a_shared_lock_writes_nothing() {
    let fs = fs();
    let before = (fs.operations(), fs.files(path("/db")));
    let _lock = fs.lock(path("/db/LOCK"), LockMode::Shared).unwrap();
    assert_eq!((fs.operations(), fs.files(path("/db"))), before);
}

/// A small database: a log, then a table whose name is synced.
fn workload(fs: &CrashFs) -> windrow_base::Result<()> {
    let log = fs.create_log(path(A), 1_000)?;
    fs.sync_dir(path("/db"))?;
    for record in 0..5 {
        log.write_at(record * 100, &[record as u8 + 1; 100])?;
        log.sync()?;
    }
    let mut table = fs.create(path(B), WriteOptions::default())?;
    table.append(&[7; 5_000])?;
    table.finish()?;
    fs.sync_dir(path("/db"))?;
    fs.remove(path(A))
}

#[test]
fn crash_at_stops_everything_from_that_operation_on() {
    let fs = fs();
    workload(&fs).unwrap();
    let all = fs.operations();
    assert_eq!(all, 1 + 2 + 10 + 3 + 2);
    for at in 1..all {
        let fs = self::fs();
        fs.crash_at(at);
        assert!(workload(&fs).is_err(), "{at}");
        assert!(fs.is_dead());
        assert_eq!(fs.operations(), at + 1, "nothing was counted after it");
        assert!(fs.list(path("/db")).is_err() && fs.exists(path(A)).is_err());
        fs.crash(at);
        assert!(!fs.is_dead());
        for name in fs.list(path("/db")).unwrap() {
            fs.remove(&path("/db").join(name)).unwrap();
        }
        workload(&fs).unwrap();
    }
}

#[test]
fn faults_strike_by_index_path_kind_and_chance() {
    let fs = fs();
    let first = fs.operations();
    fs.inject(Fault::new(FaultKind::Io, Ops::ALL, When::Operation(first + 1)));
    fs.create(path(A), WriteOptions::default()).unwrap();
    assert!(fs.sync_dir(path("/db")).is_err());
    fs.sync_dir(path("/db")).unwrap();

    fs.clear_faults();
    let never_again = Fault::new(FaultKind::TooManyFiles, Ops::OPEN, When::MatchingFrom(1));
    fs.inject(never_again.on_path(".sst"));
    fs.write_file(path("/db/1.sst"), b"x");
    let open = |name| fs.open(path(name), ReadFileOptions::default()).map(|_| ());
    open("/db/1.sst").unwrap();
    for _ in 0..3 {
        let error = open("/db/1.sst").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(!is_not_found(&error), "{error}");
        open(A).unwrap();
    }
    assert!(!is_not_found(&open("/db/2.sst").unwrap_err()), "no descriptors is not absence");
    fs.clear_faults();
    assert!(is_not_found(&open("/db/2.sst").unwrap_err()));

    fs.inject(Fault::new(FaultKind::Io, Ops::READ, When::Probability(0.3)));
    let file = fs.open(path("/db/1.sst"), ReadFileOptions::default()).unwrap();
    let failed = (0..1_000).filter(|_| file.read_at(0, &mut [0; 1]).is_err()).count();
    assert!((200..400).contains(&failed), "{failed}");
}

#[test]
fn flipped_and_misdirected_bytes() {
    let fs = fs();
    fs.write_file(path(B), &[0; 64]);
    fs.inject(Fault::new(FaultKind::FlipBit, Ops::READ, When::Matching(0)));
    let file = fs.open(path(B), ReadFileOptions::default()).unwrap();
    let mut buf = [0u8; 64];
    file.read_at(0, &mut buf).unwrap();
    assert_eq!(buf.iter().map(|b| b.count_ones()).sum::<u32>(), 1);
    file.read_at(0, &mut buf).unwrap();
    assert_eq!(buf, [0; 64]);

    let log = fs.create_log(path(A), 10_000).unwrap();
    fs.inject(Fault::new(FaultKind::Misdirect, Ops::WRITE, When::Matching(0)));
    log.write_at(10, b"x").unwrap();
    let bytes = fs.read_file(path(A)).unwrap();
    let at = bytes.iter().position(|b| *b == b'x').expect("it went somewhere");
    assert!(at > 10 && (at - 10).is_multiple_of(512), "{at}");
}

#[test]
fn a_misdirected_sector_leaves_the_rest_of_its_write() {
    for seed in 0..50 {
        let fs = CrashFs::new(seed);
        fs.create_dir(path("/db")).unwrap();
        let log = fs.create_log(path(A), 20_000).unwrap();
        log.write_at(0, &[1; 20_000]).unwrap();
        fs.inject(Fault::new(FaultKind::Misdirect, Ops::WRITE, When::Matching(0)));
        log.write_at(6_000, &[2; 2_000]).unwrap();
        let bytes = fs.read_file(path(A)).unwrap();
        let stale = bytes[6_000..8_000].iter().filter(|b| **b == 1).count();
        let astray = [&bytes[..6_000], &bytes[8_000..]].concat();
        let astray = astray.iter().filter(|b| **b == 2).count();
        // A sector that is moved onto a part of the same write shows only as stale bytes.
        assert!((1..=512).contains(&stale) && astray <= stale, "{stale} {astray}");
    }
}

#[test]
fn a_lost_write_shows_until_the_cache_goes() {
    let fs = fs();
    let log = fs.create_log(path(A), 1_000).unwrap();
    log.write_at(0, b"first").unwrap();
    fs.sync_dir(path("/db")).unwrap();
    fs.inject(Fault::new(FaultKind::LostWrite, Ops::WRITE, When::Matching(0)));
    log.write_at(0, b"other").unwrap();
    log.sync().unwrap();
    assert!(fs.read_file(path(A)).unwrap().starts_with(b"other"));
    fs.kill(1);
    assert!(fs.read_file(path(A)).unwrap().starts_with(b"other"));
    fs.crash(1);
    assert!(fs.read_file(path(A)).unwrap().starts_with(b"first"));
}

#[test]
fn short_reads_and_descriptors() {
    let fs = fs();
    fs.write_file(path(B), &[7; 64]);
    fs.set_descriptors_max(Some(2));
    let file = fs.open(path(B), ReadFileOptions::default()).unwrap();
    fs.inject(Fault::new(FaultKind::ShortRead, Ops::READ, When::Matching(0)));
    let mut buf = [0u8; 64];
    assert_eq!(file.read_at(0, &mut buf).unwrap_err().kind(), ErrorKind::Corruption);
    file.read_at(0, &mut buf).unwrap();
    let log = fs.create_log(path(A), 10).unwrap();
    assert_eq!(fs.descriptors(), 2);
    assert_eq!(fs.open(path(B), ReadFileOptions::default()).err().unwrap().kind(), ErrorKind::Io);
    assert!(fs.read_all(path(B)).is_err());
    drop(log);
    assert_eq!(fs.read_all(path(B)).unwrap(), [7; 64]);
    fs.kill(1);
    assert_eq!(fs.descriptors(), 0, "a dead process holds no file");
    fs.halt();
    assert!(fs.is_dead() && fs.list(path("/db")).is_err());
}

#[test]
fn a_full_device_takes_what_fits() {
    let fs = fs();
    fs.set_capacity(Some(10_000));
    let log = fs.create_log(path(A), 6_000).unwrap();
    log.write_at(0, &[1; 6_000]).unwrap();
    assert_eq!(fs.free_bytes(path("/db")).unwrap(), 4_000);
    assert_eq!(fs.create_log(path(B), 4_001).err().unwrap().kind(), ErrorKind::NoSpace);
    assert!(!fs.exists(path(B)).unwrap());
    let mut file = create(&fs, B, &[2; 3_000]);
    assert_eq!(file.append(&[2; 3_000]).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(fs.len(path(B)).unwrap(), 4_000);
    log.write_at(0, &[3; 100]).expect("reserved space can be written");
    fs.remove(path(B)).unwrap();
    log.write_at(6_000, &[1; 100]).unwrap();
    assert_eq!(log.write_at(9_990, &[1; 20]).unwrap_err().kind(), ErrorKind::NoSpace);
}

#[test]
fn a_log_takes_its_space_in_steps_here_too() {
    let fs = fs();
    fs.set_capacity(Some(1 << 20));
    let log = fs.create_log(path(A), 80 << 20).unwrap();
    assert_eq!((fs.used_bytes(), fs.len(path(A)).unwrap()), (64 << 10, 80 << 20));
    log.write_at(64 << 10, &[1]).unwrap();
    assert_eq!((fs.used_bytes(), log.reserved_bytes()), (128 << 10, 128 << 10));
    log.reserve((128 << 10) + 1).unwrap();
    assert_eq!(log.reserved_bytes(), 256 << 10);
    // With little space left: at most the requested space, and an error that changes nothing.
    log.reserve(1 << 20).unwrap();
    assert_eq!(fs.free_bytes(path("/db")).unwrap(), 0);
    assert_eq!(log.reserve((1 << 20) + 1).unwrap_err().kind(), ErrorKind::NoSpace);
    log.write_at((1 << 20) - 1, &[1]).unwrap();
    let first = log.write_at(1 << 20, &[1]).unwrap_err();
    assert_eq!(first.kind(), ErrorKind::NoSpace);
    // As a real log, it refuses everything after that.
    for later in [log.write_at(0, &[1]), log.sync()].map(Result::unwrap_err) {
        assert_eq!(later.kind(), ErrorKind::NoSpace);
        assert_eq!(later.first_failure().to_string(), first.to_string());
    }
    log.release(100);
    assert_eq!((fs.used_bytes(), fs.len(path(A)).unwrap()), (100, 80 << 20));
    fs.inject(Fault::new(FaultKind::Io, Ops::RESERVE, When::Matching(0)));
    assert_eq!(log.reserve(200).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_killed_process_keeps_what_the_kernel_had() {
    let mut tables = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let fs = fs();
        let log = fs.create_log(path(A), 1_000).unwrap();
        log.write_at(0, b"record").unwrap();
        let mut table = create(&fs, B, b"1");
        table.append(b"2").unwrap();
        fs.kill(seed);
        assert!(fs.read_file(path(A)).unwrap().starts_with(b"record"));
        tables.insert(fs.read_file(path(B)).unwrap());
        assert!(log.sync().is_err());
        // It is not synced in any case: a power loss may still drop it.
        lose(&fs, FileDamage::DropAll, NameDamage::KeepAll, seed);
        assert_eq!(fs.read_file(path(A)).unwrap(), b"");
    }
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), [&b""[..], b"1", b"12"]);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed: u64, probability: f64| {
        let (env, handles) = env(seed);
        env.fs.create_dir(path("/db")).unwrap();
        handles.fs.inject(Fault::new(FaultKind::Io, Ops::WRITE, When::Probability(probability)));
        let fs = handles.fs.clone();
        for _ in 0..5 {
            let fs = fs.clone();
            env.jobs.submit(
                crate::jobs::Urgency::Normal,
                Box::new(move || {
                    let _ = workload(&fs);
                }),
            );
        }
        handles.jobs.run_until_idle();
        env.clock.sleep_ns(5);
        handles.fs.crash(env.random.next_u64());
        let log = fs.create_log(path("/db/end"), 0).unwrap();
        for name in fs.files(path("/db")) {
            log.write_at(0, &fs.read_file(path(&format!("/db/{name}"))).unwrap()).ok();
        }
        fs.trace_hash()
    };
    for seed in 0..20 {
        assert_eq!(run(seed, 0.1), run(seed, 0.1), "seed {seed}");
    }
    let distinct: std::collections::BTreeSet<u64> = (0..20).map(|seed| run(seed, 0.1)).collect();
    assert!(distinct.len() > 10, "{}", distinct.len());
}

#[test]
fn a_fork_goes_its_own_way_and_keeps_links() {
    let fs = fs();
    durable(&fs, A, b"one");
    fs.link(path(A), path(B)).unwrap();
    let fork = fs.fork();
    let log = fs.create_log(path("/db/log"), 10).unwrap();
    fork.flip(path(A), 0, 0xff);
    assert_eq!(fs.read_file(path(A)).unwrap(), b"one");
    assert_eq!(fork.read_file(path(A)), fork.read_file(path(B)), "one inode, two names");
    assert_ne!(fork.read_file(path(A)), fs.read_file(path(A)));
    assert_eq!(fork.files(path("/db")), ["a", "b"]);
    log.write_at(0, b"x").unwrap();
    assert_eq!(fork.read_file(path("/db/log")), None);
}

#[test]
fn raw_helpers_reach_the_device() {
    let fs = CrashFs::new(0);
    fs.write_file(path("/new/dir/f"), b"hello");
    fs.flip(path("/new/dir/f"), 1, 0x01);
    fs.truncate(path("/new/dir/f"), 4);
    assert_eq!(fs.operations() + fs.reads(), 0);
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert_eq!(fs.read_file(path("/new/dir/f")).unwrap(), b"hdll");
    fs.remove_file(path("/new/dir/f"));
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert!(fs.files(path("/new/dir")).is_empty());
}

#[test]
fn directories() {
    let fs = CrashFs::new(0);
    let absent = fs.create(path("/x/f"), WriteOptions::default()).err().unwrap();
    assert!(is_not_found(&absent));
    fs.create_dir(path("/x/y/")).unwrap();
    fs.create_dir(path("/x/y")).unwrap();
    create(&fs, "/x/y/f", b"").finish().unwrap();
    create(&fs, "/x/g", b"").finish().unwrap();
    let mut names = fs.list(path("/x")).unwrap();
    names.sort();
    assert_eq!(names, ["g", "y"]);
    assert!(fs.remove_dir(path("/x/y")).is_err(), "not empty");
    assert!(fs.remove_dir(path("/x")).is_err(), "not empty");
    fs.remove(path("/x/y/f")).unwrap();
    fs.remove_dir(path("/x/y")).unwrap();
    assert!(!fs.exists(path("/x/y")).unwrap());
    assert!(is_not_found(&fs.list(path("/x/y")).unwrap_err()));
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert!(fs.exists(path("/x/y")).unwrap(), "the removal was not synced");
    fs.remove_dir(path("/x/y")).unwrap();
    fs.sync_dir(path("/x")).unwrap();
    lose(&fs, FileDamage::DropAll, NameDamage::DropAll, 0);
    assert!(!fs.exists(path("/x/y")).unwrap());
}

#[test]
fn read_many_gives_each_its_own_result() {
    let fs = fs();
    durable(&fs, A, b"0123456789");
    let file = fs.open(path(A), ReadFileOptions::default()).unwrap();
    let (mut good, mut beyond) = ([0u8; 4], [0u8; 4]);
    let mut requests = [
        ReadRequest { file: &*file, offset: 2, buf: &mut good, result: Ok(()) },
        ReadRequest { file: &*file, offset: 8, buf: &mut beyond, result: Ok(()) },
    ];
    fs.read_many(&mut requests);
    assert!(requests[0].result.is_ok());
    assert!(requests[1].result.as_ref().unwrap_err().is_corruption());
    assert_eq!(&good, b"2345");
}

/// One read: a fault hits all of them or none.
#[test]
fn pieces_are_read_at_once() {
    let fs = fs();
    durable(&fs, A, b"0123456789");
    let file = fs.open(path(A), ReadFileOptions::default()).unwrap();
    fs.inject(Fault::new(FaultKind::Io, Ops::READ, When::Matching(1)));
    let mut pieces = [Buffer::new(3), Buffer::new(0), Buffer::new(4)];
    file.read_pieces_at(2, &mut pieces).unwrap();
    assert_eq!(pieces.each_ref().map(|piece| &**piece), [&b"234"[..], b"", b"5678"]);
    assert!(!file.read_pieces_at(2, &mut pieces).unwrap_err().is_corruption());
    assert!(file.read_pieces_at(4, &mut pieces).unwrap_err().is_corruption());
}

#[test]
fn a_directory_held_open_is_followed_wherever_it_goes() {
    let fs = fs();
    let held = fs.anchored(path("/db")).unwrap();
    durable(&held, A, b"held");
    let lock = held.lock(path("/db/LOCK"), LockMode::Exclusive).unwrap();
    let stamp = held.stamp(path("/db/LOCK")).unwrap().unwrap();
    assert_eq!(lock.id(), Some(stamp.id));
    fs.move_dir(path("/db"), path("/moved"));
    assert_eq!(fs.stamp(path(A)).unwrap(), None);
    fs.create_dir(path("/db")).unwrap();
    durable(&fs, A, b"another's");
    durable(&held, B, b"later");
    held.create_dir(path("/db/lost")).unwrap();
    held.rename(path(B), path("/db/lost/b")).unwrap();
    held.link(path(A), path("/out")).unwrap();
    assert_eq!(held.read_all(path(A)).unwrap(), b"held");
    assert_eq!(fs.files(path("/db")), ["a"]);
    assert_eq!(fs.files(path("/moved")), ["LOCK", "a"]);
    assert_eq!(fs.files(path("/moved/lost")), ["b"]);
    assert_eq!(fs.read_file(path("/out")).unwrap(), b"held");
    // The lock has moved too.
    let again = |path| FileSystem::lock(&fs, path, LockMode::Exclusive);
    assert_eq!(again(path("/moved/LOCK")).err().unwrap().kind(), ErrorKind::Busy);
    drop(again(path("/db/LOCK")).unwrap());
    assert!(held.remove_dir(path("/db")).is_err(), "another's");
    drop(lock);
    drop(again(path("/moved/LOCK")).unwrap());
}

#[test]
fn a_name_that_is_taken_is_not_created_again() {
    let fs = fs();
    durable(&fs, A, b"there");
    let stamp = fs.stamp(path(A)).unwrap();
    assert!(fs.create(path(A), WriteOptions::default()).is_err());
    assert!(fs.create_log(path(A), 10).is_err());
    assert_eq!(
        (fs.read_all(path(A)).unwrap(), fs.stamp(path(A)).unwrap()),
        (b"there".into(), stamp)
    );
    fs.write_file(path(A), b"other");
    assert_ne!(fs.stamp(path(A)).unwrap(), stamp);
}
