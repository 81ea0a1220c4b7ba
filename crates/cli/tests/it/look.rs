//! Inspection and maintenance of a database: `tree`, `stats`, `verify`, `repair`, `compact`,
//! `checkpoint`, `destroy`, `dump`, and `demo`.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, stderr, terminal};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

const UNICODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/unicode.tsv");

/// Makes a database with tables in it, of the data that ship with the program.
fn unicode(sh: &Shell) {
    sh.ok(&format!("load db {UNICODE} --option memory_bytes=16MiB --option memtable_bytes=256KiB"));
    sh.ok("compact db");
    assert!(!sh.files("db", ".sst").is_empty());
}

#[test]
fn the_shipped_table_is_in_key_order() {
    let sh = Shell::new();
    unicode(&sh);
    assert!(sh.run("export db").stdout == fs::read(UNICODE).unwrap());
    assert_eq!(sh.ok("get db 01F4A9"), "PILE OF POO;So\n");
    assert_eq!(sh.ok("scan db --prefix 0026 --limit 1"), "002600\tBLACK SUN WITH RAYS;So\n");
}

#[test]
fn tree_stats_keyspaces_options() {
    let sh = Shell::new();
    unicode(&sh);
    sh.ok("put db key value -k other");
    let tree = sh.ok("tree db --files");
    assert!(tree.contains("default") && tree.contains("other"), "{tree}");
    assert!(tree.contains(" run ") && tree.contains(".sst") && tree.contains("000000"), "{tree}");
    assert!(tree.contains("33,008 entries"), "{tree}");
    assert!(!tree.contains('\x1b'), "colour where there is no terminal");
    let other = sh.ok("tree db -k other");
    assert!(other.contains("other") && !other.contains("default"), "{other}");
    let stats = sh.ok("stats db --json");
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert!(
        stats["levels"].is_array() && stats["keyspaces"].as_array().unwrap().len() == 2,
        "{stats}"
    );
    assert!(sh.ok("stats db").contains("keyspace default"));
    let options = sh.ok("options");
    for name in ["memory_bytes", "background_threads", "preset"] {
        assert!(options.contains(name), "{options}");
    }
}

