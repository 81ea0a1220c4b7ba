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

/// The program's copy of a database, and the changes after it.
fn mirrored(sh: &Shell) -> Db {
    let mut options = kept();
    options.settings.changes_bytes = 64 << 20;
    let db = Db::open_with(sh.path("db"), options).unwrap();
    db.put("before", "1").unwrap();
    db.checkpoint(sh.path("mirror")).unwrap();
    db
}

/// All that `windrow export` prints, keyspace by keyspace.
fn contents(sh: &Shell, name: &str) -> Vec<String> {
    let of = |keyspace| sh.ok(&format!("export {name} -k {keyspace} --hex"));
    ["default", "users"].into_iter().map(of).collect()
}

#[test]
fn changes_are_applied_to_a_mirror_each_once() {
    let sh = Shell::new();
    let db = mirrored(&sh);
    assert_eq!(sh.ok("apply mirror --next"), "2\n");
    db.put([0xff, 9], "2").unwrap();
    db.keyspace("passing").unwrap().put("a", "1").unwrap();
    db.drop_keyspace("passing").unwrap();
    let users = db.keyspace("users").unwrap();
    let mut batch = windrow::Batch::new();
    batch.put(&users, "ada", "London");
    batch.delete(&db, "before");
    batch.put_with_ttl(&users, "bob", "Rome", std::time::Duration::from_secs(3600));
    db.write(batch, windrow::WriteSync::No).unwrap();
    users.delete_range("a", "b").unwrap();
    db.close().unwrap();
    let lines = sh.ok("changes db --from 2 --json --hex");
    assert_eq!(lines.lines().count(), 5);
    assert_eq!(sh.ok_with("apply mirror --hex", lines.as_bytes()), "applied 5 changes\n");
    assert_eq!(sh.ok("apply mirror --next"), "8\n");
    assert_eq!(contents(&sh, "mirror"), contents(&sh, "db"));
    assert!(!sh.ok("keyspaces mirror").contains("passing"));
    let ttl = |name: &str| sh.ok(&format!("ttl {name} -k users bob"));
    assert!(ttl("mirror").starts_with("59m") || ttl("mirror") == ttl("db"), "{}", ttl("mirror"));
    // Changes that it has are passed over.
    assert_eq!(sh.ok_with("apply mirror --hex", lines.as_bytes()), "applied 0 changes\n");
    assert_eq!(sh.ok("apply mirror --next"), "8\n");
}

#[test]
fn a_line_that_cannot_be_applied_is_named_and_what_is_before_it_is_kept() {
    let sh = Shell::new();
    mirrored(&sh).close().unwrap();
    let line = |first: u64, last: u64, operations: &str| {
        format!("{{\"first_seq\":{first},\"seq\":{last},\"operations\":[{operations}]}}\n")
    };
    let put = r#"{"kind":"put","keyspace":"default","key":"61","value":"62"}"#;
    for (bad, why) in [
        (line(4, 4, put), "has the numbers 4 to 4, and 3 comes next"),
        (line(2, 3, put), "has the numbers 2 to 3, and 3 comes next"),
        (line(0, 3, put), "`first_seq` is 0"),
        (line(5, 3, put), "`first_seq` is 5, and `seq` 3"),
        (line(u64::MAX, u64::MAX, put), "`first_seq` is 18446744073709551615"),
        (line(u64::MAX - 1, u64::MAX - 1, put), "and 3 comes next"),
        ("3\tput\tdefault\ta\tb\n".into(), "not a line of `windrow changes --json`"),
        ("{}\n".into(), "missing field"),
        (line(3, 3, r#"{"kind":"more","keyspace":"default"}"#), "unknown variant"),
        (line(3, 3, &put.replace("61", "6")), "odd number"),
        (line(3, 3, &put.replace("61", "zz")), "not two digits"),
        (line(3, 3, r#"{"kind":"ingested","keyspace":"default"}"#), "copy the keyspace"),
        (line(3, 3, &put.replace("default", "windrow.mirror")), "the changes are of a mirror"),
    ] {
        std::fs::remove_dir_all(sh.path("copy")).ok();
        sh.ok("checkpoint mirror copy");
        let input = line(2, 2, put) + &bad + &line(3, 3, put);
        let output = sh.run_with("apply copy --hex", input.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{bad}: {said}");
        assert!(said.contains(why) && said.contains("line 2 of standard input"), "{bad}: {said}");
        assert_eq!(sh.ok("get copy a"), "b\n", "{bad}");
        assert_eq!(sh.ok("apply copy --next"), "3\n", "{bad}");
    }
    assert!(sh.fails("apply nothing --hex", 1).contains("nothing"));
    assert!(!sh.path("nothing").exists());
}

/// The mirror's process is killed again and again, and goes on where it was.
#[test]
fn a_mirror_that_is_killed_goes_on_without_a_loss_and_without_a_repetition() {
    let sh = Shell::new();
    let db = mirrored(&sh);
    let counts = windrow::KeyspaceOptions {
        merge_operator: Some("add".to_owned()),
        ..windrow::KeyspaceOptions::default()
    };
    let users = db.keyspace_with("users", counts.clone()).unwrap();
    // Operands: one that is applied twice, or never, changes the sum.
    (0..4000u64).for_each(|n| users.merge((n % 7).to_be_bytes(), 1i64.to_le_bytes()).unwrap());
    db.close().unwrap();
    let mirror = Db::open(sh.path("mirror")).unwrap();
    mirror.keyspace_with("users", counts).unwrap();
    mirror.close().unwrap();
    let mut kills = 0;
    for ms in [10, 20, 30, 40, 50, 60] {
        let next = sh.ok("apply mirror --next");
        let lines = sh.ok(&format!("changes db --from {} --json --hex", next.trim()));
        let mut child = sh.spawn("apply mirror --hex");
        let mut stdin = child.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || {
            std::io::Write::write_all(&mut stdin, lines.as_bytes()).is_ok()
        });
        std::thread::sleep(std::time::Duration::from_millis(ms));
        child.kill().unwrap();
        kills += u32::from(!child.wait().unwrap().success());
        feeder.join().unwrap();
    }
    assert!(kills > 0, "it was never killed");
    let next = sh.ok("apply mirror --next");
    let lines = sh.ok(&format!("changes db --from {} --json --hex", next.trim()));
    sh.ok_with("apply mirror --hex", lines.as_bytes());
    assert_eq!(sh.ok("apply mirror --next"), "4002\n");
    assert_eq!(contents(&sh, "mirror"), contents(&sh, "db"));
}
