//! One key at a time, and the rules that every command keeps: exit codes,
//! hexadecimal, keyspaces, databases that are not there.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr};
use std::time::Duration;

#[test]
fn put_get_delete() {
    let sh = Shell::new();
    sh.ok("put db apple red");
    sh.ok("put db pear green");
    assert_eq!(sh.ok("get db apple"), "red\n");
    assert_eq!(sh.ok("get db apple --no-newline"), "red");
    sh.ok("put db apple yellow");
    assert_eq!(sh.ok("get db apple"), "yellow\n");
    sh.ok("delete db apple absent");
    let text = sh.fails("get db apple", 1);
    assert!(text.contains("not found: apple"), "{text}");
    assert_eq!(sh.ok("get db pear"), "green\n");
}

#[test]
fn several_keys_are_got_in_their_order() {
    let sh = Shell::new();
    sh.ok_with("load db", b"a\t1\nb\t2\n");
    assert_eq!(sh.ok("get db b a b"), "2\n1\n2\n");
    let output = sh.run("get db b x a y");
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b"2\n1\n"[..]));
    let told = stderr(&output);
    assert!(told.contains("not found: x") && told.contains("not found: y"), "{told}");
}

#[test]
fn counters_are_scanned_in_decimal() {
    let sh = Shell::new();
    sh.ok("keyspaces db create hits --merge add");
    sh.ok("merge db home 40 -k hits");
    sh.ok("merge db home 2 -k hits");
    sh.ok("merge db page -7 -k hits");
    assert_eq!(sh.ok("scan db -k hits --number"), "home\t42\npage\t-7\n");
    assert_eq!(sh.ok("export db -q -k hits --number --format csv"), "home,42\npage,-7\n");
    sh.ok("put db -k hits word abc");
    let text = sh.fails("scan db -k hits --number", 1);
    assert!(text.contains("3 bytes") && text.contains("of the key word"), "{text}");
}

#[test]
fn a_keyspace_is_listed_with_what_is_its_own() {
    let sh = Shell::new();
    sh.ok("keyspaces db create hits --merge add --ttl 90 --policy vlsm --compression lz4");
    sh.ok("keyspaces db create plain");
    let list = sh.ok("keyspaces db");
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines[0], "default");
    assert!(lines[1].starts_with("hits\tmerge add, policy "), "{list}");
    assert!(lines[1].ends_with("compression lz4, ttl 90.0 s"), "{list}");
    assert_eq!(lines[2], "plain");
    sh.ok("put db -k hits a 1");
    assert!(sh.ok("ttl db -k hits a").starts_with("expires in "), "a TTL of the keyspace's own");
    sh.fails("keyspaces db create other --ttl soon", 2);
}