/// The statistics of a database that another process, here the test, has open.
#[test]
fn stats_of_a_running_program() {
    let sh = Shell::new();
    let mut options = windrow::Options::default();
    options.settings.set("stats_period_ms", "100").unwrap();
    let db = windrow::Db::open_with(sh.path("db"), options).unwrap();
    for n in 0..20_000 {
        db.put(format!("{:05}", n % 1_000), [7; 100]).unwrap();
        assert!(db.get(format!("{:05}", n % 1_000)).unwrap().is_some());
    }
    (0..1_000).for_each(|n| assert!(db.range(format!("{n:05}")..).next().is_some()));
    (0..900).for_each(|n| db.delete(format!("{n:05}")).unwrap());
    assert_eq!(db.iter().count(), 100);
    db.put_with("synced", "1", windrow::WriteSync::Yes).unwrap();
    let is_told = |json: &serde_json::Value| {
        let latencies = &json["latencies"];
        let timed = ["get", "seek", "put", "commit"].iter().all(|kind| {
            let of_kind = latencies
                .as_array()
                .and_then(|all| all.iter().find(|of| of["of"].as_str() == Some(kind)));
            of_kind.is_some_and(|of| of["count"].as_u64().is_some_and(|count| count > 0))
        });
        timed && json["tombstones_walked"].as_u64().is_some_and(|count| count >= 900)
    };
    let mut told = serde_json::Value::Null;
    for _ in 0..100 {
        let output = sh.run("stats db --json");
        if output.status.success() {
            told = serde_json::from_slice(&output.stdout).unwrap();
            if is_told(&told) {
                break;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(is_told(&told), "{told:#}");
    let table = sh.ok("stats db");
    assert!(table.contains(&format!("\nof process {}, ", std::process::id())), "{table}");
    assert!(table.starts_with("keyspace default"), "{table}");
    for part in ["p99.9", "deleted keys walked over", "reads and", "memory "] {
        assert!(table.contains(part), "no `{part}`: {table}");
    }
    db.close().unwrap();
    assert!(!sh.ok("stats db").contains("of process"), "it is opened");
}

#[test]
fn a_running_program_is_watched() {
    let sh = Shell::new();
    let failed = |line: &str, part: &str| {
        let output = sh.run(line);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && told.contains(part), "{line}: {told}");
    };
    failed("top db", "there is no database");
    let mut options = windrow::Options::default();
    options.settings.set("stats_period_ms", "100").unwrap();
    let db = windrow::Db::open_with(sh.path("db"), options).unwrap();
    let goes_on = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..1_000).cycle() {
                db.put(format!("{n:05}"), [7; 100]).unwrap();
                assert!(db.get(format!("{n:05}")).unwrap().is_some());
                if !goes_on.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        while windrow::Db::running_stats(sh.path("db")).unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // A writer that gets no processor writes no statistics between two frames.
        let watched = || sh.ok("top db --count 3 --interval 300ms");
        let is_live = |told: &String| told.matches("rates over the last ").count() >= 1;
        let told = std::iter::repeat_with(watched).take(20).find(is_live);
        goes_on.store(false, std::sync::atomic::Ordering::Relaxed);
        let told = told.expect("no frame tells what happened since the one before");
        let frames: Vec<&str> = told.trim_end().split("\n\ndb").collect();
        assert_eq!(told.matches("  process ").count(), 3, "{told}");
        assert!(frames[0].contains("rates since it was opened"), "{told}");
        let last = frames.iter().rfind(|frame| frame.contains("rates over the last ")).unwrap();
        assert!(last.contains("100 % found"), "{told}");
        let commits = last.lines().find(|line| line.starts_with("commits")).unwrap();
        let rate = commits.split_whitespace().nth(1).unwrap().replace(',', "");
        assert!(rate.parse::<u64>().unwrap() > 0, "{told}");
        assert!(!told.contains('\x1b'), "no colours where it is no terminal: {told}");
    });
    db.close().unwrap();
    failed("top db", "no process writes statistics");
}

/// The terminal is as it was before, for each key that ends the program.
#[test]
fn a_watched_terminal_is_given_back() {
    let sh = Shell::new();
    let mut options = windrow::Options::default();
    options.settings.set("stats_period_ms", "100").unwrap();
    let db = windrow::Db::open_with(sh.path("db"), options).unwrap();
    while windrow::Db::running_stats(sh.path("db")).unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    for quits in [b"q", b"\x03"] {
        let (mut main, other) = terminal();
        let before = tcgetattr(&main).unwrap();
        let mut command = sh.command(["top", "db", "--interval", "50ms"]);
        command.stdin(other.try_clone().unwrap()).stdout(other.try_clone().unwrap()).stderr(other);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut seen = Vec::new();
        let mut show = |main: &mut fs::File, part: &str| {
            while !String::from_utf8_lossy(&seen).contains(part) {
                let mut some = [0; 4096];
                let n = main.read(&mut some).unwrap();
                seen.extend_from_slice(&some[..n]);
            }
        };
        show(&mut main, "as of");
        let raw = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        assert!(!tcgetattr(&main).unwrap().local_modes.intersects(raw));
        main.write_all(b" ").unwrap();
        show(&mut main, "PAUSED");
        main.write_all(quits).unwrap();
        show(&mut main, "\x1b[?25h\x1b[?1049l");
        assert!(child.wait().unwrap().success());
        assert_eq!(tcgetattr(&main).map(|now| now.local_modes), Ok(before.local_modes));
    }
    db.close().unwrap();
}

