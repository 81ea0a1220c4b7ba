//! The real program, killed 200 times in every change. Longer runs, and those that need root, are
//! started by hand: `torture kill|cut|full|limits|small`.

use std::process::{Command, Output};

fn torture(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_torture")).args(args).output().expect("torture is built")
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn no_kill_loses_what_was_acknowledged() {
    let output = torture(&["kill", "--rounds", "200"]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("200 kills"), "{said}");
    eprintln!("{said}");
}

/// The canary: logs that lose their end must be noticed.
#[test]
fn a_lost_log_is_noticed() {
    let output = torture(&["kill", "--rounds", "50", "--sabotage"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("repeat: cargo run"), "{said}");
    let kept = said.lines().find_map(|line| line.strip_prefix("kept: ")).expect("it is kept");
    let _ = std::fs::remove_dir_all(std::path::Path::new(kept).parent().expect("a directory"));
}

/// Runs the scenarios one by one, except those that need root.
#[test]
fn surroundings_are_survived() {
    // Scenarios whose child opens a database depend on the threads of its parent: run by hand.
    for scenarios in [
        "fork-child-drops",
        "fork-child-closes",
        "fork-child-writes",
        "fork-child-reads",
        "fork-child-exits",
        "fork-child-unwinds",
        "fork-parent",
        "two-paths",
        "lock-is",
        "current-is",
        "a-log-is",
        "rights",
        "clock",
    ] {
        let output = torture(&["surroundings", "--scenario", scenarios]);
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        eprintln!("{said}");
    }
}

/// The canary: damage before the judgement must be noticed.
#[test]
fn a_spoilt_database_is_noticed() {
    let output = torture(&["surroundings", "--scenario", "fork-child-d", "--sabotage"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("FAILED") && said.contains("repeat: cargo run"), "{said}");
    let kept = said.lines().find_map(|line| line.strip_prefix("kept: ")).expect("it is kept");
    let _ = std::fs::remove_dir_all(std::path::Path::new(kept).parent().expect("a directory"));
}

/// A short run, without any verdict on speed: no write is refused or lost, and level 0 has a bound,
/// whatever is damaged in the other keyspace or in short supply.
#[test]
fn damage_in_one_keyspace_is_survived_by_the_others() {
    let output = torture(&["partial", "--rounds", "1", "--seconds", "1"]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for damage in ["none", "flips", "cut", "eio"] {
        assert!(said.contains(&format!("\n| {damage} | ")), "{said}");
    }
    eprintln!("{said}");
}

/// Devices of 8 and 32 MiB, if this process may mount them.
#[test]
fn a_small_device_is_filled_and_gone_on_from() {
    let output = torture(&["small", "--sizes", "8,32"]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("8 small devices") || said.contains("SKIPPED"), "{said}");
    eprintln!("{said}");
}

/// Descriptors, a second process, read-only opens. Memory is left out: its use depends on the
/// progress of the load, and so on the machine.
#[test]
fn limits_are_met_with_errors() {
    let output = torture(&["limits", "--rounds", "8", "--seconds", "0"]);
    assert!(output.status.success(), "{}", said(&output));
}

/// A part of the cases of `torture memory` in a small budget, to their end and with aborts.
#[test]
fn memory_stays_within_the_budget_and_aborts_lose_nothing() {
    let cases = [
        ("deletes", "1000"),
        ("ranges", "1000"),
        ("snapshots", "60"),
        ("keys", "60"),
        ("keyspaces", "20"),
    ];
    for (case, permille) in cases {
        let size = ["--rounds", "2", "--budget-mib", "16", "--permille", permille];
        let output = torture(&[&["memory", "--case", case], &size[..]].concat());
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        eprintln!("{said}");
    }
}

/// Every operation of a database, at the same time, for 40 seconds each: in processes that are
/// killed, and on threads over a device that fails, fills up and loses its power.
#[test]
fn everything_at_once_loses_nothing() {
    for how in [["--kills", "100000"], ["--threads", "100000"]] {
        let output = torture(&[&["together", "--seconds", "40"], &how[..]].concat());
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        eprintln!("{said}");
    }
}

/// A few seconds of backups under full writes, by the writer and by a follower.
#[test]
fn backups_under_full_writes_hold_their_moments() {
    let output = torture(&["moments", "--minutes", "0.1", "--slots", "300"]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    eprintln!("{said}");
}

/// The canary: a key that is gone from what was restored must be noticed.
#[test]
fn a_backup_that_lacks_a_key_is_noticed() {
    let output = torture(&["moments", "--minutes", "0.02", "--slots", "50", "--sabotage"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let kept = said.lines().find_map(|line| line.strip_prefix("kept: ")).expect("it is kept");
    let _ = std::fs::remove_dir_all(kept);
}
