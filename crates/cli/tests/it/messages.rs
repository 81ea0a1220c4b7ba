//! The messages after a user's mistake or a request for something that does not exist:
//! `tests/messages.txt` has the commands and all that they print on stderr. `REWRITE=1` rewrites
//! it; read the difference.
//!
//! Owns: that list, and the rule that each message is followed by advice.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr};
use std::fmt::Write as _;
use std::path::Path;

/// The list, in the crate.
const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");

/// Messages that say all in one line: the answer of a look-up, and errors of the library
/// about arguments.
const COMPLETE: [&str; 2] = ["windrow: not found: ", "windrow: invalid argument: "];

fn shell() -> Shell {
    let shell = Shell::new();
    shell.ok("put db a 1");
    shell.ok("put --keyspace users --hex db 01 ff");
    shell.ok("keyspaces db create hits --merge add");
    std::fs::create_dir(shell.path("empty")).unwrap();
    std::fs::create_dir(shell.path("foreign")).unwrap();
    shell.write("foreign/CURRENT", "MANIFEST-000004\n");
    shell.ok("backup db backups");
    shell.write("text", "a plain file");
    shell.write("no-tab.tsv", "a\t1\nb 2\n");
    shell.write("bad.jsonl", "{\"key\":\"a\"\n");
    shell.write("bad-hex.tsv", "xy\t01\n");
    shell.write("three.csv", "a,b,c\n");
    shell.write("short.csv", "a,1\nb\n");
    shell
}

/// Runs a command of the list, after `$ windrow `; `<` is followed by standard input.
fn said(shell: &Shell, line: &str) -> (Option<i32>, String) {
    let (line, input) = line.split_once(" < ").unwrap_or((line, ""));
    let output = shell.run_with(line, input.as_bytes());
    let root = shell.path("").display().to_string();
    (output.status.code(), stderr(&output).replace(&root, "/"))
}

#[test]
fn every_message_is_listed_and_says_what_to_do() {
    let listed = std::fs::read_to_string(LIST).unwrap();
    let shell = shell();
    let (mut now, mut wrong) = (String::new(), String::new());
    for line in listed.lines().filter(|line| line.starts_with('#') || line.starts_with('$')) {
        let Some(command) = line.strip_prefix("$ windrow ") else {
            writeln!(now, "{line}").unwrap();
            continue;
        };
        let (code, text) = said(&shell, command);
        let complete = COMPLETE.iter().any(|begin| text.starts_with(begin));
        // The program's own messages have their advice in a second line, the parser's name the
        // help.
        let says = text.lines().any(|line| line.starts_with("  ")) || text.contains("--help");
        if !matches!(code, Some(1 | 2)) || !(complete || says) {
            writeln!(wrong, "{command}: {code:?}: what is the user to do?\n{text}").unwrap();
        }
        write!(now, "{line}\n{text}\n").unwrap();
    }
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(Path::new(LIST), &now).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(listed, now);
}
