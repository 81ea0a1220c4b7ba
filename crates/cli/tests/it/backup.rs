//! `backup`, `backups` and `restore`: of a database at rest and of one that another process
//! writes, on damage, and killed.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr};
use serde_json::Value;
use windrow::backup::BackupDirectory;
use windrow::{Db, Options};
use windrow_sim::torture::{Failure, Outcome, backups};

/// The object that a command prints.
fn json(sh: &Shell, line: &str) -> Value {
    serde_json::from_str(&sh.ok(line)).unwrap()
}

/// The numbers of the backups that are listed.
fn numbers(sh: &Shell) -> Vec<u64> {
    let listed = json(sh, "backups backups --json");
    let listed = listed["backups"].as_array().unwrap().clone();
    listed.iter().map(|backup| backup["number"].as_u64().unwrap()).collect()
}

#[test]
fn backups_are_listed_verified_pruned_and_restored() {
    let sh = Shell::new();
    for day in 1..=5u64 {
        sh.ok_with("load db", format!("day\t{day}\nof-{day}\t{day}\n").as_bytes());
        let made = json(&sh, "backup db backups --keep 3 --json");
        assert_eq!(made["number"], day);
        assert!(made["copied_bytes"].as_u64() <= made["bytes"].as_u64(), "{made}");
        let removed: Vec<u64> = if day > 3 { vec![day - 3] } else { vec![] };
        assert_eq!(made["removed"], serde_json::json!(removed));
        assert_eq!(json(&sh, "backup db copies --json")["number"], day);
    }
    assert_eq!(numbers(&sh), [3, 4, 5]);
    let listed = sh.ok("backups backups");
    assert!(listed.starts_with("     3  20") && listed.contains(" table"), "{listed}");
    let verified = sh.ok("backups backups --verify");
    assert_eq!(verified.matches(": sound\n").count(), 3, "{verified}");
    assert!(sh.ok("restore backups newest").starts_with("restored backup 5: "));
    assert_eq!(sh.ok("get newest day"), "5\n");
    sh.ok("restore backups then --backup 3");
    assert_eq!(sh.ok("get then day"), "3\n");
    assert_eq!(sh.fails("get then of-4", 1), "windrow: not found: of-4\n");
    assert!(sh.ok("verify then").ends_with(": sound\n"));
    assert!(sh.fails("restore backups then", 1).contains("a restored database needs a directory"));
    assert!(sh.fails("restore backups x --backup 1", 1).contains("there is no backup 1"));
    // A restored database is backed up where the one that it is of was.
    assert_eq!(json(&sh, "backup then backups --json")["copied_tables"], 0);
    sh.ok("backups backups --keep 1");
    assert_eq!(numbers(&sh), [6]);
    sh.ok("put other a 1");
    assert!(sh.fails("backup other backups", 1).contains("is of another database"));
}

/// The times of backups bound the mistake; the feed of changes has its number.
#[test]
fn a_backup_and_changes_are_restored_to_a_number_or_a_time() {
    let sh = Shell::new();
    sh.ok("put db lamp 3 --option changes_bytes=16MiB");
    assert!(json(&sh, "backup db vault --json")["changes"].is_null());
    sh.ok("put db chair 4");
    let before = std::time::SystemTime::now();
    std::thread::sleep(std::time::Duration::from_millis(20));
    sh.ok("delete db lamp");
    let made = json(&sh, "backup db vault --json");
    assert_eq!((&made["seq"], &made["changes"]["since"]), (&3.into(), &1.into()), "{made}");
    assert_eq!(made["changes"]["through"], 3);
    assert!(sh.ok("backups vault").contains("; changes since backup 1, "));
    assert!(sh.ok("backups vault --verify").ends_with("; sequence number 3: sound\n"));
    let restored = sh.ok("restore vault by-number --to-seq 2");
    let told = "; and 1 batch behind it, up to sequence number 2\n";
    assert!(restored.starts_with("restored backup 1: ") && restored.ends_with(told), "{restored}");
    assert_eq!(sh.ok("scan by-number"), "chair\t4\nlamp\t3\n");
    let time = humantime::format_rfc3339_millis(before);
    let by_time = json(&sh, &format!("restore vault by-time --to-time {time} --json"));
    assert_eq!((&by_time["number"], &by_time["restored_seq"]), (&1.into(), &2.into()), "{by_time}");
    assert_eq!(sh.ok("scan by-time"), "chair\t4\nlamp\t3\n");
    // The error of a moment that is not there says which ones are.
    let late = sh.fails("restore vault x --to-seq 9", 1);
    assert!(late.contains("restore to sequence number 3 at most"), "{late}");
    assert!(late.contains("`windrow backups` lists"), "{late}");
    let late = sh.fails("restore vault x --to-time 2100-01-01T00:00:00Z", 1);
    assert!(late.contains("backup 2 has no changes behind it"), "{late}");
    let early = sh.fails("restore vault x --to-time 2020-01-01T00:00:00Z", 1);
    assert!(early.contains("the first backup, 1, is of a later moment"), "{early}");
    assert!(!sh.path("x").exists());
    sh.fails("restore vault x --to-time yesterday", 2);
    sh.fails("restore vault x --to-time 2020-01-01T00:00:00Z --to-seq 1", 2);
}

