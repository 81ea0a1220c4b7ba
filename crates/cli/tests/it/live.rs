//! Commands on a database that another process, the test, has open and writes.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::Shell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use windrow::{Batch, Db, Options, WriteSync};

/// Returns the options of a database that flushes and merges often.
fn options() -> Options {
    let mut options = Options::default();
    for (name, value) in
        [("memory_bytes", "16MiB"), ("memtable_bytes", "256KiB"), ("stats_period_ms", "0")]
    {
        options.settings.set(name, value).unwrap();
    }
    options
}

/// Returns the names of the files in the directory, without leases and the lock.
fn names(sh: &Shell) -> Vec<String> {
    let mut names: Vec<String> = sh.image("db").into_iter().map(|(name, _)| name).collect();
    names.retain(|name| !name.starts_with("READER-"));
    names
}

#[test]
fn what_reads_shows_what_was_written_before_it_began() {
    let sh = Shell::new();
    let db = Db::open_with(sh.path("db"), options()).unwrap();
    let users = db.keyspace("users").unwrap();
    (0..1_000).for_each(|n| db.put(format!("{n:05}"), format!("value {n}")).unwrap());
    db.flush().unwrap();
    db.put("late", "in the log").unwrap();
    users.put("ada", "1815").unwrap();
    let before = names(&sh);
    assert_eq!(sh.ok("get db 00007"), "value 7\n");
    assert_eq!(sh.ok("get db late"), "in the log\n");
    assert_eq!(sh.ok("get db -k users ada"), "1815\n");
    assert_eq!(
        sh.ok("scan db --from 00998"),
        "00998\tvalue 998\n00999\tvalue 999\nlate\tin the log\n"
    );
    assert_eq!(sh.ok("count db"), "1001\n");
    assert_eq!(sh.ok("export db").lines().count(), 1_001);
    assert_eq!(sh.ok("keyspaces db"), "default\nusers\n");
    assert!(sh.ok("tree db").contains("1,000 entries"));
    let verified = sh.ok("verify db");
    assert!(verified.contains("1,000 entries") && verified.ends_with(": sound\n"), "{verified}");
    assert!(!sh.run("get db absent").status.success());
    sh.ok("checkpoint db copy");
    assert!(sh.fails("checkpoint db copy", 1).contains("not empty"));
    assert_eq!(names(&sh), before, "a command made a file");
    assert_eq!(sh.ok("export copy"), sh.ok("export db"));
    assert_eq!(sh.ok("get copy -k users ada"), "1815\n");
    sh.ok("put copy late later");
    assert!(sh.ok("verify copy").ends_with(": sound\n"));
    assert_eq!(sh.ok("get db late"), "in the log\n");
    // The writer has noticed nothing.
    db.put_with("00007", "another", WriteSync::Yes).unwrap();
    assert_eq!(sh.ok("get db 00007"), "another\n");
    db.close().unwrap();
    assert_eq!(sh.ok("get db 00007"), "another\n");
    // A lease that was given up does not block other commands.
    sh.ok("put db key value");
    sh.ok("destroy db --yes");
    assert!(!sh.path("db").exists());
}

/// A batch writes one number to two keyspaces, while memtables are flushed and tables merged: an
/// export of each is a prefix of the writes, and later exports have longer ones.
#[test]
fn what_is_read_next_to_a_writer_is_of_one_moment() {
    let sh = Shell::new();
    let db = Db::open_with(sh.path("db"), options()).unwrap();
    let other = db.keyspace("other").unwrap();
    let (ends, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0u64;
            while !ends.load(Ordering::Relaxed) {
                let (mut batch, key) = (Batch::new(), format!("{number:08}"));
                batch.put(&db, &key, [b'a' + (number % 7) as u8; 200]);
                batch.put(&other, &key, "");
                db.write(batch, WriteSync::No).unwrap();
                number += 1;
                written.store(number, Ordering::Release);
                if number.is_multiple_of(200) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
        let mut last = 0;
        for round in 0..6 {
            let before = written.load(Ordering::Acquire);
            let space = if round % 2 == 0 { "default" } else { "other" };
            let out = sh.ok(&format!("scan db -k {space} --keys-only"));
            let keys: Vec<u64> = out.lines().map(|key| key.parse().unwrap()).collect();
            assert!(keys.iter().copied().eq(0..keys.len() as u64), "round {round}: a gap");
            assert!(before.max(last) <= keys.len() as u64, "round {round}: {before}, {last}");
            last = keys.len() as u64;
            let verified = sh.ok("verify db");
            assert!(verified.ends_with(": sound\n"), "round {round}: {verified}");
        }
        ends.store(true, Ordering::Relaxed);
    });
    db.close().unwrap();
}

/// Damage is found next to a writer as well, and told apart from a write in progress.
#[test]
fn damage_is_found_next_to_a_writer() {
    let sh = Shell::new();
    let db = Db::open_with(sh.path("db"), options()).unwrap();
    (0..1_000).for_each(|n| db.put(format!("{n:05}"), format!("value {n}")).unwrap());
    db.flush().unwrap();
    assert!(sh.ok("verify db").ends_with(": sound\n"));
    let table = sh.files("db", ".sst").pop().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, &bytes).unwrap();
    let text = sh.fails("verify db", 1);
    let name = table.file_name().unwrap().to_string_lossy().into_owned();
    assert!(text.contains(&name), "{text}");
    drop(db);
}