/// Help that was asked for, and cannot be printed.
#[test]
fn help_that_is_not_printed_is_a_failure() {
    let sh = Shell::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = sh.command(["help"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
    assert_eq!(sh.run("help").status.code(), Some(0));
    assert_eq!(sh.run("hlep").status.code(), Some(2));
}

#[test]
fn delete_range_leaves_its_end() {
    let sh = Shell::new();
    sh.ok_with("load db", b"a\t1\nb\t2\nc\t3\nd\t4\n");
    sh.ok("delete-range db b d");
    assert_eq!(sh.ok("export db"), "a\t1\nd\t4\n");
    sh.ok("delete-range db a a");
    let text = sh.fails("delete-range db d a", 2);
    assert!(text.contains("FROM comes after TO"), "{text}");
    assert_eq!(sh.ok("export db"), "a\t1\nd\t4\n");
}

#[test]
fn ranges_are_counted_and_cleared_with_open_ends() {
    let sh = Shell::new();
    let all = b"a\t1\nab\t2\nabc\t3\nb\t4\nc\t5\n";
    sh.ok_with("load db", all);
    // The greatest of all keys, which no end of a range comes after.
    sh.ok(&format!("put db {} 00 --hex", "ff".repeat(20)));
    assert_eq!(sh.ok("count db"), "6\n");
    assert_eq!(sh.ok("count db --prefix ab"), "2\n");
    assert_eq!(sh.ok("count db --from ab --to c"), "3\n");
    assert_eq!(sh.ok("count db --from c --to ab"), "0\n");
    sh.ok("clear db --prefix ab");
    assert_eq!(sh.ok("scan db --keys-only --to d"), "a\nb\nc\n");
    sh.ok("clear db --from b");
    assert_eq!(sh.ok("export db"), "a\t1\n");
    let text = sh.fails("clear db", 2);
    assert!(text.contains("--all"), "{text}");
    sh.fails("clear db --all --from a", 2);
    assert!(sh.fails("clear db --from b --to a", 2).contains("ends before it begins"));
    assert_eq!(sh.ok("export db"), "a\t1\n");
    sh.ok("clear db --all");
    assert_eq!(sh.ok("count db"), "0\n");
    sh.ok("clear db --all");
}

#[test]
fn hexadecimal_in_and_out() {
    let sh = Shell::new();
    sh.ok("put db 00ff 0a09 --hex");
    assert_eq!(sh.ok("get db 00FF --hex"), "0a09\n");
    assert_eq!(sh.ok("scan db --hex"), "00ff\t0a09\n");
    assert_eq!(sh.ok("scan db --hex --prefix 00"), "00ff\t0a09\n");
    assert_eq!(sh.run("get db 00ff --hex --no-newline").stdout, b"0a09");
    sh.ok_with("put db 01 --hex", b"feed\n");
    assert_eq!(sh.ok("get db 01 --hex"), "feed\n");
    for bad in ["get db 0 --hex", "get db xy --hex", "put db 00 0 --hex", "scan db --hex --from zz"]
    {
        assert!(sh.fails(bad, 2).contains("not hexadecimal"));
    }
}

#[test]
fn arguments_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let sh = Shell::new();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\x01 key");
    let run = |args: &[&std::ffi::OsStr]| sh.command(args).output().unwrap();
    assert!(run(&["put".as_ref(), "db".as_ref(), odd, odd]).status.success());
    let got = run(&["get".as_ref(), "db".as_ref(), odd]);
    assert_eq!(got.stdout, b"\xff\x01 key\n", "{}", stderr(&got));
    assert!(run(&["put".as_ref(), "db".as_ref(), "".as_ref(), "".as_ref()]).status.success());
    assert_eq!(run(&["get".as_ref(), "db".as_ref(), "".as_ref()]).stdout, b"\n");
}

#[test]
fn a_value_may_come_from_standard_input() {
    let sh = Shell::new();
    sh.ok_with("put db key", b"two\nlines\t\xc3\xa9");
    assert_eq!(sh.ok("get db key --no-newline"), "two\nlines\té");
}

#[test]
fn values_expire() {
    let sh = Shell::new();
    sh.ok("put db soon gone --ttl 50ms");
    sh.ok("put db late here --ttl 1d");
    std::thread::sleep(Duration::from_millis(60));
    assert!(sh.fails("get db soon", 1).contains("not found"));
    assert_eq!(sh.ok("get db late"), "here\n");
    assert_eq!(sh.ok("scan db --keys-only"), "late\n");
    sh.ok_with("load db --ttl 50ms", b"x\t1\ny\t2\n");
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(sh.ok("export db"), "late\there\n");
    sh.fails("put db a b --ttl soon", 2);
}

#[test]
fn keyspaces_are_apart() {
    let sh = Shell::new();
    sh.ok("put db key one");
    sh.ok("put db key two --keyspace other");
    sh.ok_with("load db -k third", b"key\tthree\n");
    assert_eq!(sh.ok("get db key"), "one\n");
    assert_eq!(sh.ok("get db key -k other"), "two\n");
    assert_eq!(sh.ok("export db -k third"), "key\tthree\n");
    let names = sh.ok("keyspaces db");
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["default", "other", "third"]);
    sh.ok("delete db key -k other");
    sh.fails("get db key -k other", 1);
    assert_eq!(sh.ok("get db key"), "one\n");
    for line in [
        "get db key",
        "scan db",
        "export db",
        "delete db key",
        "delete-range db a b",
        "clear db --all",
        "count db",
        "compact db",
        "tree db",
    ] {
        let text = sh.fails(&format!("{line} -k nowhere"), 1);
        assert!(text.contains("`nowhere`") && text.contains("third"), "{line}: {text}");
    }
    assert_eq!(sh.ok("keyspaces db").lines().count(), 3, "reading created a keyspace");
}

#[test]
fn only_put_and_load_create() {
    let sh = Shell::new();
    std::fs::create_dir(sh.path("empty")).unwrap();
    for line in [
        "get DB key",
        "scan DB",
        "export DB",
        "tree DB",
        "stats DB",
        "keyspaces DB",
        "verify DB",
        "repair DB",
        "compact DB",
        "checkpoint DB target",
        "backup DB target",
        "delete DB key",
        "delete-range DB a b",
        "clear DB --all",
        "count DB",
        "destroy DB",
    ] {
        let text = sh.fails(&line.replace("DB", "nothing"), 1);
        assert!(text.contains("there is no database nothing"), "{line}: {text}");
        assert!(!sh.path("nothing").exists(), "{line} created it");
        let text = sh.fails(&line.replace("DB", "empty"), 1);
        assert!(text.contains("there is no database in empty"), "{line}: {text}");
        assert_eq!(sh.image("empty"), [], "{line} wrote into it");
        assert!(!sh.path("target").exists(), "{line} made a target");
    }
    let text = sh.fails("load nothing no-such-file", 1);
    assert!(text.contains("no-such-file"), "{text}");
    assert!(!sh.path("nothing").exists());
}

