//! `shell`: commands on one open database, from a script and at a prompt.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr, terminal};
use std::io::{Read, Write};
use windrow::Db;

/// Returns a script's output, its exit code, and its stderr.
fn script(sh: &Shell, line: &str, input: &str) -> (String, Option<i32>, String) {
    let output = sh.run_with(line, input.as_bytes());
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (text, output.status.code(), stderr(&output))
}

#[test]
fn commands_have_the_names_that_other_programs_give_them() {
    let sh = Shell::new();
    sh.ok("set db a 1");
    sh.ok_with("import db", b"b\t2\n");
    sh.ok("del db a");
    assert_eq!(sh.ok("ls db"), "default\n");
    sh.ok("checkpoint db copy");
    assert_eq!(sh.ok("export copy"), "b\t2\n");
    let (out, code, said) = script(&sh, "shell db", "set c 3\ndel b\nscan\nhelp set\n");
    assert!(out.starts_with("c\t3\n") && out.contains("Store a value"), "{out}");
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

/// One parser serves all lines.
#[test]
fn a_line_knows_nothing_of_the_line_before() {
    let sh = Shell::new();
    let (out, code, said) = script(
        &sh,
        "shell db --create",
        "put a 1\n\
         put b 2\n\
         scan --limit 1 --reverse --keys-only\n\
         scan\n\
         get --hex 61\n\
         get a\n\
         get --no-such a\n\
         get a\n",
    );
    assert_eq!(out, "b\na\t1\nb\t2\n31\n1\n1\n", "{said}");
    assert_eq!(code, Some(1));
    assert!(said.contains("line 7:") && said.contains("1 of 8 lines failed"), "{said}");
}

#[test]
fn a_script_runs_on_one_open_database() {
    let sh = Shell::new();
    let (out, code, said) = script(
        &sh,
        "shell db --create",
        "# words are quoted as in a shell\n\
         put apple 'red or green'\n\
         put \"b\\tc\" '' # empty\n\
         get apple\n\
         keyspaces create hits --merge add\n\
         keyspaces\n\
         use hits\n\
         merge page 3\n\
         merge page -1\n\
         get page --number\n\
         count\n\
         count -k default\n\
         use\n\
         ttl page\n\
         keyspaces drop hits\n\
         use default\n\
         scan --format jsonl\n\
         \n\
         stats --json\n\
         verify\n\
         exit\n\
         get nothing\n",
    );
    assert_eq!((code, said.as_str()), (Some(0), ""), "{out}");
    let lines: Vec<&str> = out.lines().collect();
    let expected = [
        "red or green",
        "default",
        "hits\tmerge add",
        "2",
        "1",
        "2",
        "hits",
        "never expires",
        "{\"key\":\"apple\",\"value\":\"red or green\"}",
        "{\"key\":\"b\\tc\",\"value\":\"\"}",
    ];
    assert_eq!(lines[..expected.len()], expected);
    let stats: serde_json::Value = serde_json::from_str(lines[expected.len()]).unwrap();
    // The counters are the session's own: it was open throughout.
    assert!(stats["gets"].as_u64().unwrap() >= 2, "{stats}");
    assert!(lines.last().unwrap().ends_with(": sound"), "{out}");
    assert_eq!(sh.ok("get db apple"), "red or green\n");
    assert_eq!(sh.ok("keyspaces db"), "default\n");
}

#[test]
fn no_command_reads_the_lines_of_the_session() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    for command in ["apply --hex", "load", "put b"] {
        let (_, _, said) = script(&sh, "shell db", &format!("{command}\nput after 1\n"));
        assert!(said.contains("standard input is the session's"), "{command}: {said}");
        sh.ok("get db after");
        sh.ok("delete db after");
    }
}

#[test]
fn an_error_ends_its_line_alone() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    let (out, code, said) = script(
        &sh,
        "shell db",
        "get absent\nnothing\nget\nput 'x\nuse absent\nput b\ndestroy\nget --option x=1 a\nhelp got\nput b 2\nget b\n",
    );
    assert_eq!((out.as_str(), code), ("2\n", Some(1)), "{said}");
    for part in [
        "line 1:\nwindrow: not found: absent",
        "unrecognized subcommand 'nothing'",
        "Usage: get <KEY>",
        "a ' is not closed",
        "there is no keyspace `absent`",
        "standard input is the session's",
        "`destroy` has no place in a session",
        "a session keeps the options",
        "there is no command `got`",
        "9 of 11 lines failed",
    ] {
        assert!(said.contains(part), "no `{part}`: {said}");
    }
    assert!(!said.contains("<DB>"), "{said}");
    assert_eq!(sh.ok("get db b"), "2\n");
    assert!(sh.fails("shell absent", 1).contains("no such directory"));
    assert!(!sh.path("absent").exists());
}

