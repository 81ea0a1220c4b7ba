//! Many keys in and out: `load`, `scan`, `export`, their formats, pipes that
//! close, processes that die.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Rng, Shell, expected, stderr};
use rustix::pipe::fcntl_getpipe_size;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::Duration;

type Pair = (Vec<u8>, Vec<u8>);

/// Returns lines with keys that come again, in no order, of many sizes.
fn pairs(seed: u64, lines: u64, keys: u64) -> Vec<Pair> {
    let mut rng = Rng::new(seed);
    (0..lines)
        .map(|i| {
            let key = format!("key{:05}", rng.below(keys)).into_bytes();
            let mut value = format!("{i}\t").into_bytes();
            value.resize(rng.below(40) as usize * rng.below(4) as usize, b'a' + (i % 26) as u8);
            (key, value)
        })
        .collect()
}

fn tsv(pairs: &[Pair]) -> Vec<u8> {
    crate::common::tsv(pairs.iter().map(|(key, value)| (key, value)))
}

#[test]
fn export_gives_the_last_line_of_each_key_in_order() {
    let sh = Shell::new();
    let input = pairs(1, 30_000, 9_000);
    sh.write("input.tsv", tsv(&input));
    sh.ok("load db input.tsv");
    assert!(sh.run("export db").stdout == expected(&input));
    let twice = pairs(2, 5_000, 12_000);
    sh.ok_with("load db -", &tsv(&twice));
    let all = [input, twice].concat();
    assert!(sh.run("export db").stdout == expected(&all));
    sh.ok("compact db");
    assert!(sh.run("export db").stdout == expected(&all));
    let output = sh.run_with("load copy --quiet", &expected(&all));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(sh.run("export copy").stdout == expected(&all));
}

#[test]
fn a_bulk_load_gives_what_a_load_does_whatever_fits_in_memory() {
    let sh = Shell::new();
    let first = pairs(1, 3_000, 2_000);
    sh.ok_with("load db", &tsv(&first));
    // 4 MB, in any order, many keys more than once: sorted through files within one MiB of memory.
    let mut input = pairs(3, 60_000, 40_000);
    input.iter_mut().for_each(|(_, value)| value.extend_from_slice(&[b'x'; 50]));
    sh.write("input.tsv", tsv(&input));
    let loaded = String::from_utf8(input[0].0.clone()).unwrap();
    let all = [first, input].concat();
    for args in ["--sort-memory 1 --temp temp", "--sort-memory 1", "", "--ttl 7d"] {
        sh.ok("checkpoint db copy");
        std::fs::create_dir_all(sh.path("temp")).unwrap();
        let output = sh.run(&format!("load copy input.tsv --bulk {args}"));
        assert!(output.status.success() && stderr(&output).contains("60,000 lines"), "{args}");
        assert!(sh.run("export copy").stdout == expected(&all), "{args}");
        assert!(sh.ok("verify copy").ends_with(": sound\n"));
        let ttl = sh.ok(&format!("ttl copy {loaded}"));
        assert_eq!(ttl.contains("never expires"), !args.contains("ttl"), "{args}: {ttl}");
        assert_eq!(sh.image("temp"), []);
        sh.ok("destroy copy --yes");
    }
}