#[test]
fn bad_usage_is_two() {
    let sh = Shell::new();
    sh.ok("put db key value");
    for line in [
        "",
        "frobnicate",
        "get",
        "get db",
        "put db",
        "scan db --limit many",
        "load db --format xml",
        "scan db --no-such-flag",
        "get db key --option memory_bytes",
        "get db key --option no_such_option=1",
        "get db key --option memory_bytes=lots",
        "dump nothing db/CURRENT",
        "man frobnicate",
        "load db --group 0",
        "load db --header",
        "load db --header --format jsonl",
        "backup db",
        "backup db backups --keep 0",
        "backup db backups --limit 0",
        "restore backups",
        "restore backups copy --backup newest",
    ] {
        sh.fails(line, 2);
    }
    let text = sh.fails("get db key --option no_such_option=1", 2);
    assert!(text.contains("no_such_option") && text.contains("windrow options"), "{text}");
    assert_eq!(sh.ok("get db key --option memory_bytes=64MiB"), "value\n");
}

/// Any policy opens a database that any other wrote.
#[test]
fn presets() {
    let sh = Shell::new();
    sh.ok("put db a 1 --preset leveled");
    let policy = "leveled shape=leveling(t=4) filters=none";
    let output = sh.command(["put", "db", "b", "2", "--preset", policy]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(sh.ok("export db"), "a\t1\nb\t2\n");
    let text = sh.fails("put db c 3 --preset nonsense", 2);
    assert!(text.contains("nonsense") && text.contains("leveled"), "{text}");
    assert_eq!(sh.ok("export db"), "a\t1\nb\t2\n");
}

/// A database keeps its settings; flags change only those that they name.
#[test]
fn settings_stay_until_a_flag_changes_them() {
    let sh = Shell::new();
    let stored = || {
        let manifests = sh.files("db", "MANIFEST-");
        assert_eq!(manifests.len(), 1);
        let text = sh.ok(&format!("dump manifest {}", manifests[0].display()));
        let value = |name: &str| {
            let line = text.lines().rev().find_map(|line| line.trim().strip_prefix(name));
            line.unwrap().trim_start_matches([' ', '=']).to_owned()
        };
        (value("preset"), value("reserve_bytes"), value("block_bytes"))
    };
    let expected = |preset: &str, reserve: &str, block: &str| {
        (preset.to_owned(), reserve.to_owned(), block.to_owned())
    };
    sh.ok("put db a 1 --preset leveled --option reserve_bytes=1MiB --option block_bytes=8KiB");
    assert!(sh.path("db/RESERVE").exists());
    for line in [
        "put db b 2",
        "load db",
        "delete db b",
        "delete-range db x y",
        "compact db",
        "repair db",
        "get db a --preset vlsm --option reserve_bytes=0",
    ] {
        sh.ok(line);
        assert_eq!(stored(), expected("leveled", "1MiB", "8KiB"), "{line}");
        assert!(sh.path("db/RESERVE").exists(), "{line} took the reserve");
    }
    sh.ok("checkpoint db copy");
    sh.ok("put copy b 2");
    assert!(sh.path("copy/RESERVE").exists(), "a copy has other settings");
    sh.ok("put db b 3 --option reserve_bytes=0");
    assert_eq!(stored(), expected("leveled", "0", "8KiB"));
    assert!(!sh.path("db/RESERVE").exists());
    // The value of a flag must go with the stored settings.
    let text = sh.fails("put db b 4 --option file_bytes=64KiB --option block_bytes=32KiB", 2);
    assert!(text.contains("block_bytes"), "{text}");
    assert_eq!(stored(), expected("leveled", "0", "8KiB"));
}

#[test]
fn a_value_that_the_operator_does_not_take_is_no_corruption_and_stops_nothing() {
    let sh = Shell::new();
    sh.ok("keyspaces db create hits --merge add");
    for line in ["put db a one", "merge db a 1", "merge db b 2", "merge db c 3"] {
        sh.ok(&format!("{line} -k hits"));
    }
    let text = sh.fails("get db a -k hits", 1);
    assert!(text.contains("`add` does not take what is stored for key \"a\""), "{text}");
    assert!(text.contains("`windrow put` or `windrow delete`"), "{text}");
    for line in ["scan db -k hits --hex", "export db -k hits --hex"] {
        let output = sh.run(line);
        assert_eq!(output.status.code(), Some(3), "{line}");
        assert_eq!(output.stdout, b"62\t0200000000000000\n63\t0300000000000000\n", "{line}");
        let text = stderr(&output);
        assert!(text.contains("key \"a\"") && text.contains("1 key left out"), "{text}");
    }
    assert_eq!(sh.ok("scan db -k hits --keys-only"), "a\nb\nc\n");
    assert_eq!(sh.ok("count db -k hits"), "3\n");
    sh.ok("verify db");
    sh.ok("compact db");
    sh.ok("delete db a -k hits");
    assert_eq!(sh.ok("scan db -k hits --keys-only"), "b\nc\n");
}
