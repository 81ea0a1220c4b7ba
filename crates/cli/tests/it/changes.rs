//! `changes`: of a database at rest, and of one that another process writes.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::Shell;
use std::sync::atomic::{AtomicBool, Ordering};
use windrow::{Db, Options};

#[test]
fn changes_are_printed_from_any_number_on() {
    let sh = Shell::new();
    sh.ok("put db apple red --option changes_bytes=1MiB");
    sh.ok("put db pear green");
    sh.ok("delete db apple");
    sh.ok("delete-range db a b");
    let all = "1\tput\tdefault\tapple\tred\n2\tput\tdefault\tpear\tgreen\n\
               3\tdelete\tdefault\tapple\n4\tdelete_range\tdefault\ta\tb\n";
    assert_eq!(sh.ok("changes db"), all);
    assert_eq!(sh.ok("changes db --from 3 --limit 1"), "3\tdelete\tdefault\tapple\n");
    assert_eq!(
        sh.ok("changes db --from 2 --limit 1 --hex"),
        "2\tput\tdefault\t70656172\t677265656e\n"
    );
    assert_eq!(sh.ok("changes db --from 5"), "");
    assert!(sh.fails("changes db --from 6", 1).contains("the database goes on with 5"));
    let line = sh.ok("changes db --from 4 --json");
    let told: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["operations"][0]["from"], "a");
    // Nothing is kept from here on.
    sh.ok("put db fig blue --option changes_bytes=0");
    assert_eq!(sh.ok("changes db"), "");
    let said = sh.fails("changes db --from 1", 1);
    assert!(said.contains("nothing before sequence number 6") && said.contains("S + 1"), "{said}");
}

#[test]
fn changes_of_a_database_that_another_process_writes_are_followed() {
    let sh = Shell::new();
    let db = Db::open_with(sh.path("db"), Options::default()).unwrap();
    db.put("a", "1").unwrap();
    db.put([0xff], "2").unwrap();
    assert_eq!(sh.ok("changes db --limit 1"), "1\tput\tdefault\ta\t1\n");
    assert!(sh.fails("changes db --json", 1).contains("--hex"));
    let followed = sh.ok("changes db --follow --limit 2 --hex");
    assert_eq!(followed, "1\tput\tdefault\t61\t31\n2\tput\tdefault\tff\t32\n");
    db.close().unwrap();
}

/// Written to all the while, since old values begin with the moment at which the command begins.
#[test]
fn old_values_come_with_the_changes_from_now_on() {
    let sh = Shell::new();
    let db = Db::open_with(sh.path("db"), Options::default()).unwrap();
    db.put("n", "1").unwrap();
    let done = AtomicBool::new(false);
    let printed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 2.. {
                if done.load(Ordering::Acquire) {
                    return;
                }
                db.put("n", n.to_string()).unwrap();
            }
        });
        let printed = sh.ok("changes db --follow --old --limit 3");
        let json = sh.ok("changes db --follow --old --json --limit 1");
        done.store(true, Ordering::Release);
        [printed, json]
    });
    let mut lines = printed[0].lines();
    let seq = |line: &str| line.split('\t').next().unwrap().parse::<u64>().unwrap();
    let first = seq(lines.clone().next().unwrap());
    for seq in first..first + 3 {
        assert_eq!(
            lines.next().unwrap(),
            format!("{seq}\tput\tdefault\tn\t{seq}\twas {}", seq - 1)
        );
    }
    let json: serde_json::Value = serde_json::from_str(&printed[1]).unwrap();
    let old: u64 = json["operations"][0]["old"].as_str().unwrap().parse().unwrap();
    assert_eq!(json["seq"], old + 1);
    assert!(sh.fails("changes db --old", 2).contains("--follow"));
    db.close().unwrap();
}

#[test]
fn logs_that_are_kept_can_be_dumped() {
    let sh = Shell::new();
    sh.ok("put db apple red --option changes_bytes=1MiB");
    let mut ingest = Db::open_with(sh.path("db"), kept()).unwrap().ingest().unwrap();
    ingest.put("fig", "green").unwrap();
    ingest.finish().unwrap();
    let db = Db::open_with(sh.path("db"), kept()).unwrap();
    db.put("pear", "green").unwrap();
    // It ends as a kill would leave it: the next open copies the log.
    std::mem::forget(db.clone());
    let sh_copy = sh.path("copy");
    copy_files(&sh.path("db"), &sh_copy);
    db.close().unwrap();
    Db::open_with(&sh_copy, kept()).unwrap().close().unwrap();
    let text: String = sh
        .files("copy", ".changes")
        .iter()
        .map(|file| sh.ok(&format!("dump wal {}", file.display())))
        .collect();
    assert!(text.contains("1 keyspace 0 put \"apple\" = \"red\""), "{text}");
    assert!(text.contains("2 keyspace 0 ingestion from \"fig\" on"), "{text}");
    assert!(text.contains("copied for the feed of changes"), "{text}");
    assert!(text.contains("3 keyspace 0 put \"pear\" = \"green\""), "{text}");
}

fn kept() -> Options {
    let mut options = Options::default();
    options.settings.changes_bytes = 1 << 20;
    options
}

fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