#[test]
fn a_sorted_load_takes_what_export_gives_and_loads_all_or_nothing() {
    let sh = Shell::new();
    let input = pairs(1, 9_000, 5_000);
    sh.write("sorted.tsv", expected(&input));
    sh.ok("load db sorted.tsv --sorted");
    assert!(sh.run("export db").stdout == expected(&input));
    sh.ok("put db key00001 another");
    let before = sh.run("export db").stdout;
    for (lines, why) in [
        ("b\t1\na\t2\n", "line 2 of standard input: key \"a\" does not come after \"b\""),
        ("a\t1\nb\t2\nb\t3\n", "line 3 of standard input"),
        ("a\t1\nno tab\n", "line 2 of standard input: no tab"),
    ] {
        let text = sh.fails_with("load db --sorted", lines.as_bytes(), 1);
        assert!(text.contains(why) && text.contains("nothing is loaded"), "{text}");
        if !why.contains("no tab") {
            assert!(text.contains("--bulk") && text.contains("LC_ALL=C sort"), "{text}");
            sh.ok_with("load other --bulk", lines.as_bytes());
        }
    }
    assert!(sh.run("export db").stdout == before);
    assert_eq!(sh.ok("export other"), "a\t1\nb\t3\n");
    let text = sh.fails_with("load db --bulk", b"a\t1\nno tab\n", 1);
    assert!(text.contains("line 2") && text.contains("nothing is loaded"), "{text}");
    let long = [&b"a\t1\n"[..], &[b'k'; 70_000], b"\t1\n"].concat();
    let text = sh.fails_with("load db --bulk", &long, 1);
    assert!(text.contains("line 2") && text.contains("70000 bytes"), "{text}");
    sh.ok_with("load db --sorted", b"");
    sh.ok_with("load db --bulk", b"");
    assert!(sh.run("export db").stdout == before);
    for args in ["--sorted --bulk", "--bulk --ack", "--sorted --sync", "--temp ."] {
        sh.fails_with(&format!("load db {args}"), b"", 2);
    }
}

#[test]
fn every_format_round_trips() {
    let sh = Shell::new();
    let pairs: Vec<Pair> =
        [("a", "1"), ("b", ""), ("c", "tab\there"), ("d", "\"q\", comma"), ("é", "ü\r")]
            .map(|(key, value)| (key.into(), value.into()))
            .to_vec();
    sh.ok_with("load db", &tsv(&pairs));
    for format in ["tsv", "csv", "jsonl", "tsv --hex", "csv --hex", "jsonl --hex"] {
        let text = sh.ok(&format!("export db --format {format}"));
        let copy = format!("copy-{}", format.replace(' ', ""));
        sh.ok_with(&format!("load {copy} --format {format}"), text.as_bytes());
        assert!(sh.run(&format!("export {copy}")).stdout == tsv(&pairs), "{format}: {text}");
    }
    sh.ok_with("load named --format csv --header", b"key,value\na,1\n");
    assert_eq!(sh.ok("export named"), "a\t1\n");
}

#[test]
fn export_refuses_what_it_could_not_give_back() {
    let sh = Shell::new();
    sh.ok_with("put db good", b"x");
    sh.ok_with("put db lf", b"two\nlines");
    let output = sh.run("export db");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(1), b"good\tx\n".as_slice())
    );
    assert!(stderr(&output).contains("`lf`") && stderr(&output).contains("--hex"));
    assert_eq!(sh.ok("export db --hex"), "676f6f64\t78\n6c66\t74776f0a6c696e6573\n");
    sh.ok_with("put db utf", b"\xff");
    assert!(sh.fails("export db --format jsonl", 1).contains("UTF-8"));
    assert_eq!(sh.run("export db --format csv").stdout, b"good,x\nlf,\"two\nlines\"\nutf,\xff\n");
}

#[test]
fn a_bad_line_is_named_and_those_before_it_are_in() {
    let sh = Shell::new();
    for (format, input, line) in [
        ("tsv", "a\t1\nb\t2\nno tab\nc\t3\n", 3),
        ("tsv", "a\t1\nb\t2\n\nc\t3\n", 3),
        ("tsv --hex", "61\t31\n62\t32\n6\t33\n", 3),
        ("csv", "a,1\nb,2\nc\nd,4\n", 3),
        ("csv", "a,1\nb,2\nc,3,3\n", 3),
        (
            "jsonl",
            "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"c\"}\n",
            3,
        ),
    ] {
        let text = sh.fails_with(&format!("load db --format {format}"), input.as_bytes(), 1);
        assert!(text.contains(&format!("line {line} of standard input")), "{input:?}: {text}");
        assert!(text.contains("2 lines before it loaded"), "{input:?}: {text}");
        assert_eq!(sh.ok("export db"), "a\t1\nb\t2\n", "{input:?}");
        sh.ok("destroy db");
    }
    sh.write("bad.tsv", "nothing here\n");
    assert!(sh.fails("load db bad.tsv", 1).contains("line 1 of bad.tsv"));
}