/// A command that only reads writes not one byte.
#[test]
fn reading_changes_nothing() {
    let sh = Shell::new();
    unicode(&sh);
    sh.ok("put db late write");
    let before = sh.image("db");
    for line in [
        "get db 0026FF",
        "scan db --limit 3",
        "export db",
        "tree db",
        "stats db",
        "verify db",
        "keyspaces db",
    ] {
        sh.ok(line);
        assert!(sh.image("db") == before, "{line} wrote");
    }
    for (name, _) in &before {
        for kind in ["wal", "manifest", "table"] {
            sh.run(&format!("dump {kind} db/{name}"));
        }
    }
    assert!(sh.image("db") == before, "dump wrote");
}

#[test]
fn verify_finds_a_flipped_bit_and_names_the_file() {
    let sh = Shell::new();
    unicode(&sh);
    sh.ok("verify db");
    let table = largest(sh.files("db", ".sst"));
    flip(&table, 5_000);
    let text = sh.fails("verify db", 1);
    assert!(text.contains(table.file_name().unwrap().to_str().unwrap()), "{text}");
    assert!(text.contains("windrow repair"), "{text}");
    let output = sh.run("export db");
    assert_eq!(output.status.code(), Some(1), "an export over damage went well");
    let whole = fs::read(UNICODE).unwrap();
    assert!(whole.starts_with(&output.stdout), "an export invented data before the damage");
}

/// Damage is a failure whether or not anybody reads the output.
#[test]
fn a_closed_pipe_hides_no_damage() {
    let sh = Shell::new();
    // Less than is printed at once, so that the damage is met before the closed pipe.
    let table = fs::read_to_string(UNICODE).unwrap();
    let head: String = table.split_inclusive('\n').take(2_000).collect();
    sh.ok_with("load db", head.as_bytes());
    flip(&largest(sh.files("db", ".sst")), 5_000);
    for line in ["verify db", "export db", "scan db"] {
        let text = fails_unread(&sh, line);
        assert!(text.contains("corruption"), "{line}: {text}");
    }
}

/// Runs a command line whose output has no reader, and which must fail; returns its stderr.
fn fails_unread(sh: &Shell, line: &str) -> String {
    let mut child = sh.spawn(line);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{line}: {}", stderr(&output));
    stderr(&output)
}