#[test]
fn help_lists_what_a_session_has() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    let (out, code, said) = script(&sh, "shell db", "help\nhelp scan\ncount --help\n");
    assert_eq!((code, said.as_str()), (Some(0), ""), "{out}");
    for part in ["  use [KEYSPACE]", "  checkpoint ", "  merge ", "--reverse", "Usage: count "] {
        assert!(out.contains(part), "no `{part}`: {out}");
    }
    for part in ["  destroy ", "  demo ", "<DB>", "--preset"] {
        assert!(!out.contains(part), "`{part}`: {out}");
    }
}

/// Next to a process that writes, each command sees the writes before it.
#[test]
fn a_session_next_to_a_writer_reads() {
    let sh = Shell::new();
    let db = Db::open(sh.path("db")).unwrap();
    db.put("n", "0").unwrap();
    let mut child = sh.spawn("shell db");
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut read = |bytes: usize| {
        let mut text = vec![0; bytes];
        stdout.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    for n in 0..5 {
        db.put("n", n.to_string()).unwrap();
        if n == 2 {
            db.flush().unwrap();
        }
        writeln!(stdin, "get n").unwrap();
        assert_eq!(read(2), format!("{n}\n"));
    }
    writeln!(stdin, "put n 9").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("this session only reads") && said.contains("--read-only"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    db.put("n", "writes still").unwrap();
    db.close().unwrap();
    // A session that only reads keeps no other process from writing.
    let mut child = sh.spawn("shell db --read-only");
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut line = vec![0; 13];
    writeln!(stdin, "get n").unwrap();
    stdout.read_exact(&mut line).unwrap();
    sh.ok("put db n another");
    writeln!(stdin, "get n").unwrap();
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((&line[..], rest.as_str()), (&b"writes still\n"[..], "another\n"));
    assert!(child.wait().unwrap().success());
}

/// Reads from a terminal up to the end of `part`.
fn wait_for(main: &mut std::fs::File, seen: &mut String, part: &str) {
    let mut chunk = [0; 4096];
    loop {
        if let Some(at) = seen.find(part) {
            seen.drain(..at + part.len());
            return;
        }
        let read = main.read(&mut chunk).unwrap();
        seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
}

#[test]
fn a_prompt_completes_and_remembers() {
    let sh = Shell::new();
    sh.ok("put db apricot orange");
    for round in 0..2 {
        let (mut main, other) = terminal();
        let mut child = sh
            .command("shell db".split(' '))
            .env("TERM", "xterm")
            .env("WINDROW_HISTORY", sh.path("history"))
            .stdin(other.try_clone().unwrap())
            .stdout(other.try_clone().unwrap())
            .stderr(other)
            .spawn()
            .unwrap();
        let mut seen = String::new();
        // The second round takes the line above, which the first session left.
        let first: &[u8] = if round == 0 { b"get ap\t\r" } else { b"\x1b[A\r" };
        // Keys typed before the prompt appears would go to the terminal, and not to the editor.
        for (typed, answer) in [
            (first, "orange"),
            (b"nothing\r", "unrecognized"),
            (b"half of a line\x03", "\n"),
            (b"get apricot\r", "orange"),
        ] {
            wait_for(&mut main, &mut seen, "default> ");
            main.write_all(typed).unwrap();
            wait_for(&mut main, &mut seen, answer);
        }
        wait_for(&mut main, &mut seen, "default> ");
        main.write_all(b"\x04").unwrap();
        assert!(child.wait().unwrap().success(), "{round}");
    }
    let kept = std::fs::read_to_string(sh.path("history")).unwrap();
    assert!(kept.contains("get apricot\n") && kept.contains("nothing\n"), "{kept}");
}

#[test]
fn the_lines_of_a_file_are_run() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    std::fs::write(sh.path("two"), "put b 2\nget a\nget nothing\nput c 3\n").unwrap();
    std::fs::write(sh.path("self"), "source self\n").unwrap();
    std::fs::write(sh.path("leaves"), "put d 4\nexit\nput e 5\n").unwrap();
    let (out, code, said) = script(&sh, "shell db", "source two\nscan\nsource absent\n");
    assert_eq!((out.as_str(), code), ("1\na\t1\nb\t2\nc\t3\n", Some(1)), "{said}");
    for part in
        ["line 3 of two:", "not found: nothing", "line 1:\n", "1 of 4 lines failed", "absent"]
    {
        assert!(said.contains(part), "no `{part}`: {said}");
    }
    let (_, code, said) = script(&sh, "shell db", "source self\n");
    assert!(code == Some(1) && said.contains("does a file run itself?"), "{said}");
    let (out, code, _) = script(&sh, "shell db", "source leaves\nget a\n");
    assert_eq!((out.as_str(), code), ("", Some(0)), "exit leaves the session");
    assert_eq!(sh.ok("count db"), "4\n");
}
