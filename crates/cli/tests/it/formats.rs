//! Input of other programs, and output on a terminal: marks, line ends,
//! columns, numbers, control characters.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr, terminal};
use std::io::Read;
use std::process::Stdio;

const MARK: &str = "\u{feff}";

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key() {
    let sh = Shell::new();
    for (format, input) in [
        ("tsv", "a\t1\nb\t2\n"),
        ("tsv --hex", "61\t31\n62\t32\n"),
        ("csv", "a,1\nb,2\n"),
        ("csv --header", "key,value\na,1\nb,2\n"),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n"),
    ] {
        sh.ok_with(&format!("load db --format {format}"), format!("{MARK}{input}").as_bytes());
        assert_eq!(sh.ok("export db"), "a\t1\nb\t2\n", "{format}");
        sh.ok("destroy db");
    }
    // A key that begins with a mark keeps it where both can be told apart.
    sh.ok(&format!("put db {MARK}key value"));
    let text = sh.fails("export db", 1);
    assert!(text.contains("byte order mark") && text.contains("--hex"), "{text}");
    for format in ["tsv --hex", "csv", "jsonl"] {
        let text = sh.ok(&format!("export db --format {format}"));
        sh.ok_with(&format!("load copy --format {format}"), text.as_bytes());
        assert_eq!(sh.ok(&format!("get copy {MARK}key")), "value\n", "{format}");
        sh.ok("destroy copy");
    }
}

#[test]
fn line_ends_of_windows_are_told_or_taken_off() {
    let sh = Shell::new();
    let input = b"a\t1\r\nb\t2\r\nc\t3";
    let output = sh.run_with("load kept", input);
    let told = stderr(&output);
    assert!(output.status.success() && told.contains("--crlf"), "{told}");
    assert_eq!(sh.ok("get kept a"), "1\r\n");
    let output = sh.run_with("load db --crlf", input);
    assert!(!stderr(&output).contains("carriage"), "{}", stderr(&output));
    assert_eq!(sh.ok("export db"), "a\t1\nb\t2\nc\t3\n");
    // One value that ends in a CR is a value.
    let output = sh.run_with("load some", b"a\t1\r\nb\t2\nc\t3\n");
    assert!(!stderr(&output).contains("--crlf"), "{}", stderr(&output));
    sh.ok_with("load csv --format csv", b"a,1\r\nb,2\r\n");
    sh.ok_with("load json --format jsonl", b"{\"key\":\"a\",\"value\":\"1\"}\r\n");
    assert_eq!(sh.ok("export csv"), "a\t1\nb\t2\n");
    assert_eq!(sh.ok("export json"), "a\t1\n");
    assert!(sh.fails("load db --crlf --format csv", 2).contains("--crlf"));
}

#[test]
fn columns_of_a_csv_go_by_their_names() {
    let sh = Shell::new();
    let check = |line: &str, input: &str, text: &str| {
        sh.ok_with(&format!("load db --format csv {line}"), input.as_bytes());
        assert_eq!(sh.ok("export db"), text, "{line}");
        sh.ok("destroy db");
    };
    check("--header", "value,key\n1,a\n2,b\n", "a\t1\nb\t2\n");
    check("--header", "id,Key,more,Value\n7,a,x,1\n8,b,y,2\n", "a\t1\nb\t2\n");
    check("--header --key-column id", "id,name,value\n7,a,1\n", "7\t1\n");
    check("--header --key-column 2 --value-column id", "id,name\n7,a\n", "a\t7\n");
    check("--key-column 3 --value-column 1", "1,x,a\n2,y,b,z\n", "a\t1\nb\t2\n");
    check("--delimiter ;", "a;1,5\nb;2\n", "a\t1,5\nb\t2\n");
    check("--delimiter tab", "a\t\"1,5\"\n", "a\t1,5\n");
    for (line, input, part) in [
        ("--header", "name,count\na,1\n", "no column is called `key`: there are name, count"),
        ("--header --key-column name", "name,count\na,1\n", "`value`"),
        ("--key-column 3", "a,1,x\nb,2\n", "line 2 of standard input: 2 columns"),
        ("", "a,1,x\n", "--key and --value"),
    ] {
        let text = sh.fails_with(&format!("load db --format csv {line}"), input.as_bytes(), 1);
        assert!(text.contains(part), "{line}: {text}");
    }
    for line in [
        "load db --key-column 1",
        "load db --delimiter ;",
        "load db --format csv --key-column name",
        "load db --format csv --key-column 0",
        "load db --format csv --delimiter ab",
    ] {
        sh.fails(line, 2);
    }
}

