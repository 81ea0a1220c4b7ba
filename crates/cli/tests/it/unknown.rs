//! Things unknown to the program: comparators and merge operators of others,
//! files that are not a database's, names that no keyspace can have.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr};
use std::sync::Arc;
use windrow::{Db, KeyspaceOptions, MergeOperator, Options};
use windrow_testkit::model::REVERSE_ID;
use windrow_testkit::variant::Reverse;

struct Union;

impl MergeOperator for Union {
    fn name(&self) -> &str {
        "union"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}

/// Makes a database with keyspaces `default`, `sets` (a merge operator of its
/// own) and, if asked for, `back` (a comparator of its own).
fn make(sh: &Shell, with_order: bool) {
    let mut options = Options::default();
    options.components.merge_operators.push(Arc::new(Union));
    options.components.comparators.push(Arc::new(Reverse));
    let db = Db::open_with(sh.path("db"), options).unwrap();
    db.put("key", "value").unwrap();
    let merge_operator = Some("union".into());
    let sets = db
        .keyspace_with("sets", KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() })
        .unwrap();
    sets.put("plain", "1").unwrap();
    sets.merge("set", "a").unwrap();
    db.flush().unwrap();
    sets.merge("set", "b").unwrap();
    if with_order {
        let comparator = Some(REVERSE_ID.into());
        let back = db
            .keyspace_with("back", KeyspaceOptions { comparator, ..KeyspaceOptions::default() })
            .unwrap();
        back.put("a", "1").unwrap();
        back.put("b", "2").unwrap();
    }
    db.close().unwrap();
}

#[test]
fn a_merge_operator_of_its_own_is_in_the_way_of_its_operands_alone() {
    let sh = Shell::new();
    make(&sh, false);
    assert_eq!(sh.ok("keyspaces db"), "default\nsets\tmerge union\n");
    assert!(sh.ok("verify db").contains("sound"));
    sh.ok("stats db --json");
    assert!(sh.ok("tree db").contains("sets"));
    assert_eq!(sh.ok("export db"), "key\tvalue\n");
    sh.ok("put db more 1");
    sh.ok("compact db");
    assert_eq!(sh.ok("get db plain -k sets"), "1\n");
    for line in ["get db set -k sets", "export db -k sets", "scan db -k sets"] {
        let text = sh.fails(line, 1);
        assert!(text.contains("`union`"), "{line}: {text}");
    }
    let mut options = Options::default();
    options.components.merge_operators.push(Arc::new(Union));
    let db = Db::open_with(sh.path("db"), options).unwrap();
    let sets = db.open_keyspace("sets").unwrap().unwrap();
    assert_eq!(sets.get("set").unwrap().as_deref(), Some(&b"ab"[..]));
}

#[test]
fn a_comparator_of_its_own_is_in_the_way_of_its_keyspace_and_of_writes() {
    let sh = Shell::new();
    make(&sh, true);
    assert_eq!(
        sh.ok("keyspaces db"),
        "default\nsets\tmerge union\nback\tcomparator testkit.reverse\n"
    );
    let before = sh.image("db");
    for line in ["verify db", "stats db", "tree db", "export db", "get db key", "scan db"] {
        let output = sh.run(line);
        let told = stderr(&output);
        assert!(output.status.success(), "{line}: {told}");
        assert!(told.contains("`back`") && told.contains(REVERSE_ID), "{line}: {told}");
    }
    for line in ["export db -k back", "put db a b", "compact db", "load db"] {
        let text = sh.fails(line, 1);
        assert!(text.contains(REVERSE_ID), "{line}: {text}");
    }
    assert!(sh.image("db") == before, "something was written");
}

#[test]
fn a_comparator_of_its_own_for_the_default_keyspace_leaves_the_others_to_be_read() {
    let sh = Shell::new();
    let mut options = Options::default();
    options.components.comparators.push(Arc::new(Reverse));
    options.default_keyspace.comparator = Some(REVERSE_ID.into());
    let db = Db::open_with(sh.path("db"), options).unwrap();
    db.put("a", "1").unwrap();
    db.keyspace("plain").unwrap().put("b", "2").unwrap();
    db.close().unwrap();
    drop(db);
    let before = sh.image("db");
    for line in ["verify db", "stats db", "tree db", "scan db -k plain", "get db b -k plain"] {
        let output = sh.run(line);
        let told = stderr(&output);
        assert!(output.status.success(), "{line}: {told}");
        assert!(told.contains("`default`") && told.contains(REVERSE_ID), "{line}: {told}");
    }
    assert_eq!(sh.ok("export db -k plain"), "b\t2\n");
    for line in ["get db a", "scan db", "count db", "put db a b"] {
        let text = sh.fails(line, 1);
        assert!(text.contains(REVERSE_ID), "{line}: {text}");
    }
    assert!(sh.image("db") == before, "something was written");
}

#[test]
fn a_file_of_another_kind_is_not_damaged() {
    let sh = Shell::new();
    sh.ok("put db key value");
    sh.write("letter", "not a database's, and longer than any header of a file of one");
    for kind in ["wal", "manifest", "table"] {
        for file in ["letter", "db/CURRENT"] {
            let text = sh.fails(&format!("dump {kind} {file}"), 1);
            assert!(text.contains("not a") && !text.contains("corrupt"), "{kind} {file}: {text}");
            assert!(!text.contains("windrow repair"), "{kind} {file}: {text}");
        }
    }
}

#[test]
fn names_that_no_keyspace_can_have_are_bad_usage_and_leave_nothing() {
    let sh = Shell::new();
    let long = "k".repeat(256);
    for name in ["", "two\nlines", &long] {
        for args in [&["put", "db", "a", "b", "-k"][..], &["load", "db", "-k"]] {
            let output = sh.command(args.iter().chain([&name])).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{name:?}: {}", stderr(&output));
        }
    }
    assert!(!sh.path("db").exists());
    sh.ok("put db a b");
    let output = sh.command(["get", "db", "a", "-k", ""]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_load_that_fails_in_its_first_line_leaves_no_database() {
    let sh = Shell::new();
    for (format, input) in [("tsv", "no tab\n"), ("csv", "a,b,c\n"), ("jsonl", "{}\n")] {
        let text = sh.fails_with(&format!("load db --format {format}"), input.as_bytes(), 1);
        assert!(text.contains("line 1 of"), "{text}");
        assert!(!sh.path("db").exists(), "{format}");
    }
    // An empty input is no failure.
    sh.ok_with("load db", b"");
    assert_eq!(sh.ok("export db"), "");
}

#[test]
fn help_lists_every_command() {
    let sh = Shell::new();
    let help = sh.ok("help");
    for name in ["completions", "man", "lab"] {
        let listed = help.lines().any(|line| line.trim_start().starts_with(name));
        assert!(listed, "{name}: {help}");
    }
}