#[test]
fn a_database_that_another_process_writes_is_backed_up() {
    let sh = Shell::new();
    let db = Db::open_with(sh.path("db"), Options::default()).unwrap();
    let users = db.keyspace("users").unwrap();
    (0..1_000).for_each(|n| db.put(format!("{n:05}"), format!("value {n}")).unwrap());
    db.flush().unwrap();
    for round in 1..=3 {
        db.put("round", format!("{round}")).unwrap();
        users.put("ada", format!("{round}")).unwrap();
        let made = json(&sh, "backup db backups --json --limit 100");
        assert_eq!(made["copied_tables"].as_u64(), Some(u64::from(round == 1)), "{made}");
    }
    assert_eq!(sh.ok("backups backups --verify").matches(": sound\n").count(), 3);
    for round in 1..=3 {
        sh.ok(&format!("restore backups copy-{round} --backup {round}"));
        assert_eq!(sh.ok(&format!("get copy-{round} round")), format!("{round}\n"));
        assert_eq!(sh.ok(&format!("get copy-{round} -k users ada")), format!("{round}\n"));
        assert_eq!(sh.ok(&format!("count copy-{round}")), "1001\n");
    }
    db.close().unwrap();
    // A session has the database open itself.
    let output = sh.run_with("shell db", b"put round 4\nbackup backups\n");
    assert!(output.status.success(), "{}", stderr(&output));
    sh.ok("restore backups copy");
    assert_eq!(sh.ok("get copy round"), "4\n");
}

#[test]
fn backups_that_are_in_use_are_busy() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    let held = BackupDirectory::open(sh.path("backups")).unwrap();
    for line in ["backup db backups", "backups backups", "restore backups copy"] {
        let text = sh.fails(line, 1);
        assert!(text.contains("busy") && text.contains("another program uses these"), "{text}");
    }
    drop(held);
    sh.ok("backup db backups");
    let read = BackupDirectory::open_read_only(sh.path("backups")).unwrap();
    sh.ok("restore backups copy");
    sh.fails("backup db backups", 1);
    drop(read);
    sh.ok("backup db backups");
}

#[test]
fn a_damaged_backup_is_told_and_the_others_are_restored() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    sh.ok("backup db backups");
    sh.ok("put db b 2");
    sh.ok("backup db backups");
    let record = sh.path("backups/backups/000001.backup");
    let mut bytes = std::fs::read(&record).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&record, bytes).unwrap();
    let output = sh.run("backups backups --json");
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [damaged, sound] = &told["backups"].as_array().unwrap()[..] else { panic!("{told}") };
    assert!(damaged["problem"].as_str().unwrap().contains("its checksum differs"), "{told}");
    assert!(damaged["tables"].is_null() && sound["problem"].is_null() && sound["tables"] == 2);
    let text = sh.fails("restore backups copy --backup 1", 1);
    assert!(text.contains("000001.backup") && text.contains("backups --verify"), "{text}");
    assert!(!sh.path("copy").exists());
    sh.ok("restore backups copy");
    assert_eq!(sh.ok("get copy b"), "2\n");
}

#[test]
fn a_damaged_table_is_told_and_stored_again() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    sh.ok("backup db backups");
    let tables = sh.files("backups/tables", ".sst");
    let [table] = &tables[..] else { panic!("{tables:?}") };
    let mut bytes = std::fs::read(table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(table, bytes).unwrap();
    sh.ok("backups backups");
    let text = sh.fails("backups backups --verify", 1);
    let name = table.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(name) && text.contains("once its file is removed"), "{text}");
    assert!(sh.fails("restore backups copy", 1).contains(name));
    assert!(!sh.path("copy").exists());
    // As long as the database has it, the next backup stores it again.
    std::fs::remove_file(table).unwrap();
    assert_eq!(json(&sh, "backup db backups --json")["copied_tables"], 1);
    assert_eq!(sh.ok("backups backups --verify").matches(": sound\n").count(), 2);
    sh.ok("restore backups copy --backup 1");
    assert_eq!(sh.ok("get copy a"), "1\n");
}

/// A short run of `torture backups`: the program is killed while it backs up, restores and prunes, next to
/// a writer. Longer ones are started by hand.
#[test]
fn kills_leave_every_listed_backup_whole() {
    let sh = Shell::new();
    match backups::run(&plan(&sh, 20)) {
        Ok(Outcome::Passed(figures)) => eprintln!("{figures}"),
        Ok(Outcome::Skipped(why)) => panic!("{why}"),
        Err(Failure { why, .. }) => panic!("{why}"),
    }
}

/// The canary: a table that is taken from the backups after a kill is missed.
#[test]
fn a_backup_without_its_table_is_noticed() {
    let sh = Shell::new();
    let failure = backups::run(&backups::Plan { sabotage: true, ..plan(&sh, 200) }).unwrap_err();
    assert!(failure.why.contains("tables/"), "{}", failure.why);
}

fn plan(sh: &Shell, kills: u64) -> backups::Plan {
    let program = Some(env!("CARGO_BIN_EXE_windrow").into());
    let (preset, dir) = ("all".into(), Some(sh.path("torture")));
    backups::Plan { kills, program, seed: 1, preset, dir, sabotage: false }
}