#[test]
fn a_quote_that_is_never_closed_takes_nothing_with_it() {
    let sh = Shell::new();
    for (input, line) in [
        ("a,1\nb,\"2\nc,3\nd,4\n", 2),
        ("a,1\n\"b,2\nc,3", 2),
        ("\"a,1\n", 1),
        ("a,\"1;2\"\nb,\"", 2),
    ] {
        let text = sh.fails_with("load db --format csv", input.as_bytes(), 1);
        assert!(text.contains(&format!("line {line} of standard input")), "{text}");
        assert!(text.contains("never closed"), "{text}");
        let before = if line == 1 { "" } else { "a\t1" };
        assert!(sh.ok("export db").starts_with(before), "{input}");
        assert!(!sh.ok("export db").contains("c,3"), "{input}");
    }
    sh.fails_with("load db --format csv --header", b"\"key,value\na,1\n", 1);
    // Quotes that are closed, doubled, or no quotes.
    sh.ok_with("load good --format csv", b"a,\"x\ny\"\nb,\"\"\"\"\nc,1\"2\n");
    assert_eq!(sh.ok("get good b"), "\"\n");
    assert_eq!(sh.ok("get good c"), "1\"2\n");
}

#[test]
fn objects_may_hold_more_and_numbers() {
    let sh = Shell::new();
    let input = "{\"at\":[1,{\"x\":2}],\"key\":7,\"value\":-12,\"key2\":null}\n\
                 {\"value\":18446744073709551615,\"key\":\"big\"}\n";
    sh.ok_with("load db --format jsonl", input.as_bytes());
    assert_eq!(sh.ok("export db"), "7\t-12\nbig\t18446744073709551615\n");
    for (value, part) in
        [("1.10", "put it in quotes"), ("true", "a string or a whole number"), ("{}", "string")]
    {
        let line =
            format!("{{\"key\":\"a\",\"value\":\"1\"}}\n{{\"key\":\"b\",\"value\":{value}}}\n");
        let text = sh.fails_with("load db --format jsonl", line.as_bytes(), 1);
        assert!(text.contains("line 2 of standard input") && text.contains(part), "{text}");
        assert!(!text.contains("at line"), "one line number: {text}");
    }
}

#[test]
fn fields_of_json_lines_go_by_their_paths() {
    let sh = Shell::new();
    let input = "{\"user\":{\"id\":7,\"name\":\"Ada\"},\"tags\":[\"a\",1.50]}\n\
                 {\"tags\":[], \"user\":{\"name\":\"Bob\",\"id\":\"b\"}}\n";
    let load = |database: &str, flags: &str| {
        sh.ok_with(&format!("load {database} --format jsonl {flags}"), input.as_bytes());
    };
    load("names", "--key user.id --value user.name");
    assert_eq!(sh.ok("export names"), "7\tAda\nb\tBob\n");
    load("whole", "--key user.id --value .");
    assert_eq!(sh.ok("export whole --format jsonl --key user.id --value ."), input);
    load("parts", "--key user.name --value tags");
    assert_eq!(sh.ok("export parts"), "Ada\t[\"a\",1.50]\nBob\t[]\n");
    // An export by fields is loaded by the same fields.
    let text = sh.ok("export parts --format jsonl --key a.b --value c");
    assert!(text.starts_with("{\"a\":{\"b\":\"Ada\"},\"c\":\"[\\\"a\\\",1.50]\"}\n"), "{text}");
    sh.ok_with("load again --format jsonl --key a.b --value c", text.as_bytes());
    assert_eq!(sh.ok("export again"), sh.ok("export parts"));
    // The key is added to an object that lacks it.
    sh.ok("put docs k {}");
    let line = sh.ok("scan docs --format jsonl --key id --value .");
    assert_eq!(line, "{\"id\":\"k\"}\n");
    assert!(
        sh.fails("scan names --format jsonl --key id --value .", 1).contains("not a JSON object")
    );
    let bad = "{\"id\":1,\"v\":2}\n{\"v\":2}\n";
    let text = sh.fails_with("load db --format jsonl --key id --value v", bad.as_bytes(), 1);
    assert!(text.contains("line 2 of") && text.contains("no field `id`"), "{text}");
    assert_eq!(sh.ok("export db"), "1\t2\n");
}