/// A line that no database can hold is reported as a bad line is, and the lines before it are
/// loaded.
#[test]
fn a_line_over_a_limit_is_named_and_those_before_it_are_in() {
    let sh = Shell::new();
    let long_key = "k".repeat(65_536);
    for (format, input, line) in [
        ("tsv", format!("a\t1\nb\t2\n{long_key}\t3\nc\t4\n"), 3),
        ("tsv --hex", format!("61\t31\n62\t32\n{}\t\nc\t4\n", "6b".repeat(65_536)), 3),
        ("csv --header", format!("key,value\na,1\nb,2\n{long_key},3\nc,4\n"), 4),
        (
            "jsonl",
            format!(
                "{{\"key\":\"a\",\"value\":\"1\"}}\n{{\"key\":\"b\",\"value\":\"2\"}}\n\
                 {{\"key\":\"{long_key}\",\"value\":\"3\"}}\n"
            ),
            3,
        ),
    ] {
        let text = sh.fails_with(&format!("load db --format {format}"), input.as_bytes(), 1);
        assert!(text.contains(&format!("line {line} of standard input")), "{format}: {text}");
        assert!(text.contains("65536 bytes is longer than the limit of 65535"), "{text}");
        assert!(text.contains("2 lines before it loaded"), "{format}: {text}");
        assert_eq!(sh.ok("export db"), "a\t1\nb\t2\n", "{format}");
        sh.ok("destroy db");
    }
    sh.ok_with("load db", format!("{}\tlongest key\n", &long_key[1..]).as_bytes());
}

/// A value that fits the largest batch alone is loaded alone; one that does not is reported with
/// its line.
#[test]
fn a_line_too_large_to_share_a_group_has_one_of_its_own() {
    let sh = Shell::new();
    let (small, large) = ("s".repeat(100_000), "l".repeat((2 << 20) - 100));
    let mut input = format!("a\t{small}\nb\t{large}\nc\t{small}\n");
    sh.ok_with("load db --option memory_bytes=8MiB", input.as_bytes());
    assert!(sh.ok("export db") == input);
    input.push_str(&format!("d\t{large}{small}\n"));
    let text = sh.fails_with("load other --option memory_bytes=8MiB", input.as_bytes(), 1);
    assert!(text.contains("line 4 of standard input: a batch of"), "{text}");
    assert!(text.contains("3 lines before it loaded"), "{text}");
    assert_eq!(sh.ok("scan other --keys-only"), "a\nb\nc\n");
}

/// An export warns of the parts that it lacks: the user may keep it as a copy.
#[test]
fn export_says_what_it_leaves_out() {
    let sh = Shell::new();
    sh.ok("put db a 1");
    assert_eq!(stderr(&sh.run("export db --quiet")), "");
    sh.ok_with("load db --ttl 1d", b"b\t2\nc\t3\n");
    sh.ok("put db d 4 --ttl 1d");
    sh.ok("put db d 5");
    sh.ok("put db e 6 -k second");
    sh.ok("put db f 7 -k third");
    let output = sh.run("export db");
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(0), &b"a\t1\nb\t2\nc\t3\nd\t5\n"[..])
    );
    let text = stderr(&output);
    assert!(text.contains("2 pairs exported without"), "{text}");
    assert!(text.contains("only keyspace default") && text.contains("second, third"), "{text}");
    let text = stderr(&sh.run("export db --quiet"));
    assert!(text.contains("2 pairs exported without") && !text.contains("second"), "{text}");
    let text = stderr(&sh.run("export db -k second"));
    assert!(!text.contains("expiry") && text.contains("default, third"), "{text}");
}

#[test]
fn odd_inputs() {
    let sh = Shell::new();
    sh.ok_with("load db", b"");
    assert_eq!(sh.ok("export db"), "");
    sh.ok_with("load db", b"last line without\tline feed");
    sh.ok_with("load db", b"\tempty key\nempty value\t\ncr\tkept\r\n");
    assert_eq!(
        sh.ok("export db"),
        "\tempty key\ncr\tkept\r\nempty value\t\nlast line without\tline feed\n"
    );
    let large = format!("large\t{}\n", "x".repeat(3 << 20));
    sh.ok_with("load other", large.as_bytes());
    assert!(sh.ok("export other") == large);
}