fn largest(files: Vec<std::path::PathBuf>) -> std::path::PathBuf {
    files.into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn repair_saves_what_is_around_the_damage() {
    let sh = Shell::new();
    unicode(&sh);
    let table = largest(sh.files("db", ".sst"));
    flip(&table, 5_000);
    let before = fs::read(&table).unwrap();
    let output = sh.run("repair db");
    // A loss has an exit code of its own.
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let report = String::from_utf8(output.stdout).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    for words in ["1 saved in part", "lost: bytes", &format!("{name} of default: "), "db/lost"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    assert!(fs::read(table.with_file_name("lost").join(name)).unwrap() == before);
    // The database is whole now: there is nothing more to lose.
    assert!(sh.ok("repair db").contains("nothing is lost"));
    sh.ok("verify db");
    let whole = fs::read_to_string(UNICODE).unwrap();
    let left = sh.ok("export db");
    let lines: std::collections::HashSet<&str> = whole.lines().collect();
    assert!(left.lines().all(|line| lines.contains(line)), "the repair invented data");
    let (all, saved) = (whole.lines().count(), left.lines().count());
    assert!(all - 300 < saved && saved < all, "{saved} of {all} saved around one block");
}

/// A loss has its exit code, whether or not anybody reads the report.
#[test]
fn a_repair_that_nobody_reads_has_its_exit_code() {
    let sh = Shell::new();
    unicode(&sh);
    let damage = || flip(&largest(sh.files("db", ".sst")), 5_000);
    damage();
    let mut child = sh.spawn("repair db");
    drop(child.stdout.take());
    let closed = child.wait_with_output().unwrap();
    assert_eq!((closed.status.code(), stderr(&closed).as_str()), (Some(3), ""));
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full");
        return;
    };
    damage();
    let full = sh.command(["repair", "db"]).stdout(full).output().unwrap();
    let text = stderr(&full);
    assert_eq!(full.status.code(), Some(3), "{text}");
    assert!(text.contains("standard output") && !text.contains("panicked"), "{text}");
}

/// Makes a database with two pairs in its write-ahead log alone.
fn with_a_log(sh: &Shell) {
    sh.ok("put db a 1");
    let mut child = sh.spawn("load db --ack");
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(b"b\t2\nc\t3\n").unwrap();
    assert_eq!(BufReader::new(stdout).lines().next().unwrap().unwrap(), "2");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Nothing is left of a log that is gone, and its contents are unknown.
#[test]
fn a_repair_says_which_logs_are_missing_or_were_cut() {
    for cut_bytes in [None, Some(5_000)] {
        let sh = Shell::new();
        with_a_log(&sh);
        let log = sh.files("db", ".wal").pop().unwrap();
        let name = log.file_name().unwrap().to_str().unwrap();
        let words = match cut_bytes {
            None => {
                fs::remove_file(&log).unwrap();
                format!("{name}: lost: all that it held")
            }
            Some(bytes) => {
                fs::File::options().write(true).open(&log).unwrap().set_len(bytes).unwrap();
                format!("{name}: lost: what bytes ")
            }
        };
        let output = sh.run("repair db");
        let report = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(output.status.code(), Some(3), "{report}{}", stderr(&output));
        assert!(report.contains(&words) && report.contains("something is lost"), "{report}");
        assert!(sh.ok("repair db").contains("nothing is lost"));
    }
}

/// Records that are in write-ahead logs alone are counted too.
#[test]
fn verify_counts_logs() {
    let sh = Shell::new();
    with_a_log(&sh);
    let text = sh.ok("verify db");
    assert!(text.contains(" log") && text.contains("2 operations"), "{text}");
    assert!(text.trim_end().ends_with(": sound"), "{text}");
}

#[test]
fn repair_makes_a_lost_manifest_again() {
    let sh = Shell::new();
    unicode(&sh);
    for path in sh.files("db", "MANIFEST-") {
        fs::remove_file(path).unwrap();
    }
    let text = sh.fails("get db 0026FF", 1);
    assert!(text.contains("corruption") || text.contains("MANIFEST"), "{text}");
    sh.ok("repair db");
    sh.ok("verify db");
    assert!(sh.run("export db").stdout == fs::read(UNICODE).unwrap());
}

#[test]
fn compact_takes_dead_entries_out() {
    let sh = Shell::new();
    unicode(&sh);
    sh.ok("delete-range db 000000 0E0000");
    let text = stderr(&sh.run("compact db"));
    assert!(text.contains("before") && text.contains("after"), "{text}");
    let left = sh.ok("export db");
    assert!(left.starts_with("0E0001\t") && left.lines().count() < 400, "{}", left.lines().count());
    let bytes: u64 = sh.files("db", ".sst").iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes < 100_000, "{bytes} bytes in tables after the compaction");
    sh.ok("put db a b -k small");
    sh.ok("compact db -k small");
    assert_eq!(sh.ok("get db a -k small"), "b\n");
}

#[test]
fn a_checkpoint_needs_nothing_else() {
    let sh = Shell::new();
    unicode(&sh);
    sh.ok("put db recent write");
    sh.ok("checkpoint db copy");
    sh.ok("put db recent overwritten");
    assert_eq!(sh.ok("get copy recent"), "write\n");
    sh.ok("put copy only here");
    sh.fails("get db only", 1);
    sh.ok("verify copy");
    sh.fails("checkpoint db copy", 1);
    sh.ok("destroy db");
    assert_eq!(sh.ok("export copy").lines().count(), 33_010);
}

#[test]
fn destroy_removes_the_database() {
    let sh = Shell::new();
    sh.ok("put db key value");
    sh.ok("destroy db");
    sh.fails("get db key", 1);
    sh.ok("put db key again");
    assert_eq!(sh.ok("export db"), "key\tagain\n");
    fs::create_dir(sh.path("mine")).unwrap();
    sh.write("mine/letter.txt", "not a database");
    sh.fails("destroy mine --yes", 1);
    assert!(sh.path("mine/letter.txt").exists());
}

/// Loads this number of lines, each acknowledged as durable, and dies: its log holds those lines.
fn killed_load(sh: &Shell, lines: u32) {
    let mut load = sh.spawn("load db --ack");
    let mut acks = BufReader::new(load.stdout.take().unwrap()).lines();
    for i in 1..=lines {
        writeln!(load.stdin.as_ref().unwrap(), "pear{i}\tgreen").unwrap();
        assert_eq!(acks.next().unwrap().unwrap(), i.to_string());
    }
    load.kill().unwrap();
    load.wait().unwrap();
}

/// Makes a database in `db` as the death of its process leaves it, with a damaged byte in the part
/// of its log that was never synced: 20 of 100 writes are before it.
fn damaged_unsynced(sh: &Shell) {
    let db = windrow::Db::open(sh.path("written")).unwrap();
    (0..100).try_for_each(|key| db.put(format!("pear{key:02}"), "green")).unwrap();
    fs::create_dir(sh.path("db")).unwrap();
    for from in sh.files("written", "") {
        fs::copy(&from, sh.path("db").join(from.file_name().unwrap())).unwrap();
    }
    let wal = largest(sh.files("db", ".wal"));
    let bytes = fs::read(&wal).unwrap();
    flip(&wal, bytes.windows(6).position(|bytes| bytes == b"pear20").unwrap());
}

#[test]
fn whole_batches_behind_damage_to_an_unsynced_log_are_told() {
    let sh = Shell::new();
    damaged_unsynced(&sh);
    let told = |output: &std::process::Output| {
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(stderr.contains("79 whole batches in bytes "), "{stderr}");
        String::from_utf8(output.stdout.clone()).unwrap() + &stderr
    };
    for _ in 0..2 {
        assert!(told(&sh.run("count db")).starts_with("20"));
        let text = told(&sh.run("verify db"));
        assert!(text.contains("sound, but for what is left out") && text.contains("left out: 79"));
    }
    let json: serde_json::Value =
        serde_json::from_slice(&sh.run("verify db --json").stdout).unwrap();
    assert_eq!(json["left_out"].as_array().unwrap().len(), 1, "{json}");
    let text = told(&sh.run("put db pear99 red"));
    assert!(text.contains("the log is kept as "), "{text}");
    assert_eq!(sh.ok("count db"), "21\n");
    sh.ok("verify db");
    // The contents of the kept log can be dumped.
    let kept = sh.files("db/lost", "left-out-79");
    let text = sh.ok(&format!("dump wal {}", kept[0].display()));
    assert!(text.contains("79 whole batches among them") && text.contains("pear21"), "{text}");
    assert_eq!(text.matches(" put ").count(), 99, "{text}");
    // The kept log is destroyed with the database.
    sh.ok("destroy db --yes");
    assert!(!sh.path("db").exists());
}

#[test]
fn a_repair_tells_of_whole_batches_behind_damage() {
    let sh = Shell::new();
    damaged_unsynced(&sh);
    let output = sh.run("repair db");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("79 whole batches among it") && text.contains("something is lost"));
    assert_eq!(sh.files("db/lost", ".wal").len(), 1);
    assert_eq!(sh.ok("count db"), "20\n");
}