#[test]
fn columns_of_a_csv_that_is_written_have_names() {
    let sh = Shell::new();
    sh.ok_with("load db", b"a\tx;y\nb\t2\n");
    assert_eq!(sh.ok("export db --format csv --header"), "key,value\na,x;y\nb,2\n");
    let flags = "--format csv --header --key id --value mail --delimiter ;";
    let text = sh.ok(&format!("export db {flags}"));
    assert_eq!(text, "id;mail\na;\"x;y\"\nb;2\n");
    sh.ok_with(&format!("load copy {flags}"), text.as_bytes());
    assert_eq!(sh.ok("export copy"), sh.ok("export db"));
    assert_eq!(sh.ok(&format!("scan db --limit 1 --keys-only {flags}")), "id\na\n");
    assert_eq!(sh.ok("scan db --limit 0 --format csv --header"), "key,value\n");
    sh.fails("export db --format csv --key id", 2);
    sh.fails("export db --format csv --key 1", 2);
}

/// A scan refuses a pair that a load would read differently, as an export does.
#[test]
fn a_scan_prints_nothing_ambiguous() {
    let sh = Shell::new();
    for (key, value) in [("a", "1"), ("b\tc", "2"), ("d", "3\n4")] {
        let output = sh.command(["put", "db", key, value]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let output = sh.run("scan db");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"a\t1\n"[..]));
    assert!(stderr(&output).contains("tab") && stderr(&output).contains("jsonl"));
    assert!(sh.fails("scan db --from d", 1).contains("line feed"));
    // Without values a tab separates nothing.
    assert_eq!(sh.ok("scan db --keys-only"), "a\nb\tc\nd\n");
    let text = sh.ok("scan db --format jsonl");
    sh.ok_with("load copy --format jsonl", text.as_bytes());
    assert_eq!(sh.ok("scan copy --hex"), sh.ok("scan db --hex"));
}

/// Returns the program's output where its standard output is a terminal.
fn on_terminal(sh: &Shell, line: &str) -> String {
    let (mut main, terminal) = terminal();
    let mut command = sh.command(line.split_whitespace());
    command.stdout(Stdio::from(terminal)).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    // It holds the other end, which would keep the terminal open.
    drop(command);
    let mut seen = Vec::new();
    // The read fails once the other end is closed.
    let _ = main.read_to_end(&mut seen);
    assert!(child.wait().unwrap().success(), "{line}");
    String::from_utf8(seen).unwrap()
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    let sh = Shell::new();
    let value = "\u{1b}[31mred\u{7}\u{7f}\u{9b}2J";
    for (key, value) in [("a\tb", "two\nlines"), ("esc", value), ("grün", "☃")] {
        let output = sh.command(["put", "db", key, value]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for line in [
        "scan db",
        "export db",
        "scan db --format csv",
        "export db --format jsonl",
        "get db esc",
        "scan db --prefix esc",
    ] {
        let seen = on_terminal(&sh, line);
        let raw: Vec<char> =
            seen.chars().filter(|c| c.is_control() && !"\r\n\t".contains(*c)).collect();
        assert!(raw.is_empty() && seen.contains("[31mred"), "{line}: {seen:?}");
    }
    let seen = on_terminal(&sh, "scan db");
    assert!(seen.contains("a\\tb\ttwo\\nlines\r\n") && seen.contains("grün\t☃"), "{seen:?}");
    // A program gets every byte as it is.
    assert_eq!(sh.run("get db esc").stdout, format!("{value}\n").as_bytes());
}

#[test]
fn lines_that_are_no_pair_can_be_left_out() {
    let sh = Shell::new();
    let lines = b"{\"id\":\"a\",\"v\":1}\n{\"v\":2}\nnothing\n{\"id\":\"b\",\"v\":3}\n";
    for how in ["", " --sorted", " --bulk"] {
        let line =
            format!("load db{} --format jsonl --key id --value v --skip-errors{how}", how.len());
        let text = sh.fails_with(&line, lines, 3);
        for part in ["line 2 of", "line 3 of", "2 lines of", "loaded 2 lines"] {
            assert!(text.contains(part), "{how}: no `{part}`: {text}");
        }
        assert_eq!(sh.ok(&format!("scan db{}", how.len())), "a\t1\nb\t3\n");
    }
    // The first line of all does not keep the program from making a database.
    sh.fails_with("load other --skip-errors", b"no tab\na\t1\n", 3);
    assert_eq!(sh.ok("scan other"), "a\t1\n");
    let csv = b"k,v\na\nb,2\n";
    sh.fails_with("load third --format csv --header --key k --value v --skip-errors", csv, 3);
    assert_eq!(sh.ok("scan third"), "b\t2\n");
    let wrong = sh.fails_with("load fourth --format csv --header --key x --skip-errors", csv, 1);
    assert!(
        wrong.contains("line 1 of"),
        "a column that is not there is no line to leave out: {wrong}"
    );
    assert_eq!(sh.run("load fifth --skip-errors").status.code(), Some(0), "an empty input");
}