#[test]
fn scan_from_to_prefix_reverse_limit() {
    let sh = Shell::new();
    sh.ok_with("load db", b"a\t1\nab\t2\nabc\t3\nac\t4\nb\t5\n\xff\t6\n\xff\xff\t7\n");
    let keys = |flags: &str| {
        let line = format!("scan db --keys-only --hex {flags}");
        sh.ok(&line).lines().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(""), "61 6162 616263 6163 62 ff ffff");
    assert_eq!(keys("--reverse"), "ffff ff 62 6163 616263 6162 61");
    assert_eq!(keys("--from 6162"), "6162 616263 6163 62 ff ffff");
    assert_eq!(keys("--to 6163"), "61 6162 616263");
    assert_eq!(keys("--from 6162 --to 62 --reverse"), "6163 616263 6162");
    assert_eq!(keys("--prefix 6162"), "6162 616263");
    assert_eq!(keys("--prefix ff --reverse"), "ffff ff");
    assert_eq!(keys("--prefix 61 --from 6162 --to 6163"), "6162 616263");
    assert_eq!(keys("--prefix 61 --from 00 --to ff"), "61 6162 616263 6163");
    assert_eq!(keys("--limit 2"), "61 6162");
    assert_eq!(keys("--limit 2 --reverse"), "ffff ff");
    assert_eq!(keys("--limit 0"), "");
    assert_eq!(keys("--from 62 --to 61"), "");
    assert_eq!(
        sh.ok("scan db --prefix ab --format jsonl"),
        "{\"key\":\"ab\",\"value\":\"2\"}\n{\"key\":\"abc\",\"value\":\"3\"}\n"
    );
    assert_eq!(sh.ok("scan db --to b --reverse --limit 1 --format csv"), "ac,4\n");
}

#[test]
fn acknowledgements_count_durable_lines() {
    let sh = Shell::new();
    let input = pairs(3, 2_500, 9_000);
    let acks = sh.ok_with("load db --sync --ack --quiet", &tsv(&input));
    assert_eq!(acks, "1000\n2000\n2500\n");
    let acks = sh.ok_with("load db --ack --group 700", &tsv(&input));
    assert_eq!(acks, "700\n1400\n2100\n2500\n");
    assert_eq!(sh.ok_with("load db --sync", &tsv(&input)), "");
    assert!(sh.run("export db").stdout == expected(&input));
}

/// A writer that waits for the acknowledgement of one line gets it, though the group has room and
/// the input stays open.
#[test]
fn an_idle_input_is_acknowledged() {
    let sh = Shell::new();
    let (mut child, mut lines) = loading(&sh, "load db --ack");
    for i in 1..=3 {
        writeln!(child.stdin.as_ref().unwrap(), "key{i}\tvalue").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), i.to_string());
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// A load whose acknowledgements are no longer read stops, and is no success.
#[test]
fn an_acknowledgement_that_nobody_reads_is_a_failure() {
    let sh = Shell::new();
    let (mut child, mut lines) = loading(&sh, "load db --ack --group 2");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\t1\nb\t2\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "2");
    drop(lines);
    // A process that another test starts at this moment has the reading end until it executes
    // its program, so the first lines may still be acknowledged: lines are written until the
    // load gives up and its input closes.
    let mut keys = String::from("a\nb\n");
    for n in 0.. {
        keys += &format!("c{n:06}\n");
        if writeln!(stdin, "c{n:06}\t{n}").is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let loaded = sh.ok("scan db --keys-only");
    assert!(keys.starts_with(&loaded) && loaded.len() > 4, "{loaded}");
    let count = format!("{} lines before it loaded", loaded.lines().count());
    assert!(text.contains("acknowledge") && text.contains(&count), "{text}");
}