#[test]
fn dump_tells_a_torn_log_from_a_damaged_one() {
    let sh = Shell::new();
    killed_load(&sh, 3);
    let wal = largest(sh.files("db", ".wal"));
    let text = sh.ok(&format!("dump wal {}", wal.display()));
    let starts: Vec<usize> = text
        .lines()
        .filter(|line| line.contains(" batch of 1 "))
        .map(|line| line.split_once("..").unwrap().0.parse().unwrap())
        .collect();
    assert_eq!(starts.len(), 3, "{text}");

    let whole = fs::read(&wal).unwrap();
    sh.write("torn.wal", &whole[..starts[2] + 20]);
    let text = sh.ok("dump wal torn.wal");
    assert!(text.contains("pear2") && !text.contains("pear3"), "{text}");
    assert!(text.contains("bytes of torn records"), "{text}");

    // The records behind it say that the second was durable.
    sh.write("damaged.wal", &whole);
    flip(&sh.path("damaged.wal"), starts[1] + 20);
    let output = sh.run("dump wal damaged.wal");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("pear1"),
        "what is before is not shown"
    );
    assert!(stderr(&output).contains("damaged.wal"), "{}", stderr(&output));
    assert!(fails_unread(&sh, "dump wal damaged.wal").contains("damaged.wal"));
}

