//! The shapes of `--json`: exactly those of `docs/program.md`.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::Shell;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/program.md");

/// Collects the paths of a value's fields, with the kind of each value; items of a list are `[]`.
fn shape(value: &Value, at: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| shape(value, &format!("{at}.{name}"), paths));
        }
        Value::Array(items) => {
            paths.insert(format!("{at} []"));
            items.iter().for_each(|item| shape(item, &format!("{at}[]"), paths));
        }
        Value::Null => {}
        Value::String(_) => _ = paths.insert(format!("{at} string")),
        Value::Number(_) => _ = paths.insert(format!("{at} number")),
        Value::Bool(_) => _ = paths.insert(format!("{at} bool")),
    }
}

/// Returns the examples of the page, by the command above each of them.
fn examples() -> BTreeMap<String, Value> {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut examples = BTreeMap::new();
    for part in page.split("```console\n$ windrow ").skip(1) {
        let (command, rest) = part.split_once('\n').unwrap();
        let Some((_, json)) = rest.split_once("```json\n") else { continue };
        let (json, _) = json.split_once("```").unwrap();
        let json = serde_json::from_str(json).unwrap_or_else(|e| panic!("{command}: {e}"));
        examples.insert(command.to_owned(), json);
    }
    examples
}

#[test]
fn every_shape_is_documented() {
    let sh = Shell::new();
    sh.ok("keyspaces words.db --option changes_bytes=1MiB create hits --merge add");
    for n in 0..50 {
        sh.ok(&format!("put words.db key{n:02} value --ttl 1h"));
    }
    sh.ok("compact words.db");
    // The next backup has the changes since this one.
    sh.ok("backup words.db copies");
    sh.ok("put words.db apple red");
    sh.ok("delete words.db key07");
    let examples = examples();
    let commands: Vec<&str> = examples.keys().map(String::as_str).collect();
    for name in ["count", "keyspaces", "options", "stats", "tree", "ttl", "verify"] {
        assert!(commands.iter().any(|command| command.starts_with(name)), "{name}: {commands:?}");
    }
    for (command, example) in examples {
        let printed = sh.ok(&command);
        assert_eq!(printed.lines().count(), 1, "{command}: one line");
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let (mut told, mut found) = (BTreeSet::new(), BTreeSet::new());
        shape(&example, "", &mut told);
        shape(&printed, "", &mut found);
        // The library lists the counters: the page has some of them.
        if command.starts_with("stats") {
            assert!(told.is_subset(&found), "{command}: {:?}", told.difference(&found));
            let at_rest = |paths: &BTreeSet<String>| -> BTreeSet<String> {
                paths.iter().filter(|path| path.starts_with(".at_rest")).cloned().collect()
            };
            assert_eq!(at_rest(&told), at_rest(&found), "{command}");
            assert!(printed["process"].is_null());
        } else {
            assert_eq!(told, found, "{command}");
        }
    }
}

#[test]
fn figures_are_right() {
    let sh = Shell::new();
    for n in 0..40 {
        sh.ok_with("load db --ttl 1h", format!("key{n:02}\tvalue\n").as_bytes());
    }
    sh.ok("put db stays here");
    sh.ok("delete db key00");
    let json = |line: &str| -> Value { serde_json::from_str(&sh.ok(line)).unwrap() };
    assert_eq!(json("count db --json")["count"], 40);
    let ttl = json("ttl db key01 --json");
    let left = ttl["left_ms"].as_u64().unwrap();
    assert!(ttl["found"] == true && 0 < left && left <= 3_600_000, "{ttl}");
    assert!(sh.ok("ttl db key01").starts_with("expires in "));
    assert_eq!(sh.ok("ttl db stays"), "never expires\n");
    assert_eq!(json("ttl db stays --json")["left_ms"], Value::Null);
    let gone = sh.run("ttl db key00 --json");
    let told: Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert!(gone.status.code() == Some(1) && told["found"] == false);
    let of_default = json("stats db --json")["at_rest"][0].clone();
    let total = &of_default["total"];
    let entries =
        total["entries"].as_u64().unwrap() + of_default["memtable_entries"].as_u64().unwrap();
    assert_eq!(entries, 42, "{of_default}");
    sh.ok("compact db");
    let total = json("stats db --json")["at_rest"][0]["total"].clone();
    assert_eq!((total["entries"].clone(), total["tombstones"].clone()), (40.into(), 0.into()));
    assert_eq!(total["expiring_entries"], 39);
    let tables = json("tree db --json")["keyspaces"][0]["levels"].clone();
    let files = tables.as_array().unwrap().iter().flat_map(|level| {
        ["run", "sst_log"].into_iter().flat_map(|part| level[part].as_array().unwrap().clone())
    });
    assert_eq!(files.map(|file| file["entries"].as_u64().unwrap()).sum::<u64>(), 40);
    let text = sh.ok("stats db");
    assert!(text.contains("keyspace default") && text.contains("ratio"), "{text}");
    let verified = json("verify db --json");
    assert_eq!(
        (verified["verdict"].clone(), verified["entries"].clone()),
        ("sound".into(), 40.into())
    );
}