fn loading(
    sh: &Shell,
    line: &str,
) -> (Child, impl Iterator<Item = std::io::Result<String>> + use<>) {
    let mut child = sh.spawn(line);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_second_writer_is_told_who_is_first() {
    let sh = Shell::new();
    let (mut child, mut lines) = loading(&sh, "load db --ack");
    writeln!(child.stdin.as_ref().unwrap(), "key\tvalue").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    for line in ["put db a b", "repair db", "compact db", "destroy db --yes"] {
        let text = sh.fails(line, 1);
        assert!(text.contains("busy") && text.contains(&child.id().to_string()), "{line}: {text}");
    }
    // No other process closes the database meanwhile.
    assert!(sh.fails("put db a b --wait 100ms", 1).contains("busy"));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert_eq!(sh.ok("get db key"), "value\n", "a dead holder blocks");
}

#[test]
fn a_writer_waits_for_the_one_before_it() {
    let sh = Shell::new();
    let (mut child, mut lines) = loading(&sh, "load db --ack");
    writeln!(child.stdin.as_ref().unwrap(), "key\tvalue").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    let waiting: Vec<Child> =
        (0..4).map(|n| sh.spawn(&format!("put db key{n} {n} --wait 1m"))).collect();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    for mut one in waiting {
        assert!(one.wait().unwrap().success());
    }
    assert_eq!(sh.ok("count db"), "5\n");
}

#[test]
fn ctrl_c_closes_and_says_130() {
    let sh = Shell::new();
    let (mut child, mut lines) = loading(&sh, "load db --ack");
    let mut stdin = child.stdin.take().unwrap(); // stays open, or the load would end by itself
    stdin.write_all(b"a\t1\nb\t2\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "2");
    stdin.write_all(b"unfinished").unwrap();
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("2 lines loaded"), "{}", stderr(&output));
    assert_eq!(sh.ok("export db"), "a\t1\nb\t2\n");
}

/// A command in the engine, or at a prompt, does not check the flag that Ctrl-C sets. Each is held
/// where it prints its result, to a full pipe.
#[test]
fn one_ctrl_c_ends_what_runs_in_the_engine() {
    let sh = Shell::new();
    sh.ok("put db key value");
    sh.ok("checkpoint db copy");
    // The last one reports that a copy exists.
    for line in ["compact db", "verify db", "repair db", "checkpoint db copy"] {
        let (reader, mut full) = std::io::pipe().unwrap();
        full.write_all(&vec![b'x'; fcntl_getpipe_size(&full).unwrap()]).unwrap();
        let mut command = sh.command(line.split_whitespace());
        command.stdout(full.try_clone().unwrap()).stderr(full.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        wait_until_it_writes(&child);
        signal(&child, Signal::INT);
        // The pipe has no reader, so that a command that misses the signal waits here for ever.
        let status = child.wait().unwrap();
        drop(reader);
        assert_eq!(status.code(), Some(130), "{line}: {status}");
    }
}

/// Waits until a process is in a system call on its stdout or stderr, where the system tells.
fn wait_until_it_writes(child: &Child) {
    let call = format!("/proc/{}/syscall", child.id());
    while let Ok(text) = std::fs::read_to_string(&call) {
        if matches!(text.split(' ').nth(1), Some("0x1" | "0x2")) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The directory is deleted, and a backup restored in its place, under a load.
#[test]
fn a_load_into_a_directory_that_is_replaced_fails_and_spares_what_is_there_now() {
    let sh = Shell::new();
    for i in 0..3 {
        sh.ok(&format!("put backup key{i} backup"));
    }
    sh.ok("verify backup");
    let wanted = sh.image("backup");
    for group in ["--group 700", "--sync"] {
        let (mut child, mut lines) = loading(&sh, &format!("load db --ack {group}"));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&tsv(&pairs(5, 2_800, 9_000))).unwrap();
        lines.next().unwrap().unwrap();
        while sh.path("db").exists() {
            _ = std::fs::remove_dir_all(sh.path("db"));
        }
        std::fs::create_dir(sh.path("db")).unwrap();
        for (name, bytes) in &wanted {
            std::fs::write(sh.path("db").join(name), bytes).unwrap();
        }
        let fed = stdin.write_all(&tsv(&pairs(6, 60_000, 9_000)));
        drop(stdin);
        let heard = lines.filter(|line| line.is_ok()).count();
        let output = child.wait_with_output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{fed:?}, {heard}: {text}");
        assert!(text.contains("directory was deleted, restored"), "{text}");
        assert!(sh.image("db") == wanted, "not a byte of the backup was changed");
        assert_eq!(sh.ok("scan db --keys-only"), "key0\nkey1\nkey2\n");
        sh.ok("verify db");
        sh.ok("destroy db");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let sh = Shell::new();
    sh.ok_with("load db", &tsv(&pairs(4, 50_000, 40_000)));
    let wal = sh
        .files("db", ".wal")
        .into_iter()
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap();
    let table = sh.files("db", ".sst");
    let mut lines =
        vec!["export db".to_owned(), "scan db".to_owned(), format!("dump wal {}", wal.display())];
    lines.extend(table.first().map(|table| format!("dump table {}", table.display())));
    for line in lines {
        let mut child = sh.spawn(&line);
        let mut out = child.stdout.take().unwrap();
        let mut head = [0; 10];
        out.read_exact(&mut head).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{line}");
    }
    for line in ["options", "completions bash", "man", "help", "tree db", "stats db", "demo"] {
        let mut child = sh.spawn(line);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{line}");
    }
}

/// A death at any moment leaves a prefix of the input, with all that was acknowledged of it. Ten
/// moments, five by each kind of write.
#[test]
fn sigkill_leaves_a_prefix() {
    let seed = 1;
    let mut rng = Rng::new(seed);
    for moment in 0..10 {
        let sh = Shell::new();
        let acked = if moment % 2 == 0 {
            kill_after_acks(&sh, 1 + rng.below(60))
        } else {
            kill_after(&sh, Duration::from_micros(2_000 + rng.below(60_000)));
            0
        };
        if !sh.path("db").exists() {
            continue;
        }
        let output = sh.run("export db");
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let text_of_error = stderr(&output);
        if text_of_error.contains("there is no database in") && acked == 0 {
            continue; // killed before the database was there
        }
        assert_eq!(output.status.code(), Some(0), "seed {seed} moment {moment}: {text_of_error}");
        for (i, line) in text.lines().enumerate() {
            assert_eq!(line, numbered(i as u64), "seed {seed} moment {moment}: a hole at line {i}");
        }
        let lines = text.lines().count() as u64;
        assert!(lines >= acked, "seed {seed} moment {moment}: {acked} acknowledged, {lines} there");
        let verified = sh.run("verify db");
        assert_eq!(
            verified.status.code(),
            Some(0),
            "seed {seed} moment {moment}: {}",
            stderr(&verified)
        );
        sh.ok("put db zzz still-writable");
    }
}

fn numbered(i: u64) -> String {
    format!("{i:08}\tvalue of line {i}")
}

/// Feeds numbered lines until the reader closes.
fn feed(mut to: std::process::ChildStdin) {
    let mut chunk = String::new();
    for i in 0.. {
        chunk.push_str(&numbered(i));
        chunk.push('\n');
        if chunk.len() > 8_000 {
            if to.write_all(chunk.as_bytes()).is_err() {
                return;
            }
            chunk.clear();
        }
    }
}

/// Kills a synced load after this number of acknowledgements; returns the last.
fn kill_after_acks(sh: &Shell, acks: u64) -> u64 {
    let (mut child, lines) = loading(sh, "load db --ack --group 50");
    let stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || feed(stdin));
    let mut acked = 0;
    for line in lines.take(acks as usize) {
        acked = line.unwrap().parse().unwrap();
    }
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    feeder.join().unwrap();
    assert_eq!(acked, acks * 50);
    acked
}

/// Kills an unsynced load after a while.
fn kill_after(sh: &Shell, wait: Duration) {
    let mut child =
        sh.spawn("load db --group 50 --option memtable_bytes=64KiB --option memory_bytes=8MiB");
    let stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || feed(stdin));
    std::thread::sleep(wait);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    feeder.join().unwrap();
}