#[test]
fn dump_shows_every_kind_of_file() {
    let sh = Shell::new();
    unicode(&sh);
    sh.ok("put db apple red");
    killed_load(&sh, 1);
    let all = |kind: &str, part: &str| -> String {
        let files = sh.files("db", part);
        assert!(!files.is_empty(), "no {part}");
        files.iter().map(|path| sh.ok(&format!("dump {kind} {}", path.display()))).collect()
    };
    let wal = all("wal", ".wal");
    assert!(wal.contains("pear") && wal.contains("green"), "{wal}");
    let table = all("table", ".sst");
    assert!(table.contains("00263A") && table.contains("WHITE SMILING FACE"), "no smile");
    let manifest = all("manifest", "MANIFEST-");
    assert!(manifest.contains("default"), "{manifest}");
    for kind in ["wal", "manifest", "table"] {
        let text = sh.fails(&format!("dump {kind} db/CURRENT"), 1);
        assert!(text.contains("CURRENT"), "{text}");
        assert!(sh.fails(&format!("dump {kind} db/nothing"), 1).contains("there is no file"));
    }
}

#[test]
fn completions_man_and_help() {
    let sh = Shell::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(sh.ok(&format!("completions {shell}")).contains("delete-range"), "{shell}");
    }
    assert!(sh.ok("man").contains(".TH windrow"));
    assert!(sh.ok("man load").contains("\\-\\-ack"));
    let help = sh.ok("--help");
    assert!(help.contains("checkpoint") && help.contains("completions"), "{help}");
    assert!(sh.ok("--version").starts_with("windrow "));
}

#[test]
fn the_demo_runs_and_leaves_nothing() {
    let sh = Shell::new();
    let text = sh.ok("demo");
    assert!(text.contains("everything as it should be"), "{text}");
    assert!(text.contains("PILE OF POO") && text.contains("8. The figures"), "{text}");
    assert!(!text.contains('\x1b'), "colour where there is no terminal");
    let left: Vec<String> = sh.image(".").into_iter().map(|(name, _)| name).collect();
    assert!(left.is_empty(), "the demo left {left:?}");
    sh.ok("demo --keep kept --quiet");
    assert!(sh.ok("scan kept -k names --prefix SNOWMAN").starts_with("SNOWMAN\t002603\n"));
    sh.ok("verify kept");
    let text = sh.fails("demo --keep kept", 1);
    assert!(text.contains("exists already"), "{text}");
}

#[test]
fn a_database_and_the_lab_are_drawn_as_pages_that_ask_nobody() {
    let sh = Shell::new();
    unicode(&sh);
    let page = sh.ok("viz db");
    assert!(page.starts_with("<!doctype html>") && page.contains("\"moments\":["), "{page}");
    assert!(page.contains("\"smallest_hex\":"), "there are tables");
    let lab = sh.ok("lab --html -p leveled -p windrow --keys 20000 --flushes 3");
    assert!(lab.contains("\"is_lab\":true") && lab.contains("flush 3"), "{lab}");
    for page in [page, lab] {
        assert!(!page.contains("http://") && !page.contains("https://"));
    }
}
